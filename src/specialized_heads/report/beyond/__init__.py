"""Figures and tables that go beyond both papers."""
