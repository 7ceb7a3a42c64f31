"""Tables of an experiment whose claims are known: a baseline of 30 BLEU, pruned models, single heads removed."""

from math import nan

import numpy as np
import pandas as pd

from specialized_heads.report.claims.evidence import Evidence

WHOLE = [[8, 8, 8]] * 3


def model(
    kind: str, scope: str, lam: float, seed: int, loss: float, kept: list[list[int]], *, updates: int = 900
) -> dict:
    """A row of scores: so much BLEU below a baseline of 30, its interval half a point to both sides."""
    row = {"kind": kind, "scope": scope, "lam": lam, "asked": nan, "seed": seed, "updates": updates, "sentences": 1000}
    row |= {
        "bleu": 30 - loss,
        "bleu_low": 29 - loss,
        "bleu_high": 31 - loss,
        "p_value": 0.5,
        "bleu_tokenised": 31.5 - loss,
    }
    for name, layers in zip(("encoder", "decoder", "cross"), kept, strict=True):
        row |= {f"{name}_heads": layers, f"{name}_total": sum(layers)}
    ends = (nan, nan, nan) if kind == "baseline" else (-loss, -loss - 0.5, -loss + 0.5)
    return row | dict(zip(("difference", "difference_low", "difference_high"), ends, strict=True))


def scores(*extra: dict, seed: int = 1) -> pd.DataFrame:
    """A baseline; encoder heads 12 of 24 at a loss of 0.2 and 3 at 1.0; and two models pruned in all types."""
    rows = [
        model("baseline", "", nan, seed, 0, WHOLE),
        model("pruned", "encoder", 0.01, seed, 0.2, [[6, 4, 2], [8, 8, 8], [8, 8, 8]]),
        model("pruned", "encoder", 0.02, seed, 1.0, [[3, 0, 0], [8, 8, 8], [8, 8, 8]]),
        model("pruned", "all", 0.01, seed, 0.1, [[4, 2, 2], [8, 6, 4], [6, 8, 8]]),
        model("pruned", "all", 0.03, seed, 0.7, [[0, 0, 0], [2, 0, 0], [0, 1, 3]]),
        *extra,
    ]
    return pd.DataFrame(rows)


def labelled(heads: pd.DataFrame, kind: str, *, lam: float = nan, scope: str = "", seed: int = 1) -> pd.DataFrame:
    return heads.assign(kind=kind, scope=scope, lam=lam, asked=nan, seed=seed, positional_ceiling=0.95)


def survivors(heads: pd.DataFrame, left: list[tuple[int, int]]) -> pd.DataFrame:
    """The table of a model that has these encoder heads, as (layer, head), and all others."""
    encoder = heads["type"] == "encoder"
    kept = [pair in left for pair in zip(heads["layer"], heads["head"], strict=True)]
    return heads[~encoder | np.array(kept)]


def all_heads(heads: pd.DataFrame) -> pd.DataFrame:
    """These heads, seven of which have a function, as the baseline's, and those of the two encoder-pruned models."""
    for end in ("margin_low", "margin_high"):
        for column in [name for name in heads if name.endswith("_margin")]:
            heads[column.removesuffix("margin") + end] = heads[column] + (0.03 if end.endswith("high") else -0.03)
    first = survivors(
        heads, [(1, 1), (1, 2), (1, 3), (1, 7), (1, 5), (1, 6), (2, 5), (2, 6), (2, 7), (2, 8), (3, 4), (3, 5)]
    )
    second = survivors(heads, [(1, 2), (1, 4), (1, 5)])
    return pd.concat(
        [
            labelled(heads, "baseline"),
            labelled(first, "pruned", lam=0.01, scope="encoder"),
            labelled(second, "pruned", lam=0.02, scope="encoder"),
        ],
        ignore_index=True,
    )


def ablation() -> pd.DataFrame:
    """Single heads of a model of BLEU 30: each costs as much as its number says; two of the encoder's are significant."""
    rows = []
    for kind in ("encoder", "decoder", "cross"):
        for layer in (1, 2, 3):
            for head in range(1, 9):
                row = {"type": kind, "layer": layer, "head": head, "bleu_full": 30.0, "sentences": 1000, "seed": 1}
                loss = 0.1 * head + (0.01 * layer)
                sure = kind == "encoder" and layer == 1 and head > 6
                rows.append(row | delta("without", loss, p_value=0.001 if sure else 0.4))
                alone = 12.0 + head if (kind, layer) == ("cross", 3) else layer + 0.1 * head
                rows.append(row | delta("alone", alone, p_value=0.001))
    return pd.DataFrame(rows).assign(moment=pd.NA)


def delta(what: str, loss: float, *, p_value: float) -> dict:
    ends = {"delta": -loss, "delta_low": -loss - 0.3, "delta_high": -loss + 0.3}
    return {"what": what, "bleu": 30 - loss, "p_value": p_value} | ends


def systematic() -> pd.DataFrame:
    """BLEU of 30 as heads are removed: at the end of training nothing is lost up to half of them, early it falls at once."""
    rows = []
    for moment, full in ((100, 0.5), (300, 10.0), (pd.NA, 30.0)):
        for pruned, heads in (("all", 72), ("encoder", 24), ("decoder", 24), ("cross", 24)):
            for tenth in range(11):
                share = tenth / 10
                kept = 1 - share if moment is not pd.NA or pruned == "cross" else min(1.0, 2 * (1 - share))
                row = {"pruned": pruned, "removed": round(share * heads), "heads": heads, "share": share}
                ends = {
                    f"delta{end}": full * (kept - 1) + add for end, add in (("", 0), ("_low", -0.3), ("_high", 0.3))
                }
                row |= {"bleu": full * kept, "bleu_full": full, "p_value": 0.5, "sentences": 1000}
                rows.append(row | ends | {"seed": 1, "moment": moment})
    return pd.DataFrame(rows).astype({"moment": "Int64"})


def evidence_of(heads: pd.DataFrame) -> Evidence:
    """All of it together, for heads of a model with three layers of eight."""
    return Evidence(
        title="a",
        stands_for="",
        pruned=True,
        scores=scores(),
        heads=all_heads(heads),
        single=ablation(),
        second=ablation(),
        systematic=systematic(),
        least_arcs=30,
    )
