"""Heads removed from a finished model (Michel et al. 2019): one by one, all but one, or in order of
importance."""

import math

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from scipy import stats

from specialized_heads.report import paper, style, sweep
from specialized_heads.report.claims.evidence import MIN_LEARNED
from specialized_heads.report.claims.of_ablation import MIN_BLEU
from specialized_heads.report.data import (
    Tables,
    first_seed,
    in_order_of_importance,
    removed,
    score_name,
    stack,
    with_ends,
)

CHANGES = matplotlib.colormaps["RdBu"]  # losses in red, gains in blue
HEAD = ["corpus", "seed", "type", "layer", "head"]
SINGLE_COLUMNS = [*HEAD, "bleu", "bleu_full", "delta", "p_value", "significant", "metric"]
SMALLEST_RANGE = 0.5  # BLEU; on a shorter scale noise would look like an effect
CORRELATION = [*with_ends("pearson"), "pearson_p", "spearman"]
SETS_COLUMNS = ["corpus", "second", *HEAD[1:], "delta_test", "delta_second", *CORRELATION, "metric"]
PANELS = 3  # per row
ALONE_CAPTION = (
    "The best head of each layer, chosen on the same test set: {metric} when it is the only head "
    "left in the layer, minus {metric} of the whole model (with several seeds, n: mean ± "
    "standard deviation); *: differs at p < {level} (paired bootstrap; for every seed). {paper}"
)
ALONE_KEYS = ["corpus", "type", "layer"]
ALONE_COLUMNS = [*ALONE_KEYS, "seeds", "heads", "head", "bleu_full", *with_ends("delta")]
ALONE_COLUMNS += ["delta_sd", "p_value", "metric"]
GROUPS = {"all": ("all types", style.SERIES[3])} | style.TYPES
SYSTEMATIC_KEYS = ["corpus", "what", "removed", "heads"]
SYSTEMATIC_COLUMNS = [*SYSTEMATIC_KEYS, "share", "seeds", "seed"]
SYSTEMATIC_COLUMNS += [*with_ends("bleu", "delta"), "p_value"]
MOMENTS_KEYS = ["corpus", "update", "removed", "share"]
MOMENTS_COLUMNS = [*MOMENTS_KEYS, "seeds", "seed", "bleu_full", *with_ends("kept"), "metric"]


def single_numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus and head: BLEU without it, of the whole model, and the difference."""
    single = first_seed(removed(tables, "without")).reset_index(drop=True)
    return single.assign(significant=single["p_value"].astype(float) < paper.SIGNIFICANT)[
        SINGLE_COLUMNS
    ]


def single_draw(heads: pd.DataFrame) -> Figure:
    """The change in BLEU without each single head, for all three attention types (Michel et al.
    2019, section 3.2, table 1).

    A cell is a head; its colour and the number in it are BLEU without it minus BLEU of the whole
    model. A frame marks a difference at p < 0.01. Each corpus shows one model, because heads of
    different seeds do not correspond.
    """
    groups = dict(list(heads.groupby(["corpus", "type"], sort=False)))
    types = ["encoder"] if set(heads["type"]) == {"encoder"} else list(style.TYPES)
    shown = [(corpus, kind) for corpus in heads["corpus"].unique() for kind in types]
    height = 0.55 + 0.2 * max(3, int(heads["layer"].max()))
    drawn, _, panels = style.panels(len(shown), across=2, height=height, more_height=0.4)
    limit = max(SMALLEST_RANGE, float(heads["delta"].abs().max()))
    inches = style.DOUBLE / min(2, len(shown)) - 0.65
    for axes, (corpus, kind) in zip(panels, shown, strict=True):
        title = f"{corpus}, seed {heads['seed'].iloc[0]}"
        title += f": {style.TYPES[kind][0]}" * (len(types) > 1)
        axes.set_title(style.wrap(title, inches=inches, size=7), size=7)
        if (corpus, kind) in groups:
            mesh = _grid(axes, groups[corpus, kind], limit=limit, inches=inches)
        else:
            style.message(axes, "no heads", inches=1.5)
    style.colour_bar(
        drawn, mesh, panels, f"difference in {score_name(heads)}", fraction=0.025, aspect=25
    )
    frame = Patch(facecolor="none", edgecolor="black", linewidth=1.1)
    frame.set_label(f"differs from the whole model, p < {paper.SIGNIFICANT}")
    style.legend(drawn, [frame] if heads["significant"].any() else [], ncols=1)
    return drawn


def _grid(axes: Axes, heads: pd.DataFrame, *, limit: float, inches: float) -> QuadMesh:
    """The heads of one type by number and, downwards, by layer; a head that the model lacks is
    empty. The panel is so many inches wide."""
    layers, width = int(heads["layer"].max()), int(heads["head"].max())
    values = heads.pivot(index="layer", columns="head", values="delta")
    values = values.reindex(index=range(1, layers + 1), columns=range(1, width + 1)).to_numpy(float)
    size = min(7.0, inches / width * 72 / 2.9)
    look = {"colours": CHANGES, "low": -limit, "high": limit}
    mesh = style.heat_map(axes, values, digits="z.1f" if size >= 5 else "", size=size, **look)
    for head in heads[heads["significant"]].itertuples():
        corner = head.head - 0.46, head.layer - 0.46
        axes.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, linewidth=1.1, zorder=3))
    axes.set(xticks=range(1, width + 1, 1 if width <= 12 else 2), yticks=range(1, layers + 1))
    axes.set(xlabel="head", ylabel="layer")
    return mesh


def correlation(x: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Pearson's r with interval and p-value from Fisher's z, whose standard deviation is 1 / √(n -
    3), and Spearman's ρ.

    All are NaN for fewer than four points or without variation.
    """
    if len(x) < 4 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return dict.fromkeys(CORRELATION, math.nan)
    pearson = stats.pearsonr(x, y)
    r = np.clip(pearson.statistic, -1 + 1e-15, 1 - 1e-15)
    p_value = 2 * stats.norm.sf(abs(math.atanh(r)) * math.sqrt(len(x) - 3))
    values = r, *pearson.confidence_interval(), p_value, stats.spearmanr(x, y).statistic
    return dict(zip(CORRELATION, map(float, values), strict=True))


