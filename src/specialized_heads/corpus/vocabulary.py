"""The ids that every vocabulary reserves for padding, unknown pieces, and begin and end of a sentence."""

PAD, UNKNOWN, BOS, EOS = range(4)
