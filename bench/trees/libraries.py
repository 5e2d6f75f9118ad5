"""What the trainer of examples/trees runs on: isofold in several ways, and float sums as controls."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import isofold

Floats = NDArray[np.float64]


class Shuffled:
    """isofold on the CPU, with the rows of every histogram in another order and on several threads."""

    def __init__(self, seed: int = 0, threads: int = 3) -> None:
        self._random = np.random.default_rng(seed)
        self._threads = threads

    def quantize_gradients(self, gradients: Floats, hessians: Floats) -> isofold.QuantizedGradients:
        return isofold.quantize_gradients(gradients, hessians, threads=self._threads)

    def histogram(self, bins: Any, gradients: Any, *, rows: Any, bin_count: int) -> isofold.Histogram:
        order = self._random.permutation(rows)
        return isofold.histogram(bins, gradients, rows=order, bin_count=bin_count, threads=self._threads)

    def best_splits(self, histogram: isofold.Histogram, **rules: Any) -> isofold.Splits:
        return isofold.best_splits(histogram, threads=self._threads, **rules)


class OnDevice:
    """isofold on a GPU, by way of torch."""

    def __init__(self, device: str = "cuda") -> None:
        import torch

        from isofold.torch import trees

        self._torch, self._trees, self._device = torch, trees, device
        self._bins: tuple[Any, Any] = (None, None)

    def _placed(self, array: Any) -> Any:
        return self._torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    def quantize_gradients(self, gradients: Floats, hessians: Floats) -> Any:
        return self._trees.quantize_gradients(self._placed(gradients), self._placed(hessians))

    def histogram(self, bins: Any, gradients: Any, *, rows: Any, bin_count: int) -> Any:
        if self._bins[0] is not bins:
            self._bins = (bins, self._torch.from_numpy(bins).to(self._device))
        return self._trees.histogram(self._bins[1], gradients, rows=self._placed(rows), bin_count=bin_count)

    def best_splits(self, histogram: Any, **rules: Any) -> isofold.Splits:
        return self._trees.best_splits(histogram, **rules).numpy()


@dataclass
class FloatHistogram:
    sums: Floats  # (3, features, bins): gradients, hessians, rows

    def __sub__(self, other: FloatHistogram) -> FloatHistogram:
        return FloatHistogram(self.sums - other.sums)


@dataclass
class FloatSums:
    """Float64 sums, and a winner by a rule. `parallel` is as a GPU has it: rows come in any order, prefixes
    are added up in a tree, and candidates are compared in pairs by halving strides."""

    rule: str = "strict"  # or tolerance
    parallel: bool = False
    seed: int = 0
    _random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)

    def quantize_gradients(self, gradients: Floats, hessians: Floats) -> tuple[Floats, Floats]:
        return gradients, hessians

    def histogram(self, bins: Any, gradients: Any, *, rows: Any, bin_count: int) -> FloatHistogram:
        order = self._random.permutation(rows) if self.parallel else rows
        sums = np.empty((3, bins.shape[1], bin_count))
        for k in range(bins.shape[1]):
            column = bins[order, k]
            for which, values in enumerate((gradients[0][order], gradients[1][order], None)):
                sums[which, k] = np.bincount(column, values, minlength=bin_count)
        return FloatHistogram(sums)

    def best_splits(
        self,
        histogram: FloatHistogram,
        *,
        bin_counts: Any,
        missing: Any,
        categorical: Any,
        top_k: int,
        feature_mask: Any,
        lambda_l2: float = 0.0,
        min_data_in_leaf: int = 20,
        **unused: Any,
    ) -> Any:
        gains, places = [], []
        for k, bins in enumerate(bin_counts):
            values = bins - int(missing[k])
            sums = histogram.sums[:, k]
            total = sums.sum(axis=1)
            absent = sums[:, values] if missing[k] else np.zeros(3)
            for direction in (0, 1):
                if categorical[k]:
                    left = sums[:, :values] if direction == 0 else np.empty((3, 0))
                else:
                    count = values - 1 if direction == 0 else (values if missing[k] and absent[2] else 0)
                    left = self._prefixes(sums[:, :count]) + (absent[:, None] if direction == 0 else 0)
                right = total[:, None] - left
                with np.errstate(divide="ignore", invalid="ignore"):
                    found = left[0] ** 2 / (left[1] + lambda_l2) + right[0] ** 2 / (right[1] + lambda_l2)
                    own = total[0] ** 2 / (total[1] + lambda_l2)
                enough = np.minimum(left[2], right[2]) >= min_data_in_leaf
                found = np.where(
                    enough & (np.minimum(left[1], right[1]) > 1e-3) & (found > own), found, -np.inf
                )
                gains.append(found)
                places += [
                    (k, bin_, direction, left[:, bin_], right[:, bin_], own) for bin_ in range(len(found))
                ]
        winner = self._winner(np.concatenate(gains)) if places else -1
        empty = SimpleNamespace(feature=np.array([[-1]]))
        if winner < 0:
            return empty
        feature, bin_, direction, left, right, own = places[winner]
        sets = np.zeros((1, 1, histogram.sums.shape[2]), np.bool_)
        sets[0, 0, bin_] = True
        one = {
            "feature": feature,
            "bin": bin_,
            "default_left": direction == 0 and not categorical[feature],
            "gain": np.concatenate(gains)[winner] - own,
            "kind": int(categorical[feature]),
            "left_output": -left[0] / (left[1] + lambda_l2),
            "right_output": -right[0] / (right[1] + lambda_l2),
        }
        return SimpleNamespace(**{name: np.array([[value]]) for name, value in one.items()}, categories=sets)

    def _prefixes(self, sums: Floats) -> Floats:
        if not self.parallel:
            return np.cumsum(sums, axis=1)
        found = sums.copy()
        step = 1
        while step < found.shape[1]:
            found[:, step:] = found[:, step:] + found[:, :-step]
            step *= 2
        return found

    def _winner(self, gains: Floats) -> int:
        """The position of the best gain; -1 if none is valid."""
        if not np.any(gains > -np.inf):
            return -1
        if not self.parallel:
            return int(np.argmax(gains))  # the first, as a scan with > has it
        size = 1 << (len(gains) - 1).bit_length()
        best = np.full(size, -np.inf)
        best[: len(gains)] = gains
        index = np.arange(size)
        while size > 1:
            size //= 2
            mine, other = best[:size], best[size : 2 * size]
            if self.rule == "strict":
                better = other > mine
            else:
                found = (mine > -np.inf) & (other > -np.inf)
                gap = np.subtract(other, mine, where=found, out=np.zeros_like(mine))
                tolerance = np.where(found, np.maximum(np.abs(mine), np.abs(other)), 0.0) * 1e-12
                lower = index[size : 2 * size] < index[:size]
                better = np.where(
                    found, (gap > tolerance) | ((np.abs(gap) <= tolerance) & lower), other > mine
                )
            best = np.where(better, other, mine)
            index = np.where(better, index[size : 2 * size], index[:size])
        return int(index[0])
