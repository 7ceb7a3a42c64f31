# Helpers of the other files: the validated configuration, the code each stage depends on, inputs and settings by stage.

import ast
import json
import os
import re
import shlex
from functools import cache
from pathlib import Path

from snakemake.exceptions import WorkflowError

from specialized_heads.config import Experiment, load
from specialized_heads.corpus.fetch.datasets import files_of
from specialized_heads.parsing import spacy_models
from specialized_heads.stage import UserError, file_hash, one_line

try:
    experiment = load(config, origin=", ".join(CONFIGURED))
except UserError as error:
    raise WorkflowError(one_line(error)) from None

# Stages are run from the source tree, so that an edit takes effect at once and in every software environment.
SOURCE = Path(workflow.basedir) / "src"
CONFIGURATION = [SOURCE / "specialized_heads" / name for name in ("config.py", "sections.py")]
RESOURCES = os.path.relpath(Path(workflow.basedir) / "resources")
shell.prefix(f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(SOURCE))}; ")


wildcard_constraints:
    experiment=re.escape(experiment.experiment),
    corpus="|".join(map(re.escape, experiment.corpora)),
    model=r"baseline|checkpoint/update\d+|[a-z]+/([a-z]+_)?(encoder|all)_(lambda[0-9.e+-]+|heads\d+)",
    scope="encoder|all",
    target=r"lambda[0-9.e+-]+|heads\d+",
    criterion="gates|importance|relevance|confidence|random",
    heads=r"\d+",
    moment=r"\d+",
    seed=r"\d+",
    split="train|dev|test|analysis",


@cache
def imports(file):
    """The modules of this package that a source file may import."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return [
        name
        for node in froms
        if (node.module or "").startswith("specialized_heads")
        for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
    ]


@cache
def code(module):
    """The source files that a stage runs, found by following its imports: an edit of any of them makes its results stale.

    What the configuration says reaches a stage through its settings alone, so the modules that define it are left out.
    """
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        path = SOURCE.joinpath(*name.split("."))
        file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        if file not in found and file not in CONFIGURATION and file.exists():
            found.add(file)
            waiting += imports(file)
    return sorted(os.path.relpath(file) for file in found)


def settings(corpus, *sections, **more):
    """A stage's settings as JSON: whole sections of the configuration as it holds for a corpus, and single values."""
    values = experiment.for_corpus(corpus)
    return json.dumps(
        {name: getattr(values, name).model_dump() for name in sections} | more,
        ensure_ascii=False,
    )


def head_counts(corpus, scope):
    """The numbers of heads that are asked for in a scope of a corpus."""
    return experiment.for_corpus(corpus).pruning.counts(scope)


def models(corpus, *kinds, scopes=("encoder", "all")):
    """The models of a corpus, as the part of their paths before the seed, in the order of `kinds` and the configuration.

    Kinds: baseline; checkpoint (the baseline at moments of its training); pruned (by gates) and soft (the same, its gates
    not yet made 0 or 1); scratch, count and regularised (controls, from random initialisation); cut (the baseline without
    the heads that a criterion leaves out) and finetuned (the same, trained on).
    """
    values = experiment.for_corpus(corpus)
    if not experiment.corpora[corpus].prune:
        return [kind for kind in kinds if kind == "baseline"]
    found = []
    for kind in kinds:
        match kind:
            case "baseline":
                found.append(kind)
            case "checkpoint":
                found += [f"{kind}/update{number}" for number in values.ablation.moments]
            case "cut" | "finetuned":
                found += [
                    f"{kind}/{criterion}_{scope}_heads{count}"
                    for scope in scopes
                    for criterion in values.comparison.criteria
                    for count in head_counts(corpus, scope)
                    if kind == "cut" or values.comparison.finetune
                ]
            case _:
                found += [
                    f"{kind}/{scope}_{target}" for scope in scopes for target in targets_of(kind, values.pruning, scope)
                ]
    return found


def targets_of(kind, pruning, scope):
    """The targets of a scope (λ or numbers of heads) for which there is a model of this kind: gates, or from scratch."""
    if kind in ("scratch", *pruning.controls):
        return pruning.retrained(scope)
    return pruning.targets(scope) if kind == "pruned" or (kind == "soft" and pruning.soft) else []


def describe_model(name, seed):
    """What the path of a model says of it, for the table of scores."""
    kind, _, rest = name.partition("/")
    moment = int(rest.removeprefix("update")) if kind == "checkpoint" else None
    *criterion, scope, target = ["", ""] if kind in ("baseline", "checkpoint") else rest.split("_")
    return {
        "kind": kind,
        "scope": scope,
        "lam": penalty(target),
        "asked": head_count(target),
        "criterion": criterion[0] if criterion else "",
        "moment": moment,
        "seed": seed,
    }


