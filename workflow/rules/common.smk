# What the other files share: the experiment, and how a job gets its files, its settings and the
# hash of its code. What there is to make is decided in src/specialized_heads/experiment.

import hashlib
import json
import os
import re
import shlex
import shutil
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.utils import available_cpu_count
from snakemake_interface_logger_plugins.common import LogEvent

# Stages run from the source tree: an edit takes effect at once, and in every software environment.
QUOTED = shlex.quote(SOURCE).replace("{", "{{").replace("}", "}}")
shell.prefix(f"set -euo pipefail; export PYTHONPATH={QUOTED}; ")

from specialized_heads.experiment import figures, inputs, names, plan, stages
from specialized_heads.experiment.file import load
from specialized_heads.experiment.stages import code
from specialized_heads.processors import processors
from specialized_heads.stage import UserError, one_line, warnings_in, write_file

# `--cores all` counts the processors that a control group lets a container use only for a part of
# the time.
if (
    workflow.resource_settings.nodes is None
    and workflow.resource_settings.cores == available_cpu_count()
):
    workflow.global_resources["_cores"] = processors()

# The prefix that an importer may give this workflow moves relative paths, but not absolute ones.
PROJECT = ROOT if IMPORTED else os.path.relpath(ROOT)
RESOURCES = os.path.normpath(f"{PROJECT}/resources")

try:
    experiment = load(VALUES, origin=" ".join(CONFIGURED), places=PLACES)
    inputs.check_given(experiment, root=Path(ROOT))
    FETCHED = inputs.fetched(experiment)
    REQUIRED = inputs.required(experiment, resources=RESOURCES, root=PROJECT)
    for file, key in REQUIRED.items():
        # An importer may have a rule that makes it.
        if not IMPORTED and not Path(file).is_file():
            folder = " (it is a folder)" if Path(file).is_dir() else ""
            raise UserError(
                f"{key}: there is no file {file}{folder}; put it there, or correct the path"
            )
except UserError as error:
    raise WorkflowError(one_line(error)) from None


def any_of(names):
    """The pattern of a wildcard that takes any of these names, or none where there are no names."""
    return "|".join(map(re.escape, names)) or "(?!)"


# Corpora whose baseline is given, classification tasks, and all that has models.
GIVEN = any_of([name for name, corpus in experiment.corpora.items() if corpus.baseline])
TASKS = any_of(experiment.tasks)
STUDIES = any_of(experiment.studies)
DOWNLOADS = experiment.downloads.directory


wildcard_constraints:
    experiment=re.escape(experiment.experiment),
    corpus=any_of(experiment.corpora),
    model=names.MODEL,
    scope=names.SCOPE,
    target=names.TARGET,
    criterion=names.CRITERION,
    control=any_of(names.CONTINUED),
    table=any_of(figures.TABLES),
    moment=r"\d+",
    seed=r"\d+",
    split="train|dev|test|analysis",


def model_in(folder):
    """The files of a model, by its folder below those of all models of a corpus."""
    path = f"results/{{experiment}}/{{corpus}}/models/{folder}/model"
    return [f"{path}.safetensors", f"{path}.json"]


def planned(function, **more):
    """Input function: the files that a function of `experiment` names for the wildcards of a
    job."""
    return lambda wildcards: unmoved(function(experiment, **wildcards, **more))


def unmoved(files):
    """These files, of which the prefix of an importer moves none that no rule makes."""
    if isinstance(files, dict):
        return {name: unmoved(group) for name, group in files.items()}
    if isinstance(files, list):
        return [unmoved(file) for file in files]
    return local(files) if IMPORTED and files in REQUIRED else files


def as_json(function, **more):
    """A parameter of a job: what a function of the experiment and of its wildcards returns, as
    JSON."""
    return lambda wildcards: json.dumps(
        function(experiment, **wildcards, **more), ensure_ascii=False
    )


def settings(module, compute=None, **more):
    """The settings of a stage: `compute`, a function of `experiment`, returns those that are no
    keys of the experiment."""
    return as_json(stages.settings(module, compute), **more)


def flags(wildcards, input, output):
    """The files of a job as arguments: a file called `train` follows `--train`, and the first
    output without a name `--output`.

    Inputs without a name are waited for and not passed; further outputs without a name are written
    beside the named ones.
    """
    unnamed = len(output) - sum(
        len(files) if isinstance(files, list) else 1 for _, files in output.items()
    )
    named = [*input.items(), *output.items(), *([("output", output[0])] if unnamed else [])]
    files = [(name, [file] if isinstance(file, str) else list(file)) for name, file in named]
    return [
        part for name, group in files if group for part in (f"--{name.replace('_', '-')}", *group)
    ]


