"""Tables of an experiment whose claims are known: a baseline of 30 BLEU, pruned models, single heads removed."""

from dataclasses import replace
from math import nan

import pandas as pd

from specialized_heads.model.architecture import KINDS
from specialized_heads.report.claims.evidence import Evidence

WHOLE = [[8, 8, 8]] * 3
# Heads left by layer in models pruned in all types: the encoder loses most, the decoder in high layers, cross in low ones.
ALL_TYPES = {0.01: [[4, 2, 2], [8, 6, 4], [6, 8, 8]], 0.03: [[0, 0, 0], [2, 0, 0], [0, 1, 3]]}
# Encoder heads (layer, head) left; seven heads of the baseline have a function.
ENCODER = {
    0.01: [(1, 1), (1, 2), (1, 3), (1, 7), (1, 5), (1, 6), (2, 5), (2, 6), (2, 7), (2, 8), (3, 4), (3, 5)],
    0.02: [(1, 2), (1, 4), (1, 5)],
}


def model(
    kind: str, scope: str, lam: float, seed: int, loss: float, kept: list[list[int]], *, decided: float = 1.0, **other
) -> dict:
    """A row of scores: this much BLEU below a baseline of 30, with an interval of half a point to both sides."""
    row = {"kind": kind, "scope": scope, "lam": lam, "asked": nan, "seed": seed, "sentences": 1000, "p_value": 0.5}
    row |= {"updates": 140 if kind == "pruned" else 900, "gates_decided": decided if kind == "pruned" else nan}
    row |= {"bleu": 30 - loss, "bleu_low": 29 - loss, "bleu_high": 31 - loss, "bleu_tokenised": 31.5 - loss}
    for name, layers in zip(KINDS, kept, strict=True):
        row |= {f"{name}_heads": layers, f"{name}_total": sum(layers)}
    ends = (nan, nan, nan) if kind == "baseline" else (-loss, -loss - 0.5, -loss + 0.5)
    return row | dict(zip(("difference", "difference_low", "difference_high"), ends, strict=True)) | other


def scores(*extra: dict, seed: int = 1, gain: float = 0.1, decided: float = 1.0) -> pd.DataFrame:
    """A baseline, a λ 0 control of each scope with this gain, two models pruned in the encoder and two in all types."""
    rows = [
        model("baseline", "", nan, seed, 0, WHOLE),
        *(model("pruned", scope, 0.0, seed, -gain, WHOLE, decided=0.0) for scope in ("encoder", "all")),
        model("pruned", "encoder", 0.01, seed, 0.2, [[6, 4, 2], *WHOLE[1:]], decided=decided),
        model("pruned", "encoder", 0.02, seed, 1.0, [[3, 0, 0], *WHOLE[1:]], decided=decided),
        model("pruned", "all", 0.01, seed, 0.1, ALL_TYPES[0.01], decided=decided),
        model("pruned", "all", 0.03, seed, 0.7, ALL_TYPES[0.03], decided=decided),
        *extra,
    ]
    return pd.DataFrame(rows)


def left(heads: pd.DataFrame, counts: list[list[int]]) -> pd.DataFrame:
    """The table of a model that keeps the first heads of each layer, this many by type and layer."""
    kept = {kind: dict(enumerate(layers, start=1)) for kind, layers in zip(KINDS, counts, strict=True)}
    return heads[[row.head <= kept[row.type][row.layer] for row in heads.itertuples()]]


def all_heads(
    heads: pd.DataFrame, *, seed: int = 1, all_types: dict[float, list[list[int]]] | None = None
) -> pd.DataFrame:
    """These heads as the baseline's, and those of the pruned models."""
    for end, shift in (("margin_low", -0.03), ("margin_high", 0.03)):
        for column in [name for name in heads if name.endswith("_margin")]:
            heads[column.removesuffix("margin") + end] = heads[column] + shift
    tables = [heads.assign(kind="baseline", scope="", lam=nan)]
    for lam, names in ENCODER.items():
        kept = [row.type != "encoder" or (row.layer, row.head) in names for row in heads.itertuples()]
        tables.append(heads[kept].assign(kind="pruned", scope="encoder", lam=lam))
    for lam, counts in (all_types or ALL_TYPES).items():
        tables.append(left(heads, counts).assign(kind="pruned", scope="all", lam=lam))
    return pd.concat(tables, ignore_index=True).assign(asked=nan, seed=seed)


def ablation() -> pd.DataFrame:
    """Single heads of a model of BLEU 30: each costs as much as its number says; two of the encoder's are significant."""
    rows = []
    for kind in KINDS:
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
    tables = {"single": ablation(), "second": ablation(), "systematic": systematic()}
    corpus = {"title": "a", "stands_for": "", "pruned": True, "least_arcs": 30}
    return Evidence(**corpus, scores=scores(), heads=all_heads(heads), **tables)


def seeds(heads: pd.DataFrame, *all_types: dict[float, list[list[int]]]) -> Evidence:
    """The same with one seed for each of these sets of models pruned in all types, by λ."""
    tables = [all_heads(heads, seed=seed, all_types=models) for seed, models in enumerate(all_types, start=1)]
    own = pd.concat([scores(seed=seed) for seed in range(1, len(all_types) + 1)], ignore_index=True)
    return replace(evidence_of(heads), scores=own, heads=pd.concat(tables, ignore_index=True))
