"""On a GPU: histograms and best splits with the CPU's bits, waiting for nothing."""

from __future__ import annotations

import device_libraries
import numpy as np
import pytest
import torch
from tree_tensors import check_bad_input, check_bits

import isofold.torch.trees as trees

device_libraries.skip_without_gpu()


@pytest.mark.parametrize("part", range(10))
def test_the_bits_of_arrays(part: int) -> None:
    check_bits(range(40 * part, 40 * part + 40), "cuda")


def test_bad_input() -> None:
    check_bad_input("cuda")


def test_a_refused_grid_has_no_splits() -> None:
    bins = torch.arange(64, dtype=torch.uint8, device="cuda").repeat(40)[:, None]
    gradients = torch.randn(len(bins), device="cuda")
    gradients[5] = float("inf")
    histogram = trees.histogram(bins, gradients)
    assert int(histogram.grid[2]) == 1
    assert int(trees.best_splits(histogram).feature[0]) == -1


def test_waits_for_nothing() -> None:
    bins = torch.randint(0, 64, (20_000, 9), dtype=torch.uint8, device="cuda")
    gradients, ids = torch.randn(20_000, device="cuda"), torch.randint(0, 4, (20_000,), device="cuda")
    trees.best_splits(trees.histogram(bins, gradients, node_ids=ids, nodes=4))  # the first call sets up
    torch.cuda.set_sync_debug_mode("error")
    try:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            histogram = trees.histogram(bins, gradients, node_ids=ids, nodes=4)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    torch.cuda.synchronize()
    again = trees.histogram(bins, gradients, node_ids=ids, nodes=4, validate=True)
    assert np.array_equal(histogram.gradients.cpu().numpy(), again.gradients.cpu().numpy())