def sets_numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus, seed and head: the change in BLEU without it on both sets, and the
    correlation over these heads."""
    first, second = (removed(tables, "without", measured_on=name) for name in ("test", "second"))
    pairs = first.merge(second[[*HEAD, "delta"]], on=HEAD, suffixes=("_test", "_second"))
    frames = []
    for _, same in pairs.groupby(["corpus", "seed"], sort=False):
        known = correlation(
            same["delta_test"].to_numpy(float), same["delta_second"].to_numpy(float)
        )
        frames.append(same.assign(**known))
    return stack(frames, SETS_COLUMNS)


def sets_draw(heads: pd.DataFrame) -> Figure:
    """Figure: are the same heads important on another set? (Michel et al. 2019, section 3.4).

    A point is a head: the difference in BLEU that its removal makes on the test set and on the
    second set. The panel states the correlation over all heads: Pearson's with a 95% interval and a
    p-value, and Spearman's; with several seeds, the means of these. scipy's p-value of Pearson's r
    is that of a t test; ours comes from Fisher's z, like the interval.
    """
    corpora, metric = style.by(heads, "corpus"), score_name(heads)
    across = min(PANELS, len(corpora))
    width, height = style.SINGLE if across == 1 else style.DOUBLE, 2.6 if across < PANELS else 2.4
    drawn, _, panels = style.panels(
        len(corpora), across=across, height=height, more_height=0.35, width=width
    )
    # BERT has one attention type.
    types = {kind: look for kind, look in style.TYPES.items() if kind in set(heads["type"])}
    for axes, (corpus, rows) in zip(panels, corpora.items(), strict=False):
        for kind, (name, look) in types.items():
            same = rows[rows["type"] == kind]
            points = {
                "linestyle": "none",
                "marker": look.marker,
                "color": look.colour,
                "alpha": 0.75,
            }
            axes.plot(
                same["delta_test"],
                same["delta_second"],
                markersize=3.2,
                markeredgewidth=0,
                label=name,
                **points,
            )
        for line in (axes.axhline, axes.axvline):
            line(0, color="#BBBBBB", linewidth=0.7, zorder=0)
        axes.set(xlabel=f"{metric} without the head − {metric}, test set")
        axes.set_ylabel(style.wrap(f"the same, {rows['second'].iloc[0]}", inches=2.2, size=7))
        seeds = rows.groupby("seed").first()
        title = corpus + (f", seed {seeds.index[0]}" if len(seeds) == 1 else "")
        title = style.wrap(title, inches=width / across - 0.8, size=7)
        axes.set_title(f"{title}\n{_note(seeds)}", size=7)
    if len(types) > 1:
        columns = 3 if width > style.SINGLE else 2
        style.legend(drawn, panels[0].get_lines()[: len(types)], ncols=columns, handlelength=1.2)
    return drawn


def _note(seeds: pd.DataFrame) -> str:
    """The correlation in words, the mean of those of all seeds."""
    mean, several = seeds[CORRELATION].mean(), len(seeds) > 1
    if pd.isna(mean["pearson"]):
        return "no correlation: too few heads, or no effect"
    text = f"r = {mean['pearson']:.2f} [{mean['pearson_low']:.2f}, {mean['pearson_high']:.2f}]"
    if not several:
        text += ", p < 0.001" if mean["pearson_p"] < 0.001 else f", p = {mean['pearson_p']:.3f}"
    text += f"\nSpearman's ρ = {mean['spearman']:z.2f}" + f"\nmeans of {len(seeds)} seeds" * several
    return style.minus(text)


def alone_numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus, type and layer that has heads: its best head (missing where seeds differ)
    and its change of BLEU.

    heads: the most that a seed has in the layer; `_low`, `_high`: 95% interval, or range over
    seeds; `_sd`: over seeds.
    """
    alone = removed(tables, "alone")
    best = (
        alone.sort_values(["bleu", "head"], ascending=[False, True])
        .groupby([*ALONE_KEYS, "seed"])
        .head(1)
    )
    best = best.sort_index().astype(dict.fromkeys(("bleu_full", "delta", "p_value"), float))
    best["heads"] = alone.groupby([*ALONE_KEYS, "seed"])["head"].transform("size")
    best["head"] = best["head"].where(best.groupby(ALONE_KEYS)["head"].transform("nunique") == 1)
    values, first = ["delta", "bleu_full", "heads"], ["metric", "head"]
    rows = sweep.over_seeds(best, values, ALONE_KEYS, sort=False, p_values="delta", first=first)
    rows["heads"] = rows["heads_high"]
    return rows[ALONE_COLUMNS].astype(dict.fromkeys(("layer", "seeds", "heads", "head"), "Int64"))


