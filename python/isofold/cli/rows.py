"""Columns of a whole input as arrays, rows with missing values left out if that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from isofold.calibration._segment_keys import KeyColumn
from isofold.cli.columns import Floats, NumberColumn, check_columns
from isofold.cli.errors import CommandError
from isofold.cli.inputs import Input
from isofold.cli.keys import KeyReader, concatenated
from isofold.cli.report import with_progress
from isofold.cli.sources import Piece

OnMissing = Literal["error", "drop"]


@dataclass(frozen=True)
class Dropped:
    """Rows left out because a value was missing; a row may miss several."""

    rows: int
    by_column: dict[str, int]


@dataclass(frozen=True)
class Rows:
    numbers: list[Floats]  # in the order of the columns asked for
    keys: list[KeyColumn]
    dropped: Dropped

    def __len__(self) -> int:
        return len(self.numbers[0])

    def segments(self) -> list[KeyColumn] | None:
        return self.keys or None


class ColumnReader(Protocol):
    """A column that is kept in a form of its own."""

    name: str

    def add(self, piece: Piece, kept: NDArray[np.bool_] | None) -> None: ...


def keep(values: Sequence[Floats], missing: Sequence[NDArray[np.bool_] | None]) -> NDArray[np.bool_] | None:
    """Which rows miss nothing; None if all."""
    some = [mask for mask in missing if mask is not None]
    return ~np.logical_or.reduce(some) if some else None


def read_rows(
    source: Input,
    columns: Sequence[NumberColumn],
    segments: Sequence[str] = (),
    *,
    others: Sequence[ColumnReader] = (),
    check: Callable[[Piece, list[Floats]], None] | None = None,
) -> Rows:
    """Read the columns: 8 bytes a row and number column, 4 a segment column. Raises CommandError.

    `others` read what else is wanted of the rows that are kept. `check` may look at each piece's values,
    before rows are dropped.
    """
    check_columns(source, [*(column.name for column in columns), *segments])
    for column in columns:
        column.check_type(source)
    readers = [KeyReader(source, name) for name in segments]
    wanted = [*(column.name for column in columns), *segments, *(other.name for other in others)]
    names = list(dict.fromkeys(wanted))
    number_parts: list[list[Floats]] = [[] for _ in columns]
    key_parts: list[list[KeyColumn]] = [[] for _ in readers]
    rows = kept_rows = 0
    for piece in with_progress(source, source.pieces(names), "reading"):
        read = [column.read(piece) for column in columns]
        keys = [reader.read(piece) for reader in readers]
        values = [value for value, _ in read]
        if check is not None:
            check(piece, values)
        kept = keep(values, [missing for _, missing in read])
        if kept is not None:
            values = [value[kept] for value in values]
            keys = [key[kept] for key in keys]
        for number_part, value in zip(number_parts, values, strict=True):
            number_part.append(value)
        for key_part, key in zip(key_parts, keys, strict=True):
            key_part.append(key)
        for other in others:
            other.add(piece, kept)
        rows += piece.rows
        kept_rows += len(values[0])
    if rows == 0:
        raise CommandError(f"{source.path}: the file has no rows")
    if kept_rows == 0:
        raise CommandError(f"{source.path}: every row misses a value, so all would be dropped")
    dropped = Dropped(rows - kept_rows, {column.name: column.missing for column in columns if column.missing})
    return Rows(_joined(number_parts), [concatenated(parts) for parts in key_parts], dropped)


def _joined(parts: list[list[Any]]) -> list[Floats]:
    """Concatenate column by column, so that only one of them is held twice at a time."""
    joined = []
    for part in parts:
        joined.append(np.concatenate(part))
        part.clear()
    return joined
