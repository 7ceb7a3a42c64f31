"""All models of an experiment: their scores and sizes, and the curves of their training."""

import math
from collections.abc import Iterator

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specialized_heads.evaluation import LEAST_ROUND_TRIP
from specialized_heads.pruning.prune import MIN_DECIDED
from specialized_heads.report import style, sweep
from specialized_heads.report.data import TOTALS, Tables, with_ends

SCORES_CAPTION = (
    "All models. Target: λ per head, number of heads, or the updates of the baseline's training "
    "after which the checkpoint was "
    "kept; heads left in encoder self-attention, decoder self-attention and cross-attention; gates "
    "that end closed or fully open "
    f"with probability above 0.9 (with less than {MIN_DECIDED:.0%}, the choice of heads is a "
    f"rounding; by order: too many or too "
    "few gates were open when a number of heads was chosen, so that the order of log α alone chose "
    "them); BLEU with 95% "
    "bootstrap interval, and chrF, of the test set; loss on the development set in nats per target "
    "token, if training has a log; "
    "updates of training, or of fine-tuning if the baseline was pruned; parameters with and "
    "without the embeddings of source, "
    "target and softmax."
)
KEYS = ["kind", "scope", "criterion", "lam", "target_heads", "update", "seed"]
SIGNATURES = {
    "BLEU": "signature",
    "BLEU of Moses tokens (tok. in table 2)": "signature_tokenised",
    "chrF": "signature_chrf",
}
SCORES = ["updates", *with_ends("bleu"), "chrf", *SIGNATURES.values(), "sentences"]
DECODING = ["beam", "max_length_ratio"]
SCORES_COLUMNS = [
    "corpus",
    *KEYS,
    *TOTALS,
    "gates_decided",
    "parameters",
    "parameters_without_embeddings",
]
SCORES_COLUMNS += ["dev_loss", *SCORES]
ACROSS, HEIGHT = 3, 1.7  # panels beside each other; inches of a panel
MOST = 8  # entries of a panel's legend; of more models that many are named, evenly spaced
CURVES_COLUMNS = [
    "corpus",
    "kind",
    "scope",
    "criterion",
    "lam",
    "target_heads",
    "seed",
    "update",
    "loss",
    "dev_loss",
]
TITLES = {
    "pruned": "pruned",
    "scratch": "from scratch",
    "continued": "from scratch, second decay",
    "count": "as many heads, from scratch",
    "continued_count": "as many heads, second decay",
    "regularised": "with gates, from scratch",
    "continued_regularised": "with gates at first, second decay",
    "finetuned": "cut by a criterion, fine-tuned",
}
DEVELOPMENT = {"markersize": 2.5, "linestyle": "none"}
THIN = {"linewidth": 0.9}


def scores_numbers(tables: Tables) -> pd.DataFrame:
    """One row per model; dev_loss: at the end of its training, in nats per target token, missing
    without a log."""
    return tables.translation().reset_index(drop=True)


def scores_shown(rows: pd.DataFrame) -> pd.DataFrame:
    """Table of models: one row per model and seed of the experiment, with its heads, size, training
    and scores.

    Parameters are given with and without the three embedding matrices (source, target, softmax),
    which pruning of heads leaves as they are. Notes below the table give the signatures of the
    scores, each once, and how each corpus was translated.
    """
    lines = []
    for row in rows.to_dict("records"):
        target = "" if row["kind"] == "baseline" else sweep.target(row["lam"], row["target_heads"])
        line = {
            "corpus": row["corpus"],
            "model": ", ".join(filter(None, [row["kind"], row["criterion"]])),
            "scope": row["scope"],
            "target": f"update {row['update']:.0f}" if row["kind"] == "checkpoint" else target,
            "seed": str(row["seed"]),
            "enc/dec/cross": sweep.heads_text(row),
            "gates decided": _decided(row),
            "BLEU": sweep.interval_text(row, "bleu"),
            "chrF": f"{row['chrf']:.1f}",
            "dev loss": sweep.value_text(row["dev_loss"], digits=3),
            "updates": f"{row['updates']:,}",
            "parameters": f"{row['parameters']:,}",
            "without embeddings": f"{row['parameters_without_embeddings']:,}",
        }
        lines.append(line)
    return sweep.without_constant(pd.DataFrame(lines), "seed")


def _decided(row: dict) -> str:
    if row["lam"] == 0 or pd.isna(row["gates_decided"]):
        return ""
    return f"{row['gates_decided']:.0%}" + ", by order" * (row.get("gates_by_order") == 1)


