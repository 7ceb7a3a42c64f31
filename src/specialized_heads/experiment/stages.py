"""What a job depends on beside its files: the code of its stage, and its settings, which follow
from the configuration.

Settings are exactly what affects results. Their keys are the fields of the class of settings in the
stage's module. A key that is one of the configuration, of the corpus or of the job (a wildcard of
its paths) has this value, and nothing else has to name it. The functions here compute the others,
and those that differ from the configuration; they take the experiment and the wildcards by name.

Modules of stages are not imported, but read: they need torch, which takes seconds to load and is
missing where Snakemake runs alone.
"""

import ast
import hashlib
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

import specialized_heads
from specialized_heads.experiment.configuration import Experiment
from specialized_heads.experiment.inputs import imported_folder, stanza_models
from specialized_heads.experiment.names import Name, Target
from specialized_heads.experiment.plan import PAGE, viewed
from specialized_heads.experiment.sections import Pruning, Training
from specialized_heads.stage import file_hash

DROPOUT = 0.1  # of a BERT, in pre-training and fine-tuning
# sentences per batch at which the speed of a BERT without half of the heads is measured
SPEED = (1, 4, 16, 64)
Settings = dict[str, Any]
JSON = TypeAdapter(Settings)
PACKAGE = Path(specialized_heads.__file__).parent
# Results depend on the configuration through the settings of their stages alone: an edit of the
# modules that define its keys and read its files changes nothing.
CONFIGURATION = [
    PACKAGE / f"experiment/{name}.py" for name in ("configuration", "sections", "file")
]


@cache
def code(*modules: str, data: tuple[str, ...] = ()) -> str:
    """SHA-256 of the names and contents of all source files of a stage's modules, such as
    `pruning.prune`.

    `data`: names of other files that it reads, beside the first module.
    """
    files = {file for module in modules for file in files_of(module)}
    files |= {PACKAGE.joinpath(*modules[0].split(".")[:-1], name) for name in data}
    total = hashlib.sha256()
    for file in sorted(files):
        total.update(f"{file.relative_to(PACKAGE).as_posix()} {file_hash(file)}\n".encode())
    return total.hexdigest()


def files_of(module: str) -> list[Path]:
    """The source files that a module (`pruning.prune`) consists of, found by following its
    imports."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        file = _file(waiting.pop())
        if file not in found and file not in CONFIGURATION and file.exists():
            found.add(file)
            for source, name, _ in _imports(file):
                waiting += [source, f"{source}.{name}".strip(".")]
    if not found:
        raise ValueError(f"there is no module {module}")
    return sorted(found)


def _file(module: str) -> Path:
    path = PACKAGE.joinpath(*module.split(".")) if module else PACKAGE
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _body(file: Path) -> list[ast.stmt]:
    return ast.parse(file.read_text(encoding="utf-8")).body


@cache
def _imports(file: Path) -> list[tuple[str, str, str]]:
    """What a source file imports of the package: a module below the package's folder, a name in it,
    and the name here."""
    found = []
    for node in (node for statement in _body(file) for node in ast.walk(statement)):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{PACKAGE.name}."):
            module = str(node.module).removeprefix(PACKAGE.name).removeprefix(".")
            found += [(module, each.name, each.asname or each.name) for each in node.names]
    return found


def keys_of(stage: str) -> list[str]:
    """The keys of the settings of a stage (`training.train`, `classification.tasks examples`): the
    fields of their class."""
    module, function = [*stage.split(), "main"][:2]
    (main,) = [
        node
        for node in _body(_file(module))
        if isinstance(node, ast.FunctionDef) and node.name == function
    ]
    calls = [node for node in main.decorator_list if isinstance(node, ast.Call)]
    given = [keyword for call in calls for keyword in call.keywords if keyword.arg == "settings"]
    return [field for keyword in given for field in _fields(module, ast.unparse(keyword.value))]


def _fields(module: str, name: str) -> list[str]:
    """The fields of a class that a module of the package defines or imports, those of its bases
    included."""
    for node in _body(_file(module)):
        if isinstance(node, ast.ClassDef) and node.name == name:
            bases = [_fields(module, ast.unparse(base)) for base in node.bases]
            own = [item.target for item in node.body if isinstance(item, ast.AnnAssign)]
            return [field for fields in bases for field in fields] + [*map(ast.unparse, own)]
    first, _, rest = name.partition(".")  # `Parser`, or `scores.ScoreSettings`
    for source, theirs, ours in _imports(_file(module)):
        if ours == first:
            inner = f"{source}.{theirs}".strip(".")
            return _fields(inner, rest) if rest else _fields(source, theirs)
    return []


def settings(stage: str, compute: Callable[..., Settings] | None = None) -> Callable[..., Settings]:
    """A function that returns the settings of a job of a stage; `compute` returns those that have
    no value of this name."""
    keys = keys_of(stage)

    def of_job(experiment: Experiment, /, **job: Any) -> Settings:
        values = experiment.for_corpus(job["corpus"]) if "corpus" in job else experiment
        found = dict(values) | {"preprocess": values.vocabulary.preprocess}
        found |= dict(experiment.studies[job["corpus"]]) if "corpus" in job else {}
        found |= job | ({"seed": int(job["seed"])} if "seed" in job else {})
        computed = compute(experiment, **job) if compute else {}
        if unknown := computed.keys() - set(keys):
            raise ValueError(f"{stage} has no settings {', '.join(sorted(unknown))}")
        found |= computed
        return JSON.dump_python({key: found[key] for key in keys if key in found}, mode="json")

    return of_job


def baseline(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    """The updates of the baseline's training whose weights are kept."""
    values = experiment.for_corpus(corpus)
    ablated = values.ablation.moments if experiment.corpora[corpus].prune else []
    return {"moments": sorted({*ablated, *values.heads.checkpoints})}


