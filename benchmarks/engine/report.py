"""The rows of a run as engine.csv, and the tables made from them as engine.md."""

import csv
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.engine.worker import TITLES
from benchmarks.engine.workload import SIZES, Size

Row = dict[str, Any]
UPDATES, SOURCE_TOKENS = 100_000, 16_000  # of the paper's baseline (experiment.sections.Training)

INTRODUCTION = """\
# Speed of the engine, beside its peers

Made by `python -m benchmarks.engine` (`benchmarks/engine/`; each file says how its system is driven
and what is counted). All systems ran in interleaved rounds on the same sentences in the same
batches; numbers are medians of the rounds, with their range. Speeds count target tokens, ends of
sentence included, padding not.
"""

TRAINING = """\
## Training

An update is a forward pass, a backward pass and Adam, on {batch} of sentences of similar length (14
tokens on average), label smoothing 0.1 and dropout 0.1. Every system was tried in all its
precisions and settings and is shown in its fastest.

*Utilisation* is the rate of a system's useful operations as a share of the machine's own rate of
matrix products (next section). Operations per update, by formula: 6 x (weights of the encoder x
source tokens + weights of decoder and softmax x target tokens), where the key and value matrices of
cross-attention count with the source, plus 12 x width x layers x (pairs of query and key); no
embeddings, no padding, nothing that is computed twice. This engine in float32, as on a processor
without bf16 instructions, is compared with the machine's float32 rate. *Hours* are those of the
paper's {updates:,} updates of {source_tokens:,} source tokens at that speed.
"""


def write(path: Path, rows: list[Row], *, machine: dict[str, str]) -> None:
    """Write both files; `path` is theirs without suffix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with open(path.with_suffix(".csv"), "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: f"{v:.6g}" if isinstance(v, float) else v for key, v in row.items()}
            for row in rows
        )
    sections = [
        INTRODUCTION,
        table(("", ""), [(f"**{key}**", value) for key, value in machine.items()]),
    ]
    sections += [*training(rows), *ceilings(rows)]
    path.with_suffix(".md").write_text("\n\n".join(map(wrapped, sections)) + "\n", encoding="utf-8")


def wrapped(section: str) -> str:
    """The section with its paragraphs filled to 100 columns; tables and headings stay as they
    are."""
    paragraphs = section.strip().split("\n\n")
    return "\n\n".join(p if p.startswith(("|", "#")) else textwrap.fill(p, 100) for p in paragraphs)


def training(rows: list[Row]) -> list[str]:
    measured = [row for row in rows if row["part"] == "train"]
    per_update = median(row["tokens"] / row["updates"] for row in measured)
    lines = []
    for size, system, group in groups(measured):
        speed = [row["tokens"] / row["seconds"] for row in group]
        share = [utilisation(row, rows) for row in group]
        hours = UPDATES * SOURCE_TOKENS * target_per_source(group) / median(speed) / 3600
        cells = [describe_size(SIZES[size]), system, group[0]["variant"]]
        cells += [
            spread(speed, "{:,.0f}"),
            spread(share, "{:.0%}"),
            f"{hours:,.0f}" if size == "base" else "",
        ]
        lines.append(cells)
    head = (
        "model",
        "system",
        "fastest as",
        "target tokens/s",
        "utilisation",
        "hours for the paper's baseline",
    )
    batch = f"about {per_update:,.0f} target tokens"
    return [
        TRAINING.format(batch=batch, updates=UPDATES, source_tokens=SOURCE_TOKENS),
        table(head, lines),
    ]


def ceilings(rows: list[Row]) -> list[str]:
    measured = [row for row in rows if row["part"] == "ceiling"]
    columns = sorted({(row["precision"], row["threads"]) for row in measured})
    lines = []
    for size in dict.fromkeys(row["size"] for row in measured):
        rates = {
            (p, t): [
                r["rate"]
                for r in measured
                if (r["size"], r["precision"], r["threads"]) == (size, p, t)
            ]
            for p, t in columns
        }
        lines.append((size, *(f"{max(values) / 1e9:,.0f}" for values in rates.values())))
    head = ("model", *(f"{p}, {'1 thread' if t == 1 else f'{t} threads'}" for p, t in columns))
    text = (
        "## The machine's own rate\n\nGFLOP/s of the matrix products of an update (forward and "
        "both backward) and of nothing"
        " else, at the model's shapes; the best of all rounds and of several ways to divide the "
        "rows. The fastest of a size,"
        " or for this engine in float32 that of float32, is the ceiling that utilisation refers to."
    )
    return [text, table(head, lines)]


def utilisation(row: Row, rows: list[Row]) -> float:
    """Share of the machine's rate that a training measurement reaches.

    The rate is the fastest of both precisions, but for this engine in float32, which is compared
    with that of float32.
    """
    rates = [r for r in rows if r["part"] == "ceiling" and r["size"] == row["size"]]
    if row["system"] == TITLES["ours-fp32"]:
        rates = [r for r in rates if r["precision"] == "fp32"]
    return row["flops"] / row["seconds"] / max(r["rate"] for r in rates)


def target_per_source(group: list[Row]) -> float:
    return sum(row["tokens"] for row in group) / sum(row["source_tokens"] for row in group)


def groups(rows: list[Row]) -> Iterable[tuple[str, str, list[Row]]]:
    """The rows by size and system, in their order."""
    for size, system in dict.fromkeys(
        (row["size"], row["system"]) for row in sorted(rows, key=order)
    ):
        yield size, system, [row for row in rows if (row["size"], row["system"]) == (size, system)]


def order(row: Row) -> tuple[int, int]:
    return list(SIZES).index(row["size"]), list(TITLES.values()).index(row["system"])


def describe_size(size: Size) -> str:
    return (
        f"{size.name}: {size.layers}+{size.layers} layers, width {size.width}, "
        f"{size.vocabulary:,} subwords"
    )


def spread(values: list[float], form: str) -> str:
    """Median (lowest to highest)."""
    middle, low, high = map(form.format, (median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low} to {high})"


def table(head: tuple[str, ...], lines: Iterable[Sequence[Any]]) -> str:
    rows = [head, ("---",) * len(head), *lines]
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in rows)
