"""The ids that every vocabulary reserves; SentencePiece is trained to give them, and the model relies on them."""

PAD, UNKNOWN, BOS, EOS = range(4)
