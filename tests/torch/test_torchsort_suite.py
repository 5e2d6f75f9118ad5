"""torchsort's own tests, with isofold.compat.torchsort swapped in.

Run: test_gradcheck, 12 cases a device. Not run: test_vs_original compares with fast-soft-sort, which no
package index has (`test_soft.py` compares with the definition instead); test_half is for CUDA alone, and runs
there (`cuda/test_peer_suites.py`).
"""

from __future__ import annotations

import peer_suites
import pytest
import torch

import isofold.compat.torchsort
import isofold.torch

_suite = peer_suites.suite(
    "torchsort", "test_ops.py", frozenset({"fast_soft_sort.pytorch_ops", "test_vs_original", "test_half"})
)
globals().update(_suite)


def test_suite_is_the_real_one() -> None:
    assert list(_suite) == ["test_gradcheck"]
    assert _suite["test_gradcheck"].__globals__["soft_rank"] is isofold.compat.torchsort.soft_rank


@pytest.mark.parametrize("regularization", ["l2", "kl"])
def test_is_isofold(regularization: str) -> None:
    values = torch.tensor([[1.0, -2, 2, 3, 0.5, -1]])
    for name in ("soft_rank", "soft_sort"):
        shim, function = getattr(isofold.compat.torchsort, name), getattr(isofold.torch, name)
        assert torch.equal(
            shim(values, regularization, regularization_strength=0.5), function(values, regularization, 0.5)
        )
        assert shim(values[0], regularization).shape == (6,)


def test_messages() -> None:
    with pytest.raises(ValueError, match="'regularization' should be a 'l2' or 'kl'"):
        isofold.compat.torchsort.soft_rank(torch.zeros(1, 3), "l1")
    with pytest.raises(ValueError, match="regularization_strength must be positive and finite, not 0"):
        isofold.compat.torchsort.soft_sort(torch.zeros(1, 3), "l2", 0)
