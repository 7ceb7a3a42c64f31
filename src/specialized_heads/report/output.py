"""How a figure or a table is written: every format, the numbers beside it, and the same bytes each time.

A stem `figures/figure7` gives `figure7.pdf`, `.svg`, `.png` (300 dpi) and `.csv`; a stem `tables/table1` gives
`table1.csv`, `.md`, `.tex` and `.html`, a page that needs nothing else, which the report shows. No file carries a date.
"""

import html
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import fonts, style
from specialized_heads.stage import atomic

METADATA = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
GREEK = (
    "alpha", "beta", "gamma", "delta", "varepsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi", "pi",
    "rho", "sigma", "tau", "upsilon", "varphi", "chi", "psi", "omega",
)  # fmt: skip
LATEX = {
    "\\": r"\textbackslash{}",
    **{letter: "\\" + letter for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "→": r"$\to$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "−": "$-$",
    "–": "--",
    "…": r"\dots{}",
    "⁺": "$^+$",
    "Δ": r"$\Delta$",
    **dict(zip("αβγδεζηθικλμνξπρστυφχψω", (rf"$\{name}$" for name in GREEK), strict=True)),
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
.number {{ text-align: right; }}
.text {{ min-width: 6rem; white-space: normal; }}
</style>
</head>
<body>
<p>{caption}</p>
<div>
<table>
<thead>
<tr>{head}</tr>
</thead>
<tbody>
{body}
</tbody>
</table>
</div>
{notes}</body>
</html>
"""
NUMBER = re.compile(r"([-+−<]?[\d,.]+ ?%?)?")  # in a column that is aligned to the right
LONGEST = 24  # letters of a cell that is not broken into lines


def save_figure(stem: Path, numbers: pd.DataFrame, draw: Callable[[], Figure]) -> None:
    """Draw a figure under the project's style and write it as PDF, SVG and PNG, with its numbers as CSV.

    Args:
        stem: path without suffix.
        numbers: exactly what is plotted, one row per mark.
        draw: makes the figure.
    """
    with style.sheet():
        figure = draw()
        if missing := fonts.missing(figure):
            with style.sheet(fonts.having(missing)):
                figure = draw()
        fonts.keep_order(figure)
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
        caption: what stands above it; in the LaTeX file inside `\\caption`.
        notes: lines that stand below it.
        tints: text of a cell -> the colour behind it, in the HTML page.
    """
    _save_csv(stem, numbers)
    for suffix, write in (("md", _markdown), ("tex", _latex), ("html", partial(_html, tints=tints or {}))):
        with atomic(_path(stem, suffix)) as temporary:
            temporary.write_text(write(shown, caption, notes), encoding="utf-8")


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


def _markdown(shown: pd.DataFrame, caption: str, notes: Sequence[str]) -> str:
    rows = [list(shown.columns), ["---"] * shown.shape[1], *shown.to_numpy().tolist()]
    escaped = [row if number == 1 else [escape_markdown(cell) for cell in row] for number, row in enumerate(rows)]
    table = "".join(f"| {' | '.join(row)} |\n" for row in escaped)
    return f"{escape_markdown(caption)}\n\n{table}" + "".join(f"\n{escape_markdown(note)}\n" for note in notes)


def _latex(shown: pd.DataFrame, caption: str, notes: Sequence[str]) -> str:
    def line(cells: list[str]) -> str:
        text = " & ".join(map(escape_latex, cells)) + r" \\"
        # The end of the line above would take these for an option of its own.
        return "{}" + text if text.startswith(("[", "*")) else text

    return "\n".join(
        [
            r"% \usepackage{booktabs, graphicx}",
            r"\begin{table*}",
            r"\centering\small",
            rf"\caption{{{escape_latex(caption)}}}",
            # As it is, or where it is wider than the page, as wide as that.
            r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"\begin{{tabular}}{{{'l' * shown.shape[1]}}}",
            r"\toprule",
            line(list(shown.columns)),
            r"\midrule",
            *map(line, shown.to_numpy().tolist()),
            r"\bottomrule",
            r"\end{tabular}}",
            *(rf"\par\raggedright {escape_latex(note)}" for note in notes),
            r"\end{table*}",
            "",
        ]
    )


def _html(shown: pd.DataFrame, caption: str, notes: Sequence[str], *, tints: Mapping[str, str]) -> str:
    rows = shown.to_numpy().tolist()
    columns = list(zip(*rows, strict=True)) or [()] * shown.shape[1]
    looks = []
    for column in columns:
        if all(map(NUMBER.fullmatch, column)):
            looks.append(" class=number")
        else:
            looks.append(" class=text" if max(map(len, column)) > LONGEST else "")

    def line(tag: str, cells: list[str]) -> str:
        colours = [f' style="background: {tints[text]}"' if text in tints else "" for text in cells]
        return "".join(
            f"<{tag}{look}{colour}>{html.escape(text)}</{tag}>"
            for look, colour, text in zip(looks, colours, cells, strict=True)
        )

    return PAGE.format(
        caption=html.escape(caption),
        head=line("th", list(shown.columns)),
        body="\n".join(f"<tr>{line('td', row)}</tr>" for row in rows),
        notes="".join(f"<p>{html.escape(note)}</p>\n" for note in notes),
    )
