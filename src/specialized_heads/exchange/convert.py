"""Convert pickled weights to safetensors without executing any code in the file.

PyTorch's restricted unpickler (`weights_only`) accepts tensors and plain containers and refuses everything else.
"""

from pathlib import Path

import torch
from torch import Tensor

from specialized_heads.exchange.huggingface import PICKLE, WEIGHTS
from specialized_heads.model.checkpoint import write_tensors
from specialized_heads.stage import UserError


def convert(folder: Path) -> Path:
    """Write `model.safetensors` beside `pytorch_model.bin`.

    Raises:
        UserError: there is no such file, it is damaged, or it holds something other than tensors.
    """
    path = folder / PICKLE
    if not path.is_file():
        raise UserError(f"{path}: no such file; there is nothing to convert")
    try:
        stored = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # of many kinds, all of which mean that the file is something else
        raise UserError(
            f"{path}: not the weights of a model ({(str(error) or 'empty').splitlines()[0]}); fetch it again"
        ) from None
    if not isinstance(stored, dict) or not all(isinstance(tensor, Tensor) for tensor in stored.values()):
        raise UserError(
            f"{path}: holds more than tensors; only weights as `save_pretrained` writes them can be converted"
        )
    first: dict[tuple, str] = {}  # of several names for the same memory, which safetensors does not allow
    for name in sorted(stored, key=lambda name: "shared" not in name):
        first.setdefault((stored[name].data_ptr(), tuple(stored[name].shape), stored[name].stride()), name)
    write_tensors(folder / WEIGHTS, {name: stored[name].clone().contiguous() for name in first.values()}, format="pt")
    return folder / WEIGHTS
