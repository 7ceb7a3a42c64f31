"""Exchange models with other projects: read theirs, and write ours in their formats."""
