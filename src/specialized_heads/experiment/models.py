"""The models of an experiment, and the paths of what belongs to them."""

from collections.abc import Iterable
from typing import NamedTuple

from specialized_heads.experiment.configuration import Experiment
from specialized_heads.experiment.names import SCOPES, Name

OF_TASKS = ("baseline", "checkpoint", "pruned")  # the kinds that a classification task has


class Run(NamedTuple):
    """One trained model: the name of its corpus, its own name, and its seed."""

    corpus: str
    model: str
    seed: int


def corpora(experiment: Experiment, *, pruned: bool = False) -> list[str]:
    """Names of the corpora, or of those that are pruned."""
    return [name for name, corpus in experiment.corpora.items() if corpus.prune or not pruned]


def tasks(experiment: Experiment) -> list[str]:
    """Names of the classification tasks."""
    return list(experiment.tasks)


def models(experiment: Experiment, corpus: str, *kinds: str, scopes: Iterable[str] = SCOPES) -> list[str]:
    """Names of the models of a corpus or task, in the order of `kinds` and of the configuration."""
    if corpus in experiment.tasks:
        kinds = tuple(kind for kind in kinds if kind in OF_TASKS)
    elif not experiment.corpora[corpus].prune:
        return [kind for kind in kinds if kind == "baseline"]
    values = experiment.for_corpus(corpus)
    pruning, comparison = values.pruning, values.comparison
    names: list[Name] = []
    for kind in kinds:
        match kind:
            case "baseline":
                names.append(Name(kind))
            case "checkpoint":
                names += [Name(kind, update=update) for update in values.ablation.moments]
            case "cut" | "finetuned" if kind == "cut" or comparison.finetune:
                names += [
                    Name(kind, scope, target, criterion)
                    for scope in scopes
                    for criterion in comparison.criteria
                    for target in pruning.targets(scope)
                    if target.prunes
                ]
            case "pruned":
                names += [Name(kind, scope, target) for scope in scopes for target in pruning.targets(scope)]
            case _ if kind in ("scratch", *pruning.controls):
                names += [Name(kind, scope, target) for scope in scopes for target in pruning.retrained(scope)]
    return [str(name) for name in names]


def runs(experiment: Experiment, names: Iterable[str], *kinds: str, seeds: Iterable[int] | None = None) -> list[Run]:
    """The models of these kinds and corpora, one per seed; `seeds`: those of the experiment unless given."""
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
    """The models with a page in the viewer: baselines and pruned models of the first seed, where sentences are wanted."""
    shown = [name for name in corpora(experiment) if experiment.for_corpus(name).heads.viewer_sentences]
    return runs(experiment, shown, "baseline", "pruned", seeds=experiment.seeds[:1])


def paths(experiment: Experiment, pattern: str, items: Iterable[Run | str]) -> list[str]:
    """One file per item, a run or the name of a corpus, which stands for its baseline with the first seed.

    `pattern`: the path below the folder of the experiment, with {corpus}, {model} and {seed}.
    """
    whole = [Run(item, "baseline", experiment.seeds[0]) if isinstance(item, str) else item for item in items]
    return [f"results/{experiment.experiment}/" + pattern.format(**run._asdict()) for run in whole]
