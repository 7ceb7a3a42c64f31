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
SPACY = SOURCES / "parsing" / "spacy_engine.py"  # needs an extra, and says so itself where it is missing


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


def reached(module: str) -> set[Path]:
    """The source files that a stage imports, directly or not."""
    found, waiting = set(), [module]
    while waiting:
        file = (SOURCES.parent / waiting.pop().replace(".", "/")).with_suffix(".py")
        if file in found or not file.is_file():
            continue
        found.add(file)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                waiting += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


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
    assert imported(sorted(set(SOURCES.rglob("*.py")) - {SPACY})) <= declared


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_environments_pin_the_same_versions(path: Path) -> None:
    pins = environment_pins(path)
    assert pins == {name: PINS[name] for name in pins}


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_environments_hold_all_that_their_stages_need(path: Path) -> None:
    engine = SOURCES / "parsing" / "stanza_engine.py"
    sources = {
        # Its one import of another package stands in a function that no parse job calls.
        "parsing": (reached("specialized_heads.parsing.parse") | reached("specialized_heads.parsing.fetch"))
        - {SOURCES / "corpus" / "preprocess.py"},
        "pipeline": set(SOURCES.rglob("*.py")) - {engine},
    }[path.stem]
    sources -= {SPACY}
    assert dependencies(sorted(imported(sorted(sources)))) - set(environment_pins(path)) == set()


def test_every_environment_that_a_rule_names_is_there() -> None:
    named = {
        (file.parent / line.strip().strip('"')).resolve()
        for file in (ROOT / "workflow" / "rules").glob("*.smk")
        for line in file.read_text(encoding="utf-8").splitlines()
        if line.strip().strip('"').startswith("../../envs/")
    }
    assert named == set(ENVIRONMENTS)


def test_the_environment_of_the_parse_stage_has_the_spacy_extra() -> None:
    extra = {canonicalize_name(Requirement(text).name) for text in PROJECT["optional-dependencies"]["spacy"]}
    assert extra <= set(environment_pins(ROOT / "envs" / "parsing.yaml"))


def test_every_file_that_is_no_code_is_package_data() -> None:
    data = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-data"]
    listed = {file for package, globs in data.items() for glob in globs for file in _files(package, glob)}
    other = {path for path in SOURCES.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc")}
    assert other <= listed


def _files(package: str, glob: str) -> set[Path]:
    return set((SOURCES.parent / package.replace(".", "/")).glob(glob))
