"""torchisotonic's own tests, with isofold.compat.torchisotonic swapped in.

Run: all of test_isotonic.py but test_ninja_found_without_an_activated_environment, which is of its compiler's
set-up, and all of test_grad.py. test_cuda.py runs where there is a GPU (`cuda/test_peer_suites.py`).
test_hull_prototype.py is of a file in its documentation and never calls the package.
"""

from __future__ import annotations

import peer_suites
import pytest
import torch

import isofold.compat.torchisotonic
import isofold.torch

_isotonic = peer_suites.suite(
    "torchisotonic",
    "test_isotonic.py",
    frozenset({"test_ninja_found_without_an_activated_environment"}),
)
_grad = peer_suites.suite("torchisotonic", "test_grad.py")
globals().update(_isotonic, **_grad)


def test_suites_are_the_real_ones() -> None:
    assert len(_isotonic) == 11
    assert len(_grad) == 5
    for test in (_isotonic["test_empty"], _grad["test_block_average"]):
        assert test.__globals__["torchisotonic"] is isofold.compat.torchisotonic


def test_bounds_and_exact() -> None:
    y = torch.tensor([[3.0, 1.0, 2.0, 5.0]], requires_grad=True)
    shim = isofold.compat.torchisotonic.isotonic
    assert torch.equal(shim(y, exact=False), isofold.torch.isotonic_regression(y))
    shim(y, y_min=2, y_max=4).sum().backward()
    assert y.grad.tolist() == [[1, 1, 1, 0]]
    assert shim(y, y_min=4, y_max=3).tolist() == [[3.0] * 4]
    with pytest.raises(IndexError, match="dim 2 is out of range"):
        shim(y, dim=2)
