"""Figure 5: attention maps of the rare-words head on real sentences (section 5.3).

Rows are the tokens that attend, columns the tokens attended to; the column of the sentence's rarest
token is framed. Where no head passed the threshold, the figure shows the best head of the lowest
layer and says so.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from specialized_heads.report import style
from specialized_heads.report.data import Tables
from specialized_heads.stage import read_json

LONGEST = 16  # characters of a label; longer tokens are cut
ATTENTION = LinearSegmentedColormap.from_list("attention", ["#FFFFFF", "#9FC3E6", "#08306B"])
RAREST = "#C2410C"
COLUMNS = ["corpus", "layer", "head", "kind", "score", "sentence"]
COLUMNS += ["query", "query_token", "key", "key_token", "attention", "rarest"]


def numbers(tables: Tables, examples: dict[str, Path]) -> pd.DataFrame:
    """One row per pair of tokens of each sentence; query and key are positions from 1, rarest:
    whether the key is the rarest."""
    rows = []
    for title, path in examples.items():
        file = read_json(path)
        for number, sentence in enumerate(file["sentences"], start=1):
            tokens, weights = sentence["tokens"], np.asarray(sentence["attention"], float)
            head = [title, file["layer"], file["head"], file["kind"], file["score"], number]
            for query, key in np.ndindex(weights.shape):
                pair = [
                    query + 1,
                    tokens[query],
                    key + 1,
                    tokens[key],
                    weights[query, key],
                    key == sentence["rarest"],
                ]
                rows.append(head + pair)
        if not file["sentences"]:
            rows.append([title, None, None, file["kind"]] + [None] * (len(COLUMNS) - 4))
    return pd.DataFrame(rows, columns=COLUMNS)


def draw(weights: pd.DataFrame) -> Figure:
    """Draw the few short sentences that are kept beside each other; without any, a message."""
    title, layer, head, kind, score = weights[["corpus", "layer", "head", "kind", "score"]].iloc[0]
    drawn = Figure(figsize=(style.DOUBLE, 2.9), layout="constrained")
    if pd.isna(layer):
        style.message(drawn.subplots(), f"{title}: {kind}", inches=style.DOUBLE)
        return drawn
    which = f"rare-words head {layer}-{head}"
    if kind != "rare words":
        which = (
            f"no head passed the rare-words threshold; the best of layer {layer} is {layer}-{head}"
        )
    heading = (
        f"{title}: {which} (layer-head), strongest attention on the rarest token in "
        f"{score:.0%} of cases"
    )
    drawn.suptitle(style.wrap(heading, inches=style.DOUBLE, size=8))
    sentences = style.by(weights, "sentence").values()
    widths = [same["key"].max() for same in sentences]
    panels = drawn.subplots(1, len(sentences), squeeze=False, width_ratios=widths)[0]
    for axes, same in zip(panels, sentences, strict=True):
        attention = same.pivot(index="query", columns="key", values="attention")
        mesh = axes.pcolormesh(attention, cmap=ATTENTION, vmin=0, vmax=1)
        tokens = same.drop_duplicates("key")["key_token"].map(label_of)
        _label(axes, list(tokens), rarest=int(same["rarest"].argmax()))
    note = "attention (row: token that attends; column: token attended to; framed: rarest token)"
    style.colour_bar(drawn, mesh, panels, note, location="bottom", shrink=0.4, aspect=30)
    return drawn


def _label(axes: Axes, tokens: list[str], *, rarest: int) -> None:
    """Label both sides of a map with its tokens, and frame the column of the rarest."""
    axes.set(aspect="equal", ylim=(len(tokens), 0))
    places = np.arange(len(tokens)) + 0.5
    axes.set_xticks(places, tokens, rotation=90)
    axes.set_yticks(places, tokens)
    axes.tick_params(length=0, pad=1.5, labelsize=6)
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        labels[rarest].set(color=RAREST, fontweight="bold")
    frame = (rarest, 0), 1, len(tokens)
    axes.add_patch(
        Rectangle(*frame, fill=False, edgecolor=RAREST, linewidth=1.0, clip_on=False, zorder=3)
    )


def label_of(token: str) -> str:
    """The label of a token: on one line, with `_` for the mark of a word's start, and cut if it is
    very long."""
    token = " ".join(token.replace("▁", "_").split()) or "␣"
    return token if len(token) <= LONGEST else token[: LONGEST - 1] + "…"
