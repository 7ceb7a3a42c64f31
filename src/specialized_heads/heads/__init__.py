"""Analysis of heads: relevance, confidence and the functions of sections 4 and 5."""
