"""The models of an experiment, and the paths of what belongs to them."""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from specialized_heads.experiment.configuration import Experiment
from specialized_heads.experiment.names import CONTINUED, CONTROLS, SCOPES, Name, Target

OF_TASKS = ("baseline", "checkpoint", "pruned")  # the kinds that a classification task has
# What a model has below the folder of the experiment.
FOLDER = "{corpus}/models/{model}/seed{seed}/"
HEADS = "{corpus}/heads/{model}/seed{seed}.parquet"
PAGE = "viewer/{corpus}/{model}/seed{seed}.html"


class Run(NamedTuple):
    """One trained model: the name of its corpus, its own name, and its seed."""

    corpus: str
    model: str
    seed: int


def corpora(experiment: Experiment, *, pruned: bool = False) -> list[str]:
    """Names of the corpora, or of those that are pruned."""
    return [name for name, corpus in experiment.corpora.items() if corpus.prune or not pruned]


def tasks(experiment: Experiment) -> list[str]:
    return list(experiment.tasks)


def models(
    experiment: Experiment, corpus: str, *kinds: str, scopes: Iterable[str] = SCOPES
) -> list[str]:
    """Names of the models of a corpus or task, in the order of `kinds` and of the configuration."""
    if corpus in experiment.tasks:
        kinds = tuple(kind for kind in kinds if kind in OF_TASKS)
    elif not experiment.corpora[corpus].prune:
        return [kind for kind in kinds if kind == "baseline"]
    values = experiment.for_corpus(corpus)
    pruning, comparison = values.pruning, values.comparison
    names: list[Name] = []
    for kind in kinds:
        if kind == "baseline":
            names.append(Name(kind))
        elif kind == "checkpoint":
            names += [Name(kind, update=update) for update in values.ablation.moments]
        elif kind == "cut" or (kind == "finetuned" and comparison.finetune):
            names += [
                Name(kind, scope, target, criterion)
                for scope in scopes
                for criterion in comparison.criteria
                for target in pruning.targets(scope)
                if target.prunes
            ]
        elif kind in ("pruned", "scratch", *pruning.controls):
            targets = pruning.targets if kind == "pruned" else pruning.retrained
            names += [Name(kind, scope, target) for scope in scopes for target in targets(scope)]
    return [str(name) for name in names]


def runs(
    experiment: Experiment, names: Iterable[str], *kinds: str, seeds: Iterable[int] | None = None
) -> list[Run]:
    """The models of these kinds and corpora, one per seed; `seeds`: those of the experiment unless
    given."""
    return [
        Run(corpus, model, seed)
        for corpus in names
        for seed in (experiment.seeds if seeds is None else seeds)
        for model in models(experiment, corpus, *kinds)
    ]


def emerging(experiment: Experiment) -> list[Run]:
    """The checkpoints of baselines whose heads are analysed."""
    return [
        Run(corpus, str(Name("checkpoint", update=update)), seed)
        for corpus in experiment.corpora
        for seed in experiment.seeds
        for update in experiment.for_corpus(corpus).heads.checkpoints
    ]


def viewed(experiment: Experiment) -> list[Run]:
    """The models with a page in the viewer: baselines and pruned models of the first seed, where
    sentences are wanted."""
    shown = [
        name for name in corpora(experiment) if experiment.for_corpus(name).heads.viewer_sentences
    ]
    return runs(experiment, shown, "baseline", "pruned", seeds=experiment.seeds[:1])


def paths(experiment: Experiment, pattern: str, items: Iterable[Run | str]) -> list[str]:
    """One file per item, a run or the name of a corpus, which stands for its baseline with the
    first seed.

    `pattern`: the path below the folder of the experiment, with {corpus}, {model} and {seed}.
    """
    first = experiment.seeds[0]
    whole = [Run(item, "baseline", first) if isinstance(item, str) else item for item in items]
    return [f"results/{experiment.experiment}/" + pattern.format(**run._asdict()) for run in whole]


# Files of other models that a job reads; a stage that does not need any gets an empty list.


def _of(experiment: Experiment, pattern: str, corpus: str, model: object, seed: str) -> list[str]:
    return paths(experiment, pattern, [Run(corpus, str(model), int(seed))])


def baseline_translation(
    experiment: Experiment, /, *, corpus: str, model: str, seed: str, **_: str
) -> list[str]:
    """The translation that a model's is compared with; none for the baseline itself."""
    if model == "baseline":
        return []
    return _of(experiment, FOLDER + "translation.txt", corpus, "baseline", seed)


def counterpart_translation(
    experiment: Experiment, /, *, corpus: str, model: str, seed: str, **_: str
) -> list[str]:
    """The translation that a model's is also compared with: that of λ 0 with its scope, for a
    control of the pruned model, and for a criterion of the heads that gates keep."""
    name = other = Name.parse(model)
    if name.criterion:
        other = replace(name, criterion="gates")
    elif name.kind == "pruned":
        other = replace(name, target=Target(lam=0.0))
    elif name.kind in CONTROLS:
        other = replace(name, kind="pruned")
    if other == name or str(other) not in models(experiment, corpus, other.kind):
        return []
    return _of(experiment, FOLDER + "translation.txt", corpus, other, seed)


def first_part(
    experiment: Experiment, /, *, control: str, scope: str, target: str, **job: str
) -> list[str]:
    """The model that a control in two decays continues to train."""
    model = Name(CONTINUED[control], scope, Target.parse(target))
    return _of(experiment, FOLDER + "model.safetensors", job["corpus"], model, job["seed"])


def ranking(
    experiment: Experiment, /, *, corpus: str, criterion: str, seed: str, **_: str
) -> list[str]:
    """The table of the baseline whose heads a criterion ranks; none for gates and random choice."""
    if criterion not in ("importance", "relevance", "confidence"):
        return []
    folder = "importance" if criterion == "importance" else "heads"
    pattern = f"{{corpus}}/{folder}/{{model}}/seed{{seed}}.parquet"
    return _of(experiment, pattern, corpus, "baseline", seed)


def viewed_files(experiment: Experiment, /, *, pattern: str, **_: str) -> list[str]:
    """One file of each model that has a page in the viewer."""
    return paths(experiment, pattern, viewed(experiment))
