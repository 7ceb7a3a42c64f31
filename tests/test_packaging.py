"""The pinned versions agree, every imported package is among them, and the container recipe fits the project."""

import json
import re
import shlex
import subprocess
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import specialized_heads

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
DEPENDENCIES, EXTRAS = PROJECT["dependencies"], PROJECT["optional-dependencies"]
# What `make test` installs.
TESTED = [name for needed in EXTRAS.values() for name in needed]
EACH_ENVIRONMENT = pytest.mark.parametrize("path", sorted((ROOT / "envs").glob("*.yaml")), ids=lambda path: path.stem)


def pins(lines: list[str]) -> dict[str, str]:
    """Versions by canonical name, from lines of the form name==version."""
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines)}


CONSTRAINTS = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
PINS = pins([line for line in CONSTRAINTS if not line.startswith("#")])


def environment_pins(path: Path) -> dict[str, str]:
    *_, last = yaml.safe_load(path.read_text(encoding="utf-8"))["dependencies"]
    return pins(last["pip"])


def dependencies(roots: list[str]) -> set[str]:
    """Canonical names of requirements and of everything that they need, as installed here.

    CUDA libraries are left out: torch brings them on some machines, at the versions that it requires itself.
    """
    needed: set[str] = set()
    waiting = [Requirement(root) for root in roots]
    while waiting:
        name = canonicalize_name(waiting.pop().name)
        if name in needed or name.startswith(("nvidia-", "cuda-", "triton")):
            continue
        needed.add(name)
        requirements = map(Requirement, distribution(name).requires or [])
        waiting += [each for each in requirements if each.marker is None or each.marker.evaluate({"extra": ""})]
    return needed


def test_every_installed_dependency_is_pinned() -> None:
    assert dependencies(DEPENDENCIES + TESTED) - set(PINS) == set()


@EACH_ENVIRONMENT
def test_environments_pin_the_same_versions_of_all_that_their_stages_need(path: Path) -> None:
    parsing = [*EXTRAS["stanza"], "pyarrow", "pydantic", "pyyaml"]
    found, needed = environment_pins(path), {"pipeline": DEPENDENCIES + EXTRAS["models"], "parsing": parsing}
    assert found.items() <= PINS.items()
    assert dependencies(needed[path.stem]) <= found.keys()


def test_every_file_that_is_not_code_is_package_data() -> None:
    data, sources = PYPROJECT["tool"]["setuptools"]["package-data"], ROOT / "src" / "specialized_heads"
    folders = {package: sources.parent / package.replace(".", "/") for package in data}
    listed = {file for package, globs in data.items() for glob in globs for file in folders[package].glob(glob)}
    assert {path for path in sources.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")} <= listed


# Continued lines are one instruction.
TEXT = (ROOT / "envs" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
INSTRUCTIONS = [line.split(maxsplit=1) for line in TEXT.splitlines() if line.strip() and not line.startswith("#")]


def test_the_container_installs_the_pinned_packages_from_files_and_extras_that_exist() -> None:
    copied = [source for name, text in INSTRUCTIONS if name == "COPY" for source in text.split()[:-1]]
    assert all((ROOT / source).is_file() for source in copied)
    # The build reads the readme, the licence and the version.
    assert {PROJECT["readme"], *PROJECT["license-files"], "src/specialized_heads/__init__.py"} <= set(copied)
    [command] = [text for name, text in INSTRUCTIONS if name == "RUN"]
    words = shlex.split(command)
    assert words[words.index("--constraint") + 1] == "constraints.txt"
    [extras] = [re.fullmatch(r"\.\[([\w,]+)\]", word)[1] for word in words if word.startswith(".[")]
    assert set(extras.split(",")) <= EXTRAS.keys()


# What registries read about the project agrees with pyproject.toml and CITATION.cff, and names what exists.

CITED = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CODEMETA = json.loads((ROOT / "codemeta.json").read_text(encoding="utf-8"))
ZENODO = json.loads((ROOT / ".zenodo.json").read_text(encoding="utf-8"))


def test_versions_licences_authors_and_keywords_agree() -> None:
    assert {CITED["version"], CODEMETA["version"], ZENODO["version"]} == {specialized_heads.__version__}
    assert {PROJECT["license"], CITED["license"], CODEMETA["license"].split("/")[-1], ZENODO["license"]} == {"MIT"}
    authors = [PROJECT["authors"], CITED["authors"], CODEMETA["author"], ZENODO["creators"]]
    assert len({tuple(author["name"] for author in named) for named in authors}) == 1
    assert CITED["keywords"] == CODEMETA["keywords"] == ZENODO["keywords"]


def test_configurations_have_the_names_that_snakedeploy_and_the_catalogue_know() -> None:
    assert (ROOT / "config" / "config.yaml").read_bytes() == (ROOT / "config.yaml").read_bytes()
    assert (ROOT / ".test" / "config.yaml").read_bytes() == (ROOT / "config" / "smoke.yaml").read_bytes()


def test_a_release_has_its_section_of_the_changelog_as_notes(tmp_path: Path) -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/release.yaml").read_text(encoding="utf-8"))["jobs"]
    [notes] = [step["run"] for step in jobs["release"]["steps"] if "CHANGELOG.md" in step.get("run", "")]
    (tmp_path / "CHANGELOG.md").write_bytes((ROOT / "CHANGELOG.md").read_bytes())
    environment = {"GITHUB_REF_NAME": "v1.0.0", "PATH": "/usr/bin:/bin"}
    subprocess.run(["bash", "-e", "-c", notes], cwd=tmp_path, env=environment, check=True)
    written = (tmp_path / "notes.md").read_text(encoding="utf-8")
    assert "**Pipeline.**" in written and "[Unreleased]" not in written
