"""CORP: reliability by isotonic regression instead of bins.

Dimitriadis, Gneiting and Jordan (2021), 'Stable reliability diagrams for probabilistic classifiers', PNAS.
The recalibrated prediction of a row is the isotonic fit of the labels over the predictions, equal predictions
pooled. Nothing is chosen: no number of bins, no bandwidth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isofold._arrays import thread_count
from isofold.calibration._inputs import Float64Array, collect
from isofold.calibration._pooled_fit import exact_mean, pooled_fit
from isofold.calibration._sums import weight_totals, weighted_mean


class BrierDecomposition(NamedTuple):
    """score = miscalibration - discrimination + uncertainty, but for rounding. No term is negative."""

    score: float  # the mean Brier score
    miscalibration: float  # MCB: what recalibration would win; 0 when the predictions are calibrated
    discrimination: float  # DSC: how much better than the constant rate the recalibrated predictions are
    uncertainty: float  # UNC: the score of the constant rate


class ReliabilityCurve(NamedTuple):
    """One entry for each distinct prediction, rising."""

    predictions: Float64Array
    recalibrated: Float64Array  # the exact isotonic fit there, rounded once
    weight: Float64Array  # total weight of the rows with that prediction


def brier_decomposition(
    labels: ArrayLike,
    predictions: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    threads: int | None = None,
) -> BrierDecomposition:
    """The CORP decomposition of the mean Brier score.

    Parameters
    ----------
    labels, predictions : array_like, shape (n,) or (n, 1)
        In [0, 1]; labels may be rates.
    sample_weight : array_like, shape (n,), optional
        Finite, not negative; rows of weight zero are dropped.
    threads : int, optional

    Returns
    -------
    BrierDecomposition
        (score, miscalibration, discrimination, uncertainty), each within 2^-49 of the real value; the same
        bits for every order of the rows and number of threads. O(n log n).

    Raises
    ------
    ValueError, TypeError
        Naming the argument and the position.
    """
    workers = thread_count(threads)
    observations = collect(predictions, labels, sample_weight, scores_name="predictions", probabilities=True)
    fit = pooled_fit(observations, threads=workers)
    rows, recalibrated = fit.rows, fit.value_of_rows()
    rate = exact_mean(rows.labels, rows.weights, threads=workers)
    # S - S_C term by term, which is 0 where nothing changes; S_R - S_C as the sum of squares that it is for a
    # least-squares fit. Rounding may still leave the first just below 0, where the real value never is.
    gained = (rows.scores - recalibrated) * ((rows.scores - rows.labels) + (recalibrated - rows.labels))
    return BrierDecomposition(
        score=weighted_mean((rows.scores - rows.labels) ** 2, rows.weights),
        miscalibration=max(weighted_mean(gained, rows.weights), 0.0),
        discrimination=weighted_mean((recalibrated - rate) ** 2, rows.weights),
        uncertainty=weighted_mean((rows.labels - rate) ** 2, rows.weights),
    )


def reliability_curve(
    labels: ArrayLike,
    predictions: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    threads: int | None = None,
) -> ReliabilityCurve:
    """The CORP reliability curve: recalibrated against original prediction.

    Parameters, errors and complexity are those of `brier_decomposition`.

    Returns
    -------
    ReliabilityCurve
        (predictions, recalibrated, weight), float64, one entry for each distinct prediction.
    """
    workers = thread_count(threads)
    observations = collect(predictions, labels, sample_weight, scores_name="predictions", probabilities=True)
    fit = pooled_fit(observations, threads=workers)
    if fit.rows.weights is None:
        weight = np.diff(fit.group_offsets).astype(np.float64)
    else:
        weight = weight_totals(fit.rows.weights, fit.group_offsets)
    return ReliabilityCurve(fit.scores, fit.values, weight)
