"""Which heads are left: do those with a function survive pruning (section 6.2.2), and what would
other criteria keep?"""

from contextlib import suppress
from dataclasses import replace
from itertools import product
from math import nan
from operator import itemgetter

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.experiment.names import MIN_DECIDED
from specialized_heads.heads.functions import OF_TOKENS
from specialized_heads.model.architecture import SCOPES
from specialized_heads.report import style, sweep
from specialized_heads.report.claims.evidence import MODEL, Evidence, NotTestable, evidence_of
from specialized_heads.report.claims.inference import rank_correlation
from specialized_heads.report.claims.of_survival import NESTED, nested, survival, surviving
from specialized_heads.report.data import (
    COUNTERPART,
    SAMPLES,
    Tables,
    is_decided,
    mean_interval,
    stack,
    with_ends,
)

# Name of a score -> how to compute it from the table of heads; a higher score should predict
# survival.
SCORES = {
    "relevance": itemgetter("relevance"),
    "confidence": itemgetter("confidence"),
    "low entropy": lambda heads: -heads["entropy"],
    "positional share": itemgetter("positional_share"),
    "syntactic margin": lambda heads: heads.filter(regex="_margin$").max(axis=1),
    **{function.measure: itemgetter(function.score) for function in OF_TOKENS},
}
SURVIVAL_COLUMNS = "corpus scope lam target_heads seed counted heads left labelled".split()
SURVIVAL_COLUMNS += "labelled_survival other_survival difference low high".split()
SURVIVAL_COLUMNS += [*SCORES, *NESTED]
SURVIVAL_CAPTION = (
    "Survival of encoder heads under pruning. difference: survival of heads with a function "
    "minus that of heads without, within layers and seeds, with its 95% interval. The next "
    "columns have Spearman's correlation of survival with a score of the unpruned model, within "
    "layers and seeds. nested: how many of the heads left the seed's next larger model has too; "
    "in brackets, how many by chance, with as many heads per layer. In the rows of all models, "
    "survival is the share of the models that keep a head; those with less than "
    f"{MIN_DECIDED:.0%} decided gates (*) do not count there, nor those with a λ or a number of "
    "heads that some seed lacks. A dash: these heads do not differ."
)
ROW = 0.15  # inches
LOOKS = {
    "one model": {"color": style.series(0).colour, "marker": "o", "linewidth": 0.9},
    sweep.UNDECIDED_LABEL: {
        "color": sweep.UNDECIDED.colour,
        "marker": sweep.UNDECIDED.marker,
        "linewidth": 0.9,
    },
    "decided models, of targets that all seeds have": {
        "color": style.series(0).colour,
        "marker": "D",
        "linewidth": 1.6,
    },
}
LEFT = {"labelled": "left, with a function", "other": "left, without"}
PLACES = 1.25, 1.7  # x of these on the right
LABELS = {
    "gates": "heads that gates keep",
    "random": "random, median of the draws",
    "pruned": "pruned by gates",
}
ORDER = ["baseline", *style.CRITERIA]
HEADS_OF = {"encoder": "encoder heads", "all": "heads of all types"}
GATES = COUNTERPART[0]  # from the heads that gates keep, without or with fine-tuning
CRITERIA_COLUMNS = "corpus scope finetuned criterion heads seeds seed".split()
CRITERIA_COLUMNS += [*with_ends("bleu"), "bleu_sd", *with_ends("difference"), "p_value"]
CRITERIA_COLUMNS += [*with_ends(GATES), "better_draws", "updates", "sentences"]


