"""Functions of the encoder's heads: a table of them, when they emerge, and attention to rare words
(figure 5)."""

from collections.abc import Iterable, Iterator
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.ticker import NullFormatter

from specialized_heads.heads.functions import (
    BY_NAME,
    FUNCTIONS,
    OF_TOKENS,
    POSITIONAL,
    RARE_WORDS,
    SYNTACTIC,
    Function,
)
from specialized_heads.parsing.relations import DIRECTIONS
from specialized_heads.report import style, sweep
from specialized_heads.report.data import Tables, first_seed, parted
from specialized_heads.stage import read_json

LABELS_CAPTION = (
    "Functions of the baseline's encoder heads: development loss (nats per token); best share of "
    "largest weights at each neighbour, among the queries that have that neighbour; largest "
    "margin over the best fixed offset, for a single seed with its 95% interval and its relation; "
    "best share of largest weights at the least frequent token; number of heads with each label "
    "(positional, syntactic with an interval above zero, rare words), of all. With several seeds: "
    "lowest to highest."
)
EMERGENCE_COLUMNS = ["corpus", "seed", "update", "measure", "name", "value", "layer", "head"]
EMERGENCE_COLUMNS += ["threshold"]
# Columns of the table of heads.
SHARES = {"share_-1": "previous token", "share_+0": "same token", "share_+1": "next token"}
BACKWARDS = "dependent → head"
PANELS = {  # measure: title of its panel
    "loss": "development loss, nats/token",
    "neighbours": "share at a neighbour",
    **{function.name: function.measure for function in FUNCTIONS if function.name != POSITIONAL},
    "relevance": "highest relevance in a layer",
}
THRESHOLDS = {function.name: function.threshold for function in OF_TOKENS}
THRESHOLDS |= {"neighbours": BY_NAME[POSITIONAL].threshold}
HEIGHT, KEY = 1.55, 0.9  # inches of a row of panels, and of the keys below the last one
HALFWAY_CAPTION = (
    "The update of the baseline's training at which each curve of figure emergence passes, for "
    "good, the midpoint between its values at the first checkpoint and in the finished model "
    "(geometric mean over seeds). A development loss that was not measured at the first checkpoint "
    "is left out."
)
FIGURE5_COLUMNS = ["corpus", "seed", "layer", "head", "kind", "score", "sentence"]
FIGURE5_COLUMNS += ["query", "query_token", "key", "key_token", "attention", "rarest"]
LONGEST = 16  # characters of a label; longer tokens are cut
HALFWAY_COLUMNS = ["corpus", "measure", "name", "seeds", "first", "last", "half"]


def labels_numbers(tables: Tables) -> pd.DataFrame:
    """One row per baseline.

    heads: of the encoder; labelled: those with a function; uncertain: those of them whose interval
    includes zero;
    `share_<offset>`: the largest share at each neighbour; margin: the largest, with interval and
    relation; `<function>_heads`: heads with this label.
    """
    rows = []
    baselines = tables.translation().query("kind == 'baseline'")
    for model in baselines.itertuples():
        heads = tables.of(model.corpus).analysed(model.corpus, "baseline")
        encoder = heads[(heads["seed"] == model.seed) & (heads["type"] == "encoder")]
        row = {name: getattr(model, name) for name in ("corpus", "seed", "updates", "dev_loss")}
        row |= {"heads": len(encoder), "labelled": int((encoder["functions"].map(len) > 0).sum())}
        uncertain = encoder.loc[encoder["relations_certain"].map(len) == 0, "functions"]
        row["uncertain"] = sum(list(names) == [SYNTACTIC] for names in uncertain)
        row |= encoder[list(SHARES)].max().to_dict()
        margins = encoder.filter(regex="_margin$").stack().dropna()
        row |= {"relation": None, "margin": nan, "margin_low": nan, "margin_high": nan}
        if len(margins):  # none without encoder heads or without arcs
            head, column = margins.idxmax()
            row["relation"] = column.removesuffix("_margin")
            row |= {
                f"margin{end}": encoder.at[head, f"{column}{end}"] for end in ("", "_low", "_high")
            }
        labels = [name for names in encoder["functions"] for name in names]
        row |= {function.score: encoder[function.score].max() for function in OF_TOKENS}
        row |= {_column(function): labels.count(function.name) for function in FUNCTIONS}
        row["syntactic_heads"] = int((encoder["relations_certain"].map(len) > 0).sum())
        rows.append(row)
    return pd.DataFrame(rows)


