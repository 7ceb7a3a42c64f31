"""The models of an experiment: what their names say, and where their files are.

A command line has no room for the paths of hundreds of models. So stages that read all models take the experiment's folder
and, for each corpus, the names of its models, each of which exists once per seed.
"""

from collections.abc import Iterator, Sequence
from math import nan
from pathlib import Path
from typing import NamedTuple

from specialized_heads.planning.names import Name
from specialized_heads.stage import Section, UserError

SCOPES = {"encoder": "encoder heads pruned", "all": "heads of all types pruned"}


class Corpus(Section):
    name: str  # of its folder
    title: str
    models: list[str]  # of one seed, in the order of the experiment's tables


class Run(Section):
    """A model, in the settings of a figure or table."""

    corpus: str  # its title
    model: str  # as in paths, without the seed
    seed: int


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
    path: str  # below the folder of the corpus's models


def describe(name: str, *, corpus: str, seed: int) -> Model:
    """Parse a name such as `baseline`, `checkpoint/update500`, `pruned/all_lambda0.01` or `cut/gates_encoder_heads4`.

    Raises:
        UserError: it is not the name of a model.
    """
    try:
        parts = Name.parse(name)
    except ValueError:
        raise UserError(
            f"settings: {name!r} is not the name of a model; use names such as pruned/all_lambda0.01"
        ) from None
    numbers = (parts.target.lambda_, parts.target.heads, parts.update)
    lam, asked, moment = (nan if number is None else float(number) for number in numbers)
    return Model(corpus, parts.kind, parts.scope, parts.criterion, lam, asked, moment, seed, f"{name}/seed{seed}")


def all_models(corpora: Sequence[Corpus], seeds: Sequence[int], results: Path) -> Iterator[tuple[Model, Path]]:
    """Every model with its folder: by corpus, then by seed, then in the order of the names."""
    for corpus in corpora:
        for seed in seeds:
            for name in corpus.models:
                model = describe(name, corpus=corpus.title, seed=seed)
                yield model, results / corpus.name / "models" / model.path
