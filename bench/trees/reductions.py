"""Reductions that do not find the best split: the tolerance rule and plain >, as controls.

    python bench/trees/reductions.py        # prints how often each disagrees with a scan, as JSON

A GPU's reduction compares pairs in an order that follows from its shape. Where sums of gradients are rounded
in an order of their own, equal gains come out a few units in the last place apart, and > then takes any of
them. Calling gains equal within a relative 1e-12 is no cure: that is not transitive, so the shape of the
reduction chooses among gains that are close. A total order has one maximum.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

import isofold

Candidate = tuple[float, int]  # gain, bin
Rule = Callable[[Candidate, Candidate], bool]  # whether the second replaces the first

TOLERANCE = 1e-12


def tolerance_rule(mine: Candidate, other: Candidate) -> bool:
    """Gains within a relative 1e-12 are tied, and the lower index wins."""
    tolerance = max(abs(mine[0]), abs(other[0])) * TOLERANCE
    return other[0] > mine[0] + tolerance or (abs(other[0] - mine[0]) <= tolerance and other[1] < mine[1])


def strict_rule(mine: Candidate, other: Candidate) -> bool:
    """Only a larger gain replaces what is there."""
    return other[0] > mine[0]


def total_order(mine: Candidate, other: Candidate) -> bool:
    """The larger gain, of equal ones the lower bin."""
    return (-other[0], other[1]) < (-mine[0], mine[1])


RULES: dict[str, Rule] = {"tolerance": tolerance_rule, "strict": strict_rule, "total order": total_order}


def scan(candidates: Sequence[Candidate], rule: Rule) -> int:
    """The winner's bin, as one thread finds it from left to right."""
    best = candidates[0]
    for candidate in candidates[1:]:
        if rule(best, candidate):
            best = candidate
    return best[1]


def shuffle_down(candidates: Sequence[Candidate], rule: Rule, lanes: int) -> int:
    """As warps of `lanes` do it: lane i takes over lane i + step's candidate, with steps that halve."""
    padded: list[Candidate | None] = [*candidates]
    padded += [None] * (-len(padded) % lanes)
    winners: list[Candidate | None] = []
    for start in range(0, len(padded), lanes):
        lane = padded[start : start + lanes]
        step = lanes // 2
        while step:
            before = list(lane)
            for i in range(lanes - step):
                mine, other = before[i], before[i + step]
                if other is not None and (mine is None or rule(mine, other)):
                    lane[i] = other
            step //= 2
        winners.append(lane[0])
    found = [winner for winner in winners if winner is not None]
    return found[0][1] if len(found) == 1 else shuffle_down(found, rule, lanes)


def random_tree(candidates: Sequence[Candidate], rule: Rule, random: np.random.Generator) -> int:
    """Pairs merged in any order, as threads come."""
    left = list(candidates)
    while len(left) > 1:
        a = left.pop(int(random.integers(len(left))))
        b = left.pop(int(random.integers(len(left))))
        left.append(b if rule(a, b) else a)
    return left[0][1]


def three_gains() -> list[Candidate]:
    """Neighbours tie within 1e-12, the ends do not."""
    return [(1.0, 0), (1 + 0.9e-12, 1), (1 + 1.8e-12, 2)]


def lane_triples(rule: Rule, lanes: int) -> NDArray[np.int64]:
    """The winner among the three gains on each choice of three lanes, the other lanes without a candidate."""
    winners = []
    gains = [gain for gain, _ in three_gains()]
    for places in combinations(range(lanes), 3):
        candidates = [(-1.0, lane) for lane in range(lanes)]
        for gain, lane in zip(gains, places, strict=True):
            candidates[lane] = (gain, lane)
        winners.append(places.index(shuffle_down(candidates, rule, lanes)))
    return np.array(winners)


