# More about heads than the paper shows: agreement of relevance rules, drift of functions, survival, similarity.


def heads_targets():
    """Figures and tables of the functions of heads beyond the paper."""
    return []
