"""The heads that pruning leaves (sections 6.2.2 and 6.3.2): their functions (figure 8), types (9)
and layers (10)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.heads.functions import POSITIONAL, SYNTACTIC
from specialized_heads.report import paper, style, sweep
from specialized_heads.report.data import Tables, encoder_heads, parted, stack, with_ends
from specialized_heads.stage import heads_text

HEAD, TALLEST = 0.092, 7.0  # inches: of a head; of a column, above which heads become lower
SMALLEST_TEXT = 3.8  # points
CHANCE = {"color": "black", "marker": "<", "markersize": 3.5}
FIGURE8_COLUMNS = "corpus model lam target_heads seed heads place layer head".split()
FIGURE8_COLUMNS += ["functions", "names"]
FIGURE9_COLUMNS = [*sweep.POINT, "type", *with_ends("pruned", "active"), "heads"]
FIGURE9_COLUMNS += with_ends("share")
PANELS = 3  # per row
CROWDED = 14  # columns whose labels have no room beside each other
# the line on which all types lose the same share of their heads
ALIKE = {"color": "#AAAAAA", "linewidth": 0.7}
FIGURE10_COLUMNS = [*sweep.POINT, "type", "layers", *with_ends("pruned"), "active", "heads"]
FIGURE10_COLUMNS += [*with_ends("share"), "all_heads"]
IN_DECODER = ("decoder", "cross")  # figure 10


def figure8_numbers(tables: Tables) -> pd.DataFrame:
    """One row per head of each model; place: in its column, from 1 at the bottom, the same for all
    heads without a function;
    names: of its functions in detail; heads: of the model.

    A model without heads has one row.
    """
    corpus = tables.swept("encoder")
    functions = list(style.FUNCTIONS)
    frames = []
    for model, own in tables.each(corpus, "encoder"):
        heads = encoder_heads(own)
        # Heads with the same first function are neighbours, those that have it alone first.
        heads["key"] = [
            tuple(map(functions.index, text.split("; "))) for text in heads["functions"]
        ]
        heads = heads.sort_values(["key", "layer", "head"])
        named = heads["functions"] != "other"
        heads["place"] = named.cumsum().where(named, named.sum() + 1)
        heads["names"] = ["; ".join(_names(head)) for head in heads.to_dict("records")]
        column = heads if len(heads) else pd.DataFrame([{}])
        shared = {key: model[key] for key in ("corpus", "model", "lam", "target_heads", "seed")}
        column = column.assign(**shared, heads=len(heads), whole=not model["scope"])
        frames.append(column.reindex(columns=[*FIGURE8_COLUMNS, "whole"]))
    cells = pd.concat(frames, ignore_index=True).astype(
        dict.fromkeys(("place", "layer", "head"), "Int64")
    )
    return sweep.in_order(
        cells, {"heads": False, "whole": False, **sweep.WEAKEST_FIRST, "seed": True}
    )[FIGURE8_COLUMNS]


def _names(head: dict) -> list[str]:
    """The functions of a head in detail: `position −1`, `nsubj v→s`; relations from the largest
    margin to the smallest."""
    names = []
    for function in head["functions"].split("; "):
        if function == POSITIONAL:
            names.append(
                style.minus(f"position {head['positional_offset']:+.0f}").replace("+0", "0")
            )
        elif function == SYNTACTIC:
            by_margin = sorted(head["relations"], key=lambda name: -head[f"{name}_margin"])
            names += [
                f"{relation} {paper.direction_label(relation, end)}"
                for relation, end in map(parted, by_margin)
            ]
        else:
            names.append(function)
    return names


def figure8_draw(cells: pd.DataFrame) -> Figure:
    """Figure 8: functions of the encoder heads that pruning leaves (section 6.2.2).

    One column per model, from the one with the most heads to the one with the fewest; its height is
    the number of heads. A column stacks its heads by function: positional at the bottom, then
    syntactic, rare words. A cell has layer-head, as in the unpruned model, and the function of the
    head, of a syntactic one the relation with the largest margin ((+1): and one more). Heads
    without a function are one block, with their number. The mark beside a column is chance: how
    many heads with a function would be left, on average, had as many heads been chosen at random.
    """
    columns = style.by(cells, "model")
    texts = {
        place: _text(heads)
        for place, heads in cells.dropna(subset="place").groupby(["model", "place"])
    }
    most = max(1, cells["heads"].max())
    height = min(HEAD, TALLEST / most)
    drawn = Figure(figsize=(style.DOUBLE, most * height + 0.9), layout="constrained")
    axes = drawn.add_subplot()
    width = 0.84 * (style.DOUBLE - 0.2) / max(6, len(columns))  # inches of a cell
    longest = max([1, *map(len, texts.values())])
    size = min(6.0, height * 72 / 1.25, width * 72 / 0.56 / longest)
    if size < SMALLEST_TEXT:  # numbers alone
        texts = {place: text.partition(" ")[0] for place, text in texts.items()}
        size = min(6.0, height * 72 / 1.25, width * 72 / 2.5)
    whole = next(iter(columns.values()))
    by_chance = (whole["functions"].dropna() != "other").sum() / max(1, len(whole))
    for x, (model, column) in enumerate(columns.items()):
        for place, heads in column.dropna(subset="place").groupby("place"):
            box = {"left": x - 0.42, "bottom": place - 1, "width": 0.84, "height": len(heads)}
            style.function_cell(axes, heads["functions"].iloc[0].split("; "), **box)
            if size >= SMALLEST_TEXT:
                middle = place - 1 + len(heads) / 2
                style.cell_text(axes, x, middle, texts[model, place], size=size)
        left = column["heads"].iloc[0]
        if left < most:
            axes.plot(x + 0.465, by_chance * left, clip_on=False, **CHANCE)
    labels = [sweep.column_label(column.iloc[0], len(columns)) for column in columns.values()]
    axes.set_xticks(range(len(columns)), labels, rotation=90 if len(columns) > CROWDED else 0)
    axes.tick_params(axis="x", length=0)
    # Few columns keep the width of a cell instead of stretching over the page.
    spare = max(0.0, (6 - len(columns)) / 2)
    limits = -0.5 - spare, len(columns) - 0.5 + spare
    axes.set(xlim=limits, ylim=(0, 1.01 * most), xlabel="encoder heads left")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    title = f"{cells['corpus'].iloc[0]}, seed {cells['seed'].iloc[0]}: functions of the heads left"
    axes.set_title(style.wrap(title, inches=style.DOUBLE - 0.5))
    chance = style.marker_key("top of the heads with a function, by chance", **CHANCE)
    style.function_legend(axes, cells["functions"].dropna(), chance, loc="upper right")
    return drawn


def _text(cell: pd.DataFrame) -> str:
    """A head's number and its first function; of the heads without a function, how many they
    are."""
    head = cell.iloc[0]
    if head["functions"] == "other":
        return f"{len(cell)} other"
    first, *more = head["names"].split("; ")
    return f"{head['layer']}-{head['head']} {first}" + f" (+{len(more)})" * bool(more)


def figure9_numbers(tables: Tables) -> pd.DataFrame:
    """`active_heads` by attention type, then the paper's."""
    points = active_heads(tables, _types, FIGURE9_COLUMNS)
    return stack([points, _reported()], FIGURE9_COLUMNS) if len(points) else points


