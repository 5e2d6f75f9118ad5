"""`isofold calibrate`: curves from a file of scores and outcomes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isofold.calibration import Calibrator
from isofold.calibration._aggregated import expand
from isofold.calibration._segment_keys import KeyColumn
from isofold.calibration.calibrator import DEFAULT_MIN_ROWS
from isofold.cli.columns import Floats, NumberColumn, outcome_columns, warn_of_roles
from isofold.cli.errors import CommandError, faults_of_file, warn
from isofold.cli.html import ReportWriter
from isofold.cli.inputs import open_input
from isofold.cli.keys import served_by
from isofold.cli.outputs import Output, check_outputs
from isofold.cli.report import (
    compare,
    print_comparison,
    print_dropped,
    print_json,
    print_segments,
    say,
    segment_summary,
    warn_of_labels,
)
from isofold.cli.rows import OnMissing, Rows, read_rows
from isofold.cli.sources import Piece
from isofold.cli.wording import counted


def _columns(
    score: str,
    label: str | None,
    weight: str | None,
    positives: str | None,
    total: str | None,
    on_missing: OnMissing,
) -> list[NumberColumn]:
    """The score, then label and perhaps weight, or positives and total."""
    if label is not None and positives is None and total is None:
        return outcome_columns(score, label, weight, on_missing)
    if label is None and weight is None and positives is not None and total is not None:
        drop = on_missing == "drop"
        columns = [
            NumberColumn(score, "score", drop_missing=drop),
            NumberColumn(positives, "positives", drop_missing=drop),
            NumberColumn(total, "total", drop_missing=drop),
        ]
        warn_of_roles(columns)
        return columns
    if label is None and positives is None and total is None:
        raise CommandError("no outcomes: give --label COLUMN (0 or 1), or --positives and --total")
    raise CommandError("outcomes are either --label, with --weight if wanted, or --positives and --total")


def _check_positives(name: str) -> Any:
    def check(piece: Piece, values: list[Floats]) -> None:
        _, positives, totals = values
        above = positives > totals  # false for NaN, which is dropped
        if above.any():
            index = int(np.argmax(above))
            fault = f"{positives[index]!s}, more than the total of {totals[index]!s}"
            raise piece.fault(name, index, fault)

    return check


def calibrate(
    path: str | os.PathLike[str],
    *,
    score: str,
    out: Path,
    label: str | None = None,
    weight: str | None = None,
    positives: str | None = None,
    total: str | None = None,
    segments: Sequence[str] = (),
    min_rows: int = DEFAULT_MIN_ROWS,
    increasing: bool = True,
    floor: float | None = None,
    ceiling: float | None = None,
    on_missing: OnMissing = "error",
    report: Path | None = None,
    title: str | None = None,
    as_json: bool = False,
    threads: int | None = None,
) -> None:
    """Fit curves, save them and print the metrics. Raises CommandError."""
    try:
        calibrator = Calibrator(
            increasing=increasing, floor=floor, ceiling=ceiling, threads=threads, min_rows=min_rows
        )
    except ValueError as error:
        raise CommandError(str(error)) from error
    calibrator.score_name = score
    columns = _columns(score, label, weight, positives, total, on_missing)
    if len(set(segments)) != len(segments):
        raise CommandError("--segment names a column twice")
    outputs = [Output(out, "--out", "curve")]
    if report is not None:
        outputs.append(Output(report, "--report", "report"))
    check_outputs(outputs, path)
    write_report = None if report is None else ReportWriter(report)

    with open_input(path) as source:
        rows = read_rows(
            source, columns, segments, check=None if positives is None else _check_positives(positives)
        )
    if len(columns) > 2 and not rows.numbers[2].any():
        raise CommandError(f"{os.fspath(path)}: column {columns[2].name!r}: every {columns[2].kind} is 0")

    keys = rows.segments()
    if positives is None:
        scores, labels, *rest = rows.numbers
        weights = rest[0] if rest else None
        calibrator.fit(scores, labels, weights, segments=keys)
    else:
        calibrator.fit_aggregated(rows.numbers[0], rows.numbers[1], rows.numbers[2], segments=keys)
        scores, labels, weights, keys = _spelled_out(rows)
    warn_of_labels(path, labels, weights)
    with faults_of_file(out, "cannot be written"):
        calibrator.save(out)

    served = None
    if keys is None:
        rates = calibrator.predict(scores)
    else:
        located = calibrator.locate(keys, len(scores))
        rates = calibrator.predict_located(scores, located)
        served = served_by(calibrator, located)
    # On its own training rows a curve looks better than it is.
    shown = "On the rows that the curve was fitted to (new rows will do less well)"
    if write_report is not None:
        write_report(
            scores,
            labels,
            rates,
            weights,
            keys,
            title=os.fspath(path) if title is None else title,
            notes=[f"{shown}."],
            served_by=served,
        )
    summary: dict[str, Any] = {
        "command": "calibrate",
        "out": os.fspath(out),
        "rows": len(rows),
        "dropped": asdict(rows.dropped),
        "knots": len(calibrator.knots_x_),
        "segments": segment_summary(calibrator) if segments else None,
        "metrics_on_training_rows": compare(labels, scores, rates, weights),
        "report": None if report is None else os.fspath(report),
    }
    _warn_of_a_flat_curve(summary["metrics_on_training_rows"], increasing=increasing)
    if as_json:
        print_json(summary)
        return
    knots = counted(len(calibrator.knots_x_), "knot") + (" of the global curve" if segments else "")
    say(f"{out}: {knots} from {counted(len(rows), 'row')} of {os.fspath(path)}")
    print_dropped(rows.dropped.rows, rows.dropped.by_column)
    if segments:
        print_segments(summary["segments"], min_rows)
    print_comparison(shown, summary["metrics_on_training_rows"], decimals=4)
    outcome = "COLUMN" if label is None else _quoted(label)
    say(f"On other rows: isofold report {_quoted(out)} FILE --label {outcome} --out report.html")
    if report is not None:
        say(f"{report}: the report")


def _quoted(name: str | Path) -> str:
    return shlex.quote(os.fspath(name))


def _warn_of_a_flat_curve(metrics: dict[str, Any], *, increasing: bool) -> None:
    """One rate for all rows: the scores say nothing, or the direction is the other one."""
    after = metrics["after"]
    if after["dsc"] == 0 and after["unc"] > 0:
        falls, remedy = ("falls", "with") if increasing else ("rises", "without")
        warn(
            f"the curve is flat (DSC 0); if the rate {falls} as scores rise, calibrate {remedy} --decreasing"
        )


def _spelled_out(
    rows: Rows,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None, list[KeyColumn] | None]:
    """Aggregated rows as weighted ones, for the metrics."""
    expanded, source = expand(rows.numbers[0], rows.numbers[1], rows.numbers[2])
    keys = [key[source] for key in rows.keys]
    return expanded.scores, expanded.labels, expanded.weights, keys or None
