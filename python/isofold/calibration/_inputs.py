"""Checks shared by everything in this package: each error names the argument and the position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isofold._arrays import FloatArray, flat, real_array

Float64Array: TypeAlias = NDArray[np.float64]


def as_column(data: ArrayLike, name: str) -> FloatArray:
    """`data` in one contiguous dimension, float16, float32 or float64; shape (n, 1) counts as one column.

    Integers and booleans become float64. Raises TypeError for anything that does not hold real numbers.
    """
    array = real_array(data, name)
    if array.ndim != 1 and not (array.ndim == 2 and array.shape[1] == 1):
        raise ValueError(f"{name} must have shape (n,) or (n, 1), got {array.shape}")
    return flat(array)


def raise_first(wrong: NDArray[np.bool_], array: FloatArray, name: str, demand: str) -> None:
    if wrong.any():
        position = int(np.argmax(wrong))
        raise ValueError(f"{name}[{position}] is {array[position]!s}: {name} must {demand}")


def check_finite(array: FloatArray, name: str) -> None:
    raise_first(~np.isfinite(array), array, name, "be finite")


def check_in_unit_interval(array: FloatArray, name: str) -> None:
    # Written so that NaN fails too.
    raise_first(~((array >= 0) & (array <= 1)), array, name, "lie in [0, 1]")


def check_length(array: FloatArray, name: str, expected: int, of: str) -> None:
    if array.shape[0] != expected:
        raise ValueError(f"{name} has {array.shape[0]} entries, {of} has {expected}")


@dataclass(frozen=True)
class Observations:
    """Rows of positive weight. Float64, except that `weights` is None when every row weighs one."""

    scores: Float64Array
    labels: Float64Array
    weights: Float64Array | None

    def __len__(self) -> int:
        return len(self.scores)

    def weight_of_rows(self) -> Float64Array:
        return np.ones(len(self)) if self.weights is None else self.weights

    def canonical_order(self, *, rising_labels: bool = False) -> NDArray[np.intp]:
        """Indices that sort by score, then label (falling unless `rising_labels`), then weight.

        Rows that tie in all three are identical, so what follows no longer depends on the order of the rows.
        """
        # Sorting by score alone is several times faster; only rows that tie in it need more keys.
        order = np.argsort(self.scores)
        scores = self.scores[order]
        equal = scores[1:] == scores[:-1]
        if equal.any():
            tied = np.concatenate((equal, [False])) | np.concatenate(([False], equal))
            rows = order[tied]
            labels = self.labels[rows] if rising_labels else -self.labels[rows]
            keys: tuple[Float64Array, ...] = (labels, self.scores[rows])
            if self.weights is not None:
                keys = (self.weights[rows], *keys)
            order[tied] = rows[np.lexsort(keys)]
        return order

    def _is_in_canonical_order(self) -> bool:
        """Whether scores rise, labels fall within a score, and weights rise within a score and label."""
        scores, labels, weights = self.scores, self.labels, self.weights
        if not (scores[1:] >= scores[:-1]).all():
            return False
        equal = np.flatnonzero(scores[1:] == scores[:-1])
        if not (labels[equal + 1] <= labels[equal]).all():
            return False
        equal = equal[labels[equal + 1] == labels[equal]]
        return weights is None or bool((weights[equal + 1] >= weights[equal]).all())

    def in_canonical_order(self, *, rising_labels: bool = False) -> Observations:
        # Who needs several metrics sorts once: seeing that is far cheaper than sorting.
        if not rising_labels and self._is_in_canonical_order():
            return self
        order = self.canonical_order(rising_labels=rising_labels)
        weights = None if self.weights is None else self.weights[order]
        return Observations(self.scores[order], self.labels[order], weights)


def collect(
    scores: ArrayLike,
    labels: ArrayLike,
    sample_weight: ArrayLike | None,
    *,
    scores_name: str = "scores",
    probabilities: bool = False,
) -> Observations:
    """Check the three columns and drop the rows of weight zero. The inputs are never written to."""
    rows, _ = collect_kept(
        scores, labels, sample_weight, scores_name=scores_name, probabilities=probabilities
    )
    return rows


def collect_kept(
    scores: ArrayLike,
    labels: ArrayLike,
    sample_weight: ArrayLike | None,
    *,
    scores_name: str = "scores",
    probabilities: bool = False,
) -> tuple[Observations, NDArray[np.bool_] | None]:
    """As `collect`, and which rows were kept; None if all were."""
    score_column = as_column(scores, scores_name)
    label_column = as_column(labels, "labels")
    check_length(label_column, "labels", score_column.shape[0], scores_name)
    if probabilities:
        check_in_unit_interval(score_column, scores_name)
    else:
        check_finite(score_column, scores_name)
    check_in_unit_interval(label_column, "labels")

    # Adding +0.0 turns -0.0 into +0.0, so that equal scores have equal bits.
    wide_scores: Float64Array = score_column.astype(np.float64) + 0.0
    wide_labels: Float64Array = label_column.astype(np.float64)
    weights: Float64Array | None = None
    kept: NDArray[np.bool_] | None = None
    if sample_weight is not None:
        weight_column = as_column(sample_weight, "sample_weight")
        check_length(weight_column, "sample_weight", len(wide_scores), scores_name)
        check_finite(weight_column, "sample_weight")
        raise_first(weight_column < 0, weight_column, "sample_weight", "not be negative")
        weights = weight_column.astype(np.float64)
        if not np.all(weights > 0):
            kept = weights > 0
            wide_scores, wide_labels, weights = wide_scores[kept], wide_labels[kept], weights[kept]
    if len(wide_scores) == 0:
        reason = "is empty" if sample_weight is None else "has no entry of positive weight"
        raise ValueError(f"{scores_name} {reason}")
    return Observations(wide_scores, wide_labels, weights), kept
