"""Tables of an experiment whose claims are known: a baseline of 30 BLEU, pruned models, single
heads removed."""

from dataclasses import replace
from itertools import product
from math import nan

import numpy as np
import pandas as pd
import pytest

from specialized_heads.experiment.names import CONTROLS, columns
from specialized_heads.model.architecture import KINDS
from specialized_heads.report.claims.claim import Measured, Verdict, claims, judge, measure
from specialized_heads.report.claims.evidence import Evidence, NotTestable

CLAIMS = {claim.name: claim for claim in claims()}
MEASURES = {name: measure(claim) for name, claim in CLAIMS.items()}

Models = dict[float, list[list[int]]]  # heads left by type and layer, by λ
WHOLE = [[8, 8, 8]] * 3
# Heads left by layer in models pruned in all types: the encoder loses most, the decoder in high
# layers, cross in low ones.
ALL_TYPES = {0.01: [[4, 2, 2], [8, 6, 4], [6, 8, 8]], 0.03: [[0, 0, 0], [2, 0, 0], [0, 1, 3]]}
# Encoder heads (layer, head) left; seven heads of the baseline have a function.
ENCODER = {
    0.01: [
        (1, 1),
        (1, 2),
        (1, 3),
        (1, 7),
        (1, 5),
        (1, 6),
        (2, 5),
        (2, 6),
        (2, 7),
        (2, 8),
        (3, 4),
        (3, 5),
    ],
    0.02: [(1, 2), (1, 4), (1, 5)],
}
KEYS = ("scope", "lam", "target_heads", "seed")
# of differences from λ 0, or of a control from the pruned model
INTERVAL = {"": 0.0, "_low": -0.4, "_high": 0.4}
TARGETS = {"lam": float, "target_heads": float}
SAME = {
    "metric": "BLEU",
    "chrf": 50.0,
    "signature": "s",
    "signature_tokenised": "t",
    "signature_chrf": "c",
}
SAME |= {
    "parameters": 10_000,
    "parameters_without_embeddings": 6000,
    "dev_loss": 3.25,
    "sentences": 1000,
}
SAME |= {"beam": 4, "max_length_ratio": 2.0, "updates": 900, "p_value": 0.5, "gates_decided": nan}
SAME |= {"source": "embedded", "source_language": "en", "target_language": "fr"}


def model(
    name: str = "baseline",
    kept: list[list[int]] = WHOLE,
    *,
    seed: int = 1,
    loss: float = 0.0,
    **more,
) -> dict:
    """A row of the table of models: this much BLEU below 30, the difference with half a point to
    both sides."""
    row = columns(name, seed) | SAME | {"bleu_tokenised": 31.5 - loss}
    for end, add in {"": 0, "_low": -1, "_high": 1}.items():
        row |= {f"bleu{end}": 30 - loss + add, f"difference{end}": -loss + add / 2}
    if name == "baseline":
        row |= dict.fromkeys(("difference", "difference_low", "difference_high", "p_value"), nan)
    if row["kind"] == "pruned":
        row |= {"updates": 140, "gates_decided": 1.0}
    for kind, layers in zip(KINDS, kept, strict=True):
        row |= {f"{kind}_layers": layers, f"{kind}_heads": sum(layers)}
    return row | more


def scores(*extra: dict, seed: int = 1, gain: float = 0.1, decided: float = 1.0) -> pd.DataFrame:
    """A baseline, a λ 0 control of each scope with this gain, two models pruned in the encoder and
    two in all types."""
    pruned = [
        model("pruned/encoder_lambda0.01", [[6, 4, 2], *WHOLE[1:]], loss=0.2),
        model("pruned/encoder_lambda0.02", [[3, 0, 0], *WHOLE[1:]], loss=1.0),
        model("pruned/all_lambda0.01", ALL_TYPES[0.01], loss=0.1),
        model("pruned/all_lambda0.03", ALL_TYPES[0.03], loss=0.7),
    ]
    controls = [
        model(f"pruned/{scope}_lambda0", loss=-gain, gates_decided=0.0)
        for scope in ("encoder", "all")
    ]
    rows = [model(), *controls, *(row | {"gates_decided": decided} for row in pruned)]
    return pd.DataFrame(
        with_counterparts([*(row | {"seed": seed} for row in rows), *extra])
    ).astype(TARGETS)


def with_counterparts(rows: list[dict]) -> list[dict]:
    """The models, compared with λ 0 of their scope, or controls with the pruned model: 0.4 points
    to both sides, p 0.02."""
    pruned = {
        tuple(row[name] for name in KEYS): row["bleu"] for row in rows if row["kind"] == "pruned"
    }
    compared = []
    for row in rows:
        other = {} if row["kind"] in CONTROLS else {"lam": 0.0, "target_heads": None}
        bleu = pruned.get(tuple((row | other)[name] for name in KEYS), nan)
        difference = nan if row["lam"] == 0 else row["bleu"] - bleu
        ends = {f"counterpart_difference{end}": difference + add for end, add in INTERVAL.items()}
        compared.append(
            row | ends | {"counterpart_p_value": 0.02 if difference == difference else nan}
        )
    return compared


