"""isofold on torch tensors: differentiable isotonic regression, soft ranks, soft sorting, soft
top-k, and sums, dots and norms of segments.

Fits, their first gradient, sums, dots and norms are the exact real value, rounded once, on a CPU and on CUDA.
Beside them, `isofold.torch.trees`: exact histograms and best splits.
"""

from __future__ import annotations

from isofold.torch.conjugate_gradient import CGResult, CGSolver, cg
from isofold.torch.isotonic import blocks, isotonic_regression
from isofold.torch.segmented import segment_dot, segment_dots, segment_norm, segment_sum
from isofold.torch.soft import soft_rank, soft_sort, soft_topk
from isofold.torch.trees import best_splits, histogram, quantize_gradients

__all__ = [
    "CGResult",
    "CGSolver",
    "best_splits",
    "blocks",
    "cg",
    "histogram",
    "isotonic_regression",
    "quantize_gradients",
    "segment_dot",
    "segment_dots",
    "segment_norm",
    "segment_sum",
    "soft_rank",
    "soft_sort",
    "soft_topk",
]
