"""Stage clean: each filter drops what it names and nothing else, counts add up, and groups follow shared sentences."""

import json
from pathlib import Path

import pytest

from specialized_heads.config import Filters
from specialized_heads.corpus.clean import clean, group_by_sentence, normalise
from specialized_heads.corpus.pairs import Pairs, read_pairs, write_pairs

GOOD = ("A cat sleeps.", "Un chat dort.")


def cleaned(*pairs: tuple[str, str], **filters: object) -> tuple[list[tuple[str, str]], dict[str, int]]:
    """Clean the given pairs, each a document of its own; return what is kept and the counts above zero."""
    raw = Pairs([s for s, _ in pairs], [t for _, t in pairs], [str(i) for i in range(len(pairs))])
    kept, dropped = clean(raw, filters=Filters(**filters))
    assert len(kept) + sum(dropped.values()) == len(raw)
    return list(zip(kept.source, kept.target, strict=True)), {name: n for name, n in dropped.items() if n}


@pytest.mark.parametrize(
    ("bad", "reason", "filters"),
    [
        (("", "Un chat."), "empty", {}),
        (("A cat.", " \u200b\u00a0"), "empty", {}),
        (("Cat.", "Un chat dort."), "too_short", {"min_words": 2}),
        (("A cat sleeps here.", "Un chat dort."), "too_long", {"max_words": 3}),
        (("A cat.", "Un chat qui dort bien."), "uneven", {"max_ratio": 2}),
        (("Tom Smith, 1!", "tom smith"), "copy", {}),
        (GOOD, "duplicate", {}),
        (("A  cat sleeps.\t", "Un chat\u00a0dort."), "duplicate", {}),
    ],
)
def test_each_filter(bad: tuple[str, str], reason: str, filters: dict) -> None:
    assert cleaned(GOOD, bad, **filters) == ([GOOD], {reason: 1})


def test_bounds_are_inclusive() -> None:
    pair = ("one two three", "un deux trois")
    assert cleaned(pair, min_words=3, max_words=3) == ([pair], {})
    even = ("ab", "abcdef")
    assert cleaned(even, max_ratio=3) == ([even], {})


def test_copies_can_be_kept() -> None:
    assert cleaned(("Paris", "Paris"), copies=True) == ([("Paris", "Paris")], {})


def test_a_pair_counts_for_the_first_reason() -> None:
    assert cleaned(GOOD, ("", ""), ("one two three four", "one two three four"), max_words=3)[1] == {
        "empty": 1,
        "too_long": 1,
    }


def test_normalise() -> None:
    assert normalise("  cafe\u0301\u00a0:\n\u202fun\u00adique\x00 ") == "café : unique"
    assert normalise("می\u200cخواهم") == "می\u200cخواهم"
    assert normalise("Don’t “quote” it…") == "Don’t “quote” it…"


def test_groups_follow_chains_of_equal_sentences() -> None:
    sources = ["Go!", "go", "Leave.", "Hi.", "7", "8"]
    targets = ["Va !", "Pars.", "PARS", "Salut.", "sept", "huit"]
    groups = group_by_sentence(sources, targets)
    assert groups[0] == groups[1] == groups[2]
    assert len({*groups}) == 4
    # The order of the file changes no group's name.
    assert group_by_sentence(sources[::-1], targets[::-1])[::-1] == groups


def test_an_empty_sentence_links_nothing() -> None:
    assert len(set(group_by_sentence(["a", "b", ""], ["", "", "x"]))) == 3


def test_filters_do_not_regroup_what_they_keep() -> None:
    raw = Pairs(["Go.", "Go.", "Please do leave now."], ["Va.", "Pars.", "Pars."], ["", "", ""])
    short, _ = clean(raw, filters=Filters(max_words=2))
    everything, _ = clean(raw, filters=Filters(max_ratio=10))
    assert len(everything) == 3
    assert short.document == everything.document[:2]


def test_own_documents_are_kept() -> None:
    kept, _ = clean(Pairs(["a b", "a b"], ["c", "d"], ["one", "two"]), filters=Filters())
    assert kept.document == ["one", "two"]


def test_stage_writes_counts(tmp_path: Path, stage, everyday: Pairs) -> None:
    write_pairs(tmp_path / "raw.parquet", everyday)
    files = {"input": tmp_path / "raw.parquet", "output": tmp_path / "clean.parquet", "counts": tmp_path / "clean.json"}
    done = stage("clean", settings={"filters": {"max_words": 100}}, **files)
    assert done.returncode == 0, done.stderr
    counts = json.loads((tmp_path / "clean.json").read_text())
    assert counts["raw"] == len(everyday)
    assert counts["clean"] == len(read_pairs(tmp_path / "clean.parquet"))
    assert counts["raw"] == counts["clean"] + sum(counts["dropped_in_cleaning"].values())


def test_nothing_left_is_a_mistake_with_counts(tmp_path: Path, stage, everyday: Pairs) -> None:
    write_pairs(tmp_path / "raw.parquet", everyday)
    files = {"input": tmp_path / "raw.parquet", "output": tmp_path / "clean.parquet", "counts": tmp_path / "clean.json"}
    done = stage("clean", settings={"filters": {"max_words": 2}}, **files)
    assert done.returncode == 2
    assert "no pair of 500 passes the filters (too_long 500)" in done.stderr
