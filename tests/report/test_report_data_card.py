"""The data card: everything that the stages counted is in it, and pairs that were dropped are not hidden."""

from itertools import groupby

import pandas as pd

from specialized_heads.report.beyond import data_card

CARD = {
    "kind": "opus",
    "files": [
        {"file": "en-ru.txt.zip", "bytes": 1234567, "sha256": "ab12", "url": "https://example.org/en-ru.txt.zip"}
    ],
    "licence": "CC-BY 2.0",
    "citation": "Someone 2012",
    "read": 100,
    "dropped": {"over_limit": 10},
    "pairs": 90,
}
SPLIT = {"pairs": 40, "groups": 30, "source_words": 200, "target_words": 150}
SPLIT |= {"source_characters": 1000, "target_characters": 900}
SPLIT |= {f"{side}_length": {"mean": 5.25, "median": 4, "95%": 11} for side in ("source", "target")}
COUNTS = {
    "read": 100,
    "dropped_in_reading": {"over_limit": 10},
    "raw": 90,
    "changed_in_cleaning": {"entities": 7, "composition": 0},
    "dropped_in_cleaning": {"empty": 0, "too_long": 8},
    "clean": 82,
    "groups": 60,
    "dropped_in_splitting": {"train_overlap": 2},
    "splits": {name: SPLIT | {"pairs": pairs} for name, pairs in zip(data_card.SPLITS, (40, 10, 10, 20), strict=True)},
}
LOCAL = CARD | {"kind": "local", "licence": "100% mine & yours_"}
LOCAL["files"] = [{"file": "a.tsv", "bytes": 5, "sha256": "cd"}] * 2
PACKAGED = CARD | {"made_from": [{"package": "some-package", "version": "1:2.0-1", "sha256": "ef"}]}


def values(card: dict, counts: dict = COUNTS) -> dict[tuple[str, str], object]:
    rows = data_card.numbers({"One": card}, {"One": counts})
    return {(part, quantity): value for _, part, quantity, value in rows.itertuples(index=False)}


def test_everything_that_was_counted_is_there() -> None:
    found = values(CARD)
    expected = {
        "source": {"kind": "opus", "licence": "CC-BY 2.0", "file 1": "en-ru.txt.zip", "file 1 sha256": "ab12"}
        | {"file 1 address": "https://example.org/en-ru.txt.zip"},
        "reading": {"pairs": 100, "dropped: over limit": 10},
        "cleaning": {"pairs": 90, "dropped: too long": 8, "changed: entities": 7},
        "splitting": {"pairs": 82, "dropped: train overlap": 2},
        "train": {"pairs": 40, "source length, 95%": 11.0, "target characters": 900},
    }
    for part, quantities in expected.items():
        assert {quantity: found[part, quantity] for quantity in quantities} == quantities
    assert [found[split, "pairs"] for split in data_card.SPLITS] == [40, 10, 10, 20]


def test_packages_are_named_with_their_versions() -> None:
    assert values(PACKAGED)["source", "package 1"] == "some-package 1:2.0-1"


def test_what_is_read_has_a_column_per_corpus_and_nothing_idle() -> None:
    other = COUNTS | {"dropped_in_reading": {"no_tab": 3}}
    rows = data_card.numbers({"One": CARD, "Two": LOCAL}, {"One": COUNTS, "Two": other})
    table = data_card.shown(rows)
    assert list(table.columns) == ["part", "quantity", "One", "Two"]
    cells = {(part, quantity): (one, two) for part, quantity, one, two in table.itertuples(index=False)}
    assert cells["source", "file 1 bytes"] == ("1,234,567", "5")
    assert cells["source", "file 2"] == ("–", "a.tsv")
    assert cells["reading", "dropped: over limit"] == ("10", "–")
    assert cells["reading", "dropped: no tab"] == ("–", "3")
    assert cells["train", "source length, mean"] == ("5.2", "5.2")
    assert ("cleaning", "dropped: empty") not in cells
    assert ("cleaning", "changed: composition") not in cells
    assert not any("sha256" in quantity or "address" in quantity for _, quantity in cells)
    # What only the second corpus has stands with its part.
    parts = table["part"].tolist()
    assert [part for part, _ in groupby(parts)] == ["source", "reading", "cleaning", "splitting", *data_card.SPLITS]


def test_the_stage_writes_the_table_in_every_format(stage, write) -> None:
    files = {
        "cards": [write("raw0.json", CARD), write("raw1.json", LOCAL)],
        "counts": [write("counts0.json", COUNTS), write("counts1.json", COUNTS)],
    }
    stem = stage("data_card", {"titles": ["EN-RU", "_100%"]}, **files)
    numbers = pd.read_csv(stem.with_name("data_card.csv"))
    assert list(numbers.columns) == ["corpus", "part", "quantity", "value"]
    assert numbers["corpus"].unique().tolist() == ["EN-RU", "_100%"]
    markdown, latex = (stem.with_suffix(suffix).read_text("utf-8") for suffix in (".md", ".tex"))
    assert r"| source | licence | CC-BY 2.0 | 100% mine &amp; yours\_ |" in markdown
    assert r"100\% mine \& yours\_" in latex
