"""`isotonic_regression` as in `scipy.optimize`, computed by isofold.

Takes the same arguments, raises the same messages and returns the same kind of object, so that an import is
all there is to change. The values agree with SciPy's to rounding, not to the bit: these are exact, rounded
once.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isofold import _native
from isofold._arrays import flat, real_array
from isofold.isotonic import IsotonicResult, _fit, _Problem

__all__ = ["OptimizeResult", "isotonic_regression"]


class OptimizeResult(dict[str, Any]):
    """A dictionary whose entries are attributes too; stands in for SciPy's where SciPy is not installed."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return list(self)


def isotonic_regression(y: ArrayLike, *, weights: ArrayLike | None = None, increasing: bool = True) -> Any:
    """Nonparametric isotonic regression of one row; a drop-in for `scipy.optimize.isotonic_regression`.

    Parameters
    ----------
    y : array_like of real numbers, shape (n,)
        The values, finite. A scalar is a row of one.
    weights : array_like of real numbers, shape (n,), optional
        Finite and greater than zero.
    increasing : bool
        False fits a non-increasing row.

    Returns
    -------
    scipy.optimize.OptimizeResult
        With ``x``, float64 of shape (n,): the exact fit of y as given (float16 and float32 are not rounded
        again), rounded once; ``weights``, float64 of shape (b,): each block's total weight; ``blocks``,
        integers of shape (b + 1,): where each block starts, and n. Without SciPy, an equivalent with
        attribute and item access.

    Raises
    ------
    ValueError
        More than one dimension, weights of another length, weights that are not strictly positive, NaN or
        infinity.
    TypeError
        Arrays that do not hold real numbers.

    Notes
    -----
    O(n) work. Blocks are maximal runs of equal exact mean; SciPy compares rounded means, so where two of
    those tie by rounding, or fail to, its blocks differ from the exact ones.
    """
    values = np.atleast_1d(real_array(y, "y"))
    case_weights = None
    if weights is not None:
        case_weights = np.atleast_1d(real_array(weights, "weights"))
        if not (values.ndim == case_weights.ndim == 1 and values.size == case_weights.size):
            raise ValueError("Input arrays y and w must have one dimension of equal length.")
        with _native.DefaultFloatEnvironment():
            nonpositive = np.any(case_weights <= 0)
        if nonpositive:
            raise ValueError("Weights w must be strictly positive.")
    if values.ndim != 1:
        raise ValueError(f"array has incorrect number of dimensions: {values.ndim}; expected 1")
    problem = _Problem(
        values=flat(values),
        weights=None if case_weights is None else flat(case_weights),
        offsets=None,
        row_length=None,
        increasing=bool(increasing),
        lower=-np.inf,
        upper=np.inf,
        shape=values.shape,
        axis=0,
        threads=0,
    )
    fitted, starts = _fit(problem, out_dtype="float64", weight_name="w")
    result = IsotonicResult(fitted, problem, starts)
    return _result_type()(x=result.x, weights=result.weights, blocks=result.blocks)


def _result_type() -> type[dict[str, Any]]:
    try:
        from scipy.optimize import OptimizeResult as SciPyResult
    except ImportError:
        return OptimizeResult
    found: type[dict[str, Any]] = SciPyResult
    return found
