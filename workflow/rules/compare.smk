# Criteria for the heads to keep, side by side: the baseline cut by each, and trained on.


def comparison_targets():
    """Figures and tables of the comparison, where criteria are given."""
    return []
