"""The LaTeX set: figures at the size at which they were drawn, and a document that compiles."""

import re
import shutil
import subprocess

import pandas as pd
import pytest
from matplotlib.figure import Figure

from specialized_heads.report import latex, style
from specialized_heads.report.output import save_figure, save_table
from specialized_heads.stage import UserError

NASTY = "50% of $x_1$ & #{a}~\\^ <λ> “è” `heads.relevance_rules` ± − – → ≤ ≥ × … ⁺ αβγδεζηθικλμνξπρστυφχψω"


@pytest.fixture
def drawn(tmp_path):
    """Two figures, of one and of two columns, and two tables, one of them far wider than the page."""
    folder = tmp_path / "results"
    for name, width in (("one", style.SINGLE), ("two", style.DOUBLE)):

        def draw(width=width):
            figure = Figure(figsize=(width, 1.0), layout="constrained")
            figure.add_subplot(title=NASTY)
            return figure

        save_figure(folder / "figures" / name, pd.DataFrame({"x": [1]}), draw)
    for name, columns in (("small", 2), ("wide", 30)):
        shown = pd.DataFrame([[NASTY] * columns] * 3, columns=[f"column_{n}" for n in range(columns)])
        save_table(folder / "tables" / name, shown, shown, caption=NASTY, notes=[NASTY])
    return folder


def test_a_figure_goes_over_as_many_columns_as_it_is_wide(drawn):
    assert latex.width(drawn / "figures" / "one.pdf") == pytest.approx(style.SINGLE, abs=0.01)
    assert "{figure}" in latex.figure("f.pdf", "One.", inches=style.SINGLE)
    assert "{figure*}" in latex.figure("f.pdf", "Two.", inches=style.DOUBLE)
    with pytest.raises(UserError, match=r"small\.tex: not a PDF"):
        latex.width(drawn / "tables" / "small.tex")


def test_the_columns_are_those_of_the_papers_page():
    centimetres = [2.54 * inches for inches in (style.SINGLE, style.DOUBLE)]
    assert centimetres == pytest.approx([7.7, 16.0], abs=0.03)
    assert r"\setlength{\textwidth}{16cm}" in latex.DOCUMENT
    assert r"\setlength{\columnsep}{0.6cm}" in latex.DOCUMENT


def test_a_caption_is_printed_as_it_is():
    assert r"\caption{5\% of \texttt{a\_b} and c}" in latex.figure("f.pdf", "5% of ``a_b`` and c", inches=1)


def test_each_figure_needs_its_caption(call, drawn):
    figures = [drawn / "figures" / "one.pdf"] * 2
    with pytest.raises(UserError, match="1 captions for 2 files"):
        call(latex, settings={"captions": ["x"]}, figures=figures, tables=[], output=drawn / "figures.tex")


def test_fonts_of_figures_are_embedded_as_outlines(drawn):
    for name in ("one", "two"):
        written = (drawn / f"figures/{name}.pdf").read_bytes()
        fonts = re.findall(rb"/Subtype /(Type3|Type42|TrueType|CIDFontType2|Type1)\b", written)
        assert fonts and b"Type3" not in fonts


def test_the_document_compiles_and_nothing_sticks_out(call, drawn):
    if not shutil.which("pdflatex"):
        pytest.skip("no pdflatex on the PATH")
    document = drawn / "latex" / "figures.tex"
    captions = {"captions": [f"One column; {NASTY}.", f"Two columns; {NASTY}."]}
    files = {"figures": [drawn / f"figures/{name}.pdf" for name in ("one", "two")]}
    files["tables"] = [drawn / f"tables/{name}.tex" for name in ("small", "wide")]
    call(latex, settings=captions, output=document, **files)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", document.name]
    done = subprocess.run(command, cwd=document.parent, capture_output=True, text=True, errors="replace", check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    said = document.with_suffix(".log").read_text(encoding="utf-8", errors="replace")
    assert re.search(r"Output written on figures\.pdf \(\d+ pages?", said)
    assert said.count("<../figures/") >= 2
    sticking = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt too wide\)", said)]
    assert max(sticking, default=0) < 1
