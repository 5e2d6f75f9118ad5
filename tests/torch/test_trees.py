"""Histograms and best splits of tensors on the CPU: those of arrays, to the bit."""

from __future__ import annotations

import pytest
from tree_tensors import check_bad_input, check_bits


@pytest.mark.parametrize("part", range(5))
def test_the_bits_of_arrays(part: int) -> None:
    check_bits(range(40 * part, 40 * part + 40), "cpu")


def test_bad_input() -> None:
    check_bad_input("cpu")
