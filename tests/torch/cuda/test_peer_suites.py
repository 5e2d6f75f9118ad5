"""What of torchsort's and torchisotonic's tests needs a GPU, through the shims.

Of torchisotonic's test_cuda.py, test_gradient_blocks_across_tiles and test_gradient_blocks_from_the_hull call
its private functions and are not run. test_gradcheck of torchsort runs in `test_torchsort_suite.py`, on this
device too.
"""

from __future__ import annotations

import device_libraries
import peer_suites

device_libraries.skip_without_gpu()

_suites = peer_suites.suite(
    "torchisotonic",
    "test_cuda.py",
    frozenset(
        {
            "torchisotonic._api",
            "test_gradient_blocks_across_tiles",
            "test_gradient_blocks_from_the_hull",
        }
    ),
) | peer_suites.suite(
    "torchsort",
    "test_ops.py",
    frozenset({"fast_soft_sort.pytorch_ops", "test_vs_original", "test_gradcheck"}),
)
globals().update(_suites)


def test_suites_are_the_real_ones() -> None:
    assert {"test_matches_cpu", "test_gradients_match_cpu", "test_half"} <= _suites.keys()
