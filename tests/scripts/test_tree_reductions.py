"""The controls: what a tolerance does to the three gains, and what a total order does not."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import isofold

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def reductions() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reductions", ROOT / "bench" / "trees" / "reductions.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["reductions"] = module
    spec.loader.exec_module(module)
    return module


def merged(shape: object, rule: object, candidates: list) -> tuple[float, int]:
    if isinstance(shape, int):
        return candidates[shape]
    a, b = (merged(part, rule, candidates) for part in shape)
    return b if rule(a, b) else a


def test_three_gains_under_every_shape(reductions: ModuleType) -> None:
    gains = reductions.three_gains()
    shapes = [((0, 1), 2), (0, (1, 2)), ((0, 2), 1)]
    winners = [merged(shape, reductions.tolerance_rule, gains)[1] for shape in shapes]
    assert winners == [2, 0, 1]
    for a, b, c in itertools.permutations(range(3)):
        for shape in (((a, b), c), (a, (b, c))):
            assert merged(shape, reductions.total_order, gains)[1] == 2


def test_lanes_choose_among_the_three_gains_by_tolerance(reductions: ModuleType) -> None:
    narrow = reductions.lane_triples(reductions.tolerance_rule, 32)
    shares = np.bincount(narrow, minlength=3) / len(narrow)
    assert np.all(shares > 0.3)
    assert np.all(reductions.lane_triples(reductions.total_order, 32) == 2)
    assert np.all(reductions.lane_triples(reductions.total_order, 64) == 2)


def test_only_ours_agrees_with_a_scan_everywhere(reductions: ModuleType) -> None:
    counts = reductions.disagreements(60)
    assert counts["isofold"]["reductions"] > 400
    assert counts["isofold"]["other bin than the scan"] == 0
    assert counts["isofold"]["problems whose shapes disagree"] == 0
    assert counts["rounded sums, strict"]["problems whose shapes disagree"] > 30
    assert counts["close gains, tolerance"]["problems whose shapes disagree"] > 5


def test_the_library_takes_the_best_of_the_three_gains(reductions: ModuleType) -> None:
    """Sums whose gains are 0.9e-12 apart, on features in every order: the largest wins."""
    # So close, sums have to be large; here they are given instead of summed.
    base = 2**45
    for order in itertools.permutations(range(3)):
        gradients = np.zeros((1, 3, 2), np.int64)
        for place, which in enumerate(order):
            gradients[0, place] = [base + 16 * which, -(base + 16 * which)]
        hessians = np.full((1, 3, 2), 2**40, np.int64)
        counts = np.full((1, 3, 2), 100, np.int32)
        histogram = isofold.Histogram(gradients, hessians, counts, isofold.GradientGrid(0, 0))
        split = isofold.best_splits(histogram, top_k=3)
        ranked = [order[feature] for feature in split.feature[0]]
        assert ranked == [2, 1, 0]
        assert 0 < split.margin[0, 0] / split.gain[0, 0] < 1e-12
