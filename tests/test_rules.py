"""Rules that compute on a device ask for a GPU, those that draw are one group, profiles agree, and
commands are quoted."""

import re
from importlib import import_module
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
RULE = r"^ *(?:use rule (\w+) as |rule ?)(\w*)(?: with)?:\n(.*?)(?=^ *(?:use )?rule\b|\Z)"
FILES = [
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "workflow" / "rules").glob("*.smk"))
]
FOUND = [
    found for text in FILES for found in re.findall(RULE, text, flags=re.MULTILINE | re.DOTALL)
]
BASES = ("", "stage", "computing", "resumable", "training")
RULES = {name: rule for old, name, rule in FOUND if old in BASES and name}
# A rule that is another one with other files runs the same module.
RULES = {
    name: rule if old in BASES else RULES[old] for old, name, rule in FOUND if name not in BASES[1:]
}
TEXTS = {name: (old, text) for old, name, text in FOUND}


def profile(name: str) -> dict:
    return yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text(encoding="utf-8"))


def module(rule: str) -> str:
    """The module that a rule runs, without the name of the package, and its function unless `main`;
    empty for none."""
    pattern = r'-m specialized_heads\.([\w. ]+)|(?:stage\(\s*|module=)"([\w. ]+)'
    found = re.search(pattern, RULES[rule])
    return (found[1] or found[2]).strip() if found else ""


def computes_on_a_device(name: str) -> bool:
    """Whether the settings of a stage have a device."""
    module, function = [*name.split(), "main"][:2]
    stage = getattr(import_module(f"specialized_heads.{module}"), function)
    return "device" in getattr(getattr(stage, "settings", None), "model_fields", ())


def asks_for_a_gpu(rule: str) -> bool:
    """Whether the resources of a rule, or else of the rule that it is made from, have a GPU."""
    old, text = TEXTS[rule]
    asked = re.search(r"resources:\n +\*\*needs\((\w*)", text)
    return asked[1] == "GPU" if asked else bool(old) and asks_for_a_gpu(old)


def test_exactly_the_rules_that_compute_on_a_device_ask_for_a_gpu() -> None:
    asking = {rule for rule in RULES if asks_for_a_gpu(rule)}
    assert asking == {rule for rule in RULES if module(rule) and computes_on_a_device(module(rule))}


def test_the_profile_of_slurm_gives_cores_to_every_training() -> None:
    made_from = {name: old for old, name, _ in FOUND}

    def trains(rule: str) -> bool:
        old = made_from.get(rule)
        return old == "training" or bool(old) and trains(old)

    assert set(profile("slurm")["set-threads"]) == {"parse", *filter(trains, RULES)}


def test_figures_and_tables_are_one_group() -> None:
    groups = {name: re.findall(r"group:\n +\"(\w+)\"", text) for name, text in RULES.items()}
    drawn = {name for name in RULES if module(name).startswith("report.")}
    assert {name for name, group in groups.items() if group == ["figures"]} == drawn
    assert {group for named in groups.values() for group in named} == set(
        profile("slurm")["group-components"]
    )


@pytest.mark.parametrize("name", ["slurm", "gpu"])
def test_a_profile_that_replaces_the_default_one_has_its_keys(name: str) -> None:
    assert profile("default").items() <= profile(name).items()


def test_every_environment_that_a_rule_names_exists() -> None:
    named = re.findall(r'"\.\./\.\./envs/([\w.]+)"', "\n".join(FILES))
    assert set(named) == {"parsing.yaml", "pipeline.yaml"}


def test_a_rule_that_changes_the_inputs_of_another_has_them_all() -> None:
    texts = {name: text for _, name, text in FOUND}
    for old, name, text in FOUND:
        if old and "    input:" in text:
            inputs, before = (
                set(
                    re.findall(
                        r"^        (\w+)=", re.split("output:|params:", each)[0], flags=re.MULTILINE
                    )
                )
                for each in (text, texts[old])
            )
            assert before <= inputs, name


def test_every_value_in_a_command_is_quoted() -> None:
    """Ruff, which checks Python for unsafe calls, does not read rule files."""
    text = "\n".join([(ROOT / "workflow" / "Snakefile").read_text(encoding="utf-8"), *FILES])
    commands = re.findall(r"^ +shell:\n((?:^ +[rf]?\".*\"\n?)+)", text, flags=re.MULTILINE)
    values = {value for command in commands for value in re.findall(r"\{[^{}]*\}", command)}
    # `python -m`, or the same with torch's launcher and a number of processes.
    assert {value for value in values if not value.endswith(":q}")} == {"{params.launcher}"}
    # Code in rules (`run`, `script`) would receive values without quotes.
    assert not re.search(r"^ +(run|script|notebook|wrapper):|\bshell\(", text, flags=re.MULTILINE)
