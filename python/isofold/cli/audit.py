"""`isofold audit`: the segments in which a file's predicted rates are wrong."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table

from isofold.calibration import Audit, AuditSegment
from isofold.calibration import audit as find_segments
from isofold.calibration._segment_keys import NULL, KeyColumn
from isofold.cli.columns import Floats, NumberColumn, check_columns, column_of
from isofold.cli.errors import CommandError, reported
from isofold.cli.html import ReportWriter
from isofold.cli.inputs import Input, open_input
from isofold.cli.keys import KeyReader, concatenated
from isofold.cli.outputs import Output, check_outputs
from isofold.cli.report import print_dropped, print_json, say, warn_of_labels, with_progress
from isofold.cli.rows import OnMissing, keep
from isofold.cli.sources import Piece
from isofold.cli.wording import counted


class _Feature:
    """One feature column: numbers, or names. A CSV file has no types: what reads as numbers is numbers."""

    def __init__(self, source: Input, name: str, categorical: bool) -> None:
        self.name = name
        kind = source.schema.field(name).type
        self._numbers = not categorical and (pa.types.is_floating(kind) or pa.types.is_integer(kind))
        self._may_be_numbers = source.text and not categorical
        self._reader = None if self._numbers else KeyReader(source, name)
        self._parts: list[Any] = []

    def read(self, piece: Piece) -> Any:
        if self._reader is not None:
            return self._reader.read(piece)
        return column_of(piece, self.name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)

    def add(self, part: Any, kept: Any) -> None:
        if kept is not None and isinstance(part, KeyColumn):
            part = KeyColumn(part.name, part.kind, part.codes[kept], part.levels)
        elif kept is not None:
            part = part[kept]
        self._parts.append(part)

    def column(self) -> Any:
        if self._reader is None:
            return np.concatenate(self._parts)
        keys = concatenated(self._parts)
        if not self._may_be_numbers:
            return keys
        try:
            numbers = np.array([*(float(str(level)) for level in keys.levels), np.nan])
        except ValueError:
            return keys
        return numbers[np.where(keys.codes == NULL, len(keys.levels), keys.codes)]


def _read(
    source: Input, columns: list[NumberColumn], features: list[_Feature]
) -> tuple[list[Floats], int, int]:
    """The number columns' values, rows kept and rows dropped; features keep their own."""
    names = list(
        dict.fromkeys([*(column.name for column in columns), *(feature.name for feature in features)])
    )
    parts: list[list[Floats]] = [[] for _ in columns]
    rows = dropped = 0
    for piece in with_progress(source, source.pieces(names), "reading"):
        read = [column.read(piece) for column in columns]
        kept = keep([value for value, _ in read], [missing for _, missing in read])
        values = [value if kept is None else value[kept] for value, _ in read]
        for feature in features:
            feature.add(feature.read(piece), kept)
        for part, value in zip(parts, values, strict=True):
            part.append(value)
        rows += len(values[0])
        dropped += piece.rows - len(values[0])
    if rows + dropped == 0:
        raise CommandError(f"{source.path}: the file has no rows")
    if rows == 0:
        raise CommandError(f"{source.path}: every row misses a value, so all would be dropped")
    return [np.concatenate(part) for part in parts], rows, dropped


def audit(
    path: str | os.PathLike[str],
    *,
    score: str,
    label: str,
    weight: str | None = None,
    features: Sequence[str] = (),
    categorical: Sequence[str] = (),
    out: Path | None = None,
    title: str | None = None,
    on_missing: OnMissing = "error",
    as_json: bool = False,
    **settings: Any,
) -> None:
    """Find the segments, print them and write a report if that is wanted. Raises CommandError."""
    drop = on_missing == "drop"
    columns = [
        NumberColumn(score, "score", drop_missing=drop),
        NumberColumn(label, "label", drop_missing=drop),
    ]
    if weight is not None:
        columns.append(NumberColumn(weight, "weight", drop_missing=drop))
    for names, option in ((features, "--feature"), (categorical, "--categorical")):
        if len(set(names)) != len(names):
            raise CommandError(f"{option} names a column twice")
    if out is not None:
        check_outputs([Output(out, "--out", "report")], path)
    write_report = None if out is None else ReportWriter(out)
    with open_input(path) as source:
        taken = [column.name for column in columns]
        check_columns(source, [*taken, *features, *categorical])
        wanted = list(features) or [name for name in source.names if name not in taken]
        if not wanted:
            raise CommandError(f"{source.path}: no columns beside {', '.join(taken)} to audit by")
        wanted += [name for name in categorical if name not in wanted]
        for column in columns:
            column.check_type(source)
        readers = [_Feature(source, name, name in categorical) for name in wanted]
        numbers, rows, dropped = _read(source, columns, readers)
    scores, labels, *rest = numbers
    weights = rest[0] if rest else None
    outside = ~((scores >= 0) & (scores <= 1))
    if outside.any():
        fault = (
            f"{scores[int(np.argmax(outside))]!s}: scores to audit are rates in [0, 1]; calibrate them first"
        )
        raise CommandError(f"{os.fspath(path)}: column {score!r} holds {fault}")
    warn_of_labels(path, labels, weights)
    try:
        found = find_segments(
            scores,
            labels,
            {reader.name: reader.column() for reader in readers},
            sample_weight=weights,
            **settings,
        )
    except (ValueError, TypeError) as error:
        raise CommandError(f"{os.fspath(path)}: {error}") from error
    if write_report is not None:
        heading = os.fspath(path) if title is None else title
        notes = ["An audit: the rates as they are, before and after alike."]
        write_report(scores, labels, scores, weights, None, title=heading, notes=notes, audit=found)
    by_column = {column.name: column.missing for column in columns if column.missing}
    if as_json:
        print_json(
            {
                "command": "audit",
                "rows": rows,
                "dropped": {"rows": dropped, "by_column": by_column},
                "report": None if out is None else os.fspath(out),
                **found.as_dict(),
            }
        )
        return
    _print(path, found, rows)
    print_dropped(dropped, by_column)
    if out is not None:
        say(f"{out}: the report")


