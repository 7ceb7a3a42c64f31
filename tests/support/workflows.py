"""The smoke experiment, run once in a copy of the project; tests that change something work on a
copy of that copy."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from filelock import FileLock

from specialized_heads.experiment.names import CONTINUED

ROOT = Path(__file__).parents[2]
INJECTOR = Path(__file__).with_name("injector.py")
# Rules call `python`, which must be the one that runs the tests.
ENVIRONMENT = os.environ | {
    "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
}
PARTS = ("Snakefile", "config.yaml", "config", "envs", "profiles", "resources", "src", "workflow")


@dataclass(frozen=True)
class Run:
    """What a Snakemake call printed, on both streams, and its exit status."""

    status: int
    printed: str

    @property
    def rules(self) -> set[str]:
        """The rules whose jobs were finished."""
        return set(
            re.findall(r"^Finished jobid: \d+ \(Rule: (\w+)\)", self.printed, flags=re.MULTILINE)
        )

    @property
    def warnings(self) -> list[str]:
        """The warnings of jobs that the run lists, once, at its end."""
        [listed] = re.findall(
            r"^Warnings of the jobs.*:\n((?:\S+\.log: .+\n)+)", self.printed, flags=re.MULTILINE
        )
        return listed.splitlines()


PIPED = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}


def start(
    folder: Path, *arguments: str, env: dict[str, str] = ENVIRONMENT, **options: Any
) -> subprocess.Popen[str]:
    """Start Snakemake in this folder, in a process group of its own."""
    command = [sys.executable, "-m", "snakemake", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=env, text=True, start_new_session=True, **options
    )


def ended(process: subprocess.Popen[str]) -> Run:
    """The run of a process with piped output, when it has ended."""
    printed, _ = process.communicate()
    return Run(process.returncode, printed)


@dataclass(frozen=True)
class Workflow:
    """A copy of the project in `root`, and the configuration file that its runs use."""

    root: Path
    configuration: str = "config/smoke.yaml"

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        # At its end Snakemake waits for this timespan, which the profile makes longer.
        options_of_tests = [
            "--configfile",
            self.configuration,
            "--cores",
            "2",
            "--max-jobs-per-timespan",
            "100/1s",
        ]
        return start(self.root, *options_of_tests, *arguments, **options)

    def run(self, *arguments: str) -> Run:
        """Run Snakemake to its end."""
        return ended(self.start(*arguments, **PIPED))

    def stale(self) -> set[tuple[str, str]]:
        """The outputs that a run would make now: their rule, and their path below
        results/smoke/."""
        process = self.start("--summary", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        table, said = process.communicate()
        assert process.returncode == 0, said
        rows = csv.DictReader(table.splitlines(), delimiter="\t")
        pending = [row for row in rows if row["plan"] == "update pending"]
        return {(row["rule"], row["output_file"].removeprefix("results/smoke/")) for row in pending}

    def file(self, name: str) -> Path:
        """A result of the smoke experiment."""
        return self.root / "results" / "smoke" / name

    def edit(self, module: str) -> None:
        """Change a source file, such as `heads/relevance.py`, though not what it does."""
        with open(
            self.root / "src" / "specialized_heads" / module, "a", encoding="utf-8"
        ) as stream:
            stream.write("\n# changed\n")

    def settings(self) -> dict[str, Any]:
        """The configuration, decoded, to change."""
        return yaml.safe_load((self.root / self.configuration).read_text(encoding="utf-8"))

    def configured(self, values: dict[str, Any]) -> "Workflow":
        """The same copy of the project with another configuration."""
        (self.root / "config" / "changed.yaml").write_text(
            yaml.safe_dump(values, sort_keys=False), encoding="utf-8"
        )
        return Workflow(self.root, "config/changed.yaml")


def new_project(root: Path) -> Workflow:
    """A copy of the project without results."""
    root.mkdir()
    for part in PARTS:
        copy = copy_tree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, root / part)
    return Workflow(root)


def copy_tree(source: Path, target: Path) -> Path:
    """Copy a folder with its times of modification, by which Snakemake tells what is up to date."""
    return shutil.copytree(
        source, target, ignore=shutil.ignore_patterns("__pycache__", ".ruff_cache")
    )


STALLED = 300  # seconds without any change: on a busy machine a start alone can take one


def wait_for(
    condition: Callable[[], object],
    *,
    unless: Callable[[], object] = lambda: False,
    watched: Path | None = None,
) -> None:
    """Wait until the condition holds; fail if `unless` holds first, or if nothing below `watched`
    changes for five minutes."""
    latest, moved, look = 0.0, time.monotonic(), 0.0
    while not condition():
        assert not unless(), "the process ended first"
        now = time.monotonic()
        if watched and now > look:
            before, latest, look = latest, last_change(watched), now + 2
            moved = now if latest > before else moved
        assert now < moved + STALLED, "nothing has happened for five minutes"
        time.sleep(0.02)


def last_change(folder: Path) -> float:
    """When a file or folder below this one was changed last."""
    latest = 0.0
    for root, _, files in os.walk(folder):  # which passes over what vanishes meanwhile
        for name in ("", *files):
            with suppress(FileNotFoundError):
                latest = max(latest, os.lstat(os.path.join(root, name)).st_mtime)
    return latest


@pytest.fixture
def project(tmp_path: Path) -> Workflow:
    """A copy of the project without results."""
    return new_project(tmp_path / "project")


def run_once(
    name: str, tmp_path_factory, configure: Callable[[Workflow], Workflow]
) -> tuple[Workflow, Run]:
    """Run an experiment in a new project. Of several pytest-xdist workers, the first runs it; the
    others wait and share it."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    root, record = folder / f"{name}-project", folder / f"{name}.json"
    with FileLock(folder / f"{name}.lock"):
        if not record.exists():
            workflow = configure(new_project(root))
            run = workflow.run()
            record.write_text(
                json.dumps([workflow.configuration, run.status, run.printed]), encoding="utf-8"
            )
    configuration, status, printed = json.loads(record.read_text(encoding="utf-8"))
    return Workflow(root, configuration), Run(status, printed)


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workflow, Run]:
    """The whole smoke experiment. Nothing may be changed in its folder."""
    return run_once("smoke", tmp_path_factory, lambda workflow: workflow)


