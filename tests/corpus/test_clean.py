"""Stage clean: each filter drops what it names and nothing else, counts add up, and groups follow
shared sentences."""

from collections import Counter
from pathlib import Path

import pytest

from specialized_heads.corpus import pairs
from specialized_heads.stage import UserError

GOOD = ("A cat sleeps.", "Un chat dort.")


def texts(rows: list[tuple[str, ...]]) -> list[tuple[str, str]]:
    return [row[:2] for row in rows]


@pytest.mark.parametrize(
    ("bad", "reason", "filters"),
    [
        (("", "Un chat."), "empty", {}),
        (("A cat.", " \u200b\u00a0"), "empty", {}),
        (("A cat sleeps here.", "Un chat dort."), "too_long", {"max_words": 3}),
        (("A" * 1001, "Un" * 400), "too_many_characters", {}),
        (("A cat.", "Un chat qui dort bien."), "uneven", {"max_ratio": 2}),
        (("Tom Smith, 1!", "tom smith"), "copy", {}),
        (GOOD, "duplicate", {}),
        (("A  cat sleeps.\t", "Un chat\u00a0dort."), "duplicate", {}),
    ],
)
def test_each_filter(cleaned, bad: tuple[str, str], reason: str, filters: dict) -> None:
    kept, counts = cleaned(GOOD, bad, **filters)
    assert (texts(kept), Counter(counts["dropped_in_cleaning"])) == ([GOOD], Counter([reason]))


def test_bounds_are_inclusive(cleaned) -> None:
    words = ("one two three", "un deux trois")
    ratio = ("ab", "abcdef")
    characters = ("é" * 1000, "a" * 999)
    for pair, filters in ((words, {"max_words": 3}), (ratio, {"max_ratio": 3}), (characters, {})):
        assert texts(cleaned(pair, **filters)[0]) == [pair]


def test_changes_are_counted_once_per_pair(cleaned) -> None:
    changed = cleaned(("&lt;a  b", "&gt;c"), ("d", "e\u0301"), ("e", "f"))[1]["changed_in_cleaning"]
    made = {name: pairs for name, pairs in changed.items() if pairs}
    assert made == {"entities": 1, "white_space": 1, "composition": 1}
    assert changed["invisible"] == 0


def test_groups_follow_chains_of_equal_sentences(cleaned) -> None:
    rows = [
        ("Go!", "Va !"),
        ("go", "Pars."),
        ("Leave.", "PARS"),
        ("Hi.", "Salut."),
        ("7", "sept"),
        ("8", "huit"),
    ]
    kept, counts = cleaned(*rows, max_ratio=9)
    documents = {row[:2]: row[2] for row in kept}
    assert [documents[row] for row in rows] == ["go", "go", "go", "hi", "7", "8"]
    assert counts["groups"] == 4
    # The order of the file changes no group's name.
    assert {row[:2]: row[2] for row in cleaned(*rows[::-1], max_ratio=9)[0]} == documents


def test_a_pair_without_text_on_one_side_links_nothing(cleaned) -> None:
    rows = cleaned(("a", ""), ("b", ""), ("", "x"), ("c", "x"), ("d", "y"))[0]
    assert [row[2] for row in rows] == ["c", "d"]


def test_blocks_do_not_show(cleaned, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(f"a {n % 3}" + "b" * (n % 7), f"c {'d' * (n % 5)}") for n in range(60)]
    whole = cleaned(*rows)
    monkeypatch.setattr(pairs, "READ", 7)
    assert cleaned(*rows) == whole
    assert 0 < whole[1]["groups"] < whole[1]["clean"] < len(rows)


def test_filters_do_not_regroup_what_they_keep(cleaned) -> None:
    rows = [("Go.", "Va."), ("Go.", "Pars."), ("Please do leave now.", "Pars.")]
    short, _ = cleaned(*rows, max_words=2)
    everything, _ = cleaned(*rows, max_ratio=10)
    assert len(everything) == 3
    assert short == everything[:2]


def test_own_documents_are_kept_and_the_rest_is_grouped(cleaned) -> None:
    kept, counts = cleaned(
        ("a b", "c", "one"), ("a b", "d", "two"), ("a b", "e", ""), ("A B!", "f", ""), max_ratio=9
    )
    assert [row[2] for row in kept] == ["one", "two", "a b", "a b"]
    assert counts["groups"] == 3


def test_held_out_sets_of_the_source_lose_only_what_cannot_be_used(cleaned) -> None:
    rows = [
        GOOD,
        (*GOOD, "", "dev"),
        (*GOOD, "", "dev"),
        (*GOOD, "news", "test"),
        ("Tom", "Tom", "", "test"),
        ("A cat sleeps on the mat today.", "Un", "", "dev"),
        ("A cat.", "\u200b", "", "test"),
        ("A cat sleeps.", "", "", "analysis"),
        ("A cat sleeps.", "Un", "", "analysis"),
        ("A cat sleeps on the mat today.", "", "", "analysis"),
        ("\u200b", "Un chat.", "", "analysis"),
        ("A cat.", "Un chat. " * 112, "", "analysis"),  # no map of all its tokens fits
    ]
    kept, counts = cleaned(*rows, max_words=5)
    expected = ["", "dev", "dev", "test", "test", "dev", "analysis", "analysis"]
    assert [row[3] for row in kept] == expected
    assert Counter(counts["dropped_in_cleaning"]) == Counter(
        empty=2, too_long=1, too_many_characters=1
    )
    # They keep their documents, and form no groups.
    assert [row[2] for row in kept] == ["a cat sleeps", "", "", "news", "", "", "", ""]
    assert counts["groups"] == 1


def test_a_set_of_the_source_that_the_filters_empty_is_an_error(cleaned) -> None:
    """Another one would be dealt in its place, out of the training text."""
    long = ("A cat sleeps on the mat today.", "Un", "", "analysis")
    said = "none of the 2 pairs of your analysis set passes the filters"
    with pytest.raises(UserError, match=said):
        cleaned(GOOD, long, long, max_words=3)


def test_nothing_left_is_a_mistake(cleaned, tmp_path: Path) -> None:
    said = r"3 of 3 pairs do not pass the filters \(empty 1, too_long 2\); raise"
    with pytest.raises(UserError, match=said):
        cleaned(GOOD, GOOD, ("", ""), max_words=2)
    assert not (tmp_path / "clean.parquet").exists()


@pytest.mark.parametrize("dense", ["天气很好", "ひらがな", "カタカナ", "날씨좋다"])
def test_a_dense_character_counts_as_two_and_a_half_letters(cleaned, dense: str) -> None:
    rows = [("a" * 20, dense), ("b" * 21, dense)]
    kept, counts = cleaned(*rows, max_ratio=2)
    assert (texts(kept), counts["dropped_in_cleaning"]["uneven"]) == (rows[:1], 1)