def relevance_settings(wildcards):
    """The keys of the section heads that relevance depends on."""
    heads = experiment.for_corpus(wildcards.corpus).heads.model_dump()
    keys = {name: value for name, value in heads.items() if name.startswith("relevance_")}
    return json.dumps({"heads": keys, "device": experiment.device})


def title(corpus):
    return experiment.corpora[corpus].title


def corpora(*, pruned=False):
    """Names of the corpora, or of those that are pruned."""
    return [name for name, corpus in experiment.corpora.items() if corpus.prune or not pruned]


# Corpus and parses


def datasets(corpus):
    """The known datasets that a corpus is read from; none where its source is not fetched by its address."""
    values = experiment.corpora[corpus]
    languages = {"source_language": values.source_language, "target_language": values.target_language}
    try:
        return files_of(values.source, **languages)
    except UserError as error:
        raise WorkflowError(one_line(f"corpora.{corpus}.source: {error}")) from None


def fetched():
    """The datasets that are fetched, by the path of their file. A hash that one corpus gives holds for all."""
    found = {}
    for corpus in experiment.corpora:
        for dataset in datasets(corpus):
            path = os.path.join(DOWNLOADS, dataset.file)
            if dataset.url and (path not in found or dataset.sha256):
                found[path] = dataset
    return found


DOWNLOADS = experiment.downloads.directory
FETCHED = fetched()


def corpus_files(corpus):
    """The files that a corpus is read from, in the order of its reader."""
    source = experiment.corpora[corpus].source
    match source.kind:
        case "embedded":
            return [f"{RESOURCES}/{source.name}/{name}" for name in ("corpus.parquet", "provenance.json")]
        case "local":
            return list(source.files().values())
        case "debian":
            names = source.files(target_language=experiment.corpora[corpus].target_language).values()
        case "pypi":
            names = source.files()
        case _:
            names = [dataset.file for dataset in datasets(corpus)]
    return [os.path.join(DOWNLOADS, name) for name in names]


def corpus_source(wildcards):
    """What a corpus waits for: its files, and for a fetched one its card, since Snakemake does not know the file."""
    return [f"{path}.json" if path in FETCHED else path for path in corpus_files(wildcards.corpus)]


def download_settings(file, **more):
    """The file that is wanted, as far as it is known."""
    dataset = FETCHED[os.path.join(DOWNLOADS, file)]
    return json.dumps({"url": dataset.url, "sha256": dataset.sha256, "bytes": dataset.bytes} | more)


def raw_settings(wildcards):
    """Where a corpus comes from, and its languages."""
    corpus = experiment.corpora[wildcards.corpus]
    languages = {"source_language": corpus.source_language, "target_language": corpus.target_language}
    return json.dumps({"source": corpus.source.model_dump()} | languages, ensure_ascii=False)


def given_parses(wildcards):
    """The trees in the repository, or the user's own, where the parser's engine reads them."""
    source, parser = experiment.corpora[wildcards.corpus].source, experiment.for_corpus(wildcards.corpus).parser
    match parser.engine:
        case "embedded":
            return f"{RESOURCES}/{source.name}/parses.parquet"
        case "conllu":
            return parser.path
        case _:
            return []


def parser_about(wildcards):
    """What is said of the trees in the repository, or of the models that make trees."""
    match experiment.for_corpus(wildcards.corpus).parser.engine:
        case "embedded":
            return f"{RESOURCES}/{experiment.corpora[wildcards.corpus].source.name}/parses.json"
        case "stanza":
            return "results/{experiment}/parser_models.json".format(**wildcards)
        case _:
            return []


def stanza_models():
    """Every pipeline of Stanza that some corpus is parsed with, once."""
    found = []
    for name, corpus in experiment.corpora.items():
        parser = experiment.for_corpus(name).parser
        wanted = {"language": corpus.source_language} | parser.model_dump(include={"directory", "package", "download"})
        if parser.engine == "stanza" and wanted not in found:
            found.append(wanted)
    return found


def stanza_lists():
    """Hashes of Stanza's lists of models, in directories that the user fills: what is fetched there itself is not known yet."""
    given = [wanted["directory"] for wanted in stanza_models() if wanted["directory"] and not wanted["download"]]
    lists = [Path(directory).expanduser() / "resources.json" for directory in dict.fromkeys(given)]
    return [file_hash(path) for path in lists if path.is_file()]


