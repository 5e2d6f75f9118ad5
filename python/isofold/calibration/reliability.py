"""Predicted against observed, by bins: the table, and the expected calibration error made from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isofold.calibration._inputs import Float64Array, Observations, collect
from isofold.calibration._sums import exact_sum, scaled_weights

Strategy = Literal["uniform", "quantile"]


@dataclass(frozen=True)
class ReliabilityTable:
    """One entry for each bin that holds rows, in rising order of prediction."""

    lower: Float64Array  # the bin's edges ("uniform"), or its smallest and largest prediction ("quantile")
    upper: Float64Array
    mean_prediction: Float64Array
    observed_rate: Float64Array
    weight: Float64Array  # the share of the total weight, summing to 1 but for rounding
    count: NDArray[np.int64]  # rows


def _check_bins(n_bins: int, strategy: str) -> None:
    if isinstance(n_bins, bool) or not isinstance(n_bins, (int, np.integer)):
        raise TypeError(f"n_bins must be a whole number, got {n_bins!r}")
    if n_bins < 1:
        raise ValueError(f"n_bins must be at least 1, got {n_bins}")
    if strategy not in ("uniform", "quantile"):
        raise ValueError(f"strategy must be 'uniform' or 'quantile', got {strategy!r}")


def _uniform_bins(rows: Observations, edges: Float64Array) -> NDArray[np.int64]:
    """Bins (lower, upper]; the first also holds 0."""
    return np.searchsorted(edges[1:-1], rows.scores, side="left").astype(np.int64)


def _quantile_bins(rows: Observations, n_bins: int) -> NDArray[np.int64]:
    """Put every distinct prediction, whole, into the bin that holds the middle of its weight."""
    starts = np.flatnonzero(np.concatenate(([True], rows.scores[1:] != rows.scores[:-1])))
    ends = np.append(starts[1:], len(rows))
    if rows.weights is None:
        # Twice the middle is a whole number: exact.
        bins = (starts + ends) * n_bins // (2 * len(rows))
    else:
        scaled, _ = scaled_weights(rows.weights)
        end_weights = np.cumsum(np.add.reduceat(scaled, starts))
        start_weights = np.concatenate(([0.0], end_weights[:-1]))
        bins = np.floor_divide((start_weights + end_weights) * n_bins, 2.0 * end_weights[-1]).astype(np.int64)
    return np.repeat(np.minimum(bins, n_bins - 1), ends - starts).astype(np.int64)


@dataclass(frozen=True)
class _BinSums:
    bins: NDArray[np.int64]  # the bins that hold rows
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    edges: Float64Array
    rows: Observations  # in canonical order
    weight: list[float]
    prediction: list[float]  # sum of w p
    label: list[float]  # sum of w y
    gap: list[float]  # sum of w y - w p, rounded once
    total: float


def _sum_bins(
    labels: ArrayLike, predictions: ArrayLike, sample_weight: ArrayLike | None, n_bins: int, strategy: str
) -> _BinSums:
    _check_bins(n_bins, strategy)
    rows = collect(predictions, labels, sample_weight, scores_name="predictions", probabilities=True)
    # Sorted in full, so that even the float64 running weights of _quantile_bins are free of the rows' order.
    rows = rows.in_canonical_order()
    edges = np.arange(n_bins + 1) / n_bins
    bins = _uniform_bins(rows, edges) if strategy == "uniform" else _quantile_bins(rows, n_bins)
    starts = np.flatnonzero(np.concatenate(([True], bins[1:] != bins[:-1]))).astype(np.int64)
    ends = np.append(starts[1:], len(rows)).astype(np.int64)

    weights = np.ones(len(rows)) if rows.weights is None else scaled_weights(rows.weights)[0]
    weighted_predictions, weighted_labels = weights * rows.scores, weights * rows.labels
    cuts = [slice(int(start), int(end)) for start, end in zip(starts, ends, strict=True)]
    return _BinSums(
        bins=bins[starts],
        starts=starts,
        ends=ends,
        edges=edges,
        rows=rows,
        weight=[exact_sum(weights[cut]) for cut in cuts],
        prediction=[exact_sum(weighted_predictions[cut]) for cut in cuts],
        label=[exact_sum(weighted_labels[cut]) for cut in cuts],
        gap=[exact_sum(weighted_labels[cut], -weighted_predictions[cut]) for cut in cuts],
        total=exact_sum(weights),
    )


def reliability(
    labels: ArrayLike,
    predictions: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
) -> ReliabilityTable:
    """The table behind a binned reliability diagram.

    Parameters
    ----------
    labels, predictions : array_like, shape (n,) or (n, 1)
        In [0, 1]; labels may be rates.
    sample_weight : array_like, shape (n,), optional
        Finite, not negative; rows of weight zero are dropped.
    n_bins : int
    strategy : {"uniform", "quantile"}
        "uniform": bins (k / n_bins, (k + 1) / n_bins], the edges rounded to float64, as in scikit-learn.
        "quantile": bins of equal weight. Equal predictions stay together, in the bin that holds the middle of
        their weight, so that the order of the rows cannot matter; bins then hold equal weight only nearly.

    Returns
    -------
    ReliabilityTable
        Bins without rows are left out. The same bits for every order of the rows. O(n log n).

    Raises
    ------
    ValueError, TypeError
        Naming the argument and the position.
    """
    sums = _sum_bins(labels, predictions, sample_weight, n_bins, strategy)
    weight = np.array(sums.weight)
    if strategy == "uniform":
        lower, upper = sums.edges[sums.bins], sums.edges[sums.bins + 1]
    else:
        lower, upper = sums.rows.scores[sums.starts], sums.rows.scores[sums.ends - 1]
    return ReliabilityTable(
        lower=lower,
        upper=upper,
        mean_prediction=np.array(sums.prediction) / weight,
        observed_rate=np.array(sums.label) / weight,
        weight=weight / sums.total,
        count=sums.ends - sums.starts,
    )


def expected_calibration_error(
    labels: ArrayLike,
    predictions: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: Strategy = "uniform",
) -> float:
    """The weighted mean over bins of |observed rate - mean prediction| (Naeini et al. 2015, Guo et al. 2017).

    Parameters, errors and complexity are those of `reliability`: "uniform" gives bins of equal width,
    "quantile" bins of equal mass. It depends on the bins; the miscalibration term of `brier_decomposition`
    does not.

    Returns
    -------
    float
        Absolute error below 2^-50; without weights each bin's gap is exact, rounded once. The same bits for
        every order of the rows.
    """
    sums = _sum_bins(labels, predictions, sample_weight, n_bins, strategy)
    return exact_sum(np.abs(np.array(sums.gap))) / sums.total
