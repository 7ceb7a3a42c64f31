"""Read a configuration file strictly, before it is used: as plain data, with no line ignored, and
with the file that it extends. Then validate it, and describe every error.

A file with `extends: ../config.yaml` holds what differs from that file, whose path is relative to
its own folder. Mappings are merged, other values replaced. If the file names corpora or tasks, the
experiment has only these; one that the other file has too starts from there. `null` removes what
the other file says, so that the default applies.

YAML accepts a key that occurs twice and keeps the last one, which hides an edit: here it is an
error that names both lines. Tags that would create Python objects are rejected.

Snakemake reads a file given with `--configfile` itself, before any code of this project runs: its
error for invalid YAML has no line number, and it runs Python code in a file with the key
`__use_yte__`. So check a file from elsewhere first:

    python -m specialized_heads.experiment.file config/my.yaml

It reports the first mistake with its line, or the name of the experiment, and runs nothing in the
file. With `--schema` in place of a file, it prints `workflow/schemas/config.schema.json`.
"""

import difflib
import json
import os
import re
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from specialized_heads.experiment.configuration import Experiment, Overrides
from specialized_heads.experiment.sources import LABELS, Source
from specialized_heads.stage import NO_MPS, Section, UserError, run

LARGEST = 1_000_000  # bytes; a configuration with every key and comments has about ten thousand


