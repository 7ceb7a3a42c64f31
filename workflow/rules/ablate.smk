# What heads are worth, one by one and in order of importance (Michel et al. 2019).


def ablation_targets():
    """Figures and tables of ablation, as far as the section `ablation` asks for them."""
    return []
