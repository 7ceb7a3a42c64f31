"""The data card: where the text of each corpus comes from, what each step removed and why, and what is left.

The CSV has one row per corpus and quantity. The table has one row per quantity and one column per corpus; it omits the `DETAILS`
and reasons that removed nothing.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from specialized_heads.report.data import Tables
from specialized_heads.stage import read_json

FILES = ("cards", "counts", "parses")
CAPTION = (
    "Data card: source, licence and size of each corpus, and the pairs removed by reading, cleaning and splitting, each counted "
    "under the first reason that applied. The pairs read include pages and blocks that yielded no pairs. Lengths are in "
    "words separated by white space. No group is divided between sets: it is a document or, in text without documents, the pairs "
    "that share a sentence."
)
SPLITS = ("train", "dev", "test", "analysis")
DETAILS = ("sha256", "address", "characters")  # too long, or too many, for the table
Value = str | int | float


def quantities(
    card: dict[str, Any], counts: dict[str, Any], parses: dict[str, Any]
) -> Iterator[tuple[str, str, Value]]:
    """Step, quantity and value of everything that raw stage, split stage and parser say of one corpus."""
    yield "source", "kind", card["kind"]
    yield "source", "licence", card["licence"]
    for number, file in enumerate(card["files"], start=1):
        yield "source", f"file {number}", file["file"]
        yield "source", f"file {number} bytes", file["bytes"]
        yield "source", f"file {number} sha256", file["sha256"]
        yield "source", f"file {number} address", file.get("url", "")
    for number, package in enumerate([*card.get("made_from", []), *card.get("packages", [])], start=1):
        yield "source", f"package {number}", f"{package.get('package') or package.get('name')} {package['version']}"
    for step, total in (("reading", "read"), ("cleaning", "raw"), ("splitting", "clean")):
        yield step, "pairs", counts[total]
        for reason, pairs in counts[f"dropped_in_{step}"].items():
            yield step, f"dropped: {reason.replace('_', ' ')}", pairs
        if step == "cleaning":
            for change, pairs in counts["changed_in_cleaning"].items():
                yield step, f"changed: {change.replace('_', ' ')}", pairs
    for split in SPLITS:
        sizes = counts["splits"][split]
        yield split, "pairs", sizes["pairs"]
        yield split, "groups", sizes["groups"]
        for side in ("source", "target"):
            yield split, f"{side} words", sizes[f"{side}_words"]
            yield split, f"{side} characters", sizes[f"{side}_characters"]
            for statistic, length in sizes[f"{side}_length"].items():
                yield split, f"{side} length, {statistic}", length
    yield "analysis", "sentences with a tree", parses["sentences_parsed"]


def numbers(tables: Tables, cards: dict[str, Path], counts: dict[str, Path], parses: dict[str, Path]) -> pd.DataFrame:
    """One row per corpus and quantity: corpus, part, quantity, value (text, pairs, words, characters or a length in words)."""
    rows = [
        (title, *row)
        for title in cards
        for row in quantities(*(read_json(files[title]) for files in (cards, counts, parses)))
    ]
    return pd.DataFrame(rows, columns=["corpus", "part", "quantity", "value"], dtype=object)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text: one row per quantity, one column per corpus; "–" where a corpus does not have it."""
    corpora = list(rows["corpus"].unique())
    values: dict[tuple[str, str], dict[str, Value]] = {}
    for row in rows.itertuples():
        values.setdefault((row.part, row.quantity), {})[row.corpus] = row.value
    # What only later corpora have follows what the first one has of the same part.
    parts = list(rows["part"].unique())
    lines = []
    for (part, quantity), known in sorted(values.items(), key=lambda item: parts.index(item[0][0])):
        idle = quantity.startswith(("dropped", "changed")) and not any(known.values())
        if not idle and not quantity.endswith(DETAILS):
            lines.append([part, quantity, *(_text(known.get(corpus, "–")) for corpus in corpora)])
    return pd.DataFrame(lines, columns=["part", "quantity", *corpora], dtype=object)


def _text(value: Value) -> str:
    return value if isinstance(value, str) else f"{value:,}" if isinstance(value, int) else f"{value:.1f}"
