"""scikit-learn's isotonic regression, computed by isofold: same names, arguments, attributes and conventions.

Replace ``from sklearn.isotonic import IsotonicRegression`` by ``from isofold.sklearn import
IsotonicRegression``. Values agree with scikit-learn's to rounding, not to the bit. What differs, on purpose:

- only equal scores are pooled. scikit-learn also pools scores closer than an absolute 1e-15 (float64) or 1e-6
  (float32), which destroys small scores; `merge_tolerance` brings that back for those who want it;
- a group of equal scores is pooled exactly: its mean is never rounded before the fit. Nor are labels and
  weights
  rounded to the scores' dtype;
- a negative sample weight, and y_min above y_max, are a ValueError;
- ``increasing='auto'`` without a correlation to go by (constant scores or labels, one sample) means
  increasing.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

try:
    from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin
    from sklearn.isotonic import check_increasing
    from sklearn.utils import check_array, check_consistent_length, column_or_1d, metadata_routing
    from sklearn.utils.validation import check_is_fitted
except ModuleNotFoundError as _error:
    raise ModuleNotFoundError(
        f"isofold.sklearn needs scikit-learn: pip install 'isofold[sklearn]' (no module {_error.name!r})",
        name=_error.name,
    ) from _error

from isofold import _native
from isofold._arrays import FloatArray, fit_bounds, flat, thread_count
from isofold._ties import tie_groups
from isofold.isotonic import _fit, _pose

__all__ = ["IsotonicRegression", "check_increasing", "isotonic_regression"]

_FLOATS = (np.float64, np.float32)


def isotonic_regression(
    y: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    y_min: float | None = None,
    y_max: float | None = None,
    increasing: bool = True,
    threads: int | None = None,
) -> FloatArray:
    """The isotonic fit of one row; a drop-in for `sklearn.isotonic.isotonic_regression`.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The data, finite. float32 stays float32; everything else becomes float64.
    sample_weight : array-like of shape (n_samples,), default=None
        Finite weights greater than zero, in their own dtype; None means ones.
    y_min, y_max : float, default=None
        The fit is clipped to these.
    increasing : bool, default=True
        False fits a non-increasing row.
    threads : int, default=None
        See `isofold.isotonic_regression`.

    Returns
    -------
    ndarray of shape (n_samples,)
        Exact, rounded once to the dtype of y.

    Raises
    ------
    ValueError
        NaN or infinity in y, weights not finite and positive, more than one dimension, y_min above y_max.

    Notes
    -----
    O(n) work.
    """
    values = check_array(y, ensure_2d=False, input_name="y", dtype=list(_FLOATS))
    if values.ndim != 1:
        raise ValueError(f"y must be a 1d array, but has shape {values.shape}")
    weights = None
    if sample_weight is not None:
        weights = _sample_weights(sample_weight, values.shape[0])
    problem = _pose(values, weights, increasing, y_min, y_max, -1, None, threads)
    return _fit(problem, weight_name="sample_weight")[0]


class IsotonicRegression(RegressorMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Isotonic regression of y on a score; a drop-in for `sklearn.isotonic.IsotonicRegression`.

    Predictions interpolate linearly between the fitted scores: the exact value on the stored knots, rounded
    once, and so monotone without exception.

    Parameters
    ----------
    y_min, y_max : float, default=None
        Predictions are clipped to these.
    increasing : bool or 'auto', default=True
        The direction of the curve. 'auto' takes the sign of Spearman's rank correlation, and increasing where
        there is none (constant scores or labels, or a single sample).
    out_of_bounds : {'nan', 'clip', 'raise'}, default='nan'
        What a score outside the training scores gets: NaN, the value at the nearest end, or a ValueError. A
        curve of a single score predicts its value everywhere.
    merge_tolerance : float, default=0.0
        Scores closer than this to the first of their group share one value, groups being formed from the
        lowest score upwards. 0 pools equal scores only.
    threads : int, default=None
        See `isofold.isotonic_regression`.

    Attributes
    ----------
    X_min_, X_max_ : float
        The lowest and the highest training score.
    X_thresholds_ : ndarray of shape (n_thresholds,)
        The knots' scores, strictly rising.
    y_thresholds_ : ndarray of shape (n_thresholds,)
        The knots' values, in the dtype of X. Inner knots of a flat stretch are left out.
    f_ : callable
        The curve through the knots, out_of_bounds included.
    increasing_ : bool
        The direction taken.

    Notes
    -----
    Sorting takes O(n log n), the fit O(n), a prediction O(log k) for k thresholds. Tied scores take one
    value, the 'secondary' approach of de Leeuw, Hornik and Mair 2009 (Isotone Optimization in R, section 2).

    Examples
    --------
    >>> from isofold.sklearn import IsotonicRegression
    >>> curve = IsotonicRegression(out_of_bounds="clip").fit([0, 0.1, 0.2, 0.3], [0, 1, 0, 1])
    >>> curve.predict([0.05, 0.15, 0.25, 9]).tolist()
    [0.25, 0.5, 0.75, 1.0]
    """

    # scikit-learn's own name for the argument of predict and transform; it is no metadata.
    __metadata_request__predict = {"T": metadata_routing.UNUSED}  # noqa: RUF012
    __metadata_request__transform = {"T": metadata_routing.UNUSED}  # noqa: RUF012

    def __init__(
        self,
        *,
        y_min: float | None = None,
        y_max: float | None = None,
        increasing: bool | Literal["auto"] = True,
        out_of_bounds: Literal["nan", "clip", "raise"] = "nan",
        merge_tolerance: float = 0.0,
        threads: int | None = None,
    ) -> None:
        self.y_min = y_min
        self.y_max = y_max
        self.increasing = increasing
        self.out_of_bounds = out_of_bounds
        self.merge_tolerance = merge_tolerance
        self.threads = threads

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the curve.

        Parameters
        ----------
        X : array-like of shape (n_samples,) or (n_samples, 1)
            Scores, finite. float32 stays float32; everything else becomes float64.
        y : array-like of shape (n_samples,)
            Targets, finite; float32 and float64 are used as they are.
        sample_weight : array-like of shape (n_samples,), default=None
            Finite weights of at least zero, in their own dtype. A weight of zero leaves its sample out; any
            other stands for as many repetitions.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Arrays that are empty, not finite, of different lengths or of more than one feature; a negative
            weight, or none above zero; parameters out of range.
        """
        if y is None:
            raise ValueError("IsotonicRegression requires y to be passed, but the target y is None")
        with _native.DefaultFloatEnvironment():
            scores = check_array(X, input_name="X", dtype=list(_FLOATS), ensure_2d=False)
            targets = check_array(y, input_name="y", dtype=list(_FLOATS), ensure_2d=False)
            targets = column_or_1d(targets, warn=True)
            check_consistent_length(scores, targets, sample_weight)
            self.X_thresholds_, self.y_thresholds_ = self._build_y(scores, targets, sample_weight)
            self._build_f(self.X_thresholds_, self.y_thresholds_)
        return self

    def predict(self, T: ArrayLike) -> FloatArray:
        """The curve at new scores.

        Parameters
        ----------
        T : array-like of shape (n_samples,) or (n_samples, 1)
            Scores, finite; taken in the dtype of the training scores.

        Returns
        -------
        ndarray of shape (n_samples,), of the dtype of the training scores

        Raises
        ------
        ValueError
            NaN or infinity in T, more than one feature, or with out_of_bounds='raise' a score outside.
        """
        return self._transform(T)

    def transform(self, T: ArrayLike) -> FloatArray:
        """The curve at new scores: as `predict`, in the container that `set_output` asks for."""
        return self._transform(T)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """The output column's name: the class's, in lower case, and 0. `input_features` is ignored."""
        check_is_fitted(self, "f_")
        return np.asarray([f"{type(self).__name__.lower()}0"], dtype=object)

    def _build_y(
        self,
        X: FloatArray,
        y: FloatArray,
        sample_weight: ArrayLike | None,
        trim_duplicates: bool = True,
    ) -> tuple[FloatArray, FloatArray]:
        """The knots; sets increasing_, X_min_ and X_max_. Untrimmed: one for every training score."""
        self._check_params()
        scores = _one_column(X)
        weights = None
        if sample_weight is not None:
            weights = _sample_weights(sample_weight, scores.size)
            scores, y, weights = _without_zero_weights(scores, y, weights)
        self.increasing_ = _direction(self.increasing, scores, y)
        order = np.argsort(scores)
        scores = scores[order] + 0  # no knot at -0.0
        groups = tie_groups(scores, float(self.merge_tolerance))
        problem = _pose(
            y[order],
            None if weights is None else weights[order],
            self.increasing_,
            self.y_min,
            self.y_max,
            axis=-1,
            offsets=None,
            threads=self.threads,
        )
        fitted, _ = _fit(
            problem,
            tie_offsets=None if groups.size - 1 == scores.size else groups,
            out_dtype=scores.dtype.name,
            weight_name="sample_weight",
        )
        self.X_min_, self.X_max_ = scores[0], scores[-1]
        # A merged group reaches from its first score to its last: a knot at each, so that all of it shares
        # the value.
        ends = np.union1d(groups[:-1], groups[1:] - 1) if self.merge_tolerance > 0 else groups[:-1]
        knots, values = scores[ends], fitted[ends]
        keep = np.concatenate(([True], knots[1:] != knots[:-1]))
        knots, values = knots[keep], values[keep]
        if trim_duplicates:
            keep = np.ones(values.size, dtype=bool)
            keep[1:-1] = (values[1:-1] != values[:-2]) | (values[1:-1] != values[2:])
            knots, values = knots[keep], values[keep]
        return knots, values

    def _build_f(self, X: FloatArray, y: FloatArray) -> None:
        self.f_ = _Curve(X, y, raises=self.out_of_bounds == "raise")

    def _transform(self, T: ArrayLike) -> FloatArray:
        with _native.DefaultFloatEnvironment():
            dtype = self.f_.dtype if hasattr(self, "f_") else np.dtype(np.float64)
            points = _one_column(check_array(T, dtype=dtype, ensure_2d=False))
            check_is_fitted(self, "f_")
            clip = self.out_of_bounds == "clip"
            return self.f_.evaluate(points, clip=clip, threads=thread_count(self.threads))

    def _check_params(self) -> None:
        if self.increasing not in (True, False, "auto"):
            raise ValueError(f"increasing must be True, False or 'auto', not {self.increasing!r}")
        if self.out_of_bounds not in ("nan", "clip", "raise"):
            raise ValueError(f"out_of_bounds must be 'nan', 'clip' or 'raise', not {self.out_of_bounds!r}")
        tolerance: object = self.merge_tolerance
        if not isinstance(tolerance, Real) or not 0 <= float(tolerance) < np.inf:
            raise ValueError(f"merge_tolerance must be a finite number of at least 0, not {tolerance!r}")
        fit_bounds(self.y_min, self.y_max)
        thread_count(self.threads)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = True
        tags.input_tags.two_d_array = False
        return tags


class _Curve:
    """Linear interpolation between knots, exact and rounded once to the points' dtype."""

    __slots__ = ("_x", "_y", "raises", "x", "y")

    def __init__(self, x: FloatArray, y: FloatArray, *, raises: bool) -> None:
        self.x = x
        self.y = y
        self.raises = raises
        self._x = flat(x.astype(np.float64, copy=False))
        self._y = flat(y.astype(np.float64, copy=False))

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.x.dtype

    def __call__(self, points: ArrayLike) -> FloatArray:
        with _native.DefaultFloatEnvironment():
            array = np.asarray(points)
            if array.dtype not in (np.float32, np.float64):
                array = array.astype(np.float64)
            return self.evaluate(array, clip=False, threads=0)

    def evaluate(self, points: FloatArray, *, clip: bool, threads: int) -> FloatArray:
        values = _native.interpolate(self._x, self._y, flat(points), points.dtype.name, threads)
        values = values.reshape(points.shape)
        if clip or self._x.size == 1:
            return values
        below, above = points < self._x[0], points > self._x[-1]
        if self.raises:
            if below.any():
                raise ValueError(
                    f"A value ({points[below][0]}) in x_new is below the interpolation range's minimum value "
                    f"({self.x[0]})."
                )
            if above.any():
                raise ValueError(
                    f"A value ({points[above][0]}) in x_new is above the interpolation range's maximum value "
                    f"({self.x[-1]})."
                )
        values[below | above] = np.nan
        return values


