"""`isofold apply`: curves laid on a file, batch by batch."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from isofold.calibration import Calibrator, CurveFileError
from isofold.calibration._atomic_file import atomic_writer
from isofold.calibration._segment_keys import KeyColumn
from isofold.cli.columns import Floats, NumberColumn, check_columns
from isofold.cli.errors import CommandError, faults_of_file
from isofold.cli.html import ReportWriter
from isofold.cli.inputs import Input, open_input
from isofold.cli.keys import SegmentLocator, concatenated, served_by
from isofold.cli.outputs import Output, check_outputs
from isofold.cli.report import (
    RangeCheck,
    compare,
    print_comparison,
    print_dropped,
    print_json,
    print_served,
    say,
    warn_of_labels,
    with_progress,
)
from isofold.cli.rows import OnMissing, keep
from isofold.cli.sinks import Sink, open_sink
from isofold.cli.sources import SUFFIXES, Piece, format_by_name, suffix_of
from isofold.cli.wording import counted


def load_curve(path: Path, threads: int | None) -> Calibrator:
    """Read a curve file. Raises CommandError."""
    try:
        with faults_of_file(path, "cannot be opened"):
            calibrator = Calibrator.load(path)
    except CurveFileError as error:
        hint = "; the curve file comes first, then the rows" if suffix_of(path) in SUFFIXES else ""
        raise CommandError(f"{path}: {error}{hint}") from error
    calibrator.threads = threads
    return calibrator


def score_name(calibrator: Calibrator, curve: Path, score: str | None) -> str:
    name = calibrator.score_name if score is None else score
    if name is None:
        raise CommandError(f"{curve}: the curve names no score column; say which with --score")
    return name


def segment_names(calibrator: Calibrator, curve: Path, segments: Sequence[str]) -> list[str]:
    """The segment columns: those given, in the curve file's order, or those that it names."""
    fitted = [column.name for column in calibrator.segment_columns_]
    if segments and len(segments) != len(fitted):
        raise CommandError(
            f"{curve}: the curves have {counted(len(fitted), 'segment column')}, "
            f"--segment names {len(segments)}"
        )
    names = list(segments) or [name for name in fitted if name is not None]
    if len(names) != len(fitted):
        raise CommandError(f"{curve}: the curves name no segment columns; say which with --segment")
    return names


class _Evaluation:
    """The columns that metrics and a report need, kept only when these were asked for."""

    def __init__(self, columns: list[NumberColumn], *, keep_keys: bool) -> None:
        self.columns = columns
        self._parts: list[list[Floats]] = [[] for _ in range(2 + len(columns))]
        self._keep_keys = keep_keys
        self._keys: list[list[KeyColumn]] = []
        self._located: list[Any] = []
        self.dropped = 0

    def add(
        self,
        piece: Piece,
        scores: Floats,
        rates: Floats,
        keys: list[KeyColumn],
        located: Any,
        has_score: Any,
    ) -> None:
        """`scores`, `rates`, `keys` and `located` are of all rows of the piece."""
        if not self.columns:
            return
        read = [column.read(piece) for column in self.columns]
        kept = keep([], [None if has_score is None else ~has_score, *(missing for _, missing in read)])
        values = [scores, rates, *(value for value, _ in read)]
        if kept is not None:
            values = [value[kept] for value in values]
            keys = [key[kept] for key in keys]
            located = None if located is None else located[kept]
            self.dropped += piece.rows - int(np.count_nonzero(kept))
        for part, value in zip(self._parts, values, strict=True):
            part.append(value)
        if self._keep_keys:
            self._keys.append(keys)
            self._located.append(located)

    def arrays(self) -> tuple[Floats, Floats, Floats, Floats | None] | None:
        """Scores, rates, labels and weights; None when there is nothing to measure."""
        if not self.columns or not any(map(len, self._parts[0])):
            return None
        scores, rates, labels, *rest = (np.concatenate(part) for part in self._parts)
        if rest and not rest[0].any():
            return None
        return scores, rates, labels, rest[0] if rest else None

    def keys(self) -> list[KeyColumn] | None:
        return [concatenated(parts) for parts in zip(*self._keys, strict=True)] or None

    def served_by(self, calibrator: Calibrator) -> KeyColumn | None:
        """Who serves each row; None for a curve without segments."""
        return served_by(calibrator, np.concatenate(self._located)) if any(self._keys) else None


