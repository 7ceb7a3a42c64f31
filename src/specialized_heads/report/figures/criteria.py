"""Criteria compared: BLEU against the number of heads that each one keeps, without and with
fine-tuning.

On the left, the baseline without the heads that a criterion rejects; on the right, the same after
as many updates as pruning with gates takes. For comparison, the figure also shows the models that
gates pruned to the same numbers of heads: they had as many updates, but most of them while the
gates were closing. The random choice is the median of several draws by development loss; the
numbers have the share of these draws with a smaller loss than a criterion's, and its BLEU minus
that of the heads of the gates.
"""

from itertools import product
from math import nan

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from specialized_heads.report import style, sweep
from specialized_heads.report.claims.evidence import MODEL
from specialized_heads.report.data import Tables, stack, with_ends

LABELS = {
    "gates": "heads that gates keep",
    "random": "random, median of the draws",
    "pruned": "pruned by gates",
}
ORDER = ["baseline", *style.CRITERIA]
SCOPES = {"encoder": "encoder heads", "all": "heads of all types"}
GATES = "counterpart_difference"  # from the heads that gates keep, without or with fine-tuning
COLUMNS = [
    "corpus",
    "scope",
    "finetuned",
    "criterion",
    "heads",
    "seeds",
    *with_ends("bleu"),
    "bleu_sd",
]
COLUMNS += [
    *with_ends("difference"),
    "p_value",
    *with_ends(GATES),
    "better_draws",
    "updates",
    "sentences",
]


def numbers(tables: Tables) -> pd.DataFrame:
    """The points of each corpus with cut models, one row each (`sweep.over_seeds`).

    criterion: also "baseline", and "pruned" for models pruned by gates; heads: of the scope, the
    mean over seeds; difference: from the baseline of the same seed; counterpart_difference: from
    the heads that gates keep; better_draws: share of the random draws of the same seed and target
    with a smaller development loss.
    """
    frames = []
    for title, scores in style.by(tables.pruned(), "corpus").items():
        pruned = (scores["kind"] == "pruned") & (scores["lam"] != 0)
        if not ((scores["kind"] == "finetuned") & (scores["criterion"] == "gates")).any():
            # the gates' own heads were not fine-tuned, so there is nothing to compare with
            pruned &= False
        names = (
            scores["criterion"]
            .mask(scores["kind"] == "baseline", "baseline")
            .mask(pruned, "pruned")
        )
        models = scores.assign(
            criterion=names, finetuned=scores["kind"].isin(["pruned", "finetuned"])
        )
        models = models[models["kind"].isin(["baseline", "cut", "finetuned"]) | pruned]
        models = models.assign(better_draws=_better_draws(models))
        # Of a pruned model, it is the difference from λ 0; older tables have none.
        beside = models.reindex(columns=with_ends(GATES)).astype(float)
        models[with_ends(GATES)] = beside.where(models["kind"].isin(["cut", "finetuned"]))
        for scope in (
            name for name in SCOPES if name in set(scores.loc[scores["kind"] == "cut", "scope"])
        ):
            totals = [
                f"{kind}_heads" for kind in (["encoder"] if scope == "encoder" else style.TYPES)
            ]
            rows = models[(models["scope"] == scope) | (models["kind"] == "baseline")]
            rows = rows[rows["seed"].isin(rows.loc[rows["kind"] == "cut", "seed"])]
            rows = rows.assign(
                heads=rows[totals].sum(axis=1), place=rows["criterion"].map(ORDER.index)
            )
            keys = ["lam", "target_heads", "place", "criterion", "finetuned"]
            same = {"p_values": "difference", "first": ["updates", "sentences"]}
            points = sweep.over_seeds(
                rows, ["heads", "bleu", "difference", GATES, "better_draws"], keys, **same
            )
            ends = [
                sweep.mean_interval(same, GATES) for _, same in rows.groupby(keys, dropna=False)
            ]
            points[[f"{GATES}_low", f"{GATES}_high"]] = np.array(ends)
            points = sweep.in_order(points, {"heads": False, "place": True, "finetuned": True})
            frames.append(points.assign(corpus=title, scope=scope))
    return stack(frames, COLUMNS)


