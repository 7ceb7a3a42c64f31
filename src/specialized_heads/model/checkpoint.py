"""Models on disk: weights as safetensors, everything else as the JSON beside them.

A model is two files, `model.safetensors` and `model.json`. The JSON holds the architecture (with the original numbers of
the heads that are left), the settings and seed it was trained with, and the hash of its data. No pickle is involved.
The file of weights holds a hash of them, so that a damaged one is an error, not another model.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import Field, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from specialized_heads import __version__
from specialized_heads.model.transformer import Architecture, Transformer
from specialized_heads.stage import Section, UserError, atomic, first_line, read_json, write_json

Layers = Annotated[list[list[Annotated[int, Field(ge=0)]]], Field(max_length=1000)]


class Sizes(Section):
    """`model.transformer.Architecture`, as it is read from a file that may hold anything."""

    source_vocabulary: int = Field(ge=4)
    target_vocabulary: int = Field(ge=4)
    width: int = Field(ge=2)
    feed_forward: int = Field(ge=1)
    head_width: int = Field(ge=1)
    encoder: Layers
    decoder: Layers
    cross: Layers


def save(model: Transformer, weights: Path, *, training: dict[str, Any]) -> None:
    """Write the weights and, beside them, the JSON.

    Args:
        model: without gates.
        weights: path that ends in `.safetensors`.
        training: what the model was trained with; stored as it is.
    """
    tensors = {name: parameter.detach().cpu().contiguous() for name, parameter in model.named_parameters()}
    write_tensors(weights, tensors)
    description = {
        "version": __version__,
        "parameters": sum(tensor.numel() for tensor in tensors.values()),
        "architecture": asdict(model.architecture),
        "training": training,
    }
    write_json(weights.with_suffix(".json"), description)


def load(weights: Path, *, dropout: float = 0.0, device: str | torch.device = "cpu") -> Transformer:
    """Read a model.

    Raises:
        UserError: a file is missing or damaged, or weights and JSON do not belong together.
    """
    architecture = architecture_of(weights)
    model = assemble(architecture, read_tensors(weights), weights=weights, like=weights, dropout=dropout)
    return model.to(device).eval()


def assemble(
    architecture: Architecture, tensors: Mapping[str, Tensor], *, weights: Path, like: Path, dropout: float = 0.0
) -> Transformer:
    """A model of these weights, on the CPU; shapes are compared before it takes memory.

    Args:
        architecture: of the model.
        tensors: by the name of the parameter.
        weights, like: the files that they and the architecture are from, for messages.

    Raises:
        UserError: they are other weights, or some are no numbers.
    """
    try:
        with torch.device("meta"):
            shapes = {n: p.shape for n, p in Transformer(architecture, dropout=0.0).named_parameters()}
    except (RuntimeError, IndexError):  # sizes whose product is beyond 64 bits, or layers of one kind that others lack
        shapes = None
    if shapes != {n: tensor.shape for n, tensor in tensors.items()}:
        raise UserError(
            f"{weights}: the weights do not fit {like.with_suffix('.json').name}; delete both and run again"
        )
    if wrong := [n for n, tensor in tensors.items() if not torch.isfinite(tensor).all()]:
        raise UserError(
            f"{weights}: {wrong[0]} is not all finite numbers; delete the model, and train with a lower learning rate"
        )
    model = Transformer(architecture, dropout=dropout)
    model.load_state_dict(tensors)
    return model


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write tensors as safetensors, atomically, with their hash."""
    with atomic(path) as temporary:
        save_file(dict(tensors), temporary, metadata={"sha256": tensors_hash(tensors)})


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read what `write_tensors` has written; a file of others, without a hash, is believed.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        with safe_open(path, framework="pt") as stored:
            expected = (stored.metadata() or {}).get("sha256")
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (it is no dictionary)
    except PermissionError:
        raise
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: cannot read the weights ({error}); delete the file and run again") from None
    if expected not in (None, tensors_hash(tensors)):
        raise UserError(f"{path}: the weights are damaged (their hash is another one); delete the file and run again")
    return tensors


def tensors_hash(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and values, in hexadecimal."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def architecture_of(weights: Path) -> Architecture:
    """The architecture in the JSON beside the weights.

    Raises:
        UserError: there is no such file, or it describes no model.
    """
    path = weights.with_suffix(".json")
    try:
        sizes = Sizes.model_validate(read_json(path)["architecture"])
    except (KeyError, TypeError) as error:
        raise UserError(f"{path}: not the description of a model ({error}); delete it and run again") from None
    except ValidationError as error:
        raise UserError(
            f"{path}: not the description of a model (architecture.{first_line(error)}); delete it and run again"
        ) from None
    return Architecture.from_json(sizes.model_dump())
