"""Projects whose smoke experiment is finished, in which something then goes wrong."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from workflows import Run, Workflow, copy_tree

INJECTOR = Path(__file__).with_name("injector.py")
MEASURED = re.compile(r"(^|/)(logs|benchmarks)/")  # tells of a run, and is no result of it


@dataclass(frozen=True)
class Scene:
    """A copy of the finished smoke experiment, and the original, of which nothing is changed."""

    project: Workflow
    undisturbed: Workflow
    shell: dict[str, str]  # the command of each job, by the path of its log below results/smoke/

    def file(self, name: str) -> Path:
        return self.project.file(name)

    def arm(self, name: str, **fault: str | float) -> None:
        """Let a fault wait for its moment; see `injector`."""
        (self.faults / f"{name}.json").write_text(json.dumps(fault), encoding="utf-8")

    @property
    def faults(self) -> Path:
        return self.project.root / "src" / "faults"

    def armed(self) -> list[str]:
        """The faults that have not struck yet."""
        return sorted(path.stem for path in self.faults.glob("*.json"))

    def lose(self, *names: str) -> None:
        """Delete results, so that they are made again."""
        for name in names:
            self.file(name).unlink()

    def run(self, *names: str, options: tuple[str, ...] = ()) -> Run:
        """Run Snakemake to its end, for these results."""
        return self.project.run(*options, *(f"results/smoke/{name}" for name in names))

    def start(self, *names: str) -> subprocess.Popen[str]:
        """Start Snakemake for these results; what it prints goes to `printed`."""
        with open(self.project.root / "printed", "w", encoding="utf-8") as stream:
            targets = [f"results/smoke/{name}" for name in names]
            return self.project.start(*targets, stdout=stream, stderr=stream)

    def printed(self) -> str:
        return (self.project.root / "printed").read_text(encoding="utf-8")

    def stage(self, name: str, *, before: tuple[str, ...] = ()) -> tuple[int, str]:
        """Run the command of a job without Snakemake; its status, and what its log says.

        Args:
            name: of its log.
            before: a command that starts it, with other rights say.
        """
        command = [*before, "bash", "-euc", self.shell[name]]
        environment = self.environment | {"PYTHONPATH": str(self.project.root / "src"), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, cwd=self.project.root, env=environment, capture_output=True, text=True)
        return done.returncode, done.stderr + self.file(name).read_text(encoding="utf-8", errors="replace")

    @property
    def environment(self) -> dict[str, str]:
        """Rules call `python`: the one that runs the tests."""
        return os.environ | {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}

    def differences(self) -> list[str]:
        """The results that are not there, or not byte by byte those of the undisturbed run."""
        wanted, found = (
            {str(path.relative_to(root)): path for path in root.rglob("*") if path.is_file()}
            for root in (self.undisturbed.file(""), self.file(""))
        )
        return sorted(
            name
            for name in wanted.keys() | found.keys()
            if not MEASURED.search(name)
            and (name not in wanted or name not in found or wanted[name].read_bytes() != found[name].read_bytes())
        )


@pytest.fixture(scope="session")
def shell(smoke: Workflow) -> dict[str, str]:
    """The command of each job of the smoke experiment, by the path of its log below results/smoke/."""
    said = smoke.run("--dry-run", "--forceall", "--printshellcmds").printed
    commands = re.findall(r"^Shell command: (.* > results/smoke/(\S+) 2>&1)$", said, flags=re.MULTILINE)
    assert commands, said[-3000:]
    return {log: command for command, log in commands}


@pytest.fixture(scope="module")
def new_scene(
    smoke: Workflow, shell: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], contextlib.AbstractContextManager[Scene]]:
    """`with new_scene() as scene`: training saves its state after every update, and `injector` waits in every process."""

    @contextlib.contextmanager
    def make() -> Iterator[Scene]:
        root = copy_tree(smoke.root, tmp_path_factory.mktemp("scene") / "project")
        loop = root / "src/specialized_heads/training/loop.py"
        code, times = loop.read_text(encoding="utf-8"), loop.stat()
        assert "SAVE_SECONDS = 60.0\n" in code
        loop.write_text(code.replace("SAVE_SECONDS = 60.0\n", "SAVE_SECONDS = 0.0\n"), encoding="utf-8")
        os.utime(loop, ns=(times.st_atime_ns, times.st_mtime_ns))  # which makes nothing stale
        shutil.copy2(INJECTOR, root / "src/sitecustomize.py")
        (root / "src/faults").mkdir()
        yield Scene(Workflow(root), smoke, shell)
        shutil.rmtree(root.parent)

    return make


@pytest.fixture
def scene(new_scene: Callable[[], contextlib.AbstractContextManager[Scene]]) -> Iterator[Scene]:
    """A scene of a test's own."""
    with new_scene() as scene:
        yield scene
