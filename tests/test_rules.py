"""Profiles name rules that exist, and leave out none that computes on a GPU or draws a figure; rules are quoted commands."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
RULE = r"^ *(?:use rule (\w+) as |rule ?)(\w*)(?: with)?:\n(.*?)(?=^ *(?:use )?rule\b|\Z)"
FILES = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "workflow" / "rules").glob("*.smk"))]
FOUND = [found for text in FILES for found in re.findall(RULE, text, flags=re.MULTILINE | re.DOTALL)]
BASES = ("", "stage", "resumable", "training")
RULES = {name: rule for old, name, rule in FOUND if old in BASES and name}
# A rule that is another one with other files runs the same module.
RULES = {name: rule if old in BASES else RULES[old] for old, name, rule in FOUND if name not in BASES[1:]}


def profile(name: str) -> dict:
    return yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text(encoding="utf-8"))


def module(rule: str) -> str:
    """The module that a rule runs, without the name of the package; empty for none."""
    found = re.search(r'-m specialized_heads\.([\w.]+)|(?:stage\(|module=)"([\w.]+)', RULES[rule])
    return (found[1] or found[2]) if found else ""


@cache
def syntax(name: str) -> ast.Module:
    path = ROOT / "src" / "specialized_heads" / Path(*name.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text(encoding="utf-8"))


def computes_on_a_device(name: str) -> bool:
    """Whether the `main` of a module comes, through functions of the package, to one that chooses a device."""
    waiting, seen = [(name, "main")], set()
    while waiting:
        name, function = waiting.pop()
        if (name, function) in seen:
            continue
        seen.add((name, function))
        if function in ("choose_device", "distributed"):
            return True
        imported = {
            alias.name: node.module.removeprefix("specialized_heads.")
            for node in syntax(name).body
            if isinstance(node, ast.ImportFrom) and node.module.startswith("specialized_heads.")
            for alias in node.names
        }
        for definition in syntax(name).body:
            if isinstance(definition, ast.FunctionDef) and definition.name == function:
                calls = [node.func for node in ast.walk(definition) if isinstance(node, ast.Call)]
                called = {call.id for call in calls if isinstance(call, ast.Name)}
                waiting += [(imported.get(other, name), other) for other in sorted(called)]
    return False


@pytest.mark.parametrize("name", ["slurm", "gpu"])
def test_exactly_the_rules_that_compute_on_a_device_have_a_gpu(name: str) -> None:
    given = {rule for rule, resources in profile(name)["set-resources"].items() if "gpu" in resources}
    assert given == {rule for rule in RULES if module(rule) and computes_on_a_device(module(rule))}


def test_the_profile_of_slurm_names_rules_that_exist() -> None:
    values = profile("slurm")
    assert set(values["set-threads"]) | set(values["set-resources"]) <= set(RULES)


def test_figures_and_tables_are_one_group() -> None:
    groups = {name: re.findall(r"group:\n +\"(\w+)\"", text) for name, text in RULES.items()}
    drawn = {name for name in RULES if module(name).startswith("report.")}
    assert {name for name, group in groups.items() if group == ["figures"]} == drawn
    assert {group for named in groups.values() for group in named} == set(profile("slurm")["group-components"])


@pytest.mark.parametrize("name", ["slurm", "gpu"])
def test_a_profile_that_replaces_the_default_one_has_its_keys(name: str) -> None:
    assert profile("default").items() <= profile(name).items()


def test_memory_and_time_grow_with_each_attempt_and_no_rule_names_a_partition() -> None:
    values = profile("slurm")
    asked = [values["default-resources"], *values["set-resources"].values()]
    for resources in asked:
        for name in resources.keys() & {"mem_mb", "runtime"}:
            assert re.fullmatch(r"\d+ \* attempt", resources[name]), resources
    assert values["retries"] > 0
    assert not re.search(r"partition|account|gpu\s*[=:]", "".join(RULES.values()))


# Rules are commands with every value quoted; ruff, which checks Python for unsafe calls, does not read rule files.

RULE_FILES = [ROOT / "workflow" / "Snakefile", *sorted((ROOT / "workflow" / "rules").glob("*.smk"))]
# Allowed without quotes: `python -m`, or the same with torch's launcher and a number of processes.
UNQUOTED = {"{params.launcher}"}


def unquoted(rules: str) -> list[str]:
    """The values that Snakemake inserts into the commands of these rules unquoted."""
    commands = re.findall(r"^ +shell:\n((?:^ +[rf]?\".*\"\n?)+)", rules, flags=re.MULTILINE)
    values = [value for command in commands for value in re.findall(r"\{[^{}]*\}", command)]
    return [value for value in values if not value.endswith(":q}") and value not in UNQUOTED]


def test_every_value_in_a_command_is_quoted() -> None:
    rule = '    shell:\n        "{params.launcher} {params.x:q}"\n        " {input} > {log:q}"\n'
    assert unquoted(f'    message:\n        "{{log}}"\n{rule}\n{rule}') == ["{input}"] * 2
    values = {path.name: unquoted(path.read_text(encoding="utf-8")) for path in RULE_FILES}
    assert not any(values.values()), values


def test_every_rule_is_a_command() -> None:
    """Code in rules (`run`, `script`) would receive values without quotes."""
    for path in RULE_FILES:
        text = path.read_text(encoding="utf-8")
        rules, commands = (
            re.findall(rf"^ *{word}", text, flags=re.MULTILINE) for word in ("rule( \\w+)?:", 'shell:\\n +"')
        )
        assert len(rules) == len(commands) + (path.name == "Snakefile"), path.name
        assert not re.search(r"^ +(run|script|notebook|wrapper):|\bshell\(", text, flags=re.MULTILINE), path.name
