"""`isofold apply`: a curve laid on a file, batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isofold.calibration import Calibrator, CurveFileError
from isofold.calibration._atomic_file import atomic_writer
from isofold.cli.columns import NumberColumn, check_columns
from isofold.cli.errors import CommandError, faults_of_file
from isofold.cli.report import Floats, print_comparison, say, with_progress
from isofold.cli.sinks import Sink, open_sink
from isofold.cli.sources import Source, format_by_name, open_source


def _load_curve(path: Path, threads: int | None) -> Calibrator:
    try:
        with faults_of_file(path, "cannot be opened"):
            calibrator = Calibrator.load(path)
    except CurveFileError as error:
        raise CommandError(f"{path}: {error}") from error
    calibrator.threads = threads
    return calibrator


def _score_name(calibrator: Calibrator, curve: Path, score: str | None) -> str:
    name = calibrator.score_name if score is None else score
    if name is None:
        raise CommandError(f"{curve}: the curve names no score column; say which with --score")
    return name


class _Metrics:
    """The columns that a comparison needs, kept only when it was asked for."""

    def __init__(self, columns: list[NumberColumn]) -> None:
        self._columns = columns
        self._parts: list[list[Floats]] = [[] for _ in range(2 + len(columns))]

    def add(self, batch: Any, rows: int, scores: Floats, rates: Floats) -> None:
        if self._columns:
            kept = (scores, rates, *(column.read(batch, rows) for column in self._columns))
            for part, values in zip(self._parts, kept, strict=True):
                part.append(values)

    def show(self, path: Path) -> None:
        if self._columns and self._parts[0]:
            scores, rates, labels, *rest = (np.concatenate(part) for part in self._parts)
            if rest and not rest[0].any():
                say(f"{path}: every weight is 0, so there are no metrics")
                return
            print_comparison(f"On {path}", labels, scores, rates, rest[0] if rest else None)


def _schema_with(source: Source, column: str, score: NumberColumn) -> Any:
    """The file's schema and one column more: float32 after float32 (or float16) scores, else float64."""
    if column in source.names:
        raise CommandError(f"{source.path}: there is a column {column!r} already; name another with --column")
    kind = source.schema.field(score.name).type
    narrow = pa.types.is_float32(kind) or pa.types.is_float16(kind)
    return source.schema.append(pa.field(column, pa.float32() if narrow else pa.float64()))


def apply(
    curve: Path,
    path: Path,
    *,
    out: Path,
    score: str | None = None,
    column: str = "calibrated",
    label: str | None = None,
    weight: str | None = None,
    threads: int | None = None,
) -> None:
    """Write `path` with the calibrated rates in one column more, or raise CommandError and leave `out`."""
    calibrator = _load_curve(curve, threads)
    score_column_name = _score_name(calibrator, curve, score)
    if weight is not None and label is None:
        raise CommandError("--weight is for the metrics, which need --label as well")
    out_format = format_by_name(out)

    source = open_source(path)
    with source.stream:
        if source.text and out_format != "csv":
            raise CommandError(f"{out}: a CSV file's columns have no types, so it can only become a CSV file")
        scores = NumberColumn(path, score_column_name, "score", text=source.text)
        extra = []
        if label is not None:
            extra.append(NumberColumn(path, label, "label", text=source.text))
        if weight is not None:
            extra.append(NumberColumn(path, weight, "weight", text=source.text))
        check_columns(path, source.names, [used.name for used in (scores, *extra)])
        for used in (scores, *extra):
            used.check_type(source.schema)
        schema = _schema_with(source, column, scores)
        metrics = _Metrics(extra)
        with faults_of_file(out, "cannot be written"), atomic_writer(out) as stream:
            sink = open_sink(out_format, stream, schema)
            try:
                rows = _apply_batches(source, sink, schema, calibrator, scores, metrics)
                sink.close()
            except BaseException:
                sink.discard()
                raise
    say(f"{out}: {rows:,} rows, calibrated rates in column {column!r}")
    metrics.show(path)


def _apply_batches(
    source: Source,
    sink: Sink,
    schema: Any,
    calibrator: Calibrator,
    scores: NumberColumn,
    metrics: _Metrics,
) -> int:
    rows = 0
    for batch in with_progress(source, source.batches(), "calibrating"):
        values = scores.read(batch, rows)
        rates = calibrator.predict(values)
        metrics.add(batch, rows, values, rates)
        arrays = [*batch.columns, pa.array(rates, schema.field(len(schema) - 1).type)]
        sink.write(pa.RecordBatch.from_arrays(arrays, schema=schema))
        rows += batch.num_rows
    if rows == 0:
        raise CommandError(f"{source.path}: the file has no rows")
    return rows