def labels_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Table: functions of the baseline's encoder heads, one row per corpus.

    The table gives, for each function, the score of the best head and the number of heads with the
    label. Corpora can be the same text trained by different recipes (config/studies/recipes.yaml),
    which makes this the table that compares them.
    """
    lines = []
    for corpus, seeds in rows.groupby("corpus", sort=False):
        best = seeds.sort_values("margin", na_position="first").iloc[-1]
        line = {"corpus": corpus, "seeds": str(len(seeds)), "updates": f"{best['updates']:,}"}
        line["dev loss"] = sweep.between(seeds["dev_loss"], "{:.3f}")
        for column, name in SHARES.items():
            line[name] = sweep.between(seeds[column], "{:.2f}")
        margin = sweep.between(100 * seeds["margin"], "{:+.0f}")
        if len(seeds) == 1 and pd.notna(best["relation"]):
            low, high = 100 * best["margin_low"], 100 * best["margin_high"]
            margin += f" [{low:.0f}, {high:.0f}] {relation_name(best['relation'])}"
        line["syntactic margin, points"] = margin
        for function in OF_TOKENS:
            line[function.measure] = sweep.between(seeds[function.score], "{:.2f}")
        for function in FUNCTIONS:
            untested = function.score in seeds and seeds[function.score].isna().all()
            count = sweep.between(seeds[_column(function)], "{:.0f}") + f" of {best['heads']}"
            line[f"{function.name} heads"] = "–" if untested else count
        lines.append(line)
    return pd.DataFrame(lines)


def labels_notes(rows: pd.DataFrame) -> list[str]:
    """How many heads of each baseline have a function and, if none has, why that is likely."""
    lines = []
    for row in rows.itertuples():
        have = "has" if row.labelled == 1 else "have"
        line = (
            f"{row.corpus}, seed {row.seed}: {row.labelled} of {row.heads} encoder heads {have} "
            f"a function"
        )
        if row.uncertain:
            line += f", {row.uncertain} of them with a margin whose interval includes zero"
        if not row.labelled:
            # Imported models have 0 updates.
            few = f"{row.updates:,} updates of training are few, or " if row.updates else ""
            line += f"; most likely {few}the model is small"
        lines.append(f"{line}.")
    return lines


def _column(function: Function) -> str:
    """The column with the number of heads that have a function."""
    # not the name alone, which may be that of its score
    return f"{function.name.replace(' ', '_')}_heads"


def emergence_numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus, seed, update, measure (a panel) and name (a curve), with the encoder head
    that it is of, if any.

    threshold: the share or margin that makes a function.
    """
    rows = []
    followed = tables.heads.loc[tables.heads["kind"] == "checkpoint", "corpus"].unique()
    logs = tables.logs[(tables.logs["kind"] == "baseline") & tables.logs["corpus"].isin(followed)]
    for point in logs.dropna(subset="dev_loss").itertuples():
        rows.append(
            [point.corpus, point.seed, point.update, "loss", "", point.dev_loss, None, None, None]
        )
    ends = logs.groupby(["corpus", "seed"])["update"].max()
    heads = tables.heads[
        tables.heads["kind"].isin(["checkpoint", "baseline"])
        & tables.heads["corpus"].isin(followed)
    ]
    margins = tables.relations.groupby("corpus")["syntactic_margin"].first()
    for (corpus, seed, update), same in heads.groupby(
        ["corpus", "seed", "update"], sort=False, dropna=False
    ):
        encoder = same[same["type"] == "encoder"]
        update = ends[corpus, seed] if pd.isna(update) else update
        for measure, name, values in curves(encoder):
            if values.notna().any():
                best = encoder.loc[values.idxmax()]
                threshold = margins[corpus] if measure == SYNTACTIC else THRESHOLDS.get(measure)
                found = [values.max(), best["layer"], best["head"], threshold]
                rows.append([corpus, seed, update, measure, name, *found])
    return pd.DataFrame(rows, columns=EMERGENCE_COLUMNS).astype({"layer": "Int64", "head": "Int64"})


def curves(encoder: pd.DataFrame) -> Iterator[tuple[str, str, pd.Series]]:
    """For each curve but the loss: its panel, its name, and the value of each encoder head."""
    for column, name in SHARES.items():
        yield "neighbours", name, encoder[column]
    for column in encoder.filter(regex="_margin$"):
        yield SYNTACTIC, relation_name(column.removesuffix("_margin")), encoder[column]
    for function in OF_TOKENS:
        yield function.name, function.name, encoder[function.score]
    for layer, heads in encoder.groupby("layer"):
        yield (
            "relevance",
            f"layer {layer}",
            encoder["relevance"].where(encoder.index.isin(heads.index)),
        )


def relation_name(column: str) -> str:
    """`nsubj_head_to_dependent` as the figure shows it: the relation, and which end looks at
    which."""
    relation, direction = parted(column)
    return f"{relation}, {'head → dependent' if direction == DIRECTIONS[0] else BACKWARDS}"


