"""The container recipe, checked without building it: what it starts from, copies and installs."""

import re
import shlex
import tomllib
from pathlib import Path

from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Continued lines are one instruction.
TEXT = (ROOT / "envs" / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
INSTRUCTIONS = [line.split(maxsplit=1) for line in TEXT.splitlines() if line.strip() and not line.startswith("#")]


def test_it_starts_from_a_supported_python() -> None:
    name, image = INSTRUCTIONS[0]
    assert name == "FROM"
    assert SpecifierSet(PROJECT["requires-python"]).contains(re.fullmatch(r"python:(\d+\.\d+)-slim-\w+", image)[1])


def test_it_copies_files_that_exist() -> None:
    copied = [source for name, text in INSTRUCTIONS if name == "COPY" for source in text.split()[:-1]]
    assert all((ROOT / source).is_file() for source in copied)
    # The build reads the readme, the licence and the version.
    assert {PROJECT["readme"], *PROJECT["license-files"], "src/specialized_heads/__init__.py"} <= set(copied)


def test_it_installs_the_pinned_packages_with_extras_that_exist() -> None:
    [command] = [text for name, text in INSTRUCTIONS if name == "RUN"]
    words = shlex.split(command)
    assert words[words.index("--constraint") + 1] == "constraints.txt"
    [extras] = [re.fullmatch(r"\.\[([\w,]+)\]", word)[1] for word in words if word.startswith(".[")]
    assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
