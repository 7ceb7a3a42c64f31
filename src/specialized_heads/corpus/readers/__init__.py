"""Readers of parallel text, one module per kind of source or format: blocks of pairs, and counts of
what was dropped."""
