"""Figure: how much of its BLEU the model keeps without its least important heads, at several moments of its training
(Michel et al. 2019, section 6).

Importance and BLEU are those of the model at that moment. Heads of all types are removed together.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from specialized_heads.report import style, sweep
from specialized_heads.report.output import save_figure
from specialized_heads.report.runs import SYSTEMATIC_COLUMNS, TOO_FEW, Runs, read_runs
from specialized_heads.stage import arguments, run

COLUMNS = [
    "corpus", "moment", "removed", "share", "seeds", "bleu_full", "kept", "kept_low", "kept_high",
]  # fmt: skip
LEAST_BLEU = 1.0  # of the whole model; of less than that a share says nothing
PANELS = 2  # per row


def numbers(tables: pd.DataFrame) -> pd.DataFrame:
    """One row per corpus, moment and step.

    Returns:
        corpus, moment (updates of training; missing for the finished model), removed (heads), share (of all heads), seeds
        (how many), bleu_full (of the whole model, mean), kept (BLEU over that of the whole model) with `_low` and `_high`
        (range over seeds). A seed whose whole model has less than 1 BLEU is left out; with no other, `kept` is missing.
    """
    known = tables[(tables["pruned"] == "all") & (tables["heads"] > 0)]
    known = known.assign(kept=(known["bleu"] / known["bleu_full"]).where(known["bleu_full"] >= LEAST_BLEU))
    rows = []
    keys = ["corpus", "moment", "removed", "share"]
    for values, same in known.groupby(keys, sort=False, dropna=False):
        shown = same.dropna(subset="kept") if same["kept"].notna().any() else same
        row = dict(zip(keys, values, strict=True)) | {"seeds": len(shown), "bleu_full": shown["bleu_full"].mean()}
        rows.append(row | sweep.spread(same["kept"], "kept"))
    return pd.DataFrame(rows, columns=COLUMNS).astype({"moment": "Int64"})


def draw(points: pd.DataFrame) -> Figure:
    """Draw one panel per corpus, one line per moment, from dark (early) to light."""
    if points.empty:
        return style.message_figure(f"Pruning during training: {TOO_FEW}", width=style.DOUBLE)
    corpora = dict(list(points.groupby("corpus", sort=False)))
    columns = min(PANELS, len(corpora))
    rows = -(-len(corpora) // columns)
    width = style.DOUBLE if columns > 1 else 0.72 * style.DOUBLE
    figure = Figure(figsize=(width, (2.4 + 0.09 * (points["moment"].nunique() + 2)) * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (corpus, own) in zip(panels, corpora.items(), strict=False):
        _panel(axes, own)
        axes.set_title(style.wrap(corpus + sweep.seeds_note(own), inches=width / columns - 0.3, size=7), size=7)
    for axes in panels[len(corpora) :]:
        axes.set_axis_off()
    return figure


def _panel(axes: Axes, own: pd.DataFrame) -> None:
    moments = sorted(own["moment"].dropna().unique()) + [None] * int(own["moment"].isna().any())
    for number, moment in enumerate(moments):
        same = own[own["moment"].isna() if moment is None else own["moment"].eq(moment).fillna(False)]
        name = "end of training" if moment is None else f"{moment} updates"
        label = f"{name}: {same['bleu_full'].iloc[0]:.1f}"
        if same["kept"].isna().all():
            label += ", not shown"
        same = same.assign(share_low=same["share"], share_high=same["share"])  # no bar
        sweep.line(axes, same, x="share", y="kept", look=style.ordered(number, len(moments)), label=label)
    highest = max(1.0, own["kept_high"].max(skipna=True) if own["kept"].notna().any() else 1.0)
    axes.set(xlim=(-0.03, 1.03), ylim=(0, 1.05 * highest))
    axes.set(xlabel="heads removed, share of all", ylabel="BLEU, share of the whole model's")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter("{x:.0%}")
    axes.grid(axis="y")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.19), ncols=2, title="BLEU of the whole model after")


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["tables"])
    runs = Runs.model_validate(args.settings).runs
    points = numbers(read_runs(args.tables, runs, columns=SYSTEMATIC_COLUMNS))
    save_figure(args.output, points, lambda: draw(points))


if __name__ == "__main__":
    run(main)