def import_model(experiment: Experiment, /, *, corpus: str, root: str, **_: str) -> Settings:
    baseline = experiment.corpora[corpus].baseline
    folder = os.path.relpath(str(imported_folder(experiment, corpus, root=root)))
    return {"folder": folder} | baseline.model_dump(include={"source_tag", "target_tag"})


def checkpoint(experiment: Experiment, /, *, moment: str, **_: str) -> Settings:
    return {"update": int(moment)}


def prune(experiment: Experiment, /, **job: str) -> Settings:
    """Fine-tuning with gates; λ 0 has none, so their settings do not matter to it."""
    aim = Target.parse(job["target"])
    pruning = Pruning() if aim.lam == 0 else experiment.for_corpus(job["corpus"]).pruning
    gates = pruning.model_dump(include={"gate_learning_rate", "gate_seed"})
    gates |= {"lam": aim.lam, "target_heads": aim.heads}
    return gates | _fine_tuning(experiment, job["corpus"]) | _own_seed("pruned", **job)


def finetune(experiment: Experiment, /, *, corpus: str, **job: str) -> Settings:
    return _fine_tuning(experiment, corpus) | _own_seed("finetuned", **job)


def _fine_tuning(experiment: Experiment, corpus: str) -> Settings:
    """The baseline's training with the schedule that `pruning` gives it."""
    values = experiment.for_corpus(corpus)
    dropout = DROPOUT if corpus in experiment.tasks else values.model.dropout
    return {"dropout": dropout, "training": _logged(values.fine_tuning())}


def from_scratch(
    experiment: Experiment, /, *, corpus: str, evenly: bool = False, **job: str
) -> Settings:
    """The baseline's training for as many updates as `pruning` says; `evenly`: with the heads
    spread over the layers."""
    training = experiment.for_corpus(corpus).retraining()
    return {"training": training} | _own_seed("count" if evenly else "scratch", **job)


def regularised(experiment: Experiment, /, **job: str) -> Settings:
    """The gates and the penalty of pruning in a training from scratch."""
    training = _logged(experiment.for_corpus(job["corpus"]).retraining())
    return prune(experiment, **job) | {"training": training} | _own_seed("regularised", **job)


def continued(experiment: Experiment, /, *, corpus: str, control: str, **job: str) -> Settings:
    """The training of a control after its first part, which took `before` updates: that of pruning,
    without gates."""
    before = {"before": experiment.for_corpus(corpus).retraining().updates}
    return before | _fine_tuning(experiment, corpus) | _own_seed(control, **job)


