"""The container recipe, as far as it can be checked without building it: what it copies, installs and starts from."""

import re
import shlex
import tomllib
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def instructions() -> list[tuple[str, str]]:
    """Name and argument of each instruction; continued lines are one."""
    text = (ROOT / "envs" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def test_it_begins_with_a_python_that_the_project_supports() -> None:
    name, image = instructions()[0]
    assert name == "FROM"
    version = re.fullmatch(r"python:(\d+\.\d+)-slim-\w+", image)[1]
    assert SpecifierSet(PROJECT["requires-python"]).contains(version)


def test_what_it_copies_is_there() -> None:
    copied = [source for name, text in instructions() if name == "COPY" for source in text.split()[:-1]]
    assert copied
    assert all((ROOT / source).is_file() for source in copied)
    # The build reads the readme, the licence and the version.
    assert {PROJECT["readme"], *PROJECT["license-files"], "src/specialized_heads/__init__.py"} <= set(copied)


def test_it_installs_the_pinned_packages_with_extras_that_exist() -> None:
    [command] = [text for name, text in instructions() if name == "RUN"]
    words = shlex.split(command)
    assert words[words.index("--constraint") + 1] == "constraints.txt"
    [extras] = [re.fullmatch(r"\.\[([\w,]+)\]", word)[1] for word in words if word.startswith(".[")]
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
