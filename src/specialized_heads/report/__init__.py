"""Figures and tables of the paper, redrawn from this pipeline's results, with the paper's own numbers beside them.

Every module has the same two parts: `numbers` gathers what is shown into one table, `draw` (of a table, `shown`) shows
that and nothing else. The numbers are written as CSV beside the picture.
"""
