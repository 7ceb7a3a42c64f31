"""Where the commands run: a home folder that cannot be written, other encodings, limited
processors, an active environment."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name
from pages import PAGES, ROOT
from workflows import ENVIRONMENT, PIPED, Run, Workflow, copy_tree, ended

QUICK = "results/smoke/configuration.yaml"  # a job of a second
BARE = {
    name: value
    for name, value in ENVIRONMENT.items()
    if not name.startswith(("XDG_", "LC_", "LANG", "PYTHONUTF8"))
}
ASCII = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


def run(
    project: Workflow, *arguments: str, before: tuple[str, ...] = (), **environment: str
) -> Run:
    """Snakemake in other surroundings."""
    options = {"cwd": project.root, "env": BARE | environment, "text": True, **PIPED}
    command = [
        *before,
        sys.executable,
        "-m",
        "snakemake",
        *arguments,
        "--configfile",
        project.configuration,
    ]
    return ended(subprocess.Popen(command, **options))


@pytest.mark.parametrize("profile", ["default", "gpu", "slurm"])
def test_the_home_folder_need_not_be_writable(project, profile: str) -> None:
    options = [
        "--workflow-profile",
        f"profiles/{profile}",
        *(["--executor", "local"] if profile == "slurm" else []),
    ]
    made = run(project, QUICK, "--cores", "1", *options, HOME="/dev/null/home")
    assert made.status == 0, made.printed[-3000:]
    assert (project.root / QUICK).exists()


def test_an_encoding_that_is_not_utf_8_is_one_line_and_make_sets_its_own(project) -> None:
    refused = run(project, QUICK, "--cores", "1", **ASCII)
    assert refused.status == 1 and "Traceback" not in refused.printed
    assert "not UTF-8; run `export PYTHONUTF8=1` and the same command again\n" in refused.printed
    values = project.settings()
    values["corpora"]["tatoeba_en_fr"]["title"] = "λ → русский"
    other = project.configured(values)
    made = run(other, QUICK, "--cores", "1", **ASCII | {"PYTHONUTF8": "1"})
    assert made.status == 0, made.printed[-3000:]
    assert "λ → русский" in (project.root / QUICK).read_text(encoding="utf-8")
    rule = "shown: ; @echo utf8=$$PYTHONUTF8"
    printed = subprocess.check_output(
        ["make", "--eval", rule, "shown"], cwd=ROOT, env=BARE | ASCII, text=True
    )
    assert "utf8=1\n" in printed


@pytest.fixture
def one_processor() -> Iterator[tuple[str, ...]]:
    """The start of a command that may use one processor's worth of time, as a container with a
    limit may."""
    version_2 = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    group = Path("/sys/fs/cgroup", "" if version_2 else "cpu", f"specialized_heads-{os.getpid()}")
    limits = (
        {"cpu.max": "100000 100000"}
        if version_2
        else {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "100000"}
    )
    try:
        group.mkdir()
        try:
            for name, value in limits.items():
                (group / name).write_text(value)
            yield ("sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh")
        finally:
            group.rmdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here ({error.strerror})")


def test_all_cores_are_those_that_the_control_group_allows(project, one_processor) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor, of which nothing can be taken away")
    limited = run(project, QUICK, "--cores", "all", before=one_processor)
    assert limited.status == 0 and "Provided cores: 1\n" in limited.printed.replace(
        " (use --cores to define parallelism)", ""
    )


CLOSED = (
    "results/smoke/tatoeba_en_fr/logs/prune_encoder_lambda100_seed1.log: all 8 gates closed "
    "at λ 100"
)


def test_warnings_of_jobs_are_printed_and_repeated_at_the_end(smoke_run) -> None:
    workflow, whole = smoke_run
    shown = whole.warnings
    written = {
        f"{path.relative_to(workflow.root)}: {text}"
        for path in workflow.file("").rglob("*.log")
        for text in re.findall(
            r"^[\d:]{8} warning: (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    assert shown == sorted(written)
    assert sum(line.startswith(CLOSED) for line in shown) == 1
    for line in shown:  # when its job ended, and at the end
        assert whole.printed.count(line) == 2
    assert workflow.file("warnings.txt").read_text(encoding="utf-8").splitlines() == shown


def test_warnings_of_kept_results_are_repeated_even_if_a_job_fails(finished) -> None:
    kept = finished.file("warnings.txt").read_text(encoding="utf-8").splitlines()
    finished.file("warnings.txt").unlink()
    finished.file("figures/figure7.pdf").unlink()
    again = finished.run()
    assert again.rules == {"figure", "table", "index", "all"}, again.printed[-3000:]
    assert again.warnings == kept
    assert finished.file("warnings.txt").read_text(encoding="utf-8").splitlines() == kept

    finished.file("figures/figure7.pdf").unlink()
    finished.file("data/models.parquet").write_bytes(b"damaged")
    os.utime(finished.file("data/models.parquet"), ns=(0, 0))
    failed = finished.run("results/smoke/figures/figure7.pdf")
    assert failed.status == 1
    assert set(failed.warnings) <= set(kept)


# Installing, with the environment active.

LINES = r"(?<![\w./-])((?:make install|pip install) [^`\n#]*[^`\n# ])"
TEXTS = [
    *(page for page in PAGES if page.name != "CHANGELOG.md"),
    *(path for name in ("config", "profiles") for path in (ROOT / name).rglob("*.yaml")),
    *(ROOT / "resources").glob("*.py"),
]


def documented() -> list[str]:
    """The lines of the documentation that install something."""
    return sorted(
        {line for path in TEXTS for line in re.findall(LINES, path.read_text(encoding="utf-8"))}
    )


def test_each_documented_line_installs_into_the_active_environment(tmp_path: Path) -> None:
    lines = documented()
    assert {"make install EXTRAS=slurm", "make install EXTRAS=models,stanza,ctranslate2"} < set(
        lines
    )
    base = sys._base_executable
    root = tmp_path / "project"
    root.mkdir()
    for name in ("Makefile", "pyproject.toml", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, root / name)
    copy_tree(ROOT / "src", root / "src")
    # The named packages alone: with all that they need, the environment would have 1.6 GB.
    environment = BARE | {"PIP_NO_DEPS": "1"}

    def called(line: str, *, active: Path) -> str:
        path = os.pathsep.join([str(active / "bin"), str(Path(base).parent), "/usr/bin:/bin"])
        activated = environment | {"VIRTUAL_ENV": str(active), "PATH": path}
        done = subprocess.run(
            ["bash", "-euc", line], cwd=root, env=activated, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    other = tmp_path / "other"  # an environment without pip, as uv makes them, is active
    subprocess.run([base, "-m", "venv", "--without-pip", other], check=True)
    probe = [
        base,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--retries",
        "0",
        "-d",
        tmp_path / "pip",
        "pip",
    ]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("pip reaches no package index")
    called("make install", active=other)
    assert not list(other.glob("lib/*/site-packages/[!_]*"))
    own = root / ".venv"
    os.utime(own / "installed", (0, 0))  # older than the requirements: the environment is made anew
    assert "venv --clear" in called("make install", active=own)
    for line in [*lines, "make .venv/installed-tests"]:
        called(line, active=own)
    named = [word for line in lines if line.startswith("pip") for word in shlex.split(line)[2:]]
    listed = {
        canonicalize_name(line.split()[0]) for line in called("pip list", active=own).splitlines()
    }
    assert {canonicalize_name(re.split(r"[=\[]", name)[0]) for name in named} <= listed
