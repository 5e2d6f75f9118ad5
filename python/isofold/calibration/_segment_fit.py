"""The global curve and the curves of all segments, in one batched fit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isofold import _native
from isofold.calibration._inputs import Float64Array, Observations
from isofold.calibration.segment_curves import Counts, Segment, SegmentCurves, ServedBy
from isofold.calibration.segments import RowSegments

_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Curves:
    """Curves end to end: curve c has the knots knot_offsets[c] .. knot_offsets[c + 1] - 1."""

    knots_x: Float64Array
    knots_y: Float64Array
    knot_offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return int(self.knot_offsets.shape[0]) - 1

    def knots(self, curve: int) -> tuple[Float64Array, Float64Array]:
        cut = slice(int(self.knot_offsets[curve]), int(self.knot_offsets[curve + 1]))
        return self.knots_x[cut], self.knots_y[cut]


@dataclass(frozen=True)
class FitOptions:
    increasing: bool = True
    lower: float = -math.inf
    upper: float = math.inf
    threads: int = 0


@dataclass(frozen=True)
class _Totals:
    """One entry for each segment that has rows, by rising index."""

    indices: NDArray[np.int64]
    counts: list[Counts]
    served_by: list[ServedBy]
    all_rows: Counts
    null_rows: float


def _exact_totals(
    terms: Float64Array, groups: NDArray[np.integer[Any]], size: int, *, threads: int = 0
) -> Float64Array:
    """The exact sum of the terms of each group, rounded once; the largest float64 where that is exceeded.

    `terms` are not negative, `groups` are indices below `size`.
    """
    with np.errstate(over="ignore"):
        whole = bool(np.all(terms == np.floor(terms))) and float(np.sum(terms)) < 2.0**52
    if whole:
        return np.bincount(groups, terms, minlength=size).astype(np.float64)  # no addition rounds
    totals = np.zeros(size)
    positive = np.flatnonzero(terms > 0)
    positive = positive[np.argsort(groups[positive], kind="stable")]
    ordered, sorted_groups = terms[positive], groups[positive]
    starts = np.concatenate(([True], sorted_groups[1:] != sorted_groups[:-1]))
    sums = _native.block_weights(
        values=ordered,
        weights=ordered,
        offsets=None,
        row_length=ordered.shape[0],
        block_starts=starts.astype(np.uint8),
        threads=threads,
    )
    totals[sorted_groups[starts]] = np.minimum(sums, _LARGEST)
    return totals


def _counts_by(
    rows: Observations, groups: NDArray[np.integer[Any]], size: int, *, weights_are_rows: bool, threads: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Rows, weight and positives of each group."""
    weight_of_rows = rows.weight_of_rows()
    weight = _exact_totals(weight_of_rows, groups, size, threads=threads)
    positives = _exact_totals(weight_of_rows * rows.labels, groups, size, threads=threads)
    number = weight if weights_are_rows else np.bincount(groups, minlength=size).astype(np.float64)
    return number, weight, positives


def _count_segments(
    rows: Observations, segments: RowSegments, min_rows: int, *, weights_are_rows: bool, threads: int
) -> _Totals:
    """Count each segment's rows and say who serves it."""
    size = len(segments.keys)
    # Rows without a segment are counted under an index of their own, the last.
    groups = np.where(segments.of_row < 0, size, segments.of_row)
    number, weight, positives = _counts_by(
        rows, groups, size + 1, weights_are_rows=weights_are_rows, threads=threads
    )
    present = np.flatnonzero(np.bincount(groups, minlength=size + 1)[:size]).astype(np.int64)
    some_above_0 = np.bincount(groups[rows.labels > 0], minlength=size + 1) > 0
    some_below_1 = np.bincount(groups[rows.labels < 1], minlength=size + 1) > 0
    served_by: list[ServedBy] = []
    for index in present.tolist():
        if not (some_above_0[index] and some_below_1[index]):
            served_by.append("single_class")
        else:
            served_by.append("own_curve" if number[index] >= min_rows else "under_min_rows")
    counts = [Counts(*map(float, entry)) for entry in zip(number, weight, positives, strict=True)]
    everything = np.zeros(len(rows), dtype=np.int8)
    all_rows = _counts_by(rows, everything, 1, weights_are_rows=weights_are_rows, threads=threads)
    return _Totals(
        present,
        [counts[index] for index in present.tolist()],
        served_by,
        Counts(*(float(column[0]) for column in all_rows)),
        float(number[size]),
    )


