"""What the sequences of operations for exp and log have in common, whatever library carries them out."""

from __future__ import annotations

import math

# log 2 in two parts: the first has 21 trailing zeros, so that products with exponents are exact.
LOG2_HIGH = 6.93147180369123816490e-01
LOG2_LOW = 1.90821492927058770002e-10
LOG2_E = 1.4426950408889634
# Below, the exponential is taken for zero: it would be subnormal.
LOWEST = -708.0

# Of the Taylor series, the highest power first: on [-log(2)/2, log(2)/2] what is left out is below 2^-57.
EXP_SERIES = tuple(1.0 / math.factorial(i) for i in range(13, -1, -1))

# (log(1 + s) - log(1 - s)) / s - 2 as a polynomial in s^2 on [0, 0.1716], within 2^-58.45 (the constants of
# fdlibm), the highest power first.
LOG_SERIES = (
    1.479819860511658591e-01,
    1.531383769920937332e-01,
    1.818357216161805012e-01,
    2.222219843214978396e-01,
    2.857142874366239149e-01,
    3.999999999940941908e-01,
    6.666666666666735130e-01,
)
