"""An audit's features: columns as users give them, cut into bins."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isofold._splits import MOST_CATEGORIES
from isofold.calibration._segment_keys import NULL, KeyColumn, _module, _named_columns, encode


@dataclass(frozen=True)
class AuditFeature:
    """A column, and what its bins stand for. Missing values have the last bin."""

    name: str
    bounds: NDArray[np.float64] | None  # numerical: bin b holds values up to bounds[b]; the last all above
    levels: tuple[Any, ...] | None  # categorical: the value of each bin
    has_missing: bool

    @property
    def values(self) -> int:
        """Bins without the one of missing values."""
        if self.levels is not None:
            return len(self.levels)
        assert self.bounds is not None
        return len(self.bounds) + 1

    def bin(self, column: NDArray[np.float64] | KeyColumn) -> NDArray[np.int64]:
        if self.levels is None:
            assert self.bounds is not None
            if not isinstance(column, np.ndarray):
                raise TypeError(f"features[{self.name!r}] must hold numbers, as it did in the audit")
            found = np.searchsorted(self.bounds, column, side="left")
            return np.where(np.isnan(column), self.values, found)
        assert isinstance(column, KeyColumn)
        place = {level: bin_ for bin_, level in enumerate(self.levels)}
        # Levels that the audit has not seen are as good as missing, and so is null, the last entry.
        table = np.array([*(place.get(level, self.values) for level in column.levels), self.values])
        return table[np.where(column.codes == NULL, len(column.levels), column.codes)]


Column = NDArray[np.float64] | KeyColumn


def read_columns(features: Any, rows: int | None, categorical: Collection[str]) -> dict[str, Column]:
    """Columns by name: numbers as float64 with NaN for missing, everything else as keys."""
    module, kind = _module(features), type(features).__name__
    frame = module in ("pandas", "polars", "pyarrow") and kind in ("DataFrame", "Table", "RecordBatch")
    if isinstance(features, np.ndarray) and features.ndim == 2:
        named = [(f"feature {k}", features[:, k]) for k in range(features.shape[1])]
    elif isinstance(features, Mapping) or frame:
        named = [(str(name), data) for name, data in _named_columns(features)]
    else:
        raise TypeError(
            "features must be a mapping of names to columns, a data frame, a table or a 2-D array, "
            f"not {kind}"
        )
    if not named:
        raise ValueError("features has no columns")
    unknown = sorted(set(categorical) - {name for name, _ in named})
    if unknown:
        raise ValueError(f"categorical names {unknown[0]!r}, which is no column of features")
    columns: dict[str, Column] = {}
    for name, data in named:
        label = f"features[{name!r}]"
        if name in columns:
            raise ValueError(f"features names {name!r} twice")
        numbers = None if name in categorical else _numbers(data)
        column = encode(name, data, label) if numbers is None else numbers
        if rows is not None and len(column) != rows:
            raise ValueError(f"{label} has {len(column)} entries, scores has {rows}")
        rows = len(column)
        columns[name] = column
    return columns


def _numbers(data: Any) -> NDArray[np.float64] | None:
    """The column as floats, NaN where missing; None if it does not hold numbers. Booleans are no numbers."""
    if isinstance(data, KeyColumn):
        return None
    module = _module(data)
    if module == "polars":
        data, module = data.to_arrow(), "pyarrow"
    if module == "pyarrow":
        import pyarrow as pa

        kind = data.type
        if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind)):
            return None
        wide = data.cast(pa.float64(), safe=False)
        found = wide.to_numpy() if isinstance(wide, pa.ChunkedArray) else wide.to_numpy(zero_copy_only=False)
        return np.asarray(found, dtype=np.float64)
    if module == "pandas":
        kind = getattr(data.dtype, "kind", "O")
        return data.to_numpy(np.float64, na_value=np.nan) if kind in "iuf" else None
    array = np.asarray(data)
    return array.astype(np.float64) if array.ndim == 1 and array.dtype.kind in "iuf" else None


def make_feature(name: str, column: Column, bins: int) -> AuditFeature:
    """Numbers into one bin a value while there are few, else quantiles; of categories the most frequent."""
    if isinstance(column, np.ndarray):
        if np.isinf(column).any():
            position = int(np.argmax(np.isinf(column)))
            raise ValueError(f"features[{name!r}][{position}] is {column[position]}: features must be finite")
        present = column[~np.isnan(column)]
        values = np.unique(present)
        if len(values) > bins:
            values = np.unique(np.quantile(present, np.linspace(0, 1, bins + 1)[1:], method="lower"))
        return AuditFeature(name, values[:-1], None, len(present) < len(column))
    most = MOST_CATEGORIES - 1
    levels: tuple[Any, ...] = column.levels
    if len(levels) > most:
        counts = np.bincount(column.codes[column.codes != NULL], minlength=len(levels))
        kept = np.sort(np.argsort(-counts, kind="stable")[:most])
        levels = tuple(levels[int(k)] for k in kept)
    missing = len(levels) < len(column.levels) or bool((column.codes == NULL).any())
    return AuditFeature(name, None, levels, missing)


def bin_matrix(features: list[AuditFeature], columns: Mapping[str, Column]) -> NDArray[np.uint16]:
    rows = len(next(iter(columns.values())))
    matrix = np.empty((rows, len(features)), np.uint16, order="F")
    for k, feature in enumerate(features):
        if feature.name not in columns:
            raise ValueError(f"features has no column {feature.name!r}, which the audit had")
        matrix[:, k] = feature.bin(columns[feature.name])
    return matrix


def categorical_names(features: list[AuditFeature]) -> list[str]:
    return [feature.name for feature in features if feature.levels is not None]
