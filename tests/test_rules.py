"""Rules are commands with every value quoted; ruff, which checks Python for unsafe calls, does not read rule files."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RULES = [ROOT / "workflow" / "Snakefile", *sorted((ROOT / "workflow" / "rules").glob("*.smk"))]
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
    values = {path.name: unquoted(path.read_text(encoding="utf-8")) for path in RULES}
    assert not any(values.values()), values


def test_every_rule_is_a_command() -> None:
    """Code in rules (`run`, `script`) would receive values without quotes."""
    for path in RULES:
        text = path.read_text(encoding="utf-8")
        rules, commands = (
            re.findall(rf"^ *{word}", text, flags=re.MULTILINE) for word in ("rule( \\w+)?:", 'shell:\\n +"')
        )
        assert len(rules) == len(commands) + (path.name == "Snakefile"), path.name
        assert not re.search(r"^ +(run|script|notebook|wrapper):|\bshell\(", text, flags=re.MULTILINE), path.name
