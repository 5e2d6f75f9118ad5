"""bench/gpu: the rows it makes, who is called on them, and how times are put together. On a CPU."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench" / "gpu"))

from cells import Cell
from contenders import contenders, draw
from families import VALUES, WEIGHTS, At, fill, mixed, ragged_lengths
from timing import Clock, rounds_of, summary

import isofold

MASK = (1 << 64) - 1


def mixed_integer(x: int) -> int:
    """As in tests/cuda/shapes.cpp."""
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def uniform(seed: int, stream: int, i: int) -> float:
    return ((mixed_integer((mixed_integer(seed * 64 + stream) + i) & MASK) >> 11) + 0.5) * 2.0**-53


def test_the_generator_is_that_of_the_cpp_program() -> None:
    integers = [0, 1, 77, (1 << 62) + 5]
    found = mixed(torch.tensor(integers)).tolist()
    assert [x & MASK for x in found] == [mixed_integer(x) for x in integers]
    at = At(torch.arange(100), 100, torch.tensor(3), False)
    assert at.uniform(2).tolist() == [uniform(3, 2, i) for i in range(100)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", VALUES)
def test_every_row_has_a_seed_of_its_own(shape: str, dtype: torch.dtype) -> None:
    batch = fill(VALUES[shape], torch.empty(300, dtype=dtype), 100).view(3, 100)
    assert torch.isfinite(batch).all()
    for row in range(3):
        alone = fill(VALUES[shape], torch.empty(100, dtype=dtype), 100, seed=1 + row)
        assert torch.equal(batch[row], alone)
    offsets = torch.tensor([0, 100, 200, 300])
    assert torch.equal(fill(VALUES[shape], torch.empty(300, dtype=dtype), 100, offsets), batch.view(-1))


def test_noise_and_weights() -> None:
    noise = fill(VALUES["noise"], torch.empty(1000, dtype=torch.float64), 1000)
    expected = 3 * 0.007 + math.sqrt(-2 * math.log(uniform(1, 0, 7))) * math.cos(
        6.283185307179586 * uniform(1, 1, 7)
    )
    assert float(noise[7]) == pytest.approx(expected, rel=1e-14)
    for formula in WEIGHTS.values():
        assert (fill(formula, torch.empty(1000), 1000) > 0).all()
    lengths = ragged_lengths(1000, 500)
    assert 1 <= int(lengths.min()) <= int(lengths.max()) <= 500


@pytest.mark.parametrize(
    "cell",
    [
        Cell("noise", 3, 50),
        Cell("noise", 1, 50, "float64", weighted=True),
        Cell("rates", 2, 50, weighted=True),
        Cell("noise", 20, 50, ragged=True),
    ],
)
def test_fits_are_isofolds(cell: Cell) -> None:
    data = draw(cell, "cpu")
    found = contenders(cell, data)
    assert {"isofold", "copy"} <= found.keys()
    flat = found["isofold"].call().reshape(-1).numpy()
    expected = isofold.isotonic_regression(
        data.values.numpy(),
        weights=None if data.weights is None else data.weights.numpy(),
        offsets=None if data.offsets is None else data.offsets.numpy(),
    )
    assert (flat == expected.x.reshape(-1)).all()


@pytest.mark.parametrize("call", ["gradient in values", "gradient in values and weights"])
def test_gradients_are_of_the_drawn_rows(call: str) -> None:
    cell = Cell("noise", 2, 50, weighted=call.endswith("weights"), call=call)
    data = draw(cell, "cpu")
    found = contenders(cell, data)["isofold"].call()
    assert len(found) == (2 if cell.weighted else 1)
    assert all(one.shape == data.values.shape for one in found)
    assert data.incoming is not None
    if not cell.weighted:
        assert float(found[0].sum()) == pytest.approx(float(data.incoming.sum()), rel=1e-4)


def test_ratios_are_taken_within_a_round() -> None:
    taken = {"isofold": [2.0, 4.0, 6.0], "peer": [6.0, 8.0], "copy": [1.0, 2.0, 3.0]}
    found = summary(taken)
    assert found["isofold"]["to_copy"] == [2.0, 2.0, 2.0]
    assert found["peer"]["to_isofold"][1] == 2.5
    assert found["peer"]["rounds"] == 2


def test_everybody_is_called_once_a_round() -> None:
    calls = {"isofold": 0, "copy": 0}

    def called(name: str) -> None:
        calls[name] += 1

    times = rounds_of(Clock("cpu"), {name: lambda name=name: called(name) for name in calls}, 5)
    assert {name: len(each) for name, each in times.items()} == {"isofold": 5, "copy": 5}
    assert calls["isofold"] == calls["copy"] == 8