def _print(path: str | os.PathLike[str], found: Audit, rows: int) -> None:
    significant = sum(segment.significant for segment in found.segments)
    count = counted(len(found.segments), "segment")
    say(f"{os.fspath(path)}: {counted(rows, 'row')}; {count}, {significant:,} of them significantly off")
    table = Table()
    table.add_column("segment")
    for name in ("z", "predicted / observed", "rows", "positives", "p value"):
        table.add_column(name, justify="right")
    for segment in (found.overall, *found.segments):
        table.add_row(*_row(segment))
    Console(highlight=False, markup=False).print(table)
    say(
        "On rows that had no part in finding the segments. z: observed less predicted positives, in "
        f"standard deviations. *: |z| above {found.z_threshold:.2f}, which right predictions exceed in any "
        f"segment with probability {found.level:.3g}."
    )


def _row(segment: AuditSegment) -> tuple[str, ...]:
    return (
        segment.name + (" *" if segment.significant else ""),
        f"{segment.z:+.1f}",
        f"{segment.predicted_over_observed:.3f}",
        f"{segment.rows:,}",
        f"{segment.positives:,.0f}",
        f"{segment.p_value:.2g}",
    )


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""

    @app.command("audit")
    def _audit(
        file: Annotated[
            str,
            typer.Argument(metavar="FILE", help="Rows: a file, a folder or a pattern.", show_default=False),
        ],
        score: Annotated[str, typer.Option(help="Column of predicted rates in [0, 1].", show_default=False)],
        label: Annotated[
            str,
            typer.Option(
                help="Column of outcomes: 0 or 1 (or true/false), or rates in between.", show_default=False
            ),
        ],
        weight: Annotated[
            str | None,
            typer.Option(help="Column of weights; rows of weight 0 are dropped.", show_default=False),
        ] = None,
        feature: Annotated[
            list[str] | None,
            typer.Option(
                "--feature", help="Column to search in; repeat.  [default: all others]", show_default=False
            ),
        ] = None,
        categorical: Annotated[
            list[str] | None,
            typer.Option(
                "--categorical",
                help="Column of numbers that are names, not quantities; repeat.",
                show_default=False,
            ),
        ] = None,
        out: Annotated[
            Path | None,
            typer.Option(help="Also write an HTML report here; replaced if it exists.", show_default=False),
        ] = None,
        title: Annotated[
            str | None, typer.Option(help="The report's title.  [default: FILE]", show_default=False)
        ] = None,
        max_segments: Annotated[int, typer.Option(min=1, help="The most segments.")] = 12,
        max_depth: Annotated[int, typer.Option(min=1, help="The most conditions of a segment.")] = 3,
        min_rows: Annotated[
            int, typer.Option(min=1, help="The fewest rows of a segment, among those searched.")
        ] = 200,
        level: Annotated[
            float, typer.Option(help="Probability of calling any segment off if all rates are right.")
        ] = 0.05,
        held_out: Annotated[
            float, typer.Option(help="Share of the rows that segments are tested on, not searched in.")
        ] = 0.5,
        seed: Annotated[int, typer.Option(min=0, help="Of the draw of the rows held out.")] = 0,
        on_missing: Annotated[
            OnMissing,
            typer.Option(
                help="What to do about a score, label or weight that is null, NaN or, in CSV, empty, NA or "
                "null: stop, or leave the row out and say how many. A missing feature is a value like others."
            ),
        ] = "error",
        as_json: Annotated[
            bool, typer.Option("--json", help="Print one JSON object instead of tables.")
        ] = False,
        threads: Annotated[
            int | None,
            typer.Option(min=1, help="Threads to use; changes no bit.  [default: all processors available]"),
        ] = None,
    ) -> None:
        """Name the segments in which predicted rates are wrong, and test them on rows held out.

        isofold audit scored.parquet --score calibrated --label clicked --feature country --feature hour
        """
        with reported():
            audit(
                file,
                score=score,
                label=label,
                weight=weight,
                features=feature or (),
                categorical=categorical or (),
                out=out,
                title=title,
                on_missing=on_missing,
                as_json=as_json,
                max_segments=max_segments,
                max_depth=max_depth,
                min_rows=min_rows,
                level=level,
                held_out=held_out,
                seed=seed,
                threads=threads,
            )
