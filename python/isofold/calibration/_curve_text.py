"""Strict reading of a curve file's JSON: each fault is a CurveFileError of one line."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import numpy as np

from isofold.calibration._inputs import Float64Array

MAX_KNOTS = 5_000_000
# Room for MAX_KNOTS pairs of the longest numbers, 24 characters and a comma each.
MAX_BYTES = 256 * 2**20
_MAX_NAME_LENGTH = 1_000
_MAX_NESTING = 4
# A string (unterminated ones too, so that the pattern never has to back off) or a bracket.
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)


class CurveFileError(ValueError):
    """The text is not a curve file that this version can trust."""


def fail(reason: str) -> NoReturn:
    raise CurveFileError(f"not a usable curve file: {reason}")


def check_text(value: Any, where: str, *, shortest: int = 1) -> str:
    """Demand a string of at most 1,000 characters that has a UTF-8 form."""
    if type(value) is not str or not shortest <= len(value) <= _MAX_NAME_LENGTH:
        fail(f"{where} is not a string of {shortest} to {_MAX_NAME_LENGTH:,} characters")
    if any("\ud800" <= character <= "\udfff" for character in value):
        fail(f"{where} holds half a surrogate pair")
    return value


def check_keys(content: dict[str, Any], expected: tuple[str, ...], where: str = "") -> None:
    """Demand all of `expected` and nothing else; `where` ends in a blank."""
    for key in expected:
        if key not in content:
            fail(f'{where}"{key}" is missing')
    for key in content:
        if key not in expected:
            fail(f"{where}{key[:40]!r} is not a key of this version")


def whole_number(content: dict[str, Any], key: str, least: int, most: int, where: str = "") -> int:
    value = content[key]
    if type(value) is not int or not least <= value <= most:
        fail(f'{where}"{key}" is not a whole number from {least} to {most}')
    return value


def numbers(content: dict[str, Any], key: str, count: int, where: str = "") -> Float64Array:
    """The list under `key` as finite float64, a zero as +0.0."""
    values = content[key]
    if type(values) is not list or not set(map(type, values)) <= {int, float}:
        fail(f'{where}"{key}" is not a list of numbers')
    if len(values) != count:
        fail(f'{where}"{key}" has {len(values)} entries, "count" says {count}')
    array = np.array(values, dtype=np.float64) + 0.0
    if not np.isfinite(array).all():
        fail(f'{where}"{key}"[{int(np.argmin(np.isfinite(array)))}] is beyond float64')
    return array


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        fail("a key appears twice")
    return content


def _whole_number(digits: str) -> int:
    if len(digits) > 20:
        fail("a whole number has more than 20 characters")
    return int(digits)


def _real_number(digits: str) -> float:
    if len(digits) > 1_200:  # the longest exact decimal of a float64 is shorter
        fail("a number has more than 1,200 characters")
    return float(digits)


def _no_constant(name: str) -> NoReturn:
    fail(f"it holds {name}")


def _check_nesting(text: str) -> None:
    """Refuse deep nesting before a recursive parser sees it."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        first = text[token.start()]
        if first in "[{":
            depth += 1
        elif first in "]}":
            depth -= 1
        if depth > _MAX_NESTING:
            fail("it is nested more than four levels deep")


def parse(text: str | bytes) -> dict[str, Any]:
    """The JSON object that `text` holds, keys unique at every level."""
    if len(text) > MAX_BYTES:
        fail(f"it is larger than {MAX_BYTES // 2**20} MiB")
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            fail(f"byte {error.start} is not UTF-8")
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
        fail(f"not JSON: {error}")
    if not isinstance(content, dict):
        fail("it is not a JSON object")
    return content
