"""Models on disk: weights as safetensors, everything else as the JSON beside them.

A model is two files, `model.safetensors` and `model.json`. The JSON holds the architecture (with the original numbers of
the heads that are left), the settings and seed it was trained with, and the hash of its data. No pickle is involved.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from specialized_heads import __version__
from specialized_heads.model.transformer import Architecture, Transformer
from specialized_heads.stage import UserError, atomic, read_json, write_json


def save(model: Transformer, weights: Path, *, training: dict[str, Any]) -> None:
    """Write the weights and, beside them, the JSON.

    Args:
        model: without gates.
        weights: path that ends in `.safetensors`.
        training: what the model was trained with; stored as it is.
    """
    tensors = {name: parameter.detach().cpu().contiguous() for name, parameter in model.named_parameters()}
    with atomic(weights) as temporary:
        save_file(tensors, temporary)
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
    model = Transformer(architecture, dropout=dropout)
    try:
        tensors = load_file(weights)
    except (OSError, SafetensorError) as error:
        raise UserError(f"{weights}: cannot read the weights ({error}); delete the file and run again") from None
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    if shapes != {name: tensor.shape for name, tensor in tensors.items()}:
        raise UserError(
            f"{weights}: the weights do not fit {weights.with_suffix('.json').name}; delete both and run again"
        )
    model.load_state_dict(tensors)
    return model.to(device).eval()


def architecture_of(weights: Path) -> Architecture:
    """The architecture in the JSON beside the weights."""
    path = weights.with_suffix(".json")
    try:
        return Architecture.from_json(read_json(path)["architecture"])
    except (KeyError, TypeError) as error:
        raise UserError(f"{path}: not the description of a model ({error})") from None
