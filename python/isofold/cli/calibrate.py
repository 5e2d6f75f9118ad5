"""`isofold calibrate`: a curve from a file of scores and outcomes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from isofold.calibration import Calibrator
from isofold.cli.columns import NumberColumn, check_columns
from isofold.cli.errors import CommandError, faults_of_file
from isofold.cli.report import Floats, print_comparison, say, with_progress
from isofold.cli.sources import Source, open_source


def _read(source: Source, columns: list[NumberColumn]) -> list[Floats]:
    """The columns as arrays: 8 bytes a row and column is all that is held."""
    check_columns(source.path, source.names, [column.name for column in columns])
    for column in columns:
        column.check_type(source.schema)
    names = list(dict.fromkeys(column.name for column in columns))
    parts: list[list[Floats]] = [[] for _ in columns]
    rows = 0
    for batch in with_progress(source, source.batches(names), "reading"):
        for column, part in zip(columns, parts, strict=True):
            part.append(column.read(batch, rows))
        rows += batch.num_rows
    if rows == 0:
        raise CommandError(f"{source.path}: the file has no rows")
    return [np.concatenate(part) for part in parts]


def calibrate(
    path: Path,
    *,
    score: str,
    label: str,
    out: Path,
    weight: str | None = None,
    increasing: bool = True,
    floor: float | None = None,
    ceiling: float | None = None,
    threads: int | None = None,
) -> None:
    """Fit a curve, save it and print the metrics. Raises CommandError."""
    try:
        calibrator = Calibrator(increasing=increasing, floor=floor, ceiling=ceiling, threads=threads)
    except ValueError as error:
        raise CommandError(str(error)) from error
    calibrator.score_name = score

    source = open_source(path)
    with source.stream:
        columns = [
            NumberColumn(path, score, "score", text=source.text),
            NumberColumn(path, label, "label", text=source.text),
        ]
        if weight is not None:
            columns.append(NumberColumn(path, weight, "weight", text=source.text))
        scores, labels, *rest = _read(source, columns)
    weights = rest[0] if rest else None
    if weights is not None and not weights.any():
        raise CommandError(f"{path}: column {weight!r}: every weight is 0")

    calibrator.fit(scores, labels, weights)
    with faults_of_file(out, "cannot be written"):
        calibrator.save(out)
    say(f"{out}: {len(calibrator.knots_x_):,} knots from {len(scores):,} rows of {path}")
    # On its own training rows a curve looks better than it is; the title says what is shown.
    title = "On the rows that the curve was fitted to (new rows will do less well)"
    print_comparison(title, labels, scores, calibrator.predict(scores), weights)