def survival_numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus, scope and pruned model, without λ 0, and one for all of them (without a
    seed).

    counted: whether the gates are decided, so that the row of all models has the model, if each
    seed has its target; heads, left, labelled: encoder heads, those left, and those with a function
    before pruning; the scores: correlations; in_larger: heads left that the seed's model before has
    too, of these, and how many it would have by chance.
    """
    rows = []
    for corpus, scope in product(tables.pruned()["corpus"].unique(), style.SCOPES):
        evidence = evidence_of(tables.of(corpus))
        scores, shared = evidence.scores, {"corpus": corpus, "scope": scope}
        models = scores[
            (scores["kind"] == "pruned") & (scores["scope"] == scope) & (scores["lam"] != 0)
        ]
        models = models.assign(place=models.index, counted=is_decided(models))
        models = sweep.in_order(models, {**sweep.WEAKEST_FIRST, "seed": True})
        shared_heads = nested(evidence, models.set_index("place"))
        for model in models.to_dict("records"):
            # On its own, each model counts.
            alone = scores[
                (scores["kind"] == "baseline") | (scores.index == model["place"])
            ].assign(gates_decided=1.0, gates_by_order=0.0)
            own = shared | {key: model[key] for key in ("lam", "target_heads", "seed", "counted")}
            own |= {"left": model["encoder_heads"]} | shared_heads.get(model["place"], {})
            rows.append(own | _measured(replace(evidence, scores=alone), scope))
        if len(models):
            counted = [
                shared_heads[place]
                for place in models.loc[models["counted"], "place"]
                if place in shared_heads
            ]
            sums = pd.DataFrame(counted, columns=NESTED).sum(min_count=1)
            rows.append(shared | {"counted": True} | sums.to_dict() | _measured(evidence, scope))
    counts = ("seed", "heads", "left", "labelled", "target_heads", *NESTED[:2])
    return pd.DataFrame(rows, columns=SURVIVAL_COLUMNS).astype(dict.fromkeys(counts, "Int64"))


def _measured(evidence: Evidence, scope: str) -> dict[str, float]:
    """What can be measured on these models."""
    row = {}
    with suppress(NotTestable):
        heads = surviving(evidence, scope)
        labelled = heads["labelled"]
        survived = heads["survival"]
        row = {"heads": len(heads), "labelled": int(labelled.sum())}
        row |= {
            "labelled_survival": survived[labelled].mean(),
            "other_survival": survived[~labelled].mean(),
        }
        for score, of in SCORES.items():
            with suppress(NotTestable):
                row[score] = rank_correlation(heads, of(heads).astype(float), survived)[0].mean()
        found = survival(evidence, scope=scope)
        row |= {"difference": found.value, "low": found.low, "high": found.high}
    return row


def survival_draw(rows: pd.DataFrame) -> Figure:
    """Do heads with a function survive pruning? The paper's main claim, as a number for each pruned
    model (section 6.2.2).

    A point is the survival of encoder heads with a function minus that of heads without, within
    layers and seeds, with its 95% interval (`claims.of_survival.survival`); a filled one differs
    from 0 at p < 0.05. On the right, how many of these heads are left, over all layers. In the row
    of all models, it is the share of the models that keep a head. Models with undecided gates
    (grey) do not count there, nor do targets that some seed lacks, as in the claims.
    """
    groups = rows.groupby(["corpus", "scope"], sort=False)
    wide = {"inches": style.DOUBLE - 2, "size": 8}
    titles = {key: style.wrap(f"{key[0]}, {style.SCOPES[key[1]]}", **wide) for key in groups.groups}
    # Extra rows for titles of several lines.
    more = {key: 0.8 * title.count("\n") for key, title in titles.items()}
    lines = len(rows) + 1.6 * groups.ngroups + sum(more.values())
    drawn = Figure(figsize=(style.DOUBLE, ROW * lines + 0.85), layout="constrained")
    axes = drawn.add_subplot()
    left = np.floor(4 * np.nanmin([-0.25, *rows["low"]])) / 4
    y, labels = -1.0, {}
    for key, same in groups:
        y += 1.6 + more[key]
        axes.text(left, y + 0.4, titles[key], weight="bold", va="bottom")
        axes.plot([0, 0], [y + 0.5, y + len(same) + 0.5], zorder=0, **style.REFERENCE)
        for row in same.to_dict("records"):
            y += 1
            whole = pd.isna(row["seed"])
            labels[y] = "all models"
            if not whole:
                labels[y] = f"{_target(row)}, seed {row['seed']}: {row['left']} left"
            undecided = whole and not same.loc[same["seed"].notna(), "counted"].any()
            _point(
                axes,
                row,
                y,
                without="no model with decided gates" if undecided else "no difference to measure",
            )
    axes.set_yticks(list(labels), list(labels.values()))
    for place, text in zip(PLACES, LEFT.values(), strict=True):
        axes.text(
            place, -0.4, style.wrap(text, inches=0.8, size=6.5), size=6.5, ha="center", va="bottom"
        )
    middle = (1 - left) / 2 / (1.9 - left)
    axes.set_xlabel("survival of heads with a function − that of others", x=middle)
    axes.set(xlim=(left - 0.02, 1.9), ylim=(y + 0.7, -0.3), xticks=np.arange(left, 1.01, 0.25))
    axes.spines["bottom"].set_bounds(left, 1)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    one, measured = rows["seed"].notna(), rows["difference"].notna()
    kinds = (one & rows["counted"], one & ~rows["counted"], ~one & measured)
    handles = [
        Line2D([], [], label=name, **look)
        for (name, look), rows_of_kind in zip(LOOKS.items(), kinds, strict=True)
        if rows_of_kind.any()
    ]
    if ((rows["low"] > 0) | (rows["high"] < 0)).any():
        text = f"filled: differs from 0, p < {sweep.FILLED_BELOW}"
        handles.append(style.marker_key(text))
    style.legend(drawn, handles, ncols=4)
    return drawn


def _target(row: dict) -> str:
    return sweep.target(row["lam"], row["target_heads"])


def _point(axes: Axes, row: dict, y: float, *, without: str) -> None:
    """The difference of a row with its interval, and what it is a difference of; the text `without`
    if there is none."""
    whole, (one, undecided, every) = pd.isna(row["seed"]), LOOKS.values()
    look = every if whole else one if row["counted"] else undecided
    text = {
        "size": 6.5,
        "ha": "center",
        "va": "center_baseline",
        "weight": "bold" if whole else "normal",
    }
    for place, kind in zip(PLACES, LEFT, strict=True):
        axes.text(place, y, _left(row, kind), **text)
    difference, low, high = (row[name] for name in ("difference", "low", "high"))
    if pd.isna(difference):
        axes.text(0, y, without, bbox=style.BEHIND_TEXT, **text)
        return
    face = look["color"] if low > 0 or high < 0 else "white"
    axes.plot([low, high], [y, y], **(look | {"marker": ""}))
    axes.plot(difference, y, markerfacecolor=face, **look)


def _left(row: dict, kind: str) -> str:
    """How many heads of a kind are left; of all models, the share."""
    survival = row[f"{kind}_survival"]
    if pd.isna(survival):
        return ""
    heads = row["labelled"] if kind == "labelled" else row["heads"] - row["labelled"]
    return (
        f"{survival:.0%} of {heads}" if pd.isna(row["seed"]) else f"{survival * heads:.0f}/{heads}"
    )


def survival_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Table: survival of the encoder's heads with a function and of others (section 6.2.2).

    One row per pruned model, then one for all of them; a dash where nothing can be measured.
    """
    lines = []
    for row in rows.to_dict("records"):
        whole = pd.isna(row["seed"])
        line = {"corpus": row["corpus"], "scope": style.SCOPES[row["scope"]]}
        line["model"] = "all" if whole else _target(row) + "*" * (not row["counted"])
        line |= {name: "" if whole else str(row[name]) for name in ("seed", "left")}
        line |= {name: _left(row, kind) or "–" for kind, name in LEFT.items()}
        line["difference"] = _text(row["difference"], low=row["low"], high=row["high"])
        line |= {score: _text(row[score]) for score in SCORES}
        shared, of, chance = (row[name] for name in NESTED)
        lines.append(line | {"nested": "–" if pd.isna(of) else f"{shared} of {of} ({chance:.1f})"})
    return pd.DataFrame(lines)


