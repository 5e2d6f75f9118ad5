"""The curve file: versioned JSON with a checksum. docs/curve_format.md is its description.

Version 1 holds one curve, version 2 a global curve and curves of segments. Reading trusts nothing: size,
encoding, nesting, types, counts, order and checksum are checked before a curve exists, and every fault is a
CurveFileError of one line.
"""

from __future__ import annotations

import hashlib
import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isofold.calibration import _segment_file
from isofold.calibration._curve_text import (
    MAX_BYTES,
    MAX_KNOTS,
    CurveFileError,
    check_keys,
    check_text,
    fail,
    numbers,
    parse,
    whole_number,
)
from isofold.calibration._inputs import Float64Array
from isofold.calibration._segment_file import as_json, knots_bytes, optional_text_bytes
from isofold.calibration.segment_curves import SegmentCurves

__all__ = [
    "MAX_BYTES",
    "MAX_KNOTS",
    "Curve",
    "CurveFileError",
    "checksum",
    "curves_end_to_end",
    "read_curve",
    "write_curve",
]

FORMAT = "isofold-curve"
NEWEST_VERSION = 2

_HEAD_KEYS = ("format", "version", "increasing", "floor", "ceiling", "score_name")
_KNOT_KEYS = ("count", "knots_x", "knots_y")
_KEYS = {
    1: (*_HEAD_KEYS, *_KNOT_KEYS, "checksum"),
    2: (*_HEAD_KEYS, *_KNOT_KEYS, *_segment_file.KEYS, "checksum"),
}


@dataclass(frozen=True)
class Curve:
    """What a file holds. Knots: x strictly rising, y monotone and in [0, 1]; they are the global curve's."""

    increasing: bool
    floor: float | None
    ceiling: float | None
    score_name: str | None
    knots_x: Float64Array
    knots_y: Float64Array
    by_segment: SegmentCurves | None = None

    @property
    def version(self) -> int:
        return 1 if self.by_segment is None else 2


def checksum(curve: Curve) -> str:
    """SHA-256 over the content, numbers as little-endian float64: how a file spells them is free."""
    digest = hashlib.sha256(f"{FORMAT} {curve.version}\n".encode())
    floor = -math.inf if curve.floor is None else curve.floor
    ceiling = math.inf if curve.ceiling is None else curve.ceiling
    digest.update(struct.pack("<Bdd", curve.increasing, floor, ceiling))
    digest.update(optional_text_bytes(curve.score_name))
    digest.update(knots_bytes(curve.knots_x, curve.knots_y))
    if curve.by_segment is not None:
        for part in _segment_file.content_bytes(curve.by_segment):
            digest.update(part)
    return "sha256:" + digest.hexdigest()


def write_curve(curve: Curve) -> str:
    """Return the file's text. Numbers are the shortest that read back to the same float64."""
    count = curve.knots_x.shape[0]
    if count > MAX_KNOTS:
        raise ValueError(f"the curve has {count} knots; a curve file holds at most {MAX_KNOTS}")
    if curve.score_name is not None:
        check_text(curve.score_name, '"score_name"')
    content = {
        "format": FORMAT,
        "version": curve.version,
        "increasing": curve.increasing,
        "floor": curve.floor,
        "ceiling": curve.ceiling,
        "score_name": curve.score_name,
        "count": count,
        "knots_x": curve.knots_x.tolist(),
        "knots_y": curve.knots_y.tolist(),
    }
    fields = {key: as_json(value) for key, value in content.items()}
    if curve.by_segment is not None:
        fields |= _segment_file.fields(curve.by_segment, count)
    fields["checksum"] = as_json(checksum(curve))
    text = "{\n" + ",\n".join(f'  "{key}": {value}' for key, value in fields.items()) + "\n}\n"
    if len(text) > MAX_BYTES:  # all ASCII
        raise ValueError(f"the curve file would be larger than {MAX_BYTES // 2**20} MiB")
    return text


def read_curve(text: str | bytes) -> Curve:
    """Parse and check a curve file. O(size). Raises CurveFileError."""
    content = parse(text)
    if content.get("format") != FORMAT:
        fail(f'"format" is not "{FORMAT}"')
    version = content.get("version")
    if type(version) is not int or version < 1:
        fail('"version" is not a whole number from 1')
    if version > NEWEST_VERSION:
        fail(f"version {version} is newer than {NEWEST_VERSION}, the newest this isofold reads")
    check_keys(content, _KEYS[version])
    if type(content["increasing"]) is not bool:
        fail('"increasing" is neither true nor false')
    if content["score_name"] is not None:
        check_text(content["score_name"], '"score_name"')

    count = whole_number(content, "count", 1, MAX_KNOTS)
    curve = Curve(
        increasing=content["increasing"],
        floor=_bound(content, "floor"),
        ceiling=_bound(content, "ceiling"),
        score_name=content["score_name"],
        knots_x=numbers(content, "knots_x", count),
        knots_y=numbers(content, "knots_y", count),
        by_segment=_segment_file.read(content, count) if version == 2 else None,
    )
    _check_curve(curve)
    if content["checksum"] != checksum(curve):
        fail("the checksum does not fit the content: the file is damaged or was edited")
    return curve


def curves_end_to_end(curve: Curve) -> tuple[Float64Array, Float64Array, NDArray[np.int64]]:
    """x and y of the knots of the global curve and of the segments' own ones, and where each curve starts."""
    xs, ys = [curve.knots_x], [curve.knots_y]
    for segment in curve.by_segment.segments if curve.by_segment is not None else ():
        if segment.knots_x is not None and segment.knots_y is not None:
            xs.append(segment.knots_x)
            ys.append(segment.knots_y)
    offsets = np.concatenate(([0], np.cumsum([len(x) for x in xs]))).astype(np.int64)
    return np.concatenate(xs), np.concatenate(ys), offsets


def _bound(content: dict[str, Any], key: str) -> float | None:
    value = content[key]
    if value is None:
        return None
    if type(value) not in (int, float) or not 0.0 <= value <= 1.0:
        fail(f'"{key}" is neither null nor a number in [0, 1]')
    return float(value)


def _check_curve(curve: Curve) -> None:
    if curve.floor is not None and curve.ceiling is not None and curve.floor > curve.ceiling:
        fail('"floor" is above "ceiling"')
    _check_knots(curve, curve.knots_x, curve.knots_y, "")
    for index, segment in enumerate(curve.by_segment.segments if curve.by_segment is not None else ()):
        if segment.knots_x is not None and segment.knots_y is not None:
            _check_knots(curve, segment.knots_x, segment.knots_y, f'"segments"[{index}]: ')


def _check_knots(curve: Curve, knots_x: Float64Array, knots_y: Float64Array, where: str) -> None:
    unsorted = knots_x[1:] <= knots_x[:-1]
    if unsorted.any():
        fail(f'{where}"knots_x"[{int(unsorted.argmax()) + 1}] is not above the one before it')
    lowest = 0.0 if curve.floor is None else curve.floor
    highest = 1.0 if curve.ceiling is None else curve.ceiling
    outside = (knots_y < lowest) | (knots_y > highest)
    if outside.any():
        fail(f'{where}"knots_y"[{int(outside.argmax())}] is outside [{lowest!r}, {highest!r}]')
    steps = knots_y[1:] - knots_y[:-1]
    wrong = steps < 0 if curve.increasing else steps > 0
    if wrong.any():
        direction = "falls" if curve.increasing else "rises"
        fail(f'{where}"knots_y"[{int(wrong.argmax()) + 1}] {direction}, against "increasing"')
