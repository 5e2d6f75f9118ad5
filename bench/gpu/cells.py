"""What is measured, what is asked of it, and the fewest bytes that it can move."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

ITEM_BYTES = {"float32": 4, "float64": 8}
OFFSET_BYTES = 8
FLAG_BYTES = 1


@dataclass(frozen=True)
class Cell:
    """Rows of one kind. Of a ragged batch `length` is the longest row; call: "fit", "gradient in values" or
    "gradient in values and weights"."""

    shape: str
    rows: int
    length: int
    dtype: str = "float32"
    weighted: bool = False
    ragged: bool = False
    call: str = "fit"

    @classmethod
    def of(cls, record: dict[str, Any]) -> Cell:
        """From a line of a file of figures."""
        known = {name: record[name] for name in ("shape", "rows", "length", "dtype", "weighted", "ragged")}
        return cls(**known, call=record.get("call", "fit"))

    @property
    def is_fit(self) -> bool:
        return self.call == "fit"

    @property
    def expected_elements(self) -> float:
        """Of ragged rows, whose lengths are log-uniform, about this many."""
        return self.rows * self.length / (math.log(self.length) if self.ragged else 1)

    @property
    def size(self) -> str:
        return f"{short(self.rows)} x {'up to ' if self.ragged else ''}{short(self.length)}"

    @property
    def name(self) -> str:
        marks = [self.shape] + ["weighted"] * self.weighted + [self.dtype] * (self.dtype != "float32")
        return ", ".join(marks + [self.call] * (not self.is_fit))


def short(count: int) -> str:
    """1e8 for 100,000,000; small numbers as they are."""
    digits = str(count)
    zeros = len(digits) - len(digits.rstrip("0"))
    if count < 1000:
        return digits
    head = digits[: len(digits) - zeros]
    if len(head) > 3:
        return f"{count:,}"
    power = len(digits) - 1
    return f"{head[0]}{'.' + head[1:] if head[1:] else ''}e{power}"


@dataclass(frozen=True)
class Floor:
    """Bytes that must be read, each once, and written."""

    read: int
    written: int

    @property
    def bytes(self) -> int:
        return self.read + self.written


def floor(cell: Cell, elements: int, flags_written: bool = False) -> Floor:
    """Every input once, every output once: what no call can do without.

    A fit reads values, weights and the offsets of ragged rows. A gradient reads what comes in, a flag an
    element where blocks start, and weights; that in the weights reads the values too, for the blocks' means.
    flags_written: the fit also says where blocks start.
    """
    array = elements * ITEM_BYTES[cell.dtype]
    offsets = (cell.rows + 1) * OFFSET_BYTES if cell.ragged else 0
    weights = array if cell.weighted else 0
    flags = elements * FLAG_BYTES
    if cell.is_fit:
        return Floor(array + weights + offsets, array + (flags if flags_written else 0))
    if cell.call == "gradient in values":
        return Floor(array + flags + weights + offsets, array)
    return Floor(2 * array + flags + weights + offsets, 2 * array)


def copy_bytes(cell: Cell, elements: int) -> int:
    """What the copy beside a cell moves: values, and weights where there are some, read and written."""
    return 2 * elements * ITEM_BYTES[cell.dtype] * (2 if cell.weighted else 1)


def floor_ms(cell: Cell, elements: int, copy_ms: float) -> float:
    """The floor's bytes at the rate of the copy."""
    return copy_ms * floor(cell, elements).bytes / copy_bytes(cell, elements)


@dataclass(frozen=True)
class Demand:
    """At most `must` times the yardstick, better `aim`. against: "copy", "fit" (the same rows' fit) or
    "noise" (the fit of noise of the same size, type and weighting)."""

    cell: Cell
    must: float
    aim: float
    against: str = "copy"


def _demands() -> Iterable[Demand]:
    long, middle, million = 100_000_000, 10_000_000, 1_000_000
    for shape in ("noise", "labels", "decreasing"):
        yield Demand(Cell(shape, 1, long), 2.2, 1.5)
    for shape in ("increasing", "constant"):
        yield Demand(Cell(shape, 1, long), 4.2, 2.5)
    for shape in ("tens", "half", "cliff", "mirrored_cliff", "sawtooth5003", "sawtooth1e5"):
        yield Demand(Cell(shape, 1, long), 10, 6)
    yield Demand(Cell("noise", 1, middle), 4, 2.3)
    yield Demand(Cell("noise", 1, million), 6, 3)
    for rows, length in ((100, 100_000), (1_000, 10_000), (10_000, 1_000)):
        yield Demand(Cell("noise", rows, length), 5, 2.5)
    for rows, length in ((100_000, 100), (million, 16)):
        for shape in ("noise", "increasing"):
            yield Demand(Cell(shape, rows, length), 3, 1.6)
    yield Demand(Cell("noise", 11_500, 100_000, ragged=True), 4, 2)
    yield Demand(Cell("noise", 100_000, 10_000, ragged=True), 4, 2)
    yield Demand(Cell("noise", 1, long, "float64"), 3, 2)
    yield Demand(Cell("increasing", 1, long, "float64"), 5, 3)
    yield Demand(Cell("noise", 1, long, weighted=True), 3, 1.8)
    for dtype in ("float32", "float64"):
        yield Demand(Cell("rates", 1, middle, dtype, weighted=True), 3, 1.5, "noise")
    yield Demand(Cell("ninths", 1, middle, "float64"), 3, 1.5, "noise")
    for dtype in ("float32", "float64"):
        yield Demand(Cell("decimals", 1, middle, dtype), 3, 1.5, "noise")
    for rows, length in ((1, long), (million, 16)):
        for shape in ("noise", "increasing"):
            yield Demand(Cell(shape, rows, length, call="gradient in values"), 1.5, 0.8, "fit")


DEMANDS = tuple(_demands())
# Beside torchisotonic: its time at least this many times isofold's.
FASTER_THAN_PEER = 1.0
FASTER_AT_LONG_NOISE = 4.0
MOST_FOR_CERTIFICATION = 1.10
MOST_SCRATCH = 0.3  # of a float32 input, for rows of a million elements and more


def yardstick(demand: Demand) -> Cell | None:
    """The cell whose time it is compared with; None: the copy in the cell itself."""
    cell = demand.cell
    if demand.against == "noise":
        return Cell("noise", cell.rows, cell.length, cell.dtype, cell.weighted, cell.ragged)
    return None


def verdict(ratio: float, demand: Demand) -> str:
    return "aim reached" if ratio <= demand.aim else "pass" if ratio <= demand.must else "miss"
