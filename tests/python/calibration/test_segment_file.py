"""Version 2 of the curve file: curves of segments, to the bit there and back, and nothing hostile let in."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import re
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isofold.calibration.curve_file import Curve, CurveFileError, read_curve, write_curve
from isofold.calibration.segment_curves import Counts, Segment, SegmentColumn, SegmentCurves

DOCS = Path(__file__).parents[3] / "docs"
EXAMPLE = re.findall(r"```json\n(.*?)```", (DOCS / "curve_format.md").read_text(), re.DOTALL)[1]

characters = st.characters(exclude_categories=("Cs",))
key_values: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(characters, max_size=5),
    "integer": st.integers(-(2**63), 2**63 - 1),
    "boolean": st.booleans(),
}
amounts = st.one_of(st.integers(0, 2**60).map(float), st.floats(0, 1.7e308))
counts = st.builds(Counts, amounts, amounts, amounts)


@st.composite
def knots(draw: st.DrawFn) -> tuple[Any, Any]:
    finite = st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0)
    x = sorted(draw(st.sets(finite, min_size=1, max_size=5)))
    y = sorted(draw(st.lists(st.floats(0, 1), min_size=len(x), max_size=len(x))))
    return np.array(x), np.array(y)


@st.composite
def curves(draw: st.DrawFn) -> Curve:
    kinds = draw(st.lists(st.sampled_from(["string", "integer", "boolean"]), min_size=1, max_size=3))
    names = draw(st.lists(st.text(characters, min_size=1), min_size=3, max_size=3, unique=True))
    columns = [
        SegmentColumn(draw(st.sampled_from([name, None])), kind)
        for name, kind in zip(names, kinds, strict=False)
    ]
    keys = sorted(draw(st.sets(st.tuples(*(key_values[kind] for kind in kinds)), max_size=6)))
    segments = []
    for key in keys:
        served = draw(st.sampled_from(["own_curve", "single_class", "under_min_rows"]))
        x, y = draw(knots()) if served == "own_curve" else (None, None)
        segments.append(Segment(key, draw(counts), served, x, y))
    by_segment = SegmentCurves(
        tuple(columns), draw(st.integers(1, 2**53)), draw(counts), draw(amounts), tuple(segments)
    )
    return Curve(True, None, None, draw(st.sampled_from([None, "score"])), *draw(knots()), by_segment)


def documented_checksum(content: dict[str, Any]) -> str:
    """The document's recipe, from the parsed JSON alone."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def optional(value: str | None) -> bytes:
        return b"\0" if value is None else b"\1" + text(value)

    def knots(entry: dict[str, Any]) -> bytes:
        numbers = (*entry["knots_x"], *entry["knots_y"])
        return struct.pack("<Q", entry["count"]) + b"".join(struct.pack("<d", value) for value in numbers)

    def numbers(entry: dict[str, Any], *keys: str) -> bytes:
        return b"".join(struct.pack("<d", entry[key]) for key in keys)

    floor, ceiling = content["floor"], content["ceiling"]
    data = b"isofold-curve 2\n" + bytes([content["increasing"]])
    data += struct.pack("<d", float("-inf") if floor is None else floor)
    data += struct.pack("<d", float("inf") if ceiling is None else ceiling)
    data += optional(content["score_name"]) + knots(content)
    data += struct.pack("<Q", content["min_rows"])
    data += numbers(content, "rows", "weight", "positives", "null_rows")
    types = [column["type"] for column in content["segment_columns"]]
    data += struct.pack("<Q", len(types))
    for column in content["segment_columns"]:
        code = {"string": 1, "integer": 2, "boolean": 3}[column["type"]]
        data += optional(column["name"]) + bytes([code])
    data += struct.pack("<Q", len(content["segments"]))
    for entry in content["segments"]:
        for value, kind in zip(entry["key"], types, strict=True):
            if kind == "string":
                data += text(value)
            else:
                data += struct.pack("<q", value) if kind == "integer" else bytes([value])
        data += numbers(entry, "rows", "weight", "positives")
        reason = entry.get("served_by_global")
        data += bytes([{None: 0, "single_class": 1, "under_min_rows": 2}[reason]])
        data += b"" if reason else knots(entry)
    return "sha256:" + hashlib.sha256(data).hexdigest()


@given(curves())
def test_round_trip_to_the_bit(curve: Curve) -> None:
    text = write_curve(curve)
    again = read_curve(text.encode())
    assert write_curve(again) == text
    one, other = curve.by_segment, again.by_segment
    assert one is not None
    assert other is not None
    assert (one.columns, one.min_rows, one.counts, one.null_rows) == (
        other.columns,
        other.min_rows,
        other.counts,
        other.null_rows,
    )
    assert oracle.same_bits(again.knots_x, curve.knots_x)
    for left, right in zip(one.segments, other.segments, strict=True):
        assert (left.key, left.counts, left.served_by) == (right.key, right.counts, right.served_by)
        assert list(map(type, left.key)) == list(map(type, right.key))
        for name in ("knots_x", "knots_y"):
            a, b = getattr(left, name), getattr(right, name)
            assert (a is None and b is None) or oracle.same_bits(a, b)
    content = json.loads(text)
    assert content["checksum"] == documented_checksum(content)


