"""Aggregated rows, positives out of a total, as the weighted rows that they stand for."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isofold.calibration._inputs import (
    Float64Array,
    Observations,
    as_column,
    check_finite,
    check_length,
    raise_first,
)


def _exact_difference(a: Float64Array, b: Float64Array) -> tuple[Float64Array, Float64Array]:
    """RN(a - b) and its error, whose sum is a - b (Knuth's two-sum)."""
    difference = a - b
    part = difference - a
    return difference, (a - (difference - part)) - (b + part)


def _exact_parts(totals: Float64Array, positives: Float64Array) -> list[Float64Array]:
    """Arrays of floats that are not negative and sum to totals - positives exactly: one for whole numbers."""
    parts = []
    rest, error = _exact_difference(totals, positives)
    while True:
        # Rounded down, so that what is left is not negative either.
        part = np.where(error < 0, np.nextafter(rest, 0.0), rest)
        parts.append(part)
        rest, error = _exact_difference(rest - part, -error)
        if not rest.any():
            return parts


def expand(
    scores: ArrayLike, positives: ArrayLike, totals: ArrayLike
) -> tuple[Observations, NDArray[np.intp]]:
    """Each row as a label 1 of weight positives and a label 0 of weight totals - positives, exactly.

    Also returns which row each of these comes from. Weights of zero are left out. Raises ValueError and
    TypeError naming the argument and the position.
    """
    columns = {
        "scores": as_column(scores, "scores"),
        "positives": as_column(positives, "positives"),
        "totals": as_column(totals, "totals"),
    }
    rows = columns["scores"].shape[0]
    for name, column in columns.items():
        check_length(column, name, rows, "scores")
        check_finite(column, name)
    wide = {name: column.astype(np.float64) for name, column in columns.items()}
    raise_first(wide["totals"] < 0, columns["totals"], "totals", "not be negative")
    raise_first(wide["positives"] < 0, columns["positives"], "positives", "not be negative")
    raise_first(wide["positives"] > wide["totals"], columns["positives"], "positives", "not exceed totals")
    parts = [wide["positives"], *_exact_parts(wide["totals"], wide["positives"])]
    kept = [np.flatnonzero(part) for part in parts]
    source = np.concatenate(kept)
    if not source.size:
        raise ValueError("scores is empty" if rows == 0 else "totals has no entry above 0")
    labels = np.zeros(source.size)
    labels[: kept[0].size] = 1.0
    weights = np.concatenate([part[index] for part, index in zip(parts, kept, strict=True)])
    return Observations(wide["scores"][source] + 0.0, labels, weights), source
