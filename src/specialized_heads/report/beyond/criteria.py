"""Criteria compared: BLEU against the number of heads that each one keeps, without and with fine-tuning (figure and table).

On the left, the baseline without the heads that a criterion rejects; on the right, the same after as many updates as pruning with
gates takes. For comparison, the figure also shows the models that gates pruned to the same numbers of heads: they had as many
updates, but most of them while the gates were closing.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from specialized_heads.report import style
from specialized_heads.report.data import Tables, stack
from specialized_heads.report.voita import sweep

LABELS = {"gates": "heads that gates keep", "random": "random, one draw per seed", "pruned": "pruned by gates"}
ORDER = ["baseline", *style.CRITERIA]
SCOPES = {"encoder": "encoder heads", "all": "heads of all types"}
COLUMNS = [
    "corpus", "scope", "finetuned", "criterion", "heads", "seeds", "bleu", "bleu_low", "bleu_high", "bleu_sd",
    "difference", "difference_low", "difference_high", "p_value", "updates", "sentences",
]  # fmt: skip
NOTHING = "no criteria are compared in this experiment"
CAPTION = (
    "Test BLEU of the baseline with the heads that each criterion keeps, before and after fine-tuning; in brackets, 95% "
    "bootstrap intervals (with several seeds: mean ± standard deviation); Δ: BLEU minus that of the baseline of the same "
    "seed; p: against that baseline (paired bootstrap), the largest over seeds, or 1 if some seeds gain and others lose; "
    "random: one draw per seed"
)
BASELINE = {"color": style.PAPER_COLOUR, "linewidth": 0.8, "linestyle": "--"}


def numbers(tables: Tables) -> pd.DataFrame:
    """The points of each corpus with cut models, one row each (`sweep.over_seeds`).

    criterion: also "baseline", and "pruned" for models pruned by gates; heads: of the scope; difference: from the baseline of
    the same seed.
    """
    frames = []
    for title, scores in style.by(tables.pruned(), "corpus").items():
        pruned = (scores["kind"] == "pruned") & scores["target_heads"].notna()
        if not ((scores["kind"] == "finetuned") & (scores["criterion"] == "gates")).any():
            pruned &= False  # the gates' own heads were not fine-tuned, so there is nothing to compare with
        names = scores["criterion"].mask(scores["kind"] == "baseline", "baseline").mask(pruned, "pruned")
        models = scores.assign(criterion=names)
        models = models[models["kind"].isin(["baseline", "cut", "finetuned"]) | pruned]
        models = models.assign(finetuned=models["kind"].isin(["pruned", "finetuned"]))
        for scope in (name for name in SCOPES if name in set(scores.loc[scores["kind"] == "cut", "scope"])):
            totals = [f"{kind}_heads" for kind in (["encoder"] if scope == "encoder" else style.TYPES)]
            rows = models[(models["scope"] == scope) | (models["kind"] == "baseline")]
            rows = rows.assign(heads=rows[totals].sum(axis=1), place=rows["criterion"].map(ORDER.index))
            keys = ["heads", "place", "criterion", "finetuned"]
            points = sweep.over_seeds(rows, ["bleu", "difference"], keys, p_values="difference")
            same = rows.groupby(keys)
            points = points.assign(bleu_sd=same["bleu"].std().to_numpy(), corpus=title, scope=scope)
            points[["updates", "sentences"]] = same[["updates", "sentences"]].first().astype(int).to_numpy()
            frames.append(sweep.in_order(points, {"heads": False, "place": True, "finetuned": True}))
    return stack(frames, COLUMNS)


def draw(points: pd.DataFrame) -> Figure:
    """Draw one row of panels per corpus and scope; left without, right with fine-tuning."""
    rows = list(points.groupby(["corpus", "scope"], sort=False))
    stages = (False, True) if points["finetuned"].any() else (False,)
    # One row per corpus and scope; where nothing is fine-tuned, two of them side by side.
    height = len(rows) if len(stages) == 2 else (len(rows) + 1) // 2
    drawn = Figure(figsize=(style.DOUBLE, 0.5 + 2.1 * height), layout="constrained")
    if len(stages) == 2:
        grid = drawn.subplots(len(rows), 2, sharex="row", sharey="row", squeeze=False)
    else:
        grid = drawn.subplots(height, 2, squeeze=False).reshape(-1, 1)
        for axes in grid[len(rows) :, 0]:
            axes.set_visible(False)
    for panels, ((corpus, scope), same) in zip(grid, rows):
        baseline = same[same["criterion"] == "baseline"].squeeze()
        for axes, finetuned in zip(panels, stages, strict=True):
            models = same[(same["finetuned"] == finetuned) & (same["criterion"] != "baseline")]
            axes.axhline(baseline["bleu"], **BASELINE)
            for criterion, series in style.by(models, "criterion").items():
                _series(axes, series.sort_values("heads"), look=style.CRITERIA[criterion])
            axes.grid(axis="y")
            axes.set_xlabel(f"{SCOPES[scope]} retained, of {baseline['heads']}")
            title = f"fine-tuned, {models['updates'].max():,.0f} updates" if len(models) else "none is fine-tuned"
            title = title if finetuned else "not fine-tuned"
            title = f"{corpus}: {title}" if points["corpus"].nunique() > 1 else title
            axes.set_title(style.wrap(title, inches=style.DOUBLE / 2 - 0.6))
        panels[0].set_ylabel(f"BLEU of {baseline['sentences']:,} sentences")
        panels[0].set_xlim(-0.03 * baseline["heads"], 1.03 * baseline["heads"])
        sweep.widen(panels[0])
    present = set(points["criterion"])
    looks = {name: look for name, look in style.CRITERIA.items() if name in present}
    handles = [style.key(look, LABELS.get(name, name)) for name, look in looks.items()]
    handles.append(Line2D([], [], label="baseline", **BASELINE))
    if (seeds := points["seeds"].max()) > 1:
        band = {"color": style.PAPER_COLOUR, "alpha": 0.15, "linewidth": 0}
        handles.append(Patch(label=f"mean and range of {seeds} seeds", **band))
    handles.append(sweep.hollow_key("baseline", color=style.PAPER_COLOUR))
    drawn.legend(handles=handles, loc="outside lower center", ncols=4)
    return drawn


def _series(axes: Axes, series: pd.DataFrame, *, look: style.Series) -> None:
    if series["seeds"].max() > 1:
        band = series["bleu_low"], series["bleu_high"]
        axes.fill_between(series["heads"], *band, color=look.colour, alpha=0.15, linewidth=0)
    axes.plot(series["heads"], series["bleu"], color=look.colour, marker=look.marker, linestyle=look.line)
    sweep.hollow(axes, series, x="heads", y="bleu", look=look)


def shown(points: pd.DataFrame) -> pd.DataFrame:
    """The table as text: one row per corpus, scope, number of heads and criterion; corpus and n where there are several."""
    rows = []
    keys = ["corpus", "scope", "heads", "criterion"]
    for key, same in points.groupby(keys, sort=False):
        row = dict(zip(keys, map(str, key))) | {"n": str(same["seeds"].max())}
        for finetuned, suffix in ((False, ""), (True, ", fine-tuned")):
            models = same[same["finetuned"] == finetuned].to_dict("records")
            cells = _cells(models[0]) if models else ("", "", "")
            row |= dict(zip((f"BLEU{suffix}", f"Δ{suffix}", f"p{suffix}"), cells))
        rows.append(row)
    return sweep.without_constant(pd.DataFrame(rows), "corpus")


def _cells(point: dict) -> tuple[str, str, str]:
    bleu = sweep.value_text(point["bleu"], sd=point["bleu_sd"], low=point["bleu_low"], high=point["bleu_high"])
    if point["criterion"] == "baseline":
        return bleu, "", ""
    return bleu, sweep.value_text(point["difference"], sign=True), sweep.p_text(point["p_value"])


def caption(points: pd.DataFrame) -> str:
    if points.empty:
        return f"{CAPTION}; {NOTHING}."
    sentences = ", ".join(f"{number:,}" for number in points["sentences"].unique())
    return f"{CAPTION}; {sentences} sentences" + ("; n: seeds." if points["seeds"].max() > 1 else ".")
