"""Dead heads: which heads pruning removed, of each attention type, at each λ and number of heads.

The table has one row per model and seed and lists heads by layer; the CSV has one row per dead head. Both carry the remark on
models whose gates collapsed.
"""

import pandas as pd

from specialized_heads.report import style
from specialized_heads.report.inputs import Files
from specialized_heads.report.voita import sweep
from specialized_heads.stage import read_json

READS = {"dead": Files(read_json)}
CAPTION = (
    "Heads removed by pruning, as layer: heads, both numbered from 1; a dash: no gates on this type of attention; in "
    "brackets, the number of dead heads among the gated ones; open (expected): expected number of open heads; decided: "
    "share of the gates that are closed or fully open with probability above 0.9; dev loss: in nats per target token, with "
    "the gates made 0 or 1 (hard) and before (soft); remark: where the gates missed their target."
)
GATES = ["expected", "decided", "loss_hard", "loss_soft"]
MODEL = ["corpus", "scope", "lam", "asked", "seed"]
COLUMNS = [*MODEL, "type", "layer", "head", *GATES, "remark"]


def numbers(models: dict[str, list[dict]]) -> pd.DataFrame:
    """One row per dead head, and one for each model without any, from the contents of `dead_heads.json` by corpus.

    expected: number of open heads; decided: share of the gates; loss_hard and loss_soft: on the development set, with the gates
    made 0 or 1 and before; by type, the number of gated heads.
    """
    rows = []
    for title, model in ((title, model) for title, same in models.items() for model in same):
        row = {"corpus": title, "scope": model["scope"], "lam": model["penalty"], "asked": model["heads"]}
        row |= {"seed": model["seed"], "remark": model["collapse"] or ""}
        row |= {key: model[key] for key in GATES} | model["gated"]
        dead = [{"type": kind, **head} for kind, heads in model["dead"].items() for head in heads]
        rows += [row | head for head in dead or [{}]]
    types = dict.fromkeys(("asked", "layer", "head"), "Int64")
    return pd.DataFrame(rows, columns=[*COLUMNS, *style.TYPES]).astype(types)


def shown(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per model and seed; columns for seeds only where there are several, and for remarks where there are any."""
    lines = []
    for _, same in rows.groupby(MODEL, dropna=False, sort=False):
        first = same.iloc[0]
        model = [first["corpus"], first["scope"], sweep.target(first["lam"], first["asked"]), str(first["seed"])]
        heads = [_heads(same[same["type"] == kind], first[kind]) for kind in style.TYPES]
        losses = f"{first['loss_hard']:.3f} / {first['loss_soft']:.3f}"
        lines.append([*model, *heads, f"{first['expected']:.1f}", f"{first['decided']:.0%}", losses, first["remark"]])
    names = [name for name, _ in style.TYPES.values()]
    names += ["open (expected)", "decided", "dev loss hard / soft"]
    table = pd.DataFrame(lines, columns=["corpus", "scope", "model", "seed", *names, "remark"])
    table = sweep.without_constant(table, "seed")
    return table.drop(columns="remark") if (table["remark"] == "").all() else table


def _heads(dead: pd.DataFrame, gated: int) -> str:
    """`1: 2 3 5; 3: 1 [4/24]`, layer by layer; a dash where the scope has no gates of this type."""
    layers = [f"{layer}: {' '.join(map(str, same['head']))}" for layer, same in dead.groupby("layer")]
    return f"{'; '.join(layers)} [{len(dead)}/{gated}]".strip() if gated else "–"
