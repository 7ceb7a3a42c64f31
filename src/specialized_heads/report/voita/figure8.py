"""Figure 8: functions of the encoder heads that pruning leaves (section 6.2.2).

One column per model, from the one with the most heads to the one with the fewest. A column stacks its heads by function:
positional at the bottom, then syntactic, rare words. A cell has layer-head, as in the unpruned model, and up to two functions of
the head ((+1): and one more), relations from the largest margin on. Heads without a function are one block, with their number.
"""

import pandas as pd
from matplotlib.figure import Figure

from specialized_heads.heads.functions import POSITIONAL, SYNTACTIC
from specialized_heads.report import style
from specialized_heads.report.data import Tables, encoder_heads, parted
from specialized_heads.report.voita import paper, sweep

LINE, TALLEST = 0.1, 4.6  # inches: of a line in a cell; of a column, above which cells become lower
SMALLEST_TEXT = 3.8  # points
SHOWN = 2  # functions of a head that its cell names
COLUMNS = ["corpus", "model", "lam", "target_heads", "seed", "heads", "place", "layer", "head", "functions", "names"]


def numbers(tables: Tables) -> pd.DataFrame:
    """One row per head of each model; place: in its column, from 1 at the bottom, the same for all heads without a function;
    names: of its functions in detail; heads: of the model.

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
        named = heads["functions"] != "other"
        heads["place"] = named.cumsum().where(named, named.sum() + 1)
        heads["names"] = ["; ".join(_names(head)) for head in heads.to_dict("records")]
        column = heads if len(heads) else pd.DataFrame([{}])
        shared = {key: model[key] for key in ("corpus", "model", "lam", "target_heads", "seed")}
        column = column.assign(**shared, heads=len(heads), whole=not model["scope"])
        frames.append(column.reindex(columns=[*COLUMNS, "whole"]))
    cells = pd.concat(frames, ignore_index=True).astype(dict.fromkeys(("place", "layer", "head"), "Int64"))
    return sweep.in_order(cells, {"heads": False, "whole": False, **sweep.WEAKEST_FIRST, "seed": True})[COLUMNS]


def _names(head: dict) -> list[str]:
    """The functions of a head in detail: `position −1`, `nsubj v→s`; relations from the largest margin to the smallest."""
    names = []
    for function in head["functions"].split("; "):
        if function == POSITIONAL:
            names.append(style.minus(f"position {head['positional_offset']:+.0f}").replace("+0", "0"))
        elif function == SYNTACTIC:
            by_margin = sorted(head["relations"], key=lambda name: -head[f"{name}_margin"])
            names += [f"{relation} {paper.direction_label(relation, end)}" for relation, end in map(parted, by_margin)]
        else:
            names.append(function)
    return names


def draw(cells: pd.DataFrame) -> Figure:
    columns = style.by(cells, "model")
    texts = {place: _text(heads) for place, heads in cells.dropna(subset="place").groupby(["model", "place"])}
    lines = [text.split("\n") for text in texts.values()]
    most, tall = max([1, *cells["place"].dropna()]), max([1, *map(len, lines)])
    height = min(LINE * tall, TALLEST / most)
    drawn = Figure(figsize=(style.DOUBLE, most * height + 1.5), layout="constrained")
    axes = drawn.add_subplot()
    width = 0.84 * (style.DOUBLE - 0.2) / max(6, len(columns))  # inches of a cell
    longest = max([1, *(len(line) for text in lines for line in text)])
    size = min(6.0, height * 72 / 1.3 / tall, width * 72 / 0.6 / longest)
    if size < SMALLEST_TEXT:  # numbers alone
        texts = {place: text.partition("\n")[0] for place, text in texts.items()}
        size = min(6.0, height * 72 / 1.35, width * 72 / 2.5)
    for x, (model, column) in enumerate(columns.items()):
        for place, heads in column.dropna(subset="place").groupby("place"):
            box = {"left": x - 0.42, "bottom": place - 1, "width": 0.84, "height": 1}
            style.function_cell(axes, heads["functions"].iloc[0].split("; "), **box)
            if size >= SMALLEST_TEXT:
                style.cell_text(axes, x, place - 0.5, texts[model, place], size=size)
    labels = [sweep.column_label(column.iloc[0], len(columns)) for column in columns.values()]
    axes.set_xticks(range(len(columns)), labels)
    axes.tick_params(axis="x", length=0)
    # Few columns keep the width of a cell instead of stretching over the page.
    spare = max(0.0, (6 - len(columns)) / 2)
    axes.set(xlim=(-0.5 - spare, len(columns) - 0.5 + spare), ylim=(0, most), xlabel="encoder heads retained")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    seed = cells["seed"].iloc[0]
    title = (
        f"{cells['corpus'].iloc[0]}: functions of the encoder heads that remain, seed {seed}; all others are one block"
    )
    axes.set_title(style.wrap(title, inches=style.DOUBLE - 0.5))
    style.function_legend(drawn)
    return drawn


def _text(cell: pd.DataFrame) -> str:
    """A head's number and functions, on a line each; of the heads without a function, how many they are."""
    head = cell.iloc[0]
    if head["functions"] == "other":
        return f"{len(cell)}\nother"
    first, more = head["names"].split("; ")[:SHOWN], head["names"].count(";") + 1 - SHOWN
    return "\n".join([f"{head['layer']}-{head['head']}" + (f" (+{more})" if more > 0 else ""), *first])