def active_heads(
    tables: Tables, groups: Callable[[pd.DataFrame], Iterable[dict[str, Any]]], columns: list[str]
) -> pd.DataFrame:
    """Points of each corpus that has models pruned with scope `all`: one row per target and group
    of heads.

    pruned: heads of all types, of `all_heads`; active: heads of the group, of `heads` before
    pruning, also as a share; `_low` and `_high`: range over seeds. `groups` gives, for the models
    of a corpus, the columns of each group: type, layers, heads, active.
    """
    frames = []
    for title, scores in style.by(tables.pruned(), "corpus").items():
        models = sweep.models(scores, scope="all")
        if len(models):
            rows = pd.concat(
                [models.assign(place=place, **group) for place, group in enumerate(groups(models))]
            )
            rows = rows.assign(share=rows["active"] / rows["heads"])
            keys = [*sweep.TARGET, "place", "type", "layers", "heads", "all_heads"]
            frames.append(
                sweep.over_seeds(rows, ["pruned", "active", "share"], keys).assign(corpus=title)
            )
    return stack(frames, columns)


def _types(models: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for kind in style.TYPES:
        active = models[f"{kind}_heads"]
        yield {"type": kind, "layers": "", "active": active, "heads": active.max()}


def _reported() -> pd.DataFrame:
    """The paper's models (table 2) and, for each of its corpora, the unpruned one."""
    whole = paper.HEADS_PER_TYPE
    rows = []
    for corpus in (paper.WMT, paper.SUBTITLES):
        models = [
            (row.encoder, row.decoder, row.cross) for row in paper.TABLE2 if row.corpus == corpus
        ]
        for active in [(whole, whole, whole), *models]:
            model = {
                "corpus": corpus,
                "kind": "reported",
                "pruned": 3 * whole - sum(active),
                "heads": whole,
            }
            rows += [
                model | {"type": kind, "active": count}
                for kind, count in zip(style.TYPES, active, strict=True)
            ]
    table = pd.DataFrame(rows)
    return table.assign(share=table["active"] / whole)


def figure9_draw(points: pd.DataFrame) -> Figure:
    """Figure 9: the share of the heads of each attention type that is left as pruning removes more
    (section 6.3.2).

    With scope `all`, encoder and decoder self-attention and cross-attention compete under one
    penalty. Shares instead of counts compare types of different depth. One panel per corpus, and
    one for each corpus of the paper, from its table 2. Types are moved aside a little, so that
    equal points do not cover each other.
    """
    corpora = style.by(points, "corpus")
    drawn, grid, panels = style.panels(
        len(corpora), across=PANELS, height=2.1, more_height=0.3, sharey=True
    )
    looks = {kind: look for kind, (_, look) in style.TYPES.items()}
    for axes, (corpus, rows) in zip(panels, corpora.items(), strict=True):
        heads = rows.groupby("type", sort=False)["heads"].first()
        counts = "/".join(f"{whole:.0f}" for whole in heads)
        shares(axes, rows, "type", looks, total=heads.sum(), of=f"{heads.sum():.0f} ({counts})")
        axes.plot([1, 0], [1, 0], zorder=0, **ALIKE)
        title = corpus + sweep.seeds_note(rows)
        axes.set_title(style.wrap(title, inches=style.DOUBLE / PANELS - 0.1, size=7), size=7)
    for axes in grid[:, 0]:
        axes.set_ylabel("heads left, share of their type")
    handles = [style.key(look, name) for name, look in style.TYPES.values()]
    handles += [Line2D([], [], label="all types pruned alike", **ALIKE), *sweep.key(points)]
    style.legend(drawn, handles, ncols=4)
    return drawn


def shares(
    axes: Axes,
    rows: pd.DataFrame,
    column: str,
    looks: dict[str, style.Series],
    *,
    total: float,
    of: str,
) -> None:
    """Draw the share of heads left of each group, named in `column`, against the share of all
    heads that is left, of `total`, which the axis calls `of`."""
    for place, (group, look) in enumerate(looks.items()):
        own = rows[rows[column] == group]
        left = own.assign(left=1 - own["pruned"] / total + style.dodge(place, len(looks)))
        for series, line in sweep.split(left, look):
            sweep.line(axes, series.iloc[::-1], x="left", y="share", look=line)
    style.share_axis(axes, of, ylim=(-0.03, 1.05))
    axes.yaxis.set_major_formatter("{x:.0%}")


def figure10_numbers(tables: Tables) -> pd.DataFrame:
    return active_heads(tables, _layers, FIGURE10_COLUMNS)


def _layers(models: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for kind in IN_DECODER:
        kept = np.stack(models[f"{kind}_layers"].to_list())  # (models, L)
        size = 2 if kept.shape[1] > 2 else 1
        for first in range(0, kept.shape[1], size):
            last = min(first + size, kept.shape[1])
            layers = f"{first + 1}-{last}" if last > first + 1 else f"{last}"
            heads, active = kept.max(axis=0)[first:last].sum(), kept[:, first:last].sum(axis=1)
            yield {"type": kind, "layers": layers, "heads": heads, "active": active}


def figure10_draw(points: pd.DataFrame) -> Figure:
    """Figure 10: in which layers of the decoder heads are left as pruning removes more
    (section 6.3.2).

    Scope `all`; layers in pairs, as in the paper, the last one alone where their number is odd, and
    both alone where there are two. The figure shows shares of the group's heads instead of counts,
    so that a pair and a single layer can be compared. Groups are moved aside a little, so that
    equal points do not cover each other.
    """
    corpora = style.by(points, "corpus")
    drawn = Figure(figsize=(style.DOUBLE, 2.3 * len(corpora)), layout="constrained")
    blocks = drawn.subfigures(len(corpora), 1, squeeze=False)[:, 0]
    for block, (corpus, rows) in zip(blocks, corpora.items(), strict=True):
        block.suptitle(style.wrap(corpus + sweep.seeds_note(rows), inches=style.DOUBLE, size=8))
        total = rows["all_heads"].iloc[0]
        for axes, kind in zip(block.subplots(1, 2, sharey=True), IN_DECODER, strict=True):
            heads = rows[rows["type"] == kind].groupby("layers", sort=False)["heads"].first()
            looks = {
                layers: style.ordered(number, len(heads))
                for number, layers in enumerate(heads.index)
            }
            own = rows[rows["type"] == kind]
            shares(axes, own, "layers", looks, total=total, of=f"all {total}")
            axes.set_title(style.TYPES[kind][0])
        block.axes[0].set_ylabel("heads left, share of the group")
        names = [
            f"layer{'s' * ('-' in layers)} {layers.replace('-', '–')} ({heads_text(heads[layers])})"
            for layers in looks
        ]
        handles = [*map(style.key, looks.values(), names), *sweep.key(points)]
        block.legend(handles=handles, loc="outside lower center", ncols=4)
    return drawn
