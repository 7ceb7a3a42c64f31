"""Relevance of heads for the predictions of a model (section 4, appendix A): weight ratios, as in the paper, and other rules."""
