"""What soft operators of every library are told beside their values."""

from __future__ import annotations

import math

# 1 where the values as they are come in falling order.
_DIRECTIONS = {"ASCENDING": 1.0, "DESCENDING": -1.0}


def soft_arguments(
    regularization: str, strength: float, direction: str, regularizations: tuple[str, ...]
) -> tuple[float, float]:
    """(the strength, the direction's sign), where all is as it may be."""
    if regularization not in regularizations:
        known = " or ".join(map(repr, regularizations))
        raise ValueError(f"regularization must be {known}, not {regularization!r}")
    if direction not in _DIRECTIONS:
        raise ValueError(f"direction must be 'ASCENDING' or 'DESCENDING', not {direction!r}")
    value = float(strength)
    if not 0 < value < math.inf:
        raise ValueError(f"regularization_strength must be positive and finite, not {strength!r}")
    return value, _DIRECTIONS[direction]
