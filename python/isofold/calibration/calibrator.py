"""One calibration curve: from scores to rates, by isotonic regression."""

from __future__ import annotations

import math
import os

import numpy as np
from numpy.typing import ArrayLike

from isofold import _native
from isofold._arrays import FloatArray, thread_count
from isofold.calibration._atomic_file import atomic_writer
from isofold.calibration._inputs import Float64Array, as_column, check_finite, collect
from isofold.calibration._pooled_fit import PooledFit, pooled_fit
from isofold.calibration.curve_file import MAX_BYTES, Curve, read_curve, write_curve


def _check_bound(value: float | None, name: str) -> float | None:
    if value is None:
        return None
    bound = float(value)
    if not 0.0 <= bound <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {value}")
    return bound + 0.0


def _knots(fit: PooledFit) -> tuple[Float64Array, Float64Array]:
    """The first and last distinct score of every run of equal values: interpolation needs no others."""
    changes = fit.values[1:] != fit.values[:-1]
    kept = np.concatenate(([True], changes)) | np.concatenate((changes, [True]))
    return fit.scores[kept], fit.values[kept]


class Calibrator:
    """An isotonic calibration curve over one score.

    `fit` takes the exact isotonic regression of the labels over the scores, equal scores pooled (-0.0 equals
    0.0; nothing else does, however close). `predict` interpolates linearly between the knots: the exact real
    value, rounded once, and therefore monotone; outside the scores seen it is constant.

    Parameters
    ----------
    increasing : bool
        Whether the rate rises with the score.
    floor, ceiling : float, optional
        In [0, 1]. The fitted values are clipped to them, as by scikit-learn's y_min and y_max.
    threads : int, optional
        At least 1. Default: ISOFOLD_NUM_THREADS of the environment, else the processors available. Changes no
        bit.

    Attributes
    ----------
    knots_x_ : ndarray of float64, shape (k,)
        Scores, strictly rising: the first and last distinct score of every run of equal fitted values.
    knots_y_ : ndarray of float64, shape (k,)
        The fitted rates there, each the exact weighted mean of its block, rounded once and clipped.
    score_name : str or None
        Name of the column the scores came from. Free to set; kept in the curve file.

    Notes
    -----
    Results agree with scikit-learn's IsotonicRegression(out_of_bounds="clip") to rounding, except that
    scikit-learn merges scores closer than an absolute tolerance, which is wrong for small ones.
    Source: Barlow et al. (1972); 'Merge Hulls Without Copying Vertices', Sections 3 and 4.

    Examples
    --------
    >>> curve = Calibrator().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> curve.predict([0.1, 0.25, 0.35, 2.0]).tolist()
    [0.0, 0.5, 0.75, 1.0]
    """

    knots_x_: Float64Array
    knots_y_: Float64Array

    def __init__(
        self,
        *,
        increasing: bool = True,
        floor: float | None = None,
        ceiling: float | None = None,
        threads: int | None = None,
    ) -> None:
        if not isinstance(increasing, (bool, np.bool_)):
            raise TypeError(f"increasing must be True or False, got {increasing!r}")
        self.increasing = bool(increasing)
        self.floor = _check_bound(floor, "floor")
        self.ceiling = _check_bound(ceiling, "ceiling")
        if self.floor is not None and self.ceiling is not None and self.floor > self.ceiling:
            raise ValueError(f"floor must not be above ceiling, got {floor} and {ceiling}")
        thread_count(threads)
        self.threads = threads
        self.score_name: str | None = None

    def __repr__(self) -> str:
        knots = f"{self.knots_x_.shape[0]} knots" if hasattr(self, "knots_x_") else "not fitted"
        return (
            f"Calibrator(increasing={self.increasing}, floor={self.floor}, ceiling={self.ceiling}, "
            f"threads={self.threads}) <{knots}>"
        )

    def fit(self, scores: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None = None) -> Calibrator:
        """Fit the curve.

        Parameters
        ----------
        scores : array_like, shape (n,) or (n, 1)
            Any finite reals; integers beyond 2^53 are rounded to float64.
        labels : array_like, shape (n,) or (n, 1)
            Outcomes or rates in [0, 1].
        sample_weight : array_like, shape (n,), optional
            Finite, not negative. A weight means repetition; rows of weight zero are dropped, after the check.

        Returns
        -------
        self
            The same bits for every order of the rows and number of threads. O(n log n) for the sort, O(n) for
            the fit.

        Raises
        ------
        ValueError
            Naming the argument and the position (from 0) of a value that is not finite or out of range; when
            lengths differ; when no row has a positive weight. The curve held before then stays.
        TypeError
            When an argument does not hold real numbers.
        """
        fit = pooled_fit(
            collect(scores, labels, sample_weight),
            increasing=self.increasing,
            lower=-math.inf if self.floor is None else self.floor,
            upper=math.inf if self.ceiling is None else self.ceiling,
            threads=thread_count(self.threads),
        )
        self.knots_x_, self.knots_y_ = _knots(fit)
        return self

    def predict(self, scores: ArrayLike) -> FloatArray:
        """Return the calibrated rates.

        Parameters
        ----------
        scores : array_like, shape (n,) or (n, 1)
            Finite reals.

        Returns
        -------
        ndarray, shape (n,)
            Float32 for float32 scores, float16 for float16, else float64: the exact interpolation, rounded
            once to that dtype. O(log k) a score.

        Raises
        ------
        ValueError
            Naming the position of a score that is not finite.
        RuntimeError
            Before `fit`.
        """
        self._check_fitted()
        points = as_column(scores, "scores")
        check_finite(points, "scores")
        return _native.interpolate(
            knots_x=self.knots_x_,
            knots_y=self.knots_y_,
            points=points,
            out_dtype=points.dtype.name,
            threads=thread_count(self.threads),
        )

    def _check_fitted(self) -> None:
        if not hasattr(self, "knots_x_"):
            raise RuntimeError("this Calibrator has no curve yet: call fit or load first")

    def to_json(self) -> str:
        """Return the curve file's text (docs/curve_format.md); `from_json` gets the same bits back."""
        self._check_fitted()
        return write_curve(
            Curve(self.increasing, self.floor, self.ceiling, self.score_name, self.knots_x_, self.knots_y_)
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Calibrator:
        """Read a curve file's text. Raises CurveFileError (a ValueError) for anything but a sound one."""
        curve = read_curve(text)
        calibrator = cls(increasing=curve.increasing, floor=curve.floor, ceiling=curve.ceiling)
        calibrator.score_name = curve.score_name
        calibrator.knots_x_, calibrator.knots_y_ = curve.knots_x, curve.knots_y
        return calibrator

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the curve file, under a temporary name in the same folder, then renamed. Raises OSError."""
        text = self.to_json()
        with atomic_writer(path) as stream:
            stream.write(text.encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Calibrator:
        """Read a curve file. Raises OSError, or CurveFileError for anything but a sound one."""
        with open(path, "rb") as stream:
            text = stream.read(MAX_BYTES + 1)
        return cls.from_json(text)