def _logged(training: Training) -> Training:
    """A training whose log shows how gates move: at least twenty lines, if there are as many
    updates."""
    most = max(1, training.updates // 20)
    return training.model_copy(update={"log_every": min(training.log_every, most)})


def _own_seed(
    kind: str, *, scope: str, target: str, seed: str, criterion: str = "", **_: str
) -> Settings:
    """The seed of a model that has draws of its own."""
    return {"seed": Name(kind, scope, Target.parse(target), criterion).own_seed(int(seed))}


def cut(experiment: Experiment, /, *, corpus: str, criterion: str, **_: str) -> Settings:
    columns = {"gates": None, "random": None, "importance": "importance_normalised"}
    found = {"column": columns.get(criterion, criterion)}
    if criterion == "random":
        found["draws"] = experiment.for_corpus(corpus).comparison.draws
    return found


def translation(experiment: Experiment, /, *, corpus: str, **_: Any) -> Settings:
    return {"language": experiment.corpora[corpus].target_language}


def systematic(experiment: Experiment, /, *, corpus: str, model: str, **_: str) -> Settings:
    """By type too, but not of checkpoints."""
    return translation(experiment, corpus=corpus) | {"by_type": model == "baseline"}


def parser_models(experiment: Experiment, /, **_: str) -> Settings:
    return {"models": stanza_models(experiment)}


def parse(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    parser = experiment.for_corpus(corpus).parser.model_dump(exclude={"download"})
    return parser | {"language": experiment.corpora[corpus].source_language}


def relations(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    return {"relations": experiment.for_corpus(corpus).heads.relations}


def relevance(experiment: Experiment, /, *, corpus: str, model: str, **_: str) -> Settings:
    """By the first rule and, for the table that compares them on the baselines, by all others
    there."""
    heads = experiment.for_corpus(corpus).heads
    rules = heads.relevance_rules if model == "baseline" else heads.relevance_rules[:1]
    return {"rules": rules, "predictions": heads.relevance_predictions}


# The keys of the section `heads` that functions depend on.
FUNCTION_KEYS = {"relations", "rare_cutoff"}


def analyse(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    heads = experiment.for_corpus(corpus).heads.model_dump(include=FUNCTION_KEYS)
    return {"heads": heads, "language": experiment.corpora[corpus].source_language}


def view(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    sentences = experiment.for_corpus(corpus).heads.viewer_sentences
    return {"sentences": sentences, "language": experiment.corpora[corpus].source_language}


def view_index(experiment: Experiment, /, **_: str) -> Settings:
    entries = [
        {
            "title": experiment.corpora[run.corpus].title,
            "model": run.model,
            "page": PAGE.format(**run._asdict()).removeprefix("viewer/"),
        }
        for run in viewed(experiment)
    ]
    return {"entries": entries}


def vocabulary(experiment: Experiment, /, **_: str) -> Settings:
    bert = experiment.classification
    return {"size": bert.vocabulary, "longest": bert.max_length}


def pretrain(experiment: Experiment, /, **_: str) -> Settings:
    """One model is pre-trained for all seeds, with the first."""
    bert = experiment.classification
    sizes = bert.model_dump(include={"layers", "heads", "width", "feed_forward"})
    training = {"training": bert.pretraining, "dropout": DROPOUT, "seed": experiment.seeds[0]}
    return sizes | training | {"longest": bert.max_length}


def import_bert(experiment: Experiment, /, *, root: str, **_: str) -> Settings:
    folder = os.path.relpath(str(imported_folder(experiment, root=root)))
    return {"folder": folder, "longest": experiment.classification.max_length}


def examples(experiment: Experiment, /, **_: str) -> Settings:
    return {"pretrained_here": experiment.classification.model is None}


def task_tokens(experiment: Experiment, /, **_: str) -> Settings:
    return {"longest": experiment.classification.max_length}


def classifier(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    """Fine-tuning of the pre-trained model, with the updates whose weights are kept."""
    moments = sorted(experiment.for_corpus(corpus).ablation.moments)
    labels = len(experiment.tasks[corpus].source.labels)
    return {"labels": labels, "dropout": DROPOUT, "moments": moments}


def task_score(experiment: Experiment, /, *, corpus: str, **_: Any) -> Settings:
    precision = experiment.for_corpus(corpus).training.precision
    return {"metric": experiment.tasks[corpus].source.metric, "precision": precision}


def task_baselines(experiment: Experiment, /, *, corpus: str, **_: str) -> Settings:
    source = experiment.tasks[corpus].source
    return {"metric": source.metric, "labels": len(source.labels)}


def task_speed(experiment: Experiment, /, **_: str) -> Settings:
    return {"batches": SPEED}
