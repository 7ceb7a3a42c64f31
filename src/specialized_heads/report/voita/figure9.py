"""Figure 9: which share of the heads of each attention type stays active as more heads are pruned (section 6.3.2).

With scope `all`, encoder and decoder self-attention and cross-attention compete under one penalty. Shares instead of counts
compare types of different depth. One panel per corpus, and one for each corpus of the paper, from its table 2.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.report import style
from specialized_heads.report.data import Tables, stack, with_ends
from specialized_heads.report.voita import paper, sweep

COLUMNS = ["corpus", "kind", "lam", "target_heads", "seeds", "type", *with_ends("pruned", "active")]
COLUMNS += ["heads", *with_ends("share")]
PANELS = 3  # per row
ALIKE = {"color": "#AAAAAA", "linewidth": 0.7}  # the line on which all types lose the same share of their heads


def numbers(tables: Tables) -> pd.DataFrame:
    """`active_heads` by attention type, then the paper's."""
    points = active_heads(tables, _types, COLUMNS)
    return stack([points, _reported()], COLUMNS) if len(points) else points


def active_heads(
    tables: Tables, groups: Callable[[pd.DataFrame], Iterable[dict[str, Any]]], columns: list[str]
) -> pd.DataFrame:
    """Points of each corpus that has models pruned with scope `all`: one row per target and group of heads.

    pruned: heads of all types, of `all_heads`; active: heads of the group, of `heads` before pruning, also as a share; `_low` and
    `_high`: range over seeds. `groups` gives, for the models of a corpus, the columns of each group: type, layers, heads, active.
    """
    frames = []
    for title, scores in style.by(tables.pruned(), "corpus").items():
        models = sweep.models(scores, scope="all")
        if len(models):
            rows = pd.concat([models.assign(place=place, **group) for place, group in enumerate(groups(models))])
            rows = rows.assign(share=rows["active"] / rows["heads"])
            keys = [*sweep.TARGET, "place", "type", "layers", "heads", "all_heads"]
            frames.append(sweep.over_seeds(rows, ["pruned", "active", "share"], keys).assign(corpus=title))
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
        models = [(row.encoder, row.decoder, row.cross) for row in paper.TABLE2 if row.corpus == corpus]
        for active in [(whole, whole, whole), *models]:
            model = {"corpus": corpus, "kind": "reported", "pruned": 3 * whole - sum(active), "heads": whole}
            rows += [model | {"type": kind, "active": count} for kind, count in zip(style.TYPES, active, strict=True)]
    table = pd.DataFrame(rows)
    return table.assign(share=table["active"] / whole)


def draw(points: pd.DataFrame) -> Figure:
    """Draw one panel per corpus, ours and the paper's."""
    corpora = style.by(points, "corpus")
    drawn, grid, panels = style.panels(len(corpora), across=PANELS, height=2.0, more_height=0.3, sharey=True)
    looks = {kind: look for kind, (_, look) in style.TYPES.items()}
    for axes, (corpus, rows) in zip(panels, corpora.items(), strict=True):
        heads = rows.groupby("type", sort=False)["heads"].first()
        shares(axes, rows, "type", looks, total=heads.sum())
        axes.plot([0, heads.sum()], [1, 0], zorder=0, **ALIKE)
        counts = "/".join(f"{whole:.0f}" for whole in heads)
        axes.set_xlabel(f"heads pruned, of {heads.sum():.0f} ({counts})")
        title = corpus + sweep.seeds_note(rows)
        axes.set_title(style.wrap(title, inches=style.DOUBLE / PANELS - 0.1, size=7), size=7)
    for axes in grid[:, 0]:
        axes.set_ylabel("active heads, share of their type")
    handles = [style.key(look, name) for name, look in style.TYPES.values()]
    handles += [Line2D([], [], label="all types pruned alike", **ALIKE), *sweep.key(points)]
    drawn.legend(handles=handles, loc="outside lower center", ncols=4)
    return drawn


def shares(axes: Axes, rows: pd.DataFrame, column: str, looks: dict[str, style.Series], *, total: float) -> None:
    """Draw the share of active heads of each group, named in `column`, against the number of pruned heads, of `total`."""
    for group, look in looks.items():
        for series, line in sweep.split(rows[rows[column] == group], look):
            sweep.line(axes, series, x="pruned", y="share", look=line)
    axes.set(xlim=(-0.02 * total, 1.02 * total), ylim=(-0.03, 1.05))
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.grid(axis="y")
