"""Losses on soft ranks and soft top-k masks."""

from __future__ import annotations

import torch
from torch import Tensor

from isofold.torch import soft_rank, soft_topk


def ranks(values: Tensor) -> Tensor:
    """Of every row: 1 for its smallest value; ties in their order."""
    return values.argsort(dim=-1, stable=True).argsort(dim=-1).to(values.dtype) + 1


def correlation(a: Tensor, b: Tensor) -> Tensor:
    """Pearson's, of every row."""
    a, b = (x - x.mean(dim=-1, keepdim=True) for x in (a, b))
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1)).clamp(min=1e-12)


def spearman(scores: Tensor, target: Tensor) -> Tensor:
    """Spearman's rank correlation, of every row."""
    return correlation(ranks(scores), ranks(target))


def spearman_loss(scores: Tensor, target_ranks: Tensor, strength: float = 1.0) -> Tensor:
    """1 - Spearman's correlation with soft ranks in place of hard ones, averaged over the rows.

    The strength is what scores differ by where ranks become soft: at 0.01, with scores about 1 apart, hardly
    any.
    """
    return 1 - correlation(soft_rank(scores, regularization_strength=strength), target_ranks).mean()


def top_k_loss(logits: Tensor, labels: Tensor, k: int, strength: float = 1.0) -> Tensor:
    """How far the labels are from being among the k largest logits: 1 - their place in the soft mask.

    Zero, and without gradient, for a label that is in by a margin; the larger part of the mask is 0 or 1
    exactly.
    """
    mask = soft_topk(logits, k, regularization_strength=strength)
    return 1 - mask.gather(-1, labels[:, None]).mean()


def top_k_accuracy(logits: Tensor, labels: Tensor, k: int) -> float:
    return float((logits.topk(k).indices == labels[:, None]).any(-1).to(torch.float64).mean())
