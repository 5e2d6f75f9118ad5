"""The calibration curve in rational arithmetic."""

from __future__ import annotations

import math

import numpy as np
import oracle


def exact_curve(
    rows: list[tuple[float, ...]], increasing: bool, lower: float = -math.inf, upper: float = math.inf
) -> dict[float, float]:
    """The pooled fit at every distinct score, in rational arithmetic."""
    kept = sorted(row for row in rows if len(row) == 2 or row[2] > 0)
    scores = sorted({row[0] for row in kept})  # a set of floats holds one zero
    kept.sort(key=lambda row: row[0])
    offsets = [sum(row[0] < score for row in kept) for score in scores] + [len(kept)]
    labels = np.array([row[1] for row in kept])
    weights = np.array([row[2] for row in kept]) if len(kept[0]) == 3 else None
    solution = oracle.solve(labels, weights, increasing=increasing, tie_offsets=offsets)
    fit = solution.fit("float64", lower, upper)
    return {score: float(fit[start]) for score, start in zip(scores, offsets[:-1], strict=True)}
