"""Copies of the finished smoke experiment, in which something then goes wrong."""

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from workflows import ENVIRONMENT, INJECTOR, Run, Workflow, copy_tree

MEASURED = re.compile(r"(^|/)(logs|benchmarks)/")  # records of a run, not results


@dataclass(frozen=True)
class Scene:
    """A copy of the finished smoke experiment, and the untouched original."""

    project: Workflow
    undisturbed: Workflow
    shell: dict[str, str]  # the command of each job, by the path of its log below results/smoke/

    def file(self, name: str) -> Path:
        return self.project.file(name)

    @property
    def faults(self) -> Path:
        return self.project.root / "src" / "faults"

    def arm(self, name: str, **fault: str | float) -> None:
        """Let a fault wait for its moment; see `injector`."""
        (self.faults / f"{name}.json").write_text(json.dumps(fault), encoding="utf-8")

    def armed(self) -> set[str]:
        """The faults that have not struck yet."""
        return {path.stem for path in self.faults.glob("*.json")}

    def lose(self, *names: str) -> None:
        """Delete results, so that they are made again."""
        for name in names:
            self.file(name).unlink()

    def run(self, *names: str, options: tuple[str, ...] = ()) -> Run:
        """Run Snakemake to its end, for these results."""
        return self.project.run(*options, *(f"results/smoke/{name}" for name in names))

    def start(self, name: str) -> subprocess.Popen[str]:
        """Start Snakemake for this result; its output goes to the file `printed`."""
        with open(self.project.root / "printed", "w", encoding="utf-8") as stream:
            return self.project.start(f"results/smoke/{name}", stdout=stream, stderr=stream)

    def stage(self, log: str, *, before: tuple[str, ...] = ()) -> tuple[int, str]:
        """Run the command of the job with this log without Snakemake; return its status and its
        output.

        Args:
            before: a command that starts it, for example with other rights.
        """
        environment = ENVIRONMENT | {
            "PYTHONPATH": str(self.project.root / "src"),
            "OMP_NUM_THREADS": "1",
        }
        command = [*before, "bash", "-euc", self.shell[log]]
        done = subprocess.run(
            command, cwd=self.project.root, env=environment, capture_output=True, text=True
        )
        for state in [*self.file("").rglob("*.state")] if done.returncode == 0 else []:
            shutil.rmtree(state)  # as Snakemake does at the end of a run
        return done.returncode, done.stderr + self.file(log).read_text(
            encoding="utf-8", errors="replace"
        )

    def differences(self) -> list[str]:
        """The results that are missing, or not byte by byte those of the undisturbed run."""

        def results(root: Path) -> dict[str, bytes]:
            files = {
                str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()
            }
            return {
                name: path.read_bytes() for name, path in files.items() if not MEASURED.search(name)
            }

        expected, actual = results(self.undisturbed.file("")), results(self.file(""))
        return sorted(
            name
            for name in expected.keys() | actual.keys()
            if expected.get(name) != actual.get(name)
        )


@pytest.fixture(scope="session")
def shell(smoke: Workflow) -> dict[str, str]:
    """The command of each job of the smoke experiment, by the path of its log below
    results/smoke/."""
    printed = smoke.run("--dry-run", "--forceall", "--printshellcmds").printed
    commands = re.findall(
        r"^Shell command: (.* >>? results/smoke/(\S+) 2>&1)$", printed, flags=re.MULTILINE
    )
    assert commands, printed[-3000:]
    return {log: command for command, log in commands}


@pytest.fixture
def scene(smoke: Workflow, shell: dict[str, str], tmp_path: Path) -> Scene:
    """Training saves its state after every update, and `injector` waits in every process."""
    root = copy_tree(smoke.root, tmp_path / "project")
    shutil.copy2(INJECTOR, root / "src/sitecustomize.py")
    (root / "src/faults").mkdir()
    return Scene(Workflow(root), smoke, shell)
