"""Relevance of the encoder's heads (section 4): figures 1 and 2, and what each rule of relevance
agrees with."""

from collections.abc import Iterable
from contextlib import suppress

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, FigureBase

from specialized_heads.report import style, sweep
from specialized_heads.report.claims.evidence import NotTestable
from specialized_heads.report.claims.inference import (
    area,
    area_interval,
    rank_correlation,
)
from specialized_heads.report.claims.of_heads import top_share
from specialized_heads.report.data import (
    RULES,
    Tables,
    encoder_heads,
    first_seed,
    spearman,
    stack,
    with_ends,
)
from specialized_heads.report.style import minus

CELL_HEIGHT = 0.2  # inches
SMALLEST_TEXT = 4.5  # points; smaller numbers are left out
BAR = 0.14  # height of the mark of a function, in cells
RANKED = ["corpus", "seed", "layer", "rank", "head", "relevance", "confidence", "functions"]
RULES_COLUMNS = "corpus seed rule layer heads sum top_head top_quarter".split()
RULES_COLUMNS += [*with_ends("confidence"), "order", "labelled", "mean_rank", *with_ends("auc")]
RULES_CAPTION = (
    "Relevance of the baseline's encoder heads by rule, as shares of their layer; lowest to "
    "highest over layers. halves agree: share of 100 random splits of the development set whose "
    "halves have the same most relevant head. ρ: Spearman's, by layer and within all layers "
    "together. mean rank of the heads with a function in their layers, 1 for the most relevant. "
    "AUC: probability that a head with a function is more relevant than one of its layer without "
    "(Newcombe's interval). top quarter: its share of the layer's relevance, signs ignored. "
    "Intervals: 95%."
)


def figure1_numbers(tables: Tables) -> pd.DataFrame:
    return ranked_heads(tables, tables.corpora()[:1])


def figure1_draw(heads: pd.DataFrame) -> Figure:
    """Figure 1: relevance, confidence and function of the encoder's self-attention heads, by layer
    and relevance.

    The first corpus; figure 2 shows the others. The most relevant head of a layer is on top.
    Relevances are divided by the sum of their absolute values over the layer, so that a column sums
    to 1 if none is negative. Values are printed in the cells as long as they are legible. A bar at
    the foot of a cell has the colour of the head's function. A cell without a value is hatched; a
    layer with fewer heads than another ends earlier.
    """
    return drawn(heads, across=1, confidence=True)


def ranked_heads(tables: Tables, corpora: Iterable[str]) -> pd.DataFrame:
    """The encoder heads of each corpus's baseline, with their share and rank by relevance in the
    layer, 1 for the most relevant.

    Of the first seed. A model without encoder heads has one row.
    """
    frames = []
    for corpus in corpora:
        heads = encoder_heads(first_seed(tables.analysed(corpus, "baseline")))
        heads = heads.sort_values(["layer", "relevance", "head"], ascending=[True, False, True])
        total = heads["relevance"].abs().groupby(heads["layer"]).transform("sum")
        heads["relevance"] /= total.where(total > 0, 1.0)
        heads = heads.assign(rank=heads.groupby("layer").cumcount() + 1)
        frames.append((heads if len(heads) else pd.DataFrame([{}])).assign(corpus=corpus))
    return stack(frames, RANKED).astype(dict.fromkeys(("seed", "layer", "rank", "head"), "Int64"))


def value_grid(
    block: FigureBase,
    axes: Axes,
    heads: pd.DataFrame,
    column: str,
    ends: tuple[float, float],
    *,
    cell_width: float,
) -> None:
    """Draw one value of the heads of a model as a heat map, functions marked, with a colour bar
    from one end to the other.

    `cell_width` is in inches; numbers are not printed in narrow cells.
    """
    values = heads.pivot(index="rank", columns="layer", values=column)
    values = values.reindex(
        index=range(1, heads["rank"].max() + 1), columns=range(1, heads["layer"].max() + 1)
    )
    size = min(7.0, cell_width * 72 / 2.7, CELL_HEIGHT * 72 / 1.6)
    digits, (low, high) = "z.2f" if size >= SMALLEST_TEXT else "", ends
    mesh = style.heat_map(
        axes,
        values.to_numpy(float),
        colours=style.GREYS,
        low=low,
        high=high,
        digits=digits,
        size=size,
    )
    for head in heads[heads[column].isna()].itertuples():
        style.hatched_cell(axes, head.layer, head.rank)
    for head in heads[heads["functions"] != "other"].itertuples():
        bar = {
            "left": head.layer - 0.47,
            "bottom": head.rank + 0.47 - BAR,
            "width": 0.94,
            "height": BAR,
        }
        style.function_cell(axes, head.functions.split("; "), **bar)
    style.colour_bar(block, mesh, axes, pad=0.02, aspect=18)


