"""Write a figure or a table in all its formats, with its numbers, and with the same bytes each time.

A stem `figures/figure7` gives `figure7.pdf`, `.svg`, `.png` (300 dpi) and `.csv`; a stem `tables/table1` gives `table1.csv`,
`.md`, `.tex` and `.html`, a self-contained page for the report. No file carries a date.

pandas makes the rows of HTML and LaTeX. Markdown is our own: tabulate pads every cell to the longest one of its column, which
makes tables with notes unreadable, and does not escape `|`.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.text import Text

from specialized_heads.report import style
from specialized_heads.stage import atomic, write_file

METADATA = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
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
    """Draw a figure under the project's style and write it as PDF, SVG and PNG, with its numbers as CSV.

    Args:
        stem: path without suffix.
        numbers: exactly what is plotted, one row per mark.
        draw: makes the figure.
    """
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
    tints: Mapping[str, str] | None = None,
) -> None:
    """Write a table as CSV (the numbers), and Markdown, LaTeX and HTML (as it is read).

    Args:
        stem: path without suffix.
        numbers: one row per number or group of numbers, unrounded.
        shown: the same as text, as a reader sees it; empty cells are "".
        caption: above the table.
        notes: lines below the table.
        tints: text of a cell -> the colour behind it, in the HTML page.
    """
    _save_csv(stem, numbers)
    write_file(_path(stem, "md"), _markdown(shown, caption, notes))
    latex = shown.to_latex(index=False, escape=True)
    write_file(_path(stem, "tex"), f"% booktabs; XeLaTeX or LuaLaTeX, for letters such as λ\n% {caption}\n{latex}")
    write_file(_path(stem, "html"), _html(shown, caption, notes, tints=tints or {}))


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is, also in the cell of a table."""
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_{}\[\]#|$~])", r"\\\1", text)


def _settle(figure: Figure) -> None:
    """Lay a figure out once and round all positions.

    The constraint solver orders its unknowns by memory address, so its last bits differ from run to run, which would show in
    the names of clip paths in SVG and PDF files.
    """
    # Without a mark, text that begins with Arabic or Hebrew is laid out from right to left as a whole.
    for text in figure.findobj(Text):
        if any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text.get_text()):
            text.set_text("\n".join(f"\u200e{line}" for line in text.get_text().split("\n")))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        axes.set_position([round(float(value), 5) for value in axes.get_position(original=True).bounds])
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
    return f"{escape_markdown(caption)}\n\n{table}" + "".join(f"\n{escape_markdown(note)}\n" for note in notes)


def _html(shown: pd.DataFrame, caption: str, notes: Sequence[str], *, tints: Mapping[str, str]) -> str:
    def cell(text: str) -> str:
        escaped = html.escape(text)
        return f'<mark style="background: {tints[text]}">{escaped}</mark>' if text in tints else escaped

    looks = ""
    for number, (_, column) in enumerate(shown.items(), start=1):
        place = f"th:nth-child({number}), td:nth-child({number})"
        if all(map(NUMBER.fullmatch, column)):
            looks += f"{place} {{ text-align: right; }}\n"
        elif max(map(len, column)) > LONGEST:
            looks += f"{place} {{ min-width: 6rem; white-space: normal; }}\n"
    cells = shown.map(cell).set_axis(list(map(html.escape, shown.columns)), axis=1)
    with pd.option_context("display.max_colwidth", None):
        table = cells.to_html(index=False, escape=False, border=0, justify="unset")
    lines = "".join(f"<p>{html.escape(note)}</p>\n" for note in notes)
    return PAGE.format(caption=html.escape(caption), looks=looks, table=table, notes=lines)
