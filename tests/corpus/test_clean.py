"""Stage clean: each filter drops what it names and nothing else, counts add up, and groups follow shared sentences."""

import html
import json
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from specialized_heads.corpus import clean as stage_clean
from specialized_heads.corpus import pairs as pair_files
from specialized_heads.corpus.clean import REASONS, Settings, clean
from specialized_heads.corpus.pairs import SCHEMA, Pairs, read_blocks, read_pairs, write_blocks, write_pairs
from specialized_heads.sections import Filters
from specialized_heads.stage import UserError

GOOD = ("A cat sleeps.", "Un chat dort.")
ENGLISH_FRENCH = {"source_language": "en", "target_language": "fr"}
Row = tuple[str, str, str, str]  # source, target, document, set


@pytest.fixture
def cleaned(tmp_path: Path):
    """`cleaned(row, row, ..., max_words=3)`: the rows that are kept, and the counts. A row may end after its target."""

    def run(
        *rows: Sequence[str], languages: dict[str, str] = ENGLISH_FRENCH, **filters: object
    ) -> tuple[list[Row], dict]:
        whole = [(*row, *["", ""][len(row) - 2 :]) for row in rows]
        table = pa.Table.from_pylist([dict(zip(SCHEMA.names, row)) for row in whole], schema=SCHEMA)
        write_blocks(tmp_path / "raw.parquet", table.to_batches())
        settings = Settings(filters=Filters(**filters), **languages)
        counts = clean(tmp_path / "raw.parquet", tmp_path / "clean.parquet", settings=settings)
        kept = [tuple(row.values()) for block in read_blocks(tmp_path / "clean.parquet") for row in block.to_pylist()]
        assert counts["raw"] == len(rows)
        assert counts["raw"] == counts["clean"] + sum(counts["dropped_in_cleaning"].values())
        assert counts["clean"] == len(kept)
        return kept, counts

    return run


def texts(rows: list[Row]) -> list[tuple[str, str]]:
    return [row[:2] for row in rows]


def above_zero(counts: dict[str, int]) -> dict[str, int]:
    return {name: number for name, number in counts.items() if number}


@pytest.mark.parametrize(
    ("bad", "reason", "filters"),
    [
        (("", "Un chat."), "empty", {}),
        (("A cat.", " \u200b\u00a0"), "empty", {}),
        (("Cat.", "Un chat dort."), "too_short", {"min_words": 2}),
        (("A cat sleeps here.", "Un chat dort."), "too_long", {"max_words": 3}),
        (("A cat sleeps now!!", "Un chat dort."), "too_many_characters", {"max_characters": 17}),
        (("A cat.", "Un chat qui dort bien."), "uneven", {"max_ratio": 2}),
        (("Tom Smith, 1!", "tom smith"), "copy", {}),
        (("A cat sleeps.", "Кот спит, le chat."), "wrong_script", {"script": 0.7}),
        (("Кот спит.", "Un chat."), "wrong_script", {"script": 0.1}),
        (GOOD, "duplicate", {}),
        (("A  cat sleeps.\t", "Un chat\u00a0dort."), "duplicate", {}),
        (GOOD, "duplicate", {"near_duplicates": False}),
        (("a cat sleeps", "UN CHAT DORT 7!"), "near_duplicate", {"near_duplicates": False}),
    ],
)
def test_each_filter(cleaned, bad: tuple[str, str], reason: str, filters: dict) -> None:
    kept, counts = cleaned(GOOD, bad, **filters)
    assert (texts(kept), above_zero(counts["dropped_in_cleaning"])) == ([GOOD], {reason: 1})


@pytest.mark.parametrize(
    ("pair", "filters"),
    [
        (("one two three", "un deux trois"), {"min_words": 3, "max_words": 3}),
        (("ab", "abcdef"), {"max_ratio": 3}),
        (("abcdé", "abcdef"), {"max_characters": 6}),
        (("ab жж", "cd"), {"script": 0.5}),
        (("12:45 €", "12 h 45"), {"script": 1.0}),  # no letters, no script
        (("Paris", "Paris"), {"copies": True}),
        (("a µ", "b µ"), {"script": 1.0}),  # letters that scripts share
    ],
)
def test_bounds_are_inclusive(cleaned, pair: tuple[str, str], filters: dict) -> None:
    assert texts(cleaned(pair, **filters)[0]) == [pair]


def test_pairs_that_are_alike_on_one_side_only_are_kept(cleaned) -> None:
    rows = [GOOD, ("A cat sleeps!", "Le chat dort."), ("The cat sleeps.", "Un chat dort!")]
    assert texts(cleaned(*rows, near_duplicates=False)[0]) == rows


