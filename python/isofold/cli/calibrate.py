"""`isofold calibrate`: curves from a file of scores and outcomes."""

from __future__ import annotations

import os
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
from isofold.cli.columns import Floats, NumberColumn
from isofold.cli.errors import CommandError, faults_of_file
from isofold.cli.html import report_writer
from isofold.cli.inputs import open_input
from isofold.cli.report import (
    compare,
    print_comparison,
    print_dropped,
    print_json,
    print_segments,
    say,
    segment_summary,
)
from isofold.cli.rows import OnMissing, Rows, read_rows
from isofold.cli.sources import Piece


def _columns(
    score: str, label: str | None, weight: str | None, positives: str | None, total: str | None, drop: bool
) -> list[NumberColumn]:
    """The score, then label and perhaps weight, or positives and total."""
    columns = [NumberColumn(score, "score", drop_missing=drop)]
    if label is not None and positives is None and total is None:
        columns.append(NumberColumn(label, "label", drop_missing=drop))
        if weight is not None:
            columns.append(NumberColumn(weight, "weight", drop_missing=drop))
    elif label is None and weight is None and positives is not None and total is not None:
        columns.append(NumberColumn(positives, "positives", drop_missing=drop))
        columns.append(NumberColumn(total, "total", drop_missing=drop))
    else:
        raise CommandError("outcomes are either --label, with --weight if wanted, or --positives and --total")
    return columns


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
    columns = _columns(score, label, weight, positives, total, on_missing == "drop")
    if len(set(segments)) != len(segments):
        raise CommandError("--segment names a column twice")
    write_report = None if report is None else report_writer(report)

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
    with faults_of_file(out, "cannot be written"):
        calibrator.save(out)

    rates = calibrator.predict(scores, segments=keys)
    # On its own training rows a curve looks better than it is; the title says what is shown.
    title = "On the rows that the curve was fitted to (new rows will do less well)"
    if write_report is not None:
        write_report(scores, labels, rates, weights, keys, f"{title}: {os.fspath(path)}")
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
    if as_json:
        print_json(summary)
        return
    say(f"{out}: {len(calibrator.knots_x_):,} knots from {len(rows):,} rows of {os.fspath(path)}")
    print_dropped(rows.dropped.rows, rows.dropped.by_column)
    if segments:
        print_segments(summary["segments"], min_rows)
    print_comparison(title, summary["metrics_on_training_rows"])
    if report is not None:
        say(f"{report}: the report")


def _spelled_out(
    rows: Rows,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64] | None, list[KeyColumn] | None]:
    """Aggregated rows as weighted ones, for the metrics."""
    expanded, source = expand(rows.numbers[0], rows.numbers[1], rows.numbers[2])
    keys = [KeyColumn(key.name, key.kind, key.codes[source], key.levels) for key in rows.keys]
    return expanded.scores, expanded.labels, expanded.weights, keys or None
