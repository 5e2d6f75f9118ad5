"""The analytic correction for a training set whose negatives were thinned out."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from isofold._arrays import FloatArray
from isofold.calibration._inputs import as_column, check_in_unit_interval


def downsampling_correction(predictions: ArrayLike, keep_share: float) -> FloatArray:
    """Map p to p / (p + (1 - p) / keep_share).

    A model trained with only a share k of the negatives kept sees odds 1 / k times too high. Dividing them by
    1 / k puts that right, and nothing else (King and Zeng 2001; He et al. 2014 for click prediction).

    Parameters
    ----------
    predictions : array_like, shape (n,) or (n, 1)
        In [0, 1].
    keep_share : float
        In (0, 1]: the share of the negatives that was kept.

    Returns
    -------
    ndarray, shape (n,)
        Float32 for float32 predictions (float16 alike), else float64. Computed in float64 by monotone
        operations, so it never steps down; relative error below 6 * 2^-53 before the last rounding, underflow
        aside. 0 and 1 stay.

    Raises
    ------
    ValueError, TypeError
        Naming the argument and the position.
    """
    share = float(keep_share)
    if not 0.0 < share <= 1.0:
        raise ValueError(f"keep_share must lie in (0, 1], got {keep_share}")
    column = as_column(predictions, "predictions")
    check_in_unit_interval(column, "predictions")
    wide = column.astype(np.float64)
    with np.errstate(divide="ignore", over="ignore"):
        odds_against = (1.0 - wide) / wide
        corrected = 1.0 / (1.0 + odds_against / share)
    return corrected.astype(column.dtype)
