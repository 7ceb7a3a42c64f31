"""Criteria side by side: BLEU against the heads that each one keeps, without and with fine-tuning (figure and table).

On the left the baseline without the heads that a criterion leaves out, on the right the same after as many updates as
pruning with gates takes. Beside these stand the models that were pruned by gates to the same numbers: they have had as many
updates, but most of them while the gates were closing. The panels of a scope share their axes. A point is the mean over
seeds, the band around a line their range. A hollow marker differs from the baseline of its seed at p < 0.05 (paired
bootstrap), for every seed and in the same direction.
"""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from specialized_heads.report import style, sweep
from specialized_heads.report.inputs import SCORE_COLUMNS, Titles, read_all
from specialized_heads.report.output import save_figure, save_table
from specialized_heads.stage import arguments, run

SIGNIFICANT = 0.05
LABELS = {"gates": "heads that gates keep", "random": "random, one draw per seed", "pruned": "pruned by gates"}
ORDER = ["baseline", *style.CRITERIA]
SCOPES = {"encoder": "encoder heads", "all": "heads of all types"}
COLUMNS = [
    "corpus", "scope", "finetuned", "criterion", "heads", "seeds", "bleu", "bleu_low", "bleu_high", "bleu_sd",
    "delta", "delta_low", "delta_high", "p_value", "updates", "sentences",
]  # fmt: skip
NOTHING = "no criteria are compared in this experiment"
CAPTION = (
    "Test BLEU of the baseline with the heads that each criterion keeps, and of the same after fine-tuning; in brackets "
    "95% bootstrap intervals, with several seeds mean ± standard deviation; Δ: BLEU − baseline of the same seed; p: against "
    "that baseline (paired bootstrap), the largest over seeds, or 1 where some gain and others lose; random: "
    "one draw per seed"
)


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The points of every corpus.

    Args:
        tables: scores of each corpus, by its title.

    Returns:
        one row per point: corpus, scope, finetuned, criterion (for the baselines "baseline", for models
        pruned by gates "pruned"), heads (of the scope), seeds
        (how many), bleu with `_low` and `_high` (range over seeds; with one the bootstrap interval) and `_sd`, delta (BLEU
        minus the baseline of the same seed) with its range, p_value (`sweep.p_of_seeds`), updates, sentences (of the test set).
        `_sd` and the range of delta are missing where there is one seed. No rows where nothing was cut.
    """
    rows = []
    for title, scores in tables.items():
        baselines = scores[scores["kind"] == "baseline"].assign(criterion="baseline").set_index("seed")
        cut = scores[scores["kind"] == "cut"]
        tuned = scores[scores["kind"] == "finetuned"]
        pruned = scores[(scores["kind"] == "pruned") & scores["asked"].notna()].assign(criterion="pruned")
        if "gates" not in set(tuned["criterion"]):  # nobody asked
            pruned = pruned[:0]
        models = pd.concat([baselines.reset_index(), cut, tuned, pruned])
        models["finetuned"] = models["kind"].isin(["pruned", "finetuned"])
        for scope in (name for name in SCOPES if name in set(cut["scope"])):
            kinds = ["encoder"] if scope == "encoder" else style.TYPES
            own = models[(models["scope"] == scope) | (models["kind"] == "baseline")]
            own = own.assign(heads=own[[f"{kind}_total" for kind in kinds]].sum(axis=1))
            points = own.groupby(["heads", "criterion", "finetuned"])
            for heads, criterion, finetuned in sorted(
                points.groups, key=lambda key: (-key[0], ORDER.index(key[1]), key[2])
            ):
                point = {
                    "corpus": title,
                    "scope": scope,
                    "finetuned": finetuned,
                    "criterion": criterion,
                    "heads": heads,
                }
                rows.append(point | _point(points.get_group((heads, criterion, finetuned)), baselines["bleu"]))
    return pd.DataFrame(rows, columns=COLUMNS)


def _point(same: pd.DataFrame, baselines: pd.Series) -> dict[str, float]:
    row = {"seeds": len(same), "bleu_sd": same["bleu"].std()} | sweep.against(same, baselines)
    return row | {name: int(same[name].iloc[0]) for name in ("updates", "sentences")}


def draw(points: pd.DataFrame) -> Figure:
    """One row of panels per corpus and scope; left without, right with fine-tuning."""
    if points.empty:
        return style.message_figure(NOTHING, width=style.DOUBLE)
    rows = list(points.groupby(["corpus", "scope"], sort=False))
    several = points["corpus"].nunique() > 1
    figure = Figure(figsize=(style.DOUBLE, 0.5 + 2.1 * len(rows)), layout="constrained")
    grid = figure.subplots(len(rows), 2, sharex="row", sharey="row", squeeze=False)
    for panels, ((corpus, scope), own) in zip(grid, rows, strict=True):
        baseline = own[own["criterion"] == "baseline"].squeeze()
        for axes, finetuned in zip(panels, (False, True), strict=True):
            shown = own[(own["finetuned"] == finetuned) & (own["criterion"] != "baseline")]
            axes.axhline(baseline["bleu"], color=style.PAPER_COLOUR, linewidth=0.8, linestyle="--")
            for criterion, series in shown.groupby("criterion", sort=False):
                _series(axes, series.sort_values("heads"), look=style.CRITERIA[criterion])
            axes.grid(axis="y")
            axes.set_xlabel(f"{SCOPES[scope]} retained, of {baseline['heads']}")
            title = (
                f"fine-tuned, {shown['updates'].max():,.0f} updates" if finetuned and len(shown) else "not fine-tuned"
            )
            title = "none is fine-tuned" if finetuned and shown.empty else title
            axes.set_title(style.wrap(f"{corpus}: {title}" if several else title, inches=style.DOUBLE / 2 - 0.6))
        panels[0].set_ylabel(f"BLEU of {baseline['sentences']:,} sentences")
        panels[0].set_xlim(-0.03 * baseline["heads"], 1.03 * baseline["heads"])
        sweep.widen(panels[0])
    found = [criterion for criterion in style.CRITERIA if criterion in set(points["criterion"])]
    handles = [
        Line2D([], [], color=look.colour, marker=look.marker, linestyle=look.line)
        for look in map(style.CRITERIA.get, found)
    ]
    handles.append(Line2D([], [], color=style.PAPER_COLOUR, linestyle="--", linewidth=0.8))
    labels = [*(LABELS.get(criterion, criterion) for criterion in found), "baseline"]
    if (seeds := points["seeds"].max()) > 1:
        handles.append(Patch(color=style.PAPER_COLOUR, alpha=0.15, linewidth=0))
        labels.append(f"mean and range of {seeds} seeds")
    handles.append(Line2D([], [], color=style.PAPER_COLOUR, marker="o", markerfacecolor="white", linestyle="none"))
    figure.legend(handles, [*labels, "differs from the baseline, p < 0.05"], loc="outside lower center", ncols=4)
    return figure


def _series(axes: Axes, series: pd.DataFrame, *, look: style.Series) -> None:
    if series["seeds"].max() > 1:
        band = series["bleu_low"], series["bleu_high"]
        axes.fill_between(series["heads"], *band, color=look.colour, alpha=0.15, linewidth=0)
    axes.plot(series["heads"], series["bleu"], color=look.colour, marker=look.marker, linestyle=look.line)
    different = series[series["p_value"] < SIGNIFICANT]
    hollow = {"marker": look.marker, "markerfacecolor": "white", "linestyle": "none"}
    axes.plot(different["heads"], different["bleu"], color=look.colour, **hollow)


def shown(points: pd.DataFrame) -> pd.DataFrame:
    """The table as text: one row per corpus, scope, number of heads and criterion; corpus and n where there are several."""
    rows = []
    for key, same in points.groupby(["corpus", "scope", "heads", "criterion"], sort=False):
        row = dict(zip(("corpus", "scope", "heads", "criterion"), map(str, key)))
        row["n"] = str(same["seeds"].max())
        for finetuned, suffix in ((False, ""), (True, ", fine-tuned")):
            one = same[same["finetuned"] == finetuned]
            cells = _cells(one.iloc[0]) if len(one) else ("", "", "")
            row |= dict(zip((f"BLEU{suffix}", f"Δ{suffix}", f"p{suffix}"), cells))
        rows.append(row)
    if not rows:
        return pd.DataFrame(columns=["scope", "heads", "criterion"])
    table = pd.DataFrame(rows)
    needless = {"corpus": points["corpus"].nunique() == 1, "n": points["seeds"].max() == 1}
    return table.drop(columns=[name for name, drop in needless.items() if drop])


def _cells(point: pd.Series) -> tuple[str, str, str]:
    bleu = sweep.value_text(point["bleu"], sd=point["bleu_sd"], low=point["bleu_low"], high=point["bleu_high"])
    if point["criterion"] == "baseline":
        return bleu, "", ""
    return bleu, sweep.value_text(point["delta"], sd=math.nan, sign=True), sweep.p_text(point["p_value"])


def caption(points: pd.DataFrame) -> str:
    """What stands above the table."""
    if points.empty:
        return f"{CAPTION}; {NOTHING}."
    sentences = ", ".join(f"{number:,}" for number in points["sentences"].unique())
    seeds = points["seeds"].max()
    return f"{CAPTION}; {sentences} sentences" + ("; n: seeds." if seeds > 1 else ".")


def main() -> None:
    args = arguments(__doc__, files=["figure", "table"], many=["scores"])
    titles = Titles.model_validate(args.settings).titles
    columns = (*SCORE_COLUMNS, "asked", "criterion", "updates")
    points = numbers(read_all(args.scores, titles, columns=columns))
    save_figure(args.figure, points, lambda: draw(points))
    save_table(args.table, points, shown(points), caption=caption(points))


if __name__ == "__main__":
    run(main)
