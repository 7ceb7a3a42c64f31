"""Figure 8: which functions the encoder heads have that pruning leaves (section 6.2.2).

One column per model, from the one with the most heads to the one with the fewest. A column stacks its heads by
function: positional ones at the bottom, then syntactic, rare words, other; the number in a cell is layer-head, as in
the unpruned model.
"""

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.report import pruned, style, sweep
from specialized_heads.report.inputs import HEAD_COLUMNS, encoder_heads, read_all
from specialized_heads.report.output import save_figure
from specialized_heads.report.sweep import NO_PRUNED
from specialized_heads.stage import Section, UserError, arguments, run

HEIGHT, TALLEST = 0.13, 4.6  # inches: of a cell, and of a column, in which many cells are made lower
COLUMNS = ["model", "lam", "asked", "seed", "heads", "place", "layer", "head", "functions"]


class Settings(Section):
    """What the heads files are: the models' names, in the order of the files, and the corpus's title."""

    names: list[str]
    title: str


def numbers(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Cells of every column.

    Args:
        tables: per-head table by model name: `baseline/seed1`, `pruned/encoder_lambda0.01/seed1`,
            `pruned/encoder_heads4/seed1`.

    Returns:
        one row per head: model, lam, asked (heads that pruning aimed at, in place of λ; the baseline has neither), seed,
        heads (of the model), place (from 1 at the bottom), layer, head, functions; models by falling number of heads, the
        baseline first, then by rising λ and by heads asked for. A model without heads has one row without a place.
    """
    functions = list(style.FUNCTIONS)
    frames = []
    for name, table in tables.items():
        heads = encoder_heads(table)
        # Heads with the same first function stand together, those that have it alone first.
        heads["key"] = [tuple(map(functions.index, text.split("; "))) for text in heads["functions"]]
        heads = heads.sort_values(["key", "layer", "head"])
        model = pruned.of_name(name)
        if model.scope == "all":
            raise UserError(f"settings: names: {name!r} has lost heads of other types than the encoder's")
        column = heads.assign(place=range(1, len(heads) + 1)) if len(heads) else pd.DataFrame([{}])
        column = column.assign(model=name, lam=model.lam, asked=model.asked, seed=model.seed, heads=len(heads))
        frames.append(column.assign(whole=not model.scope).reindex(columns=[*COLUMNS, "whole"]))
    cells = pd.concat(frames, ignore_index=True).astype(dict.fromkeys(("place", "layer", "head"), "Int64"))
    order = {"heads": False, "whole": False, **sweep.WEAKEST_FIRST, "seed": True, "place": True}
    return sweep.in_order(cells, order)[COLUMNS]


def draw(cells: pd.DataFrame, *, title: str) -> Figure:
    """Draw one column per model."""
    columns = dict(list(cells.groupby("model", sort=False)))
    most = max(1, int(cells["heads"].max()))
    height = min(HEIGHT, TALLEST / most)
    figure = Figure(figsize=(style.DOUBLE, most * height + 1.35), layout="constrained")
    axes = figure.add_subplot()
    size = min(6.0, height * 72 / 1.35, style.DOUBLE / len(columns) * 72 / 3)
    for place, column in enumerate(columns.values()):
        for cell in column.dropna(subset="place").to_dict("records"):
            box = {"left": place - 0.42, "bottom": cell["place"] - 1, "width": 0.84, "height": 1}
            style.function_cell(axes, cell["functions"].split("; "), **box)
            if size >= 4.5:
                style.cell_text(axes, place, cell["place"] - 0.5, f"{cell['layer']}-{cell['head']}", size=size)
    seeds = cells["seed"].nunique() > 1
    labels = [_label(column.iloc[0], seeds=seeds, narrow=len(columns) > 12) for column in columns.values()]
    axes.set_xticks(range(len(columns)), labels)
    axes.tick_params(axis="x", length=0)
    # Few columns keep the width of a cell instead of stretching over the page.
    spare = max(0.0, (6 - len(columns)) / 2)
    axes.set(xlim=(-0.6 - spare, len(columns) - 0.4 + spare), ylim=(0, most), ylabel="encoder heads retained")
    note = f"; {NO_PRUNED}" if cells[["lam", "asked"]].isna().all(axis=None) else ""
    axes.set_title(style.wrap(f"{title}: functions of the encoder heads that remain{note}", inches=style.DOUBLE - 0.5))
    style.function_legend(figure)
    return figure


def _label(model: pd.Series, *, seeds: bool, narrow: bool) -> str:
    how = pruned.label(model["lam"], model["asked"])
    lines = [f"{model['heads']}", how.replace(" ", "\n") if narrow else how]
    return "\n".join([*lines, f"seed {model['seed']}"] if seeds else lines)


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["heads"])
    settings = Settings.model_validate(args.settings)
    cells = numbers(read_all(args.heads, settings.names, columns=HEAD_COLUMNS))
    save_figure(args.output, cells, lambda: draw(cells, title=settings.title))


if __name__ == "__main__":
    run(main)
