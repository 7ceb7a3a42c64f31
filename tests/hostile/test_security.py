"""Data is never executed: no code of the project unpickles, evaluates, or passes anything to a shell unquoted."""

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from hostile import PAYLOAD, Payload

from specialized_heads.config import file as config_file

ROOT = Path(__file__).parents[2]
CODE = [path for part in ("src", "resources", "benchmarks") for path in sorted((ROOT / part).rglob("*.py"))]
RULES = [ROOT / "workflow" / "Snakefile", *sorted((ROOT / "workflow" / "rules").glob("*.smk"))]
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "jsonpickle", "joblib"}
FUNCTIONS = {
    "eval",
    "exec",
    "__import__",
    "os.system",
    "os.popen",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
}
FUNCTIONS |= {"yaml.unsafe_load", "yaml.full_load", "yaml.load_all", "pd.read_pickle", "pandas.read_pickle"}
# Allowed without quotes: `python -m`, or the same with torch's launcher and a number of processes.
UNQUOTED = {"{params.launcher}"}


def dangers(code: str) -> Iterator[str]:
    """Constructs in this code that could execute data, with their lines."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            yield from (f"{node.lineno}: import {name}" for name in names if name.split(".")[0] in MODULES)
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        if (
            called in FUNCTIONS
            or given.get("shell", "False") != "False"
            or given.get("allow_pickle", "False") != "False"
            or (called == "torch.load" and given.get("weights_only") != "True")
            or (called == "yaml.load" and [ast.unparse(argument) for argument in node.args[1:]] != ["_Loader"])
            or (
                called.split(".")[-1] in ("extract", "extractall") and given.get("filter") != "'data'" and "tar" in code
            )
        ):
            yield f"{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from joblib import load",
        "eval(text)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "yaml.load(text, yaml.Loader)",
        "subprocess.run(command, shell=True)",
        "np.load(path, allow_pickle=True)",
        "import tarfile\narchive.extractall(folder)",
    ],
)
def test_dangerous_code_is_found(code: str) -> None:
    assert len(list(dangers(code))) == 1


def test_an_executed_payload_would_be_seen(folder: Path) -> None:
    content = pickle.dumps(Payload())
    assert list(folder.iterdir()) == []
    pickle.loads(content)
    assert [path.name for path in folder.iterdir()] == [PAYLOAD]


def test_no_source_file_executes_data() -> None:
    assert len(CODE) > 50
    lines = {str(path.relative_to(ROOT)): list(dangers(path.read_text(encoding="utf-8"))) for path in CODE}
    assert not any(lines.values()), lines


def test_configurations_are_read_by_a_safe_loader() -> None:
    assert issubclass(config_file._Loader, yaml.SafeLoader)
    assert set(config_file._Loader.yaml_constructors) == set(yaml.SafeLoader.yaml_constructors)


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
