"""Relevance of heads for the predictions of a model (section 4, appendix A), by the rules of `rules.py`."""
