"""Convert pickled weights to safetensors without executing any code in the file.

PyTorch's restricted unpickler (`weights_only`) accepts tensors and plain containers and refuses everything else.
"""

import os
from pathlib import Path

import torch
from torch import Tensor

from specialized_heads.exchange.reading import INDEX, PICKLE, PICKLE_INDEX, WEIGHTS, read, read_index
from specialized_heads.model.checkpoint import write_tensors
from specialized_heads.stage import UserError, write_json


def convert(folder: Path) -> Path:
    """Write safetensors beside pickled weights, one file or several with an index, and return their path."""
    if os.path.lexists(folder / PICKLE) or not os.path.lexists(folder / PICKLE_INDEX):
        _convert(folder / PICKLE, folder / WEIGHTS)
        return folder / WEIGHTS
    names = read_index(folder / PICKLE_INDEX)
    new = {shard: Path(shard).stem.replace("pytorch_", "") + ".safetensors" for shard in sorted(set(names.values()))}
    for shard in new:
        _convert(folder / shard, folder / new[shard])
    write_json(folder / INDEX, {"weight_map": {name: new[shard] for name, shard in names.items()}})
    return folder / INDEX


def _convert(path: Path, output: Path) -> None:
    stored = read(path, _tensors, "weights that PyTorch saved", missing="there is nothing to convert")
    first: dict[tuple, str] = {}  # of several names for the same memory, which safetensors does not allow
    for name in sorted(stored, key=lambda name: "shared" not in name):
        place = stored[name].data_ptr() or name  # empty tensors have no place in memory
        first.setdefault((place, tuple(stored[name].shape), stored[name].stride()), name)
    write_tensors(output, {name: stored[name].clone().contiguous() for name in first.values()}, format="pt")


def _tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a pickle."""
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # of many kinds; some advise to read it without the restrictions
        raise ValueError("PyTorch's restricted reader refuses it") from None
    if not isinstance(stored, dict) or not all(isinstance(name, str) and _dense(stored[name]) for name in stored):
        raise UserError(f"{path}: holds more than tensors; convert weights as `save_pretrained` writes them")
    return stored


def _dense(value: object) -> bool:
    """Whether safetensors can hold it."""
    return isinstance(value, Tensor) and value.layout == torch.strided and not value.is_quantized and not value.is_meta
