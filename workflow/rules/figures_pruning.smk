# What gates did, and the controls of footnote 8: trajectories, dead heads, soft and hard gates side by side.


def pruning_targets():
    """Figures and tables of pruning with gates, for the corpora that are pruned."""
    return []
