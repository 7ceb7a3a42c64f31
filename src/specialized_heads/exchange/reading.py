"""Read the files of a model folder that others made; whatever is not of the expected kind is one clear line.

The sizes that a configuration states are compared with the headers of the weight files before memory is allocated for them.
"""

import json
import os
import re
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import torch
from google.protobuf.message import DecodeError
from pydantic import Field, ValidationError
from safetensors import SafetensorError, safe_open
from torch import Tensor

from specialized_heads.model.checkpoint import read_tensors
from specialized_heads.stage import Section, UserError, first_line

CONFIG = "config.json"
WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
PICKLE, PICKLE_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
POINTER = b"version https://git-lfs"
FLOATS = ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2")  # types of tensors that are weights as they are

Count = Annotated[int, Field(ge=1, le=1000)]  # of layers, and of heads
Size = Annotated[int, Field(ge=1, le=10**7)]
Width = Annotated[int, Field(ge=2, le=10**7)]
Vocabulary = Annotated[int, Field(ge=4, le=10**7)]


def read(path: Path, parse: Callable[[Path], Any], kind: str, *, missing: str = "fetch it from the same place") -> Any:
    """What `parse` makes of a file; whatever goes wrong is a `UserError`, and `missing` says what to do without the file."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UserError(f"{path}: not a file; replace it by {kind}")
        with open(path, "rb") as stream:
            if stream.read(len(POINTER)) == POINTER:
                raise UserError(f"{path}: only a pointer of Git LFS; run `git lfs pull` in its folder")
        return parse(path)
    except PermissionError:
        raise
    except FileNotFoundError:
        link = "a link to a file that does not exist; fetch the model again"
        raise UserError(f"{path}: {link if path.is_symlink() else f'no such file; {missing}'}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}); fetch it again") from None
    except (ValueError, RuntimeError, DecodeError, SafetensorError) as error:
        raise UserError(f"{path}: not {kind} ({error}); fetch it again") from None
    except (TypeError, LookupError, AttributeError, ArithmeticError):
        raise UserError(f"{path}: not {kind}; fetch it again") from None


def read_json(path: Path, parse: Callable[[dict], Any], kind: str, *, default: Any = None, **remedy: str) -> Any:
    """What `parse` makes of the object in a JSON file; `default`, if there is one, without the file."""

    def parsed(path: Path) -> Any:
        stored = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(stored, dict):
            raise TypeError
        return parse(stored)

    return default if default is not None and not os.path.lexists(path) else read(path, parsed, kind, **remedy)


def validated(values: Mapping[str, Any], section: type[Section], *, path: Path) -> Any:
    """The part of a configuration that this project needs; a `UserError` if a value is missing, wrong or not supported."""
    try:
        return section.model_validate(values)
    except ValidationError as error:
        problem = error.errors()[0]
        said = f"{first_line(error)}; correct the file, or fetch it again"
        if problem["type"] == "literal_error":
            said = f"{problem['loc'][0]} {problem['input']!r} is not supported, only {problem['ctx']['expected']}"
        raise UserError(f"{path}: {said}") from None


def translated(name: str, *, patterns: Sequence[tuple[str, str]]) -> str:
    """The name that another project gives to a parameter, such as `encoder.0.attention.query_bias`."""
    for pattern, theirs in patterns:
        name = re.sub(pattern, theirs, name)
    return name


class Stored(NamedTuple):
    """A tensor as the header of its file describes it."""

    file: Path
    dtype: str
    shape: tuple[int, ...]


def read_headers(folder: Path) -> dict[str, Stored]:
    """The tensors of a model by name, in one file or several. As in transformers, one file precedes an index."""
    files = {folder / WEIGHTS}
    if not os.path.lexists(folder / WEIGHTS):
        if os.path.lexists(folder / INDEX):
            files = {folder / name for name in read_index(folder / INDEX).values()}
        elif pickle := next((name for name in (PICKLE, PICKLE_INDEX) if os.path.lexists(folder / name)), None):
            remedy = f"convert them with `specialized-heads convert {folder}` and run again"
            raise UserError(f"{folder / pickle}: pickled weights are not loaded, since that can execute code; {remedy}")
    stored: dict[str, Stored] = {}
    for file in sorted(files):
        stored |= read(file, _header, "complete weights as safetensors")
    return stored


def _header(path: Path) -> dict[str, Stored]:
    with safe_open(path, framework="pt") as file:
        parts = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        return {name: Stored(path, part.get_dtype(), tuple(part.get_shape())) for name, part in parts.items()}


def read_index(path: Path) -> dict[str, str]:
    """The file of each tensor, of weights in several files."""
    files = read_json(path, lambda stored: dict(stored["weight_map"].items()), "an index with a weight_map")
    if any(Path(str(shard)).name != shard for shard in files.values()):
        raise UserError(f"{path}: names a file outside its folder; fetch the model again")
    return files


def refuse_more(folder: Path, stored: Mapping[str, Stored], prefix: str, *, layers: int) -> None:
    """Raise a `UserError` if the weights have more layers, of names that begin with the prefix, than the configuration says."""
    if more := [name for name in stored if name.startswith(f"{prefix}{layers}.")]:
        said = f"its weights have a tensor {min(more)}, but the number of layers is {layers} by {CONFIG}"
        raise UserError(f"{folder}: {said}; fetch both from the same place")


def find(folder: Path, stored: Mapping[str, Stored], names: Sequence[str], shape: Sequence[int]) -> list[str]:
    """Those of the names that are stored; a `UserError` if none is, or one has another shape or is quantised."""
    if not (held := [name for name in names if name in stored]):
        raise UserError(f"{folder}: its weights have no tensor {names[0]}; fetch them and {CONFIG} from the same place")
    for name in held:
        file, dtype, found = stored[name]
        if dtype not in FLOATS:
            raise UserError(f"{file}: {name} is quantised ({dtype}); use a model with weights in floating point")
        if found != tuple(shape):
            said = f"{name} has the shape {list(found)}, but {list(shape)} by {CONFIG}"
            raise UserError(f"{file}: {said}; fetch both from the same place")
    return held


def read_weights(stored: Mapping[str, Stored], names: Collection[str]) -> dict[str, Tensor]:
    """The tensors of these names, in float32; a `UserError` if one contains NaN or infinity."""
    tensors: dict[str, Tensor] = {}
    for file in sorted({stored[name].file for name in names}):
        content = read(file, lambda path: read_tensors(path, remedy="fetch it again"), "weights as safetensors")
        tensors |= {name: content[name].float() for name in names if stored[name].file == file}
    if broken := [name for name in names if not torch.isfinite(tensors[name]).all()]:
        file = stored[broken[0]].file
        raise UserError(f"{file}: {broken[0]} contains NaN or infinity; fetch it again, or use another model")
    return tensors