def emergence_draw(points: pd.DataFrame) -> Figure:
    """When during training the heads of the baseline acquire their functions.

    Each panel follows one kind of evidence over the baseline's training: the development loss, and
    for each function the best encoder head at that moment, which need not be the same head
    throughout. Neighbours are the previous, the same and the next token (section 5.1), syntactic
    margins are accuracies above the best fixed offset (5.2), rare words the share of largest
    weights on the least frequent token (5.3), relevance that of the most relevant head of each
    layer (4).
    """
    corpora = style.by(points, "corpus")
    first, last = points["update"].min(), points["update"].max()
    decades = 10.0 ** np.arange(8)
    ticks = [first, *decades[(decades >= 2 * first) & (decades <= last / 2)], last]
    figure = Figure(figsize=(style.DOUBLE, HEIGHT * len(corpora) + KEY), layout="constrained")
    grid = figure.subplots(len(corpora), len(PANELS), squeeze=False, sharex=True)
    for axes, (corpus, own) in zip(grid[:, 0], corpora.items(), strict=True):
        seeds = ", ".join(map(str, own["seed"].unique()))
        axes.set_ylabel(f"{style.wrap(corpus, inches=HEIGHT - 0.4)}\nseed {seeds}")
    for column, (measure, title) in zip(grid.T, PANELS.items(), strict=True):
        looks = _looks(points.loc[points["measure"] == measure, "name"].unique())
        for axes, own in zip(column, corpora.values(), strict=True):
            _panel(axes, own[own["measure"] == measure], looks)
        column[0].set_title(
            style.wrap(title, inches=style.DOUBLE / len(PANELS) - 0.25, size=7), size=7
        )
        column[-1].set_xlabel("update")
        column[-1].set_xticks(ticks)
        column[-1].xaxis.set_major_formatter("{x:,.0f}")
        column[-1].xaxis.set_minor_formatter(NullFormatter())
        if len(looks) > 1:
            lines = {
                name.partition(",")[0]: look | {"linestyle": "-"} for name, look in looks.items()
            }
            if measure == SYNTACTIC:
                lines["head → dependent"] = {"color": style.PAPER_COLOUR}
                lines[BACKWARDS] = lines["head → dependent"] | {"linestyle": "--"}
            handles = [Line2D([], [], label=name, **look) for name, look in lines.items()]
            place = {"loc": "upper center", "bbox_to_anchor": (0.4, -0.28)}
            column[-1].legend(handles=handles, fontsize=6, handlelength=2.6, **place)
    return figure


def _looks(names: Iterable[str]) -> dict[str, dict[str, object]]:
    """How each curve of a panel is drawn; both directions of a relation have its colour, one of
    them dashes."""
    relations = list(dict.fromkeys(name.partition(",")[0] for name in names))
    looks = {}
    for name in names:
        look = style.series(relations.index(name.partition(",")[0]))
        line = "--" if name.endswith(BACKWARDS) else "-"
        looks[name] = {
            "color": look.colour,
            "marker": look.marker,
            "markersize": 2,
            "linestyle": line,
        }
    return looks


def _panel(axes: Axes, points: pd.DataFrame, looks: dict[str, dict[str, object]]) -> None:
    for name, curve in points.groupby("name", sort=False):
        by_update, look = curve.groupby("update")["value"], looks[name]
        mean = by_update.mean()
        axes.plot(mean.index, mean, **look)
        axes.fill_between(
            mean.index,
            by_update.min(),
            by_update.max(),
            color=look["color"],
            alpha=0.2,
            linewidth=0,
        )
    for threshold in points["threshold"].dropna().unique():
        axes.axhline(threshold, **style.PAPER_LINE)
    axes.set_xscale("log")
    axes.tick_params(labelsize=6)
    axes.grid(axis="y")


