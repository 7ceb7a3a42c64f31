"""The paper's figures and tables as one LaTeX document, at the paper's widths, to compile or to copy from.

The document has the page of the ACL 2019 style: A4, with 16 cm of text in two columns of 7.7 cm. Figures are included at the size
at which they were drawn; one wider than a column spans both. Paths are relative to the document's folder.
"""

import os
import re
from pathlib import Path

from specialized_heads.report import style
from specialized_heads.report.inputs import one_per_file
from specialized_heads.report.output import escape_latex
from specialized_heads.stage import Files, Section, UserError, command, write_file

POINT = 1 / 72  # inches
DOCUMENT = r"""% The figures and tables of this experiment that correspond to those of Voita et al. (2019).
% Compile it in this folder: pdflatex figures.tex (titles in letters beyond Latin need xelatex or lualatex).
\documentclass[11pt,a4paper,twocolumn]{article}
\usepackage{iftex}
\ifPDFTeX
  \IfFileExists{lmodern.sty}{\usepackage[T1]{fontenc}\usepackage{lmodern}}{}
\else
  \usepackage{fontspec}
\fi
\usepackage{booktabs, graphicx}
% The page of the ACL 2019 style.
\setlength{\textwidth}{16cm}
\setlength{\columnsep}{0.6cm}
\setlength{\textheight}{24.7cm}
\setlength{\oddsidemargin}{-0.04cm}
\setlength{\evensidemargin}{-0.04cm}
\setlength{\topmargin}{-0.04cm}
\setlength{\headheight}{0cm}
\setlength{\headsep}{0cm}
\setlength{\belowcaptionskip}{1ex}
% As many floats on a page as fit.
\renewcommand{\dbltopfraction}{0.95}
\renewcommand{\topfraction}{0.95}
\renewcommand{\textfraction}{0.02}
\renewcommand{\dblfloatpagefraction}{0.7}
\renewcommand{\floatpagefraction}{0.7}
\setcounter{totalnumber}{10}
\setcounter{topnumber}{10}
\setcounter{dbltopnumber}{10}
\begin{document}
%s
\end{document}
"""


class Settings(Section):
    """The caption of each figure, in the order of `--figures`: reStructuredText with no markup but `literals`."""

    captions: list[str]


def width(pdf: Path) -> float:
    """The width of a PDF's first page, in inches."""
    box = re.search(rb"/MediaBox \[ ?([\d.]+) [\d.]+ ([\d.]+) [\d.]+ ?\]", pdf.read_bytes())
    if not box:
        raise UserError(f"{pdf}: not a PDF of this project's figures; delete it and run again")
    return (float(box[2]) - float(box[1])) * POINT


def figure(path: str, caption: str, *, inches: float) -> str:
    """One figure, across both columns where it is wider than one."""
    environment = "figure*" if inches > style.SINGLE + POINT else "figure"
    literals = re.split(r"`+([^`]+)`+", caption)  # every second one was between backquotes
    text = "".join(rf"\texttt{{{escape_latex(t)}}}" if n % 2 else escape_latex(t) for n, t in enumerate(literals))
    body = [r"\centering", rf"\includegraphics{{{path}}}", rf"\caption{{{text}}}"]
    return "\n".join([rf"\begin{{{environment}}}", *body, rf"\end{{{environment}}}"])


def document(figures: list[tuple[str, str, float]], tables: list[str]) -> str:
    """The whole document, from the path, caption and width in inches of each figure, and the path of each table."""
    parts = [figure(path, caption, inches=inches) for path, caption, inches in figures]
    parts += [rf"\input{{{path}}}" for path in tables]
    return DOCUMENT.replace("%s", "\n\n".join(parts))


@command("output", many=("figures", "tables"), settings=Settings)
def main(args: Files, settings: Settings) -> None:
    one_per_file("captions", settings.captions, args.figures)

    def relative(path: Path) -> str:
        return Path(os.path.relpath(path, args.output.parent)).as_posix()

    figures = [(relative(path), text, width(path)) for path, text in zip(args.figures, settings.captions, strict=True)]
    write_file(args.output, document(figures, list(map(relative, args.tables))))
