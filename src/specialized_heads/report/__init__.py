"""Figures and tables of the paper, redrawn from this pipeline's results, with the paper's own numbers beside them.

Every module has the same two parts: `numbers` gathers what is shown into one table, `draw` (or `wide`) shows that table and
nothing else. The table is written as CSV beside the picture.
"""
