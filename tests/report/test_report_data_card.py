"""The data card: everything that the stages counted is in it, and pairs that were dropped are not hidden."""

import json
from pathlib import Path

from specialized_heads.report.beyond import data_card

LENGTH = {"mean": 5.25, "95%": 11}
SPLIT = dict.fromkeys(("pairs", "groups", "source_words", "target_words", "source_characters", "target_characters"), 40)
SPLIT |= {"source_length": LENGTH, "target_length": LENGTH}
COUNTS = {
    "read": 1000,
    "dropped_in_reading": {"over_limit": 10},
    "raw": 90,
    "changed_in_cleaning": {"entities": 7, "composition": 0},
    "dropped_in_cleaning": {"empty": 0, "too_long": 8},
    "clean": 82,
    "dropped_in_splitting": {"train_overlap": 2},
    "splits": dict.fromkeys(data_card.SPLITS, SPLIT),
}
CARD = {"kind": "opus", "licence": "CC-BY 2.0", "made_from": [{"package": "pkg", "version": "1:2.0"}]}
CARD["files"] = [{"file": "a.zip", "bytes": 5, "sha256": "ab", "url": "https://example.org/a.zip"}]


def test_everything_that_was_counted_is_there_and_what_is_read_has_a_column_per_corpus(tmp_path: Path) -> None:
    other = COUNTS | {"dropped_in_reading": {"no_tab": 3}}
    for name, value in {"card": CARD, "1": COUNTS, "2": other}.items():
        (tmp_path / name).write_text(json.dumps(value))
    cards = dict.fromkeys(("One", "Two"), tmp_path / "card")
    numbers = data_card.numbers(None, cards, {"One": tmp_path / "1", "Two": tmp_path / "2"})
    found = numbers[numbers["corpus"] == "One"].set_index(["part", "quantity"])["value"]
    expected = {
        "source": {"kind": "opus", "licence": "CC-BY 2.0", "file 1 sha256": "ab", "package 1": "pkg 1:2.0"},
        "reading": {"pairs": 1000, "dropped: over limit": 10},
        "cleaning": {"pairs": 90, "dropped: too long": 8, "changed: entities": 7},
        "splitting": {"pairs": 82, "dropped: train overlap": 2},
        "train": {"pairs": 40, "source length, 95%": 11.0, "target characters": 40},
    }
    for part, quantities in expected.items():
        assert found[part][list(quantities)].to_dict() == quantities
    table = data_card.shown(numbers)
    assert table["part"].drop_duplicates().tolist() == [*list(expected)[:4], *data_card.SPLITS]
    cells = {(part, quantity): values for part, quantity, *values in table.itertuples(index=False)}
    assert (cells["reading", "pairs"], cells["train", "source length, mean"]) == (["1,000"] * 2, ["5.2"] * 2)
    assert (cells["reading", "dropped: over limit"], cells["reading", "dropped: no tab"]) == (["10", "–"], ["–", "3"])
    assert not {("cleaning", "dropped: empty"), ("source", "file 1 sha256")} & set(cells)  # idle, or too long
