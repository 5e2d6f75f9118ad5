"""The libraries whose device arrays are tested, where there is a GPU."""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import isofold
from isofold import _native

# JAX would take most of the GPU's memory for itself.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

Array = NDArray[Any]


def skip_without_gpu() -> None:
    """Skips the calling file. Continuous integration has no GPU: it lets this reason pass, and no other."""
    fault = _native.cuda_fault()
    if fault:
        pytest.skip(f"needs a GPU: {fault}", allow_module_level=True)


class Library:
    """NumPy arrays to those of a library on device 0, and back."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.module: Any = importlib.import_module(name)
        if name == "jax":
            self.module.config.update("jax_enable_x64", True)

    def to(self, array: Any) -> Any:
        host = np.asarray(array)
        if self.name == "torch":
            return self.module.from_numpy(host.copy()).cuda()
        if self.name == "cupy":
            return self.module.asarray(host)
        return self.module.device_put(host, self.module.devices("gpu")[0])

    def host(self, array: Any) -> Array:
        if self.name == "torch":
            return np.asarray(array.cpu().numpy())
        if self.name == "cupy":
            return np.asarray(array.get())
        return np.asarray(array)

    def owns(self, array: Any) -> bool:
        kinds = {"torch": "Tensor", "cupy": "ndarray", "jax": "Array"}
        return isinstance(array, getattr(self.module, kinds[self.name])) and array.__dlpack_device__()[0] == 2

    def same(self, found: Any, expected: Array) -> bool:
        """Of this library, and of the same shape, dtype and bits."""
        host = self.host(found)
        return (
            self.owns(found)
            and host.shape == expected.shape
            and host.dtype == expected.dtype
            and host.tobytes() == expected.tobytes()
        )


def agree(library: Library, y: Array, **options: Any) -> isofold.IsotonicResult:
    """The result on the device, once everything in it has the bits of the host's."""
    on_device = {
        name: library.to(value) if isinstance(value, np.ndarray) else value for name, value in options.items()
    }
    expected = isofold.isotonic_regression(y, **options)
    found = isofold.isotonic_regression(library.to(y), **on_device)
    assert library.same(found.x, expected.x)
    assert library.same(found.block_mask, expected.block_mask)
    assert library.same(found.blocks, expected.blocks)
    assert library.same(found.weights, expected.weights)
    assert library.same(found.block_offsets, expected.block_offsets)
    return found
