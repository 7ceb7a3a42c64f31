"""Models on disk: the weights as safetensors, everything else as JSON beside them.

The JSON file holds the architecture (with the original numbers of the heads left), the
training settings, the seed and the hash of the data. Nothing is pickled. The weight file holds a
hash of the weights, so a damaged file is an error instead of a different model.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from specialized_heads import __version__
from specialized_heads.model.architecture import Architecture
from specialized_heads.model.bert import Bert, BertArchitecture
from specialized_heads.model.devices import choose_device, matmul_precision
from specialized_heads.model.functional import prepare_cpu
from specialized_heads.model.transformer import Network, Transformer
from specialized_heads.stage import UserError, atomic, first_line, read_json, write_json

# The name in the model, and that in weight files of all versions.
OUTPUT_EMBEDDING = ("output_embedding", "softmax_embedding")


def save(model: Network, weights: Path, *, training: dict[str, Any]) -> None:
    """Write the weights of a model without gates, and the JSON file beside them, which says how it
    was trained."""
    tensors = weights_of(model)
    write_tensors(weights, tensors)
    description = {
        "version": __version__,
        "parameters": sum(tensor.numel() for tensor in tensors.values()),
        "architecture": asdict(model.architecture),
        "training": training,
    }
    write_json(weights.with_suffix(".json"), description)


def load(weights: Path, *, dropout: float = 0.0, device: str | torch.device = "cpu") -> Any:
    """Read a model, a `Transformer` or a `Bert`; a `UserError` if a file is missing or damaged, or
    they do not match."""
    described = {"weights": weights, "like": weights, "dropout": dropout}
    model = assemble(architecture_of(weights), read_tensors(weights), **described)
    return model.to(device).eval()


def load_on(weights: Path, device: str, precision: str = "fp32") -> Any:
    """Read a model to compute with it on `auto`, `cpu` or `cuda`, as `load` does; prepares the
    processor first.

    With `precision` bf16, matrix products run in it where the device has instructions for them.
    """
    prepare_cpu()
    model = load(weights, device=choose_device(device))
    narrow = matmul_precision(precision, model.device) == "bf16"
    return model.in_precision(torch.bfloat16) if narrow else model


def assemble(
    architecture: Architecture | BertArchitecture,
    tensors: Mapping[str, Tensor],
    *,
    weights: Path,
    like: Path,
    dropout: float = 0.0,
) -> Any:
    """Build a model from its weights, on the CPU; shapes are compared before memory is allocated.

    A `UserError` names the files `weights` or `like`, of the architecture, if they do not match or
    a weight is NaN or infinite.
    """
    try:
        expected = shapes(architecture)
    except (RuntimeError, IndexError):  # sizes beyond 64 bits; types with other numbers of layers
        expected = None
    if len(architecture.cross) > len(architecture.decoder) or expected != {
        n: tensor.shape for n, tensor in tensors.items()
    }:
        description = like.with_suffix(".json").name
        raise UserError(
            f"{weights}: the weights do not fit {description}; delete both and run again"
        )
    if broken := [n for n, tensor in tensors.items() if not torch.isfinite(tensor).all()]:
        raise UserError(
            f"{weights}: {broken[0]} contains NaN or infinity; train with a lower rate, "
            "or delete both and run again"
        )
    model = network(architecture, dropout=dropout)
    set_weights(model, tensors)
    return model


def network(architecture: Architecture | BertArchitecture, *, dropout: float = 0.0) -> Any:
    kind = Bert if isinstance(architecture, BertArchitecture) else Transformer
    return kind(architecture, dropout=dropout)


def shapes(architecture: Architecture | BertArchitecture) -> dict[str, torch.Size]:
    """The shape of each parameter, without memory for any."""
    with torch.device("meta"):
        return {name: weight.shape for name, weight in network(architecture).named_parameters()}


def weights_of(model: Network) -> dict[str, Tensor]:
    """The state of a model by name, on the CPU; a shared matrix once, under its first name."""
    first: dict[int, str] = {}
    state = model.state_dict(keep_vars=True)
    for name, tensor in state.items():
        first.setdefault(id(tensor), name)
    return {name: state[name].detach().cpu().contiguous() for name in first.values()}


@torch.no_grad()
def set_weights(model: Network, tensors: Mapping[str, Tensor]) -> None:
    """Copy what `weights_of` returns into a model of the same architecture."""
    for name, tensor in model.state_dict().items():
        if name in tensors:  # a shared matrix has more names
            tensor.copy_(tensors[name])


def write_tensors(path: Path, tensors: Mapping[str, Tensor], **metadata: str) -> None:
    """Write tensors, their hash and `metadata` as safetensors, atomically; see `OUTPUT_EMBEDDING`
    for the one renamed tensor."""
    stored = {name.replace(*OUTPUT_EMBEDDING): tensor for name, tensor in tensors.items()}
    with atomic(path) as temporary:
        save_file(stored, temporary, metadata={"sha256": tensors_hash(stored)} | metadata)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read what `write_tensors` has written; files without a hash are not verified. A damaged file
    is a `UserError`."""
    try:
        with safe_open(path, framework="pt") as stored:
            expected = (stored.metadata() or {}).get("sha256")
            tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (not a dictionary)
    except PermissionError:
        raise
    except (OSError, SafetensorError) as error:
        raise UserError(
            f"{path}: cannot read the weights ({error}); delete the file and run again"
        ) from None
    if expected not in (None, tensors_hash(tensors)):
        raise UserError(
            f"{path}: the weights are damaged (wrong hash); delete the file and run again"
        )
    return {name.replace(*OUTPUT_EMBEDDING[::-1]): tensor for name, tensor in tensors.items()}


def tensors_hash(tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of names, types, shapes and values, in hexadecimal."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def architecture_of(weights: Path) -> Any:
    """The architecture in the JSON beside the weights; a `UserError` if there is no such file, or
    it describes no model."""
    path = weights.with_suffix(".json")
    description = read_json(path)
    try:
        return _architecture(description["architecture"])
    except (KeyError, TypeError, ValueError) as error:
        invalid = isinstance(error, ValidationError)
        problem = f"architecture.{first_line(error)}" if invalid else error
        said = f"not the description of a model ({problem}); delete it and run again"
        raise UserError(f"{path}: {said}") from None


def _architecture(stored: dict[str, Any]) -> Architecture | BertArchitecture:
    """Inverse of `dataclasses.asdict`; a `ValueError` for anything else."""
    if "labels" in stored:
        return TypeAdapter(BertArchitecture).validate_python(stored)
    a = TypeAdapter(Architecture).validate_python(stored)
    t = a.tokens
    source, target = (max(t.pad, t.unknown, t.eos, *t.tags(side)) for side in ("source", "target"))
    if source >= a.source_vocabulary or max(target, t.start) >= a.target_vocabulary:
        raise ValueError("the special tokens are not all in the vocabularies")
    return a
