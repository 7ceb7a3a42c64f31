"""The figures and tables of Voita et al. (2019)."""
