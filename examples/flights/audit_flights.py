"""Where one global curve is wrong: segments found by an audit, tested on unseen days, and refitted."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import numpy as np
from comparison import Part, brier_sentence
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from isofold.calibration import Audit, Calibrator, audit
from isofold.cli.audit import audit as audit_file

Columns = dict[str, NDArray[Any]]
Floats = NDArray[np.float64]

FEATURES = ("carrier", "origin", "hour", "month")


def audit_one_curve(
    console: Console,
    fitted: Part,
    unseen: Part,
    features: tuple[Columns, Columns],
    one_curve: tuple[Floats, Floats],
    calibrated_file: Path,
) -> Audit:
    """Searches the flights that the curve was fitted to, tests on unseen days, and refits by segment.

    `features` and `one_curve` are of the fitted and of the unseen flights.
    """
    command = ["isofold", "audit", str(calibrated_file), "--score", "calibrated", "--label", "late"]
    command += [part for name in ("carrier", "origin", "hour") for part in ("--feature", name)]
    console.print(f"\n$ {shlex.join(command)}")
    audit_file(calibrated_file, score="calibrated", label="late", features=["carrier", "origin", "hour"])

    both = {name: np.concatenate([part[name] for part in features]) for name in FEATURES}
    held_out = np.repeat([False, True], [len(fitted.late), len(unseen.late)])
    found = audit(
        np.concatenate(one_curve), np.concatenate([fitted.late, unseen.late]), both, held_out=held_out
    )
    curves = Calibrator().fit(fitted.scores, fitted.late, segments=found.names(features[0]))
    refitted = curves.predict(unseen.scores, segments=found.names(features[1]))
    place = found.locate(features[1])

    table = Table(
        title="Segments found on the flights that calibrate, on unseen days",
        title_justify="left",
        title_style="bold",
    )
    for name in ("segment", "flights", "z", "predicted / observed", "z refitted", "p/o refitted"):
        table.add_column(name, justify="left" if name == "segment" else "right")
    for k, segment in enumerate(found.segments):
        inside = place == k
        z, ratio = _measured(refitted[inside], unseen.late[inside])
        table.add_row(
            segment.name + (" *" if segment.significant else ""),
            f"{segment.rows:,}",
            f"{segment.z:+.1f}",
            f"{segment.predicted_over_observed:.3f}",
            f"{z:+.1f}",
            f"{ratio:.3f}",
        )
    console.print(table)
    console.print(
        f"*: |z| above {found.z_threshold:.2f}. z: observed less predicted late flights in standard "
        "deviations, if flights were independent, which flights of one day are not."
    )
    console.print(brier_sentence("curves by segment", refitted, "one curve", one_curve[1], unseen))
    return found


def _measured(rates: Floats, late: NDArray[np.bool_]) -> tuple[float, float]:
    spread = float(np.sqrt(np.sum(rates * (1 - rates))))
    return float(late.sum() - rates.sum()) / spread, float(rates.sum() / late.sum())
