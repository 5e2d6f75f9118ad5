"""Figures against demands: what each cell's time is a multiple of, and whether that is what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from cells import (
    DEMANDS,
    FASTER_AT_LONG_NOISE,
    FASTER_THAN_PEER,
    MOST_FOR_CERTIFICATION,
    MOST_SCRATCH,
    Cell,
    Demand,
    floor_ms,
    verdict,
    yardstick,
)

Record = dict[str, Any]
PEER = "torchisotonic"


@dataclass(frozen=True)
class Judged:
    """A demand with its figures; without a record it was not measured."""

    demand: Demand
    record: Record | None = None
    ratio: float | None = None

    @property
    def verdict(self) -> str:
        return "not measured" if self.ratio is None else verdict(self.ratio, self.demand)


def by_cell(records: Iterable[Record]) -> dict[Cell, Record]:
    return {Cell.of(record): record for record in records if "failed" not in record}


def judged(records: list[Record]) -> list[Judged]:
    known = by_cell(records)
    found = []
    for demand in DEMANDS:
        record = known.get(demand.cell)
        other = known.get(yardstick(demand) or demand.cell)
        if record is None or other is None:
            found.append(Judged(demand))
            continue
        if demand.against == "noise":
            unit = other["ms"][1]
        else:
            unit = record["fit_ms" if demand.against == "fit" else "copy_ms"][1]
        found.append(Judged(demand, record, record["ms"][1] / unit))
    return found


def floor_of(record: Record, known: dict[Cell, Record]) -> float | None:
    """Milliseconds that the fewest bytes take at the rate of the copy beside, a gradient's beside its fit."""
    cell = Cell.of(record)
    timed = record if "copy_ms" in record else known.get(replace(cell, call="fit"))
    return None if timed is None else floor_ms(cell, record["elements"], timed["copy_ms"][1])


@dataclass(frozen=True)
class Check:
    """A demand that is no ratio of a cell to a yardstick."""

    what: str
    figure: str
    asked: str
    holds: bool | None

    @property
    def verdict(self) -> str:
        return "not measured" if self.holds is None else "pass" if self.holds else "miss"


def peer_ratios(cells: list[Record], of: str) -> dict[Cell, float]:
    """The peer's time over isofold's, medians of ratios within a round."""
    return {
        cell: record[of][PEER]["to_isofold"][1]
        for cell, record in by_cell(cells).items()
        if PEER in record.get(of, {})
    }


def checks(found: dict[str, Record]) -> Iterator[Check]:
    cells = found.get("peers", {}).get("cells", [])
    for of, kind in (("calls", "calls from Python"), ("replays", "replayed graphs")):
        ratios = peer_ratios(cells, of)
        slowest = min(ratios, key=lambda cell: ratios[cell], default=None)
        yield Check(
            f"{PEER}'s time over isofold's, least of {len(ratios)} cells, {kind}",
            f"{ratios[slowest]:.2f} ({slowest.size} {slowest.name})" if slowest else "",
            f"above {FASTER_THAN_PEER:g}",
            ratios[slowest] > FASTER_THAN_PEER if slowest else None,
        )
        long_noise = ratios.get(Cell("noise", 1, 100_000_000))
        yield Check(
            f"the same at 1 x 1e8 noise, {kind}",
            "" if long_noise is None else f"{long_noise:.2f}",
            f"at least {FASTER_AT_LONG_NOISE:g}",
            None if long_noise is None else long_noise >= FASTER_AT_LONG_NOISE,
        )
    lines = [line for line in found.get("certification", {}).get("cells", []) if line["shape"] == "noise"]
    worst = max(lines, key=lambda line: line["cost"], default=None)
    yield Check(
        "time with certification over time without, most of the noise cells",
        f"{worst['cost']:.2f} ({Cell.of(worst).size})" if worst else "",
        f"at most {MOST_FOR_CERTIFICATION:g}",
        bool(worst["cost"] <= MOST_FOR_CERTIFICATION) if worst else None,
    )
    yield from memory_checks(found)


def scratch_share(record: Record) -> float:
    """Of a float32 input of as many elements."""
    return float(record["scratch_bytes"] / (4 * record["elements"]))


def memory_checks(found: dict[str, Record]) -> Iterator[Check]:
    long = [
        record
        for record in found["core"]["cells"]
        if "call" not in record and record["length"] >= 1_000_000 and not record["ragged"]
    ]
    for dtype, weighted in sorted({(record["dtype"], record["weighted"]) for record in long}):
        these = [record for record in long if (record["dtype"], record["weighted"]) == (dtype, weighted)]
        most = max(these, key=scratch_share)
        yield Check(
            f"scratch over a float32 input, rows of 1e6 and more, {dtype}{', weighted' * weighted}",
            f"{scratch_share(most):.3f} ({Cell.of(most).size} {Cell.of(most).name})",
            f"at most {MOST_SCRATCH:g}",
            scratch_share(most) <= MOST_SCRATCH,
        )
    huge = found.get("peers", {}).get("huge")
    yield Check(
        "a row of 1e10 floats fits",
        f"{huge['ms'][1]:.1f} ms, copy {huge['copy_ms'][1]:.1f} ms, {huge['peak_bytes'] / 1e9:.0f} GB"
        if huge
        else "",
        "its time reported",
        True if huge else None,
    )
