"""Number columns out of Arrow batches, every value checked; errors name file, column and row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from isofold.cli.errors import CommandError, warn
from isofold.cli.inputs import Input
from isofold.cli.sources import Piece, separator_hint
from isofold.cli.wording import near_miss, shortened

Kind = Literal["score", "label", "weight", "positives", "total"]
Floats = NDArray[np.floating[Any]]

_DEMANDS: dict[Kind, str] = {
    "score": "must be a finite number",
    "label": "is 0 or 1 (or true/false), or a rate in between",
    "weight": "must be finite and not negative",
    "positives": "must be finite and not negative",
    "total": "must be finite and not negative",
}
_DROP_HINT = " (--on-missing drop leaves such rows out)"
# How spreadsheets, R, pandas and databases spell a missing number.
_MISSING = pa.array(["", "NA", "na", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "Null"])
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
            shown = shortened([repr(name) for name in names]) or "none"
            fault = f"no column {column!r}{_hint(column, names)}; the file has {shown}"
            raise CommandError(f"{source.path}: {fault}{separator_hint(names) if source.text else ''}")
        if names.count(column) > 1:
            raise CommandError(f"{source.path}: column {column!r} is there {names.count(column)} times")


def _hint(column: str, names: Sequence[str]) -> str:
    parts = [part.strip() for part in column.split(",")]
    if len(parts) > 1 and all(part in names for part in parts):
        return f" (one column an option: repeat --segment, {' '.join(f'--segment {part}' for part in parts)})"
    meant = near_miss(column, names)
    return "" if meant is None else f" (did you mean {meant!r}?)"


def column_of(piece: Piece, name: str) -> Any:
    return piece.batch.column(piece.batch.schema.get_field_index(name))


class NumberColumn:
    """One column of numbers. Missing are nulls, NaNs and, as text, empty fields, NA, N/A, NaN and null.

    Labels may also be true and false, in any case: as booleans, or as text of any format.
    """

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
        if not (source.text or _holds_numbers(kind) or (self.kind == "label" and _holds_text(kind))):
            raise CommandError(f"{source.path}: column {self.name!r} holds {kind}, not numbers")

    def read(self, piece: Piece) -> tuple[Floats, NDArray[np.bool_] | None]:
        """The values, float32 for a float32 or float16 column, else float64; and which of them are missing.

        A missing value is an error unless they are to be dropped; then it is NaN.
        """
        array = column_of(piece, self.name)
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if _holds_text(array.type):
            array = self._parse(piece, array.cast(pa.string()))
        if array.null_count and not self.drop_missing:
            index = pc.index(array.is_null(), True).as_py()
            fault = f"no value; {_NOUNS[self.kind]} is needed in every row{_DROP_HINT}"
            raise piece.fault(self.name, index, fault)
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
        """Text as numbers, null where it says that there is none."""
        trimmed = pc.utf8_trim_whitespace(array)
        filled = pc.if_else(pc.is_in(trimmed, _MISSING), pa.scalar(None, pa.string()), trimmed)
        try:
            return filled.cast(pa.float64())
        except pa.ArrowInvalid:
            pass
        if self.kind == "label":
            filled = _booleans_as_digits(filled)
        try:
            return filled.cast(pa.float64())
        except pa.ArrowInvalid:
            index = _first_unreadable(filled)
            demand = f"; {_NOUNS[self.kind]} {_DEMANDS[self.kind]}" if self.kind == "label" else ""
            fault = f"{array[index].as_py()[:40]!r} is not a number{demand}"
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
            if self.kind == "label" and values[index] == -1:
                fault += "; if labels are coded -1 and +1, write 0 for -1"
            if np.isnan(values[index]):
                fault += _DROP_HINT
            raise piece.fault(self.name, index, fault)


def _holds_numbers(kind: Any) -> bool:
    types = pa.types
    return bool(
        types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind) or types.is_decimal(kind)
    )


def _holds_text(kind: Any) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind).endswith("string_view")
    )


def _booleans_as_digits(texts: Any) -> Any:
    lower = pc.utf8_lower(texts)
    return pc.if_else(pc.equal(lower, "true"), "1", pc.if_else(pc.equal(lower, "false"), "0", texts))


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


def outcome_columns(score: str, label: str, weight: str | None, on_missing: str) -> list[NumberColumn]:
    """Scores, labels, and weights if there are any."""
    drop = on_missing == "drop"
    columns = [
        NumberColumn(score, "score", drop_missing=drop),
        NumberColumn(label, "label", drop_missing=drop),
    ]
    if weight is not None:
        columns.append(NumberColumn(weight, "weight", drop_missing=drop))
    warn_of_roles(columns)
    return columns


def warn_of_roles(columns: Sequence[NumberColumn]) -> None:
    """Scores that are the outcomes themselves."""
    score, outcome = columns[:2]
    if score.name == outcome.name:
        warn(f"column {score.name!r} is given as --score and as --{outcome.kind}")