class _Loader(yaml.SafeLoader):
    """YAML as plain values, each key once in its mapping."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    lines: dict[Any, int] = {}
    for key, _ in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode):
            raise UserError(f"line {line}: a key must be a word, not a list or a mapping")
        if key.value in lines:
            said = f"duplicate key {key.value}, first on line {lines[key.value]}; keep one"
            raise UserError(f"line {line}: {said}")
        lines[key.value] = line
    loader.flatten_mapping(node)
    return {
        loader.construct_object(key): loader.construct_object(value, deep=True)
        for key, value in node.value
    }


def _whole(loader: _Loader, node: yaml.ScalarNode) -> int:
    """A whole number; not 0100, which YAML reads as 64, or 1:30, which it reads as 90."""
    if re.fullmatch(r"[-+]?0[0-9_]+|.*:.*", node.value):
        said = f"YAML reads {node.value} as another number; write decimal digits"
        raise UserError(f"line {node.start_mark.line + 1}: {said}")
    return loader.construct_yaml_int(node)


_Loader.add_constructor("tag:yaml.org,2002:int", _whole)
_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def read(path: Path) -> dict[str, Any]:
    """The values of a configuration file and of those that it extends; a `UserError` names file and
    line of what is wrong."""
    return whole(_plain(path), path)


def whole(values: dict[str, Any], path: Path) -> dict[str, Any]:
    """The values of `path`, merged into those of the files that it extends."""
    merged: dict[str, Any] = {}
    for file, more in reversed(_extended(values, path)):
        merged = _merged(merged, more, file)
    merged.pop("extends", None)
    return merged


def places(path: Path) -> dict[str, str]:
    """Where each key of a configuration is, as `line 3` of the file itself, or
    `config.yaml, line 3`: for error messages."""
    found: dict[str, str] = {}
    for file, _ in reversed(_extended(_plain(path), path)):
        where = "" if file == path else f"{file}, "
        found |= {key: f"{where}line {line}" for key, line in _keys(file)}
    return found


def _keys(file: Path) -> Iterator[tuple[str, int]]:
    """The keys of a file with their lines; none where there is no file, as for the configuration of
    a module."""
    if file.is_file():
        yield from _lines(yaml.compose(file.read_text(encoding="utf-8-sig"), _Loader), ())


def _lines(node: yaml.Node, parents: tuple[str, ...]) -> Iterator[tuple[str, int]]:
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        yield ".".join((*parents, key.value)), key.start_mark.line + 1
        yield from _lines(value, (*parents, key.value))


def _extended(values: dict[str, Any], path: Path) -> list[tuple[Path, dict[str, Any]]]:
    """A file with its values, the file that it extends, and so on."""
    chain = [(path, values)]
    while "extends" in (values := chain[-1][1]):
        file, name = chain[-1][0], values["extends"]
        if not values.get("experiment"):
            raise UserError(
                f"{file}: experiment: required key is missing; {name} has its own folder of results"
            )
        other = Path(os.path.normpath(file.parent / str(name)))
        wrong = None
        if not isinstance(name, str):
            wrong = f"{name!r} is not a file; write one path"
        elif not other.is_file():
            wrong = f"there is no file {other}; the path is relative to the folder of {file.name}"
        elif other.resolve() in [before.resolve() for before, _ in chain]:
            wrong = f"{other} extends this file; one of them must be whole"
        if wrong:
            line = next((f"line {line}: " for key, line in _keys(file) if key == "extends"), "")
            raise UserError(f"{file}: {line}extends: {wrong}")
        chain.append((other, _plain(other)))
    return chain


def _merged(
    base: dict[str, Any], values: dict[str, Any], file: Path, *place: str
) -> dict[str, Any]:
    """The values of a file over those of the file that it extends."""
    of_names = place in (("corpora",), ("classification", "tasks"))
    merged = {} if of_names else dict(base)
    for key, value in values.items():
        before = base.get(key)
        if value is None and key in base:
            if of_names:
                said = f"empty; write `{key}: {{}}` to take it over, or leave it out"
                raise UserError(f"{file}: {'.'.join((*place, key))}: {said}")
            merged.pop(key, None)
        elif (
            isinstance(value, dict)
            and isinstance(before, dict)
            and value.get("kind") in (None, before.get("kind"))
        ):
            merged[key] = _merged(before, value, file, *place, key)
        else:
            merged[key] = value
    return merged


def _plain(path: Path) -> dict[str, Any]:
    """The values of one file."""
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
        raise UserError(
            f"{path}: line {line}: not UTF-8 ({error.reason}); save the file as UTF-8"
        ) from None
    try:
        values = yaml.load(text, _Loader)  # noqa: S506 - a SafeLoader
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise UserError(f"{path}: {where}not YAML ({error.problem}); {_remedy(error)}") from None
    except (yaml.YAMLError, ValueError, LookupError, AttributeError) as error:  # for a wrong tag
        raise UserError(f"{path}: not YAML ({error}); correct it") from None
    except RecursionError:
        raise UserError(f"{path}: nested too deeply for a configuration") from None
    if not isinstance(values, dict):
        kind = "nothing" if values is None else f"a {type(values).__name__}"
        raise UserError(f"{path}: holds {kind}; it must hold keys with values, as config.yaml does")
    if "__use_yte__" in values:
        raise UserError(
            f"{path}: __use_yte__ makes Snakemake run Python code; write the values themselves"
        )
    return values


def _remedy(error: yaml.MarkedYAMLError) -> str:
    if "'\\t'" in str(error.problem):
        return "indent with spaces, not with tabs"
    if "recursive" in str(error.problem):
        return "an alias must not be inside the value that it refers to"
    if isinstance(error, yaml.constructor.ConstructorError):
        return "leave the tag out; a configuration holds plain values"
    return "look at this line and the one before; quote any text that contains ': ', '#' or quotes"


def load(
    values: dict[str, Any], *, origin: str = "config", places: Mapping[str, str] | None = None
) -> Experiment:
    """Validate the content of a file, whose name is `origin` in error messages; a `UserError` names
    every wrong key.

    `places` says where keys are, as the function of this name does.
    """
    try:
        return Experiment.model_validate(values)
    except ValidationError as error:
        problems = [_describe(problem) for problem in error.errors()]
        located = [f"{_place(problem, places or {})}{problem}" for problem in problems]
        raise UserError(f"{origin}: {'; '.join(located)}") from None


def _place(problem: str, places: Mapping[str, str]) -> str:
    """Where the key is that a problem begins with, or the nearest one around it."""
    key = problem.partition(": ")[0]
    while key and key not in places:
        key = key.rpartition(".")[0]
    return f"{places[key]}: " if key else ""


def _describe(problem: Any) -> str:
    """Describe a problem that pydantic has found, as `path.of.key: what is wrong`."""
    parts, given = [*problem["loc"]], problem["input"]
    source = 2 if parts[:1] == ["corpora"] else 3  # in classification.tasks.NAME.source
    if parts[source : source + 1] == ["source"]:
        del parts[source + 1 : source + 2]  # the kind of the source, which is no key of the file
    where = ".".join(map(str, parts))
    match "invalid_key" if parts[-1:] == ["[key]"] else problem["type"]:
        case "missing":
            said = "required key is missing"
        case "extra_forbidden":
            known = _known_keys(problem["loc"][:-1])
            said = f"unknown key; nearest known key: {_nearest(parts[-1], known)}"
        case "union_tag_invalid":
            kinds, where = _kinds(parts), f"{where}.kind"
            kind = problem["ctx"]["tag"]
            said = f"{kind!r} is none of {', '.join(kinds)}; nearest: {_nearest(kind, kinds)}"
        case "union_tag_not_found":
            where = f"{where}.kind"
            said = f"required key is missing; it is one of {', '.join(_kinds(parts))}"
        case "invalid_key":
            where = where.removesuffix(".[key]")
            said = "a key that is not text; quote it (no, yes, on and off need them too)"
        case "list_type" if given is None:
            said = "no list; write its values in brackets, or remove the key"
        case "list_type":
            said = f"not a list; write it in brackets, as in [{given}]"
        case "string_type":
            said = f"{str(given)[:50]!r} is not text; quote it"
        case "model_type" | "dict_type" if given is None:
            said = "the section is empty; give it keys or remove it"
        case "int_parsing":
            said = f"{given[:50]!r} is not a whole number; write it out, as in 100000"
        case "string_pattern_mismatch":
            said = f"{given[:50]!r} is not of the form {problem['ctx']['pattern']}"
        case _:
            said = problem["msg"].removeprefix("Value error, ")
    if where == "device" and given == "mps":
        said = NO_MPS
    return f"{where}: {said}" if where else said


def _nearest(name: str, known: Iterable[str]) -> str:
    return difflib.get_close_matches(str(name), known, n=1, cutoff=0.0)[0]


def _kinds(location: list[str]) -> list[str]:
    if location[0] == "classification":
        return list(LABELS)
    kinds = [source.model_fields["kind"] for source in typing.get_args(typing.get_args(Source)[0])]
    return [name for kind in kinds for name in typing.get_args(kind.annotation)]


def _known_keys(location: Iterable[str | int]) -> list[str]:
    """The keys that exist at a location of an error, following nested sections, dicts and
    unions."""
    kind: Any = Experiment
    for part in location:
        kind = Experiment if kind == Overrides else kind
        members = typing.get_args(kind)
        if isinstance(kind, type) and issubclass(kind, Section):
            kind = kind.model_fields[str(part)].annotation
        # `part` is the tag of a discriminated union.
        elif typing.get_origin(kind) in (typing.Union, types.UnionType):
            kind = next(
                m for m in members if part in typing.get_args(m.model_fields["kind"].annotation)
            )
        else:  # dict[str, X] or list[X]
            kind = members[-1]
        if types.NoneType in (members := typing.get_args(kind)):  # an optional section
            kind = members[0]
    return list(kind.model_fields)


def schema_text() -> str:
    """The JSON schema of a configuration file.

    A file that extends another one may leave out all but its name, and set sections to null.
    """
    dialect = "https://json-schema.org/draft/2020-12/schema"
    schema = {"$schema": dialect, **Experiment.model_json_schema()}
    extends = "file that this one starts from, relative to its own folder; this one has what "
    extends += "differs"
    whole = {}
    for place, kind in (("corpora", "Corpus"), ("tasks", "Task")):
        definition = schema["$defs"][kind]
        whole[place] = {"additionalProperties": {"required": definition.pop("required")}}
        _nullable(definition)
    tasks = {
        "required": schema["$defs"]["Classification"].pop("required"),
        "properties": {"tasks": whole["tasks"]},
    }
    _nullable(schema)
    own = {"extends": {"type": "string", "description": extends}}
    schema["properties"] = own | schema["properties"]
    schema["if"] = {"not": {"required": ["extends"]}}
    schema["then"] = {"properties": {"corpora": whole["corpora"], "classification": tasks}}
    text = json.dumps(schema, indent=2, ensure_ascii=False)
    return text.replace("\\n", " ") + "\n"  # of docstrings


def _nullable(definition: dict[str, Any]) -> None:
    """Let the sections of a definition be null."""
    for key, value in definition["properties"].items():
        if "$ref" in value or value.get("type") == "object":
            definition["properties"][key] = {"anyOf": [value, {"type": "null"}]}


def main() -> None:
    if not sys.argv[1:]:
        raise UserError("name a file: python -m specialized_heads.experiment.file config/my.yaml")
    if sys.argv[1] == "--schema":
        sys.stdout.write(schema_text())
        return
    for name in sys.argv[1:]:
        path = Path(name)
        experiment = load(read(path), origin=name, places=places(path))
        named = {"corpora": experiment.corpora, "tasks": experiment.tasks}
        parts = [f"{kind} {', '.join(names)}" for kind, names in named.items() if names]
        print(f"{name}: experiment {experiment.experiment}, {', '.join(parts)}")


if __name__ == "__main__":
    run(main)
