"""Dead heads: which heads pruning removed, of each attention type, at each λ and number of heads.

The table has one row per model and seed and lists heads by layer; the CSV has one row per dead head. Both carry the remark on
models whose gates collapsed.
"""

from math import nan

import pandas as pd

from specialized_heads.report import style
from specialized_heads.report.inputs import Titles
from specialized_heads.report.output import save_table
from specialized_heads.report.voita import sweep
from specialized_heads.stage import arguments, read_json, run

CAPTION = (
    "Heads removed by pruning, as layer: heads, both counted from 1; a dash: no gates on this type of attention; in "
    "brackets, how many of the gated heads are dead; open (expected): expected number of open heads; decided: share of the gates "
    "that are closed or fully open with probability above 0.9; dev loss: in nats per target token, with the gates made 0 or 1 "
    "(hard) and before (soft); remark: where the gates missed their target."
)
GATES = ["expected", "decided", "loss_hard", "loss_soft"]
COLUMNS = ["corpus", "scope", "lam", "asked", "seed", "type", "layer", "head", *GATES, "remark"]
Models = dict[str, list[dict]]  # by title of the corpus, the contents of `dead_heads.json`


def numbers(models: Models) -> pd.DataFrame:
    """One row per dead head, and one for each model without any.

    Returns:
        corpus, scope, lam or asked (number of heads), seed, type, layer and head (missing where no head of a model is dead),
        expected (number of open heads), decided (share of the gates), loss_hard and loss_soft (on the development set, with the
        gates made 0 or 1 and before), remark (on the gates of the model, if any).
    """
    rows = []
    for title, model in _each(models):
        row = {"corpus": title, "scope": model["scope"], "lam": model["penalty"], "asked": model["heads"]}
        row |= {"seed": model["seed"], "remark": model["collapse"]} | {key: model[key] for key in GATES}
        dead = [{"type": kind, **head} for kind, heads in model["dead"].items() for head in heads]
        rows += [row | head for head in dead or [{}]]
    return pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(("asked", "layer", "head"), "Int64"))


def shown(models: Models) -> pd.DataFrame:
    """One row per model and seed; columns for seeds only where there are several, and for remarks where there are any."""
    rows = []
    for title, model in _each(models):
        lam, asked = (nan if model[name] is None else model[name] for name in ("penalty", "heads"))
        heads = [_heads(model, kind) for kind in style.TYPES]
        remark = model["collapse"] or ""
        losses = f"{model['loss_hard']:.3f} / {model['loss_soft']:.3f}"
        gates = [f"{model['expected']:.1f}", f"{model['decided']:.0%}", losses]
        rows.append([title, model["scope"], sweep.target(lam, asked), str(model["seed"]), *heads, *gates, remark])
    names = [name for name, _ in style.TYPES.values()]
    names += ["open (expected)", "decided", "dev loss hard / soft"]
    table = pd.DataFrame(rows, columns=["corpus", "scope", "model", "seed", *names, "remark"])
    table = sweep.without_constant(table, "seed")
    return table.drop(columns="remark") if (table["remark"] == "").all() else table


def _each(models: Models) -> list[tuple[str, dict]]:
    return [(title, model) for title, same in models.items() for model in same]


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
    models = Titles.model_validate(args.settings).read(args.dead, read_json)
    save_table(args.output, numbers(models), shown(models), caption=CAPTION)


if __name__ == "__main__":
    run(main)
