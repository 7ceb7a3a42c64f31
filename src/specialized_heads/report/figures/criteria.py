"""Criteria compared: BLEU against the number of heads that each one keeps, without and with fine-tuning.

On the left, the baseline without the heads that a criterion rejects; on the right, the same after as many updates as pruning with
gates takes. For comparison, the figure also shows the models that gates pruned to the same numbers of heads: they had as many
updates, but most of them while the gates were closing.
"""

from itertools import product

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from specialized_heads.report import style, sweep
from specialized_heads.report.data import Tables, stack, with_ends

LABELS = {"gates": "heads that gates keep", "random": "random, one draw per seed", "pruned": "pruned by gates"}
ORDER = ["baseline", *style.CRITERIA]
SCOPES = {"encoder": "encoder heads", "all": "heads of all types"}
COLUMNS = ["corpus", "scope", "finetuned", "criterion", "heads", "seeds", *with_ends("bleu"), "bleu_sd"]
COLUMNS += [*with_ends("difference"), "p_value", "updates", "sentences"]


def numbers(tables: Tables) -> pd.DataFrame:
    """The points of each corpus with cut models, one row each (`sweep.over_seeds`).

    criterion: also "baseline", and "pruned" for models pruned by gates; heads: of the scope, the mean over seeds; difference:
    from the baseline of the same seed.
    """
    frames = []
    for title, scores in style.by(tables.pruned(), "corpus").items():
        pruned = (scores["kind"] == "pruned") & (scores["lam"] != 0)
        if not ((scores["kind"] == "finetuned") & (scores["criterion"] == "gates")).any():
            pruned &= False  # the gates' own heads were not fine-tuned, so there is nothing to compare with
        names = scores["criterion"].mask(scores["kind"] == "baseline", "baseline").mask(pruned, "pruned")
        models = scores.assign(criterion=names, finetuned=scores["kind"].isin(["pruned", "finetuned"]))
        models = models[models["kind"].isin(["baseline", "cut", "finetuned"]) | pruned]
        for scope in (name for name in SCOPES if name in set(scores.loc[scores["kind"] == "cut", "scope"])):
            totals = [f"{kind}_heads" for kind in (["encoder"] if scope == "encoder" else style.TYPES)]
            rows = models[(models["scope"] == scope) | (models["kind"] == "baseline")]
            rows = rows[rows["seed"].isin(rows.loc[rows["kind"] == "cut", "seed"])]
            rows = rows.assign(heads=rows[totals].sum(axis=1), place=rows["criterion"].map(ORDER.index))
            keys = ["lam", "target_heads", "place", "criterion", "finetuned"]
            same = {"p_values": "difference", "first": ["updates", "sentences"]}
            points = sweep.over_seeds(rows, ["heads", "bleu", "difference"], keys, **same)
            points = sweep.in_order(points, {"heads": False, "place": True, "finetuned": True})
            frames.append(points.assign(corpus=title, scope=scope))
    return stack(frames, COLUMNS)


def draw(points: pd.DataFrame) -> Figure:
    """Draw one row of panels per corpus and scope; left without, right with fine-tuning."""
    rows = points.groupby(["corpus", "scope"], sort=False)
    stages = (False, True) if points["finetuned"].any() else (False,)
    shared = dict.fromkeys(("sharex", "sharey"), "row") if len(stages) == 2 else {}
    drawn, _, panels = style.panels(rows.ngroups * len(stages), across=2, height=2.1, more_height=0.5, **shared)
    for axes, (((corpus, scope), same), finetuned) in zip(panels, product(rows, stages), strict=True):
        baseline = same[same["criterion"] == "baseline"].squeeze()
        models = same[(same["finetuned"] == finetuned) & (same["criterion"] != "baseline")]
        axes.axhline(baseline["bleu"], **style.REFERENCE)
        for criterion, series in style.by(models, "criterion").items():
            series, look = series.sort_values("heads"), style.CRITERIA[criterion]
            if series["seeds"].max() > 1:
                band = series["bleu_low"], series["bleu_high"]
                axes.fill_between(series["heads"], *band, color=look.colour, alpha=0.15, linewidth=0)
            axes.plot(series["heads"], series["bleu"], color=look.colour, marker=look.marker, linestyle=look.line)
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
