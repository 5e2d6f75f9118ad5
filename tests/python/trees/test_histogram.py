"""Histograms against their definition: the grid, the sums, the counts."""

from __future__ import annotations

import numpy as np
import pytest
from random_trees import random_gradients
from tree_oracle import histogram as oracle
from tree_oracle import quantize

import isofold


def assert_same(found: isofold.Histogram, expected: np.ndarray) -> None:
    assert np.array_equal(found.gradients, expected[0])
    assert np.array_equal(found.hessians, expected[1])
    assert np.array_equal(found.counts, expected[2])
    assert found.gradients.dtype == found.hessians.dtype == np.int64
    assert found.counts.dtype == np.int32


@pytest.mark.parametrize("seed", range(60))
def test_agrees_with_the_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows = int(random.choice([0, 1, 5, 100, 1024, 1500]))
    features = int(random.choice([0, 1, 3, 4, 9]))
    bin_count = int(random.choice([1, 2, 31, 256]))
    bins = random.integers(0, bin_count, (rows, features)).astype(random.choice([np.uint8, np.uint16]))
    gradients, hessians = random_gradients(random, rows)
    pairs, grid = quantize(gradients, np.ones(rows) if hessians is None else hessians)
    nodes = int(random.integers(1, 4))
    node_ids = random.integers(-1, nodes, rows) if random.random() < 0.5 else None
    subset = random.integers(0, rows, rows // 2) if rows and random.random() < 0.5 else None
    expected = oracle(bins, pairs, bin_count, node_ids, nodes, subset)
    wide = np.zeros((2 * rows, features + 3), bins.dtype)
    wide[::2, 1 : features + 1] = bins
    for layout in (bins, np.asfortranarray(bins), wide[::2, 1 : features + 1], bins[::-1][::-1]):
        for threads in (1, 3):
            found = isofold.histogram(
                layout,
                gradients,
                hessians,
                node_ids,
                nodes=nodes,
                rows=subset,
                bin_count=bin_count,
                threads=threads,
            )
            assert tuple(found.grid) == grid or not rows
            assert_same(found, expected)


def test_many_rows_with_the_largest_values() -> None:
    # Beyond one round of sums that share a word, in one bin, all at the top of the grid.
    rows = 200_001
    quantized = isofold.quantize_gradients(np.full(rows, -1.9999999999), np.full(rows, 1.9999999999))
    assert np.all(quantized.values == [-(2**29), 2**24])
    found = isofold.histogram(np.zeros((rows, 5), np.uint8), quantized, threads=2)
    assert np.all(found.gradients == -(2**29) * rows)
    assert np.all(found.hessians == 2**24 * rows)
    assert np.all(found.counts == rows)


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 0.5, -1.9999999, 3e-9],
        [1e300, -1e299, 1e-300, 0.0],
        [5e-324, -1e-323, 2e-323, 0.0],
        [2.0**-1000, 2.0**-1022, -(2.0**-1040), 2.0**-1074],
        [1.7976931348623157e308, -1.7976931348623157e308, 1.0, 1e305],
        [1 + 2.0**-29, 1 + 3 * 2.0**-29, 1 - 2.0**-30, -(1 + 2.0**-29)],  # halves of a unit
        [0.0, -0.0, 0.0, 0.0],
    ],
)
def test_the_grid(values: list[float]) -> None:
    hessians = np.abs(values)
    found = isofold.quantize_gradients(values, hessians)
    pairs, grid = quantize(values, hessians)
    assert tuple(found.grid) == grid
    assert np.array_equal(found.values, pairs)
    assert np.all((found.values[:, 1] > 0) == (hessians > 0))
    with np.errstate(over="ignore"):
        narrow = np.asarray(values).astype(np.float32)
    if np.all(np.isfinite(narrow)):
        assert np.array_equal(
            isofold.quantize_gradients(narrow).values,
            isofold.quantize_gradients(narrow.astype(np.float64)).values,
        )


