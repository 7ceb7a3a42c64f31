"""The pinned versions agree with each other, and every package that the code imports is among them."""

import ast
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PINS = {
    canonicalize_name(name): version
    for name, _, version in (
        line.partition("==")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
}
SOURCES = ROOT / "src" / "specialized_heads"
ENVIRONMENTS = sorted((ROOT / "envs").glob("*.yaml"))


def environment_pins(path: Path) -> dict[str, str]:
    *_, last = yaml.safe_load(path.read_text(encoding="utf-8"))["dependencies"]
    pip = last["pip"]
    return {canonicalize_name(name): version for name, _, version in (line.partition("==") for line in pip)}


def imported(sources: list[Path]) -> set[str]:
    """Canonical names of the distributions whose modules these files import."""
    modules = set()
    for path in sources:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module and not node.level else []
            modules |= {name.partition(".")[0] for name in names}
    modules -= set(sys.stdlib_module_names) | {"specialized_heads"}
    providers = packages_distributions()
    return {canonicalize_name(providers[module][0]) for module in modules}


def dependencies(roots: list[str]) -> set[str]:
    """Canonical names of requirements and of everything that they need, as installed here.

    CUDA libraries are left out: torch brings them on some machines, at the versions that it states itself.
    """
    found: set[str] = set()
    waiting = [Requirement(root) for root in roots]
    while waiting:
        name = canonicalize_name(waiting.pop().name)
        if name in found or name.startswith(("nvidia-", "cuda-", "triton")):
            continue
        found.add(name)
        needs = map(Requirement, distribution(name).requires or [])
        waiting += [need for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})]
    return found


def test_every_installed_dependency_is_pinned() -> None:
    installed = dependencies(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"])
    assert installed - set(PINS) == set()


def test_pins_satisfy_the_declared_ranges() -> None:
    extras = PROJECT["optional-dependencies"]
    for text in PROJECT["dependencies"] + extras["test"] + extras["spacy"]:
        requirement = Requirement(text)
        assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)]), text


def test_every_imported_package_is_declared() -> None:
    declared = {canonicalize_name(Requirement(text).name) for text in PROJECT["dependencies"]}
    assert imported(sorted(SOURCES.rglob("*.py"))) <= declared


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_environments_pin_the_same_versions(path: Path) -> None:
    pins = environment_pins(path)
    assert pins == {name: PINS[name] for name in pins}


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_environments_hold_all_that_their_stages_need(path: Path) -> None:
    engine = SOURCES / "parsing" / "stanza_engine.py"
    parse = ["stage.py", "config.py", "corpus/pairs.py", "parsing/parse.py", "parsing/embedded.py", "parsing/words.py"]
    sources = {
        "parsing": {engine, *(SOURCES / name for name in parse)},
        "pipeline": set(SOURCES.rglob("*.py")) - {engine},
    }[path.stem]
    assert dependencies(sorted(imported(sorted(sources)))) - set(environment_pins(path)) == set()


def test_every_environment_that_a_rule_names_is_there() -> None:
    named = {
        (file.parent / line.strip().strip('"')).resolve()
        for file in (ROOT / "workflow" / "rules").glob("*.smk")
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.strip().strip('"').startswith("../../envs/")
    }
    assert named == set(ENVIRONMENTS)
