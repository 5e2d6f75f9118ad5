"""isofold on torch tensors: differentiable isotonic regression, soft ranks, soft sorting and soft top-k.

Fits and their first gradient are the exact real value, rounded once, on a CPU and on CUDA. Beside them,
`isofold.torch.trees`: exact histograms and best splits.
"""

from __future__ import annotations

from isofold.torch.isotonic import blocks, isotonic_regression
from isofold.torch.soft import soft_rank, soft_sort, soft_topk
from isofold.torch.trees import best_splits, histogram, quantize_gradients

__all__ = [
    "best_splits",
    "blocks",
    "histogram",
    "isotonic_regression",
    "quantize_gradients",
    "soft_rank",
    "soft_sort",
    "soft_topk",
]
