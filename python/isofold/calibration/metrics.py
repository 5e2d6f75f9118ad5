"""Proper scores. Every function takes the truth first, then the prediction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from isofold.calibration._inputs import as_column, collect
from isofold.calibration._sums import weighted_mean


def brier_score(
    labels: ArrayLike, predictions: ArrayLike, *, sample_weight: ArrayLike | None = None
) -> float:
    """The mean squared difference of label and prediction (Brier 1950).

    Parameters
    ----------
    labels, predictions : array_like, shape (n,) or (n, 1)
        In [0, 1]; labels may be rates. Any real dtype, converted to float64.
    sample_weight : array_like, shape (n,), optional
        Finite, not negative; rows of weight zero are dropped.

    Returns
    -------
    float
        Relative error below 8 * 2^-53, underflow aside; the same bits for every order of the rows. O(n).

    Raises
    ------
    ValueError
        Naming the argument and position of a value out of range; when no row has a positive weight.
    TypeError
        When an argument does not hold real numbers.
    """
    rows = collect(predictions, labels, sample_weight, scores_name="predictions", probabilities=True)
    return weighted_mean((rows.scores - rows.labels) ** 2, rows.weights)


class LogLoss(NamedTuple):
    """What `log_loss` returns."""

    value: float  # the mean with predictions clipped to [epsilon, 1 - epsilon], in nats
    infinite_terms: int  # rows (of positive weight) whose unclipped loss is infinite
    epsilon: float  # the clipping used


def log_loss(
    labels: ArrayLike,
    predictions: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    epsilon: float | None = None,
) -> LogLoss:
    """The mean of -y log p - (1 - y) log(1 - p), and how many terms of it would be infinite without clipping.

    A prediction of 0 for a label above 0, or of 1 for a label below 1, has infinite loss. Clipping turns that
    into a number that depends on `epsilon`, so the count and `epsilon` come with it.

    Parameters
    ----------
    labels, predictions, sample_weight
        As for `brier_score`.
    epsilon : float, optional
        In (0, 0.5). Default: the machine epsilon of the predictions' dtype, as in scikit-learn.

    Returns
    -------
    LogLoss
        (value, infinite_terms, epsilon). The value is within a few units in the last place on one machine's
        logarithm; the same bits for every order of the rows. O(n log n).

    Raises
    ------
    ValueError, TypeError
        As for `brier_score`; ValueError for an `epsilon` outside (0, 0.5).
    """
    if epsilon is None:
        epsilon = float(np.finfo(as_column(predictions, "predictions").dtype).eps)
    if not 0.0 < epsilon < 0.5:
        raise ValueError(f"epsilon must lie in (0, 0.5), got {epsilon}")
    rows = collect(predictions, labels, sample_weight, scores_name="predictions", probabilities=True)
    impossible = ((rows.scores == 0) & (rows.labels > 0)) | ((rows.scores == 1) & (rows.labels < 1))

    # A vectorised logarithm may round differently in the body and the tail of an array. Taking it over the
    # sorted distinct predictions gives every prediction one logarithm, whatever the order of the rows.
    distinct, index = np.unique(np.clip(rows.scores, epsilon, 1.0 - epsilon), return_inverse=True)
    terms = -(rows.labels * np.log(distinct)[index] + (1.0 - rows.labels) * np.log1p(-distinct)[index])
    return LogLoss(weighted_mean(terms, rows.weights), int(np.count_nonzero(impossible)), float(epsilon))
