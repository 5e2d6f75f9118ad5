"""Number columns out of Arrow batches, every value checked; errors name file, column and row."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isofold.cli.errors import CommandError

Kind = Literal["score", "label", "weight"]

_DEMANDS = {
    "score": "must be a finite number",
    "label": "must lie in [0, 1]",
    "weight": "must be finite and not negative",
}


def check_columns(path: str | os.PathLike[str], names: Sequence[str], wanted: Sequence[str]) -> None:
    """Demand that each of `wanted` is in the file, once."""
    for column in wanted:
        if column not in names:
            shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
            raise CommandError(f"{os.fspath(path)}: no column {column!r}; the file has {shown or 'none'}")
        if names.count(column) > 1:
            raise CommandError(f"{os.fspath(path)}: column {column!r} is there {names.count(column)} times")


class NumberColumn:
    """One column of one file. Rows are counted from 1, a CSV header not among them."""

    def __init__(self, path: str | os.PathLike[str], name: str, kind: Kind, *, text: bool) -> None:
        self.path = os.fspath(path)
        self.name = name
        self.kind = kind
        self.text = text  # a CSV file's fields are text until here

    def read(self, batch: Any, rows_before: int) -> NDArray[np.floating[Any]]:
        """Return the batch's values: float32 for a float32 or float16 column, else float64."""
        array = batch.column(batch.schema.get_field_index(self.name))
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        values = self._parse(array, rows_before) if self.text else self._convert(array, rows_before)
        self._check(values, rows_before)
        return values

    def check_type(self, schema: Any) -> None:
        """Refuse a column that does not hold numbers before any row is read."""
        kind = schema.field(self.name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if not (self.text or _holds_numbers(kind)):
            raise CommandError(f"{self.path}: column {self.name!r} holds {kind}, not numbers")

    def _fail(self, row: int, fault: str) -> CommandError:
        return CommandError(f"{self.path}: column {self.name!r}, row {row + 1}: {fault}")

    def _convert(self, array: Any, rows_before: int) -> NDArray[np.floating[Any]]:
        if array.null_count:
            missing = pc.index(array.is_null(), True).as_py()
            raise self._fail(rows_before + missing, f"no value; a {self.kind} is needed in every row")
        narrow = pa.types.is_float32(array.type) or pa.types.is_float16(array.type)
        # Unsafe only in that whole numbers beyond 2^53 are rounded.
        values = array.cast(pa.float32() if narrow else pa.float64(), safe=False)
        converted: NDArray[np.floating[Any]] = values.to_numpy(zero_copy_only=False)
        return converted

    def _parse(self, array: Any, rows_before: int) -> NDArray[np.floating[Any]]:
        trimmed = pc.utf8_trim_whitespace(array)
        try:
            parsed: NDArray[np.floating[Any]] = trimmed.cast(pa.float64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            row = _first_unreadable(trimmed)
            field = array[row].as_py()
            fault = f"{field[:40]!r} is not a number" if field.strip() else f"no {self.kind}"
            raise self._fail(rows_before + row, fault) from None
        return parsed

    def _check(self, values: NDArray[np.floating[Any]], rows_before: int) -> None:
        if self.kind == "label":
            good = (values >= 0) & (values <= 1)
        elif self.kind == "weight":
            good = np.isfinite(values) & (values >= 0)
        else:
            good = np.isfinite(values)
        if not good.all():
            row = int(np.argmin(good))
            raise self._fail(rows_before + row, f"{values[row]!s}, but a {self.kind} {_DEMANDS[self.kind]}")


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
