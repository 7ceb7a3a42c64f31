"""Relevance of heads for the model's predictions (section 4, appendix A), by weight ratios as in the paper and by other rules."""