def all_heads(
    heads: pd.DataFrame, *, seed: int = 1, all_types: Models | None = None
) -> pd.DataFrame:
    """These heads as the baseline's, and those of the pruned models."""
    tables = {"baseline": heads}
    for lam, names in ENCODER.items():
        kept = [
            row.type != "encoder" or (row.layer, row.head) in names for row in heads.itertuples()
        ]
        tables[f"pruned/encoder_lambda{lam}"] = heads[kept]
    for lam, counts in (all_types or ALL_TYPES).items():
        most = {
            kind: dict(enumerate(layers, start=1))
            for kind, layers in zip(KINDS, counts, strict=True)
        }
        # the first heads of each layer
        kept = [row.head <= most[row.type][row.layer] for row in heads.itertuples()]
        tables[f"pruned/all_lambda{lam}"] = heads[kept]
    frames = [table.assign(**columns(name, seed)).astype(TARGETS) for name, table in tables.items()]
    return pd.concat(frames, ignore_index=True)


def ablation(*, on: str = "test") -> pd.DataFrame:
    """Single heads of a model of BLEU 30: each costs as much as its number says; two of the
    encoder's are significant."""
    rows = []
    for kind, layer, head in product(KINDS, (1, 2, 3), range(1, 9)):
        row = {"type": kind, "layer": layer, "head": head}
        sure = kind == "encoder" and layer == 1 and head > 6
        rows.append(
            row | delta("without", 0.1 * head + 0.01 * layer, p_value=0.001 if sure else 0.4)
        )
        alone = 12.0 + head if (kind, layer) == ("cross", 3) else layer + 0.1 * head
        rows.append(row | delta("alone", alone, p_value=0.001))
    same = {
        "bleu_full": 30.0,
        "sentences": 1000,
        "metric": "BLEU",
        "systematic": False,
        "measured_on": on,
    }
    return pd.DataFrame(rows).assign(**same, kind="baseline", seed=1, second="development set")


def delta(what: str, loss: float, *, p_value: float) -> dict:
    ends = {"delta": -loss, "delta_low": -loss - 0.3, "delta_high": -loss + 0.3}
    return {"what": what, "bleu": 30 - loss, "p_value": p_value} | ends


def systematic() -> pd.DataFrame:
    """BLEU of 30 as heads are removed: at the end of training nothing is lost up to half of them,
    early it falls at once."""
    rows = []
    groups = {"all": 72, "encoder": 24, "decoder": 24, "cross": 24}
    for (update, full), what, tenth in product(
        ((100, 0.5), (300, 10.0), (pd.NA, 30.0)), groups, range(11)
    ):
        share, heads = tenth / 10, groups[what]
        kept = 1 - share if update is not pd.NA or what == "cross" else min(1.0, 2 * (1 - share))
        row = {
            "what": what,
            "removed": round(share * heads),
            "heads": heads,
            "share": share,
            "update": update,
        }
        for end, add in {"": 0, "_low": -0.3, "_high": 0.3}.items():
            row |= {f"delta{end}": full * (kept - 1) + add, f"bleu{end}": full * kept + add}
        rows.append(
            row | {"kind": "baseline" if update is pd.NA else "checkpoint", "bleu_full": full}
        )
    same = {
        "p_value": 0.5,
        "sentences": 1000,
        "metric": "BLEU",
        "systematic": True,
        "measured_on": "test",
    }
    return pd.DataFrame(rows).assign(**same, seed=1).astype({"update": "Int64"})


def evidence_of(heads: pd.DataFrame) -> Evidence:
    """All of it together, for heads of a model with three layers of eight."""
    tables = {"single": ablation(), "second": ablation(on="second"), "systematic": systematic()}
    corpus = {"title": "a", "stands_for": "", "pruned": True, "least_arcs": 30}
    return Evidence(**corpus, scores=scores(), heads=all_heads(heads), **tables)


def seeds(heads: pd.DataFrame, *all_types: Models) -> Evidence:
    """The same with one seed for each of these sets of models pruned in all types, by λ."""
    tables = [
        all_heads(heads, seed=seed, all_types=models)
        for seed, models in enumerate(all_types, start=1)
    ]
    own = pd.concat([scores(seed=seed) for seed in range(1, len(all_types) + 1)], ignore_index=True)
    return replace(evidence_of(heads), scores=own, heads=pd.concat(tables, ignore_index=True))


def verdict(name: str, evidence: Evidence) -> Verdict:
    return judge(CLAIMS[name], MEASURES[name](evidence))


def reason(measure: object, evidence: Evidence, **changed: object) -> str:
    with pytest.raises(NotTestable) as error:
        measure(replace(evidence, **changed))
    return str(error.value)


def values(measured: Measured) -> tuple[float, float, float]:
    return measured.value, measured.low, measured.high


# encoder heads of the tables, as in conftest
FUNCTIONAL = [(1, 1), (1, 2), (1, 3), (1, 7), (2, 5), (2, 6), (3, 4)]
POSITIONAL = [(1, 2), (1, 3), (1, 7), (2, 6)]


def planted(evidence: Evidence, **columns: object) -> Evidence:
    return replace(evidence, heads=evidence.heads.assign(**columns))


def flags(evidence: Evidence, places: list[tuple[int, int]]) -> np.ndarray:
    heads = evidence.heads
    return np.array([place in places for place in zip(heads["layer"], heads["head"])]) & heads[
        "type"
    ].eq("encoder")
