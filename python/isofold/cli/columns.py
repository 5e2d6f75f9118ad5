"""Number columns out of Arrow batches, every value checked; errors name file, column and row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isofold.cli.errors import CommandError
from isofold.cli.inputs import Input
from isofold.cli.sources import Piece

Kind = Literal["score", "label", "weight", "positives", "total"]
Floats = NDArray[np.floating[Any]]

_DEMANDS: dict[Kind, str] = {
    "score": "must be a finite number",
    "label": "must lie in [0, 1]",
    "weight": "must be finite and not negative",
    "positives": "must be finite and not negative",
    "total": "must be finite and not negative",
}
_NOUNS: dict[Kind, str] = {
    "score": "a score",
    "label": "a label",
    "weight": "a weight",
    "positives": "a number of positives",
    "total": "a total",
}


def check_columns(source: Input, wanted: Sequence[str]) -> None:
    """Demand that each of `wanted` is in the file, once."""
    names = source.names
    for column in wanted:
        if column not in names:
            shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
            raise CommandError(f"{source.path}: no column {column!r}; the file has {shown or 'none'}")
        if names.count(column) > 1:
            raise CommandError(f"{source.path}: column {column!r} is there {names.count(column)} times")


def column_of(piece: Piece, name: str) -> Any:
    return piece.batch.column(piece.batch.schema.get_field_index(name))


class NumberColumn:
    """One column of numbers. Missing are nulls, NaNs and, in CSV files, empty fields."""

    def __init__(self, name: str, kind: Kind, *, drop_missing: bool = False) -> None:
        self.name = name
        self.kind = kind
        self.drop_missing = drop_missing
        self.missing = 0  # so far; counted when they are dropped

    def check_type(self, source: Input) -> None:
        """Refuse a column that does not hold numbers before any row is read."""
        kind = source.schema.field(self.name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if not (source.text or _holds_numbers(kind)):
            raise CommandError(f"{source.path}: column {self.name!r} holds {kind}, not numbers")

    def read(self, piece: Piece) -> tuple[Floats, NDArray[np.bool_] | None]:
        """The values, float32 for a float32 or float16 column, else float64; and which of them are missing.

        A missing value is an error unless they are to be dropped; then it is NaN.
        """
        array = column_of(piece, self.name)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if pa.types.is_string(array.type):
            array = self._parse(piece, array)
        if array.null_count and not self.drop_missing:
            index = pc.index(array.is_null(), True).as_py()
            raise piece.fault(self.name, index, f"no value; {_NOUNS[self.kind]} is needed in every row")
        narrow = pa.types.is_float32(array.type) or pa.types.is_float16(array.type)
        # Unsafe only in that whole numbers beyond 2^53 are rounded. A null becomes NaN.
        values: Floats = array.cast(pa.float32() if narrow else pa.float64(), safe=False).to_numpy(
            zero_copy_only=False
        )
        missing = None
        if self.drop_missing:
            absent = np.isnan(values)
            if absent.any():
                missing = absent
                self.missing += int(np.count_nonzero(absent))
        self._check(piece, values, missing)
        return values, missing

    def _parse(self, piece: Piece, array: Any) -> Any:
        """A CSV file's fields as numbers, null where one is empty."""
        trimmed = pc.utf8_trim_whitespace(array)
        filled = pc.if_else(pc.equal(trimmed, ""), pa.scalar(None, pa.string()), trimmed)
        try:
            return filled.cast(pa.float64())
        except pa.ArrowInvalid:
            index = _first_unreadable(filled)
            fault = f"{array[index].as_py()[:40]!r} is not a number"
            raise piece.fault(self.name, index, fault) from None

    def _check(self, piece: Piece, values: Floats, missing: NDArray[np.bool_] | None) -> None:
        good = np.isfinite(values)
        if self.kind != "score":
            good &= values >= 0
        if self.kind == "label":
            good &= values <= 1
        if missing is not None:
            good |= missing
        if not good.all():
            index = int(np.argmin(good))
            fault = f"{values[index]!s}, but {_NOUNS[self.kind]} {_DEMANDS[self.kind]}"
            raise piece.fault(self.name, index, fault)


def _holds_numbers(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    )


def _first_unreadable(array: Any) -> int:
    """The first entry that is no number, by halving; there is one."""
    start, end = 0, len(array)
    while end - start > 1:
        middle = (start + end) // 2
        try:
            array.slice(start, middle - start).cast(pa.float64())
        except pa.ArrowInvalid:
            end = middle
        else:
            start = middle
    return start
