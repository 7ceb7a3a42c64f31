"""Pruning heads: Hard Concrete gates (Voita et al., section 6)."""