def plateau_problem(random: np.random.Generator) -> tuple[NDArray[np.uint8], NDArray[np.float64]]:
    """One feature with empty bins: thresholds among them cut the rows alike."""
    rows, bins = int(random.integers(200, 600)), int(random.integers(20, 64))
    used = np.sort(random.choice(bins, int(random.integers(4, bins // 2)), replace=False))
    chosen = random.choice(used, rows).astype(np.uint8)
    gradients = random.normal(size=rows) + (chosen > bins // 2)
    return chosen, gradients


def rounded_gains(
    bins: NDArray[np.uint8], gradients: NDArray[np.float64], random: np.random.Generator, least: int = 20
) -> list[Candidate]:
    """Gains of the thresholds from float64 sums in a random order of the rows, as by atomics: empty bins get
    their sums from neighbours through a scan whose order of additions differs from bin to bin."""
    count = int(bins.max()) + 1
    order = random.permutation(len(bins))
    sums = np.zeros(count)
    np.add.at(sums, bins[order], gradients[order])
    counts = np.bincount(bins, minlength=count)
    found = []
    total = float(np.sum(sums[random.permutation(count)]))
    for bin_ in range(count - 1):
        left_count = int(counts[: bin_ + 1].sum())
        right_count = len(bins) - left_count
        if min(left_count, right_count) < least:
            continue
        left = float(np.sum(sums[: bin_ + 1][random.permutation(bin_ + 1)]))
        right = total - left
        found.append((left * left / left_count + right * right / right_count, bin_))
    return found


def exact_gains(bins: NDArray[np.uint8], gradients: NDArray[np.float64], least: int = 20) -> list[Candidate]:
    """Gains of the thresholds from the library's sums."""
    histogram = isofold.histogram(bins[:, None], gradients)
    sums, counts = histogram.gradient_sums[0, 0], histogram.counts[0, 0]
    integers = np.cumsum(histogram.gradients[0, 0])
    left = np.ldexp(integers.astype(np.float64), histogram.grid.gradient_exponent)
    right = np.ldexp((integers[-1] - integers).astype(np.float64), histogram.grid.gradient_exponent)
    rows = np.cumsum(counts)
    found = []
    for bin_ in range(len(sums) - 1):
        below, above = int(rows[bin_]), int(rows[-1] - rows[bin_])
        if min(below, above) >= least:
            found.append((left[bin_] * left[bin_] / below + right[bin_] * right[bin_] / above, bin_))
    return found


def disagreements(problems: int, seed: int = 0) -> dict[str, dict[str, int]]:
    """Of plateaus, how many of each rule's reductions differ from the CPU scan of exact gains."""
    random = np.random.default_rng(seed)
    counts = {
        name: {"reductions": 0, "other bin than the scan": 0, "problems whose shapes disagree": 0}
        for name in ("rounded sums, strict", "rounded sums, tolerance", "close gains, tolerance", "isofold")
    }
    for _ in range(problems):
        bins, gradients = plateau_problem(random)
        exact = exact_gains(bins, gradients)
        if len(exact) < 2:
            continue
        right = scan(exact, total_order)
        assert right == int(isofold.best_splits(isofold.histogram(bins[:, None], gradients)).bin[0])
        # Gains of neighbours a few 1e-13 apart: real differences, as of large nodes.
        top = exact[0][0]
        close = [(top * (1 + 4e-13 * int(random.integers(0, 6))), bin_) for _, bin_ in exact]
        rounded = [rounded_gains(bins, gradients, random) for _ in range(2)]
        cases = {
            "rounded sums, strict": (rounded[0], strict_rule, right),
            "rounded sums, tolerance": (rounded[1], tolerance_rule, right),
            "close gains, tolerance": (close, tolerance_rule, scan(close, total_order)),
            "isofold": (exact, total_order, right),
        }
        for name, (candidates, rule, expected) in cases.items():
            found = [scan(candidates, rule)]
            found += [shuffle_down(candidates, rule, lanes) for lanes in (32, 64)]
            found += [random_tree(candidates, rule, random) for _ in range(5)]
            counts[name]["reductions"] += len(found)
            counts[name]["other bin than the scan"] += sum(bin_ != expected for bin_ in found)
            counts[name]["problems whose shapes disagree"] += int(len(set(found)) > 1)
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=1000)
    arguments = parser.parse_args()
    triples = {}
    for name, rule in RULES.items():
        narrow, wide = lane_triples(rule, 32), lane_triples(rule, 64)
        triples[name] = {
            f"{lanes} lanes": [int(np.sum(winners == i)) for i in range(3)]
            for lanes, winners in ((32, narrow), (64, wide))
        }
    print(
        json.dumps(
            {"winners of the three gains": triples, "plateaus": disagreements(arguments.problems)}, indent=2
        )
    )


if __name__ == "__main__":
    main()
