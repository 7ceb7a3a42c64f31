"""Figure 5: attention maps of the rare-words head on real sentences (section 5.3).

Rows are the tokens that attend, columns the tokens attended to; the column of the sentence's rarest token is framed. All maps
have the same cell size, so a longer sentence has a larger map; maps that do not fit beside each other continue below. Where no
head passed the threshold, the figure shows the best head by that score and says so.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.textpath import TextPath

from specialized_heads.report import style
from specialized_heads.report.data import Tables
from specialized_heads.stage import UserError, read_json

FILES = ("examples",)
LABELS = (7.5, 7.0, 6.5, 6.0)  # points; the largest size with which the maps of a corpus fit beside each other
CELL = 1.38  # side of a cell, in label sizes
SMALLEST_LABEL = 4.0  # points; where cells are smaller still, only every n-th token is labelled
LONGEST = 16  # characters of a label; longer tokens are cut
GAP = 0.12  # inches between maps
LINE = 0.14  # inches per line of a heading
ATTENTION = LinearSegmentedColormap.from_list("attention", ["#FFFFFF", "#9FC3E6", "#08306B"])
RAREST = "#C2410C"
COLUMNS = [
    "corpus", "layer", "head", "kind", "score", "sentence", "query", "query_token", "key", "key_token",
    "attention", "rarest",
]  # fmt: skip


class Map(NamedTuple):
    """The map of a sentence and the space it needs, in inches and points."""

    tokens: list[str]
    weights: np.ndarray  # (query, key)
    rarest: int
    cell: float
    label: float
    margin: float
    side: float  # of all cells
    outer: float  # with the margin


def numbers(tables: Tables, examples: dict[str, Path]) -> pd.DataFrame:
    """One row per pair of tokens of each sentence; query and key are positions from 1, rarest: whether the key is the rarest."""
    rows = []
    for title, path in examples.items():
        file = read_json(path)
        for number, sentence in enumerate(file["sentences"], start=1):
            tokens, weights = sentence["tokens"], np.asarray(sentence["attention"], float)
            if weights.shape != (len(tokens), len(tokens)):
                raise UserError(
                    f"{title}: sentence {number} has {len(tokens)} tokens but attention of shape {weights.shape}; "
                    "delete the file of examples and run again"
                )
            head = [title, file["layer"], file["head"], file["kind"], file["score"], number]
            for query, key in np.ndindex(weights.shape):
                pair = [query + 1, tokens[query], key + 1, tokens[key], weights[query, key], key == sentence["rarest"]]
                rows.append(head + pair)
        if not file["sentences"]:
            rows.append([title] + [None] * (len(COLUMNS) - 1))
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(weights: pd.DataFrame) -> Figure:
    """Draw the maps, the corpora one below the other; a corpus without examples gets a message."""
    page = _page(weights.dropna(subset="query"), list(weights["corpus"].unique()))
    heights = [LINE * (heading.count("\n") + 2) for heading, _ in page]
    height = 0.6 + sum(space + sum(map(_height, lines)) for space, (_, lines) in zip(heights, page))
    drawn = Figure(figsize=(style.DOUBLE, height))
    top = height - 0.05
    mesh = None
    for space, (heading, lines) in zip(heights, page, strict=True):
        drawn.text(0.5, top / height, heading, ha="center", va="top", size=8)
        top -= space
        for line in lines:
            left = (style.DOUBLE - _width(line)) / 2
            for one in line:
                corner = (left + one.margin) / style.DOUBLE, (top - one.side) / height
                mesh = _draw_map(drawn.add_axes((*corner, one.side / style.DOUBLE, one.side / height)), one)
                left += one.outer + GAP
            top -= _height(line)
    if mesh is not None:
        note = "row: token that attends; column: token attended to; framed: rarest token"
        drawn.text(0.5, 0.42 / height, note, ha="center")
        place = drawn.add_axes((0.35, 0.27 / height, 0.3, 0.08 / height))
        bar = drawn.colorbar(mesh, cax=place, orientation="horizontal")
        bar.outline.set_linewidth(0.4)
        bar.ax.tick_params(pad=1.5)
        drawn.text(0.34, 0.31 / height, "attention", ha="right", va="center")
    return drawn


def label_of(token: str) -> str:
    """The label of a token: on one line, with `_` for the mark of a word's start, and cut if it is very long."""
    token = " ".join(token.replace("▁", "_").split()) or "␣"
    return token if len(token) <= LONGEST else token[: LONGEST - 1] + "…"


