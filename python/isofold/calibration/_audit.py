"""The calibration audit: where, among features that a model may have seen or not, its rates are wrong."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isofold._arrays import thread_count
from isofold._histogram import quantize_gradients
from isofold.calibration._audit_features import (
    AuditFeature,
    bin_matrix,
    categorical_names,
    make_feature,
    read_columns,
)
from isofold.calibration._audit_tree import Leaf, describe, find_leaves, locate, merged
from isofold.calibration._inputs import Float64Array, collect_kept
from isofold.calibration._sums import exact_sum

EVERYTHING = "all rows"
_LEAST_VARIANCE = 2.0**-100


@dataclass(frozen=True)
class AuditSegment:
    """One segment, measured on held-out rows.

    `z` is observed less predicted positives in standard deviations: what chance gives if the predictions are
    right and rows independent. Above 0 there are more positives than predicted. `p_value` is two-sided;
    `significant` says that it is at most the level divided by the number of segments.
    """

    name: str
    rows: int
    positives: float
    predicted: float
    predicted_over_observed: float
    z: float
    p_value: float
    significant: bool
    search_rows: int
    search_z: float  # on the rows that the segment was found on: too large, for it was chosen by them


@dataclass(frozen=True)
class Audit:
    """What `audit` returns."""

    segments: tuple[AuditSegment, ...]  # they part all rows; the largest |z| first
    overall: AuditSegment  # all rows as one segment
    level: float
    z_threshold: float  # |z| above it is significant
    features: tuple[str, ...]
    _features: list[AuditFeature]
    _leaves: list[Leaf]  # in the order of the segments

    def locate(self, features: Any) -> NDArray[np.int64]:
        """The position in `segments` of each row's segment."""
        columns = read_columns(features, None, categorical_names(self._features))
        return locate(self._leaves, bin_matrix(self._features, columns))

    def names(self, features: Any) -> NDArray[np.object_]:
        """The name of each row's segment: keys for `Calibrator.fit(segments=)`."""
        names = np.array([segment.name for segment in self.segments], dtype=object)
        found: NDArray[np.object_] = names[self.locate(features)]
        return found

    def as_dict(self) -> dict[str, Any]:
        """For JSON: no value is infinite or NaN."""
        return {
            "features": list(self.features),
            "level": self.level,
            "z_threshold": self.z_threshold,
            "overall": _ready(asdict(self.overall)),
            "segments": [_ready(asdict(segment)) for segment in self.segments],
        }

    def __str__(self) -> str:
        lines = [f"{'z':>7} {'pred/obs':>9} {'rows':>9}  segment (* significant)"]
        for segment in (self.overall, *self.segments):
            lines.append(
                f"{segment.z:>+7.1f} {segment.predicted_over_observed:>9.3f} {segment.rows:>9,}  "
                f"{segment.name}{' *' if segment.significant else ''}"
            )
        return "\n".join(lines)


def _ready(fields: dict[str, Any]) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in fields.items()
    }