def test_a_given_grid() -> None:
    whole = isofold.quantize_gradients([4.0, 1.0, 0.25], [1.0, 0.5, 0.25])
    part = isofold.quantize_gradients([1.0, 0.25], [0.5, 0.25], grid=whole.grid)
    assert np.array_equal(part.values, whole.values[1:])
    with pytest.raises(ValueError, match="position 1 is beyond the given grid: 9"):
        isofold.quantize_gradients([1.0, 9.0], grid=whole.grid)
    with pytest.raises(ValueError, match="exponents must be from -1074 to 1023, and are -2000"):
        isofold.quantize_gradients([1.0], grid=isofold.GradientGrid(-2000, 0))


def test_subtraction_gives_the_other_rows() -> None:
    random = np.random.default_rng(1)
    bins = random.integers(0, 9, (500, 3)).astype(np.uint8)
    quantized = isofold.quantize_gradients(random.normal(size=500), random.random(500))
    left = np.flatnonzero(random.random(500) < 0.3)
    right = np.setdiff1d(np.arange(500), left)
    parent = isofold.histogram(bins, quantized)
    children = [isofold.histogram(bins, quantized, rows=rows, bin_count=9) for rows in (left, right)]
    assert parent - children[0] == children[1]
    assert parent.subtract(children[1]) == children[0]
    ids = np.zeros(500, np.int64)
    ids[right] = 1
    both = isofold.histogram(bins, quantized, node_ids=ids)
    assert both.select([0]) == children[0]
    assert both.select(1) == children[1]
    with pytest.raises(ValueError, match="node 0, feature 0, bin 0 has"):
        children[0] - parent
    with pytest.raises(ValueError, match="child is on another grid"):
        parent - isofold.histogram(bins, 4 * random.normal(size=500))
    with pytest.raises(ValueError, match="child has shape"):
        parent - isofold.histogram(bins[:, :2], quantized)


def test_sums_as_floats() -> None:
    found = isofold.histogram(np.array([[0], [1], [1]], np.uint8), [0.1, 0.5, 0.25], [1.0, 2.0, 3.0])
    assert found.gradient_sums[0, 0, 1] == 0.75
    assert abs(found.gradient_sums[0, 0, 0] - 0.1) <= 2.0**-31
    assert np.array_equal(found.hessian_sums[0, 0], [1.0, 5.0])
    assert found.shape == (1, 1, 2)


