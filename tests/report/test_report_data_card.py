"""The data card: everything that the stages counted is in it, and pairs that were dropped are not hidden."""

import json
from itertools import groupby
from pathlib import Path

from specialized_heads.report.beyond import data_card

FILE = {"file": "en-ru.txt.zip", "bytes": 1234567, "sha256": "ab12", "url": "https://example.org/en-ru.txt.zip"}
CARD = {"kind": "opus", "files": [FILE], "licence": "CC-BY 2.0", "made_from": [{"package": "pkg", "version": "1:2.0"}]}
LENGTH = {"mean": 5.25, "median": 4, "95%": 11}
SPLIT = {"pairs": 40, "groups": 30, "source_words": 200, "target_words": 150, "source_length": LENGTH}
SPLIT |= {"source_characters": 1000, "target_characters": 900, "target_length": LENGTH}
COUNTS = {
    "read": 100,
    "dropped_in_reading": {"over_limit": 10},
    "raw": 90,
    "changed_in_cleaning": {"entities": 7, "composition": 0},
    "dropped_in_cleaning": {"empty": 0, "too_long": 8},
    "clean": 82,
    "dropped_in_splitting": {"train_overlap": 2},
    "splits": dict.fromkeys(data_card.SPLITS, SPLIT),
}
LOCAL = {"kind": "local", "licence": "100% mine", "files": [{"file": "a.tsv", "bytes": 5, "sha256": "cd"}] * 2}


def test_everything_that_was_counted_is_there_and_what_is_read_has_a_column_per_corpus(tmp_path: Path) -> None:
    other = COUNTS | {"dropped_in_reading": {"no_tab": 3}}
    for name, value in {"card 1": CARD, "card 2": LOCAL, "counts 1": COUNTS, "counts 2": other}.items():
        (tmp_path / name).write_text(json.dumps(value))
    cards, counts = ({"One": tmp_path / f"{name} 1", "Two": tmp_path / f"{name} 2"} for name in ("card", "counts"))
    numbers = data_card.numbers(None, cards, counts)
    found = numbers[numbers["corpus"] == "One"].set_index(["part", "quantity"])["value"]
    source = {"kind": "opus", "licence": "CC-BY 2.0", "file 1": FILE["file"], "file 1 sha256": "ab12"}
    expected = {
        "source": source | {"file 1 address": FILE["url"], "package 1": "pkg 1:2.0"},
        "reading": {"pairs": 100, "dropped: over limit": 10},
        "cleaning": {"pairs": 90, "dropped: too long": 8, "changed: entities": 7},
        "splitting": {"pairs": 82, "dropped: train overlap": 2},
        "train": {"pairs": 40, "source length, 95%": 11.0, "target characters": 900},
    }
    for part, quantities in expected.items():
        assert found[part][list(quantities)].to_dict() == quantities

    table = data_card.shown(numbers)
    cells = {(part, quantity): values for part, quantity, *values in table.itertuples(index=False)}
    assert cells["source", "file 1 bytes"] == ["1,234,567", "5"]
    assert cells["source", "file 2"] == ["–", "a.tsv"]
    assert (cells["reading", "dropped: over limit"], cells["reading", "dropped: no tab"]) == (["10", "–"], ["–", "3"])
    idle = {("cleaning", "dropped: empty"), ("cleaning", "changed: composition"), ("source", "file 1 sha256")}
    assert not idle & set(cells)
    # What only the second corpus has stands with its part.
    parts = [part for part, _ in groupby(table["part"])]
    assert parts == ["source", "reading", "cleaning", "splitting", *data_card.SPLITS]
