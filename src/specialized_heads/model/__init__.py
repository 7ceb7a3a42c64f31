"""The Transformer whose heads are studied: attention, gates, beam search, and its files on disk."""