@pytest.mark.parametrize(
    ("language", "good", "bad"),
    [
        ("ru", "кот", "cat"),
        ("uk_UA", "кіт", "cat"),
        ("sr-Latn", "мачка", "γάτα"),
        ("zh-CN", "猫", "ねこ"),
        ("ja", "ねこ猫ネコ", "kitty"),
        ("ko", "고양이", "кот"),
        ("el", "γάτα", "cat"),
        ("ar", "قطة", "חתול"),
    ],
)
def test_scripts_go_by_language(cleaned, language: str, good: str, bad: str) -> None:
    languages = {"source_language": "EN", "target_language": language}
    kept, counts = cleaned(("a cat", good), ("a cat", bad), languages=languages, script=0.5, max_ratio=9)
    assert texts(kept) == [("a cat", good)]
    assert counts["dropped_in_cleaning"]["wrong_script"] == 1


def test_an_unknown_language_has_no_script(cleaned) -> None:
    languages = {"source_language": "xx", "target_language": "qaa"}
    assert len(cleaned(("кот a", "γάτα b"), languages=languages, script=1.0)[0]) == 1


def test_a_pair_counts_for_the_first_reason(cleaned) -> None:
    _, counts = cleaned(GOOD, ("", ""), ("one two three four", "one two three four"), max_words=3)
    assert above_zero(counts["dropped_in_cleaning"]) == {"empty": 1, "too_long": 1}


def test_changes_are_counted_once_per_pair(cleaned) -> None:
    changed = cleaned(("&lt;a  b", "&gt;c"), ("d", "e\u0301"), ("e", "f"))[1]["changed_in_cleaning"]
    assert changed == {"entities": 1, "white_space": 1, "invisible": 0, "composition": 1}
    kept, counts = cleaned(("&lt;a", "&gt;c"), entities=False)
    assert texts(kept) == [("&lt;a", "&gt;c")]
    assert counts["changed_in_cleaning"]["entities"] == 0


def test_groups_follow_chains_of_equal_sentences(cleaned) -> None:
    rows = [("Go!", "Va !"), ("go", "Pars."), ("Leave.", "PARS"), ("Hi.", "Salut."), ("7", "sept"), ("8", "huit")]
    kept, counts = cleaned(*rows, max_ratio=9)
    documents = {row[:2]: row[2] for row in kept}
    assert [documents[row] for row in rows] == ["go", "go", "go", "hi", "7", "8"]
    assert counts["groups"] == 4
    # The order of the file changes no group's name.
    assert {row[:2]: row[2] for row in cleaned(*rows[::-1], max_ratio=9)[0]} == documents


def test_a_pair_without_text_on_one_side_links_nothing(cleaned) -> None:
    rows = cleaned(("a", ""), ("b", ""), ("", "x"), ("c", "x"), ("d", "y"))[0]
    assert [row[2] for row in rows] == ["c", "d"]


def test_filters_do_not_regroup_what_they_keep(cleaned) -> None:
    rows = [("Go.", "Va."), ("Go.", "Pars."), ("Please do leave now.", "Pars.")]
    short, _ = cleaned(*rows, max_words=2)
    everything, _ = cleaned(*rows, max_ratio=10)
    assert len(everything) == 3
    assert short == everything[:2]


def test_own_documents_are_kept_and_the_rest_is_grouped(cleaned) -> None:
    kept, counts = cleaned(("a b", "c", "one"), ("a b", "d", "two"), ("a b", "e", ""), ("A B!", "f", ""), max_ratio=9)
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
        ("A cat.", "", "", "test"),
        ("A cat sleeps.", "", "", "analysis"),
        ("A cat sleeps.", "Un", "", "analysis"),
        ("A cat sleeps on the mat today.", "", "", "analysis"),
        ("Кот спит.", "", "", "analysis"),
        ("", "Un chat.", "", "analysis"),
    ]
    kept, counts = cleaned(*rows, min_words=2, max_words=5, script=0.5, near_duplicates=False)
    assert [row[3] for row in kept] == ["", "dev", "dev", "test", "test", "dev", "analysis", "analysis"]
    assert above_zero(counts["dropped_in_cleaning"]) == {"empty": 2, "too_long": 1, "wrong_script": 1}
    # They keep their documents, and form no groups.
    assert [row[2] for row in kept] == ["a cat sleeps", "", "", "news", "", "", "", ""]
    assert counts["groups"] == 1


def test_a_file_without_sets_and_with_missing_values_can_be_cleaned(tmp_path: Path) -> None:
    write_pairs(tmp_path / "raw.parquet", Pairs(["a", "b"], ["x", None], ["d", None]))
    settings = Settings(filters=Filters(), **ENGLISH_FRENCH)
    assert clean(tmp_path / "raw.parquet", tmp_path / "clean.parquet", settings=settings)["clean"] == 1
    assert read_pairs(tmp_path / "clean.parquet") == Pairs(["a"], ["x"], ["d"])


