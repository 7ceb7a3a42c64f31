"""Figure 8: functions of the encoder heads that pruning leaves (section 6.2.2).

One column per model, from the one with the most heads to the one with the fewest. A column stacks its heads by function:
positional at the bottom, then syntactic, rare words, other. The number in a cell is layer-head, as in the unpruned model.
"""

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import style
from specialized_heads.report.data import Tables, encoder_heads
from specialized_heads.report.voita import sweep

HEIGHT, TALLEST = 0.13, 4.6  # inches: of a cell; of a column, above which cells become lower
COLUMNS = ["corpus", "model", "lam", "target_heads", "seed", "heads", "place", "layer", "head", "functions"]


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per head of each model; place: in its column, from 1 at the bottom; heads: of the model.

    A model without heads has one row.
    """
    corpus = tables.swept("encoder")
    functions = list(style.FUNCTIONS)
    frames = []
    for model, own in tables.each(corpus, "encoder"):
        heads = encoder_heads(own)
        # Heads with the same first function are neighbours, those that have it alone first.
        heads["key"] = [tuple(map(functions.index, text.split("; "))) for text in heads["functions"]]
        heads = heads.sort_values(["key", "layer", "head"])
        column = heads.assign(place=range(1, len(heads) + 1)) if len(heads) else pd.DataFrame([{}])
        shared = {key: model[key] for key in ("corpus", "model", "lam", "target_heads", "seed")}
        column = column.assign(**shared, heads=len(heads), whole=not model["scope"])
        frames.append(column.reindex(columns=[*COLUMNS, "whole"]))
    cells = pd.concat(frames, ignore_index=True).astype(dict.fromkeys(("place", "layer", "head"), "Int64"))
    order = {"heads": False, "whole": False, **sweep.WEAKEST_FIRST, "seed": True, "place": True}
    return sweep.in_order(cells, order)[COLUMNS]


def draw(cells: pd.DataFrame) -> Figure:
    """Draw one column per model."""
    columns = style.by(cells, "model")
    most = max(1, int(cells["heads"].max()))
    height = min(HEIGHT, TALLEST / most)
    drawn = Figure(figsize=(style.DOUBLE, most * height + 1.35), layout="constrained")
    axes = drawn.add_subplot()
    size = min(6.0, height * 72 / 1.35, style.DOUBLE / len(columns) * 72 / 3)
    for x, column in enumerate(columns.values()):
        for cell in column.dropna(subset="place").itertuples():
            box = {"left": x - 0.42, "bottom": cell.place - 1, "width": 0.84, "height": 1}
            style.function_cell(axes, cell.functions.split("; "), **box)
            if size >= 4.5:
                style.cell_text(axes, x, cell.place - 0.5, f"{cell.layer}-{cell.head}", size=size)
    labels = [f"{column['heads'].iloc[0]}\n{_target(column.iloc[0], len(columns))}" for column in columns.values()]
    axes.set_xticks(range(len(columns)), labels)
    axes.tick_params(axis="x", length=0)
    # Few columns keep the width of a cell instead of stretching over the page.
    spare = max(0.0, (6 - len(columns)) / 2)
    axes.set(xlim=(-0.6 - spare, len(columns) - 0.4 + spare), ylim=(0, most), ylabel="encoder heads retained")
    note = f"; {sweep.NO_PRUNED}" if cells[["lam", "target_heads"]].isna().all(axis=None) else ""
    axes.set_title(
        style.wrap(
            f"{cells['corpus'].iloc[0]}: functions of the encoder heads that remain{note}", inches=style.DOUBLE - 0.5
        )
    )
    style.function_legend(drawn)
    return drawn


def _target(model: pd.Series, columns: int) -> str:
    """The label of a model's target, on two lines where columns are narrow."""
    label = sweep.label(model["lam"], model["target_heads"])
    return label.replace(" ", "\n") if columns > 12 else label
