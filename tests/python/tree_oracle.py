"""Histograms and best splits from their definitions: integers, fractions and plain floats, no cleverness.

Independent of the library: gains here are formed in the caller's own units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

EPSILON = 1e-15  # LightGBM's


def quotient(a: float, b: float) -> float:
    """a / b as IEEE has it, where b >= 0."""
    if b != 0:
        return a / b
    return math.copysign(math.inf, a) if a != 0 else math.nan


def exponent(largest: float, bits: int) -> int:
    """That of the unit in which `largest` is from 2**(bits - 1) up to below 2**bits."""
    power = math.frexp(largest)[1] - 1 if largest > 0 else 0
    return max(power - bits + 1, -1074)


def quantize(gradients: Any, hessians: Any) -> tuple[np.ndarray, tuple[int, int]]:
    g = [float(x) for x in gradients]
    h = [float(x) for x in hessians]
    grid = (exponent(max(map(abs, g), default=0.0), 29), exponent(max(h, default=0.0), 24))
    pairs = []
    for x, y in zip(g, h, strict=True):
        unit = round(Fraction(y) / Fraction(2) ** grid[1])
        pairs.append((round(Fraction(x) / Fraction(2) ** grid[0]), 1 if unit == 0 and y > 0 else unit))
    return np.array(pairs, dtype=np.int64).reshape(-1, 2), grid


def histogram(bins: Any, pairs: Any, bin_count: int, node_ids: Any, nodes: int, rows: Any) -> np.ndarray:
    """Sums of gradients, hessians and ones: (3, nodes, features, bins)."""
    bins = np.asarray(bins)
    sums = np.zeros((3, nodes, bins.shape[1], bin_count), dtype=np.int64)
    for row in range(len(bins)) if rows is None else rows:
        node = 0 if node_ids is None else node_ids[row]
        if node < 0:
            continue
        for feature, bin_ in enumerate(bins[row]):
            sums[:, node, feature, bin_] += (*pairs[row], 1)
    return sums


@dataclass
class Rules:
    lambda_l1: float = 0.0
    lambda_l2: float = 0.0
    min_data_in_leaf: int = 20
    min_sum_hessian_in_leaf: float = 1e-3
    min_gain_to_split: float = 0.0
    max_delta_step: float = 0.0
    path_smooth: float = 0.0
    max_cat_to_onehot: int = 4
    max_cat_threshold: int = 32
    min_data_per_group: int = 100
    cat_smooth: float = 10.0
    cat_l2: float = 10.0
    ties: str = "lowest"


@dataclass
class Node:
    """One node's sums, (3, features, bins), and the two units."""

    sums: np.ndarray
    grid: tuple[int, int]
    rules: Rules
    bin_counts: list[int]
    missing: list[bool]
    categorical: list[bool]
    monotone: list[int]
    mask: list[bool]
    parent_output: float | None = None
    bounds: tuple[float, float] | None = None
    total: tuple[int, int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.total = tuple(int(x) for x in self.sums[:, 0].sum(axis=-1))
        rules = self.rules
        whole = self._side(self.total)
        if rules.ties == "lightgbm":
            whole = (whole[0], whole[1] + 2 * EPSILON, whole[2])
        self.whole = whole
        smooth, bounds = rules.path_smooth, self.bounds
        if self.parent_output is None:
            rules.path_smooth, self.bounds = 0.0, None
            self.output = self._leaf_output(whole, rules.lambda_l2)
            rules.path_smooth, self.bounds = smooth, bounds
        else:
            self.output = self.parent_output
        if not (rules.max_delta_step > 0 or smooth > 0):
            own = self._free_gain(whole, rules.lambda_l2)
        elif smooth > 0:
            own = self._gain_of_output(whole, rules.lambda_l2, self.output)
        else:
            self.bounds = None
            own = self._gain_of_output(whole, rules.lambda_l2, self._leaf_output(whole, rules.lambda_l2))
            self.bounds = bounds
        self.shift = own + rules.min_gain_to_split

    def _side(self, sums: Any) -> tuple[float, float, float]:
        return (
            math.ldexp(float(sums[0]), self.grid[0]),
            math.ldexp(float(sums[1]), self.grid[1]),
            float(sums[2]),
        )

    def _soft(self, gradient: float) -> float:
        return math.copysign(max(0.0, abs(gradient) - self.rules.lambda_l1), gradient)

    def _leaf_output(self, side: Any, l2: float) -> float:
        output = quotient(-self._soft(side[0]), side[1] + l2)
        limit = self.rules.max_delta_step
        if limit > 0 and abs(output) > limit:
            output = math.copysign(limit, output)
        if self.rules.path_smooth > 0:
            weight = side[2] / self.rules.path_smooth
            output = output * weight / (weight + 1) + self.output / (weight + 1)
        if self.bounds is not None:
            output = self.bounds[0] if output < self.bounds[0] else output
            output = self.bounds[1] if output > self.bounds[1] else output
        return output

    def _gain_of_output(self, side: Any, l2: float, output: float) -> float:
        return -(2.0 * self._soft(side[0]) * output + (side[1] + l2) * output * output)

    def _free_gain(self, side: Any, l2: float) -> float:
        gradient = self._soft(side[0])
        return quotient(gradient * gradient, side[1] + l2)

    def _sides(self, left: Any, kind: int, direction: int) -> tuple[Any, Any]:
        a = self._side(left)
        b = self._side([t - x for t, x in zip(self.total, left, strict=True)])
        if self.rules.ties != "lightgbm":
            return a, b
        if kind == 1:
            return (a[0], a[1] + EPSILON, a[2]), (b[0], self.whole[1] - a[1] - EPSILON, b[2])
        if kind == 0 and direction == 0:
            scanned = b[1] + EPSILON
            return (a[0], self.whole[1] - scanned, a[2]), (b[0], scanned, b[2])
        scanned = a[1] + EPSILON
        return (a[0], scanned, a[2]), (b[0], self.whole[1] - scanned, b[2])

    def _gain(self, left: Any, kind: int, direction: int, monotone: int) -> float | None:
        rules = self.rules
        if min(left[2], self.total[2] - left[2]) < max(1, rules.min_data_in_leaf):
            return None
        a, b = self._sides(left, kind, direction)
        if min(a[1], b[1]) < rules.min_sum_hessian_in_leaf:
            return None
        l2 = rules.lambda_l2 + rules.cat_l2 if kind == 2 else rules.lambda_l2
        if monotone == 0 and self.bounds is None and not (rules.max_delta_step > 0 or rules.path_smooth > 0):
            gain = self._free_gain(a, l2) + self._free_gain(b, l2)
        else:
            x, y = self._leaf_output(a, l2), self._leaf_output(b, l2)
            if (monotone > 0 and x > y) or (monotone < 0 and x < y):
                return None
            gain = self._gain_of_output(a, l2, x) + self._gain_of_output(b, l2, y)
        return gain if math.isfinite(gain) and gain > self.shift else None

    def candidates(self, feature: int) -> list[dict[str, Any]]:
        """Every valid split of a feature."""
        sums = self.sums[:, feature]
        missing = self.missing[feature]
        values = self.bin_counts[feature] - missing
        found = []

        def add(kind: int, direction: int, bin_: int, bins: list[int]) -> None:
            left = [int(x) for x in sums[:, bins].sum(axis=-1)]
            gain = self._gain(left, kind, direction, self.monotone[feature])
            if gain is not None:
                found.append(
                    {
                        "kind": kind,
                        "direction": direction,
                        "bin": bin_,
                        "left": left,
                        "gain": gain,
                        "bins": bins,
                    }
                )

        if not self.categorical[feature]:
            for bin_ in range(values - 1):
                add(0, 0, bin_, list(range(bin_ + 1)) + ([values] if missing else []))
            if missing and sums[2, values] > 0:
                for bin_ in range(values):
                    add(0, 1, bin_, list(range(bin_ + 1)))
        elif self.bin_counts[feature] <= self.rules.max_cat_to_onehot:
            for bin_ in range(values):
                add(1, 0, bin_, [bin_])
        else:
            self._add_subsets(sums, values, add)
        return found

    def _add_subsets(self, sums: np.ndarray, values: int, add: Any) -> None:
        rules = self.rules

        def ratio(bin_: int) -> float:
            g, h, _ = self._side(sums[:, bin_])
            found = quotient(g, h + rules.cat_smooth)
            return 0.0 if math.isnan(found) else found

        joining = [b for b in range(values) if sums[2, b] > 0 and sums[2, b] >= rules.cat_smooth]
        joining.sort(key=lambda b: (ratio(b), b))
        most = min(rules.max_cat_threshold, (len(joining) + 1) // 2)
        for direction in (0, 1):
            order = joining if direction == 0 else joining[::-1]
            group = 0
            for i in range(most):
                bins = order[: i + 1]
                left = [int(x) for x in sums[:, bins].sum(axis=-1)]
                group += int(sums[2, order[i]])
                a, b = self._sides(left, 2, direction)
                if left[2] < max(1, rules.min_data_in_leaf) or a[1] < rules.min_sum_hessian_in_leaf:
                    continue
                right = self.total[2] - left[2]
                if right < max(1, rules.min_data_in_leaf, rules.min_data_per_group):
                    break
                if b[1] < rules.min_sum_hessian_in_leaf:
                    break
                if group < rules.min_data_per_group:
                    continue
                group = 0
                add(2, direction, i, bins)

    def _order(self, candidate: dict[str, Any]) -> tuple[float, int, int]:
        ties = self.rules.ties
        high = candidate["kind"] != 2 and (
            ties == "highest"
            or (ties == "lightgbm" and candidate["kind"] == 0 and candidate["direction"] == 0)
        )
        return (-candidate["gain"], candidate["direction"], -candidate["bin"] if high else candidate["bin"])

    def best(self, top_k: int) -> list[dict[str, Any]]:
        """The winners of the best features, with plateau and margin."""
        everything = {
            f: self.candidates(f) for f in range(self.sums.shape[1]) if self.mask[f] and self.bin_counts[f]
        }
        winners = {f: min(found, key=self._order) for f, found in everything.items() if found}
        ranked = sorted(winners, key=lambda f: (-(winners[f]["gain"] - self.shift), f))
        results = []
        for rank, f in enumerate(ranked[:top_k]):
            winner = winners[f]
            first = last = winner["bin"]
            if winner["kind"] == 0:
                tied = {
                    c["bin"]
                    for c in everything[f]
                    if c["direction"] == winner["direction"] and c["gain"] == winner["gain"]
                }
                while first - 1 in tied:
                    first -= 1
                while last + 1 in tied:
                    last += 1
            bin_ = (first + last) // 2 if self.rules.ties == "middle" else winner["bin"]
            chosen = next(
                c for c in everything[f] if c["direction"] == winner["direction"] and c["bin"] == bin_
            )
            others = [
                c["gain"] - self.shift
                for c in everything[f]
                if c["direction"] != winner["direction"] or not first <= c["bin"] <= last
            ]
            if rank + 1 < len(ranked):
                others.append(winners[ranked[rank + 1]]["gain"] - self.shift)
            gain = winner["gain"] - self.shift
            l2 = self.rules.lambda_l2 + (self.rules.cat_l2 if chosen["kind"] == 2 else 0.0)
            a, b = self._sides(chosen["left"], chosen["kind"], chosen["direction"])
            results.append(
                {
                    "feature": f,
                    "bin": bin_,
                    "gain": gain,
                    "margin": gain - max(others) if others else math.inf,
                    "plateau": [first, last],
                    "default_left": chosen["kind"] == 0 and chosen["direction"] == 0,
                    "kind": chosen["kind"],
                    "left_gradient": chosen["left"][0],
                    "left_hessian": chosen["left"][1],
                    "left_count": chosen["left"][2],
                    "left_output": self._leaf_output(a, l2) + 0.0,
                    "right_output": self._leaf_output(b, l2) + 0.0,
                    "bins": sorted(chosen["bins"]) if chosen["kind"] else None,
                }
            )
        return results
