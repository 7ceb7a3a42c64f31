"""Pruning heads: Hard Concrete gates (Voita et al., section 6), importance and ablation
(Michel et al.)."""
