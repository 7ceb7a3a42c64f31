# What the other files share: the experiment, and how a job gets its files, its settings and the hash of its code. What there is to
# make is decided in src/specialized_heads/planning.

import json
import os
import re
import shlex
from dataclasses import fields
from functools import partial
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.io import regex_from_filepattern

# Without a shared disk, jobs copy inputs and outputs from and to a bucket.
STORAGE = workflow.storage_settings.default_storage_provider


def store():
    """The bucket as `specialized_heads.training.store` wants it, for the state of training, which is not an output."""
    prefix = workflow.storage_settings.default_storage_prefix.rstrip("/")
    provider = workflow.storage_registry.default_storage_provider
    public = (
        [field.name for field in fields(provider.settings) if not field.metadata.get("env_var")]
        if provider.settings
        else []
    )
    settings = {name: getattr(provider.settings, name) for name in public}
    local = str(provider.object(f"{prefix}/file").local_path().parent)
    return json.dumps({"provider": STORAGE, "settings": settings, "local": local, "remote": prefix})


# Stages run from the source tree: an edit takes effect at once, and in every software environment.
ENVIRONMENT = {"PYTHONPATH": SOURCE} | ({"SPECIALIZED_HEADS_STORE": store()} if STORAGE else {})
EXPORTED = " ".join(f"{name}={shlex.quote(value)}" for name, value in ENVIRONMENT.items())
shell.prefix(f"set -euo pipefail; export {EXPORTED.replace('{', '{{').replace('}', '}}')}; ")

from specialized_heads.config.experiment import load
from specialized_heads.config.kept import check_given
from specialized_heads.planning import inputs, models, names, stages
from specialized_heads.planning.results import arguments
from specialized_heads.planning.source_code import code
from specialized_heads.planning.targets import all_results, before_provenance, everything
from specialized_heads.stage import UserError, file_hash, one_line

try:
    experiment = load(config, origin=", ".join(CONFIGURED))
    check_given(experiment, root=Path(ROOT))
    FETCHED = inputs.fetched(experiment)
except UserError as error:
    raise WorkflowError(one_line(error)) from None


def any_of(names):
    """The pattern of a wildcard that takes any of these names, or none where there are no names."""
    return "|".join(map(re.escape, names)) or "(?!)"


# Corpora whose baseline is given, classification tasks, those whose classifier is given, and all that has models.
GIVEN = any_of(models.given(experiment))
TASKS = any_of(experiment.tasks)
GIVEN_TASKS = any_of(name for name, task in experiment.tasks.items() if task.model)
STUDIES = any_of(experiment.studies)
DOWNLOADS = experiment.downloads.directory
RESOURCES = os.path.relpath(f"{ROOT}/resources")


wildcard_constraints:
    experiment=re.escape(experiment.experiment),
    corpus=any_of(experiment.corpora),
    model=names.MODEL,
    scope=names.SCOPE,
    target=names.TARGET,
    criterion=names.CRITERION,
    heads=r"\d+",
    moment=r"\d+",
    seed=r"\d+",
    split="train|dev|test|analysis",


# Whether files of resources/ come to the jobs with the source code. A module's are its importer's business as little as its source
# code; without a shared disk, Snakemake would look for inputs in the bucket.
DEPLOYED = IMPORTED or STORAGE is not None

if STORAGE and (hub := inputs.hub_models(experiment, root=ROOT)):
    model = next(iter(hub.values()))
    raise WorkflowError(
        f"{', '.join(CONFIGURED)}: {model['name']} is fetched into a folder that jobs without a shared "
        "disk do not see; name a folder with a copy of it (docs/models.md), or use a shared disk"
    )

if STORAGE and experiment.classification:
    raise WorkflowError(
        f"{', '.join(CONFIGURED)}: classification: the jobs of BERT need a shared disk; run without a storage provider"
    )


def is_deployed(file):
    """Whether a file is not an input, since jobs have it with the source code."""
    return DEPLOYED and os.path.abspath(file).startswith(f"{ROOT}/resources/")


def planned(function, **more):
    """Input function: the files that a function of `planning.inputs` names for the wildcards of a job."""

    def files(wildcards):
        named = function(experiment, **wildcards, **more)
        if isinstance(named, str):
            return [] if is_deployed(named) else named
        return [file for file in named if not is_deployed(file)]

    return files


def deployed(*functions, **more):
    """Hashes of the files that `planned` leaves out, as a parameter: a change of theirs makes results stale all the same."""

    def hashes(wildcards):
        named = [function(experiment, **wildcards, **more) for function in functions]
        files = [file for files in named for file in ([files] if isinstance(files, str) else files)]
        return [file_hash(Path(file)) for file in files if is_deployed(file)]

    return hashes


# The files that a corpus waits for: of fetched ones the cards, except where a bucket holds the files themselves.
text_files = inputs.corpus_files if STORAGE else inputs.corpus_cards


