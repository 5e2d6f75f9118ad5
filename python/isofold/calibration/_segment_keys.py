"""Segment columns as users give them, made into codes: small whole numbers instead of keys."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from isofold.calibration.segment_curves import KeyKind, KeyValue

Codes: TypeAlias = NDArray[np.int32]
NULL = -1

_LONGEST_KEY = 1_000
_PLURALS: dict[KeyKind, str] = {"string": "strings", "integer": "integers", "boolean": "booleans"}


@dataclass(frozen=True)
class KeyColumn:
    """One column: row i holds levels[codes[i]], or null where codes[i] is NULL."""

    name: str | None
    kind: KeyKind | None  # None where every row is null
    codes: Codes
    levels: tuple[KeyValue, ...]  # strictly rising

    def __len__(self) -> int:
        return int(self.codes.shape[0])

    def __getitem__(self, rows: NDArray[np.bool_] | NDArray[np.integer[Any]]) -> KeyColumn:
        """The column of these rows, as an array has it."""
        return replace(self, codes=self.codes[rows])


class UnusableKey(ValueError):
    """A value that cannot be a key."""

    def __init__(self, label: str, position: int, reason: str) -> None:
        super().__init__(f"{label}[{position}] {reason}")
        self.position = position
        self.reason = reason


def described(kind: KeyKind) -> str:
    return _PLURALS[kind]


def key_columns(segments: Any, rows: int) -> list[KeyColumn]:
    """Encode one or several columns of `rows` entries each.

    A mapping, a data frame or an Arrow table holds named columns; a two-dimensional array columns; a list or
    tuple is one column if its entries are keys and several if they are columns. Raises ValueError or
    TypeError naming the column and the position.
    """
    named = _named_columns(segments)
    if not named:
        raise ValueError("segments has no columns")
    columns = []
    for index, (name, data) in enumerate(named):
        label = (
            "segments"
            if len(named) == 1 and name is None
            else f"segments[{index if name is None else name!r}]"
        )
        column = encode(name, data, label)
        if len(column) != rows:
            raise ValueError(f"{label} has {len(column)} entries, scores has {rows}")
        columns.append(column)
    names = [name for name, _ in named if name is not None]
    if len(set(names)) != len(names):
        raise ValueError("segments names a column twice")
    return columns


def _module(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def _is_column(value: Any) -> bool:
    return isinstance(value, (list, tuple, np.ndarray, KeyColumn)) or _module(value) in (
        "pandas",
        "pyarrow",
        "polars",
    )


def _name(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _named_columns(segments: Any, argument: str = "segments") -> list[tuple[str | None, Any]]:
    if isinstance(segments, Mapping):
        return [(_text_name(name, argument), data) for name, data in segments.items()]
    module, kind = _module(segments), type(segments).__name__
    if module == "pandas" and kind == "DataFrame":
        return [
            (_text_name(name, argument), segments.iloc[:, index])
            for index, name in enumerate(segments.columns)
        ]
    if module == "pyarrow" and kind in ("Table", "RecordBatch"):
        return list(zip(segments.schema.names, segments.columns, strict=True))
    if module == "polars" and kind == "DataFrame":
        return [(name, segments[name]) for name in segments.columns]
    if isinstance(segments, np.ndarray) and segments.ndim == 2:
        return [(None, segments[:, index]) for index in range(segments.shape[1])]
    if isinstance(segments, (list, tuple)) and segments and all(map(_is_column, segments)):
        return [(_name(getattr(data, "name", None)), data) for data in segments]
    if not _is_column(segments):
        raise TypeError(f"segments must be an array or several, not {kind}")
    return [(_name(getattr(segments, "name", None)), segments)]


def _text_name(name: Any, argument: str) -> str:
    if not isinstance(name, str) or not name:
        raise TypeError(f"{argument}: a column's name must be a string that is not empty, not {name!r}")
    return name


def encode(name: str | None, data: Any, label: str) -> KeyColumn:
    """Encode one column; `label` is what errors call it."""
    if isinstance(data, KeyColumn):
        return data
    module = _module(data)
    if module == "polars":
        data, module = data.to_arrow(), "pyarrow"
    if module == "pyarrow":
        codes, levels = _from_arrow(data)
    elif module == "pandas":
        codes, levels = _from_pandas(data)
    else:
        codes, levels = _from_array(data, label)
    return canonical(name, codes, levels, label)


def _from_arrow(data: Any) -> tuple[NDArray[np.integer[Any]], list[Any]]:
    import pyarrow as pa

    array = data.combine_chunks() if isinstance(data, pa.ChunkedArray) else data
    if isinstance(array, pa.ChunkedArray):  # no chunk at all, or more than fit in one
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if pa.types.is_null(array.type):
        return np.full(len(array), NULL), []
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    codes = array.indices.fill_null(NULL) if array.indices.null_count else array.indices
    return codes.to_numpy(zero_copy_only=False), array.dictionary.to_pylist()


def _from_pandas(data: Any) -> tuple[NDArray[np.integer[Any]], list[Any]]:
    pandas = sys.modules["pandas"]
    categorical = getattr(data, "cat", data) if isinstance(data.dtype, pandas.CategoricalDtype) else None
    if categorical is not None:
        return np.asarray(categorical.codes), categorical.categories.tolist()
    codes, levels = pandas.factorize(data)
    return codes, levels.tolist()


def _from_array(data: Any, label: str) -> tuple[NDArray[np.integer[Any]], list[Any]]:
    if isinstance(data, np.ma.MaskedArray):
        raise TypeError(f"{label} is a masked array; put None where a row belongs to no segment")
    if isinstance(data, (list, tuple)):
        # Not np.array, which would turn [1, "a"] into text.
        array = np.empty(len(data), dtype=object)
        array[:] = data
    else:
        array = np.asarray(data)
    if array.ndim != 1:
        raise ValueError(f"{label} must have shape (n,), got {array.shape}")
    if array.dtype.kind in "biuf":
        levels, codes = _unique_numbers(array)
        return codes, levels.tolist()
    if array.dtype.kind not in "OUT":
        raise TypeError(f"{label} must hold strings, integers or booleans, not dtype {array.dtype}")
    return _unique_objects(array.tolist(), label)


def _unique_numbers(array: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.integer[Any]]]:
    """np.unique with inverse, but linear for whole numbers that lie close together, as ids often do."""
    if array.size and array.dtype.kind in "iu":
        least, span = int(array.min()), int(array.max()) - int(array.min())
        if span <= max(1_000, 2 * array.size):
            shifted = (array - array.dtype.type(least)).astype(np.int64)
            present = np.zeros(span + 1, dtype=np.bool_)
            present[shifted] = True
            levels = np.flatnonzero(present)
            return levels.astype(object) + least, (np.cumsum(present) - 1)[shifted]
    return np.unique(array, return_inverse=True)


def _unique_objects(values: list[Any], label: str) -> tuple[NDArray[np.integer[Any]], list[Any]]:
    # A dictionary takes 1, 1.0 and True for the same key.
    kinds = set(map(type, values))
    if bool in kinds and any(
        issubclass(kind, (int, float, np.number)) and kind is not bool for kind in kinds
    ):
        raise TypeError(f"{label} mixes booleans and numbers")
    table: dict[Any, int] = {}
    try:
        codes = np.fromiter((table.setdefault(value, len(table)) for value in values), np.int64, len(values))
    except TypeError:
        position = next(index for index, value in enumerate(values) if not _hashable(value))
        raise TypeError(
            f"{label}[{position}] is a {type(values[position]).__name__}, which is no key"
        ) from None
    return codes, list(table)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _key_value(level: Any) -> KeyValue | None:
    """`level` as str, int or bool, None for null. Raises ValueError saying what is wrong."""
    if level is None or type(level).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(level, (bool, np.bool_)):
        return bool(level)
    if isinstance(level, str):
        if len(level) > _LONGEST_KEY:
            raise ValueError(f"has more than {_LONGEST_KEY:,} characters")
        if any("\ud800" <= character <= "\udfff" for character in level):
            raise ValueError("holds half a surrogate pair")
        return str(level)
    if isinstance(level, (float, np.floating)):
        if np.isnan(level):
            return None
        if not float(level).is_integer():
            raise ValueError(f"is {level!s}; numbers must be whole to be keys")
        level = int(level)
    if isinstance(level, (int, np.integer)):
        if not -(2**63) <= int(level) < 2**63:
            raise ValueError(f"is {level!s}, which does not fit in 64 bits")
        return int(level)
    raise TypeError(f"is a {type(level).__name__}; keys are strings, integers or booleans")


def kind_of(value: KeyValue) -> KeyKind:
    if isinstance(value, str):
        return "string"
    return "boolean" if isinstance(value, bool) else "integer"


def canonical(
    name: str | None, codes: NDArray[np.integer[Any]], levels: Iterable[Any], label: str
) -> KeyColumn:
    """Levels of one kind, sorted and distinct, whatever order and types they came in."""
    values: list[KeyValue | None] = []
    kind: KeyKind | None = None
    for code, level in enumerate(levels):
        try:
            value = _key_value(level)
        except TypeError as error:
            raise TypeError(f"{label}[{_first(codes, code)}] {error}") from None
        except ValueError as error:
            raise UnusableKey(label, _first(codes, code), str(error)) from None
        if value is not None:
            if kind is not None and kind != kind_of(value):
                raise TypeError(f"{label} mixes {described(kind)} and {described(kind_of(value))}")
            kind = kind_of(value)
        values.append(value)
    distinct: list[Any] = sorted({value for value in values if value is not None})
    place = {value: index for index, value in enumerate(distinct)}
    # The last entry is for code -1.
    table = np.array([*(NULL if value is None else place[value] for value in values), NULL], dtype=np.int32)
    return KeyColumn(name, kind, table[codes], tuple(distinct))


def _first(codes: NDArray[np.integer[Any]], code: int) -> int:
    return int(np.argmax(codes == code))
