"""Reproducible study of attention heads in neural machine translation (Voita et al. 2019; Michel et al. 2019)."""

__version__ = "1.0.0"
