"""The Transformer whose heads are studied: attention, gates, decoding and its files on disk."""
