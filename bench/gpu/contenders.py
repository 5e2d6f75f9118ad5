"""Who is timed: isofold, torchisotonic and torchsort on the same tensors, and a copy of the input.

torchsort knows decreasing fits without weights only: it is given the negated values, which is the same
problem. What is called is what a user of each would call; `solver` leaves out torchisotonic's check of the
weights, which waits for the GPU, so that it can be captured in a graph.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from cells import Cell
from families import VALUES, WEIGHTS, fill, ragged_lengths
from torch import Tensor

from isofold.torch import isotonic_regression

Call = Callable[[], Any]
LONGEST_FOR_TORCHSORT = 1_000_000  # it walks a row on one thread


@dataclass(frozen=True)
class Data:
    """A cell's rows: (rows, length), or flat with offsets. `incoming`: of a gradient."""

    values: Tensor
    weights: Tensor | None
    offsets: Tensor | None
    incoming: Tensor | None

    @property
    def elements(self) -> int:
        return int(self.values.numel())


@dataclass(frozen=True)
class Contender:
    """`call` is timed on the stream; `solver`, where there is one, also as a captured graph."""

    call: Call
    solver: Call | None


def draw(cell: Cell, device: str, weighting: str | None = None) -> Data:
    dtype = getattr(torch, cell.dtype)
    offsets = None
    total = cell.rows * cell.length
    if cell.ragged:
        lengths = ragged_lengths(cell.rows, cell.length).to(device)
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        total = int(offsets[-1])

    def made(formula: Any) -> Tensor:
        flat = fill(formula, torch.empty(total, dtype=dtype, device=device), cell.length, offsets)
        return flat if cell.ragged else flat.view(cell.rows, cell.length)

    values = made(VALUES[cell.shape])
    weights = None
    if cell.weighted:
        weights = made(WEIGHTS[weighting or ("trials" if cell.shape == "rates" else "digits")])
    incoming = None if cell.is_fit else values.flip(-1) * (1 + torch.arange(cell.length, device=device) % 3)
    return Data(values, weights, offsets, None if incoming is None else incoming.to(dtype))


def installed(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def torchsort_for(cell: Cell) -> ModuleType | None:
    plain = not cell.weighted and not cell.ragged and cell.length <= LONGEST_FOR_TORCHSORT
    return installed("torchsort.ops") if plain else None


def fits(cell: Cell, data: Data) -> dict[str, Contender]:
    y, w, offsets = data.values, data.weights, data.offsets

    def ours() -> Tensor:
        return isotonic_regression(y, w, offsets=offsets)

    found = {"isofold": Contender(ours, ours)}
    peer = installed("torchisotonic._api")
    if peer is not None and not cell.ragged:
        isotonic, solve = peer.isotonic, peer._solve
        found["torchisotonic"] = Contender(lambda: isotonic(y, w), lambda: solve(y, w, True))
    sorter = torchsort_for(cell)
    if sorter is not None:
        negated, pool = -y, sorter.isotonic_l2[y.device.type]
        found["torchsort"] = Contender(lambda: pool(negated), None)
    return found


def gradients(cell: Cell, data: Data) -> dict[str, Contender]:
    """The backward pass alone, of a fit made before; in the values and, if the call says so, the weights."""
    both = cell.call == "gradient in values and weights"

    def backward(fit: Callable[[Tensor, Tensor | None], Tensor]) -> Call:
        y = data.values.detach().requires_grad_()
        w = None if data.weights is None else data.weights.detach().requires_grad_(both)
        out = fit(y, w)
        wanted = [y] if w is None or not both else [y, w]
        return lambda: torch.autograd.grad(out, wanted, data.incoming, retain_graph=True)

    found = {"isofold": Contender(backward(isotonic_regression), None)}
    peer = installed("torchisotonic")
    if peer is not None:
        found["torchisotonic"] = Contender(backward(peer.isotonic), None)
    sorter = torchsort_for(cell)
    if sorter is not None:
        kind = data.values.device.type
        negated, back = -data.values, sorter.isotonic_l2_backward[kind]
        fit = sorter.isotonic_l2[kind](negated)
        found["torchsort"] = Contender(lambda: back(negated, fit, data.incoming), None)
    return found


def contenders(cell: Cell, data: Data) -> dict[str, Contender]:
    """All of them that can do this cell, and the copy."""
    sources = [data.values] if data.weights is None else [data.values, data.weights]
    target = torch.empty_like(data.values)

    def copy() -> None:
        for source in sources:
            target.copy_(source)

    found = fits(cell, data) if cell.is_fit else gradients(cell, data)
    return {**found, "copy": Contender(copy, copy)}
