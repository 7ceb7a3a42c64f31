"""The slurm profile on a real slurm gives the results of a local run, also after cancelled jobs and
failing nodes."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from workflows import ENVIRONMENT, INJECTOR, Run, copy_tree, new_project, start, wait_for

from specialized_heads.stage import file_hash

SCRIPT = Path(__file__).with_name("slurm.sh")
TARGETS = ("results/smoke/figures/figure7.pdf", "results/smoke/tables/table2.md")
MODEL = "tatoeba_en_fr/models/baseline/seed1"


@dataclass(frozen=True)
class Cluster:
    """The test cluster, in `folder`."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Leads slurm's programs to this cluster."""
        path = os.pathsep.join([str(self.folder / "bin"), ENVIRONMENT["PATH"]])
        return ENVIRONMENT | {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": path}

    def script(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`slurm.sh COMMAND FOLDER ARGUMENTS...`; its output goes to a file, because the daemons
        keep it open."""
        with open(self.folder / "script.log", "w+", encoding="utf-8") as printed:
            call = ["bash", str(SCRIPT), command, str(self.folder), *arguments]
            done = subprocess.run(
                call, env=self.environment, stdout=printed, stderr=printed, check=False
            )
            printed.seek(0)
            return subprocess.CompletedProcess(call, done.returncode, printed.read())

    def ask(self, *command: str) -> str:
        """The output of one of slurm's programs."""
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True
        ).stdout

    def jobs(self, rule: str) -> list[tuple[str, str]]:
        """Number and node of the running jobs of a rule."""
        rows = self.ask("squeue", "--noheader", "--states=R", "--format=%i %N %k").splitlines()
        return [
            (number, node)
            for number, node, comment in map(str.split, rows)
            if comment.startswith(f"rule_{rule}")
        ]


@dataclass(frozen=True)
class Project:
    """A copy of the project, with a configuration of one corpus."""

    root: Path
    cluster: Cluster

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start Snakemake; its output goes to the file `printed`."""
        options = ["--configfile", "config/changed.yaml", *arguments]
        with open(self.root / "printed", "w", encoding="utf-8") as stream:
            return start(
                self.root,
                *TARGETS,
                *options,
                env=self.cluster.environment,
                stdout=stream,
                stderr=stream,
            )

    def ended(self, process: subprocess.Popen[str]) -> Run:
        """The run of this process, when it has ended."""
        wait_for(lambda: process.poll() is not None, watched=self.root)
        return Run(process.returncode, (self.root / "printed").read_text(encoding="utf-8"))

    @property
    def faults(self) -> Path:
        return self.root / "src" / "faults"

    def pause(self, file: Path, *, number: int) -> None:
        """Let the next job wait when it is about to rename a file to this one for the `number`-th
        time; see `injector`."""
        shutil.rmtree(self.faults, ignore_errors=True)
        self.faults.mkdir()
        fault = {"what": "waits", "file": str(file.relative_to(self.root)), "number": number}
        (self.faults / "pause.json").write_text(json.dumps(fault), encoding="utf-8")

    def submit(self, *arguments: str) -> subprocess.Popen[str]:
        """Start Snakemake with the slurm profile, adapted to a cluster without accounting that need
        not be spared queries."""
        adapted = [
            "--slurm-status-command",
            "squeue",
            "--slurm-init-seconds-before-status-checks",
            "1",
        ]
        return self.start(
            "--workflow-profile", "profiles/slurm", *adapted, "--latency-wait", "5", *arguments
        )

    def file(self, name: str) -> Path:
        return self.root / "results" / "smoke" / name


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    pytest.importorskip(
        "snakemake_executor_plugin_slurm", reason="snakemake-executor-plugin-slurm is not installed"
    )
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    started = cluster.script("start", str(free_ports()))
    if started.returncode == 3:  # a program is missing
        pytest.skip(started.stdout.strip().splitlines()[-1])
    if started.returncode:
        cluster.script("stop")
        pytest.fail(started.stdout)
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
    """A baseline and a pruned model, made without the cluster. Nothing may be changed in its
    folder."""
    workflow = new_project(tmp_path_factory.mktemp("local") / "project")
    # training saves its state after every update
    shutil.copy2(INJECTOR, workflow.root / "src/sitecustomize.py")
    values = workflow.settings()
    values["corpora"] = {"tatoeba_en_fr": values["corpora"]["tatoeba_en_fr"]}
    values["pruning"] |= {"encoder": [], "all": [0.01], "retrain": []}
    project = Project(workflow.configured(values).root, cluster)
    run = project.ended(project.start("--cores", "2"))
    assert run.status == 0, run.printed[-5000:]
    return project


@pytest.fixture
def project(local: Project, tmp_path: Path) -> Project:
    """The same project with text prepared but without models, their tables, figure and table."""
    project = Project(copy_tree(local.root, tmp_path / "project"), local.cluster)
    for name in ("tatoeba_en_fr/models", "data", "figures", "tables"):
        shutil.rmtree(project.file(name))
    return project


def results(project) -> dict[str, str]:
    """Hashes of the models and of everything made from them, by path."""
    root = project.file("")
    parts = ("tatoeba_en_fr/models", "data", "figures", "tables")
    files = [path for part in parts for path in root.joinpath(part).rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): file_hash(path) for path in files}


def test_cluster_jobs_make_the_results_of_a_local_run(local, project, cluster) -> None:
    process = project.submit()
    jobs = {}

    def asked_until_the_end() -> bool:
        rows = cluster.ask(
            "squeue", "--noheader", "--states=all", "--format=%k|%C|%m|%l|%b"
        ).splitlines()
        jobs.update(
            {row.split("|")[0].partition("_wildcards")[0]: row.split("|")[1:] for row in rows}
        )
        time.sleep(0.5)
        return process.poll() is not None

    wait_for(asked_until_the_end, watched=project.root)
    run = project.ended(process)
    assert run.status == 0, run.printed[-5000:]
    assert results(project) == results(local)
    # from a log that a node has written
    assert any("of 24 gates are decided" in line for line in run.warnings)
    # Cores, memory and time of the profile. The two scores were one job, and so were the tables,
    # figure and table.
    assert jobs["rule_train_baseline"][:3] == ["4", "16000M", "2-00:00:00"]
    names = ["train_baseline", "prune", "translate", "scores_score", "relevance"]
    names += ["analyse_heads", "figures"]
    assert {
        next((name for name in names if job.startswith(f"rule_{name}")), job) for job in jobs
    } == set(names)


def test_training_survives_cancelled_jobs_and_failing_nodes(local, project, cluster) -> None:
    state, weights = (
        project.file(f"{MODEL}.state") / "state.pt",
        project.file(f"{MODEL}/model.safetensors"),
    )

    def pausing() -> tuple[subprocess.Popen[str], str, str]:
        """Snakemake with a training job that pauses while it saves its second state, and the job's
        number and node."""
        project.pause(state, number=2)
        process = project.submit("--retries", "0")
        wait_for(
            (project.faults / "waiting").exists,
            unless=lambda: process.poll() is not None,
            watched=project.root,
        )
        [(number, node)] = cluster.jobs("train_baseline")
        assert state.exists()
        return process, number, node

    process, number, _ = pausing()
    cluster.ask("scancel", number)
    run = project.ended(process)
    assert run.status == 1
    assert "CANCELLED" in run.printed
    assert state.exists()
    assert not weights.exists()

    process, number, node = pausing()
    failed = cluster.script("node-fails", node)
    assert failed.returncode == 0, failed.stdout
    assert state.exists()
    wait_for(weights.exists, unless=lambda: process.poll() is not None, watched=project.root)
    job = cluster.ask("scontrol", "show", "job", number)
    assert f"JobId={number} " in job
    assert "Restarts=1" in job
    assert cluster.script("node-starts", node).returncode == 0
    run = project.ended(process)
    assert run.status == 0, run.printed[-5000:]
    log = project.file("tatoeba_en_fr/logs/train_baseline_seed1.log").read_text(encoding="utf-8")
    assert "resuming at update" in log
    assert results(project) == results(local)
