"""Figure 5: attention maps of the rare-words head on real sentences (section 5.3).

A row is the token that attends, a column the token that is attended to, and the column of the sentence's rarest token
is framed. All maps have the same cell size, so a longer sentence is a larger map, and maps that do not fit beside
each other go below. Where no head passed the threshold the figure shows the best head by that score and says so.
"""

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
from specialized_heads.report.inputs import Titles, by_title
from specialized_heads.report.output import save_figure
from specialized_heads.stage import UserError, arguments, read_json, run

LABELS = (7.5, 7.0, 6.5, 6.0)  # points; the largest one with which the maps of a corpus fit beside each other
CELL = 1.38  # side of a cell, in label sizes
SMALLEST_LABEL = 4.0  # points; where cells are smaller still, every second, third, ... token is labelled
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
    """One sentence's map and the room it takes, in inches and points."""

    tokens: list[str]
    weights: np.ndarray  # (query, key)
    rarest: int
    cell: float
    label: float
    margin: float

    @property
    def side(self) -> float:
        return self.cell * len(self.tokens)

    @property
    def outer(self) -> float:
        return self.side + self.margin


def numbers(files: dict[str, dict]) -> pd.DataFrame:
    """Attention weights of every example sentence.

    Returns:
        one row per pair of tokens: corpus, layer, head, kind, score, sentence (from 1), query, key (positions from 1),
        their tokens, attention, rarest (whether the key is the rarest token).
    """
    rows = []
    for title, file in files.items():
        for number, sentence in enumerate(file["sentences"], start=1):
            tokens = sentence["tokens"]
            weights = np.asarray(sentence["attention"], float)
            if weights.shape != (len(tokens), len(tokens)):
                raise UserError(
                    f"{title}: sentence {number} has {len(tokens)} tokens and attention of shape {weights.shape}"
                )
            for query, key in np.ndindex(weights.shape):
                rows.append(
                    [title, file["layer"], file["head"], file["kind"], file["score"], number]
                    + [query + 1, tokens[query], key + 1, tokens[key], weights[query, key], key == sentence["rarest"]]
                )
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(weights: pd.DataFrame, *, titles: list[str]) -> Figure:
    """Draw the maps, corpora below each other; a corpus without examples is named in text."""
    page = _page(weights, titles)
    height = 0.6 + sum(_heading_height(heading) + sum(map(_height, lines)) for heading, lines in page)
    figure = Figure(figsize=(style.DOUBLE, height))
    top = height - 0.05
    mesh = None
    for heading, lines in page:
        figure.text(0.5, top / height, heading, ha="center", va="top", size=8)
        top -= _heading_height(heading)
        for line in lines:
            left = (style.DOUBLE - _width(line)) / 2
            for each in line:
                corner = (left + each.margin) / style.DOUBLE, (top - each.side) / height
                mesh = _draw_map(figure.add_axes((*corner, each.side / style.DOUBLE, each.side / height)), each)
                left += each.outer + GAP
            top -= _height(line)
    if mesh is not None:
        figure.text(
            0.5, 0.42 / height, "row: token that attends; column: token attended to; framed: rarest token", ha="center"
        )
        bar = figure.colorbar(
            mesh, cax=figure.add_axes((0.35, 0.27 / height, 0.3, 0.08 / height)), orientation="horizontal"
        )
        bar.outline.set_linewidth(0.4)
        bar.ax.tick_params(pad=1.5)
        figure.text(0.34, 0.31 / height, "attention", ha="right", va="center")
    return figure


def shown(token: str) -> str:
    """A token as a label: on one line, the word-start mark as `_`, cut where it is very long."""
    token = " ".join(token.replace("▁", "_").split()) or "␣"
    return token if len(token) <= LONGEST else token[: LONGEST - 1] + "…"


def _heading(title: str, weights: pd.DataFrame) -> str:
    if weights.empty:
        return style.wrap(f"{title}: no example sentences", inches=style.DOUBLE, size=8)
    layer, head, kind, score = weights[["layer", "head", "kind", "score"]].iloc[0]
    which = f"rare-words head {layer}-{head}"
    if kind != "rare words":
        which = f"no head passed the rare-words threshold; the best by its score is head {layer}-{head}"
    text = f"{title}: {which} (layer-head), strongest attention on the rarest token in {score:.0%} of cases"
    return style.wrap(text, inches=style.DOUBLE, size=8)


def _heading_height(heading: str) -> float:
    return LINE * (heading.count("\n") + 2)


def _page(weights: pd.DataFrame, titles: list[str]) -> list[tuple[str, list[list[Map]]]]:
    """The heading and the lines of maps of every corpus, at the largest label size at which each has one line."""
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
    """The room for a sentence with labels of `size` points, or of less if the map would be wider than the page."""
    tokens = sentence.drop_duplicates("query")["query_token"].tolist()
    widest = max(TextPath((0, 0), shown(token), size=1).get_extents().width for token in tokens)  # in label sizes
    widest *= 1.1  # bold letters
    label = max(SMALLEST_LABEL, min(size, 72 * (style.DOUBLE - 0.2) / (CELL * len(tokens) + widest)))
    margin = widest * label / 72 + 0.06
    cell = min(CELL * label / 72, (style.DOUBLE - 0.1 - margin) / len(tokens))
    weights = sentence["attention"].to_numpy().reshape(len(tokens), len(tokens))
    rarest = int(sentence.loc[sentence["rarest"], "key"].iloc[0]) - 1
    return Map(tokens, weights, rarest, cell, label, margin)


def _width(line: list[Map]) -> float:
    return sum(each.outer for each in line) + GAP * (len(line) - 1)


def _height(line: list[Map]) -> float:
    return max(each.outer for each in line) + GAP


def _lines(maps: list[Map]) -> list[list[Map]]:
    """Maps in reading order, as many per line as fit the page."""
    lines: list[list[Map]] = []
    for each in maps:
        if lines and _width([*lines[-1], each]) <= style.DOUBLE - 0.1:
            lines[-1].append(each)
        else:
            lines.append([each])
    return lines


def _draw_map(axes: Axes, each: Map) -> QuadMesh:
    count = len(each.tokens)
    edges = np.arange(count + 1) - 0.5
    mesh = axes.pcolormesh(edges, edges, each.weights, cmap=ATTENTION, vmin=0, vmax=1)
    axes.set(xlim=(-0.5, count - 0.5), ylim=(count - 0.5, -0.5))
    step = int(np.ceil(1.2 * each.label / (72 * each.cell)))
    ticks = list(range(each.rarest % step, count, step))
    axes.set_xticks(ticks, [shown(each.tokens[place]) for place in ticks], rotation=90)
    axes.set_yticks(ticks, [shown(each.tokens[place]) for place in ticks])
    axes.tick_params(length=0, pad=1.5, labelsize=each.label)
    for label in (axes.get_xticklabels()[ticks.index(each.rarest)], axes.get_yticklabels()[ticks.index(each.rarest)]):
        label.set(color=RAREST, fontweight="bold")
    axes.spines[:].set(visible=True, linewidth=0.4, color="#888888")
    frame = (each.rarest - 0.5, -0.5), 1, count
    axes.add_patch(Rectangle(*frame, fill=False, edgecolor=RAREST, linewidth=1.0, clip_on=False, zorder=3))
    return mesh


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["examples"])
    titles = Titles.model_validate(args.settings).titles
    files = {title: read_json(path) for title, path in by_title(args.examples, titles).items()}
    weights = numbers(files)
    save_figure(args.output, weights, lambda: draw(weights, titles=titles))


if __name__ == "__main__":
    run(main)
