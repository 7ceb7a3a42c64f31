"""Dependency trees of the analysis sentences (section 5.2)."""
