"""bench/torch/accuracy.py: its measures, and what it finds of isofold. On a CPU."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench" / "torch"))

from accuracy import errors, judged, reference
from differentiable import Cell

Z = np.array([[5.0, 1.0, 3.0, 0.0], [4.0, 4.0, 1.0, 1.0]])
G = np.array([[1.0, 2.0, 4.0, 8.0], [1.0, 2.0, 4.0, 6.0]])


def test_the_reference() -> None:
    right = reference(Z, G)
    assert right.fit.tolist() == [[5, 2, 2, 0], [4, 4, 1, 1]]
    assert right.gradient.tolist() == [[1, 3, 3, 8], [1.5, 1.5, 5, 5]]
    assert right.starts.tolist() == [[True, True, False, True], [True, False, True, False]]


def test_the_measures() -> None:
    right = reference(Z, G)
    exact = errors(right.fit, right.gradient, right)
    assert (exact.largest, exact.l2, exact.gradient_largest, exact.gradient_l2) == (0, 0, 0, 0)
    assert (exact.boundaries, exact.apart) == (0, 0)
    # A row as one block: it lacks both boundaries, the wider of which is 3 of 5.
    fit, gradient = right.fit.copy(), right.gradient.copy()
    fit[0], gradient[0] = 2.25, 3.75
    wrong = errors(fit, gradient, right)
    assert wrong.largest == 2.75 / 5
    assert wrong.gradient_largest == 4.25 / 8
    assert wrong.l2 == pytest.approx(np.sqrt((2.75**2 + 2 * 0.25**2 + 2.25**2) / 67))
    assert (wrong.boundaries, wrong.apart) == (2, 3 / 5)
    # A block cut where the reference has none.
    gradient = right.gradient.copy()
    gradient[1, 1] = 2
    assert errors(right.fit, gradient, right).boundaries == 1


@pytest.mark.parametrize("strength", ["1", "1/n"])
def test_isofold_on_a_cpu(strength: str) -> None:
    found = judged(Cell("fit and gradient", 3, 200, strength), "cpu")
    ours = found["isofold"]
    assert found["blocks"] >= 3
    assert ours["boundaries"] == 0
    # Rounded once to float32.
    assert max(ours[name] for name in ("largest", "l2", "gradient_largest", "gradient_l2")) < 2**-24
