"""The part of a version 2 curve file that version 1 has not: curves of segments."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator
from typing import Any, get_args

from isofold.calibration._curve_text import (
    MAX_KNOTS,
    CurveFileError,
    check_keys,
    check_text,
    fail,
    numbers,
    whole_number,
)
from isofold.calibration._inputs import Float64Array
from isofold.calibration.segment_curves import (
    Counts,
    KeyKind,
    KeyValue,
    Segment,
    SegmentColumn,
    SegmentCurves,
    ServedBy,
)

MAX_COLUMNS = 16
MAX_SEGMENTS = 1_000_000
MAX_MIN_ROWS = 2**53

KEYS = ("min_rows", "rows", "weight", "positives", "null_rows", "segment_columns", "segments")
_KIND_TYPES: dict[KeyKind, type] = {"string": str, "integer": int, "boolean": bool}
_COUNT_KEYS = ("key", "rows", "weight", "positives")
_OWN_KEYS = (*_COUNT_KEYS, "count", "knots_x", "knots_y")
_FALLBACK_KEYS = (*_COUNT_KEYS, "served_by_global")
_REASONS: tuple[ServedBy, ...] = ("single_class", "under_min_rows")


def text_bytes(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack("<Q", len(encoded)) + encoded


def optional_text_bytes(text: str | None) -> bytes:
    return b"\0" if text is None else b"\1" + text_bytes(text)


def knots_bytes(knots_x: Float64Array, knots_y: Float64Array) -> bytes:
    count = struct.pack("<Q", knots_x.shape[0])
    return count + knots_x.astype("<f8").tobytes() + knots_y.astype("<f8").tobytes()


def _key_bytes(value: KeyValue) -> bytes:
    if isinstance(value, str):
        return text_bytes(value)
    return struct.pack("<B" if isinstance(value, bool) else "<q", value)


def _counts_bytes(counts: Counts) -> bytes:
    return struct.pack("<ddd", counts.rows, counts.weight, counts.positives)


def content_bytes(curves: SegmentCurves) -> Iterator[bytes]:
    """What the checksum covers after the global curve (docs/curve_format.md)."""
    yield struct.pack("<Q", curves.min_rows) + _counts_bytes(curves.counts)
    yield struct.pack("<dQ", curves.null_rows, len(curves.columns))
    for column in curves.columns:
        kind = get_args(KeyKind).index(column.kind) + 1
        yield optional_text_bytes(column.name) + struct.pack("<B", kind)
    yield struct.pack("<Q", len(curves.segments))
    for segment in curves.segments:
        yield b"".join(map(_key_bytes, segment.key)) + _counts_bytes(segment.counts)
        yield struct.pack("<B", get_args(ServedBy).index(segment.served_by))
        if segment.knots_x is not None and segment.knots_y is not None:
            yield knots_bytes(segment.knots_x, segment.knots_y)


def _number(value: float) -> int | float:
    """Counts are mostly whole; 12 reads better than 12.0 and is the same float64."""
    return int(value) if value.is_integer() and value < 2**53 else value


def _counts_content(counts: Counts) -> dict[str, Any]:
    return {
        "rows": _number(counts.rows),
        "weight": _number(counts.weight),
        "positives": _number(counts.positives),
    }


def _segment_content(segment: Segment) -> dict[str, Any]:
    content: dict[str, Any] = {"key": list(segment.key), **_counts_content(segment.counts)}
    if segment.knots_x is None or segment.knots_y is None:
        return content | {"served_by_global": segment.served_by}
    return content | {
        "count": segment.knots_x.shape[0],
        "knots_x": segment.knots_x.tolist(),
        "knots_y": segment.knots_y.tolist(),
    }


def fields(curves: SegmentCurves, global_knots: int) -> dict[str, str]:
    """The JSON text of every key that version 2 adds; segments take a line each."""
    if len(curves.segments) > MAX_SEGMENTS:
        raise ValueError(f"there are {len(curves.segments):,} segments; a curve file holds {MAX_SEGMENTS:,}")
    own = (segment.knots_x for segment in curves.segments if segment.knots_x is not None)
    if (total := global_knots + sum(map(len, own))) > MAX_KNOTS:
        raise ValueError(f"the curves have {total:,} knots; a curve file holds at most {MAX_KNOTS:,}")
    for column in curves.columns:
        if column.name is not None:
            check_text(column.name, "a segment column's name")
    for segment in curves.segments:
        _check_key(list(segment.key), curves.columns, f"segment {segment.key!r}: ")
    simple = {
        "min_rows": curves.min_rows,
        **_counts_content(curves.counts),
        "null_rows": _number(curves.null_rows),
        "segment_columns": [{"name": column.name, "type": column.kind} for column in curves.columns],
    }
    lines = ",\n".join("    " + as_json(_segment_content(segment)) for segment in curves.segments)
    return {key: as_json(value) for key, value in simple.items()} | {
        "segments": f"[\n{lines}\n  ]" if lines else "[]"
    }


def as_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def read(content: dict[str, Any], global_knots: int) -> SegmentCurves:
    """The segments of a parsed version 2 file, checked but for what the global curve's rules say of knots."""
    columns = _columns(content["segment_columns"])
    listed = content["segments"]
    if type(listed) is not list or len(listed) > MAX_SEGMENTS:
        fail(f'"segments" is not a list of at most {MAX_SEGMENTS:,} entries')
    segments: list[Segment] = []
    total = global_knots
    for index, entry in enumerate(listed):
        segment = _segment(entry, columns, f'"segments"[{index}]: ', MAX_KNOTS - total)
        if segments and not segments[-1].key < segment.key:
            fail(f'"segments"[{index}]: "key" is not above the one before it')
        segments.append(segment)
        total += 0 if segment.knots_x is None else segment.knots_x.shape[0]
    return SegmentCurves(
        columns,
        whole_number(content, "min_rows", 1, MAX_MIN_ROWS),
        _counts(content, ""),
        _count(content, "null_rows", ""),
        tuple(segments),
    )


