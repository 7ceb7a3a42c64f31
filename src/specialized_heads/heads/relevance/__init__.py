"""Relevance of heads for the model's predictions (section 4, appendix A), by the paper's rule and by others."""
