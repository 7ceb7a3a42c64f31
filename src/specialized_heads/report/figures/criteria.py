"""Criteria compared: BLEU against the number of heads that each one keeps, without and with
fine-tuning.

On the left, the baseline without the heads that a criterion rejects; on the right, the same after
as many updates as pruning with gates takes. For comparison, the figure also shows the models that
gates pruned to the same numbers of heads: they had as many updates, but most of them while the
gates were closing. The random choice is the median of several draws by development loss; the
numbers have the share of these draws with a smaller loss than a criterion's, and its BLEU minus
that of the heads of the gates. Bars are 95% bootstrap intervals over sentences, or the range over
several seeds; criteria are moved aside so that their bars do not cover each other. A filled marker
differs from the baseline at p < 0.05.
"""

from itertools import product
from math import nan

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

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
    "seed",
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
        rows.ngroups * len(stages), across=2, height=2.3, more_height=0.5, **shared
    )
    present = [name for name in style.CRITERIA if name in set(points["criterion"])]
    for axes, (((corpus, scope), same), finetuned) in zip(
        panels, product(rows, stages), strict=True
    ):
        baseline = same[same["criterion"] == "baseline"].squeeze()
        models = same[(same["finetuned"] == finetuned) & (same["criterion"] != "baseline")]
        axes.axhline(baseline["bleu"], **style.REFERENCE)
        for place, criterion in enumerate(present):
            series = models[models["criterion"] == criterion]
            share = series["heads"] / baseline["heads"] + style.dodge(
                place, len(present), step=0.007
            )
            look = style.CRITERIA[criterion]
            sweep.line(axes, series.assign(share=share), x="share", y="bleu", look=look)
        title = "not fine-tuned" if not finetuned else "none is fine-tuned"
        if finetuned and len(models):
            title = f"fine-tuned, {models['updates'].max():,.0f} updates"
        title = f"{corpus}{sweep.seeds_note(models)}: {title}"
        axes.set_title(style.wrap(title, inches=style.DOUBLE / 2 - 0.6))
        style.share_axis(axes, f"{baseline['heads']:.0f} {SCOPES[scope]}")
        if not finetuned:
            axes.set_ylabel(f"BLEU of {baseline['sentences']:,} sentences")
        sweep.widen(axes, least=0.0)
    handles = [style.key(style.CRITERIA[name], LABELS.get(name, name)) for name in present]
    handles.append(Line2D([], [], label="baseline", **style.REFERENCE))
    style.legend(drawn, handles + sweep.filled_key(points, "baseline"), ncols=3)
    return drawn
