"""Dead heads: which heads pruning removed, of every attention type, at every λ and number of heads.

One row per model and seed; the table as it is read names heads by layer, the numbers have one row per dead head. What was
said of gates that collapsed stands beside.
"""

import pandas as pd

from specialized_heads.report import style, sweep
from specialized_heads.report.inputs import Titles, by_title
from specialized_heads.report.output import save_table
from specialized_heads.stage import arguments, read_json, run

CAPTION = (
    "Heads removed by pruning, as layer: heads, both counted from 1; a dash: no gates on this type of attention; in "
    "brackets, how many of the gated heads are dead; remark: where gates did not do what was asked of them"
)
COLUMNS = ["corpus", "scope", "lam", "asked", "seed", "type", "layer", "head", "remark"]


def numbers(models: dict[str, list[dict]]) -> pd.DataFrame:
    """One row per dead head, and one for each model that has none.

    Args:
        models: by title of the corpus, what the stage `dead_heads` wrote.

    Returns:
        corpus, scope, lam or asked (number of heads), seed, type, layer and head (missing where no head of a model is
        dead), remark (on the gates of the model, if any).
    """
    rows = []
    for title, own in models.items():
        for model in own:
            row = {"corpus": title, "scope": model["scope"], "lam": model["penalty"], "asked": model["heads"]}
            row |= {"seed": model["seed"], "remark": model["collapse"]}
            dead = [{"type": kind, **head} for kind, heads in model["dead"].items() for head in heads]
            rows += [row | head for head in dead or [{}]]
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.astype(dict.fromkeys(("asked", "layer", "head"), "Int64"))


def shown(models: dict[str, list[dict]]) -> pd.DataFrame:
    """One row per model and seed; the column for seeds only where there are several, that for remarks where there are any."""
    rows = []
    for title, own in models.items():
        for model in own:
            row = {"corpus": title, "scope": model["scope"]}
            row |= {
                "model": sweep.target(_number(model["penalty"]), _number(model["heads"])),
                "seed": str(model["seed"]),
            }
            row |= {name: _heads(model, kind) for kind, (name, _) in style.TYPES.items()}
            rows.append(row | {"remark": model["collapse"] or ""})
    columns = ["corpus", "scope", "model", "seed", *(name for name, _ in style.TYPES.values()), "remark"]
    table = pd.DataFrame(rows, columns=columns)
    needless = {"seed": table["seed"].nunique() < 2, "remark": (table["remark"] == "").all()}
    return table.drop(columns=[name for name, drop in needless.items() if drop])


def _number(value: float | None) -> float:
    return float("nan") if value is None else value


def _heads(model: dict, kind: str) -> str:
    """`1: 2 3 5; 3: 1 [4/24]`, layer by layer; a dash where the scope has no gates of this type."""
    gated, dead = model["gated"][kind], model["dead"][kind]
    if not gated:
        return "–"
    layers: dict[int, list[str]] = {}
    for head in dead:
        layers.setdefault(head["layer"], []).append(str(head["head"]))
    listed = "; ".join(f"{layer}: {' '.join(heads)}" for layer, heads in layers.items())
    return f"{listed} [{len(dead)}/{gated}]".strip()


def main() -> None:
    args = arguments(__doc__, files=["output"], many=["dead"])
    titles = Titles.model_validate(args.settings).titles
    models = {title: read_json(path) for title, path in by_title(args.dead, titles).items()}
    save_table(args.output, numbers(models), shown(models), caption=CAPTION + ".")


if __name__ == "__main__":
    run(main)
