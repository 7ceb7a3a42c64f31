"""How a figure or a table is written: every format, the numbers beside it, and the same bytes each time.

A stem `figures/figure7` gives `figure7.pdf`, `.svg`, `.png` (300 dpi) and `.csv`; a stem `tables/table1` gives
`table1.csv`, `.md` and `.tex`. No file carries a date.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.stage import atomic

METADATA = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
LATEX = {
    "\\": r"\textbackslash{}",
    **{letter: "\\" + letter for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "→": r"$\to$",
    "λ": r"$\lambda$",
    "−": "$-$",
    "–": "--",
}


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


def save_table(stem: Path, numbers: pd.DataFrame, shown: pd.DataFrame, *, caption: str) -> None:
    """Write a table as CSV (the numbers), Markdown and LaTeX (as it is read).

    Args:
        stem: path without suffix.
        numbers: one row per number or group of numbers, unrounded.
        shown: the same as text, as a reader sees it; empty cells are "".
        caption: what stands above it; in the LaTeX file inside `\\caption`.
    """
    _save_csv(stem, numbers)
    with atomic(_path(stem, "md")) as temporary:
        temporary.write_text(_markdown(shown, caption), encoding="utf-8")
    with atomic(_path(stem, "tex")) as temporary:
        temporary.write_text(_latex(shown, caption), encoding="utf-8")


def escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is (letters beyond Latin need XeLaTeX or LuaLaTeX)."""
    return "".join(LATEX.get(letter, letter) for letter in text)


def escape_markdown(text: str) -> str:
    """Text that Markdown, in a table cell too, shows as it is."""
    text = text.replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_{}\[\]#|$~])", r"\\\1", text)


def _settle(figure: Figure) -> None:
    """Lay a figure out once and round all positions.

    The constraint solver orders its unknowns by memory address, so its last bits differ from run to run, and the SVG
    and PDF files would show it in the names of their clip paths.
    """
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


def _markdown(shown: pd.DataFrame, caption: str) -> str:
    rows = [list(shown.columns), ["---"] * shown.shape[1], *shown.to_numpy().tolist()]
    escaped = [row if number == 1 else [escape_markdown(cell) for cell in row] for number, row in enumerate(rows)]
    return f"{escape_markdown(caption)}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in escaped)


def _latex(shown: pd.DataFrame, caption: str) -> str:
    def line(cells: list[str]) -> str:
        return " & ".join(map(escape_latex, cells)) + r" \\"

    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            r"\begin{table*}",
            r"\centering\small",
            rf"\caption{{{escape_latex(caption)}}}",
            rf"\begin{{tabular}}{{{'l' * shown.shape[1]}}}",
            r"\toprule",
            line(list(shown.columns)),
            r"\midrule",
            *map(line, shown.to_numpy().tolist()),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table*}",
            "",
        ]
    )
