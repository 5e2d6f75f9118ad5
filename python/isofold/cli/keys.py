"""Segment columns of files: keys as the curves know them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from isofold.calibration._segment_keys import KeyColumn, UnusableKey, canonical, described, encode
from isofold.calibration.calibrator import Calibrator
from isofold.calibration.segment_curves import KeyKind, KeyValue, SegmentColumn
from isofold.calibration.segments import SegmentIndex
from isofold.cli.columns import column_of
from isofold.cli.errors import CommandError
from isofold.cli.inputs import Input
from isofold.cli.sources import Piece


class KeyReader:
    """One segment column. A null, or an empty field of a CSV file, is null: no segment."""

    def __init__(self, source: Input, name: str) -> None:
        self.name = name
        self._text = source.text
        kind = source.schema.field(name).type
        self._type = kind.value_type if pa.types.is_dictionary(kind) else kind
        found = _key_kind(self._type)
        if found is None:
            fault = f"column {name!r} holds {self._type}; keys are strings, integers or booleans"
            raise CommandError(f"{source.path}: {fault}")
        self.kind: KeyKind = found
        self._convert: Callable[[KeyValue], KeyValue] | None = None

    def read(self, piece: Piece) -> KeyColumn:
        """The keys as the file has them."""
        try:
            column = encode(self.name, column_of(piece, self.name), self.name)
        except UnusableKey as error:
            raise piece.fault(self.name, error.position, error.reason) from None
        if self._text and column.levels[:1] == ("",):
            return canonical(self.name, column.codes, [None, *column.levels[1:]], self.name)
        return column

    def converted(self, column: KeyColumn) -> KeyColumn:
        """After `match`: the keys as they can be looked up."""
        if self._convert is None:
            return column
        return canonical(self.name, column.codes, map(self._convert, column.levels), self.name)

    def match(self, path: str, fitted: SegmentColumn) -> tuple[SegmentColumn, Callable[[KeyValue], KeyValue]]:
        """Make what this column reads comparable with the curves' keys; returns how to convert those.

        A CSV file has no types, so text equals the number that it spells: curves of one format serve files of
        another.
        """
        if self.kind == fitted.kind:
            return SegmentColumn(self.name, self.kind), _same
        if self.kind == "string":
            if fitted.kind == "boolean":
                self._convert = _lower_boolean
            return SegmentColumn(self.name, "string"), _spelled
        if fitted.kind == "string" and self.kind == "integer":
            self._convert = _spelled
            return SegmentColumn(self.name, "string"), _same
        fault = f"column {self.name!r} holds {self._type}, the curves' keys are {described(fitted.kind)}"
        raise CommandError(f"{path}: {fault}")


def _key_kind(kind: Any) -> KeyKind | None:
    types = pa.types
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind):
        return "integer"
    if (
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_null(kind)
        or "string_view" in str(kind)
    ):
        return "string"
    return None


def _same(value: KeyValue) -> KeyValue:
    return value


def _spelled(value: KeyValue) -> KeyValue:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lower_boolean(value: KeyValue) -> KeyValue:
    """ "True" and "TRUE" as "true"."""
    lower = str(value).lower()
    return lower if lower in ("true", "false") else value


def concatenated(columns: Sequence[KeyColumn]) -> KeyColumn:
    """Columns of consecutive pieces as one."""
    place: dict[KeyValue, int] = {}
    parts = []
    for column in columns:
        table = np.array(
            [*(place.setdefault(level, len(place)) for level in column.levels), -1], dtype=np.int32
        )
        parts.append(table[column.codes])
    name = columns[0].name
    return canonical(name, np.concatenate(parts), list(place), name or "segments")


_SERVERS = {
    "own_curve": "own curve",
    "single_class": "global curve: one class of label",
    "under_min_rows": "global curve: too few rows",
    "unseen": "global curve: not in the fit",
    "null": "global curve: no segment",
}


def served_by(calibrator: Calibrator, located: NDArray[np.int64]) -> KeyColumn:
    """Who serves each row, in words, from what `locate` returns."""
    reasons = [segment.served_by for segment in calibrator.segments_]
    place = {reason: code for code, reason in enumerate(_SERVERS)}
    # Two more for rows of index -2 and -1.
    codes = np.array([place[reason] for reason in (*reasons, "unseen", "null")], dtype=np.int32)
    return canonical("served by", codes[located], list(_SERVERS.values()), "served by")


class SegmentLocator:
    """Finds, piece by piece, which segment of a calibrator each row belongs to."""

    def __init__(self, calibrator: Calibrator, source: Input, names: Sequence[str]) -> None:
        self._readers = [KeyReader(source, name) for name in names]
        fitted = calibrator.segment_columns_
        matched = [
            reader.match(source.path, column) for reader, column in zip(self._readers, fitted, strict=True)
        ]
        keys = [
            tuple(convert(value) for value, (_, convert) in zip(segment.key, matched, strict=True))
            for segment in calibrator.segments_
        ]
        # Spelled out, keys may sort in another order: 10 comes after 9, "10" before "9".
        order = sorted(range(len(keys)), key=keys.__getitem__)
        self._position = np.array([*order, -2, -1], dtype=np.int64)
        self._index = SegmentIndex(tuple(column for column, _ in matched), [keys[place] for place in order])

    def locate(self, piece: Piece) -> tuple[NDArray[np.int64], list[KeyColumn]]:
        """Positions in `segments_`, -1 for null and -2 for unseen; and the keys."""
        columns = [reader.read(piece) for reader in self._readers]
        converted = [reader.converted(column) for reader, column in zip(self._readers, columns, strict=True)]
        return self._position[self._index.locate(converted, piece.rows)], columns
