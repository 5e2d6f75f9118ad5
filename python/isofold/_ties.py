"""Observations that share a score share a value: cutting sorted scores into tie groups."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isofold._arrays import FloatArray


def tie_groups(scores: FloatArray, tolerance: float) -> NDArray[np.int64]:
    """Offsets of the groups in `scores`, sorted and not empty: from 0 to their number, one entry more than
    groups.

    Equal scores share a group (-0.0 equals 0.0). With a positive tolerance a group takes in every score whose
    exact distance from the group's first is smaller than that.
    """
    if tolerance == 0:
        starts = np.flatnonzero(scores[1:] != scores[:-1]) + 1
        return np.concatenate(([0], starts, [scores.size])).astype(np.int64, copy=False)
    following = _ends_within(scores.astype(np.float64), tolerance).tolist()
    offsets = [0]
    while offsets[-1] < scores.size:
        offsets.append(following[offsets[-1]])
    return np.array(offsets, dtype=np.int64)


def _ends_within(scores: NDArray[np.float64], tolerance: float) -> NDArray[np.intp]:
    """For each score, where the first later one lies that is not closer than the tolerance."""
    with np.errstate(over="ignore", invalid="ignore"):
        limit: NDArray[Any] = scores + tolerance
        # Knuth's two-sum: limit + error is the exact sum. A score below the exact sum is at most the rounded
        # one where that was rounded down, and less than the rounded one otherwise.
        part = limit - scores
        error = (scores - (limit - part)) + (tolerance - part)
    below = np.searchsorted(scores, limit, side="left")
    at_most = np.searchsorted(scores, limit, side="right")
    return np.where(error > 0, at_most, below)
