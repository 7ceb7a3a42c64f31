"""Time to quality of this engine and its peers: see `__main__`."""
