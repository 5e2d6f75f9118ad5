"""How good a fit is: the four measures of 'Merge Hulls Without Copying Vertices', Section 7.6."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Accuracy:
    """All relative; 0 is best in each.

    step_down : the largest step down of the fit, to the largest |y|
    deviation : the largest |z - z*| / (1 + |z*|), z* the exact fit rounded to float64
    objective : how much the objective exceeds that of z*, to it or, where that is more, epsilon sum w y^2
    kkt : the largest violation of the optimality conditions, to 2 sum w |y|
    """

    step_down: float
    deviation: float
    objective: float
    kkt: float


def accuracy(y: Floats, w: Floats | None, z: Floats, exact: Floats, epsilon: float) -> Accuracy:
    """Of an increasing fit z of y, in float64 but for sums (long doubles). epsilon: of y's own type."""
    weights = np.ones_like(y) if w is None else w
    steps = np.diff(z)
    # lambda_i = 2 sum over j <= i of w_j (y_j - z_j): not negative, 0 at the end and where the fit steps up.
    multipliers = 2 * np.cumsum(weights.astype(np.longdouble) * (y.astype(np.longdouble) - z))
    scale = 2 * np.sum(weights.astype(np.longdouble) * np.abs(y))
    inner = multipliers[:-1]
    violation = max(
        float(np.max(-multipliers, initial=0.0)),
        abs(float(multipliers[-1])),
        float(np.max(np.abs(inner[steps > 0]), initial=0.0)),
    )

    def objective(fit: Floats) -> np.longdouble:
        return np.sum(weights.astype(np.longdouble) * np.square(y.astype(np.longdouble) - fit))

    best = objective(exact)
    excess_to = max(best, epsilon * objective(np.zeros_like(y)))
    return Accuracy(
        step_down=float(np.max(-steps, initial=0.0) / np.max(np.abs(y))) + 0.0,
        deviation=float(np.max(np.abs(z - exact) / (1 + np.abs(exact)))),
        objective=float((objective(z) - best) / excess_to),
        kkt=float(violation / scale) if scale > 0 else violation,
    )
