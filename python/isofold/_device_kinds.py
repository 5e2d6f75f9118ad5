"""The libraries whose device arrays isofold takes, each with its own means: torch, CuPy, JAX, and whatever
follows the Python array API standard.

Everything between a user's array and the native module's flat one, and back, is done by the library that the
array comes from, on the stream where that library works at the time of the call:

- torch and CuPy: their current stream of the array's device;
- JAX and the others, which tell no stream: the legacy default stream. Their ``__dlpack__`` makes it wait for
  the inputs, and our ``__dlpack__`` makes their stream wait for the result.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isofold import _native

LEGACY_STREAM = 1  # as DLPack numbers it


class Torch:
    name = "torch.Tensor"

    def __init__(self) -> None:
        self._torch: Any = sys.modules["torch"]

    def owns(self, array: object) -> bool:
        return isinstance(array, self._torch.Tensor)

    def on(self, device: int) -> contextlib.AbstractContextManager[object]:
        context: contextlib.AbstractContextManager[object] = self._torch.cuda.device(device)
        return context

    def stream(self, device: int) -> int:
        return int(self._torch.cuda.current_stream(device).cuda_stream) or LEGACY_STREAM

    def dtype(self, array: Any) -> str:
        if array.requires_grad and self._torch.is_grad_enabled():
            raise TypeError(
                "a tensor requires a gradient, and isofold's functions are outside of autograd: "
                "pass its .detach(), and use isotonic_gradient"
            )
        return str(array.dtype).removeprefix("torch.")

    def shape(self, array: Any) -> tuple[int, ...]:
        return tuple(array.shape)

    def default_float(self) -> str:
        return str(self._torch.get_default_dtype()).removeprefix("torch.")

    def widest_float(self) -> str:
        return "float64"

    def cast(self, array: Any, dtype: str) -> Any:
        return array.detach().to(getattr(self._torch, dtype))

    def full(self, like: Any, size: int, value: float, dtype: str) -> Any:
        return self._torch.full((size,), value, dtype=getattr(self._torch, dtype), device=like.device)

    def move_axis(self, array: Any, source: int, target: int) -> Any:
        return array.movedim(source, target)

    def broadcast(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.expand(shape)

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        return array.contiguous().reshape(shape)

    def offsets(self, array: Any) -> Any:
        return self.reshape(array.to(self._torch.int64), (-1,))

    def is_true(self, array: Any) -> Any:
        return array.view(self._torch.bool)

    def bounds(self, starts: Any) -> Any:
        where = self._torch.nonzero(starts).reshape(-1)
        return self._torch.cat([where, where.new_full((1,), starts.numel())])

    def search(self, rising: Any, wanted: Any) -> Any:
        return self._torch.searchsorted(rising, wanted)

    def differences(self, rising: Any) -> Any:
        return self._torch.diff(rising).to(self._torch.float64)

    def host(self, array: Any) -> NDArray[Any]:
        host: NDArray[Any] = array.cpu().numpy()
        return host

    def device(self, array: NDArray[Any], like: Any) -> Any:
        return self._torch.from_numpy(array).to(like.device)

    def output(self, like: Any, size: int, dtype: str, blank: bool, device: int, stream: int) -> Any:
        if blank:
            return self.full(like, size, 0 if dtype == "uint8" else np.nan, dtype)
        return self._torch.empty(size, dtype=getattr(self._torch, dtype), device=like.device)

    def scratch(self, like: Any, size: int) -> Any | None:
        return self._torch.empty(size, dtype=self._torch.uint8, device=like.device)

    def adopt(self, output: Any, stream: int) -> Any:
        return output


class ArrayModule:
    """A namespace of functions with NumPy's names. Here and in Torch, so are dtypes."""

    name = "array"

    def __init__(self, module: Any) -> None:
        self._module = module

    def owns(self, array: object) -> bool:
        raise NotImplementedError

    def on(self, device: int) -> contextlib.AbstractContextManager[object]:
        """Within it, new arrays and streams are those of the device."""
        return contextlib.nullcontext()

    def stream(self, device: int) -> int:
        return LEGACY_STREAM

    def dtype(self, array: Any) -> str:
        # Of the standard, a dtype promises no more than equality.
        return str(getattr(array.dtype, "name", str(array.dtype).rpartition(".")[2]))

    def shape(self, array: Any) -> tuple[int, ...]:
        return tuple(int(length) for length in array.shape)

    def default_float(self) -> str:
        """What integers to be fitted become."""
        return "float64"

    def widest_float(self) -> str:
        return "float64"

    def cast(self, array: Any, dtype: str) -> Any:
        return self._module.astype(array, getattr(self._module, dtype), copy=False)

    def full(self, like: Any, size: int, value: float, dtype: str) -> Any:
        return self._module.full((size,), value, dtype=getattr(self._module, dtype), device=like.device)

    def move_axis(self, array: Any, source: int, target: int) -> Any:
        return self._module.moveaxis(array, source, target)

    def broadcast(self, array: Any, shape: tuple[int, ...]) -> Any:
        return self._module.broadcast_to(array, shape)

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        """Contiguous, in C order."""
        return self._module.reshape(array, shape)

    def offsets(self, array: Any) -> Any:
        """As int64, or as pairs of 32-bit words."""
        return self.reshape(self.cast(array, "int64"), (-1,))

    def is_true(self, array: Any) -> Any:
        return array != 0

    def bounds(self, starts: Any) -> Any:
        """Where the flags are set, and after that their number. Waits for the device."""
        where = self._module.nonzero(starts)[0]
        end = self._module.full((1,), starts.shape[0], dtype=where.dtype)
        return self._concatenate([where, end])

    def _concatenate(self, arrays: list[Any]) -> Any:
        return self._module.concatenate(arrays)

    def search(self, rising: Any, wanted: Any) -> Any:
        return self._module.searchsorted(rising, wanted)

    def differences(self, rising: Any) -> Any:
        return self.cast(rising[1:] - rising[:-1], self.widest_float())

    def host(self, array: Any) -> NDArray[Any]:
        return np.asarray(array)

    def device(self, array: NDArray[Any], like: Any) -> Any:
        return self._module.asarray(array, device=like.device)

    def output(self, like: Any, size: int, dtype: str, blank: bool, device: int, stream: int) -> Any:
        """What is written to; blank: NaN, or zeros for uint8."""
        return _native.DeviceMemory(device, size, dtype, blank, stream)

    def scratch(self, like: Any, size: int) -> Any | None:
        """None: the native module sees to it."""
        return None

    def adopt(self, output: Any, stream: int) -> Any:
        """The library's own array, once the work that fills `output` is enqueued."""
        return self._module.from_dlpack(output)