# The stage, one pair after the other

SCRIPT_NAMES = {"en": ("LATIN",), "ru": ("CYRILLIC",)}


def plain_normal(text: str, *, entities: bool) -> tuple[str, set[str]]:
    steps = {
        "entities": lambda text: decode(decode(decode(text))) if entities else text,
        "white_space": lambda text: " ".join(text.split()),
        "invisible": lambda text: "".join(
            c for c in text if unicodedata.category(c) not in ("Cc", "Cf") or c == "\u200c"
        ),
        "composition": lambda text: unicodedata.normalize("NFC", text),
    }
    changed = set()
    for name, step in steps.items():
        before, text = text, step(text)
        if text != before:
            changed.add(name)
    return " ".join(text.split()), changed


def decode(text: str) -> str:
    """The entities that the random text holds, in upper case too; `&amp`, `&no;` and `&NBSP;` are none."""
    return re.sub(r"&(amp|AMP|quot|QUOT|lt|LT|#39|#[xX]200B|nbsp);", lambda found: html.unescape(found[0]), text)


def plain_key(text: str) -> str:
    return " ".join(re.findall(r"[^\W\d_]+", text.casefold())) or text


def plain_share(text: str, language: str) -> float:
    names = [unicodedata.name(c, "") for c in text if unicodedata.category(c)[0] == "L" and c != "µ"]
    return sum(name.startswith(SCRIPT_NAMES[language]) for name in names) / len(names) if names else 1.0


def plain_reason(source: str, target: str, set_: str, filters: Filters) -> str:
    """The first reason of one pair alone, or ""."""
    sides = [(source, "en")] if set_ == "analysis" else [(source, "en"), (target, "ru")]
    found = texts_of = [text for text, _ in sides]
    if not all(texts_of):
        return "empty"
    if set_ in ("dev", "test"):
        return ""
    found = [
        ("too_short", any(len(text.split(" ")) < filters.min_words for text in texts_of)),
        ("too_long", any(len(text.split(" ")) > filters.max_words for text in texts_of)),
        ("too_many_characters", any(len(text) > filters.max_characters for text in texts_of)),
        ("uneven", max(map(len, texts_of)) > filters.max_ratio * min(map(len, texts_of))),
        ("copy", not set_ and not filters.copies and plain_key(source) == plain_key(target)),
        ("wrong_script", any(plain_share(*side) < filters.script for side in sides)),
    ]
    return next((name for name, drops in found if drops), "")


def plainly_cleaned(rows: list[Row], filters: Filters) -> tuple[list[Row], Counter, Counter]:
    """What the stage shall make of the rows, the pairs dropped for each reason, and the pairs changed by each step."""
    dropped: Counter[str] = Counter()
    changed: Counter[str] = Counter()
    normal = []
    for source, target, document, set_ in rows:
        (source, one), (target, other) = (plain_normal(text, entities=filters.entities) for text in (source, target))
        changed.update(one | other)
        normal.append((source, target, document, set_))

    # Groups: all rows start alone, and take over the names of those that they share a sentence with until nothing moves.
    grouped = [i for i, (s, t, document, set_) in enumerate(normal) if s and t and not document and not set_]
    name = {i: plain_key(normal[i][0]) for i in grouped}
    while True:
        best: dict[tuple[int, str], str] = {}
        for i in grouped:
            for side in (0, 1):
                key = (side, plain_key(normal[i][side]))
                best[key] = min(name[i], best.get(key, name[i]))
        new = {i: min(best[side, plain_key(normal[i][side])] for side in (0, 1)) for i in grouped}
        if new == name:
            break
        name = new

    kept, seen, near = [], set(), set()
    for i, (source, target, document, set_) in enumerate(normal):
        reason = plain_reason(source, target, set_, filters)
        keys = plain_key(source), plain_key(target)
        if not reason and not set_:
            if (source, target) in seen:
                reason = "duplicate"
            elif keys in near and not filters.near_duplicates:
                reason = "near_duplicate"
            seen.add((source, target))
            near.add(keys)
        if reason:
            dropped[reason] += 1
        else:
            kept.append((source, target, name.get(i, document), set_))
    return kept, dropped, changed


