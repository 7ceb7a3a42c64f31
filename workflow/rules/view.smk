# Attention maps, labels and trees of a model, in a page that works from disk.


def viewer_targets():
    """The pages of all analysed models."""
    return []
