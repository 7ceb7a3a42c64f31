"""The positive control: of heads with fixed attention patterns the analysis finds the labels that are known beforehand.

Patterns do not depend on training, so an untrained model with them will do. Its eighth head, which has no pattern, gets no label.
"""

from parsed_corpus import VOCABULARY

from specialized_heads.model.checkpoint import save
from specialized_heads.model.patterns import LABELS


def test_only_heads_with_a_fixed_offset_are_positional_and_at_that_offset(tiny_model, files, analysed) -> None:
    model = tiny_model(vocabulary=VOCABULARY, heads=8, width=16, feed_forward=8, fixed_patterns=True)
    save(model, files["model"], training={})
    for row in [row for row in analysed()[0] if row["type"] == "encoder"]:
        if row["head"] > len(LABELS):  # which has no pattern
            assert row["functions"] == []
        elif (offset := list(LABELS.values())[row["head"] - 1]) is None:  # an end of the sentence
            assert "positional" not in row["functions"]
        else:
            assert (row["positional_offset"], row["positional_share"]) == (offset, 1.0)
            assert row["functions"] == ["positional"]
