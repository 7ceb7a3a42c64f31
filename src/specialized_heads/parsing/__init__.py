"""Dependency trees of the analysis sentences, and their alignment with the model's subwords
(section 5.2)."""
