"""Read a configuration file strictly, before it is used: as plain data, and with no line ignored.

YAML accepts a key that occurs twice and keeps the last one, which hides an edit: here it is an error that names both lines.
Tags that would create Python objects are rejected.

Snakemake reads a file given with `--configfile` itself, before any code of this project runs: its error for invalid YAML has no
line number, and it runs Python code in a file with the key `__use_yte__`. So check a file from elsewhere first:

    python -m specialized_heads.experiment.file config/my.yaml

It reports the first mistake with its line, or the name of the experiment, and runs nothing in the file.
"""

import re
import sys
from pathlib import Path
from typing import Any

import yaml

from specialized_heads.experiment.configuration import load
from specialized_heads.stage import UserError, run

LARGEST = 1_000_000  # bytes; a configuration with every key and comments has about ten thousand


class _Loader(yaml.SafeLoader):
    """YAML as plain values, each key once in its mapping."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    lines: dict[Any, int] = {}
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode):
            raise UserError(f"line {key.start_mark.line + 1}: a key must be a word, not a list or a mapping")
        line = key.start_mark.line + 1
        if key.value in lines:
            raise UserError(f"line {line}: duplicate key {key.value}, first on line {lines[key.value]}; keep one")
        lines[key.value] = line
    loader.flatten_mapping(node)
    return {loader.construct_object(key): loader.construct_object(value, deep=True) for key, value in node.value}


def _whole(loader: _Loader, node: yaml.ScalarNode) -> int:
    """A whole number; not 0100, which YAML reads as 64, or 1:30, which it reads as 90."""
    if re.fullmatch(r"[-+]?0[0-9_]+|.*:.*", node.value):
        raise UserError(
            f"line {node.start_mark.line + 1}: YAML reads {node.value} as another number; write decimal digits"
        )
    return loader.construct_yaml_int(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _whole)
_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read(path: Path) -> dict[str, Any]:
    """The values of a configuration file; whatever else it holds is a `UserError` that names the line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); check the path") from None
    if len(data) > LARGEST:
        raise UserError(f"{path}: {len(data)} bytes; this is not a configuration")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UserError(f"{path}: line {line}: not UTF-8 ({error.reason}); save the file as UTF-8") from None
    try:
        values = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UserError(f"{path}: {where}not YAML ({error.problem}); {_remedy(error)}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise UserError(f"{path}: not YAML ({error}); correct it") from None
    except RecursionError:
        raise UserError(f"{path}: nested too deeply for a configuration") from None
    if not isinstance(values, dict):
        kind = "nothing" if values is None else f"a {type(values).__name__}"
        raise UserError(f"{path}: holds {kind}; it must hold keys with values, as config.yaml does")
    if "__use_yte__" in values:
        raise UserError(f"{path}: __use_yte__ makes Snakemake run Python code; write the values themselves")
    return values


def _remedy(error: yaml.MarkedYAMLError) -> str:
    if "'\\t'" in str(error.problem):
        return "indent with spaces, not with tabs"
    if "recursive" in str(error.problem):
        return "an alias must not be inside the value that it refers to"
    if isinstance(error, yaml.constructor.ConstructorError):
        return "leave the tag out; a configuration holds plain values"
    return "look at this line and the one before; quote any text that contains ': ', '#' or quotes"


def main() -> None:
    """Check the configuration files named on the command line."""
    if not sys.argv[1:]:
        raise UserError("name a file: python -m specialized_heads.experiment.file config/my.yaml")
    for name in sys.argv[1:]:
        experiment = load(read(Path(name)), origin=name)
        named = {"corpora": experiment.corpora, "tasks": experiment.tasks}
        parts = [f"{kind} {', '.join(names)}" for kind, names in named.items() if names]
        print(f"{name}: experiment {experiment.experiment}, {', '.join(parts)}")


if __name__ == "__main__":
    run(main)