def function_grid(axes: Axes, heads: pd.DataFrame, *, cell_width: float) -> None:
    """Draw the functions of the heads of a model; the number in a cell is the head's number in its
    layer."""
    size = min(7.0, cell_width * 72 / 1.8, CELL_HEIGHT * 72 / 1.6)
    for head in heads.itertuples():
        corner = {"left": head.layer - 0.5, "bottom": head.rank - 0.5}
        style.function_cell(axes, head.functions.split("; "), **corner, width=1, height=1)
        if size >= SMALLEST_TEXT:
            style.cell_text(axes, head.layer, head.rank, str(head.head), size=size)
    style.bare(axes)


def drawn(heads: pd.DataFrame, *, across: int, confidence: bool) -> Figure:
    """Draw `ranked_heads`, this many corpora side by side, on one scale; a model without encoder
    heads gets a message.

    Relevance and function of each head, and its confidence if there is room for it.
    """
    seeds = heads.groupby("corpus", sort=False)["seed"].first()
    titles = list(seeds.index)
    heads = heads.dropna(subset="layer")
    width = style.DOUBLE if across == 2 or confidence else style.SINGLE
    beside = [
        heads[heads["corpus"].isin(titles[start : start + across])]
        for start in range(0, len(titles), across)
    ]
    heights = [CELL_HEIGHT * max([3, *models["rank"]]) + 0.75 for models in beside]
    figure = Figure(
        figsize=(width, sum(heights) + (0.25 if width == style.DOUBLE else 0.4)),
        layout="constrained",
    )
    blocks = figure.subfigures(len(beside), across, height_ratios=heights, squeeze=False).flat
    known = heads["relevance"].dropna()
    ends = {"relevance": (min([0.0, *known]), max([0.0, *known]) or 1.0)}
    if confidence:
        ends["confidence"] = (0.0, 1.0)
    for block, title in zip(blocks, titles, strict=False):  # the last block may stay empty
        model = heads[heads["corpus"] == title]
        text = f"{style.of_seed(title, seeds[title])}: {len(model)} encoder heads"
        block.suptitle(style.wrap(text, inches=width / across, size=8))
        if model.empty:
            style.message(
                block.subplots(), "no encoder head is left in this model", inches=width / across
            )
            continue
        *maps, function = block.subplots(1, len(ends) + 1, width_ratios=[*[1.2] * len(ends), 1])
        layers, ranks = int(model["layer"].max()), int(model["rank"].max())
        cell_width = (1.75 if confidence else 1.2) / layers
        for axes, (column, scale) in zip(maps, ends.items(), strict=True):
            value_grid(block, axes, model, column, scale, cell_width=cell_width)
        function_grid(function, model, cell_width=cell_width)
        for axes, name in zip(
            [*maps, function], ("relevance, share of the layer", *[*ends][1:], "function (head)")
        ):
            axes.set(title=name, xlim=(0.5, layers + 0.5), ylim=(ranks + 0.5, 0.5), xlabel="layer")
            axes.set(xticks=range(1, layers + 1), yticks=range(1, ranks + 1))
        maps[0].set_ylabel("rank by relevance")
    ncols = 5 if width > style.SINGLE else 3
    style.function_legend(figure, heads["functions"], loc="outside lower center", ncols=ncols)
    return figure


def figure2_numbers(tables: Tables) -> pd.DataFrame:
    return ranked_heads(tables, tables.corpora()[1:])


def figure2_draw(heads: pd.DataFrame) -> Figure:
    """Figure 2: relevance and function of the encoder's self-attention heads on each of the other
    corpora.

    All corpora share one scale of relevance, so that their heads can be compared.
    """
    return drawn(heads, across=min(2, heads["corpus"].nunique()), confidence=False)


