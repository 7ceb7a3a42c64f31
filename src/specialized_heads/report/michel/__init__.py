"""The figures and tables of Michel et al. (2019)."""