def _text(value: float, **ends: float) -> str:
    return sweep.value_text(value, digits=2, sign=True, **ends) or "–"


def criteria_numbers(tables: Tables) -> pd.DataFrame:
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
        own = models["kind"].isin(["cut", "finetuned"])
        beside = models.reindex(columns=with_ends(GATES)).astype(float)
        models[with_ends(GATES)] = beside.where(own)
        if (samples := f"{GATES}{SAMPLES}") in models:
            models[samples] = models[samples].where(own)
        cut = set(scores.loc[scores["kind"] == "cut", "scope"])
        for scope in (name for name in SCOPES if name in cut):
            totals = [f"{kind}_heads" for kind in SCOPES[scope]]
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
            ends = [mean_interval(same, GATES) for _, same in rows.groupby(keys, dropna=False)]
            points[[f"{GATES}_low", f"{GATES}_high"]] = np.array(ends)
            points = sweep.in_order(points, {"heads": False, "place": True, "finetuned": True})
            frames.append(points.assign(corpus=title, scope=scope))
    return stack(frames, CRITERIA_COLUMNS)


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


def criteria_draw(points: pd.DataFrame) -> Figure:
    """Criteria compared: BLEU against the number of heads that each one keeps, without and with
    fine-tuning.

    On the left, the baseline without the heads that a criterion rejects; on the right, the same
    after as many updates as pruning with gates takes. For comparison, the figure also shows the
    models that gates pruned to the same numbers of heads: they had as many updates, but most of
    them while the gates were closing. The random choice is the median of several draws by
    development loss; the numbers have the share of these draws with a smaller loss than a
    criterion's, and its BLEU minus that of the heads of the gates. Bars are 95% bootstrap intervals
    over sentences, or the range over several seeds; criteria are moved aside so that their bars do
    not cover each other. A filled marker differs from the baseline at p < 0.05.
    """
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
        style.share_axis(axes, f"{baseline['heads']:.0f} {HEADS_OF[scope]}")
        if not finetuned:
            axes.set_ylabel(f"BLEU of {baseline['sentences']:,} sentences")
        sweep.widen(axes, least=0.0)
    handles = [style.key(style.CRITERIA[name], LABELS.get(name, name)) for name in present]
    handles.append(Line2D([], [], label="baseline", **style.REFERENCE))
    style.legend(drawn, handles + sweep.filled_key(points, "baseline"), ncols=3)
    return drawn
