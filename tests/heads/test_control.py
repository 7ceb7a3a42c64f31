"""The positive control: of heads with fixed attention patterns the analysis finds the labels that
are known beforehand.

Patterns do not depend on training, so an untrained model with them will do. Its eighth head, which
has no pattern, gets no label.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from parsed_corpus import VOCABULARY, Corpus

from specialized_heads.experiment.sections import Heads
from specialized_heads.model.attention import LABELS
from specialized_heads.model.checkpoint import save
from specialized_heads.parsing.relations import DIRECTIONS

# Which end of the sentence the last two patterns look at, as a weight of each place among n tokens
# and EOS.
ENDS = {
    "end of the sentence": lambda place, n: (place + 1.0) ** 3,
    "start of the sentence": lambda place, n: (n + 1.0 - place) ** 3,
}


@pytest.fixture
def rows(tiny_model: Callable, files: dict[str, Path], analysed: Callable) -> list[dict]:
    """The rows of the encoder's heads."""
    model = tiny_model(
        vocabulary=VOCABULARY, heads=8, width=16, feed_forward=8, fixed_patterns=True
    )
    save(model, files["model"], training={})
    return [row for row in analysed()[0] if row["type"] == "encoder"]


def accuracy(corpus: Corpus, name: str, relation: str, direction: str) -> float:
    """How often a head that looks at one end of the sentence is right on an arc, counted from the
    trees."""
    hits = []
    for sentence in corpus.sentences.values():
        pieces = sum(len(word) for word in sentence.words)
        weights = [sum(ENDS[name](piece, pieces) for piece in word) for word in sentence.words]
        for arc in sentence.arcs:
            if arc.relation == relation:
                hits.append(
                    int(np.argmax(weights))
                    == (arc.dependent if direction == DIRECTIONS[0] else arc.head)
                )
    return float(np.mean(hits))


def test_heads_with_a_fixed_offset_are_positional_at_that_offset_and_nothing_else(rows) -> None:
    for row in rows:
        if row["head"] > len(LABELS):  # which has no pattern
            assert row["functions"] == []
            continue
        offset = list(LABELS.values())[row["head"] - 1]
        if offset is not None:
            assert (row["positional_offset"], row["positional_share"]) == (offset, 1.0)
            assert row["functions"] == ["positional"]


def test_heads_at_an_end_of_the_sentence_have_the_labels_that_the_trees_give_them(
    rows, corpus: Corpus
) -> None:
    for row in rows:
        if row["head"] > len(LABELS) or (name := list(LABELS)[row["head"] - 1]) not in ENDS:
            continue
        expected = []
        for relation in Heads().relations:
            for direction in DIRECTIONS:
                column = f"{relation}_{direction}"
                assert row[column] == pytest.approx(accuracy(corpus, name, relation, direction)), (
                    column
                )
                if row[column] - row[f"{column}_baseline"] >= 0.1:
                    expected.append(column)
        assert row["relations"] == expected
        assert "positional" not in row["functions"]