@pytest.fixture(scope="session")
def pruning_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Workflow, Run]:
    """All that the smoke experiment does not ask for, as tiny as it can be. Nothing may be changed
    in its folder."""
    return run_once("pruning", tmp_path_factory, with_all_of_pruning)


def with_all_of_pruning(workflow: Workflow) -> Workflow:
    """The project with a configuration that asks for all that the smoke experiment leaves out."""
    values = workflow.settings()
    values["seeds"] = [1, 2]
    whole = values["corpora"]["tatoeba_en_fr"] | {"split": {"dev": 60, "test": 60, "analysis": 100}}
    # which is text, whatever a shell would say
    whole["title"] = "{EN} 'n' \"FR\"; $(touch touched) `touch touched`"
    short = whole | {"title": "-Short {sentences}", "prune": False, "filters": {"max_words": 5}}
    values["corpora"] = {"tatoeba_en_fr": whole, "short": short}
    values["training"] |= {"updates": 30}
    values["pruning"] |= {
        "encoder": [],
        "all": [100],
        "heads": [3],
        "heads_all": [6],
        "updates": 20,
    }
    values["pruning"] |= {"retrain_updates": None, "controls": ["regularised", "count", *CONTINUED]}
    values["ablation"] = {"single": True, "systematic": True, "moments": [10]}
    values["comparison"] = {"criteria": ["gates", "importance", "random"]}
    values["heads"] |= {"relevance_rules": ["z_plus"], "viewer_sentences": 0, "checkpoints": [10]}
    return workflow.configured(values)


@pytest.fixture(scope="session")
def smoke(smoke_run: tuple[Workflow, Run]) -> Workflow:
    """The project after the smoke experiment, to look at."""
    workflow, run = smoke_run
    assert run.status == 0, run.printed[-5000:]
    return workflow


@pytest.fixture
def finished(smoke: Workflow, tmp_path: Path) -> Workflow:
    """The project after the smoke experiment, to change."""
    return Workflow(copy_tree(smoke.root, tmp_path / "finished"))
