"""How good a fit is: the measures of 'Merge Hulls Without Copying Vertices', Section 7.6.

Judged in double-double arithmetic against the exact fit, which is proven here and taken from nobody: given
blocks, the means are formed in pairs of doubles, and the optimality conditions say how far from the exact fit
they can lie.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from double_double import Floats, Pairs, by_pieces, running_sums, total_by_pieces
from numpy.typing import NDArray


@dataclass(frozen=True)
class Accuracy:
    """All relative; 0 is best in each.

    step_down : the largest step down of the fit, to the largest |y|
    deviation : the largest |z - z*| / (1 + |z*|), z* the exact fit
    deviation_to_largest : the largest |z - z*| to the largest |y|, as the paper has it for cancelling rows
    objective : how much the objective exceeds that of z*, to it or, where that is more, epsilon sum w y^2
    kkt : the largest violation of the optimality conditions, to 2 sum w |y|
    """

    step_down: float
    deviation: float
    deviation_to_largest: float
    objective: float
    kkt: float


@dataclass(frozen=True)
class ExactFit:
    """The exact fit in pairs of doubles; each is within `error` of the real value."""

    values: Pairs
    error: float


def exact_fit(y: Floats, w: Floats | None, starts: NDArray[np.bool_]) -> ExactFit:
    """The increasing fit whose blocks begin at `starts`, or ValueError where those are not the fit's blocks.

    With s_i the sum of w_j (y_j - z_j) over the block up to i, z is the fit of y if z rises, s >= 0, and s =
    0 where blocks end. Whatever violates that makes z the exact fit of some y' instead: s with the violations
    taken out. An isotonic fit moves no further than its data do (in the largest difference), so z is within
    max |y - y'| of the fit of y.
    """
    weights = Pairs.of(np.ones_like(y) if w is None else w)
    data, count = Pairs.of(y), len(y)
    last = np.append(np.flatnonzero(starts[1:]), count - 1)
    sums = running_sums(by_pieces(lambda i: weights[i] * data[i], count), starts)[last]
    widths = running_sums(weights, starts)[last]
    means = sums / widths
    if not np.all((means[1:] - means[:-1]).high > 0):
        raise ValueError("the means of these blocks do not rise")
    lengths = np.diff(np.append(-1, last))
    fit = Pairs(np.repeat(means.high, lengths), np.repeat(means.low, lengths))
    slack = running_sums(by_pieces(lambda i: weights[i] * (data[i] - fit[i]), count), starts).high
    violation = np.maximum(-slack, 0.0)
    violation[last] = np.abs(slack[last])
    before = np.append(0.0, violation[:-1])
    before[starts] = 0.0
    error = float(np.max((violation + before) / weights.high, initial=0.0))
    if not error <= 2.0**-60 * (1 + float(np.max(np.abs(fit.high), initial=0.0))):
        raise ValueError(f"these are not the blocks of the fit: it may be {error:g} away")
    return ExactFit(fit, error)


def accuracy(y: Floats, w: Floats | None, z: Floats, exact: ExactFit, epsilon: float) -> Accuracy:
    """Of an increasing fit z of y. epsilon: of y's own type."""
    weights = Pairs.of(np.ones_like(y) if w is None else w)
    data, fit, best, count = Pairs.of(y), Pairs.of(z), exact.values, len(y)
    steps = np.diff(z)
    largest = float(np.max(np.abs(y), initial=0.0))

    # Half of lambda_i: not negative, 0 at the end and where the fit steps up.
    multipliers = running_sums(by_pieces(lambda i: weights[i] * (data[i] - fit[i]), count)).high
    violation = max(
        abs(float(np.min(multipliers, initial=0.0))),
        abs(float(multipliers[-1])),
        float(np.max(np.abs(multipliers[:-1][steps > 0]), initial=0.0)),
    )
    scale = total_by_pieces(lambda i: weights[i] * data[i].magnitude(), count).high

    away = by_pieces(lambda i: fit[i] - best[i], count)

    def excess_of(i: slice) -> Pairs:
        return weights[i] * away[i] * ((fit[i] - data[i]) + (best[i] - data[i]))

    def least_of(i: slice) -> Pairs:
        return weights[i] * (data[i] - best[i]) * (data[i] - best[i])

    excess = total_by_pieces(excess_of, count).high
    least = total_by_pieces(least_of, count).high
    whole = total_by_pieces(lambda i: weights[i] * data[i] * data[i], count).high
    excess_to = max(least, epsilon * whole)
    return Accuracy(
        step_down=abs(float(np.min(steps, initial=0.0))) / largest if largest > 0 else 0.0,
        deviation=float(np.max(np.abs(away.high) / (1 + np.abs(best.high)), initial=0.0)),
        deviation_to_largest=float(np.max(np.abs(away.high), initial=0.0)) / (largest or 1.0),
        objective=float(excess / excess_to) if excess_to > 0 else float(excess),
        kkt=violation / float(scale) if scale > 0 else violation,
    )