def _columns(listed: Any) -> tuple[SegmentColumn, ...]:
    if type(listed) is not list or not 1 <= len(listed) <= MAX_COLUMNS:
        fail(f'"segment_columns" is not a list of 1 to {MAX_COLUMNS} entries')
    columns = []
    for index, entry in enumerate(listed):
        where = f'"segment_columns"[{index}]: '
        if type(entry) is not dict:
            fail(f"{where}not an object")
        check_keys(entry, ("name", "type"), where)
        name = entry["name"] if entry["name"] is None else check_text(entry["name"], f'{where}"name"')
        if type(entry["type"]) is not str or entry["type"] not in _KIND_TYPES:
            fail(f'{where}"type" is none of {", ".join(_KIND_TYPES)}')
        columns.append(SegmentColumn(name, entry["type"]))
    named = [column.name for column in columns if column.name is not None]
    if len(set(named)) != len(named):
        fail('"segment_columns" names a column twice')
    return tuple(columns)


def _segment(entry: Any, columns: tuple[SegmentColumn, ...], where: str, most_knots: int) -> Segment:
    if type(entry) is not dict:
        fail(f"{where}not an object")
    own = "served_by_global" not in entry
    check_keys(entry, _OWN_KEYS if own else _FALLBACK_KEYS, where)
    key = _check_key(entry["key"], columns, where)
    counts = _counts(entry, where)
    if not own:
        reason = entry["served_by_global"]
        if type(reason) is not str or reason not in _REASONS:
            fail(f'{where}"served_by_global" is none of {", ".join(_REASONS)}')
        return Segment(key, counts, reason, None, None)
    count = whole_number(entry, "count", 1, MAX_KNOTS, where)
    if count > most_knots:
        fail(f"{where}the file has more than {MAX_KNOTS:,} knots")
    knots_x, knots_y = (numbers(entry, name, count, where) for name in ("knots_x", "knots_y"))
    return Segment(key, counts, "own_curve", knots_x, knots_y)


def _check_key(key: Any, columns: tuple[SegmentColumn, ...], where: str) -> tuple[KeyValue, ...]:
    if type(key) is not list or len(key) != len(columns):
        fail(f'{where}"key" is not a list of {len(columns)}, one entry for each segment column')
    for position, (value, column) in enumerate(zip(key, columns, strict=True)):
        name = f'{where}"key"[{position}]'
        if type(value) is not _KIND_TYPES[column.kind]:
            fail(f"{name} is not of the column's type, {column.kind}")
        if column.kind == "string":
            check_text(value, name, shortest=0)
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            fail(f"{name} does not fit in 64 bits")
    return tuple(key)


def _count(content: dict[str, Any], key: str, where: str) -> float:
    value = content[key]
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        fail(f'{where}"{key}" is not a number from 0')
    return float(value) + 0.0


def _counts(content: dict[str, Any], where: str) -> Counts:
    return Counts(*(_count(content, key, where) for key in ("rows", "weight", "positives")))


__all__ = ["KEYS", "CurveFileError", "content_bytes", "fields", "read"]
