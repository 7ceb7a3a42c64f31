"""Attention maps, labels and trees of a model's heads, as pages that open from disk in any
browser."""
