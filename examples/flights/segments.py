"""Curves per carrier and per origin, on flights that neither model nor curves have seen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from comparison import Part, brier_sentence
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from isofold.calibration import Calibrator
from isofold.cli.apply import apply
from isofold.cli.calibrate import calibrate

Floats = NDArray[np.floating[Any]]

SHOWN = 5


@dataclass(frozen=True)
class SegmentResult:
    """How one segment fares under the one curve for all and under the curves of segments."""

    key: str
    served_by: str
    flights: int
    late: int
    one_curve: float  # predicted late flights
    own_curves: float
    deviations: float  # own_curves from late, in standard deviations of independent flights

    @property
    def ratios(self) -> tuple[float, float]:
        """Predicted over observed, for the one curve and for the curves of segments."""
        if self.late == 0:
            return np.inf, np.inf
        return self.one_curve / self.late, self.own_curves / self.late


def run_command_line(console: Console, out: Path, inputs: Path, column: str) -> tuple[Calibrator, Floats]:
    """Curves of one segment column, from calibrate and apply; returns them and the calibrated column."""
    curves, calibrated = out / f"curves_by_{column}.json", out / f"calibrated_by_{column}.parquet"
    train, scored = inputs / "calibration.parquet", inputs / "evaluation.parquet"
    console.print(
        f"\n$ isofold calibrate {train} --score score --label late --segment {column} --out {curves}"
    )
    calibrate(train, score="score", label="late", segments=[column], out=curves)
    console.print(f"\n$ isofold apply {curves} {scored} --out {calibrated}")
    apply(curves, scored, out=calibrated)
    rates: Floats = pyarrow.parquet.read_table(calibrated)["calibrated"].to_numpy()
    return Calibrator.load(curves), rates


def segment_results(
    curves: Calibrator, keys: NDArray[np.object_], late: NDArray[np.bool_], one_curve: Floats, own: Floats
) -> list[SegmentResult]:
    """Every segment among `keys`, the worst under its own curve first."""
    served = {segment.key[0]: segment.served_by for segment in curves.segments_}
    results = []
    for key in sorted(set(keys.tolist())):
        rows = keys == key
        spread = float(np.sqrt(np.sum(own[rows] * (1.0 - own[rows]))))
        gap = float(own[rows].sum() - late[rows].sum())
        results.append(
            SegmentResult(
                key=key,
                served_by=served.get(key, "unseen"),
                flights=int(rows.sum()),
                late=int(late[rows].sum()),
                one_curve=float(one_curve[rows].sum()),
                own_curves=float(own[rows].sum()),
                deviations=gap / spread if spread > 0 else 0.0 if gap == 0 else np.inf,
            )
        )
    return sorted(results, key=lambda result: (-abs(result.deviations), result.key))


def print_results(console: Console, column: str, results: list[SegmentResult]) -> None:
    shown = results[:SHOWN]
    table = Table(
        title=f"Worst of {len(results)} by {column}, unseen days", title_justify="left", title_style="bold"
    )
    for name in (column, "flights", "late", "one curve", "own curves", "deviations", "served by"):
        table.add_column(name, justify="left" if name in (column, "served by") else "right")
    for result in shown:
        one, own = result.ratios
        served = "own curve" if result.served_by == "own_curve" else f"global ({result.served_by})"
        counts = (f"{result.flights:,}", f"{result.late:,}")
        table.add_row(result.key, *counts, f"{one:.3f}", f"{own:.3f}", f"{result.deviations:+.1f}", served)
    console.print(table)
    console.print(
        "one curve, own curves: predicted over observed late flights. deviations: of own curves, in standard "
        "deviations if flights were independent, which flights of one day are not."
    )


def compare_segments(
    console: Console,
    out: Path,
    inputs: Path,
    part: Part,
    keys: dict[str, NDArray[np.object_]],
    one_curve: Floats,
) -> None:
    """Print, for each segment column, the worst segments, and whether its curves are better than one."""
    for column, values in keys.items():
        curves, own = run_command_line(console, out, inputs, column)
        print_results(console, column, segment_results(curves, values, part.late, one_curve, own))
        console.print(brier_sentence(f"curves by {column}", own, "one curve", one_curve, part))