@cache
def spacy_model(corpus):
    """What is installed of spaCy and the model that a corpus is parsed with; nothing for other engines."""
    parser, language = experiment.for_corpus(corpus).parser, experiment.corpora[corpus].source_language
    return spacy_models.installed(language=language, package=parser.package) if parser.engine == "spacy" else {}


# Models


def launcher(wildcards, resources):
    """How a training stage is started: as one process, or as one per GPU where a profile gives the job several."""
    # Sites that want gres have gres="gpu:2" or gres="gpu:a100:2" in place of gpu=2.
    gres = re.fullmatch(r"gpu(:[\w.]+)??:(\d+)", str(resources.get("gres", "")))
    processes = int(gres[2] if gres else resources.get("gpu", 0))
    several = f"python -m torch.distributed.run --standalone --nproc-per-node {processes} -m"
    return several if processes > 1 else "python -m"


def penalty(target):
    """The λ of a target, or None where it is a number of heads."""
    return float(target.removeprefix("lambda")) if target.startswith("lambda") else None


def head_count(target):
    """The number of heads of a target, or None where it is a λ."""
    return int(target.removeprefix("heads")) if target.startswith("heads") else None


def fine_tuning(corpus):
    """The baseline's training with what `pruning` says of the training after it, its log fine enough to show gates."""
    training = experiment.for_corpus(corpus).fine_tuning()
    return training.model_dump() | {"log_every": gate_log_every(training.updates, training.log_every)}


def gate_log_every(updates, log_every):
    """Updates per line of a log that shows how gates move: as in other logs, or oftener, so that there are twenty."""
    return min(log_every, max(1, updates // 20))


def pruning_settings(wildcards):
    """The baseline's training with what `pruning` says of fine-tuning, and the gates."""
    values = experiment.for_corpus(wildcards.corpus)
    pruning = values.pruning
    return json.dumps(
        {
            "seed": int(wildcards.seed),
            "scope": wildcards.scope,
            "penalty": penalty(wildcards.target),
            "heads": head_count(wildcards.target),
            "penalty_warmup": 0 if head_count(wildcards.target) is not None else pruning.penalty_warmup,
            "dropout": values.model.dropout,
            "training": fine_tuning(wildcards.corpus),
            "gate_learning_rate": pruning.gate_learning_rate,
            "gate_init": pruning.gate_init,
            "device": experiment.device,
        }
    )


def retraining_settings(wildcards, evenly=False):
    """The baseline's training, for as many updates as `pruning` says; `evenly`: with the heads spread over the layers."""
    values = experiment.for_corpus(wildcards.corpus)
    return settings(
        wildcards.corpus,
        "vocabulary",
        "model",
        training=values.retraining().model_dump(),
        seed=int(wildcards.seed),
        device=experiment.device,
        evenly=evenly,
    )


# Scores


def baseline_translation(wildcards):
    """What a model's translation is compared with: nothing for the baseline itself."""
    path = "results/{experiment}/{corpus}/models/baseline/seed{seed}/translation.txt"
    return [] if wildcards.model == "baseline" else path.format(**wildcards)


# Of models, in the order of the tables.
KINDS = ("baseline", "checkpoint", "pruned", "soft", "scratch", "count", "regularised", "cut", "finetuned")


def scored_models(wildcards):
    """All models of a corpus, each with its seed."""
    names = models(wildcards.corpus, *KINDS)
    return [(name, seed) for seed in experiment.seeds for name in names]


def model_files(name):
    """Input function: one file of every model of a corpus."""
    path = "results/{experiment}/{corpus}/models/{model}/seed{number}/{name}"
    return lambda w: [path.format(**w, model=model, number=seed, name=name) for model, seed in scored_models(w)]


def everything():
    """What is made where no target is named: the paper's figures and tables, and what the sections of the configuration ask for."""
    results = f"results/{experiment.experiment}"
    files = [f"{results}/claims.md", *(f"{results}/figures/figure{n}.pdf" for n in range(1, 11))]
    files += [f"{results}/tables/{name}.md" for name in ("table1", "table2", "data_card")]
    files += [f"{results}/tables/speed.md"] if timed_corpora() else []
    for corpus in corpora():
        files.append(f"{results}/{corpus}/scores.parquet")
        for model in models(corpus, "baseline", "pruned"):
            files += [f"{results}/{corpus}/heads/{model}/seed{seed}.parquet" for seed in experiment.seeds]
    files += pruning_targets() + ablation_targets() + comparison_targets() + heads_targets() + viewer_targets()
    return files + summary_targets()
