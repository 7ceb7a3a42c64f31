"""Stage clean on hostile text, against a plain implementation that takes one pair after the other."""

import html
import random
import re
import unicodedata
from collections import Counter

import pytest
from cleaning import Row, above_zero, plain_key

from specialized_heads.config.sections import Filters
from specialized_heads.corpus import pairs as pair_files

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
    latin = ["cat", "Dog", "É", "e\u0301", "ß", "SS", "ﬁ", "naïve", "µ", "İ", "ı", "x²", "a_b", "don’t", "Å"]
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
    ]
    other += ["&#x200B;", "&amp", "&no;", "&", "\u200b", "\u200c", "\u00ad", "\ufeff", "\x00", "&nbsp;", "σς", "R&D"]
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
