"""Translate the test set, and score translations."""
