"""Models of other projects: reading theirs, and writing ours in their formats."""
