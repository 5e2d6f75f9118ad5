"""Random tensors by seed, and leaves."""

from __future__ import annotations

import torch
from torch import Tensor

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).to(dtype)


def positive(*shape: int, seed: int = 1) -> Tensor:
    return draw(*shape, seed=seed).abs() + 0.5


def leaves(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(t.detach().clone().requires_grad_() for t in tensors)


def same(a: Tensor, b: Tensor) -> bool:
    """Equal dtype and values; a NaN equals itself."""
    return a.dtype == b.dtype and a.shape == b.shape and torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)
