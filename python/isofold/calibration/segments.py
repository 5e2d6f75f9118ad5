"""Which segment each row belongs to: found at a fit, looked up later."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isofold.calibration._segment_keys import NULL, KeyColumn, described, key_columns
from isofold.calibration.segment_curves import KeyValue, SegmentColumn

UNSEEN = -2


@dataclass(frozen=True)
class RowSegments:
    """Row i belongs to the segment of index `of_row[i]`, or to none where that is NULL."""

    columns: tuple[SegmentColumn, ...]
    keys: list[tuple[KeyValue, ...]]  # strictly rising
    of_row: NDArray[np.int64]


def find_segments(segments: Any, rows: int) -> RowSegments:
    """The combinations of keys, in order, and a few that no row has. O(rows); several columns are sorted."""
    columns = key_columns(segments, rows)
    known = tuple(SegmentColumn(column.name, column.kind or "string") for column in columns)
    if not all(column.levels for column in columns):
        return RowSegments(known, [], np.full(rows, NULL, dtype=np.int64))
    of_row, parts = columns[0].codes.astype(np.int64), [np.arange(len(columns[0].levels))]
    null = of_row == NULL
    for column in columns[1:]:
        null |= column.codes == NULL
        pairs = np.where(null, 0, of_row) * len(column.levels) + np.where(null, 0, column.codes)
        # Numbered anew after each column, so that products of many columns cannot overflow.
        distinct, of_row = np.unique(pairs, return_inverse=True)
        before, last = np.divmod(distinct, len(column.levels))
        parts = [*(part[before] for part in parts), last]
    of_row = np.where(null, NULL, of_row)
    keys = [
        tuple(column.levels[code] for column, code in zip(columns, codes, strict=True))
        for codes in zip(*(part.tolist() for part in parts), strict=True)
    ]
    return RowSegments(known, keys, of_row)


class SegmentIndex:
    """Looks keys up among those of a fit."""

    def __init__(self, columns: tuple[SegmentColumn, ...], keys: Sequence[tuple[KeyValue, ...]]) -> None:
        self._columns = columns
        self._codes: list[dict[KeyValue, int]] = []
        self._steps: list[NDArray[np.int64]] = []
        prefix = np.zeros(len(keys), dtype=np.int64)
        for values in zip(*keys, strict=True) if keys else [()] * len(columns):
            table = {value: code for code, value in enumerate(sorted(set(values)))}
            pairs = prefix * len(table) + np.array([table[value] for value in values], dtype=np.int64)
            distinct, prefix = np.unique(pairs, return_inverse=True)
            self._codes.append(table)
            self._steps.append(distinct)

    def locate(self, segments: Any, rows: int) -> NDArray[np.int64]:
        """For each row the index of its segment, NULL or UNSEEN. Raises ValueError or TypeError."""
        columns = self._in_order(key_columns(segments, rows))
        null = np.zeros(rows, dtype=np.bool_)
        unseen = np.zeros(rows, dtype=np.bool_)
        prefix = np.zeros(rows, dtype=np.int64)
        for column, table, distinct in zip(columns, self._codes, self._steps, strict=True):
            # The last entry is for NULL.
            known = np.array([*(table.get(level, UNSEEN) for level in column.levels), NULL], dtype=np.int64)
            codes = known[column.codes]
            null |= codes == NULL
            unseen |= codes == UNSEEN
            pairs = np.where(codes >= 0, prefix * len(table) + codes, 0)
            if not distinct.size:
                continue
            prefix = np.minimum(np.searchsorted(distinct, pairs), distinct.size - 1)
            unseen |= distinct[prefix] != pairs
        return np.where(null, NULL, np.where(unseen, UNSEEN, prefix))

    def _in_order(self, given: list[KeyColumn]) -> list[KeyColumn]:
        """The columns in the order of the fit, by name where both sides have names."""
        expected = self._columns
        if len(given) != len(expected):
            raise ValueError(f"segments has {len(given)} columns, the fit had {len(expected)}")
        if all(name is not None for name in (*(c.name for c in given), *(c.name for c in expected))):
            by_name = {column.name: column for column in given}
            for fitted in expected:
                if fitted.name not in by_name:
                    raise ValueError(f"segments has no column {fitted.name!r}, which the fit had")
            given = [by_name[fitted.name] for fitted in expected]
        for index, (key_column, fitted) in enumerate(zip(given, expected, strict=True)):
            if key_column.kind not in (None, fitted.kind):
                label = f"segments[{index if fitted.name is None else fitted.name!r}]"
                raise TypeError(
                    f"{label} holds {described(key_column.kind)}, in the fit it held {described(fitted.kind)}"
                )
        return given