def halfway_numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus and curve of the figure, the earliest first.

    first and last: its ends, means over seeds; half: the update by which it has gone half of the
    way between them, for good; geometric mean over seeds.
    """
    points = emergence_numbers(tables)
    first = points[points["measure"] != "loss"].groupby("corpus")["update"].min()  # checkpoint
    rows = []
    for curve, own in points.groupby(["corpus", "measure", "name"], sort=False):
        ends, halves = [], []
        for _, same in own.sort_values("update").groupby("seed"):
            start = first.get(curve[0], same["update"].min())
            same = same[same["update"] >= start]
            if start not in set(same["update"]):  # the curve does not show where it began
                continue
            values = same["value"].to_numpy()
            ends.append((values[0], values[-1]))
            way = (values - values[0]) * np.sign(values[-1] - values[0])
            below = np.flatnonzero(way < way[-1] / 2)
            halves.append(same["update"].to_numpy()[below[-1] + 1 if len(below) else 0])
        if ends:
            rows.append(
                [*curve, len(ends), *np.mean(ends, axis=0), round(np.exp(np.mean(np.log(halves))))]
            )
    return pd.DataFrame(rows, columns=HALFWAY_COLUMNS).sort_values(
        ["corpus", "half"], kind="stable", ignore_index=True
    )


def halfway_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """The order in which the functions of heads emerge in training: when each curve of the figure
    passes its midpoint."""
    names = rows["name"].map(lambda name: f": {name}" if name else "")
    table = rows[["corpus"]].assign(curve=rows["measure"].map(PANELS) + names)
    for column in ("first", "last"):
        table[column] = rows[column].map("{:.2f}".format)
    table["half-way update"] = rows["half"].map("{:,.0f}".format)
    return table.assign(seeds=rows["seeds"].map(str))


def figure5_numbers(tables: Tables, examples: dict[str, Path]) -> pd.DataFrame:
    """One row per pair of tokens of each sentence; query and key are positions from 1, rarest:
    whether the key is the rarest."""
    rows = []
    for title, path in examples.items():
        file = read_json(path)
        seed = first_seed(tables.analysed(title, "baseline"))["seed"].iloc[0]
        for number, sentence in enumerate(file["sentences"], start=1):
            tokens, weights = sentence["tokens"], np.asarray(sentence["attention"], float)
            head = [title, seed, file["layer"], file["head"], file["kind"], file["score"], number]
            for query, key in np.ndindex(weights.shape):
                pair = [query + 1, tokens[query], key + 1, tokens[key]]
                rows.append(head + pair + [weights[query, key], key == sentence["rarest"]])
        if not file["sentences"]:
            rows.append([title, seed, None, None, file["kind"], *[None] * 8])
    return pd.DataFrame(rows, columns=FIGURE5_COLUMNS)


def figure5_draw(weights: pd.DataFrame) -> Figure:
    """Figure 5: attention maps of the rare-words head on real sentences (section 5.3).

    Rows are the tokens that attend, columns the tokens attended to; the column of the sentence's
    rarest token is framed. Where no head passed the threshold, the figure shows the best head of
    the lowest layer and says so.
    """
    title, seed, layer, head, kind, score = weights.iloc[0][FIGURE5_COLUMNS[:6]]
    drawn = Figure(figsize=(style.DOUBLE, 2.5), layout="constrained")
    drawn.get_layout_engine().set(w_pad=0.06)
    if pd.isna(layer):
        style.message(drawn.subplots(), f"{title}: {kind}", inches=style.DOUBLE)
        return drawn
    which = f"rare-words head {layer}-{head}"
    if kind != "rare words":
        which = f"no rare-words head; the best of layer {layer} is {layer}-{head}"
    heading = f"{title}, seed {seed}: {which}, with its largest weight on the rarest token in "
    heading += f"{score:.0%} of cases"
    drawn.suptitle(style.wrap(heading, inches=style.DOUBLE, size=8))
    sentences = style.by(weights, "sentence").values()
    widths = [same["key"].max() for same in sentences]
    panels = drawn.subplots(1, len(sentences), squeeze=False, width_ratios=widths)[0]
    for axes, same in zip(panels, sentences, strict=True):
        attention = same.pivot(index="query", columns="key", values="attention")
        mesh = axes.pcolormesh(attention, cmap=style.GREYS, vmin=0, vmax=1)
        tokens = same.drop_duplicates("key")["key_token"].map(label_of)
        _label(axes, list(tokens), rarest=int(same["rarest"].argmax()))
    style.colour_bar(drawn, mesh, panels, "attention weight", shrink=0.6, aspect=20, panchor=False)
    return drawn


def _label(axes: Axes, tokens: list[str], *, rarest: int) -> None:
    """Label both sides of a map with its tokens, and frame the column of the rarest."""
    axes.set(aspect="equal", anchor="N", ylim=(len(tokens), 0))
    places = np.arange(len(tokens)) + 0.5
    axes.set_xticks(places, tokens, rotation=90)
    axes.set_yticks(places, tokens)
    axes.tick_params(labelsize=7.5, pad=1.5)
    style.bare(axes)
    colour = style.FUNCTIONS[RARE_WORDS]["facecolor"]
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        labels[rarest].set_fontweight("bold")
    frame = {"fill": False, "edgecolor": colour, "linewidth": 1.5, "clip_on": False, "zorder": 3}
    axes.add_patch(Rectangle((rarest, 0), 1, len(tokens), **frame))


def label_of(token: str) -> str:
    """The label of a token: on one line, with `_` for the mark of a word's start, and cut if it is
    very long."""
    token = " ".join(token.replace("▁", "_").split()) or "␣"
    return token if len(token) <= LONGEST else token[: LONGEST - 1] + "…"
