"""What the tables and figures about all models of an experiment read: which models there are, and where their files lie.

A command line has no room for the paths of hundreds of models, so these stages are given the experiment's folder and, for
each corpus, the names of its models (`models` of the workflow), of which there is one per seed.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from specialized_heads.stage import Section, UserError

NAME = re.compile(
    r"(?P<kind>baseline)|(?P<kept>checkpoint)/update(?P<moment>\d+)"
    r"|(?P<made>[a-z]+)/(?:(?P<criterion>[a-z]+)_)?(?P<scope>encoder|all)_(?:lambda(?P<lam>[^/_]+)|heads(?P<asked>\d+))"
)


class Corpus(Section):
    name: str  # of its folder
    title: str
    models: list[str]  # of one seed, in the order of the experiment's tables


class Models(Section):
    """Settings: all models of an experiment."""

    corpora: list[Corpus]
    seeds: list[int]


class Model(NamedTuple):
    """What the name of a model says of it; of `lam`, `asked` (number of heads) and `moment` (updates) at most one is known."""

    corpus: str  # its title
    kind: str
    scope: str  # "" where heads of all types are there
    criterion: str
    lam: float | None
    asked: int | None
    moment: int | None
    seed: int


def describe(name: str, *, corpus: str, seed: int) -> Model:
    """Read a name such as `baseline`, `checkpoint/update500`, `pruned/all_lambda0.01` or `cut/gates_encoder_heads4`.

    Raises:
        UserError: it is none of the kind.
    """
    found = NAME.fullmatch(name)
    if not found:
        raise UserError(f"settings: corpora: models: {name!r} is not the name of a model")
    return Model(
        corpus=corpus,
        kind=found["kind"] or found["kept"] or found["made"],
        scope=found["scope"] or "",
        criterion=found["criterion"] or "",
        lam=float(found["lam"]) if found["lam"] else None,
        asked=int(found["asked"]) if found["asked"] else None,
        moment=int(found["moment"]) if found["moment"] else None,
        seed=seed,
    )


def every(models: Models, results: Path) -> Iterator[tuple[Model, Path]]:
    """Every model with its folder: by corpus, then by seed, then in the order of the names."""
    for corpus in models.corpora:
        for seed in models.seeds:
            for name in corpus.models:
                model = describe(name, corpus=corpus.title, seed=seed)
                yield model, results / corpus.name / "models" / name / f"seed{seed}"
