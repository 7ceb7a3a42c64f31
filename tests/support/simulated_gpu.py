"""A GPU made of CPU memory: tensors on `sim:0` say `is_cuda`, compute on the CPU, and may not be
mixed with the CPU's.

What would fail on a GPU for a tensor on the wrong device fails here too, and `waits` counts how
often the host waits for the device, as for `.item()`. Import it before the project, in a process of
its own: it changes the state of torch for good.
"""

import numpy as np
import torch
import torch.nn.functional as F

torch.inference_mode = torch.no_grad  # wrappers cannot be detached in inference mode
torch.Tensor.pin_memory = lambda self: self
torch.__future__.set_overwrite_module_params_on_conversion(True)

from torch.utils._python_dispatch import return_and_correct_aliasing  # noqa: E402
from torch.utils._pytree import tree_leaves, tree_map  # noqa: E402
from torch.utils.backend_registration import (  # noqa: E402
    _DummyBackendModule,
    _setup_privateuseone_for_python_backend,
)

aten = torch.ops.aten
CROSSES = {  # operations that take tensors of both devices
    aten.copy_.default,
    aten._to_copy.default,
    aten.index.Tensor,
    aten.index_put_.default,
    aten._index_put_impl_.default,
}
WAITS = {aten._local_scalar_dense.default, aten.nonzero.default, aten.equal.default}
waits: list[str] = []


class Simulated(torch.Tensor):
    """A tensor on the simulated GPU; `held` has its values."""

    is_cuda = property(lambda self: True)

    def __new__(cls, held: torch.Tensor) -> "Simulated":
        shape = {
            "strides": held.stride(),
            "storage_offset": held.storage_offset(),
            "dtype": held.dtype,
        }
        new = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, device=torch.device("sim", 0), **shape
        )
        new.held = held
        return new

    def __init__(self, held: torch.Tensor) -> None:
        pass

    def tolist(self) -> list:
        waits.append("tolist")
        return self.held.tolist()

    def __reduce_ex__(self, protocol: int) -> object:  # a state is saved by value
        return self.held.detach().__reduce_ex__(protocol)

    def __deepcopy__(self, memo: dict) -> "Simulated":
        if id(self) not in memo:
            new = memo[id(self)] = Simulated(self.held.detach().clone()).requires_grad_(
                self.requires_grad
            )
            new.__dict__.update(
                {name: value for name, value in self.__dict__.items() if name == "_is_param"}
            )
        return memo[id(self)]

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None) -> object:
        with torch._C.DisableTorchFunctionSubclass():
            if function is F.scaled_dot_product_attention:
                return _attention(*args, **(kwargs or {}))
            if function in (torch.Tensor.__getitem__, torch.Tensor.__setitem__):
                args = (args[0], _on_gpu(args[1]), *args[2:])
            return function(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, operation, types, args=(), kwargs=None) -> object:
        return _run(operation, *args, **(kwargs or {}))


def _on_gpu(index: object) -> object:
    """Indices in lists become tensors on the device, as torch makes them."""
    if isinstance(index, tuple):
        return tuple(map(_on_gpu, index))
    return Simulated(_tensor(index)) if isinstance(index, list) else index


def _attention(query, key, value, attn_mask=None, dropout_p=0.0) -> torch.Tensor:
    """What the fused kernels ask for, and what they compute."""
    assert query.dtype == key.dtype == value.dtype
    assert attn_mask is None or (attn_mask.is_cuda and attn_mask.dtype == query.dtype)
    return aten._scaled_dot_product_attention_math(query, key, value, attn_mask, dropout_p)[0]


def _run(operation, *args, **kwargs) -> object:
    """One operation, on the values."""
    tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    ours = any(isinstance(tensor, Simulated) for tensor in tensors)
    mixed = any(tensor.dim() and not isinstance(tensor, Simulated) for tensor in tensors)
    if ours and mixed and operation not in CROSSES:
        raise RuntimeError(f"Expected all tensors to be on the same device: {operation}")
    device = kwargs.get("device")
    here = ours if device is None else device.type == "sim"
    if operation in WAITS:
        waits.append(str(operation))
    if device is not None:
        kwargs["device"] = torch.device("cpu")
    found = operation(*tree_map(held, args), **tree_map(held, kwargs))
    found = tree_map(lambda x: Simulated(x) if here and type(x) is torch.Tensor else x, found)
    if ours and here and operation is not aten._to_copy.default:
        return return_and_correct_aliasing(operation, args, kwargs, found)
    return found


def held(x: object) -> object:
    """The values of a tensor on the simulated GPU; anything else as it is."""
    return x.held if isinstance(x, Simulated) else x


_tensor = torch.tensor


def _new(data: object, device: object = None, **options: object) -> torch.Tensor:
    return (
        Simulated(_tensor(data, **options))
        if str(device).startswith("sim")
        else _tensor(data, device=device, **options)
    )


torch.tensor = _new
_setup_privateuseone_for_python_backend("sim", _DummyBackendModule())
_library = torch.library.Library("_", "IMPL")
_library.fallback(_run, "PrivateUse1")
GPU = torch.device("sim", 0)


def values(model: torch.nn.Module) -> list[np.ndarray]:
    """The parameters of a model, in float32, but for the biases of keys.

    Their gradient is zero, since softmax ignores what all keys share; Adam makes steps of its
    rounding.
    """
    named = model.named_parameters()
    return [
        held(parameter).detach().float().numpy()
        for name, parameter in named
        if not name.endswith("key_bias")
    ]
