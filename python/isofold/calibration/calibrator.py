"""Calibration curves: from scores to rates, by isotonic regression, for all rows and for segments of them."""

from __future__ import annotations

import math
import operator
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isofold import _native
from isofold._arrays import FloatArray, thread_count
from isofold.calibration._aggregated import expand
from isofold.calibration._atomic_file import atomic_writer
from isofold.calibration._inputs import Float64Array, Observations, as_column, check_finite, collect_kept
from isofold.calibration._segment_fit import Curves, FitOptions, fit_by_segment, fit_curves
from isofold.calibration.curve_file import MAX_BYTES, Curve, curves_end_to_end, read_curve, write_curve
from isofold.calibration.segment_curves import Segment, SegmentColumn, SegmentCurves
from isofold.calibration.segments import RowSegments, SegmentIndex, find_segments

DEFAULT_MIN_ROWS = 1_000
_MOST_MIN_ROWS = 2**53


@dataclass(frozen=True)
class Fallback:
    """What the global curve serves for one reason."""

    segments: int
    rows: float  # of the fit


def _check_bound(value: float | None, name: str) -> float | None:
    if value is None:
        return None
    bound = float(value)
    if not 0.0 <= bound <= 1.0:
        raise ValueError(f"{name} must lie in [0, 1], got {value}")
    return bound + 0.0


def _check_min_rows(min_rows: int) -> int:
    try:
        number = operator.index(min_rows)
    except TypeError:
        raise TypeError(f"min_rows must be a whole number, got {min_rows!r}") from None
    if isinstance(min_rows, (bool, np.bool_)) or not 1 <= number <= _MOST_MIN_ROWS:
        raise ValueError(f"min_rows must be from 1 to 2^53, got {min_rows!r}")
    return number


