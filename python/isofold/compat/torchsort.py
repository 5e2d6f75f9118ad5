"""`soft_rank` and `soft_sort` as in torchsort, computed by isofold.

Takes the same arguments and raises the same messages for a bad one, so that an import is all there is to
change. Any number of dimensions is taken, not two alone, rows being along the last; a strength that is not
positive is refused; half precision works on a CPU; derivatives of any order are right.
"""

from __future__ import annotations

from torch import Tensor

from isofold.torch import soft

__all__ = ["soft_rank", "soft_sort"]


def _check(regularization: str) -> None:
    if regularization not in ("l2", "kl"):
        raise ValueError("'regularization' should be a 'l2' or 'kl'")


def soft_rank(values: Tensor, regularization: str = "l2", regularization_strength: float = 1.0) -> Tensor:
    """Soft ranks along the last dim, 1 the smallest; a drop-in for `torchsort.soft_rank`.

    Parameters
    ----------
    values : Tensor of shape (..., n)
        Real; integers become torch's default dtype.
    regularization : "l2" or "kl"
    regularization_strength : float
        Positive.

    Returns
    -------
    Tensor of values' shape and dtype

    Raises
    ------
    ValueError
        Another regularization, a strength that is not positive, or a tensor without dimensions.
    TypeError
        Not a tensor of real numbers.

    Notes
    -----
    `isofold.torch.soft_rank` has the costs and more options.
    """
    _check(regularization)
    return soft.soft_rank(values, regularization, regularization_strength)


def soft_sort(values: Tensor, regularization: str = "l2", regularization_strength: float = 1.0) -> Tensor:
    """Every row softly sorted, rising; a drop-in for `torchsort.soft_sort`. Otherwise as `soft_rank`."""
    _check(regularization)
    return soft.soft_sort(values, regularization, regularization_strength)
