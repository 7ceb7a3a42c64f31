"""The settings of every stage, as far as they follow from the configuration: exactly what affects its results.

Each function takes the experiment and the wildcards of a job by name, and returns what the stage's `--settings` holds.
"""

import os
from collections.abc import Callable
from typing import Any

from specialized_heads.experiment.classification import DROPOUT, SPEED, Classification
from specialized_heads.experiment.configuration import Experiment
from specialized_heads.experiment.inputs import stanza_models
from specialized_heads.experiment.kept import bert_folder, imported_folder
from specialized_heads.experiment.models import viewed
from specialized_heads.experiment.names import Name, Target
from specialized_heads.experiment.sections import Pruning, Training

Settings = dict[str, Any]


def _keys(*names: str) -> Callable[..., Settings]:
    """The settings of a stage that are keys of a corpus."""
    return lambda experiment, /, *, corpus, **_: experiment.corpora[corpus].model_dump(include=set(names))


LANGUAGES = ("source_language", "target_language")
languages, raw = _keys(*LANGUAGES), _keys("source", *LANGUAGES)
clean, split = _keys("filters"), _keys("split")


def bpe(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    return _sections(experiment, corpus, "vocabulary") | languages(experiment, corpus=corpus)


def tokens(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    return _preprocess(experiment, corpus) | languages(experiment, corpus=corpus)


def baseline(experiment: Experiment, /, *, corpus: str, seed: str, **_: str) -> Settings:
    """Training of the baseline, with the updates whose weights are kept."""
    values = experiment.for_corpus(corpus)
    ablated = values.ablation.moments if experiment.corpora[corpus].prune else []
    moments = sorted({*ablated, *values.heads.checkpoints})
    sections = _sections(experiment, corpus, "vocabulary", "model", "training")
    return sections | _job(experiment, seed) | {"moments": moments}


def import_model(experiment: Experiment, /, *, corpus: str, root: str, **_: str) -> Settings:
    given = experiment.corpora[corpus].baseline
    assert given
    folder = imported_folder(experiment, corpus, root=root)
    return {"folder": os.path.relpath(str(folder))} | given.model_dump(include={"source_tag", "target_tag"})


def checkpoint(experiment: Experiment, /, *, moment: str, **_: str) -> Settings:
    return {"update": int(moment)}


def prune(experiment: Experiment, /, *, corpus: str, scope: str, target: str, seed: str, **_: str) -> Settings:
    """Fine-tuning with gates; λ 0 has none, so their settings do not matter to it."""
    aim = Target.parse(target)
    pruning = Pruning() if aim.lam == 0 else experiment.for_corpus(corpus).pruning
    gates = pruning.model_dump(include={"gate_learning_rate", "gate_seed"})
    gates |= {"lam": aim.lam, "target_heads": aim.heads}
    return _fine_tuning(experiment, corpus, scope) | _draws(experiment, Name("pruned", scope, aim), seed) | gates


def finetune(
    experiment: Experiment, /, *, corpus: str, criterion: str, scope: str, target: str, seed: str, **_: str
) -> Settings:
    model = Name("finetuned", scope, Target.parse(target), criterion)
    return _fine_tuning(experiment, corpus, scope) | _draws(experiment, model, seed)


def _fine_tuning(experiment: Experiment, corpus: str, scope: str) -> Settings:
    """The baseline's training with the schedule that `pruning` gives it."""
    values = experiment.for_corpus(corpus)
    dropout = DROPOUT if corpus in experiment.tasks else values.model.dropout
    return {"scope": scope, "dropout": dropout, "training": _logged(values.fine_tuning())}


def from_scratch(
    experiment: Experiment, /, *, corpus: str, scope: str, target: str, seed: str, evenly: bool = False, **_: str | bool
) -> Settings:
    """The baseline's training for as many updates as `pruning` says; `evenly`: with the heads spread over the layers."""
    training = experiment.for_corpus(corpus).retraining().model_dump()
    sections = _sections(experiment, corpus, "vocabulary", "model") | {"training": training, "evenly": evenly}
    model = Name("count" if evenly else "scratch", scope, Target.parse(target))
    return sections | _draws(experiment, model, seed)


def regularised(experiment: Experiment, /, *, corpus: str, scope: str, target: str, seed: str, **_: str) -> Settings:
    """The gates and the penalty of pruning in a training from scratch."""
    gates = prune(experiment, corpus=corpus, scope=scope, target=target, seed=seed)
    training = {"training": _logged(experiment.for_corpus(corpus).retraining())}
    return gates | training | _draws(experiment, Name("regularised", scope, Target.parse(target)), seed)


def continued(
    experiment: Experiment, /, *, corpus: str, control: str, scope: str, target: str, seed: str, **_: str
) -> Settings:
    """The training of a control after its first part, which took `before` updates: that of pruning, without gates."""
    before = {"before": experiment.for_corpus(corpus).retraining().updates}
    model = Name(control, scope, Target.parse(target))
    return _fine_tuning(experiment, corpus, scope) | _draws(experiment, model, seed) | before


def _logged(training: Training) -> Settings:
    """A training whose log shows how gates move: at least twenty lines, if there are as many updates."""
    return training.model_dump() | {"log_every": min(training.log_every, max(1, training.updates // 20))}


def cut(experiment: Experiment, /, *, corpus: str, criterion: str, scope: str, seed: str, **_: str) -> Settings:
    columns = {"gates": None, "random": None, "importance": "importance_normalised"}
    own = {"criterion": criterion, "scope": scope, "column": columns.get(criterion, criterion)}
    draws = {"draws": experiment.for_corpus(corpus).comparison.draws} if criterion == "random" else {}
    return own | draws | _job(experiment, seed)


def translate(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    """What affects a translation and its score."""
    return _sections(experiment, corpus, "decoding") | score(experiment, corpus=corpus) | {"device": experiment.device}


def score(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    return _preprocess(experiment, corpus) | {"language": experiment.corpora[corpus].target_language}


def ablate(experiment: Experiment, /, *, corpus: str, alone: bool, **_: str | bool) -> Settings:
    """`alone`: also with each head alone in its layer."""
    return translate(experiment, corpus=corpus) | {"alone": alone}


def prune_systematically(experiment: Experiment, /, *, corpus: str, model: str, **_: str) -> Settings:
    """By type too, but not of checkpoints."""
    return translate(experiment, corpus=corpus) | {"by_type": model == "baseline"}


def parser_models(experiment: Experiment, /, **_: str) -> Settings:
    return {"models": stanza_models(experiment)}


def parse(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    parser = experiment.for_corpus(corpus).parser.model_dump(exclude={"download"})
    return parser | {"language": experiment.corpora[corpus].source_language}


def relations(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    return {"relations": experiment.for_corpus(corpus).heads.relations}


def device(experiment: Experiment, /, **_: str) -> Settings:
    return {"device": experiment.device}


def relevance(experiment: Experiment, /, *, corpus: str, model: str, seed: str, **_: str) -> Settings:
    """By the first rule and, for the table that compares them on the baselines, by all others there."""
    heads = experiment.for_corpus(corpus).heads
    rules = heads.relevance_rules if model == "baseline" else heads.relevance_rules[:1]
    return {"rules": rules, "predictions": heads.relevance_predictions} | _job(experiment, seed)


# The keys of the section `heads` that functions depend on.
FUNCTION_KEYS = {"relations", "rare_cutoff"}


def analyse(experiment: Experiment, /, *, corpus: str, seed: str, **_: str) -> Settings:
    heads = experiment.for_corpus(corpus).heads.model_dump(include=FUNCTION_KEYS)
    return {"heads": heads} | _text(experiment, corpus) | _job(experiment, seed)


def bert_of(experiment: Experiment) -> Classification:
    """The section `classification` of an experiment that has it."""
    assert experiment.classification
    return experiment.classification


def vocabulary(experiment: Experiment, /, **_: str) -> Settings:
    return {"size": bert_of(experiment).vocabulary, "longest": bert_of(experiment).max_length}


def pretrain(experiment: Experiment, /, **_: str) -> Settings:
    """One model is pre-trained for all seeds, with the first."""
    bert = bert_of(experiment)
    sizes = bert.model_dump(include={"layers", "heads", "width", "feed_forward"}) | {"dropout": DROPOUT}
    training = {"training": bert.pretraining.model_dump(), "longest": bert.max_length}
    return sizes | training | _job(experiment, str(experiment.seeds[0]))


def import_bert(experiment: Experiment, /, *, root: str, **_: str) -> Settings:
    folder = os.path.relpath(bert_folder(experiment, root=root))
    return {"folder": folder, "longest": bert_of(experiment).max_length}


def examples(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    source = experiment.tasks[corpus].source.model_dump()
    return {"source": source, "pretrained_here": bert_of(experiment).model is None}


def task_tokens(experiment: Experiment, /, **_: str) -> Settings:
    return {"longest": bert_of(experiment).max_length}


def classifier(experiment: Experiment, /, *, corpus: str, seed: str, **_: str) -> Settings:
    """Fine-tuning of the pre-trained model, with the updates whose weights are kept."""
    values = experiment.for_corpus(corpus)
    return {
        "labels": len(experiment.tasks[corpus].source.labels),
        "dropout": DROPOUT,
        "training": values.training.model_dump(),
        "moments": sorted(values.ablation.moments),
    } | _job(experiment, seed)


def task_score(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    precision = experiment.for_corpus(corpus).training.precision
    return {"metric": experiment.tasks[corpus].source.metric, "device": experiment.device, "precision": precision}


def task_baselines(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    source = experiment.tasks[corpus].source
    return {"metric": source.metric, "labels": len(source.labels)}


def ablate_task(experiment: Experiment, /, *, corpus: str, alone: bool, **_: str | bool) -> Settings:
    return task_score(experiment, corpus=corpus) | {"alone": alone}


def task_speed(experiment: Experiment, /, **_: str) -> Settings:
    return {"batches": SPEED, "device": experiment.device}


def view(experiment: Experiment, /, *, corpus: str, model: str, seed: str, **_: str) -> Settings:
    sentences = experiment.for_corpus(corpus).heads.viewer_sentences
    page = {"sentences": sentences, "title": experiment.corpora[corpus].title, "model": model}
    return page | _text(experiment, corpus) | _job(experiment, seed)


def view_index(experiment: Experiment, /, **_: str) -> Settings:
    entries = [
        {"title": experiment.corpora[corpus].title, "model": model, "page": f"{corpus}/{model}/seed{seed}.html"}
        for corpus, model, seed in viewed(experiment)
    ]
    return {"experiment": experiment.experiment, "entries": entries}


def export(experiment: Experiment, /, *, corpus: str, model: str, seed: str, **_: str) -> Settings:
    name = {"experiment": experiment.experiment, "corpus": corpus, "model": model, "seed": int(seed)}
    return name | _sections(experiment, corpus, "decoding") | tokens(experiment, corpus=corpus)


def _sections(experiment: Experiment, corpus: str, *sections: str) -> Settings:
    """Whole sections of the configuration as it holds for a corpus."""
    return experiment.for_corpus(corpus).model_dump(include=set(sections))


def _job(experiment: Experiment, seed: str) -> Settings:
    return {"seed": int(seed), "device": experiment.device}


def _draws(experiment: Experiment, model: Name, seed: str) -> Settings:
    """As `_job`, for a model with draws of its own."""
    return _job(experiment, seed) | {"seed": model.own_seed(int(seed))}


def _preprocess(experiment: Experiment, corpus: str) -> Settings:
    return {"preprocess": experiment.for_corpus(corpus).vocabulary.preprocess}


def _text(experiment: Experiment, corpus: str) -> Settings:
    """How the source side is read."""
    return _preprocess(experiment, corpus) | {"language": experiment.corpora[corpus].source_language}
