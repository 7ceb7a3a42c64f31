"""The data card: where the text of each corpus comes from, what was dropped at each step and why, and what is left.

The CSV has one row per corpus and quantity. The table that is read has one row per quantity and one column per corpus, without
the `DETAILS`, and without reasons that dropped nothing.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from specialized_heads.report.inputs import Titles, by_title
from specialized_heads.report.output import save_table
from specialized_heads.stage import arguments, read_json, run

CAPTION = (
    "Data card: source, licence and size of each corpus, and the pairs that reading, cleaning and splitting dropped, by the "
    "first reason that held. Reading begins with pairs, and the pages and blocks that gave none. Lengths are in words separated "
    "by white space."
)
SPLITS = ("train", "dev", "test", "analysis")
# Too long, or too many, for a table that is read.
DETAILS = ("sha256", "address", "characters")
Value = str | int | float


def quantities(card: dict[str, Any], counts: dict[str, Any]) -> Iterator[tuple[str, str, Value]]:
    """All that is told of one corpus: the part of its history, the quantity, and the value.

    Args:
        card: what the raw stage says of the source.
        counts: what the split stage counted.
    """
    yield "source", "kind", card["kind"]
    yield "source", "licence", card["licence"]
    for number, file in enumerate(card["files"], start=1):
        yield "source", f"file {number}", file["file"]
        yield "source", f"file {number} bytes", file["bytes"]
        yield "source", f"file {number} sha256", file["sha256"]
        yield "source", f"file {number} address", file.get("url", "")
    for number, package in enumerate([*card.get("made_from", []), *card.get("packages", [])], start=1):
        yield "source", f"package {number}", f"{package.get('package') or package.get('name')} {package['version']}"
    for part, total, dropped in (
        ("reading", "read", "dropped_in_reading"),
        ("cleaning", "raw", "dropped_in_cleaning"),
        ("splitting", "clean", "dropped_in_splitting"),
    ):
        yield part, "pairs", counts[total]
        for reason, pairs in counts[dropped].items():
            yield part, f"dropped: {reason.replace('_', ' ')}", pairs
        if part == "cleaning":
            for step, pairs in counts["changed_in_cleaning"].items():
                yield part, f"changed: {step.replace('_', ' ')}", pairs
    for split in SPLITS:
        found = counts["splits"][split]
        yield split, "pairs", found["pairs"]
        yield split, "documents", found["groups"]
        for side in ("source", "target"):
            yield split, f"{side} words", found[f"{side}_words"]
            yield split, f"{side} characters", found[f"{side}_characters"]
            for statistic, length in found[f"{side}_length"].items():
                yield split, f"{side} length, {statistic}", length


def numbers(cards: dict[str, dict[str, Any]], counts: dict[str, dict[str, Any]]) -> pd.DataFrame:
    """One row per corpus and quantity: corpus, part, quantity, value (text, pairs, words, characters or a length in words)."""
    rows = [(title, *row) for title, card in cards.items() for row in quantities(card, counts[title])]
    return pd.DataFrame(rows, columns=["corpus", "part", "quantity", "value"], dtype=object)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The table as text: one row per quantity, one column per corpus; "–" where a corpus does not have it."""
    corpora = list(dict.fromkeys(rows["corpus"]))
    table: dict[tuple[str, str], dict[str, Value]] = {}
    for corpus, part, quantity, value in rows.itertuples(index=False):
        table.setdefault((part, quantity), {})[corpus] = value
    # What only later corpora have comes after what the first one has of the same part.
    order = {part: place for place, part in enumerate(dict.fromkeys(rows["part"]))}
    lines = []
    for (part, quantity), values in sorted(table.items(), key=lambda item: order[item[0][0]]):
        idle = quantity.startswith(("dropped", "changed")) and not any(values.values())
        if not idle and not quantity.endswith(DETAILS):
            lines.append([part, quantity, *(_text(values.get(corpus)) for corpus in corpora)])
    return pd.DataFrame(lines, columns=["part", "quantity", *corpora], dtype=object)


def _text(value: Value | None) -> str:
    match value:
        case None:
            return "–"
        case float():
            return f"{value:.1f}"
        case int():
            return f"{value:,}"
        case _:
            return value


def main() -> None:
    """Read one `--cards` (raw.json) and one `--counts` (counts.json) per corpus; write the table `--output`."""
    args = arguments(__doc__, files=["output"], many=["cards", "counts"])
    titles = Titles.model_validate(args.settings).titles
    cards, counts = (
        {title: read_json(path) for title, path in by_title(paths, titles).items()}
        for paths in (args.cards, args.counts)
    )
    rows = numbers(cards, counts)
    save_table(args.output, rows, shown(rows), caption=CAPTION)


if __name__ == "__main__":
    run(main)