def test_the_documented_example_reads() -> None:
    curve = read_curve(EXAMPLE)
    assert write_curve(curve) == EXAMPLE
    assert curve.by_segment is not None
    assert [segment.key for segment in curve.by_segment.segments] == [
        ("AT", 2),
        ("AT", 11),
        ("Österreich", 2),
    ]


@given(curves())
def test_written_files_fit_the_schema(curve: Curve) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((DOCS / "curve_file.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(json.loads(write_curve(curve)))
    single = Curve(True, 0.0, 1.0, None, curve.knots_x, curve.knots_y)
    validator.validate(json.loads(write_curve(single)))


def test_the_schema_refuses_what_it_can() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((DOCS / "curve_file.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    for change in (
        lambda c: c.update(version=3),
        lambda c: c.update(version=1),
        lambda c: c.pop("segments"),
        lambda c: c.update(extra=1),
        lambda c: c["segments"][0].update(key=[None, 2]),
        lambda c: c["segments"][0].update(served_by_global="single_class"),
        lambda c: c["segments"][1].pop("served_by_global"),
        lambda c: c.update(count=10**9),
    ):
        content = json.loads(EXAMPLE)
        change(content)
        assert not validator.is_valid(content)


def changed(change: Callable[[dict[str, Any]], Any]) -> Callable[[], str]:
    content = json.loads(EXAMPLE)
    change(content)
    return lambda: json.dumps(content)


def entry(index: int, **values: Any) -> Callable[[], str]:
    return changed(lambda content: content["segments"][index].update(values))


def column(index: int, **values: Any) -> Callable[[], str]:
    return changed(lambda content: content["segment_columns"][index].update(values))


HOSTILE: dict[str, tuple[Callable[[], str], str]] = {
    "as version 1": (changed(lambda c: c.update(version=1)), "'min_rows' is not a key of this version"),
    "a future version": (changed(lambda c: c.update(version=3)), "version 3 is newer than 2"),
    "segments as object": (changed(lambda c: c.update(segments={})), '"segments" is not a list of at most'),
    "a segment as list": (changed(lambda c: c.update(segments=[[]])), r'"segments"\[0\]: not an object'),
    "a segment as null": (changed(lambda c: c.update(segments=[None])), r'"segments"\[0\]: not an object'),
    "a column as text": (changed(lambda c: c.update(segment_columns=["a"])), "not an object"),
    "no column": (changed(lambda c: c.update(segment_columns=[])), '"segment_columns" is not a list of 1'),
    "many columns": (
        changed(lambda c: c.update(segment_columns=c["segment_columns"] * 9)),
        '"segment_columns" is not a list of 1',
    ),
    "a type unknown": (column(0, type="float"), r'"segment_columns"\[0\]: "type" is none of string'),
    "a type as list": (column(0, type=["string"]), r'"segment_columns"\[0\]: "type" is none of string'),
    "a column's extra key": (column(0, size=1), r"\"segment_columns\"\[0\]: 'size' is not a key"),
    "a column's name as number": (column(1, name=3), r'"segment_columns"\[1\]: "name" is not a string'),
    "one name twice": (column(1, name="country"), "names a column twice"),
    "min_rows 0": (changed(lambda c: c.update(min_rows=0)), '"min_rows" is not a whole number from 1'),
    "min_rows as float": (changed(lambda c: c.update(min_rows=3.0)), '"min_rows" is not a whole number'),
    "min_rows as true": (changed(lambda c: c.update(min_rows=True)), '"min_rows" is not a whole number'),
    "negative rows": (changed(lambda c: c.update(rows=-1)), '"rows" is not a number from 0'),
    "infinite rows": (lambda: EXAMPLE.replace('"rows": 12', '"rows": 1e999'), '"rows" is not a number'),
    "rows as text": (entry(0, rows="4"), r'"segments"\[0\]: "rows" is not a number from 0'),
    "null_rows as null": (changed(lambda c: c.update(null_rows=None)), '"null_rows" is not a number'),
    "positives as true": (entry(2, positives=True), r'"segments"\[2\]: "positives" is not a number'),
    "a key of null": (entry(0, key=[None, 2]), r'"segments"\[0\]: "key"\[0\] is not of the column\'s type'),
    "a key of another type": (entry(0, key=["AT", "2"]), r'"key"\[1\] is not of .* type, integer'),
    "true for an integer": (entry(0, key=["AT", True]), r'"key"\[1\] is not of .* type, integer'),
    "a float for an integer": (entry(0, key=["AT", 2.0]), r'"key"\[1\] is not of .* type, integer'),
    "a huge integer": (entry(0, key=["AT", 2**63]), r'"key"\[1\] does not fit in 64 bits'),
    "a short key": (entry(0, key=["AT"]), r'"segments"\[0\]: "key" is not a list of 2'),
    "a key as text": (entry(0, key="AT"), r'"segments"\[0\]: "key" is not a list of 2'),
    "a long key": (entry(0, key=["A" * 1001, 2]), r'"key"\[0\] is not a string of 0 to 1,000'),
    "half a surrogate": (entry(0, key=["\ud800", 2]), "half a surrogate pair"),
    "one segment twice": (entry(1, key=["AT", 2]), r'"segments"\[1\]: "key" is not above the one before'),
    "unsorted segments": (entry(1, key=["AA", 2]), r'"segments"\[1\]: "key" is not above the one before'),
    "an unknown reason": (entry(1, served_by_global="own_curve"), '"served_by_global" is none of'),
    "a reason as null": (entry(1, served_by_global=None), '"served_by_global" is none of'),
    "curve and reason": (entry(0, served_by_global="single_class"), "'count' is not a key"),
    "neither": (
        changed(lambda c: c["segments"][1].pop("served_by_global")),
        r'"segments"\[1\]: "count" is missing',
    ),
    "unsorted knots": (entry(0, knots_x=[0.2, 0.1, 0.4]), r'"segments"\[0\]: "knots_x"\[1\] is not above'),
    "falling knots": (entry(0, knots_y=[0.5, 0, 1]), r'"segments"\[0\]: "knots_y"\[1\] falls'),
    "a knot beyond 1": (entry(0, knots_y=[0.5, 0.6, 1.5]), r'"segments"\[0\]: "knots_y"\[2\] is outside'),
    "a billion knots claimed": (entry(0, count=10**9), r'"segments"\[0\]: "count" is not a whole number'),
    "fewer knots than claimed": (entry(0, count=4), '"knots_x" has 3 entries, "count" says 4'),
    "NaN": (lambda: EXAMPLE.replace('"knots_x":[0.1', '"knots_x":[NaN'), "it holds NaN"),
    "a key twice": (lambda: EXAMPLE.replace('"rows":4', '"rows":4,"rows":4'), "a key appears twice"),
    "a changed count": (entry(0, rows=5), "the checksum does not fit"),
    "a changed key": (entry(0, key=["AT", 3]), "the checksum does not fit"),
    "a changed knot": (entry(0, knots_x=[0.1, 0.2, 0.5]), "the checksum does not fit"),
    "a changed reason": (entry(1, served_by_global="under_min_rows"), "the checksum does not fit"),
    "a changed type": (
        changed(lambda c: (c["segment_columns"][1].update(type="string"), c.update(segments=[]))),
        "the checksum does not fit",
    ),
    "a segment left out": (changed(lambda c: c["segments"].pop()), "the checksum does not fit"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused(name: str) -> None:
    make, message = HOSTILE[name]
    text = make()
    with pytest.raises(CurveFileError, match=message) as caught:
        read_curve(text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_every_key_is_needed() -> None:
    content = json.loads(EXAMPLE)
    for key in content:
        left = {other: value for other, value in content.items() if other != key}
        with pytest.raises(CurveFileError, match=f'"{key}" is (missing|not)'):
            read_curve(json.dumps(left))
    for index, key in [(0, key) for key in content["segments"][0]] + [(1, "key"), (1, "rows")]:
        less = copy.deepcopy(content)
        del less["segments"][index][key]
        with pytest.raises(CurveFileError, match=rf'"segments"\[{index}\]: "{key}" is missing'):
            read_curve(json.dumps(less))


def test_every_changed_byte_of_content_is_noticed() -> None:
    for position, replacement in itertools.product(range(len(EXAMPLE)), "0a,]"):
        changed_text = EXAMPLE[:position] + replacement + EXAMPLE[position + 1 :]
        try:
            curve = read_curve(changed_text)
        except CurveFileError:
            continue
        assert write_curve(curve) == EXAMPLE, changed_text


def test_many_segments_take_no_time() -> None:
    own = Segment((0,), Counts(9.0, 9.0, 3.0), "own_curve", np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    segments = tuple(
        Segment((i,), own.counts, own.served_by, own.knots_x, own.knots_y) for i in range(50_000)
    )
    by_segment = SegmentCurves((SegmentColumn("id", "integer"),), 1, own.counts, 0.0, segments)
    started = time.perf_counter()
    text = write_curve(Curve(True, None, None, None, np.array([0.0]), np.array([0.5]), by_segment))
    again = read_curve(text)
    assert time.perf_counter() - started < 30
    assert again.by_segment is not None
    assert len(again.by_segment.segments) == 50_000
