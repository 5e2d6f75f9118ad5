"""`isofold report`: how curves do on rows with outcomes, as an HTML file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from isofold.calibration import Calibrator
from isofold.calibration._segment_keys import KeyColumn
from isofold.cli.apply import load_curve, score_name, segment_names
from isofold.cli.columns import Floats, NumberColumn, check_columns, outcome_columns
from isofold.cli.errors import CommandError, reported
from isofold.cli.html import ReportWriter
from isofold.cli.inputs import Input, open_input
from isofold.cli.keys import KeyReader, SegmentLocator, concatenated, served_by
from isofold.cli.options import CurveFile, File, FittedScore, Json, Missing, Outcomes, Threads, Title, Weights
from isofold.cli.outputs import Output, check_outputs
from isofold.cli.report import (
    RangeCheck,
    compare,
    print_comparison,
    print_dropped,
    print_json,
    say,
    warn_of_labels,
    with_progress,
)
from isofold.cli.rows import OnMissing, keep
from isofold.cli.wording import counted


class _Reading:
    """Columns of the whole input, and the calibrated rates."""

    def __init__(
        self, calibrator: Calibrator, source: Input, columns: list[NumberColumn], names: list[str]
    ) -> None:
        self._calibrator = calibrator
        self._columns = columns
        # Curves without segments serve every row alike; the columns then only break the report down.
        self._locator = SegmentLocator(calibrator, source, names) if calibrator.segment_columns_ else None
        self._readers = [] if self._locator is not None else [KeyReader(source, name) for name in names]
        self._parts: list[list[Floats]] = [[] for _ in range(1 + len(columns))]
        self._keys: list[list[KeyColumn]] = [[] for _ in names]
        self._located: list[Any] = []
        self.range = RangeCheck(calibrator)
        self.rows = self.dropped = 0
        for piece in with_progress(source, source.pieces(_distinct(columns, names)), "reading"):
            self._add(piece)
        if self.rows + self.dropped == 0:
            raise CommandError(f"{source.path}: the file has no rows")
        if self.rows == 0:
            raise CommandError(f"{source.path}: every row misses a value, so all would be dropped")

    def _add(self, piece: Any) -> None:
        read = [column.read(piece) for column in self._columns]
        values = [value for value, _ in read]
        located = None
        if self._locator is None:
            keys = [reader.read(piece) for reader in self._readers]
        else:
            located, keys = self._locator.locate(piece)
        kept = keep(values, [missing for _, missing in read])
        if kept is not None:
            values = [value[kept] for value in values]
            keys = [key[kept] for key in keys]
            located = None if located is None else located[kept]
        if located is None:
            rates = self._calibrator.predict(values[0])
        else:
            rates = self._calibrator.predict_located(values[0], located)
            self._located.append(located)
        self.range.add(values[0])
        for part, value in zip(self._parts, (rates, *values), strict=True):
            part.append(value)
        for key_part, key in zip(self._keys, keys, strict=True):
            key_part.append(key)
        self.rows += len(rates)
        self.dropped += piece.rows - len(rates)

    def numbers(self) -> tuple[Floats, Floats, Floats, Floats | None]:
        """Rates, scores, labels and weights."""
        rates, scores, labels, *rest = (np.concatenate(part) for part in self._parts)
        return rates, scores, labels, rest[0] if rest else None

    def keys(self) -> list[KeyColumn] | None:
        return [concatenated(parts) for parts in self._keys] or None

    def served_by(self) -> KeyColumn | None:
        """Who serves each row; None for a curve without segments."""
        return served_by(self._calibrator, np.concatenate(self._located)) if self._located else None


def _distinct(columns: Sequence[NumberColumn], names: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*(column.name for column in columns), *names]))


def report(
    curve: Path,
    path: str | os.PathLike[str],
    *,
    out: Path,
    label: str,
    score: str | None = None,
    weight: str | None = None,
    segments: Sequence[str] = (),
    title: str | None = None,
    on_missing: OnMissing = "error",
    as_json: bool = False,
    threads: int | None = None,
) -> None:
    """Write the report on the rows of `path`, and print the metrics. Raises CommandError."""
    calibrator = load_curve(curve, threads)
    columns = outcome_columns(score_name(calibrator, curve, score), label, weight, on_missing)
    if len(set(segments)) != len(segments):
        raise CommandError("--segment names a column twice")
    names = segment_names(calibrator, curve, segments) if calibrator.segment_columns_ else list(segments)
    check_outputs([Output(out, "--out", "report")], path, curve)
    write_report = ReportWriter(out)

    with open_input(path) as source:
        check_columns(source, _distinct(columns, names))
        for column in columns:
            column.check_type(source)
        reading = _Reading(calibrator, source, columns, names)
    rates, scores, labels, weights = reading.numbers()
    if weights is not None and not weights.any():
        raise CommandError(f"{os.fspath(path)}: column {weight!r}: every weight is 0")

    reading.range.warn(path)
    warn_of_labels(path, labels, weights)
    write_report(
        scores,
        labels,
        rates,
        weights,
        reading.keys(),
        title=os.fspath(path) if title is None else title,
        served_by=reading.served_by(),
    )
    metrics = compare(labels, scores, rates, weights)
    by_column = {column.name: column.missing for column in columns if column.missing}
    if as_json:
        print_json(
            {
                "command": "report",
                "out": os.fspath(out),
                "rows": reading.rows,
                "dropped": {"rows": reading.dropped, "by_column": by_column},
                "outside_fitted_range": reading.range.outside,
                "metrics": metrics,
            }
        )
        return
    say(f"{out}: the report on {counted(reading.rows, 'row')} of {os.fspath(path)}")
    print_dropped(reading.dropped, by_column)
    print_comparison(f"On {os.fspath(path)}", metrics)


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""

    @app.command("report")
    def _report(
        curve: CurveFile,
        file: File,
        label: Outcomes,
        out: Annotated[
            Path, typer.Option(help="The HTML file to write; replaced if it exists.", show_default=False)
        ],
        score: FittedScore = None,
        weight: Weights = None,
        segment: Annotated[
            list[str] | None,
            typer.Option(
                help="Segment column, by default those of calibrate; else repeat in its order. Breaks the "
                "report down even if the curve has no segments.",
                show_default=False,
            ),
        ] = None,
        title: Title = None,
        on_missing: Missing = "error",
        as_json: Json = False,
        threads: Threads = None,
    ) -> None:
        """Write an HTML report that opens offline: how well the curves do on a file, segment by segment.

        isofold report curves.json today.parquet --label clicked --out report.html
        """
        with reported():
            report(
                curve,
                file,
                out=out,
                label=label,
                score=score,
                weight=weight,
                segments=segment or (),
                title=title,
                on_missing=on_missing,
                as_json=as_json,
                threads=threads,
            )