def source_files(wildcards, input):
    """The files of a corpus, in the order of its reader; inputs where the job has them, which may be copies from a bucket."""
    expected = planned(text_files, resources=RESOURCES)(wildcards)
    copies = dict(zip(expected, input))
    files = inputs.corpus_files(experiment, corpus=wildcards.corpus, resources=RESOURCES)
    return [copies.get(file, file) for file in files]


def settings(function, **more):
    """The settings of a job as JSON: what a function of `planning.stages` returns for its wildcards."""
    return lambda wildcards: json.dumps(function(experiment, **wildcards, **more), ensure_ascii=False)


def constant(**values):
    """Settings that are the same for all jobs, as a function: in text, Snakemake would take {name} for a wildcard."""
    return lambda wildcards: json.dumps(values, ensure_ascii=False)


# The rules of this workflow, and what an importer puts before and after their names.
RULES = workflow.modifier.rules
BEFORE, _, AFTER = workflow.modifier.modify_rulename("*").partition("*")


def measured():
    """By rule, the regular expression for the files of its measurements below the results of an experiment."""
    own = {made.name.removeprefix(BEFORE).removesuffix(AFTER): made.benchmark for made in RULES if made.benchmark}
    return {
        name: regex_from_filepattern(str(pattern))
        for name, pattern in sorted(own.items())
        if "results/" in str(pattern) and name not in ("run_times", "environment")
    }


def run_time_settings(result):
    """The settings of the table of run times: also which files are measurements of which rule's jobs."""
    return lambda wildcards: json.dumps(result.settings | {"rules": measured()}, ensure_ascii=False)


def flags(wildcards, input, output):
    """The files of a job as arguments: a file called `train` follows `--train`, and the first output without a name `--output`.

    Inputs without a name are waited for and not passed; further outputs without a name are written beside the named ones.
    """
    unnamed = len(output) - sum(len(files) if isinstance(files, list) else 1 for _, files in output.items())
    named = [*input.items(), *output.items(), *([("output", output[0])] if unnamed else [])]
    files = [(name, [file] if isinstance(file, str) else list(file)) for name, file in named]
    return [part for name, group in files if group for part in (f"--{name.replace('_', '-')}", *group)]


def located(argument, function, /, **more):
    """The path of a file that is either the input of this name or deployed with the source code."""

    def path(wildcards, input):
        file = function(experiment, **wildcards, **more)
        return file if file and is_deployed(file) else input[argument]

    return path


def flags_with(**functions):
    """As `flags`, with the deployed ones among the files that these functions of `planning.inputs` name, by argument."""

    def all_flags(wildcards, input, output):
        named = {argument: function(experiment, **wildcards) for argument, function in functions.items()}
        groups = {argument: [files] if isinstance(files, str) else files for argument, files in named.items()}
        files = {argument: list(filter(is_deployed, group)) for argument, group in groups.items()}
        parts = [part for argument, group in files.items() if group for part in (f"--{argument}", *group)]
        return flags(wildcards, input, output) + parts

    return all_flags


def figure_flags(result):
    """The command line of a figure or table: its files, wherever the job has them, and the folder of the experiment."""

    def with_files(wildcards, input, output):
        files = {name: list(input[name]) for name in result.inputs}
        stems = {name: output[f"{name}_csv"].removesuffix(".csv") for name in result.outputs}
        return arguments(result, files=files, stems=stems)

    return with_files


def launcher(wildcards, resources):
    """The command that starts a training stage: one process, or one per GPU if a profile gives the job several."""
    # Sites that want gres have gres="gpu:2" or gres="gpu:a100:2" in place of gpu=2.
    gres = re.fullmatch(r"gpu(:[\w.]+)??:(\d+)", str(resources.get("gres", "")))
    processes = int(gres[2] if gres else resources.get("gpu", 0))
    several = f"python -m torch.distributed.run --standalone --nproc-per-node {processes} -m"
    return several if processes > 1 else "python -m"


def stage(module, function, /, **more):
    """Parameters of a stage: its module, the hash of the code, and the settings."""
    return {"module": module, "code": code(module), "settings": settings(function, **more)}


def caption(name):
    """What the report says of a figure."""
    return Path(ROOT, "workflow", "report", f"{name}.rst").read_text(encoding="utf-8").strip()


def shown(result):
    """The files of a figure or table; the report shows one of each, with its caption."""
    files = {}
    for name, stem in result.outputs.items():
        suffixes = ("png", "pdf", "svg", "csv") if stem.startswith("figures/") else ("html", "md", "tex", "csv")
        paths = [f"results/{{experiment}}/{stem}.{suffix}" for suffix in suffixes]
        # Where one module makes both, the table has the name of the figure.
        label = f"{result.label}, table" if name == "table" else result.label
        about = f"../report/{result.caption}.rst"
        paths[0] = report(paths[0], caption=about, category=result.category, labels={"Result": label})
        files |= {f"{name}_{suffix}": path for suffix, path in zip(suffixes, paths)}
    return files
