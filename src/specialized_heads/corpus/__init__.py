"""From parallel text to token ids: the stages raw, clean, split, bpe and tokens."""
