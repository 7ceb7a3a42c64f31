"""What defines a figure or table of the report, how a row of their table (`figures`) says it, and the arguments of its module."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from specialized_heads.config.experiment import Experiment
from specialized_heads.planning.models import Run, paths


@dataclass(frozen=True)
class Result:
    """A figure, a table, or one of each that a module makes together."""

    rule: str
    module: str  # below specialized_heads.report
    category: str
    label: str  # in the report
    caption: str  # name of its file in workflow/report, without suffix
    outputs: dict[str, str]  # paths below the experiment's folder, without suffix, by the argument that takes them
    inputs: dict[str, list[str]]  # files by the argument that takes them
    needs: list[str]  # files that must exist first and that no argument names
    folder: bool  # pass `--results`, the experiment's folder, where the module finds what it needs
    settings: dict[str, Any]
    wanted: bool  # made where no target is named


def row(
    experiment: Experiment,
    package: str,
    category: str,
    stem: str,
    label: str,
    *,
    titles: Sequence[str] | None = None,
    runs: Sequence[Run] | None = None,
    module: str = "",
    rule: str = "",
    both: bool = False,
    needs: Sequence[str] = (),
    folder: bool = False,
    settings: dict[str, Any] | None = None,
    wanted: bool = True,
    **inputs: str | list[str],
) -> Result:
    """A figure or table; see `Result` for what is not explained here.

    Args:
        package: where its module is, below `specialized_heads.report`.
        stem: its path below the experiment's folder, such as `figures/entropy`. The last part names the module, the rule and
            the caption, unless `module` and `rule` give other names.
        titles: the corpora that it shows; the module gets their titles as the setting of this name.
        runs: the models that it shows; the module gets their corpora, names and seeds as the setting of this name.
        both: whether the module makes a figure and a table, each of this name.
        settings: further settings.
        inputs: by argument, the files, or a pattern for the path of one file for each of `runs`, or else of `titles`.
    """
    name = PurePosixPath(stem).name
    shown: Sequence[Run | str] = runs if runs is not None else titles or ()
    files = {flag: paths(experiment, each, shown) if isinstance(each, str) else each for flag, each in inputs.items()}
    known = {} if titles is None else {"titles": titles_of(experiment, titles)}
    known |= {} if runs is None else {"runs": described(experiment, runs)}
    return Result(
        rule=rule or name,
        module=f"{package}.{module or name}",
        category=category,
        label=label,
        caption=name,
        outputs={"figure": f"figures/{name}", "table": f"tables/{name}"} if both else {"output": stem},
        inputs=files,
        needs=list(needs),
        folder=folder,
        settings=known | (settings or {}),
        wanted=wanted,
    )


def arguments(result: Result, *, files: dict[str, list[str]], stems: dict[str, str]) -> list[str]:
    """The command line of a module for a result, without its settings.

    By argument, `files` are what the job reads, and `stems` where it writes, without suffix.
    """
    [name, *_] = result.outputs
    folder = stems[name].removesuffix(f"/{result.outputs[name]}")
    named = files | {name: [stem] for name, stem in stems.items()} | ({"results": [folder]} if result.folder else {})
    return [part for name, paths in named.items() if paths for part in (f"--{name}", *paths)]


def titles_of(experiment: Experiment, names: Iterable[str]) -> list[str]:
    """The titles of these corpora or tasks."""
    return [experiment.studies[name].title for name in names]


def title_of(experiment: Experiment, names: Sequence[str]) -> dict[str, str]:
    """The setting of a figure of one corpus, the first of these."""
    return {"title": experiment.studies[names[0]].title}


def described(experiment: Experiment, shown: Iterable[Run]) -> list[dict[str, Any]]:
    """The setting that names these runs (`report.experiment.Run`)."""
    return [run._asdict() | {"corpus": experiment.studies[run.corpus].title} for run in shown]
