"""isofold on torch tensors: differentiable isotonic regression, soft ranks, soft sorting and soft top-k.

Fits and their first gradient are the exact real value, rounded once, on a CPU and on CUDA.
"""

from __future__ import annotations

from isofold.torch.isotonic import blocks, isotonic_regression
from isofold.torch.soft import soft_rank, soft_sort, soft_topk

__all__ = ["blocks", "isotonic_regression", "soft_rank", "soft_sort", "soft_topk"]