def fit_by_segment(
    rows: Observations, found: RowSegments, min_rows: int, options: FitOptions, *, weights_are_rows: bool
) -> tuple[Curves, SegmentCurves]:
    """The global curve, those of the segments that deserve one, and an account of all segments.

    With `weights_are_rows` a row counts as its weight, as aggregated rows do.
    """
    totals = _count_segments(
        rows, found, min_rows, weights_are_rows=weights_are_rows, threads=options.threads
    )
    has_own = np.array([served == "own_curve" for served in totals.served_by], dtype=np.bool_)
    curves = fit_curves(rows, options, found.of_row, totals.indices[has_own])
    curve_of = np.where(has_own, np.cumsum(has_own), 0).tolist()
    segments = [
        Segment(found.keys[index], counts, served, *(curves.knots(curve) if curve else (None, None)))
        for index, counts, served, curve in zip(
            totals.indices.tolist(), totals.counts, totals.served_by, curve_of, strict=True
        )
    ]
    account = SegmentCurves(found.columns, min_rows, totals.all_rows, totals.null_rows, tuple(segments))
    return curves, account


def fit_curves(
    observations: Observations,
    options: FitOptions,
    of_row: NDArray[np.int64] | None = None,
    own: NDArray[np.int64] | None = None,
) -> Curves:
    """Fit labels over scores: curve 0 to all rows, curve k + 1 to those whose segment is own[k].

    All curves are rows of one ragged batch. Within a row the elements go by score, and those of one score
    against the direction of the fit: their inner points then lie on or above the group's chord in the
    cumulative-sum diagram (Barlow et al. 1972), so that the fit without ties is the pooled fit. O(n log n).
    """
    order = observations.canonical_order(rising_labels=not options.increasing)
    lengths = [len(order)]
    if of_row is not None and own is not None and own.size:
        curve_of_segment = np.full(max(int(of_row.max()), int(own.max())) + 2, -1, dtype=np.int32)
        curve_of_segment[own] = np.arange(own.size)
        curve = curve_of_segment[of_row][order]  # of_row is -1 where there is no segment: the last entry
        # Whole numbers of 16 bits are sorted in linear time. The sort is stable: scores stay in order.
        narrow = curve.astype(np.int16) if own.size < 2**15 else curve
        by_curve = order[np.argsort(narrow, kind="stable")[np.count_nonzero(curve < 0) :]]
        lengths += np.bincount(curve[curve >= 0], minlength=own.size).tolist()
        order = np.concatenate((order, by_curve))
    return _fit_rows(observations, order, lengths, options)


def _fit_rows(
    observations: Observations,
    order: NDArray[np.intp],
    lengths: list[int],
    options: FitOptions,
) -> Curves:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    scores = observations.scores[order]
    group_starts = np.concatenate(([True], scores[1:] != scores[:-1]))
    group_starts[offsets[:-1]] = True
    starts = np.flatnonzero(group_starts)
    scores = scores[starts]
    # Labels are mostly 0 and 1, which float32 holds as well in half the memory; the fit is exact either way.
    narrow = observations.labels.astype(np.float32)
    labels = narrow if np.array_equal(narrow, observations.labels) else observations.labels
    fit, _ = _native.fit(
        values=labels[order],
        weights=None if observations.weights is None else observations.weights[order],
        offsets=offsets,
        row_length=None,
        increasing=options.increasing,
        lower=options.lower,
        upper=options.upper,
        tie_offsets=np.append(starts, offsets[-1]).astype(np.int64, copy=False),
        out_dtype="float64",
        threads=options.threads,
    )
    values = fit[starts].astype(np.float64, copy=False)
    return _knots(scores, values, np.searchsorted(starts, offsets))


def _knots(scores: Float64Array, values: Float64Array, row_offsets: NDArray[np.integer[Any]]) -> Curves:
    """The first and last distinct score of every run of equal values: interpolation needs no others."""
    changes = values[1:] != values[:-1]
    changes[row_offsets[1:-1] - 1] = True
    kept = np.concatenate(([True], changes)) | np.concatenate((changes, [True]))
    knots_before = np.concatenate(([0], np.cumsum(kept)))
    return Curves(scores[kept], values[kept], knots_before[row_offsets].astype(np.int64))
