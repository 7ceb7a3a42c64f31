"""The pinned versions agree, every imported package is among them, and the container recipe fits
the project."""

import ast
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import specialized_heads

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "specialized_heads"
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
DEPENDENCIES, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]
# What `make test` installs.
TESTED = [name for needed in EXTRAS.values() for name in needed]
# It needs an extra, and says so if that is missing.
OPTIONAL = {SOURCES / "exchange" / "export_to.py"}
EACH_ENVIRONMENT = pytest.mark.parametrize(
    "path", sorted((ROOT / "envs").glob("*.yaml")), ids=lambda path: path.stem
)


def pins(lines: list[str]) -> dict[str, str]:
    """Versions by canonical name, from lines of the form name==version."""
    return {
        canonicalize_name(name): version
        for name, _, version in (line.partition("==") for line in lines)
    }


CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
PINS = pins([line for line in CONSTRAINTS if not line.startswith("#")])


def environment_pins(path: Path) -> dict[str, str]:
    *_, last = yaml.safe_load(path.read_text(encoding="utf-8"))["dependencies"]
    return pins(last["pip"])


providers = cache(packages_distributions)  # takes seconds


@cache
def imports(path: Path) -> frozenset[str]:
    """The modules that a file imports."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            modules |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return frozenset(modules)


def imported(sources: set[Path]) -> set[str]:
    """Canonical names of the distributions whose modules these files import."""
    modules = {module.partition(".")[0] for path in sources for module in imports(path)}
    modules -= set(sys.stdlib_module_names) | {"specialized_heads"}
    # Several packages may share a namespace, such as google.
    packages = [[canonicalize_name(name) for name in providers()[module]] for module in modules]
    return {next((name for name in some if name in PINS), some[0]) for some in packages}


def reached(*modules: str) -> set[Path]:
    """The source files that these modules import, directly or not, and their own."""
    files, waiting = set(), list(modules)
    while waiting:
        file = (SOURCES.parent / waiting.pop().replace(".", "/")).with_suffix(".py")
        if file not in files and file.is_file():
            files.add(file)
            waiting += imports(file)
    return files


def dependencies(roots: list[str]) -> set[str]:
    """Canonical names of requirements and of everything that they need, as installed here.

    CUDA libraries are left out: torch brings them on some machines, at the versions that it
    requires itself.
    """
    needed: set[str] = set()
    waiting = list(roots)
    while waiting:
        required = Requirement(waiting.pop())
        name = canonicalize_name(required.name)
        if name in needed or name.startswith(("nvidia-", "cuda-", "triton")):
            continue
        if required.marker is None or required.marker.evaluate({"extra": ""}):
            needed.add(name)
            waiting += distribution(name).requires or []
    return needed


def test_every_installed_dependency_is_pinned() -> None:
    assert dependencies(DEPENDENCIES + TESTED) - set(PINS) == set()


def test_pins_satisfy_the_declared_ranges() -> None:
    for requirement in map(Requirement, DEPENDENCIES + TESTED):
        assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)]), (
            requirement
        )


def test_every_imported_package_is_declared() -> None:
    declared = map(Requirement, DEPENDENCIES + EXTRAS["stanza"] + EXTRAS["models"])
    assert imported(set(SOURCES.rglob("*.py")) - OPTIONAL) <= {
        canonicalize_name(each.name) for each in declared
    }


def test_a_plain_installation_is_small_and_enough_for_the_default() -> None:
    assert len(dependencies(DEPENDENCIES) | {PROJECT["name"]}) <= 90


@EACH_ENVIRONMENT
def test_environments_pin_the_same_versions(path: Path) -> None:
    assert environment_pins(path).items() <= PINS.items()


@EACH_ENVIRONMENT
def test_environments_hold_all_that_their_stages_need(path: Path) -> None:
    sources = {
        # The only other package that preprocess.py imports is in a function that no parse job
        # calls.
        "parsing": reached("specialized_heads.parsing.parse")
        - {SOURCES / "corpus" / "preprocess.py"},
        "pipeline": set(SOURCES.rglob("*.py")) - {SOURCES / "parsing" / "stanza_engine.py"},
    }[path.stem]
    assert dependencies(sorted(imported(sources - OPTIONAL))) - set(environment_pins(path)) == set()


def test_every_file_that_is_not_code_is_package_data() -> None:
    data = PYPROJECT["tool"]["setuptools"]["package-data"]
    folders = {package: SOURCES.parent / package.replace(".", "/") for package in data}
    listed = {
        file
        for package, globs in data.items()
        for glob in globs
        for file in folders[package].glob(glob)
    }
    other = {
        path for path in SOURCES.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")
    }
    assert other <= listed


# Continued lines are one instruction.
TEXT = (ROOT / "envs" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
INSTRUCTIONS = [
    line.split(maxsplit=1)
    for line in TEXT.splitlines()
    if line.strip() and not line.startswith("#")
]


def test_the_container_starts_from_a_supported_python() -> None:
    name, image = INSTRUCTIONS[0]
    assert name == "FROM"
    assert SpecifierSet(PROJECT["requires-python"]).contains(
        re.fullmatch(r"python:(\d+\.\d+)-slim-\w+", image)[1]
    )


def test_the_container_gets_files_that_exist() -> None:
    copied = [
        source for name, text in INSTRUCTIONS if name == "COPY" for source in text.split()[:-1]
    ]
    assert all((ROOT / source).is_file() for source in copied)
    # The build reads the readme, the licence and the version.
    assert {
        PROJECT["readme"],
        *PROJECT["license-files"],
        "src/specialized_heads/__init__.py",
    } <= set(copied)


def test_the_container_installs_the_pinned_packages_with_extras_that_exist() -> None:
    [command] = [text for name, text in INSTRUCTIONS if name == "RUN"]
    words = shlex.split(command)
    assert words[words.index("--constraint") + 1] == "constraints.txt"
    [extras] = [re.fullmatch(r"\.\[([\w,]+)\]", word)[1] for word in words if word.startswith(".[")]
    assert set(extras.split(",")) <= EXTRAS.keys()


# What registries read about the project agrees with pyproject.toml and CITATION.cff, and names what
# exists.

CITED = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_names_versions_licences_and_authors_agree() -> None:
    assert {PROJECT["name"], CITED["title"]} == {"specialized-heads"}
    assert CITED["version"] == specialized_heads.__version__
    assert f"## [{specialized_heads.__version__}]" in (ROOT / "CHANGELOG.md").read_text(
        encoding="utf-8"
    )
    assert {"cff-version", "message"} <= set(CITED)
    assert {PROJECT["license"], CITED["license"]} == {"MIT"}
    assert PROJECT["authors"] == CITED["authors"]
    assert [paper["authors"][0]["family-names"] for paper in CITED["references"]] == [
        "Voita",
        "Michel",
    ]


def test_the_layout_is_that_of_the_catalogue() -> None:
    described = yaml.safe_load(
        (ROOT / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8")
    )
    assert described["usage"] == {"software-stack-deployment": {"conda": True}, "report": True}
    assert (ROOT / "workflow" / "Snakefile").is_file()
    assert (ROOT / "config" / "README.md").is_file()
    # Copied by `snakedeploy`, which knows no other name.
    assert (ROOT / "config" / "config.yaml").read_bytes() == (ROOT / "config.yaml").read_bytes()
    assert (ROOT / ".test" / "config.yaml").read_bytes() == (
        ROOT / "config" / "smoke.yaml"
    ).read_bytes()


def commands(name: str) -> list[str]:
    """What the jobs of a GitHub workflow run."""
    jobs = yaml.safe_load(
        (ROOT / ".github" / "workflows" / f"{name}.yaml").read_text(encoding="utf-8")
    )["jobs"]
    return [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]


def test_the_tests_run_online() -> None:
    assert "make test" in commands("tests")


@pytest.mark.parametrize("tag", ["v1.0.0", "v99.0"])
def test_a_release_has_its_section_of_the_changelog_as_notes(tag: str, tmp_path: Path) -> None:
    [notes] = [line for line in commands("release") if "CHANGELOG.md" in line]
    (tmp_path / "CHANGELOG.md").write_bytes((ROOT / "CHANGELOG.md").read_bytes())
    done = subprocess.run(
        ["bash", "-e", "-c", notes],
        cwd=tmp_path,
        env={"GITHUB_REF_NAME": tag, "PATH": "/usr/bin:/bin"},
    )
    assert (done.returncode == 0) == (tag == "v1.0.0")
    written = (tmp_path / "notes.md").read_text(encoding="utf-8")
    assert ("**Pipeline.**" in written) == (tag == "v1.0.0")
    assert "[Unreleased]" not in written


@pytest.mark.parametrize("fails", ["", "test-all"])
def test_ci_installs_what_tests_need_and_ends_with_those_that_were_skipped(
    fails: str, tmp_path: Path
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "dirname", "mktemp", "rm", "sed", "sort", "tee", "timeout"):
        (programs / name).symlink_to(shutil.which(name))
    stubs = {
        "id": "echo 0",
        "apt-get": f'echo "$@" >> {tmp_path}/asked; exit 100',  # no index
        "make": f'echo "SKIPPED [1] tests/$1.py:3: no GPU"; echo "1 passed, 1 skipped"; [ "$1" != '
        f'"{fails}" ]',
    }
    for name, script in stubs.items():
        (programs / name).write_text(f"#!/bin/bash\n{script}\n")
        (programs / name).chmod(0o755)
    called = [programs / "bash", ROOT / ".ci" / "run"]
    done = subprocess.run(called, env={"PATH": str(programs)}, capture_output=True, text=True)
    assert (done.returncode != 0) == bool(fails), done.stderr
    assert (tmp_path / "asked").read_text() == "update -qq\n"
    assert "could not install slurm-wlm munge chromium chromium-driver" in done.stdout
    tail = "\nSkipped tests:\n[1] tests/test-all.py:3: no GPU\n[1] tests/test.py:3: no GPU\n"
    assert done.stdout.endswith(tail)
