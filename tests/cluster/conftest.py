"""A slurm cluster of two nodes on this machine, and a copy of the project to run on it."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).with_name("slurm.sh")
PARTS = ("Snakefile", "config.yaml", "config", "envs", "profiles", "resources", "src", "workflow")


@dataclass(frozen=True)
class Cluster:
    """The test cluster, in `folder`."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """By which slurm's programs find it. Rules call `python`: the one that runs the tests."""
        path = os.pathsep.join([str(self.folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
        return os.environ | {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def script(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`slurm.sh COMMAND FOLDER ARGUMENTS...`; the daemons that it starts keep what they print to themselves."""
        with open(self.folder / "script.log", "w+", encoding="utf-8") as printed:
            call = ["bash", str(SCRIPT), command, str(self.folder), *arguments]
            done = subprocess.run(call, env=self.environment, stdout=printed, stderr=printed, check=False)
            printed.seek(0)
            return subprocess.CompletedProcess(call, done.returncode, printed.read())

    def ask(self, *command: str) -> str:
        """What one of slurm's programs prints."""
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=True).stdout

    def jobs(self, rule: str) -> list[tuple[str, str]]:
        """Number and node of the running jobs of a rule."""
        rows = self.ask("squeue", "--noheader", "--states=R", "--format=%i %N %k").splitlines()
        return [(number, node) for number, node, comment in map(str.split, rows) if comment.startswith(f"rule_{rule}")]


@dataclass(frozen=True)
class Project:
    """A copy of the project, and the targets and configuration of its runs."""

    root: Path
    cluster: Cluster
    targets: tuple[str, ...]

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", *self.targets, "--configfile", "config/tiny.yaml", *arguments],
            cwd=self.root,
            env=self.cluster.environment,
            text=True,
            start_new_session=True,
            **options,
        )

    def submit(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Start Snakemake with the profile of the repository, and what is particular to a cluster of one machine."""
        # There is no accounting, and nobody to spare from questions.
        particular = ["--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "1"]
        profile = ["--workflow-profile", "profiles/slurm", *particular, "--latency-wait", "5"]
        return self.start(*profile, *arguments, **options)

    def file(self, name: str) -> Path:
        return self.root / "results" / "tiny" / name


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="snakemake-executor-plugin-slurm is not installed")
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    started = cluster.script("start", str(free_ports()))
    if started.returncode:
        cluster.script("stop")
        pytest.skip(started.stdout.strip().splitlines()[-1])
    yield cluster
    cluster.script("stop")


def free_ports() -> int:
    """The first of three successive ports that nobody listens on."""
    for first in range(16817, 26817, 10):
        try:
            for port in range(first, first + 3):
                with socket.socket() as trial:
                    trial.bind(("", port))
        except OSError:
            continue
        return first
    raise RuntimeError("no free ports")


@pytest.fixture(scope="session")
def local(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A baseline and a pruned model, made without the cluster. Nothing may be changed in its folder."""
    root = tmp_path_factory.mktemp("local") / "project"
    root.mkdir()
    for part in PARTS:
        copy = copy_tree if (ROOT / part).is_dir() else shutil.copy2
        copy(ROOT / part, root / part)
    # The state of training is saved after every update, so that there is one to go on with.
    loop = root / "src/specialized_heads/training/loop.py"
    code = loop.read_text(encoding="utf-8")
    assert "SAVE_SECONDS = 60.0\n" in code
    loop.write_text(code.replace("SAVE_SECONDS = 60.0\n", "SAVE_SECONDS = 0.0\n"), encoding="utf-8")
    values = yaml.safe_load((root / "config/smoke.yaml").read_text(encoding="utf-8"))
    values["experiment"] = "tiny"
    values["corpora"] = {"tatoeba_en_fr": values["corpora"]["tatoeba_en_fr"]}
    values["pruning"] |= {"encoder": [], "all": [0.01], "retrain": []}
    (root / "config/tiny.yaml").write_text(yaml.safe_dump(values, sort_keys=False), encoding="utf-8")
    project = Project(root, cluster, ("results/tiny/figures/figure7.pdf", "results/tiny/tables/table2.md"))
    process = project.start("--cores", "2", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    printed, _ = process.communicate()
    assert process.returncode == 0, printed[-5000:]
    return project


@pytest.fixture
def project(local: Project, tmp_path: Path) -> Project:
    """The same project after the text has been prepared: models, scores, figure and table are left to make."""
    project = Project(copy_tree(local.root, tmp_path / "project"), local.cluster, local.targets)
    for name in ("tatoeba_en_fr/models", "figures", "tables"):
        shutil.rmtree(project.file(name))
    project.file("tatoeba_en_fr/scores.parquet").unlink()
    return project


def copy_tree(source: Path, target: Path) -> Path:
    """Copy a folder with its times of modification, by which Snakemake tells what is up to date."""
    return shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", ".ruff_cache"))
