"""Make a figure or a table from the five tables of an experiment, in all its formats, with its
numbers.

    python -m specialized_heads.report.make specialized_heads.report.figures.costs figure7 \
        --data results/default/data --output figures/figure7

The module defines
    numbers   the table of all that is shown, from `data.Tables` and what the settings say
    draw      its figure, of a table with rows
    shown     its text, cell by cell, with `caption` or CAPTION, and for some `notes`
    COLUMNS   those of the table that go into the CSV, unless all do
In a module of several results, their names begin with that of the result: figure7_numbers,
FIGURE7_COLUMNS. `numbers` takes further files by the name of their option, as paths by the title of
the corpus.

A stem `figures/figure7` gives `figure7.pdf`, `.png` (300 dpi) and `.csv`; any other, such as
`tables/table1`, gives `table1.csv`, `.md` and `.html`, a self-contained page for the report. The
bytes are the same each time: no file has a date.

pandas makes the rows of HTML. Markdown is our own: tabulate pads every cell to the longest one of
its column, which makes tables with notes unreadable, and does not escape `|`.
"""

import html
import re
import sys
import unicodedata
from collections.abc import Callable, Sequence
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.text import Text

from specialized_heads.report import data, style
from specialized_heads.stage import UserError, arguments, atomic, run, write_file

METADATA = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
}
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Table</title>
<style>
body {{ font: 13px/1.5 system-ui, sans-serif; margin: 1.5rem; color: #1a1a1a; background: white; }}
p {{ max-width: 60rem; overflow-wrap: anywhere; }}
div {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 0.2rem 0.45rem; text-align: left; vertical-align: top; white-space: nowrap; }}
th {{ border-bottom: 1px solid #1a1a1a; vertical-align: bottom; white-space: normal; }}
thead tr {{ border-top: 2px solid #1a1a1a; }}
tbody tr:last-child {{ border-bottom: 2px solid #1a1a1a; }}
tbody tr:nth-child(even) {{ background: #f4f4f4; }}
td mark {{ display: block; margin: -0.2rem -0.45rem; padding: 0.2rem 0.45rem; color: inherit; }}
{looks}</style>
</head>
<body>
<p>{caption}</p>
<div>
{table}
</div>
{notes}</body>
</html>
"""
NUMBER = re.compile(r"([-+−<]?[\d,.]+ ?%?)?")  # in a column that is aligned to the right
LONGEST = 24  # characters of a cell that stays on one line


def save_figure(stem: Path, numbers: pd.DataFrame, draw: Callable[[], Figure]) -> None:
    """Draw a figure under the project's style and write it as PDF and PNG, with its numbers, one
    row per mark, as CSV."""
    with style.sheet():
        figure = draw()
        _settle(figure)
        for suffix, metadata in METADATA.items():
            with atomic(_path(stem, suffix)) as temporary:
                figure.savefig(temporary, format=suffix, metadata=metadata)
    _save_csv(stem, numbers)


def save_table(
    stem: Path,
    numbers: pd.DataFrame,
    shown: pd.DataFrame,
    *,
    caption: str,
    notes: Sequence[str] = (),
) -> None:
    """Write the unrounded numbers of a table as CSV, and as Markdown and HTML its text as a reader
    sees it.

    The caption is above the table, the notes are below.
    """
    _save_csv(stem, numbers)
    write_file(_path(stem, "md"), _markdown(shown, caption, notes))
    write_file(_path(stem, "html"), _html(shown, caption, notes))


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, also in the cell of a table."""
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_{}\[\]#|$~])", r"\\\1", text)


def _settle(figure: Figure) -> None:
    """Lay a figure out once and round all positions.

    The constraint solver orders its unknowns by memory address, so its last bits differ from run to
    run, which would show in PDF files.
    """
    # Without a mark, text that begins with Arabic or Hebrew is laid out from right to left as a
    # whole.
    for text in figure.findobj(Text):
        if any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text.get_text()):
            text.set_text("\n".join(f"\u200e{line}" for line in text.get_text().split("\n")))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position(
            [round(float(value), 5) for value in axes.get_position(original=True).bounds]
        )
    for part in (figure, *figure.subfigs):
        for text in part.texts:
            text.set_position([round(float(value), 5) for value in text.get_position()])
        if part is not figure:
            part.bbox_relative.set_points(part.bbox_relative.get_points().round(5))


def _path(stem: Path, suffix: str) -> Path:
    return stem.with_name(f"{stem.name}.{suffix}")


def _save_csv(stem: Path, numbers: pd.DataFrame) -> None:
    with atomic(_path(stem, "csv")) as temporary:
        numbers.to_csv(temporary, index=False, lineterminator="\n", encoding="utf-8")


def _markdown(shown: pd.DataFrame, caption: str, notes: Sequence[str]) -> str:
    rows = [[escape_markdown(cell) for cell in row] for row in (shown.columns, *shown.to_numpy())]
    rows.insert(1, ["---"] * shown.shape[1])
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"{escape_markdown(caption)}\n\n{table}" + "".join(
        f"\n{escape_markdown(note)}\n" for note in notes
    )


def _html(shown: pd.DataFrame, caption: str, notes: Sequence[str]) -> str:
    looks = ""
    for number, (_, column) in enumerate(shown.items(), start=1):
        place = f"th:nth-child({number}), td:nth-child({number})"
        if all(map(NUMBER.fullmatch, column)):
            looks += f"{place} {{ text-align: right; }}\n"
        elif max(map(len, column)) > LONGEST:
            looks += f"{place} {{ min-width: 6rem; white-space: normal; }}\n"
    cells = shown.map(html.escape).set_axis(list(map(html.escape, shown.columns)), axis=1)
    with pd.option_context("display.max_colwidth", None):
        table = cells.to_html(index=False, escape=False, border=0, justify="unset")
    lines = "".join(f"<p>{html.escape(note)}</p>\n" for note in notes)
    return PAGE.format(caption=html.escape(caption), looks=looks, table=table, notes=lines)


def main() -> None:
    words = [*takewhile(lambda word: not word.startswith("--"), sys.argv[1:])]
    del sys.argv[1 : 1 + len(words)]
    module = import_module(words[0]) if words else None
    start = "".join(f"{word}_" for word in words[1:])
    if not hasattr(module, f"{start}numbers"):
        said = "no such figure or table; src/specialized_heads/experiment/figures.py lists all"
        raise UserError(f"{' '.join(words)!r}: {said}")

    def of(part: str, default: Any = None) -> Any:
        own = start + part
        return getattr(module, own.upper() if part.isupper() else own, default)

    args = arguments(module.__doc__, files=["data", "output"], many=["files"])
    paths = iter(args.files)
    files = {
        option: {title: next(paths) for title in titles}
        for option, titles in args.settings.pop("files", {}).items()
    }
    rows = of("numbers")(data.load([args.data]), **files, **args.settings)
    written = data.renamed(rows[of("COLUMNS", rows.columns)])
    if args.output.parent.name == "figures":
        save_figure(
            args.output, written, lambda: of("draw")(rows) if len(rows) else style.nothing()
        )
        return
    shown = of("shown")(rows) if len(rows) else pd.DataFrame(columns=["nothing to show"])
    caption, notes = of("caption", lambda _: of("CAPTION"))(rows), of("notes", lambda _: [])(rows)
    save_table(args.output, written, shown, caption=caption, notes=notes)


if __name__ == "__main__":
    run(main)
