"""bench/gpu: pairs of doubles and the paper's four measures against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from accuracy import accuracy, exact_fit
from double_double import Floats, Pairs, by_pieces, running_sums, total, total_by_pieces

EPSILON = 2.0**-52


def rational(doubles: Floats) -> list[Fraction]:
    return [Fraction(float(x)) for x in doubles]


def value(pairs: Pairs, i: int) -> Fraction:
    return Fraction(float(pairs.high[i])) + Fraction(float(pairs.low[i]))


def pooled(y: Floats, w: Floats) -> tuple[list[Fraction], list[int]]:
    """Pool adjacent violators: every element's mean, and where blocks start."""
    blocks: list[list[Fraction]] = []
    lengths: list[int] = []
    for value, weight in zip(rational(y), rational(w), strict=True):
        blocks.append([weight * value, weight])
        lengths.append(1)
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= blocks[-1][0] * blocks[-2][1]:
            total_wy, width = blocks.pop()
            blocks[-1] = [blocks[-1][0] + total_wy, blocks[-1][1] + width]
            length = lengths.pop()
            lengths[-1] += length
    fit = [b[0] / b[1] for b, n in zip(blocks, lengths, strict=True) for _ in range(n)]
    return fit, [0, *np.cumsum(lengths)[:-1].tolist()]


def flags(count: int, starts: list[int]) -> np.ndarray:
    found = np.zeros(count, bool)
    found[starts] = True
    return found


ROWS = {
    "noise": lambda random, n: 3 * np.arange(n) / n + random.standard_normal(n),
    "falling": lambda random, n: -np.arange(n) + 0.1 * random.standard_normal(n),
    "rising": lambda random, n: np.sqrt(np.arange(n) + 1.0),
    "ninths": lambda random, n: (np.arange(n) % 9) * 0.1,
    "cancelling": lambda random, n: np.where(np.arange(n) % 2 == 0, 1e12, -1e12) + random.standard_normal(n),
}


@pytest.mark.parametrize("exponent", [0, 40])
def test_pair_arithmetic(exponent: int) -> None:
    random = np.random.default_rng(3)
    a, b, c, d = (
        random.standard_normal(300) * np.exp2(random.integers(-exponent, exponent + 1, 300)) for _ in "abcd"
    )
    x, y = Pairs.of(a) + Pairs.of(1e-17 * b), Pairs.of(c) + Pairs.of(1e-17 * d)
    for i in range(300):
        left, right = value(x, i), value(y, i)
        assert left == Fraction(float(a[i])) + Fraction(float((1e-17 * b)[i]))
        for found, exact in ((x + y, left + right), (x * y, left * right), (x / y, left / right)):
            assert abs(value(found, i) - exact) <= abs(exact) * Fraction(2) ** -99


@pytest.mark.parametrize("count", [1, 2, 3, 17, 1000, 1023])
def test_running_sums(count: int) -> None:
    random = np.random.default_rng(count)
    x = random.standard_normal(count) * np.exp2(random.integers(-30, 30, count))
    for density in (0.0, 0.02, 0.5):
        starts = random.random(count) < density
        found = running_sums(Pairs.of(x), starts if density else None)
        here = size = Fraction(0)
        for i, term in enumerate(rational(x)):
            here, size = (Fraction(0) if starts[i] else here) + term, size + abs(term)
            assert abs(value(found, i) - here) <= size * Fraction(2) ** -90
    whole = total(Pairs.of(x))
    assert abs(Fraction(float(whole.high)) + Fraction(float(whole.low)) - sum(rational(x))) <= 2.0**-60


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_exact_fit_is_proven(shape: str, weighted: bool) -> None:
    random = np.random.default_rng(5)
    for count in (1, 2, 60, 400):
        y = ROWS[shape](random, count)
        w = np.exp(16 * random.random(count) - 8) if weighted else np.ones(count)
        fit, starts = pooled(y, w)
        found = exact_fit(y, w if weighted else None, flags(count, starts))
        assert found.error <= 1e-18 * (1 + np.max(np.abs(y)))
        for i in range(count):
            assert (
                abs(value(found.values, i) - fit[i])
                <= Fraction(found.error) + abs(fit[i]) * Fraction(2) ** -99
            )


def test_wrong_blocks_are_refused() -> None:
    y = np.array([1.0, 3.0, 2.0, 4.0])
    exact_fit(y, None, flags(4, [0, 1, 3]))
    with pytest.raises(ValueError, match="do not rise"):
        exact_fit(y, None, flags(4, [0, 1, 2, 3]))
    with pytest.raises(ValueError, match="not the blocks"):
        exact_fit(y, None, flags(4, [0]))


def measured(y: Floats, w: Floats, z: Floats, fit: list[Fraction]) -> dict[str, Fraction]:
    """The measures as Section 7.6 writes them, in rationals."""
    ys, ws, zs = rational(y), rational(w), rational(z)
    steps = [b - a for a, b in pairwise(zs)]
    multipliers, here = [], Fraction(0)
    for yi, wi, zi in zip(ys, ws, zs, strict=True):
        here -= 2 * wi * (zi - yi)
        multipliers.append(here)
    violations = [*(-m for m in multipliers), abs(multipliers[-1]), Fraction(0)]
    violations += [abs(m) for m, step in zip(multipliers, steps, strict=False) if step > 0]

    def objective(of: list[Fraction]) -> Fraction:
        return sum((wi * (yi - x) ** 2 for yi, wi, x in zip(ys, ws, of, strict=True)), Fraction(0))

    excess_to = max(objective(fit), Fraction(EPSILON) * objective([Fraction(0)] * len(ys)))
    return {
        "step_down": max([Fraction(0), *(-s for s in steps)]) / max(map(abs, ys)),
        "deviation": max(abs(a - b) / (1 + abs(b)) for a, b in zip(zs, fit, strict=True)),
        "deviation_to_largest": max(abs(a - b) for a, b in zip(zs, fit, strict=True)) / max(map(abs, ys)),
        "objective": (objective(zs) - objective(fit)) / excess_to,
        "kkt": max(violations) / (2 * sum(wi * abs(yi) for yi, wi in zip(ys, ws, strict=True))),
    }


@pytest.mark.parametrize("shape", ROWS)
@pytest.mark.parametrize("noise", [0.0, 1e-15, 1e-7, 1e-2])
def test_measures_against_rationals(shape: str, noise: float) -> None:
    random = np.random.default_rng(11)
    count = 200
    y = ROWS[shape](random, count)
    w = np.exp(16 * random.random(count) - 8)
    fit, starts = pooled(y, w)
    z = np.array([float(x) for x in fit]) * (1 + noise * random.standard_normal(count))
    found = accuracy(y, w, z, exact_fit(y, w, flags(count, starts)), EPSILON)
    for name, exact in measured(y, w, z, fit).items():
        assert getattr(found, name) == pytest.approx(float(exact), rel=1e-9, abs=1e-28), name


def test_pieces_make_no_difference() -> None:
    random = np.random.default_rng(4)
    a, b = Pairs.of(random.standard_normal(50_000)), Pairs.of(random.standard_normal(50_000))
    whole, pieces = a * b, by_pieces(lambda i: a[i] * b[i], 50_000)
    assert np.array_equal(whole.high, pieces.high)
    assert np.array_equal(whole.low, pieces.low)
    difference = total(whole) - total_by_pieces(lambda i: a[i] * b[i], 50_000)
    assert abs(float(difference.high)) <= 1e-24