def corpus_flags(wildcards, input, output):
    """The files that a corpus is read from, too: inputs, or what `download` has fetched beside a
    card that is one."""
    files = inputs.corpus_files(experiment, corpus=wildcards.corpus, resources=RESOURCES)
    files = [each if each.endswith(file) else file for file, each in zip(files, input)]
    return [*flags(wildcards, input, output), "--resource", *files]


def figure_flags(wildcards, input, output):
    """The command line of a figure or table: the five tables, what else it reads, and where it
    writes."""
    more = [file for name in figures.BY_STEM[wildcards.stem].files for file in input[name]]
    return [
        "--data",
        os.path.dirname(input.data[0]),
        "--files",
        *more,
        "--output",
        output.csv.removesuffix(".csv"),
    ]


def figure_code(wildcards):
    """The hash of the code of a figure or table, and of what else its module reads."""
    result = figures.BY_STEM[wildcards.stem]
    return code(f"report.{result.module.split()[0]}", "report.make", data=result.data)


def shown(path):
    """A file that the report shows, with its caption."""
    result = lambda wildcards: figures.BY_STEM[wildcards.stem]
    labels = lambda wildcards: {"Result": result(wildcards).label}
    return report(
        path,
        caption="../report/result.rst",
        category=lambda wildcards: result(wildcards).category,
        labels=labels,
    )


def launcher(wildcards, resources):
    """The command that starts a training stage: one process, or one per GPU if a profile gives the
    job several."""
    # Sites that want gres have gres="gpu:2" or gres="gpu:a100:2" in place of gpu=2.
    gres = re.fullmatch(r"gpu(:[\w.]+)??:(\d+)", str(resources.get("gres", "")))
    processes = int(gres[2] if gres else resources.get("gpu", 0))
    several = f"python -m torch.distributed.run --standalone --nproc-per-node {processes} -m"
    return several if processes > 1 else "python -m"


# GPUs of a job that computes on one. They limit nothing unless a profile or `--resources` says how
# many there are.
GPU = {} if experiment.device == "cpu" else {"gpu": 1}


def needs(gpu, /, *, gigabytes, hours):
    """Resources of a job for the paper's experiment: memory and time for clusters, more of both
    with each attempt."""
    return gpu | {
        "mem_mb": lambda wildcards, attempt: 1000 * gigabytes * attempt,
        "runtime": lambda wildcards, attempt: 60 * hours * attempt,
    }


def stage(module, compute=None, /, data=(), **more):
    """Parameters of a stage: its module and function, the hash of the code and of what else it
    reads, and the settings."""
    names = module.split()
    return {
        "module": names,
        "code": code(names[0], data=data),
        "settings": settings(module, compute, **more),
    }


SHOWN_WARNINGS = 5  # of a job


def warnings_of(job):
    """The first warnings in the logs of a job, each after the path of its log."""
    lines = []
    for log in job.log:
        found = warnings_in(Path(log))
        lines += [f"{log}: {text}" for text in found[:SHOWN_WARNINGS]]
        if len(found) > SHOWN_WARNINGS:
            lines.append(f"{log}: {len(found) - SHOWN_WARNINGS} more warnings")
    return lines


def announce(record):
    """Print the warnings of a job when it ends: those of the text come hours before the end of the
    run."""
    if getattr(record, "event", None) == LogEvent.JOB_FINISHED:
        for job in workflow.dag.jobs:
            for line in warnings_of(job) if job.jobid == record.job_id else ():
                logger.warning(f"Warning in {line}")
    return True


if not IMPORTED:
    logger.addFilter(announce)


def repeat_warnings(file=None):
    """Print the warnings of all jobs behind what was asked for, those of kept results too; `file`
    gets those of `all`."""
    lines = sorted(line for job in workflow.dag.jobs for line in warnings_of(job))
    if lines:
        logger.warning(
            "\n".join(["Warnings of the jobs behind these results, by their logs:", *lines])
        )
    if file and all_was_made():
        write_file(Path(file), "".join(f"{line}\n" for line in lines))


def all_was_made():
    return any(job.rule.name == "all" for job in workflow.dag.jobs)


def remove_states():
    """Remove what resumable stages have saved, now that Snakemake has recorded their results."""
    for job in workflow.dag.jobs:
        if state := job.params.get("state"):
            shutil.rmtree(f"{state}.state", ignore_errors=True)


def end_with(file):
    """Print what the experiment has found, and where it is, if `all` was made."""
    if all_was_made():
        logger.info(f"\n{Path(file).read_text(encoding='utf-8')}")
