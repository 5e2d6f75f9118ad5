"""The curve file: versioned JSON with a checksum. docs/curve_format.md is its description.

Reading trusts nothing: size, encoding, nesting, types, counts, order and checksum are checked before a curve
exists, and every fault is a CurveFileError of one line.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import struct
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from isofold.calibration._inputs import Float64Array

FORMAT = "isofold-curve"
VERSION = 1
MAX_KNOTS = 5_000_000
# Room for MAX_KNOTS pairs of the longest numbers, 24 characters and a comma each.
MAX_BYTES = 256 * 2**20

_KEYS = (
    "format",
    "version",
    "increasing",
    "floor",
    "ceiling",
    "score_name",
    "count",
    "knots_x",
    "knots_y",
    "checksum",
)
# A string (unterminated ones too, so that the pattern never has to back off) or a bracket.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_MAX_NAME_LENGTH = 1_000


class CurveFileError(ValueError):
    """The text is not a curve file that this version can trust."""


@dataclass(frozen=True)
class Curve:
    """What a file holds. Knots: x strictly rising, y monotone and in [0, 1]."""

    increasing: bool
    floor: float | None
    ceiling: float | None
    score_name: str | None
    knots_x: Float64Array
    knots_y: Float64Array


def checksum(curve: Curve) -> str:
    """SHA-256 over the content, numbers as little-endian float64: how a file spells them is free."""
    digest = hashlib.sha256(f"{FORMAT} {VERSION}\n".encode())
    floor = -math.inf if curve.floor is None else curve.floor
    ceiling = math.inf if curve.ceiling is None else curve.ceiling
    digest.update(struct.pack("<Bdd", curve.increasing, floor, ceiling))
    if curve.score_name is None:
        digest.update(struct.pack("<B", 0))
    else:
        name = curve.score_name.encode()
        digest.update(struct.pack("<BQ", 1, len(name)) + name)
    digest.update(struct.pack("<Q", curve.knots_x.shape[0]))
    digest.update(curve.knots_x.astype("<f8").tobytes())
    digest.update(curve.knots_y.astype("<f8").tobytes())
    return "sha256:" + digest.hexdigest()


def write_curve(curve: Curve) -> str:
    """Return the file's text. Numbers are the shortest that read back to the same float64."""
    count = curve.knots_x.shape[0]
    if count > MAX_KNOTS:
        raise ValueError(f"the curve has {count} knots; a curve file holds at most {MAX_KNOTS}")
    if curve.score_name is not None:
        _check_name(curve.score_name)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "increasing": curve.increasing,
        "floor": curve.floor,
        "ceiling": curve.ceiling,
        "score_name": curve.score_name,
        "count": count,
        "knots_x": curve.knots_x.tolist(),
        "knots_y": curve.knots_y.tolist(),
        "checksum": checksum(curve),
    }
    lines = (f'  "{key}": {json.dumps(value, separators=(",", ":"))}' for key, value in content.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read_curve(text: str | bytes) -> Curve:
    """Parse and check a curve file. O(size). Raises CurveFileError."""
    content = _parse(text)
    if content.get("format") != FORMAT:
        _fail(f'"format" is not "{FORMAT}"')
    version = content.get("version")
    if type(version) is not int or version < 1:
        _fail('"version" is not a whole number from 1')
    if version > VERSION:
        _fail(f"version {version} is newer than {VERSION}, the newest this isofold reads")
    for key in _KEYS:
        if key not in content:
            _fail(f'"{key}" is missing')
    for key in content:
        if key not in _KEYS:
            _fail(f"{key[:40]!r} is not a key of version {version}")
    if type(content["increasing"]) is not bool:
        _fail('"increasing" is neither true nor false')
    if content["score_name"] is not None:
        _check_name(content["score_name"])

    count = content["count"]
    if type(count) is not int or not 1 <= count <= MAX_KNOTS:
        _fail(f'"count" is not a whole number from 1 to {MAX_KNOTS}')
    curve = Curve(
        increasing=content["increasing"],
        floor=_bound(content, "floor"),
        ceiling=_bound(content, "ceiling"),
        score_name=content["score_name"],
        knots_x=_numbers(content, "knots_x", count),
        knots_y=_numbers(content, "knots_y", count),
    )
    _check_curve(curve)
    if content["checksum"] != checksum(curve):
        _fail("the checksum does not fit the content: the file is damaged or was edited")
    return curve


def _fail(reason: str) -> NoReturn:
    raise CurveFileError(f"not a usable curve file: {reason}")


def _check_name(name: Any) -> None:
    if type(name) is not str or not 1 <= len(name) <= _MAX_NAME_LENGTH:
        _fail(f'"score_name" is neither null nor a string of 1 to {_MAX_NAME_LENGTH} characters')
    if any("\ud800" <= character <= "\udfff" for character in name):
        _fail('"score_name" holds half a surrogate pair')


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        _fail("a key appears twice")
    return content


def _whole_number(digits: str) -> int:
    if len(digits) > 20:
        _fail("a whole number has more than 20 characters")
    return int(digits)


def _real_number(digits: str) -> float:
    if len(digits) > 1_200:  # the longest exact decimal of a float64 is shorter
        _fail("a number has more than 1,200 characters")
    return float(digits)


def _no_constant(name: str) -> NoReturn:
    _fail(f"it holds {name}")


def _check_nesting(text: str) -> None:
    """Refuse more than two levels before a recursive parser sees them."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += 1
        elif first in "]}":
            depth -= 1
        if depth > 2:
            _fail("it is nested more than two levels deep")


def _parse(text: str | bytes) -> dict[str, Any]:
    if len(text) > MAX_BYTES:
        _fail(f"it is larger than {MAX_BYTES // 2**20} MiB")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            _fail(f"byte {error.start} is not UTF-8")
    _check_nesting(text)
    try:
        content = json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_int=_whole_number,
            parse_float=_real_number,
            parse_constant=_no_constant,
        )
    except CurveFileError:
        raise
    except (ValueError, RecursionError) as error:
        _fail(f"not JSON: {error}")
    if not isinstance(content, dict):
        _fail("it is not a JSON object")
    return content


def _bound(content: dict[str, Any], key: str) -> float | None:
    value = content[key]
    if value is None:
        return None
    if type(value) not in (int, float) or not 0.0 <= value <= 1.0:
        _fail(f'"{key}" is neither null nor a number in [0, 1]')
    return float(value)


def _numbers(content: dict[str, Any], key: str, count: int) -> Float64Array:
    values = content[key]
    if type(values) is not list or not set(map(type, values)) <= {int, float}:
        _fail(f'"{key}" is not a list of numbers')
    if len(values) != count:
        _fail(f'"{key}" has {len(values)} entries, "count" says {count}')
    array = np.array(values, dtype=np.float64) + 0.0
    if not np.isfinite(array).all():
        _fail(f'"{key}"[{int(np.argmin(np.isfinite(array)))}] is beyond float64')
    return array


def _check_curve(curve: Curve) -> None:
    if curve.floor is not None and curve.ceiling is not None and curve.floor > curve.ceiling:
        _fail('"floor" is above "ceiling"')
    unsorted = curve.knots_x[1:] <= curve.knots_x[:-1]
    if unsorted.any():
        _fail(f'"knots_x"[{int(np.argmax(unsorted)) + 1}] is not above the one before it')
    lowest = 0.0 if curve.floor is None else curve.floor
    highest = 1.0 if curve.ceiling is None else curve.ceiling
    outside = (curve.knots_y < lowest) | (curve.knots_y > highest)
    if outside.any():
        _fail(f'"knots_y"[{int(np.argmax(outside))}] is outside [{lowest!r}, {highest!r}]')
    steps = curve.knots_y[1:] - curve.knots_y[:-1]
    wrong = steps < 0 if curve.increasing else steps > 0
    if wrong.any():
        direction = "falls" if curve.increasing else "rises"
        _fail(f'"knots_y"[{int(np.argmax(wrong)) + 1}] {direction}, against "increasing"')