def _heading(title: str, weights: pd.DataFrame) -> str:
    text = f"{title}: no example sentences"
    if len(weights):
        layer, head, kind, score = weights[["layer", "head", "kind", "score"]].iloc[0]
        which = f"rare-words head {layer}-{head}"
        if kind != "rare words":
            which = f"no head passed the rare-words threshold; the best by its score is head {layer}-{head}"
        text = f"{title}: {which} (layer-head), strongest attention on the rarest token in {score:.0%} of cases"
    return style.wrap(text, inches=style.DOUBLE, size=8)


def _page(weights: pd.DataFrame, titles: list[str]) -> list[tuple[str, list[list[Map]]]]:
    """Heading and lines of maps of each corpus, at the largest label size at which each needs a single line."""
    for size in LABELS:
        page = []
        for title in titles:
            here = weights[weights["corpus"] == title]
            maps = [_measure(sentence, size=size) for _, sentence in here.groupby("sentence")]
            page.append((_heading(title, here), _lines(maps)))
        if all(len(lines) <= 1 for _, lines in page):
            break
    return page


def _measure(sentence: pd.DataFrame, *, size: float) -> Map:
    """The space for a sentence with labels of `size` points, or smaller if the map were wider than the page."""
    tokens = sentence.drop_duplicates("query")["query_token"].tolist()
    widest = max(TextPath((0, 0), label_of(token), size=1).get_extents().width for token in tokens)  # in label sizes
    widest *= 1.1  # bold letters
    label = max(SMALLEST_LABEL, min(size, 72 * (style.DOUBLE - 0.2) / (CELL * len(tokens) + widest)))
    margin = widest * label / 72 + 0.06
    cell = min(CELL * label / 72, (style.DOUBLE - 0.1 - margin) / len(tokens))
    weights = sentence["attention"].to_numpy().reshape(len(tokens), len(tokens))
    rarest = int(sentence.loc[sentence["rarest"], "key"].iloc[0]) - 1
    side = cell * len(tokens)
    return Map(tokens, weights, rarest, cell, label, margin, side, side + margin)


def _width(line: list[Map]) -> float:
    return sum(one.outer for one in line) + GAP * (len(line) - 1)


def _height(line: list[Map]) -> float:
    return max(one.outer for one in line) + GAP


def _lines(maps: list[Map]) -> list[list[Map]]:
    """Maps in reading order, as many per line as fit on the page."""
    lines: list[list[Map]] = []
    for one in maps:
        if lines and _width([*lines[-1], one]) <= style.DOUBLE - 0.1:
            lines[-1].append(one)
        else:
            lines.append([one])
    return lines


def _draw_map(axes: Axes, one: Map) -> QuadMesh:
    count = len(one.tokens)
    edges = np.arange(count + 1) - 0.5
    mesh = axes.pcolormesh(edges, edges, one.weights, cmap=ATTENTION, vmin=0, vmax=1)
    axes.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5))
    step = int(np.ceil(1.2 * one.label / (72 * one.cell)))
    ticks = range(one.rarest % step, count, step)
    labels = [label_of(one.tokens[place]) for place in ticks]
    axes.set_xticks(ticks, labels, rotation=90)
    axes.set_yticks(ticks, labels)
    axes.tick_params(length=0, pad=1.5, labelsize=one.label)
    for names in (axes.get_xticklabels(), axes.get_yticklabels()):
        names[ticks.index(one.rarest)].set(color=RAREST, fontweight="bold")
    axes.spines[:].set(visible=True, linewidth=0.4, color="#888888")
    frame = (one.rarest - 0.5, -0.5), 1, count
    axes.add_patch(Rectangle(*frame, fill=False, edgecolor=RAREST, linewidth=1.0, clip_on=False, zorder=3))
    return mesh
