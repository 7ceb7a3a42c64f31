"""The study at a glance: BLEU against the heads that are left, beside what those heads do (sections 6.2 and 6.3).

Left, the models pruned with both scopes over the number of heads of all three attention types; the band is the baseline's
95% bootstrap interval. Right, one row per model of the first seed: its heads by attention type, coloured by function, in
frames as long as the unpruned model has heads. Encoder heads can be positional, syntactic or rare-words heads; those of the
decoder positional, and those of cross-attention diagonal, which has the colour of positional. Heads that pass no threshold are
grey, and said to be without a function.
"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from specialized_heads.report import pruned, style, sweep
from specialized_heads.report.inputs import HEAD_COLUMNS, SCORE_COLUMNS, read_all, read_table
from specialized_heads.report.output import save_figure
from specialized_heads.stage import Section, arguments, run

NONE = "none found"
COLOURS = style.FUNCTIONS | {"diagonal": style.FUNCTIONS["positional"]}
ORDER = ["positional", "diagonal", *(name for name in style.FUNCTIONS if name not in ("positional", "other"))]
LOOKS = {"encoder": style.series(0), "all": style.series(2)}
ROW, GAP = 0.17, 0.05  # inches of a row; space between attention types, as a share of all heads
POINTS = [
    "scope", "kind", "lam", "asked", "seeds", "retained", "retained_low", "retained_high", "bleu", "bleu_low", "bleu_high",
]  # fmt: skip
KEYS = ["scope", "lam", "asked", "seed"]


class Settings(Section):
    """The models' names in the order of `--heads`, the baseline first, and the corpus's title."""

    names: list[str]
    title: str


def points(scores: pd.DataFrame) -> pd.DataFrame:
    """The left panel.

    Returns:
        one row per scope and target, the baselines of every scope first: scope, kind (baseline, pruned), lam or asked, seeds
        (how many), retained (heads of all types) and bleu, each with `_low` and `_high` (range over seeds; for the bleu of
        one seed the bootstrap interval).
    """
    rows = []
    for scope in LOOKS:
        for point, same in sweep.points(sweep.models(scores, scope=scope)):
            row = {"scope": scope} | point | sweep.spread(same["bleu"], "bleu")
            row |= sweep.spread(same[[f"{kind}_total" for kind in style.TYPES]].sum(axis=1), "retained")
            if len(same) == 1:
                row |= {"bleu_low": same["bleu_low"].iloc[0], "bleu_high": same["bleu_high"].iloc[0]}
            rows.append(row)
    return pd.DataFrame(rows, columns=POINTS)


def survivors(tables: dict[str, pd.DataFrame], scores: pd.DataFrame) -> pd.DataFrame:
    """The right panel.

    Args:
        tables: per-head table by model name (`baseline/seed1`, `pruned/all_lambda0.01/seed1`), the baseline first.
        scores: of these models among others.

    Returns:
        heads counted by model, attention type and functions (names joined by "; ", or "none found"): scope ("" for the baseline),
        lam, asked, seed, type, functions, heads, bleu (of the model). Attention types without heads have one row, of 0 heads.
    """
    scored = scores.loc[scores["kind"].isin(["baseline", "pruned"]), [*KEYS, "bleu"]]
    rows = []
    for name, table in tables.items():
        model = pruned.of_name(name)._asdict()
        for kind in style.TYPES:
            own = table.loc[table["type"] == kind, "functions"]
            names = own.map(lambda functions: "; ".join(sorted(functions, key=ORDER.index)) or NONE)
            counts = names.value_counts()
            for functions in sorted(counts.index, key=_place) or [NONE]:
                rows.append(model | {"type": kind, "functions": functions, "heads": int(counts.get(functions, 0))})
    counted = pd.DataFrame(rows, columns=[*KEYS, "type", "functions", "heads"])
    return counted.merge(scored.astype({"lam": float, "asked": float}), on=KEYS, how="left", validate="many_to_one")


def _place(functions: str) -> list[int]:
    """Where heads with these functions stand: those with several behind those with the first of them alone."""
    return [len(ORDER)] if functions == NONE else [ORDER.index(name) for name in functions.split("; ")]


def draw(curve: pd.DataFrame, heads: pd.DataFrame, *, title: str) -> Figure:
    """Draw the curve on the left and the survivors on the right."""
    if curve.empty:
        return style.message_figure(f"The study at a glance: {sweep.NO_PRUNED}", width=style.DOUBLE)
    models = list(heads.groupby(KEYS, dropna=False, sort=False))
    models.sort(key=lambda model: (["", *LOOKS].index(model[0][0]), -model[1]["heads"].sum()))
    figure = Figure(figsize=(style.DOUBLE, max(2.3, 1.0 + ROW * (len(models) + 2)) + 0.55), layout="constrained")
    figure.suptitle(style.wrap(title, inches=style.DOUBLE, size=8))
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.25])
    _curve(left, curve)
    _rows(right, models)
    several = curve["seeds"].max() > 1
    left.set_title("What pruning costs" + sweep.seeds_note(curve))
    right.set_title("What is left, and what it does" + (f" (seed {heads['seed'].iloc[0]})" if several else ""))
    figure.legend(handles=_key(), loc="outside lower right", ncols=5, handlelength=1.4, columnspacing=1.0)
    return figure


def _curve(axes: Axes, curve: pd.DataFrame) -> None:
    """BLEU against the heads that are left. The rows beside it name the two series."""
    whole = curve["kind"] == "baseline"
    baseline = curve[whole].iloc[0]
    axes.axhspan(baseline["bleu_low"], baseline["bleu_high"], color="#EEEEEE", linewidth=0, zorder=0)
    axes.axhline(baseline["bleu"], color="#777777", linewidth=0.8, linestyle="--")
    axes.annotate(
        f"baseline, {baseline['bleu']:.1f}",
        (0.02, baseline["bleu"]),
        xycoords=("axes fraction", "data"),
        xytext=(0, 2),
        textcoords="offset points",
        size=6.5,
        color="#555555",
    )
    both = sweep.both_kinds(curve)
    # The band is the baseline's bar.
    curve = curve.assign(bleu_low=curve["bleu_low"].mask(whole), bleu_high=curve["bleu_high"].mask(whole))
    for scope, own in curve.groupby("scope", sort=False):
        for series, look in sweep.split(own, LOOKS[scope], both=both):
            sweep.line(axes, series.iloc[::-1], x="retained", y="bleu", look=look)
    most = curve["retained"].max()
    axes.set(xlim=(-0.02 * most, 1.03 * most), xlabel="heads retained, of all types", ylabel="BLEU")
    axes.grid(axis="y")
    sweep.widen(axes)
    if both:
        axes.legend(handles=sweep.key(both=both), loc="best")


def _rows(axes: Axes, models: list[tuple[tuple, pd.DataFrame]]) -> None:
    """One row per model: a frame per attention type, filled from the left with the heads that are left."""
    whole = models[0][1].groupby("type", sort=False)["heads"].sum()
    total = whole.sum()
    starts = dict(zip(whole.index, whole.cumsum() - whole + GAP * total * np.arange(len(whole)), strict=True))
    columns = [(1 + 2 * GAP + share) * total for share in (0.14, 0.29)]  # right ends of the two columns of numbers
    for kind, x in starts.items():
        axes.text(x + whole[kind] / 2, -0.62, kind, size=6.5, ha="center", va="bottom")
    for x, text in zip(columns, ("heads", "BLEU"), strict=True):
        axes.text(x, -0.62, text, size=6.5, ha="right", va="bottom")
    heights, y, above = [], -1.0, ""
    for (scope, *_), own in models:
        y += 1.0
        if scope != above:
            y, above, look = y + 1.0, scope, LOOKS[scope]
            axes.plot(0.02 * total, y - 0.8, color=look.colour, marker=look.marker)
            axes.text(0.05 * total, y - 0.8, pruned.SCOPES[scope], size=6.5, va="center_baseline", color=look.colour)
        for kind, cells in own[own["type"].map(whole) > 0].groupby("type", sort=False):
            frame = Rectangle(
                (starts[kind], y - 0.38), whole[kind], 0.76, fill=False, edgecolor="#BBBBBB", linewidth=0.6
            )
            axes.add_patch(frame)
            _heads(axes, cells, left=starts[kind], bottom=y - 0.38)
        for x, text in zip(columns, (f"{own['heads'].sum()}", f"{own['bleu'].iloc[0]:.1f}"), strict=True):
            axes.text(x, y, text, size=6.5, va="center_baseline", ha="right")
        heights.append(y)
    axes.set_yticks(
        heights, [sweep.target(lam, asked) if scope else "baseline" for (scope, lam, asked, _), _ in models]
    )
    axes.set(xlim=(-0.01 * total, columns[-1]), ylim=(y + 0.6, -1.3))
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)


def _heads(axes: Axes, cells: pd.DataFrame, *, left: float, bottom: float) -> None:
    """The heads of one type, one unit wide each; those with several functions are filled with all of them, one above another."""
    for functions, heads in cells[["functions", "heads"]].itertuples(index=False):
        names = ["other"] if functions == NONE else functions.split("; ")
        height = 0.76 / len(names)
        for place, name in enumerate(names):
            corner = left, bottom + place * height
            axes.add_patch(Rectangle(corner, heads, height, edgecolor="#FFFFFFB0", **_fill(COLOURS[name])))
        left += heads


def _key() -> list[Patch]:
    """What the fills stand for."""
    labels = {"positional": "positional, diagonal", "other": "no function found"}
    patches = [
        Patch(edgecolor="white", label=labels.get(name, name), **_fill(fill)) for name, fill in style.FUNCTIONS.items()
    ]
    return [*patches, Patch(facecolor="white", edgecolor="#BBBBBB", linewidth=0.6, label="pruned")]


def _fill(fill: style.Fill) -> dict[str, object]:
    return {"facecolor": fill.colour, "hatch": fill.hatch, "linewidth": 0}


def main() -> None:
    args = arguments(__doc__, files=["scores", "output"], many=["heads"])
    settings = Settings.model_validate(args.settings)
    scores = read_table(args.scores, SCORE_COLUMNS)
    curve = points(scores)
    heads = survivors(read_all(args.heads, settings.names, columns=HEAD_COLUMNS), scores)
    shown = pd.concat([curve.assign(panel="left"), heads.assign(panel="right")], ignore_index=True)
    save_figure(args.output, shown, lambda: draw(curve, heads, title=settings.title))


if __name__ == "__main__":
    run(main)