def scores_notes(rows: pd.DataFrame) -> list[str]:
    """The signatures of the scores, with their corpora where they differ; then how each corpus was
    translated."""
    lines = []
    for name, column in SIGNATURES.items():
        signed = rows.groupby(column, sort=False)["corpus"].unique()
        for signature, titles in signed.items():
            of = f" of {', '.join(titles)}" if len(signed) > 1 else ""
            lines.append(f"{name}{of}: {signature}")
    if "bleu_round_trip" in rows:
        for title, most in (
            rows.groupby("corpus", sort=False)["bleu_round_trip"].first().dropna().items()
        ):
            low = (
                "; BLEU is too low by about as much, so compare tok. in table 2"
                if most < LEAST_ROUND_TRIP
                else ""
            )
            lines.append(
                f"References of {title}, made lower-case Moses tokens and text again: BLEU "
                f"{most:.2f}{low}."
            )
    for (beam, longest), same in rows.groupby(DECODING, sort=False):
        sizes = same.groupby("corpus", sort=False)["sentences"].first()
        sets = ", ".join(f"{title} ({size:,} test sentences)" for title, size in sizes.items())
        lines.append(
            f"Translation of {sets}: beam search with {beam} hypotheses, ranked by log P / length; "
            f"at most "
            f"{longest:g} times the source's subwords, plus 10."
        )
    return lines


def curves_numbers(tables: Tables) -> pd.DataFrame:
    """One row per record of each model's log; loss: of training, mean since the record before;
    unit: what it is per."""
    tasks = set(tables.tasks()["corpus"])
    units = ["sentence" if corpus in tasks else "token" for corpus in tables.logs["corpus"]]
    return (
        tables.logs.reindex(columns=CURVES_COLUMNS).assign(unit=units).astype({"dev_loss": float})
    )


def curves_draw(curves: pd.DataFrame) -> Figure:
    """Training curves: loss against updates, for each model of the experiment that was trained.

    One panel per corpus, kind of model and scope of pruning. Colours, dashes and markers are the λ
    or the number of heads or, where a criterion chose the heads, the criterion at all numbers of
    heads. Lines are the training loss, points the loss on the development set. The two differ in
    more than the data: the training loss includes label smoothing, dropout and random gates, the
    development loss does not.
    """
    groups = list(curves.groupby(["corpus", "kind", "scope"], sort=False))
    drawn, grid, panels = style.panels(len(groups), across=ACROSS, height=HEIGHT, more_height=0.4)
    inches = style.DOUBLE / grid.shape[1] - 0.4
    for axes, ((corpus, kind, scope), same) in zip(panels, groups, strict=True):
        if kind != "baseline":
            base = curves[(curves["corpus"] == corpus) & (curves["kind"] == "baseline")].dropna(
                subset="dev_loss"
            )
            for loss in base.groupby("seed")["dev_loss"].last():
                axes.axhline(loss, **style.REFERENCE)
        _panel(axes, same)
        what = f"{TITLES[kind]} ({scope})" if scope else kind
        axes.set_title(f"{style.wrap(corpus, inches=inches)}\n{style.wrap(what, inches=inches)}")
        axes.set_xlim(0, None)
        axes.grid(axis="y")
    for axes in grid[:, 0]:
        axes.set_ylabel(f"loss, nats per {' or '.join(curves['unit'].unique())}")
    style.label_lowest(grid, "update")
    handles = [
        Line2D([], [], color=style.PAPER_COLOUR, label="training", **THIN),
        Line2D(
            [], [], color=style.PAPER_COLOUR, label="development set", marker="o", **DEVELOPMENT
        ),
        Line2D([], [], label="baseline's last on the development set", **style.REFERENCE),
    ]
    drawn.legend(handles=handles, loc="outside lower center", ncols=3)
    return drawn


def _panel(axes: Axes, curves: pd.DataFrame) -> None:
    """The models of one panel; the seeds of a model are lines of the same colour."""
    key = []
    for label, look, same in _looks(curves):
        for _, curve in same.groupby(["target_heads", "seed"], dropna=False):
            # A line of one point would be invisible.
            line = {
                "color": look.colour,
                "linestyle": look.line,
                "marker": "." if len(curve) == 1 else None,
            }
            axes.plot(curve["update"], curve["loss"], **line, **THIN)
            held_out = curve.dropna(subset="dev_loss")
            axes.plot(
                held_out["update"],
                held_out["dev_loss"],
                color=look.colour,
                marker=look.marker,
                **DEVELOPMENT,
            )
        if label:
            key.append(style.key(look, label, markersize=2.5, **THIN))
    if key:
        axes.margins(y=0.15 + 0.15 * math.ceil(len(key) / 2))  # room for the rows of the legend
        axes.set_ylim(axes.dataLim.y0 - 0.05 * axes.dataLim.height, None)
        axes.legend(
            handles=key,
            loc="upper center",
            ncols=2,
            fontsize=5.5,
            handlelength=1.8,
            columnspacing=0.8,
        )


def _looks(curves: pd.DataFrame) -> Iterator[tuple[str, style.Series, pd.DataFrame]]:
    """The curves of a panel by their look: the label in the legend ("": none), the look, and the
    curves."""
    if curves["criterion"].iloc[0]:
        for name, same in style.by(curves, "criterion").items():
            yield name, style.CRITERIA[name], same
        return
    ordered = sweep.in_order(curves, sweep.WEAKEST_FIRST)
    targets = list(ordered.groupby(["lam", "target_heads"], dropna=False, sort=False))
    named = style.evenly(len(targets), most=MOST)
    for place, ((lam, asked), same) in enumerate(targets):
        label = sweep.target(lam, asked) if place in named and same["scope"].iloc[0] else ""
        yield label, style.ordered(place, len(targets)), same
