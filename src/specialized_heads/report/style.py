"""How every figure looks: sizes, fonts, and the colours that stay the same from figure to figure.

Sizes are those of the paper's two-column page (ACL 2019), so that nothing is scaled after the fact: 7.7 cm for one column, 16 cm
for both. A head function has one colour and one hatch everywhere. The colours differ by at least 24 CIELAB units from each other
with normal vision and with each of the three kinds of colour blindness, and all of them carry black text. Series
(corpora, attention types, layers) differ by colour, marker and line style, from a second palette that shares no
colour with the first.

Text is never read as TeX: a title or a token with `$`, `_` or `%` is shown as it is.
"""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke

SINGLE, DOUBLE = 3.03, 6.29  # column widths, inches

FONT = "DejaVu Sans"  # comes with matplotlib, so that bytes do not depend on the fonts of the machine
SHEET = {
    "font.size": 7,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "legend.handlelength": 2.2,
    "lines.linewidth": 1.1,
    "lines.markersize": 4,
    "hatch.linewidth": 0.5,
    "figure.titlesize": 8,
    "figure.labelsize": 7,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
    "text.parse_math": False,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "specialized heads",
}


class Fill(NamedTuple):
    """How the cells of one head function are filled."""

    colour: str
    hatch: str


FUNCTIONS = {
    "positional": Fill("#5AA2E0", "/////"),
    "syntactic": Fill("#E8743B", "-----"),
    "rare words": Fill("#F3D34A", "xxxxx"),
    "other": Fill("#E0E0E0", ""),
}


class Series(NamedTuple):
    """How one line of points is drawn."""

    colour: str
    marker: str
    line: str | tuple


SERIES = (
    Series("#332288", "o", "-"),
    Series("#117733", "s", (0, (5, 1.5))),
    Series("#AA4499", "^", (0, (3, 1, 1, 1))),
    Series("#44AA99", "D", (0, (1, 1))),
    Series("#882255", "v", (0, (6, 1, 1, 1, 1, 1))),
    Series("#999933", "P", (0, (2, 2))),
)
TYPES = {
    "encoder": ("encoder self-attention", SERIES[0]),
    "decoder": ("decoder self-attention", SERIES[1]),
    "cross": ("cross-attention", SERIES[2]),
}
CRITERIA = {
    "gates": SERIES[0],
    "importance": SERIES[1],
    "relevance": SERIES[2],
    "confidence": SERIES[3],
    "random": SERIES[4],
    "pruned": SERIES[5],  # the models that gates pruned, beside them
}
PAPER_COLOUR = "#555555"  # whatever is not ours


def series(index: int) -> Series:
    """The look of the series at a position, counted from 0; after the last one they start again."""
    return SERIES[index % len(SERIES)]


def ordered(index: int, count: int) -> Series:
    """The look of one of `count` series with an order of their own (layers, log α), from dark to light."""
    return series(index)._replace(colour=to_hex(matplotlib.colormaps["viridis"](0.8 * index / max(1, count - 1))))


@contextmanager
def sheet(more_fonts: Sequence[str] = ()) -> Iterator[None]:
    """Draw and save under this style sheet alone, whatever the user's own matplotlib settings are.

    Args:
        more_fonts: families for letters that the sheet's own font does not have.
    """
    with matplotlib.style.context(["default", SHEET, {"font.family": [FONT, *more_fonts]}]):
        yield


def wrap(text: str, *, inches: float, size: float = 7.5) -> str:
    """Break a title so that a line of it fits into a width, at the mean width of a letter of DejaVu Sans."""
    return textwrap.fill(text, max(8, int(inches * 72 / (0.56 * size))), break_on_hyphens=False)


def message_figure(text: str, *, width: float = SINGLE) -> Figure:
    """A figure that says why there is nothing to show."""
    figure = Figure(figsize=(width, 1.0), layout="constrained")
    message(figure.add_subplot(), text, inches=width - 0.3)
    return figure


def message(axes: Axes, text: str, *, inches: float) -> None:
    """Text in place of a panel that has nothing to show."""
    axes.set_axis_off()
    axes.text(0.5, 0.5, wrap(text, inches=inches, size=8), ha="center", va="center", size=8, transform=axes.transAxes)


def function_cell(axes: Axes, functions: list[str], *, left: float, bottom: float, width: float, height: float) -> None:
    """One head as a cell: filled with the colour and hatch of its function, in equal upright stripes where it has
    several."""
    step = width / len(functions)
    for number, function in enumerate(functions):
        fill = FUNCTIONS[function]
        stripe = (left + number * step, bottom), step, height
        axes.add_patch(Rectangle(*stripe, facecolor=fill.colour, edgecolor="#FFFFFFB0", hatch=fill.hatch, linewidth=0))
    axes.add_patch(Rectangle((left, bottom), width, height, fill=False, edgecolor="white", linewidth=1.0))


def cell_text(axes: Axes, x: float, y: float, text: str, *, size: float) -> None:
    """Text in the middle of a function's cell, with a halo of the cell's brightness so that hatches do not cross it."""
    halo = [withStroke(linewidth=1.6, foreground="#FFFFFFC0")]
    axes.text(x, y, text, size=size, ha="center", va="center_baseline", path_effects=halo)


def function_legend(figure: Figure) -> None:
    """The key to the functions below a figure, always complete, so that an absent function is seen to be absent."""
    patches = {
        name: Patch(facecolor=fill.colour, edgecolor="white", hatch=fill.hatch, linewidth=0)
        for name, fill in FUNCTIONS.items()
    }
    several = patches["positional"], patches["syntactic"]
    figure.legend(
        [*patches.values(), several],
        [*patches, "several functions"],
        loc="outside lower center",
        ncols=5 if figure.get_figwidth() > SINGLE else 3,
        handlelength=1.6,
        columnspacing=1.4,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0)},
    )
