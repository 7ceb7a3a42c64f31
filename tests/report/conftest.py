"""Made-up results of an experiment: its five tables, and the files beside them that a few figures
read."""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from claim_tables import (
    ALL_TYPES,
    KINDS,
    ablation,
    evidence_of,
    model,
    seeds,
    systematic,
    with_counterparts,
)
from matplotlib.figure import Figure
from matplotlib.text import Text

from specialized_heads.experiment.figures import BY_STEM
from specialized_heads.experiment.names import columns
from specialized_heads.report import make as maker
from specialized_heads.report import style
from specialized_heads.report.claims.evidence import Evidence
from specialized_heads.report.data import Tables, load
from specialized_heads.report.gather import COLUMNS, KEYS

RELATIONS = ("nsubj", "obj", "amod", "advmod")
DIRECTIONS = ("head_to_dependent", "dependent_to_head")
FUNCTIONS = {
    (1, 1): ["rare words"],
    (1, 2): ["positional"],
    (1, 3): ["positional", "syntactic"],
    (2, 5): ["syntactic"],
}
FUNCTIONS |= {
    (1, 7): ["positional", "syntactic", "rare words"],
    (2, 6): ["positional"],
    (3, 4): ["syntactic"],
}


def heads_table(
    layers: int = 3, heads: int = 8, *, seed: int = 0, relations=RELATIONS, empty=()
) -> pd.DataFrame:
    """The heads of a model: a few with a function, the rest without; relations in `empty` have no
    arcs.

    Fewer sentences are aligned than parsed: arcs and baselines are other ones than in
    `relations_table`.
    """
    random = np.random.default_rng(seed)
    rows = []
    for kind, layer, head in product(KINDS, range(1, layers + 1), range(1, heads + 1)):
        confidence = random.uniform(0.1, 0.95)
        row = {
            "type": kind,
            "layer": layer,
            "head": head,
            "relevance": random.gamma(0.6),
            "confidence": confidence,
        }
        row |= {"entropy": 2 * (1 - confidence), "positional_share": confidence, "functions": []}
        row["positional_offset"] = 1 if head == 4 else -1
        rows.append(
            row | (encoder_row(random, layer, head, relations, empty) if kind == "encoder" else {})
        )
    table = pd.DataFrame(rows)
    return table.assign(
        relevance=table["relevance"]
        / table.groupby(["type", "layer"])["relevance"].transform("sum")
    )