def alone_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Table: the best head of each layer and attention type, and BLEU with this head alone in its
    layer (Michel et al. 2019, section 3.3).

    The best head is chosen on the test set on which it is scored, which flatters it. With several
    seeds, each seed has its own best head, and the table shows mean and standard deviation of the
    difference.
    """
    lines = []
    for corpus, same_corpus in style.by(rows, "corpus").items():
        for layer, same in same_corpus.groupby("layer"):
            cells = {style.TYPES[row["type"]][0]: _cell(row) for row in same.to_dict("records")}
            lines.append(
                {"corpus": corpus, "layer": str(layer), "n": str(same["seeds"].max())} | cells
            )
    kinds = ["encoder"] if set(rows["type"]) == {"encoder"} else list(style.TYPES)
    names = [style.TYPES[kind][0] for kind in kinds]
    return sweep.without_constant(
        pd.DataFrame(lines, columns=["corpus", "layer", "n", *names]).fillna("–")
    )


def _cell(row: dict) -> str:
    text = sweep.value_text(row["delta"], sd=row["delta_sd"], digits=2, sign=True)
    if row["p_value"] < paper.SIGNIFICANT:
        text += "*"
    if pd.notna(row["head"]):
        text += f" (head {row['head']}" + (", the only one)" if row["heads"] == 1 else ")")
    return text


def alone_caption(rows: pd.DataFrame) -> str:
    metric = score_name(rows)
    both = f"{paper.ALONE}; {paper.BERT_ALONE}"
    reported = {"BLEU": paper.ALONE, "score": both}.get(metric, paper.BERT_ALONE)
    return ALONE_CAPTION.format(metric=metric, level=paper.SIGNIFICANT, paper=reported)


def systematic_numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus, group of heads (`what`: all, or a type) and number of removed heads;
    delta: from the whole model."""
    steps = in_order_of_importance(tables)
    steps = steps[(steps["kind"] == "baseline") & steps["corpus"].isin(tables.corpora())]
    rows = sweep.over_seeds(steps, ["bleu", "delta"], SYSTEMATIC_KEYS, sort=False, p_values="delta")
    return rows.assign(share=rows["removed"] / rows["heads"])[SYSTEMATIC_COLUMNS]