def _better_draws(models: pd.DataFrame) -> pd.Series:
    """The share of the random draws of a cut model's seed and target that have a smaller
    development loss."""
    shares = pd.Series(nan, index=models.index)
    if "random_dev_losses" in models:  # not in older tables
        drawn = models.loc[
            (models["kind"] == "cut") & (models["criterion"] == "random"),
            [*MODEL, "random_dev_losses"],
        ]
        losses = (
            models[MODEL]
            .merge(drawn, on=MODEL, how="left")["random_dev_losses"]
            .set_axis(models.index)
        )
        for place in models.index[(models["kind"] == "cut") & losses.notna()]:
            shares[place] = np.mean(np.asarray(losses[place]) < models.loc[place, "dev_loss"])
    return shares


def draw(points: pd.DataFrame) -> Figure:
    """Draw one row of panels per corpus and scope; left without, right with fine-tuning."""
    rows = points.groupby(["corpus", "scope"], sort=False)
    stages = (False, True) if points["finetuned"].any() else (False,)
    shared = dict.fromkeys(("sharex", "sharey"), "row") if len(stages) == 2 else {}
    drawn, _, panels = style.panels(
        rows.ngroups * len(stages), across=2, height=2.1, more_height=0.5, **shared
    )
    for axes, (((corpus, scope), same), finetuned) in zip(
        panels, product(rows, stages), strict=True
    ):
        baseline = same[same["criterion"] == "baseline"].squeeze()
        models = same[(same["finetuned"] == finetuned) & (same["criterion"] != "baseline")]
        axes.axhline(baseline["bleu"], **style.REFERENCE)
        for criterion, series in style.by(models, "criterion").items():
            series, look = series.sort_values("heads"), style.CRITERIA[criterion]
            if series["seeds"].max() > 1:
                band = series["bleu_low"], series["bleu_high"]
                axes.fill_between(
                    series["heads"], *band, color=look.colour, alpha=0.15, linewidth=0
                )
            axes.plot(
                series["heads"],
                series["bleu"],
                color=look.colour,
                marker=look.marker,
                linestyle=look.line,
            )
            sweep.hollow(axes, series, x="heads", y="bleu", look=look)
        axes.grid(axis="y")
        axes.set_xlabel(f"{SCOPES[scope]} retained, of {baseline['heads']:.0f}")
        title = "not fine-tuned" if not finetuned else "none is fine-tuned"
        if finetuned and len(models):
            title = f"fine-tuned, {models['updates'].max():,.0f} updates"
        axes.set_title(style.wrap(f"{corpus}: {title}", inches=style.DOUBLE / 2 - 0.6))
        if not finetuned:
            axes.set_ylabel(f"BLEU of {baseline['sentences']:,} sentences")
        axes.set_xlim(-0.03 * baseline["heads"], 1.03 * baseline["heads"])
        sweep.widen(axes, least=0.0)
    present = [name for name in style.CRITERIA if name in set(points["criterion"])]
    handles = [style.key(style.CRITERIA[name], LABELS.get(name, name)) for name in present]
    handles.append(Line2D([], [], label="baseline", **style.REFERENCE))
    if note := sweep.seeds_note(points, text="mean and range of {} seeds"):
        band = {"color": style.PAPER_COLOUR, "alpha": 0.15, "linewidth": 0}
        one = "; of one: 95% interval" if points["seeds"].min() == 1 else ""
        handles.append(Patch(label=note + one, **band))
    handles.append(sweep.hollow_key("baseline", color=style.PAPER_COLOUR))
    drawn.legend(handles=handles, loc="outside lower center", ncols=3)
    return drawn
