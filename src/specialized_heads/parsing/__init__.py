"""Dependency trees of the analysis sentences, and how their words lie on the model's subwords (section 5.2)."""