BINS = np.array([[0, 1], [2, 3], [1, 0]], np.uint8)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"bins": BINS.astype(np.int64)}, TypeError, "bins must be uint8 or uint16, not int64"),
        ({"bins": BINS[0]}, ValueError, r"bins must have shape \(rows, features\)"),
        ({"bin_count": 3}, ValueError, "bins: row 1, feature 1 is 3, and there are 3 bins"),
        ({"bins": BINS.astype(np.uint16), "bin_count": 2}, ValueError, "bins: row 1, feature 0 is 2"),
        ({"bin_count": 300}, ValueError, "bin_count must be from 1 to 256: 300"),
        ({"bin_count": 0}, ValueError, "bin_count"),
        ({"gradients": [1.0, 2.0]}, ValueError, "gradients has 2 rows, but bins has 3"),
        ({"gradients": [1.0, np.nan, 2.0]}, ValueError, "gradients must be finite: position 1 is nan"),
        ({"gradients": [1.0, 0.0, -np.inf]}, ValueError, "gradients must be finite: position 2 is -inf"),
        ({"gradients": ["a", "b", "c"]}, TypeError, "gradients must hold real numbers"),
        ({"hessians": [1.0, np.inf, 2.0]}, ValueError, "hessians must be finite: position 1 is inf"),
        (
            {"hessians": [1.0, 2.0, -1e-300]},
            ValueError,
            "hessians must not be negative: position 2 is -1.*e-300",
        ),
        ({"hessians": [1.0]}, ValueError, r"hessians has shape \(1,\), but gradients has shape \(3,\)"),
        ({"node_ids": [0, 1]}, ValueError, "node_ids has 2 entries, but bins has 3 rows"),
        ({"node_ids": [0, 1, 2], "nodes": 2}, ValueError, r"node_ids\[2\] is 2"),
        ({"node_ids": [0, -2, 1]}, ValueError, r"node_ids\[1\] is -2"),
        ({"node_ids": [0.0, 1.0, 1.0]}, TypeError, "node_ids must hold integers"),
        ({"rows": [0, 3]}, ValueError, r"rows\[1\] is 3"),
        ({"rows": [-1]}, ValueError, r"rows\[0\] is -1"),
        ({"bins": np.ma.masked_array(BINS, BINS == 0)}, TypeError, "bins is a masked array"),
        ({"node_ids": np.ma.masked_array([0, 0, 0], [1, 0, 0])}, TypeError, "node_ids is a masked array"),
        ({"nodes": True}, TypeError, "nodes must be an integer"),
        ({"threads": 0}, ValueError, "threads must be at least 1"),
    ],
)
def test_errors_name_argument_and_position(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        isofold.histogram(**{"bins": BINS, "gradients": [1.0, 2.0, 3.0], **arguments})


def test_quantised_gradients_bring_their_hessians() -> None:
    with pytest.raises(TypeError, match="part of quantised gradients"):
        isofold.histogram(BINS, isofold.quantize_gradients([1.0, 2.0, 3.0]), [1.0, 1.0, 1.0])


def test_more_threads_than_there_can_be() -> None:
    # Memory for a thousand million threads would be the end of the process.
    found = isofold.histogram(BINS, [1.0, 2.0, 3.0], threads=2**31 - 1)
    assert found == isofold.histogram(BINS, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("dtype", [">u2", "<u2", "u1"])
def test_bins_of_any_byte_order(dtype: str) -> None:
    assert isofold.histogram(BINS.astype(dtype), [1.0, 2.0, 3.0]) == isofold.histogram(BINS, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("pair", [(2**29 + 1, 1), (-(2**29) - 1, 1), (0, 2**24 + 1), (0, -1), (-(2**31), 0)])
def test_pairs_beyond_the_grid_are_refused(pair: tuple[int, int]) -> None:
    quantized = isofold.quantize_gradients([1.0, 2.0, 3.0])
    quantized.values[1] = pair
    message = f"gradients: row 1 is {pair[0]}, hessian {pair[1]}, beyond what quantize_gradients gives"
    with pytest.raises(ValueError, match=message):
        isofold.histogram(BINS, quantized)
    quantized.values[1] = (
        np.sign(pair) * np.minimum(np.abs(np.int64(pair)), (2**29, 2**24)) * (1, pair[1] > 0)
    )
    assert isofold.histogram(BINS, quantized).counts.sum() == 6
    with pytest.raises(TypeError, match="quantised ones are int32"):
        isofold.histogram(BINS, quantized._replace(values=quantized.values.astype(np.float64)))


def test_inputs_are_left_alone() -> None:
    bins, gradients = BINS.copy(), np.array([1.0, 2.0, 3.0])
    for array in (bins, gradients):
        array.flags.writeable = False
    assert_same(
        isofold.histogram(bins, gradients), oracle(BINS, quantize(gradients, np.ones(3))[0], 4, None, 1, None)
    )


def test_quantised_gradients_at_any_address() -> None:
    pairs = isofold.quantize_gradients([1.0, 2.0, 3.0])
    memory = np.zeros(7, np.int32)
    for start in (0, 1):
        moved = memory[start : start + 6].reshape(3, 2)
        moved[:] = pairs.values
        assert isofold.histogram(BINS, pairs._replace(values=moved)) == isofold.histogram(BINS, pairs)
