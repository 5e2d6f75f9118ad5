"""Histograms and best splits of tensors on the CPU: those of arrays, to the bit."""

from __future__ import annotations

import pickle

import pytest
import torch
from tree_tensors import check_bad_input, check_bits

import isofold.torch.trees as trees


@pytest.mark.parametrize("part", range(5))
def test_the_bits_of_arrays(part: int) -> None:
    check_bits(range(40 * part, 40 * part + 40), "cpu")


def test_bad_input() -> None:
    check_bad_input("cpu")
    bins, ones = torch.zeros((3, 1), dtype=torch.uint8), torch.ones(3)
    with pytest.raises(ValueError, match=r"child is on another grid, \(-2., -2.\), not \(-2., -2.\)"):
        trees.histogram(bins, ones) - trees.histogram(bins, 4 * ones)
    with pytest.raises(ValueError, match="parent_outputs is not a number at position 0"):
        trees.best_splits(trees.histogram(bins, ones), parent_outputs=[float("nan")])


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickled(protocol: int) -> None:
    histogram = trees.histogram(torch.zeros((3, 1), dtype=torch.uint8), torch.ones(3))
    assert pickle.loads(pickle.dumps(histogram, protocol)).numpy() == histogram.numpy()
