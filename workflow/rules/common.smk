# Helpers of the rule files: the validated configuration, the models it asks for, and what each rule depends on.

import ast
import json
import os
import re
import shlex
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

from specialized_heads.config import Experiment, lambda_name, load
from specialized_heads.stage import UserError

try:
    experiment = load(config, origin="configuration")
except UserError as error:
    raise WorkflowError(str(error)) from None

# Stages are run from the source tree, so that an edit takes effect at once and in every software environment.
SOURCE = Path(workflow.basedir) / "src"
shell.prefix(f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(SOURCE))}; ")


wildcard_constraints:
    experiment=re.escape(experiment.experiment),
    corpus="|".join(map(re.escape, experiment.corpora)),
    model=r"baseline|(pruned|scratch)/(encoder|all)_lambda[^/]+",
    kind="pruned|scratch",
    scope="encoder|all",
    penalty=r"[0-9.e-]+",
    seed=r"\d+",
    split="train|dev|test|analysis",


@cache
def code(module):
    """The source files that a stage runs, found by following its imports: an edit of any of them makes its results stale."""
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        path = SOURCE.joinpath(*name.split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file in found or not file.exists():
            continue
        found.add(file)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "specialized_heads"
            ):
                waiting += [
                    node.module,
                    *(f"{node.module}.{alias.name}" for alias in node.names),
                ]
    return sorted(os.path.relpath(file) for file in found)


def settings(corpus, *sections, **more):
    """A stage's settings as JSON: whole sections of the configuration as it holds for a corpus, and single values."""
    values = experiment.for_corpus(corpus)
    return json.dumps(
        {name: getattr(values, name).model_dump() for name in sections} | more,
        ensure_ascii=False,
    )


def lambdas(corpus, scope):
    """The λ of a scope, as they stand in paths; none for a corpus that is not pruned."""
    pruning = experiment.for_corpus(corpus).pruning
    return (
        [lambda_name(value) for value in getattr(pruning, scope)]
        if experiment.corpora[corpus].prune
        else []
    )


def models(corpus, *kinds, scopes=("encoder", "all")):
    """The models of a corpus, as the part of their paths before the seed, in the order of the configuration."""
    found = ["baseline"] if "baseline" in kinds else []
    for kind in [kind for kind in ("pruned", "scratch") if kind in kinds]:
        for scope in scopes:
            if (
                kind == "pruned"
                or scope in experiment.for_corpus(corpus).pruning.retrain
            ):
                found += [
                    f"{kind}/{scope}_lambda{value}" for value in lambdas(corpus, scope)
                ]
    return found


def describe_model(name, seed):
    """What the path of a model says of it, for the table of scores."""
    kind, _, rest = name.partition("/")
    scope, _, value = rest.partition("_lambda")
    return {
        "kind": kind,
        "scope": scope,
        "lam": float(value) if value else None,
        "seed": seed,
    }


def title(corpus):
    return experiment.corpora[corpus].title


def corpora(*, pruned=False):
    """Names of the corpora, or of those that are pruned."""
    return [
        name
        for name, corpus in experiment.corpora.items()
        if corpus.prune or not pruned
    ]


def everything():
    """The files that `rule all` asks for."""
    figures = expand(
        "results/{experiment}/figures/figure{n}.pdf",
        experiment=experiment.experiment,
        n=range(1, 11),
    )
    tables = expand(
        "results/{experiment}/tables/table{n}.md",
        experiment=experiment.experiment,
        n=(1, 2),
    )
    return figures + tables