def hostile(rows: int, *, seed: int) -> list[Row]:
    """Rows of tricky characters that often recur, in other case, on the other side or next to another text."""
    choice = random.Random(seed)
    latin = ["cat", "Dog", "É", "e\u0301", "ß", "SS", "ﬁ", "naïve", "µ", "İ", "x²", "a_b", "don’t", "Å"]
    cyrillic = ["кот", "Ёж", "и\u0306", "ДОМ", "щ"]
    other = [
        "漢字",
        "한국",
        "\u1112\u1161",
        "😀",
        "𐐀",
        "42",
        "٣",
        "½",
        "-",
        "…",
        "&amp;",
        "&amp;quot;",
        "&lt;",
        "&#39;",
        "&#x200B;",
    ]
    other += ["&amp", "&no;", "&", "\u200b", "\u200c", "\u00ad", "\ufeff", "\x00", "&nbsp;", "σς", "R&D"]
    spaces = [" "] * 12 + ["  ", "\u00a0", "\t", "\n", "\u3000", "\x1f", ""]

    def sentence(own: list[str]) -> str:
        words = choice.choices(own * 6 + latin + cyrillic + other, k=choice.choice([0, 1, 1, 2, 3, 4, 8]))
        return "".join(part for word in words for part in (word, choice.choice(spaces)))

    made: list[Row] = []
    for _ in range(rows):
        source, target = sentence(latin), sentence(cyrillic)
        if made and choice.random() < 0.4:
            earlier = choice.choice(made)
            source, target = choice.choice(
                [earlier[:2], (earlier[0], target), (source, earlier[1]), (earlier[0].upper(), earlier[1] + "!")]
            )
        if choice.random() < 0.05:
            target = source
        set_ = choice.choice(["", "", "", "", "", "dev", "test", "analysis"]) if choice.random() < 0.3 else ""
        made.append((source, target, choice.choice(["", "", "", "one", "a chapter"]), set_))
    return made


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"script": 0.5, "near_duplicates": False},
        {"entities": False, "copies": True, "min_words": 2, "max_words": 4, "max_ratio": 1.5, "script": 1.0},
        {"max_characters": 12, "near_duplicates": False, "max_ratio": 6.0},
    ],
)
def test_hostile_text_is_cleaned_as_one_pair_after_the_other(cleaned, monkeypatch, filters: dict) -> None:
    monkeypatch.setattr(pair_files, "READ", 333)  # many blocks
    rows = hostile(4000, seed=len(filters))
    kept, counts = cleaned(*rows, languages={"source_language": "en", "target_language": "ru"}, **filters)
    expected, dropped, changed = plainly_cleaned(rows, Filters(**filters))
    assert above_zero(counts["dropped_in_cleaning"]) == dict(dropped)
    assert above_zero(counts["changed_in_cleaning"]) == dict(changed)
    assert kept == expected
    assert counts["groups"] == len({row[2] for row in expected if not row[3]})
    # The text is hostile enough for everything that these filters can find.
    assert {"empty", "uneven", "duplicate"} <= set(dropped)
    assert ("near_duplicate" in dropped) != filters.get("near_duplicates", True)
    assert len(kept) > 300 and len(changed) >= 3


# The command


def test_stage_writes_counts(tmp_path: Path, call, everyday: Pairs) -> None:
    write_pairs(tmp_path / "raw.parquet", everyday)
    files = {"input": tmp_path / "raw.parquet", "output": tmp_path / "clean.parquet", "counts": tmp_path / "clean.json"}
    call(stage_clean, settings={"filters": {"max_words": 100}, **ENGLISH_FRENCH}, **files)
    counts = json.loads((tmp_path / "clean.json").read_text())
    assert list(counts) == ["raw", "changed_in_cleaning", "dropped_in_cleaning", "clean", "groups"]
    assert list(counts["dropped_in_cleaning"]) == list(REASONS[1:])
    assert counts["raw"] == counts["clean"] == len(everyday) == len(read_pairs(tmp_path / "clean.parquet"))
    first = (tmp_path / "clean.parquet").read_bytes()
    call(stage_clean, settings={"filters": {}, **ENGLISH_FRENCH}, **files)
    assert (tmp_path / "clean.parquet").read_bytes() == first
    assert {path.name for path in tmp_path.iterdir()} == {"raw.parquet", "clean.parquet", "clean.json"}


def test_nothing_left_is_a_mistake_with_counts(tmp_path: Path, stage, everyday: Pairs) -> None:
    write_pairs(tmp_path / "raw.parquet", everyday)
    files = {"input": tmp_path / "raw.parquet", "output": tmp_path / "clean.parquet", "counts": tmp_path / "clean.json"}
    done = stage("clean", settings={"filters": {"max_words": 2}, **ENGLISH_FRENCH}, **files)
    assert done.returncode == 2
    assert "no pair of 500 passes the filters (too_long 500)" in done.stderr
    assert not (tmp_path / "clean.parquet").exists()


def test_a_file_without_pairs_is_a_mistake(cleaned) -> None:
    with pytest.raises(UserError, match=r"raw\.parquet: the file has no pairs"):
        cleaned()
