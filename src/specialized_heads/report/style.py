"""The look of every figure: sizes, fonts and colours, and the parts that figures share.

Sizes are those of the paper's two-column page (ACL 2019), so that figures need no scaling: 7.7 cm
for one column, 16 cm for both. A head function has the same colour and hatch everywhere; the first
three colours are those of Voita et al. They differ by at least 24 CIELAB units from each other,
with normal vision and with each of the three kinds of colour blindness, and all carry black text.
Heat maps are grey. Series (corpora, attention types, layers) differ by colour, marker and line
style; their palette has neither purple, green nor orange.

Text is never parsed as TeX: a title or token with `$`, `_` or `%` appears as it is.
"""

import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import cycle
from typing import NamedTuple

import matplotlib.style
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure, FigureBase
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import MaxNLocator

from specialized_heads.heads import functions

SINGLE, DOUBLE = 3.03, 6.29  # widths of one and of both columns, in inches

LUMA = 0.299, 0.587, 0.114  # weights of red, green and blue (ITU-R BT.601)
FONT = "DejaVu Sans"  # comes with matplotlib, so files do not depend on the machine's fonts
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
}


# How the cells of each head function are filled: arguments of a patch. A function of one's own
# takes the next fill.
FILLS = (
    ("#A65CCA", "/////"),
    ("#4CBE86", "-----"),
    ("#FFB961", "xxxxx"),
    ("#B2663B", "ooooo"),
    ("#8198AD", "....."),
)
FUNCTIONS = {
    function.name: {"facecolor": colour, "hatch": hatch}
    for function, (colour, hatch) in zip(functions.FUNCTIONS, cycle(FILLS))
}
FUNCTIONS |= {"other": {"facecolor": "#E0E0E0", "hatch": ""}}
GREYS = LinearSegmentedColormap.from_list("greys", ["#F4F4F4", "#4D4D4D"])


class Series(NamedTuple):
    """How one line of points is drawn."""

    colour: str
    marker: str
    line: str | tuple


SERIES = (
    Series("#2456A6", "o", "-"),
    Series("#C8304B", "s", (0, (5, 1.5))),
    Series("#3AA6CC", "^", (0, (3, 1, 1, 1))),
    Series("#7B4B2A", "D", (0, (1, 1))),
    Series("#E58CB0", "v", (0, (6, 1, 1, 1, 1, 1))),
    Series("#B59A00", "P", (0, (2, 2))),
)
TYPES = {
    "encoder": ("encoder self-attention", SERIES[0]),
    "decoder": ("decoder self-attention", SERIES[1]),
    "cross": ("cross-attention", SERIES[2]),
}
SCOPES = {"encoder": "encoder heads pruned", "all": "heads of all types pruned"}
# The last one, for comparison: the models pruned with gates.
CRITERIA = dict(
    zip(("gates", "importance", "relevance", "confidence", "random", "pruned"), SERIES, strict=True)
)
PAPER_COLOUR = "#555555"  # the papers' own results
PAPER_LINE = {"color": PAPER_COLOUR, "linewidth": 0.8, "linestyle": ":"}
# reference lines such as the baseline's score
REFERENCE = {"color": "#777777", "linewidth": 0.8, "linestyle": "--"}


def series(index: int) -> Series:
    """The look of the series at this position, from 0; each further round has other markers for the
    same colours."""
    turns, place = divmod(index, len(SERIES))
    return SERIES[place]._replace(marker=SERIES[(place + turns) % len(SERIES)].marker)


def ordered(index: int, count: int) -> Series:
    """The look of one of `count` series that have an order (layers, log α), from dark to light."""
    return series(index)._replace(
        colour=to_hex(matplotlib.colormaps["cividis"](0.85 * index / max(1, count - 1)))
    )


def sheet() -> AbstractContextManager[None]:
    """Draw and save with this style sheet alone, whatever the user's own matplotlib settings
    are."""
    return matplotlib.style.context(["default", SHEET, {"font.family": FONT}])


def wrap(text: str, *, inches: float, size: float = 7.5) -> str:
    """Break a title into lines of at most this width, estimated from the mean width of DejaVu Sans
    letters."""
    return textwrap.fill(text, max(8, int(inches * 72 / (0.56 * size))), break_on_hyphens=False)