def _one_column(X: FloatArray) -> FloatArray:
    if X.ndim == 1 or (X.ndim == 2 and X.shape[1] == 1):
        return X.reshape(-1)
    raise ValueError("Isotonic regression input X should be a 1d array or 2d array with 1 feature")


def _sample_weights(sample_weight: ArrayLike, samples: int) -> FloatArray:
    weights: FloatArray = check_array(
        sample_weight, input_name="sample_weight", dtype=list(_FLOATS), ensure_2d=False
    )
    if weights.shape != (samples,):
        raise ValueError(f"sample_weight has shape {weights.shape}, expected ({samples},)")
    return weights


def _without_zero_weights(
    scores: FloatArray, y: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    negative = weights < 0
    if negative.any():
        at = int(np.argmax(negative))
        raise ValueError(f"sample_weight must not be negative, but is {weights[at]} at position {at}")
    kept = weights > 0
    if kept.all():
        return scores, y, weights
    if not kept.any():
        raise ValueError("sample_weight is zero for every sample: there is nothing to fit")
    return scores[kept], y[kept], weights[kept]


def _direction(increasing: bool | str, scores: FloatArray, y: FloatArray) -> bool:
    if increasing != "auto":
        return bool(increasing)
    if np.all(scores == scores[0]) or np.all(y == y[0]):
        return True
    return bool(check_increasing(scores, y))
