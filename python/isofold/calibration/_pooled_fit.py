"""Isotonic regression over a score: equal scores are pooled exactly and share one value."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isofold import _native
from isofold._ties import tie_groups
from isofold.calibration._inputs import Float64Array, Observations


@dataclass(frozen=True)
class PooledFit:
    """The fit by distinct score, and the sorted rows it came from."""

    rows: Observations
    scores: Float64Array  # distinct, strictly rising
    values: Float64Array  # the exact fit at each of them, rounded once
    group_offsets: NDArray[np.int64]  # the rows of group g are group_offsets[g] .. group_offsets[g + 1] - 1

    def value_of_rows(self) -> Float64Array:
        return np.repeat(self.values, np.diff(self.group_offsets))


def pooled_fit(
    observations: Observations,
    *,
    increasing: bool = True,
    lower: float = -math.inf,
    upper: float = math.inf,
    threads: int = 0,
) -> PooledFit:
    """Fit labels over scores. O(n log n), of which the fit itself is O(n).

    Within a group the rows run against the direction of the fit. The inner points of a group then lie on or
    above its chord in the cumulative-sum diagram (Barlow et al. 1972), so that the fit without ties is the
    pooled fit: no group mean is ever rounded.
    """
    rows = observations.in_canonical_order(rising_labels=not increasing)
    offsets = tie_groups(rows.scores, 0.0)
    starts = offsets[:-1]
    fit, _ = _native.fit(
        values=rows.labels,
        weights=rows.weights,
        offsets=None,
        row_length=len(rows),
        increasing=increasing,
        lower=lower,
        upper=upper,
        tie_offsets=offsets,
        out_dtype="float64",
        threads=threads,
    )
    return PooledFit(rows, rows.scores[starts], fit[starts].astype(np.float64, copy=False), offsets)


def exact_mean(labels: Float64Array, weights: Float64Array | None, *, threads: int = 0) -> float:
    """The exact weighted mean, rounded once: a fit whose rows are all tied."""
    fit, _ = _native.fit(
        values=labels,
        weights=weights,
        offsets=None,
        row_length=labels.shape[0],
        increasing=True,
        lower=-math.inf,
        upper=math.inf,
        tie_offsets=np.array([0, labels.shape[0]], dtype=np.int64),
        out_dtype="float64",
        threads=threads,
    )
    return float(fit[0])