def minus(text: str) -> str:
    """The text of a number with a minus sign in place of the hyphen."""
    return text.replace("-", "−")


def nothing() -> Figure:
    """The figure of an experiment that lacks what it should show."""
    figure = Figure(figsize=(DOUBLE, 1.0), layout="constrained")
    message(
        figure.add_subplot(),
        "nothing to show: this experiment has no such models",
        inches=DOUBLE - 0.3,
    )
    return figure


def message(axes: Axes, text: str, *, inches: float) -> None:
    """Show text in place of a panel that has nothing to show."""
    axes.set_axis_off()
    axes.text(
        0.5,
        0.5,
        wrap(text, inches=inches, size=8),
        ha="center",
        va="center",
        size=8,
        transform=axes.transAxes,
    )


def panels(
    count: int,
    *,
    across: int,
    height: float,
    more_height: float = 0.0,
    width: float = DOUBLE,
    **options: object,
) -> tuple[Figure, np.ndarray, list[Axes]]:
    """A figure with a grid of panels, at most `across` in a row, as few as possible of them spare
    and hidden.

    Returns:
        the figure, all axes (rows, columns), and the axes in use in reading order.
    """
    rows = -(-count // across)
    columns = -(-count // rows)
    figure = Figure(figsize=(width, height * rows + more_height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False, **options)
    for axes in grid.flat[count:]:
        axes.set_axis_off()
    return figure, grid, list(grid.flat[:count])


def label_lowest(grid: np.ndarray, label: str) -> None:
    """Label the x axis of the lowest panel in use of each column."""
    for column in grid.T:
        [axes for axes in column if axes.axison][-1].set_xlabel(label)


LEGEND_LINE = 0.13  # inches, in small print
BEHIND_TEXT = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}  # the box of text above lines


def share_axis(axes: Axes, of: str, **labels: str) -> None:
    """Make the x axis that of the heads left, from all to none, as the papers have it.

    Args:
        axes: the panel.
        of: the heads that 100% are.
        labels: `ylabel` and `title`.
    """
    axes.set(xlim=(1.03, -0.03), xlabel=f"heads left, share of {of}", **labels)
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.grid(axis="y")


def dodge(place: int, count: int, *, step: float = 0.016) -> float:
    """How far, as a share of an axis, one of `count` series moves aside so that equal points do not
    cover each other."""
    return step * (place - (count - 1) / 2)


def legend(figure: Figure, handles: Sequence[Artist], *, ncols: int, **options: object) -> None:
    """The legend: in a spare panel, or below the figure."""
    spare = [axes for axes in figure.axes if not axes.axison and not axes.texts]
    if spare:
        spare[0].legend(handles=handles, loc="center", **options).set_in_layout(False)
    else:
        figure.legend(handles=handles, loc="outside lower center", ncols=ncols, **options)


def of_seed(title: str, seed: object) -> str:
    """A corpus and the seed shown, which a model without the heads in question has not."""
    return title if pd.isna(seed) else f"{title}, seed {seed}"


def legend_height(handles: Sequence[Artist], *, ncols: int) -> float:
    """The height in inches of a legend in small print below a figure; its columns fill one after
    another."""
    lines = [1 + str(handle.get_label()).count("\n") for handle in handles]
    each = max(1, -(-len(lines) // ncols))
    return LEGEND_LINE * max(
        (sum(lines[start : start + each]) for start in range(0, len(lines), each)), default=0
    )


def evenly(count: int, *, most: int) -> list[int]:
    """At most so many of `count` places, evenly spaced, both ends among them."""
    return np.linspace(0, count - 1, min(most, count)).round().astype(int).tolist()


def by(rows: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """The rows of each value of a column, in the order in which the values appear."""
    return dict(list(rows.groupby(column, sort=False)))


def key(look: Series, label: str, **options: object) -> Line2D:
    """The legend entry of a series."""
    shape = {"color": look.colour, "marker": look.marker, "linestyle": look.line}
    return Line2D([], [], label=label, **(shape | options))


def marker_key(
    label: str, *, color: str = "#777777", marker: str = "o", **options: object
) -> Line2D:
    """The legend entry of a kind of marker, whatever its series."""
    return Line2D([], [], label=label, color=color, marker=marker, linestyle="none", **options)


def colour_bar(
    figure: FigureBase, mesh: Artist, axes: object, label: str = "", **options: object
) -> None:
    """A colour bar without a frame."""
    bar = figure.colorbar(mesh, ax=axes, ticks=MaxNLocator(5), **options)
    bar.outline.set_visible(False)
    bar.set_label(label)


def bare(axes: Axes) -> None:
    """Remove the spines and the ticks, but not the tick labels."""
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def heat_map(
    axes: Axes,
    values: np.ndarray,
    *,
    colours: Colormap,
    low: float,
    high: float,
    digits: str,
    size: float,
) -> QuadMesh:
    """Draw a matrix (rows, columns) as cells, its first row on top; NaN leaves a cell empty. Return
    the mesh, for a colour bar.

    Args:
        axes: to draw on.
        values: the matrix.
        colours: from that of `low` to that of `high`.
        low, high: values of the first and the last colour.
        digits, size: format of the numbers in the cells, such as "z.2f" ("": none), and their size
            in points, a fifth less for long ones.
    """
    rows, columns = values.shape
    edges = np.arange(columns + 1) + 0.5, np.arange(rows + 1) + 0.5  # the first cell is at (1, 1)
    cells = {"cmap": colours, "vmin": low, "vmax": high, "edgecolors": "white", "linewidth": 1.0}
    mesh = axes.pcolormesh(*edges, np.ma.masked_invalid(values), **cells)
    for row, column in np.argwhere(~np.isnan(values)) if digits else ():
        value = values[row, column]
        text = minus(f"{value:{digits}}").replace("+0.0", "0.0")
        luma = np.dot(colours((value - low) / (high - low))[:3], LUMA)
        colour = "white" if luma < 0.5 else "black"
        points = size if len(text) < 5 else 0.8 * size  # as "−0.01" beside "0.01"
        axes.text(column + 1, row + 1, text, size=points, ha="center", va="center", color=colour)
    axes.set(xlim=edges[0][[0, -1]], ylim=edges[1][[-1, 0]])
    bare(axes)
    return mesh


def hatched_cell(axes: Axes, x: float, y: float) -> None:
    """A cell around this point whose value is undefined."""
    look = {"facecolor": "white", "edgecolor": "#BBBBBB", "hatch": "////", "linewidth": 0}
    axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, **look))


def function_cell(
    axes: Axes, functions: list[str], *, left: float, bottom: float, width: float, height: float
) -> None:
    """One head as a cell with the colour and hatch of its function, in equal vertical stripes where
    it has several."""
    step = width / len(functions)
    for number, function in enumerate(functions):
        corner = left + number * step, bottom
        axes.add_patch(
            Rectangle(
                corner, step, height, edgecolor="#FFFFFFB0", linewidth=0, **FUNCTIONS[function]
            )
        )
    axes.add_patch(
        Rectangle((left, bottom), width, height, fill=False, edgecolor="white", linewidth=1.0)
    )


def cell_text(axes: Axes, x: float, y: float, text: str, *, size: float) -> None:
    """Text in the middle of a function's cell; a light halo keeps hatches from crossing it."""
    halo = [withStroke(linewidth=1.6, foreground="#FFFFFFC0")]
    axes.text(x, y, text, size=size, ha="center", va="center_baseline", path_effects=halo)


def function_legend(
    place: Figure | Axes, functions: pd.Series, *more: Artist, **options: object
) -> None:
    """The legend of the functions that heads have, of several in one cell, and of more.

    Args:
        place: whose legend.
        functions: of each head, as text: names joined by "; ".
        more: further entries.
        options: of the legend.
    """
    found = set("; ".join(functions).split("; "))
    handles = [
        Patch(edgecolor="white", linewidth=0, label=name, **fill)
        for name, fill in FUNCTIONS.items()
        if name in found
    ]
    labels = [handle.get_label() for handle in (*handles, *more)]
    if functions.astype(str).str.contains("; ").any():
        more += (tuple(handles[:2]),)
        labels.append("several functions")
    both = {tuple: HandlerTuple(ndivide=None, pad=0)}
    place.legend([*handles, *more], labels, handlelength=1.6, handler_map=both, **options)