def systematic_draw(points: pd.DataFrame) -> Figure:
    """Figure: BLEU as heads are removed in order of importance, of all types together and of each
    type (Michel et al. 2019, sections 4.2 and 5).

    There is no training in between. A filled marker differs from the whole model at p < 0.05, for
    every seed and in the same direction.
    """
    drawn, panels = sweep.panel_per_corpus(points, height=2.5, more_height=0.7)
    for axes, rows in panels:
        for what, (_, look) in GROUPS.items():
            own = rows[rows["what"] == what]
            sweep.line(axes, own.assign(left=1 - own["share"]), x="left", y="bleu", look=look)
        axes.axhline(rows.loc[rows["removed"] == 0, "bleu"].iloc[0], **style.REFERENCE, zorder=0)
        style.share_axis(axes, "their group", ylabel="BLEU")
        most = rows["bleu_high"].max() or 1.0
        axes.set_ylim(-0.03 * most, 1.15 * most)
        note = {"va": "top", "size": 6, "color": style.PAPER_COLOUR}
        for name, share in paper.PRUNING_SHARES.items():
            axes.axvline(1 - share, zorder=0, **style.PAPER_LINE)
            axes.text(0.99 - share, 0.99, name, transform=axes.get_xaxis_transform(), **note)
    handles = [style.key(look, name) for name, look in GROUPS.values()]
    handles.append(Line2D([], [], label="whole model", **style.REFERENCE))
    text = style.wrap(paper.PRUNING, inches=drawn.get_figwidth() / 2 - 0.4, size=6.5)
    handles += sweep.filled_key(points, "whole model")
    style.legend(drawn, [*handles, Line2D([], [], label=text, **style.PAPER_LINE)], ncols=2)
    return drawn


def moments_numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus, moment of training (missing: its end) and number of removed heads; kept:
    BLEU over `bleu_full`.

    A seed whose whole model has less than 1 BLEU is left out; without any other, `kept` is missing.
    Those of tasks count from the most frequent label.
    """
    rows = in_order_of_importance(tables)
    rows = rows[rows["what"] == "all"]
    tasks = tables.tasks()
    floors = dict(zip(tasks["corpus"], tasks.get("majority", ())))
    floor = rows["corpus"].map(floors).astype(float).fillna(0.0)
    least = (
        rows["corpus"].isin(list(floors)).map({True: MIN_LEARNED, False: MIN_BLEU}).astype(float)
    )
    learned = rows["bleu_full"] - floor
    rows = rows.assign(kept=((rows["bleu"] - floor) / learned).where(learned >= least))
    usable = rows["kept"].notna()
    some = usable.groupby([rows[key] for key in MOMENTS_KEYS], dropna=False).transform("any")
    points = sweep.over_seeds(rows[usable | ~some], ["bleu_full", "kept"], MOMENTS_KEYS, sort=False)
    return points.assign(metric=score_name(rows))[MOMENTS_COLUMNS].astype({"update": "Int64"})


def moments_draw(points: pd.DataFrame) -> Figure:
    """Figure: share of its BLEU that the model keeps without its least important heads, at several
    steps of its training (Michel et al. 2019, section 6).

    Importance and BLEU are those of the model at that step. Heads of all types are removed
    together. For a classification task, it is the share of what the model has learned: its score
    less that of the most frequent label.
    """
    drawn, panels = sweep.panel_per_corpus(
        points, height=2.4 + 0.09 * (points["update"].nunique() + 2)
    )
    for axes, rows in panels:
        metric = rows["metric"].iloc[0]
        groups = list(rows.groupby("update", dropna=False))  # the finished model last
        for number, (moment, same) in enumerate(groups):
            name = "end of training" if pd.isna(moment) else f"{moment:,} updates"
            label = f"{name}: {same['bleu_full'].iloc[0]:.1f}" + ", not shown" * bool(
                same["kept"].isna().all()
            )
            look = style.ordered(number, len(groups))
            left = same.assign(left=1 - same["share"])
            sweep.line(axes, left, x="left", y="kept", look=look, label=label)
        what = (
            f"{metric}, share of the whole model's"
            if metric == "BLEU"
            else f"share of the learned {metric}"
        )
        style.share_axis(axes, "all", ylabel=what)
        axes.yaxis.set_major_formatter("{x:.0%}")
        low, high = min([0.0, *rows["kept_low"].dropna()]), max([1.0, *rows["kept_high"].dropna()])
        axes.set_ylim(low - 0.03 * (high - low), 1.05 * high)
        title = f"{metric} of the whole model after"
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.19), ncols=2, title=title)
    return drawn
