"""From a source of parallel text to token ids: raw, clean, split, bpe, tokens, one module per stage, in this order."""
