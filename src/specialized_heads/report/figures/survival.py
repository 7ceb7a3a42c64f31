"""Do specialised heads survive pruning? The paper's main claim as a number for each pruned model
(section 6.2.2).

A point is the survival of encoder heads with a function minus that of heads without, within layers
and seeds, with its 95% interval (`claims.of_survival.survival`); a filled one differs from 0 at
p < 0.05. On the right, how many of these heads are left, over all layers. In the row of all models,
it is the share of the models that keep a head. Models with undecided gates (grey) do not count
there, as in the claims.
"""

from contextlib import suppress
from dataclasses import replace
from itertools import product
from operator import itemgetter

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.heads.functions import OF_TOKENS
from specialized_heads.pruning.prune import MIN_DECIDED
from specialized_heads.report import style, sweep
from specialized_heads.report.claims.evidence import Evidence, NotTestable, evidence_of
from specialized_heads.report.claims.inference import associated, correlation_of, ranked
from specialized_heads.report.claims.of_survival import NESTED, nested, surviving
from specialized_heads.report.claims.of_survival import survival as difference_of
from specialized_heads.report.data import Tables, is_decided

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
COLUMNS = ["corpus", "scope", "lam", "target_heads", "seed", "counted", "heads", "left", "labelled"]
COLUMNS += ["labelled_survival", "other_survival", "difference", "low", "high", *SCORES]
COLUMNS += NESTED
CAPTION = (
    "Survival of encoder heads under pruning. difference: survival of heads with a function minus "
    "that of heads without, within "
    "layers and seeds, with its 95% interval. The next columns have Spearman's correlation of "
    "survival with a score of the "
    "unpruned model, within layers and seeds. nested: how many of the heads left the seed's next "
    "larger model has too; in "
    "brackets, how many by chance, with as many heads per layer. In the rows of all models, "
    "survival is the share of the models "
    f"that keep a head; those with less than {MIN_DECIDED:.0%} decided gates (*) do not count "
    f"there. A dash: these heads do not "
    "differ."
)
ROW = 0.15  # inches
LOOKS = {
    "one model": {"color": style.series(0).colour, "marker": "o", "linewidth": 0.9},
    sweep.UNDECIDED_LABEL: {
        "color": sweep.UNDECIDED.colour,
        "marker": sweep.UNDECIDED.marker,
        "linewidth": 0.9,
    },
    "all models with decided gates": {
        "color": style.series(0).colour,
        "marker": "D",
        "linewidth": 1.6,
    },
}
LEFT = {"labelled": "left, with a function", "other": "left, without"}
PLACES = 1.25, 1.7  # x of these on the right


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per corpus, scope and pruned model, without λ 0, and one for all of them (without a
    seed).

    counted: whether the row of all models has the model; heads, left, labelled: encoder heads,
    those left, and those with a function before pruning; the scores: correlations; in_larger: heads
    left that the seed's model before has too, of these, and how many it would have by chance.
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
            ].assign(gates_decided=1.0)
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
    return pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(counts, "Int64"))


def _measured(evidence: Evidence, scope: str) -> dict[str, float]:
    """What can be measured on these models."""
    row = {}
    with suppress(NotTestable):
        heads = surviving(evidence, scope)
        labelled = heads["labelled"]
        survival, strata = heads["survival"], heads[["seed", "layer"]]
        row = {"heads": len(heads), "labelled": int(labelled.sum())}
        row |= {
            "labelled_survival": survival[labelled].mean(),
            "other_survival": survival[~labelled].mean(),
        }
        for score, of in SCORES.items():
            with suppress(NotTestable):
                ranks = [ranked(values, strata) for values in (of(heads).astype(float), survival)]
                row[score] = associated(heads, ranks, correlation_of)[0].mean()
        found = difference_of(evidence, scope=scope)
        row |= {"difference": found.value, "low": found.low, "high": found.high}
    return row


def draw(rows: pd.DataFrame) -> Figure:
    """Draw one row per model, the rows of all models in bold."""
    groups = rows.groupby(["corpus", "scope"], sort=False)
    wide = {"inches": style.DOUBLE - 2, "size": 8}
    titles = {key: style.wrap(f"{key[0]}, {style.SCOPES[key[1]]}", **wide) for key in groups.groups}
    # rows of its further lines
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
            model = f"{_target(row)}, seed {row['seed']}: {row['left']} left"
            labels[y] = "all models" if whole else model
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


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per model, then one for all of them; a dash where nothing can be measured."""
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