class _Application:
    """One run over the rows, and what it counts."""

    def __init__(
        self,
        calibrator: Calibrator,
        scores: NumberColumn,
        locator: SegmentLocator | None,
        evaluation: _Evaluation,
    ) -> None:
        self._calibrator = calibrator
        self._scores = scores
        self._locator = locator
        self._evaluation = evaluation
        self.range = RangeCheck(calibrator)
        self.rows = self.dropped = 0
        reasons = [segment.served_by for segment in calibrator.segments_]
        # Two more for rows of index -2 and -1.
        self._served_by = np.array([*reasons, "unseen", "null"], dtype=object)
        self.served = dict.fromkeys(("own_curve", "null", "unseen", "single_class", "under_min_rows"), 0)

    def write(self, source: Input, sink: Sink, schema: Any) -> None:
        for piece in with_progress(source, source.pieces(), "calibrating"):
            values, missing = self._scores.read(piece)
            if missing is not None:
                values = np.where(missing, values.dtype.type(0), values)
            rates, keys, located = self._calibrate(piece, values)
            has_score = None if missing is None else ~missing
            self._evaluation.add(piece, values, rates, keys, located, has_score)
            self.range.add(values if has_score is None else values[has_score])
            arrays = [*piece.batch.columns, pa.array(rates, schema.field(len(schema) - 1).type)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=schema)
            if has_score is not None:
                batch = batch.filter(pa.array(has_score))
                located = None if located is None else located[has_score]
            if located is not None:
                self._count(located)
            sink.write(batch)
            self.rows += batch.num_rows
            self.dropped += piece.rows - batch.num_rows
        if self.rows + self.dropped == 0:
            raise CommandError(f"{source.path}: the file has no rows")

    def _calibrate(self, piece: Piece, scores: Floats) -> tuple[Floats, list[KeyColumn], Any]:
        if self._locator is None:
            return self._calibrator.predict(scores), [], None
        located, keys = self._locator.locate(piece)
        return self._calibrator.predict_located(scores, located), keys, located

    def _count(self, located: Any) -> None:
        counts = np.bincount(located + 2, minlength=2)
        for index in np.flatnonzero(counts).tolist():
            self.served[self._served_by[index - 2]] += int(counts[index])


def _schema_with(source: Input, column: str, score: NumberColumn) -> Any:
    """The file's schema and one column more: float32 after float32 (or float16) scores, else float64."""
    if column in source.names:
        raise CommandError(f"{source.path}: there is a column {column!r} already; name another with --column")
    kind = source.schema.field(score.name).type
    narrow = pa.types.is_float32(kind) or pa.types.is_float16(kind)
    return source.schema.append(pa.field(column, pa.float32() if narrow else pa.float64()))


def apply(
    curve: Path,
    path: str | os.PathLike[str],
    *,
    out: Path,
    score: str | None = None,
    segments: Sequence[str] = (),
    column: str = "calibrated",
    label: str | None = None,
    weight: str | None = None,
    on_missing: OnMissing = "error",
    report: Path | None = None,
    title: str | None = None,
    as_json: bool = False,
    threads: int | None = None,
) -> None:
    """Write `path` with the calibrated rates in one column more, or raise CommandError and leave `out`."""
    calibrator = load_curve(curve, threads)
    drop = on_missing == "drop"
    scores = NumberColumn(score_name(calibrator, curve, score), "score", drop_missing=drop)
    names = segment_names(calibrator, curve, segments)
    if label is None and weight is not None:
        raise CommandError("--weight is for the metrics, which need --label as well")
    if label is None and report is not None:
        raise CommandError("--report needs --label as well")
    outputs = [Output(out, "--out", "rows")]
    if report is not None:
        outputs.append(Output(report, "--report", "report"))
    check_outputs(outputs, path, curve)
    out_format = format_by_name(out)
    write_report = None if report is None else ReportWriter(report)

    with open_input(path) as source:
        if source.text and out_format != "csv":
            raise CommandError(f"{out}: a CSV file's columns have no types, so it can only become a CSV file")
        extra = []
        if label is not None:
            extra.append(NumberColumn(label, "label", drop_missing=drop))
        if weight is not None:
            extra.append(NumberColumn(weight, "weight", drop_missing=drop))
        check_columns(source, [*(used.name for used in (scores, *extra)), *names])
        for used in (scores, *extra):
            used.check_type(source)
        schema = _schema_with(source, column, scores)
        locator = SegmentLocator(calibrator, source, names) if names else None
        evaluation = _Evaluation(extra, keep_keys=report is not None)
        run = _Application(calibrator, scores, locator, evaluation)
        with faults_of_file(out, "cannot be written"), atomic_writer(out) as stream:
            sink = open_sink(out_format, stream, schema)
            try:
                run.write(source, sink, schema)
                sink.close()
            except BaseException:
                sink.discard()
                raise

    run.range.warn(path)
    measured = evaluation.arrays()
    metrics = None
    if measured is not None:
        found, rates, labels, weights = measured
        warn_of_labels(path, labels, weights)
        metrics = compare(labels, found, rates, weights)
        if write_report is not None:
            write_report(
                found,
                labels,
                rates,
                weights,
                evaluation.keys(),
                title=os.fspath(path) if title is None else title,
                served_by=evaluation.served_by(calibrator),
            )
    if as_json:
        print_json(
            {
                "command": "apply",
                "out": os.fspath(out),
                "rows": run.rows,
                "dropped": {
                    "rows": run.dropped,
                    "by_column": {scores.name: run.dropped} if run.dropped else {},
                },
                "rows_left_out_of_metrics": evaluation.dropped - run.dropped if extra else 0,
                "served": run.served if names else None,
                "outside_fitted_range": run.range.outside,
                "metrics": metrics,
                "report": None if report is None or measured is None else os.fspath(report),
            }
        )
        return
    say(f"{out}: {counted(run.rows, 'row')}, calibrated rates in column {column!r}")
    print_dropped(run.dropped, {scores.name: run.dropped})
    if names:
        print_served(run.served)
    if extra and evaluation.dropped > run.dropped:
        more = counted(evaluation.dropped - run.dropped, "more row")
        say(f"left out of the metrics: {more} without label or weight")
    if metrics is not None:
        print_comparison(f"On {os.fspath(path)}", metrics)
    elif extra:
        say(f"{os.fspath(path)}: every weight is 0, so there are no metrics")
    if report is not None and measured is not None:
        say(f"{report}: the report")
