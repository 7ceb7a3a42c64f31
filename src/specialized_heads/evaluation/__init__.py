"""Translate the test set, score translations, and collect the scores of all models."""
