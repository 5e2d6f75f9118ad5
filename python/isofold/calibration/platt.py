"""Platt scaling: a logistic curve with two parameters, the usual baseline beside isotonic regression."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from isofold._arrays import FloatArray
from isofold.calibration._inputs import (
    Float64Array,
    as_column,
    check_finite,
    check_in_unit_interval,
    collect,
)
from isofold.calibration._sums import scaled_weights

_MAX_STEPS = 100
_POLISHING_STEPS = 3
# 1 - 2^-53 is the largest float64 below 1, so this is the least clipping that treats 0 and 1 alike.
_SMALLEST_GAP = 2.0**-53


def _sigmoid(margin: Float64Array) -> Float64Array:
    decay = np.exp(-np.abs(margin))
    return np.where(margin >= 0, 1.0, decay) / (1.0 + decay)


def _loss(margin: Float64Array, targets: Float64Array, weights: Float64Array) -> float:
    terms = np.log1p(np.exp(-np.abs(margin))) + np.maximum(margin, 0.0) - targets * margin
    return float(np.sum(weights * terms))


def _newton_step(
    z: Float64Array, margin: Float64Array, targets: Float64Array, weights: Float64Array
) -> tuple[float, float, float]:
    """The step in (slope, intercept), to be subtracted, and the fall in loss it promises, times two."""
    fitted = _sigmoid(margin)
    residual = weights * (fitted - targets)
    curvature = weights * fitted * (1.0 - fitted)
    g1, g0 = float(np.sum(residual * z)), float(np.sum(residual))
    h11, h10, h00 = (float(np.sum(curvature * factor)) for factor in (z * z, z, 1.0))
    # A ridge near rounding level keeps the system solvable; it changes the path and not the optimum.
    ridge = 1e-13 * (h11 + h00)
    h11, h00 = h11 + ridge, h00 + ridge
    determinant = h11 * h00 - h10 * h10
    step1, step0 = (h00 * g1 - h10 * g0) / determinant, (h11 * g0 - h10 * g1) / determinant
    return step1, step0, step1 * g1 + step0 * g0


def _maximise_likelihood(
    z: Float64Array, targets: Float64Array, weights: Float64Array
) -> tuple[float, float]:
    """Slope and intercept of least mean logistic loss, which is convex: Newton with halved steps.

    `z` has mean 0 and deviation 1, `weights` sum to 1.
    """
    rate = float(np.sum(weights * targets))
    slope, intercept = 0.0, math.log(rate / (1.0 - rate))
    for _ in range(_MAX_STEPS):
        margin = slope * z + intercept
        loss = _loss(margin, targets, weights)
        step1, step0, promised = _newton_step(z, margin, targets, weights)
        if promised <= 1e-8 * loss:
            break
        size = 1.0
        while size > 1e-6 and (
            _loss((slope - size * step1) * z + (intercept - size * step0), targets, weights) >= loss
        ):
            size *= 0.5
        slope, intercept = slope - size * step1, intercept - size * step0
    # Differences in loss drown in rounding half way to the optimum. Full steps go on, squaring the error.
    for _ in range(_POLISHING_STEPS):
        step1, step0, _ = _newton_step(z, slope * z + intercept, targets, weights)
        slope, intercept = slope - step1, intercept - step0
    return slope, intercept


def _smoothed_targets(labels: Float64Array, scaled: Float64Array, exponent: int) -> Float64Array:
    """Platt's targets; the weights are `scaled` * 2^exponent."""
    with np.errstate(over="ignore"):
        positive = float(np.ldexp(np.sum(scaled * labels), exponent))
        negative = float(np.ldexp(np.sum(scaled * (1.0 - labels)), exponent))
    high = min(1.0 - 1.0 / (positive + 2.0), 1.0 - _SMALLEST_GAP)
    low = max(1.0 / (negative + 2.0), _SMALLEST_GAP)
    return labels * high + (1.0 - labels) * low


class PlattScaling:
    """sigmoid(slope * x + intercept), fitted by maximum likelihood; x is the logit of the score.

    The targets are Platt's smoothed ones, (N+ + 1) / (N+ + 2) and 1 / (N- + 2), so that separable data have a
    finite answer (Platt 1999; Lin, Lin and Weng 2007). A label y in between, a rate, gets y times the first
    plus 1 - y times the second; N+ and N- are the total weights of y and of 1 - y.

    Parameters
    ----------
    on_logit : bool
        True: scores are probabilities in [0, 1], clipped to [2^-53, 1 - 2^-53] before the logit. False: they
        are any finite reals and enter as they are. x is standardised first: its unit does not matter.

    Attributes
    ----------
    slope_, intercept_ : float
        In terms of x. Prediction uses the standardised form.
    """

    def __init__(self, *, on_logit: bool = True) -> None:
        self.on_logit = on_logit

    def _feature(self, scores: Float64Array) -> Float64Array:
        if not self.on_logit:
            return scores
        clipped = np.clip(scores, _SMALLEST_GAP, 1.0 - _SMALLEST_GAP)
        return np.log(clipped) - np.log1p(-clipped)

    def fit(
        self, scores: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> PlattScaling:
        """Fit the two parameters.

        Parameters
        ----------
        scores : array_like, shape (n,) or (n, 1)
        labels : array_like, shape (n,)
            Rates in [0, 1].
        sample_weight : array_like, shape (n,), optional
            Finite, not negative; rows of weight zero are dropped. Weights count as repetitions in N+ and N-.

        Returns
        -------
        self
            The same bits for every order of the rows. O(n log n), about ten passes.

        Raises
        ------
        ValueError, TypeError
            Naming the argument and the position.
        """
        rows = collect(scores, labels, sample_weight, probabilities=self.on_logit).in_canonical_order()
        x = self._feature(rows.scores)
        self._exponent = int(np.frexp(np.abs(x).max())[1])
        x = np.ldexp(x, -self._exponent)
        scaled, weight_exponent = np.ones(len(rows)), 0
        if rows.weights is not None:
            scaled, weight_exponent = scaled_weights(rows.weights)
        targets = _smoothed_targets(rows.labels, scaled, weight_exponent)
        weights = scaled / np.sum(scaled)

        self._centre = float(np.sum(weights * x))
        deviation = float(np.sqrt(np.sum(weights * (x - self._centre) ** 2)))
        # One distinct score leaves no slope to estimate: z is then 0 everywhere.
        self._deviation = deviation if x[0] != x[-1] and deviation > 0.0 else math.inf
        z = (x - self._centre) / self._deviation
        self._slope, self._intercept = _maximise_likelihood(z, targets, weights)
        with np.errstate(over="ignore"):
            self.slope_ = float(np.ldexp(self._slope / self._deviation, -self._exponent))
        self.intercept_ = self._intercept - self._slope * self._centre / self._deviation
        return self

    def predict(self, scores: ArrayLike) -> FloatArray:
        """Return the fitted probabilities, shape (n,); float32 for float32 scores, float16 alike."""
        if not hasattr(self, "slope_"):
            raise RuntimeError("this PlattScaling is not fitted: call fit first")
        column = as_column(scores, "scores")
        if self.on_logit:
            check_in_unit_interval(column, "scores")
        else:
            check_finite(column, "scores")
        x = np.ldexp(self._feature(column.astype(np.float64)), -self._exponent)
        margin = self._slope * ((x - self._centre) / self._deviation) + self._intercept
        return _sigmoid(margin).astype(column.dtype)