def rules_numbers(tables: Tables) -> pd.DataFrame:
    """For each baseline and rule, a row per encoder layer and one, without a layer, of all
    together.

    sum: of the relevances, of which 1 is left if their signs never differ; top_head: how often
    halves of the development set agree; confidence, order: rank correlation with confidence and
    with the first rule.
    """
    heads = tables.heads[(tables.heads["kind"] == "baseline") & (tables.heads["type"] == "encoder")]
    rules = [name for name in RULES if f"relevance_{name}" in tables.heads]
    rows = []
    for (corpus, seed), encoder in heads.groupby(["corpus", "seed"], sort=False):
        measured = [name for name in rules if encoder[f"relevance_{name}"].notna().any()]
        if not measured:
            continue
        # The column `relevance` is that of the first rule.
        measured.sort(
            key=lambda name: not np.allclose(encoder[f"relevance_{name}"], encoder["relevance"])
        )
        first, labelled = f"relevance_{measured[0]}", encoder["functions"].map(len) > 0
        for name in measured:
            rule, same_rule = f"relevance_{name}", {"corpus": corpus, "seed": seed, "rule": name}
            for layer, same in encoder.groupby("layer"):
                row = {"layer": layer, "heads": len(same), "sum": same[rule].sum()}
                row |= {
                    "top_head": same[f"halves_{name}"].iloc[0],
                    "top_quarter": top_share(same[rule]),
                }
                row["confidence"] = spearman(same[rule], same["confidence"])
                rows.append(same_rule | row | {"order": spearman(same[rule], same[first])})
            rows.append(same_rule | _together(encoder, rule, first, labelled))
    return pd.DataFrame(rows, columns=RULES_COLUMNS).astype({"layer": "Int64", "labelled": "Int64"})


def _together(
    encoder: pd.DataFrame, rule: str, first: str, labelled: pd.Series
) -> dict[str, float]:
    """The measures over all layers, as far as the heads have what they need."""
    layers = encoder[["layer"]]
    ranks = encoder.groupby("layer")[rule].rank(ascending=False)
    row = {"heads": len(encoder), "labelled": labelled.sum(), "mean_rank": ranks[labelled].mean()}
    with suppress(NotTestable):
        [row["order"]], _ = rank_correlation(encoder, encoder[rule], encoder[first])
        [rho], ends = rank_correlation(encoder, encoder[rule], encoder["confidence"])
        row |= dict(zip(with_ends("confidence"), (rho, *ends), strict=True))
    with suppress(NotTestable):
        ends = area_interval(encoder[rule], labelled, layers)
        row |= dict(
            zip(with_ends("auc"), (area(encoder[rule], labelled, layers), *ends), strict=True)
        )
    return row


def rules_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Table: relevance of the baseline's encoder heads by each configured rule: what it adds up to,
    and what it agrees with.

    The measures are those of the claims about relevance (section 4), whose verdicts rest on the
    first rule.
    """
    lines = []
    first = rows.groupby("corpus")["rule"].first().unique()  # each corpus may have its own
    against = RULES[first[0]] if len(first) == 1 else "the corpus's first rule"
    for (corpus, seed, rule), same in rows.groupby(["corpus", "seed", "rule"], sort=False):
        layers, whole = same[same["layer"].notna()], same[same["layer"].isna()].squeeze()
        line = {"corpus": corpus, "seed": str(seed), "rule": RULES[rule]}
        line["sum over a layer"] = minus(sweep.between(layers["sum"], "{:.2f}"))
        line["halves agree on the top head"] = sweep.between(layers["top_head"], "{:.2f}")
        line["ρ with confidence, by layer"] = minus(
            " ".join("–" if pd.isna(value) else f"{value:.2f}" for value in layers["confidence"])
        )
        line["ρ with confidence"] = sweep.interval_text(whole, "confidence", digits=2) or "–"
        rank = f"{whole['mean_rank']:.1f} of {layers['heads'].max()}" if whole["labelled"] else "–"
        line["mean rank of heads with a function"] = rank
        line["AUC, function against none"] = sweep.interval_text(whole, "auc", digits=2) or "–"
        line["share of the top quarter"] = sweep.between(layers["top_quarter"], "{:.2f}")
        order = whole["order"]
        line[f"ρ with {against}"] = "–" if pd.isna(order) else minus(f"{order:.2f}")
        lines.append(line)
    return pd.DataFrame(lines)
