"""Figures and tables of the classification tasks that have no counterpart for translation."""
