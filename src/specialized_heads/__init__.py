"""Reproducible study of attention heads in neural machine translation (Voita et al. 2019;
Michel et al. 2019)."""

import os

# Threads that wait for work sleep, so that they leave a shared processor to others. OpenMP reads
# this when torch loads it.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

__version__ = "1.0.0"