def audit(
    scores: ArrayLike,
    labels: ArrayLike,
    features: Any,
    *,
    sample_weight: ArrayLike | None = None,
    categorical: Collection[str] = (),
    held_out: float | ArrayLike = 0.5,
    max_segments: int = 12,
    max_depth: int = 3,
    min_rows: int = 200,
    min_gain: float = 9.0,
    level: float = 0.05,
    bins: int = 64,
    seed: int = 0,
    threads: int | None = None,
) -> Audit:
    """Find the segments in which predicted rates differ most from what was observed, and test them.

    A shallow tree is grown on some of the rows, by the best splits of exact histograms with the gradient
    y - p and the hessian p (1 - p). Its leaves are then measured on the other rows, which had no part in
    choosing them, against a threshold for as many tests as there are leaves (Bonferroni's).

    Parameters
    ----------
    scores : array_like of shape (n,)
        Predicted rates in [0, 1].
    labels : array_like of shape (n,)
        Outcomes or rates in [0, 1].
    features : mapping of names to columns, data frame, Arrow table, or 2-D array
        Numbers are split by thresholds, strings and booleans by sets of values. Missing values are a value
        of their own. Of more than 1,023 distinct strings the most frequent are told apart.
    sample_weight : array_like, optional
        Rows of weight 0 are left out.
    categorical : names, optional
        Columns of numbers that are names, not quantities.
    held_out : float or boolean array_like, default 0.5
        The share of rows, drawn by `seed`, that the segments are tested on; or which rows these are.
    max_segments, max_depth : int
        Limits of the tree.
    min_rows : int
        The fewest rows of a segment, among those searched.
    min_gain : float
        A split must add this much to the sum of squared z scores.
    level : float
        The probability that any segment is called significant if all predictions are right.
    bins : int
        The most bins of a column of numbers.

    Returns
    -------
    Audit
        ``print`` shows it as a table.
    """
    rows, kept = collect_kept(scores, labels, sample_weight, probabilities=True)
    given = len(kept) if kept is not None else len(rows)
    columns = read_columns(features, given, categorical)
    tested = _tested_rows(held_out, given, seed)
    if kept is not None:
        columns = {
            name: column[kept] if isinstance(column, np.ndarray) else _kept(column, kept)
            for name, column in columns.items()
        }
        tested = tested[kept]
    _check_counts(max_segments=max_segments, max_depth=max_depth, min_rows=min_rows, bins=bins)
    if not 0 < level < 1:
        raise ValueError(f"level must lie in (0, 1), not {level}")
    if not 0 <= min_gain < math.inf:
        raise ValueError(f"min_gain must be finite and not negative, not {min_gain}")
    thread_count(threads)

    weights = rows.weight_of_rows()
    if rows.weights is not None:
        weights = weights / weights.max()
    gaps = weights * (rows.labels - rows.scores)
    variances = weights * weights * rows.scores * (1.0 - rows.scores)
    made = [make_feature(name, column, bins) for name, column in columns.items()]
    matrix = bin_matrix(made, columns)
    searched = np.flatnonzero(~tested)
    if not len(searched) or not tested.any():
        raise ValueError("held_out leaves no rows to search, or none to test on")
    leaves = find_leaves(
        made,
        matrix,
        # A rate of exactly 0 or 1 has no variance: a side of such rows would gain infinitely much where one
        # is wrong, which is no split. A unit of the grid in its stead lets it win.
        quantize_gradients(gaps, np.where(variances > 0, variances, _LEAST_VARIANCE), threads=threads),
        searched,
        most=max_segments,
        max_depth=max_depth,
        min_rows=min_rows,
        min_gain=min_gain,
        threads=threads,
    )
    place = locate(leaves, matrix)
    threshold = -NormalDist().inv_cdf(level / (2 * len(leaves)))

    def measured(name: str, inside: NDArray[np.bool_], tests: int) -> AuditSegment:
        test, search = inside & tested, inside & ~tested
        z = _z_score(gaps[test], variances[test])
        p_value = math.erfc(abs(z) / math.sqrt(2))
        positives, predicted = (
            exact_sum(weights[test] * column[test]) for column in (rows.labels, rows.scores)
        )
        return AuditSegment(
            name=name,
            rows=int(np.count_nonzero(test)),
            positives=positives,
            predicted=predicted,
            predicted_over_observed=_ratio(predicted, positives),
            z=z,
            p_value=p_value,
            significant=p_value * tests <= level,
            search_rows=int(np.count_nonzero(search)),
            search_z=_z_score(gaps[search], variances[search]),
        )

    found = [measured(_name(leaf, made), place == k, len(leaves)) for k, leaf in enumerate(leaves)]
    order = sorted(range(len(found)), key=lambda k: (-abs(found[k].z), found[k].name))
    return Audit(
        segments=tuple(found[k] for k in order),
        overall=measured(EVERYTHING, np.ones(len(place), np.bool_), 1),
        level=level,
        z_threshold=threshold,
        features=tuple(feature.name for feature in made),
        _features=made,
        _leaves=[leaves[k] for k in order],
    )


def _name(leaf: Leaf, features: list[AuditFeature]) -> str:
    parts = [describe(features[k], allowed) for k, allowed in merged(leaf.conditions).items()]
    return " and ".join(parts) if parts else EVERYTHING


def _z_score(gaps: Float64Array, variances: Float64Array) -> float:
    gap, variance = exact_sum(gaps), exact_sum(variances)
    if variance == 0.0:
        return 0.0 if gap == 0.0 else math.copysign(math.inf, gap)
    return gap / math.sqrt(variance)


def _ratio(predicted: float, observed: float) -> float:
    if observed == 0.0:
        return 1.0 if predicted == 0.0 else math.inf
    return predicted / observed


def _tested_rows(held_out: float | ArrayLike, rows: int, seed: int) -> NDArray[np.bool_]:
    array = np.asarray(held_out)
    if array.ndim == 0 and array.dtype.kind in "fiu":
        share = float(array)
        if not 0 < share < 1:
            raise ValueError(f"held_out must lie in (0, 1), not {share}")
        tested = np.zeros(rows, np.bool_)
        tested[np.random.default_rng(seed).permutation(rows)[: round(share * rows)]] = True
        return tested
    if array.dtype != np.bool_ or array.shape != (rows,):
        raise ValueError(
            f"held_out must be a share, or {rows} booleans, not {array.dtype} of shape {array.shape}"
        )
    return array


def _kept(column: Any, kept: NDArray[np.bool_]) -> Any:
    return type(column)(column.name, column.kind, column.codes[kept], column.levels)


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} must be an integer, not {value!r}")
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    if counts["bins"] > 1024:
        raise ValueError(f"bins must be at most 1024, not {counts['bins']}")
