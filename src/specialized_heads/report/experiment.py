"""The models of an experiment: what their names say, and where their files are.

A command line has no room for the paths of hundreds of models. So the stages about all of them take the experiment's folder
and, for each corpus, the names of its models (`models` in the workflow), each of which exists once per seed.
"""

import re
from collections.abc import Iterator
from math import nan
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from specialized_heads.stage import Section, UserError

NAME = re.compile(
    r"(?P<kind>baseline)|(?P<kept>checkpoint)/update(?P<moment>\d+)"
    r"|(?P<made>[a-z]+)/(?:(?P<criterion>[a-z]+)_)?(?P<scope>encoder|all)_(?:lambda(?P<lam>[^/_]+)|heads(?P<asked>\d+))"
)
SCOPES = {"encoder": "encoder heads pruned", "all": "heads of all types pruned"}


class Corpus(Section):
    name: str  # of its folder
    title: str
    models: list[str]  # of one seed, in the order of the experiment's tables


class Models(Section):
    """Settings: all models of an experiment."""

    corpora: list[Corpus]
    seeds: list[int]


class Model(NamedTuple):
    """A model's name in parts. Of `lam`, `asked` (target number of heads) and `moment` (updates) at most one is not NaN."""

    corpus: str  # its title
    kind: str
    scope: str  # "" where no scope applies
    criterion: str
    lam: float
    asked: float
    moment: float
    seed: int


def describe(name: str, *, corpus: str, seed: int) -> Model:
    """Parse a name such as `baseline`, `checkpoint/update500`, `pruned/all_lambda0.01` or `cut/gates_encoder_heads4`.

    Raises:
        UserError: it is not the name of a model.
    """
    match = NAME.fullmatch(name)
    if not match:
        raise UserError(f"settings: {name!r} is not the name of a model; use names such as pruned/all_lambda0.01")
    return Model(
        corpus=corpus,
        kind=match["kind"] or match["kept"] or match["made"],
        scope=match["scope"] or "",
        criterion=match["criterion"] or "",
        **{part: float(match[part] or nan) for part in ("lam", "asked", "moment")},
        seed=seed,
    )


def of_gates(name: str) -> Model:
    """Parse the path of a baseline or of a model pruned with gates, such as `pruned/encoder_lambda0.01/seed1`.

    Raises:
        UserError: it is another kind of model.
    """
    path, _, seed = name.rpartition("/seed")
    model = describe(path, corpus="", seed=int(seed)) if NAME.fullmatch(path) and seed.isdecimal() else None
    if not model or model.criterion or model.kind not in ("baseline", "pruned"):
        raise UserError(f"settings: {name!r} is neither a baseline nor a model pruned with gates, with its seed")
    return model


def label(lam: float, asked: float) -> str:
    """A model's target as the label of a column, above or below the number of heads that are left."""
    if pd.notna(lam):
        return f"λ {lam:g}"
    return f"target: {asked:.0f}" if pd.notna(asked) else "none pruned"


def all_models(models: Models, results: Path) -> Iterator[tuple[Model, Path]]:
    """Every model with its folder: by corpus, then by seed, then in the order of the names."""
    for corpus in models.corpora:
        for seed in models.seeds:
            for name in corpus.models:
                model = describe(name, corpus=corpus.title, seed=seed)
                yield model, results / corpus.name / "models" / name / f"seed{seed}"