class Calibrator:
    """Isotonic calibration over one score: a curve for all rows, and curves for segments if wanted.

    `fit` takes the exact isotonic regression of the labels over the scores, equal scores pooled (-0.0 equals
    0.0; nothing else does, however close). `predict` interpolates linearly between the knots: the exact real
    value, rounded once, and therefore monotone; outside the scores seen it is constant.

    With segments the global curve, fitted to all rows, still serves those rows for which there is no curve of
    their own: of segments that the fit has not seen, that had one class of label only, or too few rows, and
    rows whose segment is null.

    Parameters
    ----------
    increasing : bool
        Whether the rate rises with the score.
    floor, ceiling : float, optional
        In [0, 1]. The fitted values are clipped to them, as by scikit-learn's y_min and y_max.
    threads : int, optional
        At least 1. Default: ISOFOLD_NUM_THREADS of the environment, else the processors available. Changes no
        bit.
    min_rows : int
        Segments with fewer rows of positive weight get no curve. Where events are rare, set it so high
        that a segment holds some tens of positives.

    Attributes
    ----------
    knots_x_ : ndarray of float64, shape (k,)
        The global curve's scores, strictly rising: the first and last distinct score of every run of equal
        fitted values.
    knots_y_ : ndarray of float64, shape (k,)
        The fitted rates there, each the exact weighted mean of its block, rounded once and clipped.
    score_name : str or None
        Name of the column the scores came from. Free to set; kept in the curve file.
    segment_columns_ : tuple of SegmentColumn
        Name and kind of each segment column of the fit; empty without segments.
    segments_ : tuple of Segment
        Every segment of the fit, by rising key: its key, counts, who serves it, and its knots.
    fallbacks_ : dict of str to Fallback
        What the global curve serves, by reason: "null", "single_class", "under_min_rows".

    Notes
    -----
    Results agree with scikit-learn's IsotonicRegression(out_of_bounds="clip") to rounding, except that
    scikit-learn merges scores closer than an absolute tolerance, which is wrong for small ones.
    Source: Barlow et al. (1972); 'Merge Hulls Without Copying Vertices', Sections 3 and 4.

    Examples
    --------
    >>> curve = Calibrator().fit([0.1, 0.2, 0.3, 0.4], [0, 1, 0, 1])
    >>> curve.predict([0.1, 0.25, 0.4, 2.0]).tolist()
    [0.0, 0.5, 1.0, 1.0]
    >>> scores, labels, country = [0.1, 0.9, 0.1, 0.9], [0, 1, 0, 0], ["A", "A", "B", "B"]
    >>> curves = Calibrator(min_rows=2).fit(scores, labels, segments=country)
    >>> curves.predict([0.9, 0.9, 0.9], segments=["A", "B", "new"]).tolist()
    [1.0, 0.5, 0.5]
    >>> curves.fallbacks_["single_class"]
    Fallback(segments=1, rows=2.0)
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
        min_rows: int = DEFAULT_MIN_ROWS,
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
        self.min_rows = _check_min_rows(min_rows)
        self.score_name: str | None = None
        self._by_segment: SegmentCurves | None = None

    def __repr__(self) -> str:
        state = f"{self.knots_x_.shape[0]} knots" if hasattr(self, "knots_x_") else "not fitted"
        if self._by_segment is not None:
            state += f", {len(self._curves) - 1} curves for {len(self.segments_)} segments"
        return (
            f"Calibrator(increasing={self.increasing}, floor={self.floor}, ceiling={self.ceiling}, "
            f"threads={self.threads}, min_rows={self.min_rows}) <{state}>"
        )

    @property
    def segment_columns_(self) -> tuple[SegmentColumn, ...]:
        self._check_fitted()
        return () if self._by_segment is None else self._by_segment.columns

    @property
    def segments_(self) -> tuple[Segment, ...]:
        self._check_fitted()
        return () if self._by_segment is None else self._by_segment.segments

    @property
    def fallbacks_(self) -> dict[str, Fallback]:
        self._check_fitted()
        null_rows = 0.0 if self._by_segment is None else self._by_segment.null_rows
        found = {"null": Fallback(0, null_rows)}
        for reason in ("single_class", "under_min_rows"):
            rows = [segment.counts.rows for segment in self.segments_ if segment.served_by == reason]
            found[reason] = Fallback(len(rows), float(sum(rows)))
        return found

    def fit(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        sample_weight: ArrayLike | None = None,
        segments: Any = None,
    ) -> Calibrator:
        """Fit the global curve and, with `segments`, the curves of all segments, in one batch.

        Parameters
        ----------
        scores : array_like, shape (n,) or (n, 1)
            Any finite reals; integers beyond 2^53 are rounded to float64.
        labels : array_like, shape (n,) or (n, 1)
            Outcomes or rates in [0, 1].
        sample_weight : array_like, shape (n,), optional
            Finite, not negative. A weight means repetition; rows of weight zero are dropped, after the check.
        segments : array_like or several, optional
            One column of n keys, or several: a dict, a data frame or an Arrow table (whose names are kept), a
            list of arrays, or an array of shape (n, columns). A list of keys is one column. Keys are strings,
            integers or booleans, of one kind within a column; whole floats count as integers. None and NaN
            are null.

        Returns
        -------
        self
            The same bits for every order of the rows and number of threads, and for a segment the same as
            without the others. O(n log n) for the sort, O(n) for the fit.

        Raises
        ------
        ValueError
            Naming the argument and the position (from 0) of a value that is not finite or out of range; when
            lengths differ; when no row has a positive weight. The curves held before then stay.
        TypeError
            When an argument does not hold real numbers, or segments something that is no key.
        """
        rows, kept = collect_kept(scores, labels, sample_weight)
        found = None
        if segments is not None:
            given = len(rows) if kept is None else kept.shape[0]
            found = find_segments(segments, given)
            if kept is not None:
                found = RowSegments(found.columns, found.keys, found.of_row[kept])
        return self._fit(rows, found, weights_are_rows=False)

    def fit_aggregated(
        self, scores: ArrayLike, positives: ArrayLike, totals: ArrayLike, segments: Any = None
    ) -> Calibrator:
        """Fit to rows that stand for many: `positives` of `totals` rows of this score had the label 1.

        The same curves, to the bit, as `fit` gives for the rows spelled out: each row enters as a label 1 of
        weight positives and a label 0 of weight totals - positives, which need not be whole. `min_rows` and
        the counts of segments then speak of totals.

        Parameters
        ----------
        scores : array_like, shape (n,) or (n, 1)
            Finite reals; they may repeat.
        positives, totals : array_like, shape (n,) or (n, 1)
            Finite, 0 <= positives <= totals. Rows whose total is 0 are dropped.
        segments : array_like or several, optional
            As in `fit`.

        Returns, complexity and errors are those of `fit`.
        """
        rows, source = expand(scores, positives, totals)
        found = None
        if segments is not None:
            found = find_segments(segments, as_column(scores, "scores").shape[0])
            found = RowSegments(found.columns, found.keys, found.of_row[source])
        return self._fit(rows, found, weights_are_rows=True)

    def _fit(self, rows: Observations, found: RowSegments | None, *, weights_are_rows: bool) -> Calibrator:
        options = FitOptions(
            increasing=self.increasing,
            lower=-math.inf if self.floor is None else self.floor,
            upper=math.inf if self.ceiling is None else self.ceiling,
            threads=thread_count(self.threads),
        )
        if found is None:
            self._take(fit_curves(rows, options), None)
        else:
            self._take(
                *fit_by_segment(rows, found, self.min_rows, options, weights_are_rows=weights_are_rows)
            )
        return self

    def _take(self, curves: Curves, by_segment: SegmentCurves | None) -> None:
        self.knots_x_, self.knots_y_ = curves.knots(0)
        self._curves, self._by_segment = curves, by_segment
        if by_segment is not None:
            own = np.array([segment.knots_x is not None for segment in by_segment.segments], dtype=bool)
            # Two entries more: for rows without a segment (index -1) and of unseen ones (-2).
            self._curve_of_segment = np.concatenate((np.where(own, np.cumsum(own), 0), [0, 0])).astype(
                np.int64
            )
            self._index = SegmentIndex(by_segment.columns, [segment.key for segment in by_segment.segments])

    def predict(self, scores: ArrayLike, segments: Any = None) -> FloatArray:
        """Return the calibrated rates.

        Parameters
        ----------
        scores : array_like, shape (n,) or (n, 1)
            Finite reals.
        segments : array_like or several, optional
            As in `fit`, of the same kinds; named columns may come in any order. Without it the global curve
            serves every row.

        Returns
        -------
        ndarray, shape (n,)
            Float32 for float32 scores, float16 for float16, else float64: the exact interpolation, rounded
            once to that dtype. O(log k) a score.

        Raises
        ------
        ValueError
            Naming the position of a score that is not finite; when lengths or columns differ.
        TypeError
            When segments hold keys of another kind than in the fit.
        RuntimeError
            Before `fit`.
        """
        self._check_fitted()
        points = as_column(scores, "scores")
        check_finite(points, "scores")
        if segments is None:
            return _native.interpolate(
                knots_x=self.knots_x_,
                knots_y=self.knots_y_,
                points=points,
                out_dtype=points.dtype.name,
                threads=thread_count(self.threads),
            )
        return self.predict_located(points, self.locate(segments, points.shape[0]))

    def locate(self, segments: Any, rows: int) -> NDArray[np.int64]:
        """For each of `rows` rows the position of its segment in `segments_`; -1 for null, -2 for unseen.

        Raises ValueError and TypeError as `predict` does.
        """
        self._check_fitted()
        if self._by_segment is None:
            raise ValueError("segments were given, but the fit had none")
        return self._index.locate(segments, rows)

    def predict_located(self, points: FloatArray, located: NDArray[np.int64]) -> FloatArray:
        """As `predict`, for finite scores in one contiguous dimension and what `locate` returned for them."""
        return _native.interpolate_curves(
            knots_x=self._curves.knots_x,
            knots_y=self._curves.knots_y,
            knot_offsets=self._curves.knot_offsets,
            curve_of_point=self._curve_of_segment[located],
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
            Curve(
                self.increasing,
                self.floor,
                self.ceiling,
                self.score_name,
                self.knots_x_,
                self.knots_y_,
                self._by_segment,
            )
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Calibrator:
        """Read a curve file's text. Raises CurveFileError (a ValueError) for anything but a sound one."""
        curve = read_curve(text)
        by_segment = curve.by_segment
        calibrator = cls(
            increasing=curve.increasing,
            floor=curve.floor,
            ceiling=curve.ceiling,
            min_rows=DEFAULT_MIN_ROWS if by_segment is None else by_segment.min_rows,
        )
        calibrator.score_name = curve.score_name
        calibrator._take(Curves(*curves_end_to_end(curve)), by_segment)
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
