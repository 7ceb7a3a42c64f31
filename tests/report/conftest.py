"""Made-up results in the form that the analysis stages write, at the sizes of a small model and of the paper's."""

import importlib
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claim_tables import evidence_of
from matplotlib.figure import Figure
from matplotlib.text import Text
from specialized_heads.report.experiment import Model, describe

from specialized_heads import report
from specialized_heads.report import make as maker
from specialized_heads.report import style
from specialized_heads.report.claims.evidence import Evidence

RELATIONS = ("nsubj", "obj", "amod", "advmod")
DIRECTIONS = ("head_to_dependent", "dependent_to_head")


def heads_table(layers: int = 3, heads: int = 8, *, seed: int = 0, relations=RELATIONS, empty=()) -> pd.DataFrame:
    """A per-head table: a few heads with a function, one of them with two, the rest without; relations in `empty` have no arcs.

    Fewer sentences are aligned than parsed: arcs and baselines are other ones than in `relations_table`.
    """
    random = np.random.default_rng(seed)
    rows = []
    for kind in ("encoder", "decoder", "cross"):
        for layer in range(1, layers + 1):
            relevance = random.dirichlet(np.full(heads, 0.6))
            for head in range(1, heads + 1):
                row = {"type": kind, "layer": layer, "head": head, "relevance": relevance[head - 1]}
                confidence = random.uniform(0.1, 0.95)
                row |= {"confidence": confidence, "entropy": 2 * (1 - confidence), "positional_share": confidence}
                row |= {"positional_offset": 1 if head == 4 else -1, "functions": [], "relations": None}
                if kind == "encoder":
                    row["positional_share"] = random.uniform(0, 1)
                    row |= {"rarest": random.uniform(0, 0.7), "two_rarest": random.uniform(0.7, 0.9)}
                    for number, relation in enumerate(relations):
                        row[f"{relation}_arcs"] = 0 if relation in empty else 301 + number
                        for direction in DIRECTIONS:
                            accuracy = float("nan") if relation in empty else random.uniform(0.02, 0.75)
                            name = f"{relation}_{direction}"
                            row |= {name: accuracy, f"{name}_low": accuracy - 0.03, f"{name}_high": accuracy + 0.03}
                            baseline = float("nan") if relation in empty else 0.4
                            row |= {f"{name}_baseline": baseline, f"{name}_margin": accuracy - 0.4}
                    row["functions"] = _functions(layer, head)
                    row["relations"] = [f"{relations[0]}_{DIRECTIONS[0]}"] if "syntactic" in row["functions"] else []
                rows.append(row)
    return pd.DataFrame(rows)


def _functions(layer: int, head: int) -> list[str]:
    table = {(1, 1): ["rare words"], (1, 2): ["positional"], (1, 3): ["positional", "syntactic"], (2, 5): ["syntactic"]}
    table |= {(2, 6): ["positional"], (3, 4): ["syntactic"], (1, 7): ["positional", "syntactic", "rare words"]}
    return table.get((layer, head), [])


def without(table: pd.DataFrame, keep: int) -> pd.DataFrame:
    """The table after pruning encoder heads: the most relevant `keep` of them, their own numbers kept."""
    encoder = table[table["type"] == "encoder"].nlargest(keep, "relevance").sort_values(["layer", "head"])
    return pd.concat([encoder, table[table["type"] != "encoder"]], ignore_index=True)


def relations_table(*, seed: int = 0, relations=RELATIONS, empty=()) -> pd.DataFrame:
    """A table of relations; those in `empty` have no arcs."""
    random = np.random.default_rng(seed)
    rows = []
    for number, relation in enumerate(relations):
        for direction in DIRECTIONS:
            sign = -1 if (direction == "head_to_dependent") == (relation != "obj") else 1
            offsets = np.array([position for position in range(-9, 10) if position])
            expected = 900 * 0.5 ** np.abs(offsets - sign * (1 + number % 2))
            row = {"relation": relation, "direction": direction, "arcs": 0, "offsets": [], "counts": []}
            row |= {"baseline_offset": 0, "baseline_accuracy": None}
            if relation not in empty:
                counts = random.poisson(expected)
                best = int(counts.argmax())
                row |= {"arcs": int(counts.sum()), "offsets": offsets.tolist(), "counts": counts.tolist()}
                row |= {"baseline_offset": int(offsets[best]), "baseline_accuracy": counts[best] / counts.sum()}
            rows.append(row)
    return pd.DataFrame(rows)


def score_row(
    kind: str, scope: str, lam: float, seed: int, bleu: float, kept: list[list[int]], *, asked: float = float("nan")
) -> dict[str, object]:
    """One row of a table of scores; `kept` holds heads per layer for encoder, decoder and cross."""
    row = {"kind": kind, "scope": scope, "lam": lam, "asked": asked, "seed": seed, "signature": "BLEU"}
    row |= {
        "sentences": 1000,
        "parameters": 10_000,
        "updates": 900,
        "p_value": float("nan"),
        "difference": float("nan"),
    }
    row |= {
        "bleu": bleu,
        "bleu_low": bleu - 0.7,
        "bleu_high": bleu + 0.7,
        "bleu_tokenised": bleu + 1.5,
        "chrf": bleu + 20,
    }
    if kind != "baseline":
        row |= {"p_value": min(0.5, 0.01 * (bleu - 20) ** 2), "difference": -0.3}
    for name, layers in zip(("encoder", "decoder", "cross"), kept, strict=True):
        row |= {f"{name}_heads": layers, f"{name}_total": sum(layers)}
    return row


