"""The positive control: of heads with fixed attention patterns the analysis finds the labels that are known beforehand.

Patterns do not depend on training, so an untrained model with them will do. Its eighth head, which has no pattern, gets no label.
"""

from pathlib import Path

from parsed_corpus import VOCABULARY

from specialized_heads.model.checkpoint import save
from specialized_heads.model.patterns import LABELS
from specialized_heads.model.transformer import Architecture, Transformer, initialise


def test_heads_with_a_fixed_offset_are_positional_there_and_the_head_without_a_pattern_has_no_label(
    files: dict[str, Path], analysed
) -> None:
    sizes = {"source_vocabulary": VOCABULARY, "target_vocabulary": VOCABULARY, "width": 16, "feed_forward": 8}
    model = Transformer(Architecture.full(**sizes, layers=2, heads=8, fixed_patterns=True), dropout=0.0)
    initialise(model, seed=1)
    save(model, files["model"], training={})
    rows = [row for row in analysed()[0] if row["type"] == "encoder"]
    for row in rows:
        offset = [*LABELS.values(), None][row["head"] - 1]
        if offset is not None:
            assert (row["positional_offset"], row["positional_share"]) == (offset, 1.0)
            assert row["functions"] == ["positional"]
    assert [row["functions"] for row in rows if row["head"] > len(LABELS)] == [[], []]
