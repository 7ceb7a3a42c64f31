"""The figures and tables of both papers, and those beyond them, by subject."""
