"""`isotonic` as in torchisotonic, computed by isofold.

Takes the same arguments and raises the same messages, so that an import is all there is to change. The values
are the exact ones, rounded once, where torchisotonic's are within its solver's error of them; `exact` is
taken and has no effect.
"""

from __future__ import annotations

from torch import Tensor

from isofold.torch import isotonic_regression

__all__ = ["isotonic"]


def isotonic(
    y: Tensor,
    weight: Tensor | None = None,
    *,
    increasing: bool = True,
    y_min: float | None = None,
    y_max: float | None = None,
    dim: int = -1,
    exact: bool = True,
) -> Tensor:
    """Isotonic regression of every row of y along dim; a drop-in for `torchisotonic.isotonic`.

    Parameters
    ----------
    y : Tensor of at least one dimension
        Real; integers become torch's default dtype.
    weight : Tensor, optional
        Positive, of y's shape or broadcast to it.
    increasing : bool
        False: the non-increasing fit.
    y_min, y_max : float, optional
        The fit is clipped to these; where they cross, to y_max.
    dim : int
        Along which rows run.
    exact : bool
        Has no effect: every fit is exact.

    Returns
    -------
    Tensor of y's shape and dtype
        A row with a NaN or an infinity is NaN.

    Raises
    ------
    TypeError
        y or weight is no tensor, or y is complex.
    ValueError
        y has no dimensions; weight does not fit y or is not positive, which waits for the device.
    IndexError
        dim is out of range.

    Notes
    -----
    `isotonic_regression` of `isofold.torch` has the costs, and never waits for the device.
    """
    if not isinstance(y, Tensor):
        raise TypeError(f"y must be a torch.Tensor, got {type(y).__name__}")
    if y.is_complex():
        raise TypeError("complex tensors are not supported")
    if y.ndim == 0:
        raise ValueError("y must have at least one dimension")
    if weight is not None:
        if not isinstance(weight, Tensor):
            raise TypeError(f"weight must be a torch.Tensor, got {type(weight).__name__}")
        try:
            weight = weight.to(y.device).broadcast_to(y.shape)
        except RuntimeError as error:
            raise ValueError(f"weight of shape {tuple(weight.shape)} does not fit y") from error
        if not bool((weight > 0).all()):
            raise ValueError("weight must be strictly positive")
    if y_min is not None and y_max is not None:
        y_min = min(y_min, y_max)
    return isotonic_regression(y, weight, increasing=increasing, y_min=y_min, y_max=y_max, dim=dim)