def encoder_row(
    random: np.random.Generator, layer: int, head: int, relations, empty
) -> dict[str, object]:
    """What encoder heads alone have."""
    shares = ("positional_share", "rarest", "two_rarest", "share_-1", "share_+0", "share_+1")
    row = dict(zip(shares, random.uniform(0, 1, len(shares)))) | {
        "functions": FUNCTIONS.get((layer, head), [])
    }
    for number, (relation, direction) in enumerate(product(relations, DIRECTIONS)):
        name, known = f"{relation}_{direction}", relation not in empty
        accuracy, baseline = (
            (random.uniform(0.02, 0.75), 0.4) if known else (float("nan"), float("nan"))
        )
        row |= {f"{relation}_arcs": 301 + number // 2 if known else 0, f"{name}_baseline": baseline}
        for end, add in {"": 0, "_low": -0.03, "_high": 0.03}.items():
            row |= {
                f"{name}{end}": accuracy + add,
                f"{name}_margin{end}": accuracy + add - baseline,
            }
    names = [f"{relations[0]}_{DIRECTIONS[0]}"] if "syntactic" in row["functions"] else []
    return row | {"relations": names, "relations_certain": names}


def without(table: pd.DataFrame, keep: int) -> pd.DataFrame:
    """The table after pruning encoder heads: the most relevant `keep` of them, their own numbers
    kept."""
    encoder = (
        table[table["type"] == "encoder"].nlargest(keep, "relevance").sort_values(["layer", "head"])
    )
    return pd.concat([encoder, table[table["type"] != "encoder"]], ignore_index=True)


def relations_table(*, relations=RELATIONS, empty=()) -> pd.DataFrame:
    """A table of relations, with the thresholds of functions; relations in `empty` have no arcs."""
    offsets = np.array([position for position in range(-9, 10) if position])
    rows = []
    for number, (relation, direction) in enumerate(product(relations, DIRECTIONS)):
        best = (1 + number // 2) * (-1 if direction == DIRECTIONS[0] else 1)
        counts = (900 * 0.5 ** np.abs(offsets - best)).astype(int)
        known = {
            "arcs": counts.sum(),
            "offsets": offsets,
            "counts": counts,
            "baseline_offset": best,
        }
        known["baseline_accuracy"] = counts.max() / counts.sum()
        none = {
            "arcs": 0,
            "offsets": [],
            "counts": [],
            "baseline_offset": 0,
            "baseline_accuracy": None,
        }
        rows.append(
            {"relation": relation, "direction": direction} | (none if relation in empty else known)
        )
    return pd.DataFrame(rows).assign(least_arcs=30, syntactic_margin=0.1)


def sweep(
    layers: int = 3, heads: int = 8, *, lambdas=(0.001, 0.01), seeds=(1,), retrain=("all",)
) -> list[dict]:
    """Models: baselines and, for each scope and λ, a pruned one and for `retrain` its twin; another
    seed, other numbers."""
    full = [heads] * layers
    rows = [model("baseline", [full] * 3, seed=seed, loss=-0.1 * seed) for seed in seeds]
    for seed in seeds:
        for scope in ("encoder", "all"):
            for number, lam in enumerate(lambdas, start=1):
                own = [max(0, heads - 2 * number - (layer + seed) % 3) for layer in range(layers)]
                kept = (
                    [own, full, full]
                    if scope == "encoder"
                    else [own, own[::-1], [max(own)] * layers]
                )
                loss = 0.3 * number - 0.1 * seed**2
                rows.append(
                    model(
                        f"pruned/{scope}_lambda{lam}",
                        kept,
                        seed=seed,
                        loss=loss,
                        p_value=0.02 * number,
                    )
                )
                if scope in retrain:
                    rows.append(
                        model(f"scratch/{scope}_lambda{lam}", kept, seed=seed, loss=loss + 0.4)
                    )
    return rows


def models_of(heads: dict[str, pd.DataFrame] | pd.DataFrame) -> list[dict]:
    """The models that have these heads."""
    named = heads if isinstance(heads, dict) else {"baseline": heads}
    layers = range(1, 1 + max([0, *(layer for own in named.values() for layer in own["layer"])]))
    rows = []
    for name, own in named.items():
        counts = own.groupby(["type", "layer"]).size()
        text, _, seed = name.partition("/seed")
        kept = [[int(counts.get((kind, layer), 0)) for layer in layers] for kind in KINDS]
        rows.append(model(text, kept, seed=int(seed or 1)))
    return rows


def tables(folder: Path, **given: dict) -> Tables:
    """The five tables of an experiment, written and read as in the pipeline.

    Each is given by title of the corpus; those about models also by their names, such as
    `pruned/encoder_lambda0.01`, or `baseline/seed2` for another seed than 1. Without `models`, they
    are those whose heads are given.
    """
    if "models" not in given:
        given["models"] = {title: models_of(heads) for title, heads in given["heads"].items()}
    for name in Tables._fields:
        frames = []
        for title, parts in given.get(name, {}).items():
            for of, part in (parts if isinstance(parts, dict) else {"baseline": parts}).items():
                text, _, seed = of.partition("/seed")
                keys = {"experiment": "e", "corpus": title, "title": title}
                keys |= columns(text, int(seed or 1)) if name != "relations" else {}
                frame = pd.DataFrame(
                    with_counterparts(part) if name == "models" and isinstance(part, list) else part
                )
                frames.append(
                    frame.assign(**{key: value for key, value in keys.items() if key not in frame})
                )
        table = (
            pd.concat(frames, ignore_index=True)
            if frames
            else pd.DataFrame(columns=COLUMNS.get(name))
        )
        table = table.reindex(
            columns=[*KEYS, *(column for column in table if column not in KEYS)]
        ).astype(KEYS)
        table.to_parquet(folder / f"{name}.parquet")
    return load([folder])


def texts(figure: Figure) -> list[str]:
    """Everything that is written in a figure, each text on one line."""
    return [text.get_text().replace("\n", " ") for text in figure.findobj(Text) if text.get_text()]


@pytest.fixture(autouse=True)
def sheet() -> Iterator[None]:
    """Figures have the project's style, as in the pipeline."""
    with style.sheet():
        yield


@pytest.fixture
def make(tmp_path: Path) -> SimpleNamespace:
    """The functions of this file that make results up."""
    folder = tmp_path / "made_up"
    folder.mkdir()
    made = {
        "heads": heads_table,
        "without": without,
        "relations": relations_table,
        "model": model,
        "sweep": sweep,
    }
    made |= {
        "ablation": ablation,
        "systematic": systematic,
        "texts": texts,
        "tables": partial(tables, folder),
    }
    return SimpleNamespace(**made)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Make a figure or table as the pipeline does, from the five tables alone; return its stem."""

    def run(made: str, tables: Tables, settings: dict | None = None) -> Path:
        (tmp_path / "data").mkdir(exist_ok=True)
        for name, table in tables._asdict().items():
            table.to_parquet(tmp_path / "data" / f"{name}.parquet")
        stem, result = tmp_path / made, BY_STEM[made]
        argv = [
            "make",
            *f"specialized_heads.report.{result.module}".split(),
            "--data",
            tmp_path / "data",
            "--output",
            stem,
        ]
        argv += [
            "--settings",
            json.dumps((settings or {}) | {"files": dict.fromkeys(result.files, [])}),
        ]
        monkeypatch.setattr(sys, "argv", list(map(str, argv)))
        maker.main()
        return stem

    return run


@pytest.fixture
def evidence() -> Evidence:
    """What a small experiment has to show for the claims of both papers."""
    return evidence_of(heads_table())


@pytest.fixture
def three(make) -> Evidence:
    """Three equal baselines with their pruned models."""
    return seeds(make.heads(), ALL_TYPES, ALL_TYPES, ALL_TYPES)


@pytest.fixture
def holding(make, evidence: Evidence) -> Callable[..., Tables]:
    """`holding({"EN-FR": heads})`: tables with the evidence, for each corpus that has heads."""

    def of(heads: dict[str, pd.DataFrame]) -> Tables:
        ablation = pd.concat(
            [evidence.single, evidence.second, evidence.systematic], ignore_index=True
        )
        known = {"models": evidence.scores, "ablation": ablation, "relations": make.relations()}
        return make.tables(
            heads=heads, **{name: dict.fromkeys(heads, frame) for name, frame in known.items()}
        )

    return of