class Cupy(ArrayModule):
    name = "cupy.ndarray"

    def __init__(self) -> None:
        super().__init__(sys.modules["cupy"])

    def owns(self, array: object) -> bool:
        return isinstance(array, self._module.ndarray)

    def on(self, device: int) -> contextlib.AbstractContextManager[object]:
        context: contextlib.AbstractContextManager[object] = self._module.cuda.Device(device)
        return context

    def stream(self, device: int) -> int:
        return int(self._module.cuda.get_current_stream().ptr) or LEGACY_STREAM

    def cast(self, array: Any, dtype: str) -> Any:
        return array.astype(dtype, copy=False)

    def full(self, like: Any, size: int, value: float, dtype: str) -> Any:
        return self._module.full(size, value, dtype=dtype)

    def reshape(self, array: Any, shape: tuple[int, ...]) -> Any:
        return self._module.ascontiguousarray(array).reshape(shape)

    def is_true(self, array: Any) -> Any:
        return array.view(np.bool_)

    def host(self, array: Any) -> NDArray[Any]:
        host: NDArray[Any] = array.get()
        return host

    def device(self, array: NDArray[Any], like: Any) -> Any:
        return self._module.asarray(array)

    def output(self, like: Any, size: int, dtype: str, blank: bool, device: int, stream: int) -> Any:
        if blank:
            return self.full(like, size, 0 if dtype == "uint8" else np.nan, dtype)
        return self._module.empty(size, dtype=dtype)

    def scratch(self, like: Any, size: int) -> Any | None:
        return self._module.empty(size, dtype=np.uint8)

    def adopt(self, output: Any, stream: int) -> Any:
        return output


class Jax(ArrayModule):
    name = "jax.Array"

    def __init__(self) -> None:
        self._jax: Any = sys.modules["jax"]
        super().__init__(self._jax.numpy)

    def owns(self, array: object) -> bool:
        return isinstance(array, self._jax.Array)

    def _wide(self) -> bool:
        return bool(self._jax.config.jax_enable_x64)

    def default_float(self) -> str:
        return self.widest_float()

    def widest_float(self) -> str:
        return "float64" if self._wide() else "float32"

    def cast(self, array: Any, dtype: str) -> Any:
        return array.astype(dtype)

    def full(self, like: Any, size: int, value: float, dtype: str) -> Any:
        return self._jax.device_put(self._module.full(size, value, dtype=dtype), like.device)

    def offsets(self, array: Any) -> Any:
        if self._wide():
            return super().offsets(array)
        low = array.astype("int32")
        return self._module.stack([low, low >> 31], axis=-1).reshape(-1)

    def device(self, array: NDArray[Any], like: Any) -> Any:
        return self._jax.device_put(array, like.device)

    def adopt(self, output: Any, stream: int) -> Any:
        # A copy, since JAX may let go of borrowed memory that its own stream still reads. The capsule is
        # there for its order only: it makes our stream, in whose order `output` is freed, wait for the copy;
        # and as the copy waits for our work, so does what JAX next does with the inputs' memory.
        array = self._module.array(self._jax.dlpack.from_dlpack(output), copy=True)
        array.__dlpack__(stream=stream)
        return array


class Standard(ArrayModule):
    def __init__(self, array: Any) -> None:
        super().__init__(array.__array_namespace__())
        self._type = type(array)
        self.name = self._type.__name__

    def owns(self, array: object) -> bool:
        return isinstance(array, self._type)

    def _concatenate(self, arrays: list[Any]) -> Any:
        return self._module.concat(arrays)


Kind: TypeAlias = Torch | ArrayModule


def kind_of(array: Any, name: str) -> Kind:
    """Raises TypeError for arrays of a library that cannot be asked for anything."""
    if "torch" in sys.modules and isinstance(array, sys.modules["torch"].Tensor):
        return Torch()
    if "cupy" in sys.modules and isinstance(array, sys.modules["cupy"].ndarray):
        return Cupy()
    if "jax" in sys.modules and isinstance(array, sys.modules["jax"].Array):
        return Jax()
    if hasattr(array, "__array_namespace__"):
        return Standard(array)
    raise TypeError(
        f"{name} is a {type(array).__name__} on a GPU; arrays of torch, CuPy, JAX and libraries with "
        f"__array_namespace__ are taken as they are, others through torch.from_dlpack or cupy.from_dlpack"
    )
