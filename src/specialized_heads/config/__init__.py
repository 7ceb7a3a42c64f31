"""The configuration of an experiment: its keys, their ranges and defaults, and the file it is read from."""