def scores_table(
    layers: int = 3,
    heads: int = 8,
    *,
    lambdas: tuple[float, ...] = (0.0005, 0.001, 0.002, 0.005, 0.01),
    seeds: tuple[int, ...] = (1,),
    bleu: float = 27.0,
    retrain: tuple[str, ...] = ("all",),
) -> pd.DataFrame:
    """A table of scores with the baseline and, for each scope and λ, a pruned model and for `retrain` its twin."""
    rows = []
    full = [heads] * layers
    for seed in seeds:
        random = np.random.default_rng(seed)
        rows.append(score_row("baseline", "", float("nan"), seed, bleu + 0.1 * seed, [full, full, full]))
        for scope in ("encoder", "all"):
            for number, lam in enumerate(lambdas):
                share = 1 - (number + 1) / len(lambdas)
                encoder = [int(random.binomial(heads, share)) for _ in full]
                decoder = [int(round(heads * (share + 0.1) ** (1 + layer))) for layer in range(layers)]
                cross = [int(round(heads * (share + 0.2) ** (1 / (1 + layer)))) for layer in range(layers)]
                others = [full, full] if scope == "encoder" else [decoder, [min(c, heads) for c in cross]]
                kept = [encoder, *others]
                pruned = bleu + 0.1 * seed + 0.2 - 2.0 * (1 - share) ** 3 + random.normal(0, 0.1)
                rows.append(score_row("pruned", scope, lam, seed, pruned, kept))
                if scope in retrain:
                    rows.append(score_row("scratch", scope, lam, seed, pruned - 0.4, kept))
    return pd.DataFrame(rows)


def examples(sentences: list[str], *, kind: str = "rare words", eos: str = "</s>", seed: int = 0) -> dict[str, object]:
    """Attention of one head on sentences, pieces separated by spaces, most of it on one piece."""
    random = np.random.default_rng(seed)
    shown = []
    for sentence in sentences:
        tokens = [*sentence.split(), eos]
        rarest = int(random.integers(len(tokens) - 1))
        attention = random.dirichlet(np.full(len(tokens), 0.3), size=len(tokens))
        attention[:, rarest] += 1.5
        attention /= attention.sum(1, keepdims=True)
        shown.append({"tokens": tokens, "attention": attention.tolist(), "rarest": rarest})
    return {"layer": 1, "head": 3, "kind": kind, "score": 0.664, "sentences": shown}


def model(path: str, *, corpus: str = "EN-FR") -> Model:
    """The model at this path, such as `pruned/encoder_lambda0.01/seed1`."""
    name, _, seed = path.rpartition("/seed")
    return describe(name, corpus=corpus, seed=int(seed))


def by_model(values: dict[str, Any]) -> dict[Model, Any]:
    """The values by model instead of by path."""
    return {model(path): value for path, value in values.items()}


def as_runs(paths: Iterable[str]) -> list[dict[str, object]]:
    """The setting that names the models at these paths."""
    parts = [path.rpartition("/seed") for path in paths]
    return [{"corpus": "EN-FR", "model": name, "seed": int(seed)} for name, _, seed in parts]


def texts(figure: Figure) -> list[str]:
    """Everything that is written in a figure."""
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


@pytest.fixture(autouse=True)
def sheet() -> Iterator[None]:
    """Figures have the project's style, as in the pipeline."""
    with style.sheet():
        yield


@pytest.fixture
def make() -> SimpleNamespace:
    """The functions of this file that make results up."""
    return SimpleNamespace(
        heads=heads_table,
        without=without,
        relations=relations_table,
        scores=scores_table,
        score_row=score_row,
        examples=examples,
        texts=texts,
        model=model,
        by_model=by_model,
        as_runs=as_runs,
    )


@pytest.fixture
def write(tmp_path: Path):
    """Write a table or a JSON value into the test's folder and return its path."""

    def to_file(name: str, value: pd.DataFrame | dict) -> Path:
        path = tmp_path / name
        if isinstance(value, pd.DataFrame):
            value.to_parquet(path)
        else:
            path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")
        return path

    return to_file


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Run a module of the report as the pipeline does; return the stem of what it wrote."""

    def run(module: str, settings: dict | None = None, **files: list[Path]) -> Path:
        [path] = Path(report.__file__).parent.rglob(f"{module}.py")
        dotted = ".".join(path.relative_to(Path(report.__file__).parent).with_suffix("").parts)
        page = importlib.import_module(f"specialized_heads.report.{dotted}")
        stem = tmp_path / "out" / module
        outputs = ("figure", "table") if hasattr(page, "draw") and hasattr(page, "shown") else ("output",)
        argv = ["make", page.__name__, "--settings", json.dumps(settings or {})]
        for name, paths in (files | dict.fromkeys(outputs, [stem])).items():
            argv += [f"--{name}", *map(str, paths)]
        monkeypatch.setattr(sys, "argv", argv)
        maker.main()
        return stem

    return run


@pytest.fixture
def evidence(make: SimpleNamespace) -> Evidence:
    """What a small experiment has to show for the claims of both papers."""
    return evidence_of(make.heads())
