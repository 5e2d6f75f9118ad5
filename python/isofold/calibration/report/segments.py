"""One line for each segment: predicted and observed, before and after, the worst first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isofold import _native
from isofold._ties import tie_groups
from isofold.calibration._inputs import Float64Array
from isofold.calibration._segment_keys import NULL, KeyColumn
from isofold.calibration._sums import exact_sum, scaled_weights, weighted_values
from isofold.calibration.segments import find_segments

MISSING = "(missing)"
SORTED_BY = (
    "the distance of predicted from observed positives after calibration, in standard deviations: what "
    "chance would give if the predictions were right and rows were independent"
)


@dataclass(frozen=True)
class SegmentCodes:
    """Which segment each row belongs to."""

    columns: list[str]
    names: list[tuple[str, ...]]  # by code; one entry for each column
    codes: NDArray[np.int64]  # of each row


def encode_segments(segments: Any, segment_names: Sequence[str] | str | None, rows: int) -> SegmentCodes:
    """Segments as a fit takes and refuses them; rows that are null in any column are one more."""
    found = find_segments(segments, rows)
    count = len(found.columns)
    given = [segment_names] if isinstance(segment_names, str) else segment_names
    if given is None:
        unnamed = ["segment"] if count == 1 else [f"segment {k + 1}" for k in range(count)]
        columns = [column.name or name for column, name in zip(found.columns, unnamed, strict=True)]
    else:
        columns = [str(name) for name in given]
    if len(columns) != count:
        raise ValueError(f"segment_names has {len(columns)} entries, segments has {count} columns")
    names = [tuple(map(str, key)) for key in found.keys]
    names.append((MISSING,) * count)
    return SegmentCodes(columns, names, np.where(found.of_row == NULL, len(found.keys), found.of_row))


def _sums(terms: Float64Array, bounds: list[slice]) -> Float64Array:
    """The exact sum of each slice, rounded once: free of the rows' order."""
    return np.array([exact_sum(terms[bound]) for bound in bounds])


@dataclass(frozen=True)
class _Side:
    """Sums over each segment, for the predictions before or those after; of weights as scaled."""

    predicted: Float64Array
    gained: Float64Array  # MCB times the weight
    variance: Float64Array  # of the sum of w y, if the predictions were right


def _measure_side(
    predictions: Float64Array,
    labels: Float64Array,
    weights: Float64Array,
    codes: NDArray[np.int64],
    segments: int,
    threads: int,
) -> _Side:
    """All segments' CORP fits are one batch. O(n log n) for the sort."""
    # Tied predictions by falling label: their pooled fit is then the untied one.
    order = np.lexsort((-labels, predictions, codes))
    p, y, w = predictions[order], labels[order], weights[order]
    offsets = np.searchsorted(codes[order], np.arange(segments + 1)).astype(np.int64)
    ties = np.union1d(tie_groups(p, 0.0), offsets).astype(np.int64)
    recalibrated, _ = _native.fit(
        values=y,
        weights=w,
        offsets=offsets,
        row_length=None,
        increasing=True,
        lower=-math.inf,
        upper=math.inf,
        tie_offsets=ties,
        out_dtype="float64",
        threads=threads,
    )
    bounds = [slice(a, b) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
    gained = (p - recalibrated) * ((p - y) + (recalibrated - y))
    return _Side(
        predicted=_sums(weighted_values(w, p), bounds),
        gained=np.maximum(_sums(w * gained, bounds), 0.0),
        variance=_sums(w * w * p * (1.0 - p), bounds),
    )


def _ratio(above: Float64Array, below: Float64Array) -> Float64Array:
    """above / below; 1 for 0 / 0, as nothing was predicted and nothing seen."""
    with np.errstate(all="ignore"):
        return np.where((above == 0) & (below == 0), 1.0, above / below)


def _deviations(gap: Float64Array, variance: Float64Array) -> Float64Array:
    with np.errstate(all="ignore"):
        return np.where(gap == 0, 0.0, gap / np.sqrt(variance))


def _servers(
    served_by: KeyColumn, codes: NDArray[np.int64], segments: int, shown: NDArray[np.int64]
) -> list[str]:
    """What `served_by` says of each of the segments in `shown`, "several" where its rows differ."""
    least = np.full(segments, len(served_by.levels), dtype=np.int64)
    greatest = np.full(segments, NULL, dtype=np.int64)
    np.minimum.at(least, codes, served_by.codes)
    np.maximum.at(greatest, codes, served_by.codes)
    return [
        "several"
        if least[k] != greatest[k]
        else MISSING
        if least[k] == NULL
        else str(served_by.levels[least[k]])
        for k in shown.tolist()
    ]


def segment_table(
    coded: SegmentCodes,
    before: Float64Array | None,
    after: Float64Array,
    labels: Float64Array,
    weights: Float64Array | None,
    *,
    served_by: KeyColumn | None = None,
    limit: int,
    threads: int,
) -> dict[str, Any]:
    """The columns of the table, at most `limit` segments long.

    `coded` and `served_by` have an entry for each of the rows.
    """
    present, codes = np.unique(coded.codes, return_inverse=True)
    codes = codes.astype(np.int64)
    segments = len(present)
    scaled, exponent = (np.ones(len(labels)), 0) if weights is None else scaled_weights(weights)

    by_segment = np.argsort(codes, kind="stable")
    offsets = np.searchsorted(codes[by_segment], np.arange(segments + 1))
    bounds = [slice(a, b) for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
    weight = _sums(scaled[by_segment], bounds)
    positives = _sums((scaled * labels)[by_segment], bounds)
    last = _measure_side(after, labels, scaled, codes, segments, threads)
    first = None if before is None else _measure_side(before, labels, scaled, codes, segments, threads)

    deviations = _deviations(positives - last.predicted, last.variance)
    names = [coded.names[code] for code in present.tolist()]
    worst_first = sorted(range(segments), key=lambda k: (-abs(deviations[k]), -weight[k], names[k]))
    shown = np.array(worst_first[:limit], dtype=np.int64)

    def column(values: Float64Array) -> list[float]:
        return [float(value) for value in values[shown]]

    def in_full(values: Float64Array) -> list[float]:
        with np.errstate(over="ignore"):
            return column(np.ldexp(values, exponent))

    def pair(side: _Side) -> dict[str, list[float]]:
        return {
            "mean_prediction": column(side.predicted / weight),
            "predicted_over_observed": column(_ratio(side.predicted, positives)),
            "mcb": column(side.gained / weight),
        }

    return {
        "columns": coded.columns,
        "sorted_by": SORTED_BY,
        "total": segments,
        "left_out": segments - len(shown),
        "missing": bool(present[-1] == len(coded.names) - 1),  # rows that are null in a column
        "names": [list(names[k]) for k in shown.tolist()],
        "served_by": None if served_by is None else _servers(served_by, codes, segments, shown),
        "rows": np.diff(offsets)[shown].tolist(),
        "weight": in_full(weight),
        "positives": in_full(positives),
        "observed_rate": column(positives / weight),
        "deviations": column(deviations),
        "before": None if first is None else pair(first),
        "after": pair(last),
    }
