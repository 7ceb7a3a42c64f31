"""Translating the test set, scoring translations, and gathering the scores of all models."""
