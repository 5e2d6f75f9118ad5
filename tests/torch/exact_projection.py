"""Soft ranks, soft sorting and soft top-k of one row by the definition, in rational arithmetic (L2) or with
80 digits (KL); independent of isofold.

What isofold promises for L2: a and b are formed in float64, blocks are those of the fit of the float64 a - b,
and on a block the result is (a_i - RN mean a) + RN mean b in float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import oracle


def falling(x: Sequence[float]) -> list[int]:
    return sorted(range(len(x)), key=lambda i: -x[i])


def vectors(
    values: Sequence[float], kind: str, strength: float, sign: float, k: int
) -> tuple[list[float], ...]:
    """(a, b) in falling order and the order itself."""
    n = len(values)
    x = [sign * v for v in values] if kind == "sort" else [sign * v / strength for v in values]
    order = falling(x)
    s, ranks = [x[i] for i in order], [float(n - i) for i in range(n)]
    if kind == "sort":
        return [r / strength for r in ranks], s, order
    return s, ranks if kind == "rank" else [float(i < k) for i in range(n)], order


def place(found: Sequence[Any], kind: str, sign: float, order: Sequence[int]) -> list[Any]:
    """In the order of the values for ranks and top-k; sorting has an order of its own."""
    if kind == "sort":
        return [sign * v for v in found]
    placed: list[Any] = [None] * len(found)
    for v, i in zip(found, order, strict=True):
        placed[i] = v
    return placed


def rounded_mean(x: Sequence[float]) -> float:
    return oracle.round_fraction(sum(map(Fraction, x), Fraction(0)) / len(x), "float64")


def l2(
    values: Sequence[float], kind: str, strength: float, sign: float, grad: Sequence[float], k: int = 0
) -> tuple[list[float], list[float]]:
    """(result, gradient), both float64."""
    a, b, order = vectors(values, kind, strength, sign, k)
    z = np.array([x - y for x, y in zip(a, b, strict=True)])
    found, through = [0.0] * len(a), [0.0] * len(a)
    for start, end, _ in oracle.solve(z, increasing=False).spans():
        block = slice(start, end)
        mean_a, mean_b = rounded_mean(a[block]), rounded_mean(b[block])
        found[block] = [(x - mean_a) + mean_b for x in a[block]]
        g = [sign * v for v in grad][block] if kind == "sort" else [grad[i] for i in order[block]]
        mean = rounded_mean(g)
        through[block] = [mean if kind == "sort" else v - mean for v in g]
    if kind == "topk":
        found = [min(max(v, 0.0), 1.0) for v in found]
    scale = 1.0 if kind == "sort" else strength
    back: list[float] = [0.0] * len(a)
    for v, i in zip(through, order, strict=True):
        back[i] = v * sign / scale
    return place(found, kind, sign, order), back


def _blocks(value: Callable[[int, int], Any], n: int) -> list[tuple[int, int]]:
    """Pools neighbours while they rise; value(start, end) is a block's."""
    blocks: list[tuple[int, int]] = []
    for i in range(n):
        block = (i, i + 1)
        while blocks and value(*blocks[-1]) <= value(*block):
            block = (blocks.pop()[0], block[1])
        blocks.append(block)
    return blocks


def kl(
    values: Sequence[float], kind: str, strength: float, sign: float, grad: Sequence[float]
) -> tuple[list[float], list[float]]:
    """(result, gradient) of the Kullback-Leibler projection: mpmath's exponents have no range to leave."""
    with mpmath.workdps(80):
        a, b, order = vectors(values, kind, strength, sign, 0)
        e_a = [mpmath.exp(mpmath.mpf(x)) for x in a]
        e_b = [mpmath.mpf(x) if kind == "rank" else mpmath.exp(mpmath.mpf(x)) for x in b]

        def value(start: int, end: int) -> Any:
            return mpmath.fsum(e_a[start:end]) / mpmath.fsum(e_b[start:end])

        found, through = [mpmath.mpf(0)] * len(a), [mpmath.mpf(0)] * len(a)
        for start, end in _blocks(value, len(a)):
            v = value(start, end)
            for i in range(start, end):
                found[i] = e_a[i] / v if kind == "rank" else mpmath.mpf(a[i]) - mpmath.log(v)
            if kind == "rank":
                g = [mpmath.mpf(grad[i]) for i in order[start:end]]
                r = found[start:end]
                mean = mpmath.fsum(x * y for x, y in zip(r, g, strict=True)) / mpmath.fsum(r)
                through[start:end] = [x * (y - mean) for x, y in zip(r, g, strict=True)]
            else:
                total = mpmath.fsum(mpmath.mpf(sign * g) for g in grad[start:end])
                e = e_b[start:end]
                through[start:end] = [total * x / mpmath.fsum(e) for x in e]
        scale = 1.0 if kind == "sort" else strength
        back: list[Any] = [None] * len(a)
        for x, i in zip(through, order, strict=True):
            back[i] = x * sign / scale
        return [float(x) for x in place(found, kind, sign, order)], [float(x) for x in back]
