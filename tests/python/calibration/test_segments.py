"""Curves of segments: each against rational arithmetic, who is served by whom, and every form of key."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
import pytest
from exact_curve import exact_curve
from hypothesis import given
from hypothesis import strategies as st

from isofold.calibration import Calibrator, Counts, Fallback, Segment, SegmentColumn
from isofold.calibration.curve_file import CurveFileError

SCORES = [-1.7e308, -0.0, 0.0, 5e-324, 1e-7, 0.1, float(np.nextafter(0.1, 1)), 3.0]
LABELS = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
KEYS = st.sampled_from([None, "", "a", "b", "é"])
rows = st.lists(
    st.tuples(
        st.sampled_from(SCORES), LABELS, st.sampled_from([0.0, 0.3, 1.0, 2.0]), KEYS, st.integers(0, 2)
    ),
    min_size=1,
    max_size=40,
).filter(lambda drawn: any(row[2] > 0 for row in drawn))


def exact_total(values: list[Fraction]) -> float:
    return float(oracle.round_fraction(sum(values, Fraction(0)), "float64"))


@given(rows, st.booleans(), st.integers(1, 4))
def test_every_curve_is_exact(drawn: list[Any], increasing: bool, min_rows: int) -> None:
    scores, labels, weights, names, ids = (list(column) for column in zip(*drawn, strict=True))
    curves = Calibrator(increasing=increasing, min_rows=min_rows)
    curves.fit(scores, labels, weights, segments={"name": names, "id": ids})
    everything = exact_curve([row[:3] for row in drawn], increasing)
    points = np.array(list(everything))
    assert oracle.same_bits(curves.predict(points), np.array(list(everything.values())))

    expected: dict[Any, list[Any]] = {}
    for row in drawn:
        if row[2] > 0 and row[3] is not None:
            expected.setdefault((row[3], row[4]), []).append(row)
    assert [segment.key for segment in curves.segments_] == sorted(expected)
    assert curves.segment_columns_ == (
        SegmentColumn("name", "string"),
        SegmentColumn("id", "integer"),
    ) or all(name is None for name in names)
    for segment in curves.segments_:
        own = expected[segment.key]
        weight = exact_total([Fraction(row[2]) for row in own])
        # Products are rounded, once each.
        positives = exact_total([Fraction(row[1] * row[2]) for row in own])
        assert segment.counts == Counts(len(own), weight, positives)
        one_class = all(row[1] == 0 for row in own) or all(row[1] == 1 for row in own)
        served = "single_class" if one_class else "own_curve" if len(own) >= min_rows else "under_min_rows"
        assert segment.served_by == served
        answer = exact_curve([row[:3] for row in own], increasing) if served == "own_curve" else everything
        points = np.array(list(answer))
        keys = {"id": [segment.key[1]] * len(points), "name": [segment.key[0]] * len(points)}
        assert oracle.same_bits(curves.predict(points, segments=keys), np.array(list(answer.values())))
    missing = [row for row in drawn if row[2] > 0 and row[3] is None]
    assert curves.fallbacks_["null"] == Fallback(0, len(missing))
    unserved = [s for s in curves.segments_ if s.served_by == "under_min_rows"]
    assert curves.fallbacks_["under_min_rows"] == Fallback(
        len(unserved), sum(segment.counts.rows for segment in unserved)
    )


@given(rows, st.booleans(), st.randoms(use_true_random=False))
def test_order_of_rows_changes_no_bit(drawn: list[Any], increasing: bool, random: Any) -> None:
    texts = []
    for table in (drawn, random.sample(drawn, len(drawn))):
        scores, labels, weights, names, ids = (list(column) for column in zip(*table, strict=True))
        curves = Calibrator(increasing=increasing, min_rows=2).fit(scores, labels, weights, [names, ids])
        texts.append(curves.to_json())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("segments", [3, 40_000])
def test_many_rows_and_threads(segments: int) -> None:
    random = np.random.default_rng(3)
    size = 200_000
    scores = random.normal(size=size).round(2)
    labels = random.random(size) < 1 / (1 + np.exp(-scores))
    ids = random.integers(0, segments, size)
    one = Calibrator(threads=1, min_rows=5).fit(scores, labels, segments=ids)
    two = Calibrator(threads=2, min_rows=5).fit(scores, labels, segments=ids)
    assert one.to_json() == two.to_json()
    assert oracle.same_bits(one.predict(scores, ids), two.predict(scores, ids))
    own = [segment for segment in one.segments_ if segment.served_by == "own_curve"]
    assert len(own) > segments // 3
    for segment in own[:: max(len(own) // 20, 1)]:
        picked = ids == segment.key[0]
        alone = Calibrator().fit(scores[picked], labels[picked])
        assert oracle.same_bits(segment.knots_x, alone.knots_x_)
        assert oracle.same_bits(segment.knots_y, alone.knots_y_)
        assert oracle.same_bits(one.predict(scores, ids)[picked], alone.predict(scores[picked]))


def test_a_segment_with_one_class_is_served_by_the_pooled_curve() -> None:
    """MCGrad serves the raw score for a campaign without clicks."""
    scores = [0.2, 0.4, 0.6, 0.8] * 2
    labels = [0, 1, 0, 1, 0, 0, 0, 0]
    campaigns = ["clicked"] * 4 + ["never"] * 4
    curves = Calibrator(min_rows=1).fit(scores, labels, segments=campaigns)
    pooled = Calibrator().fit(scores, labels)
    never = curves.predict(scores[:4], segments=["never"] * 4)
    assert never.tolist() == pooled.predict(scores[:4]).tolist() == [0.0, 0.25, 0.25, 0.5]
    assert curves.predict(scores[:4], segments=["clicked"] * 4).tolist() == [0.0, 0.5, 0.5, 1.0]
    assert curves.fallbacks_["single_class"] == Fallback(1, 4.0)
    assert [segment.served_by for segment in curves.segments_] == ["own_curve", "single_class"]


def test_unseen_null_and_small_segments_are_served_by_the_global_curve() -> None:
    scores, labels = [0.0, 1.0] * 4, [0, 1] * 3 + [1, 0]
    keys = ["a", "a", "a", "a", None, None, "small", "small"]
    curves = Calibrator(min_rows=3).fit(scores, labels, segments=keys)
    assert curves.fallbacks_ == {
        "null": Fallback(0, 2.0),
        "single_class": Fallback(0, 0.0),
        "under_min_rows": Fallback(1, 2.0),
    }
    asked = ["a", "small", None, "unseen"]
    assert curves.locate(asked, 4).tolist() == [0, 1, -1, -2]
    assert curves.predict([0.0] * 4, asked).tolist() == [0.0, 0.25, 0.25, 0.25]
    assert curves.predict([0.0]).tolist() == [0.25]
    assert "1 curves for 2 segments" in repr(curves)


def test_all_null_and_all_unseen() -> None:
    curves = Calibrator(min_rows=1).fit([0.0, 1.0], [0, 1], segments=[None, None])
    assert curves.segments_ == ()
    assert curves.fallbacks_["null"] == Fallback(0, 2.0)
    assert curves.predict([0.5, 0.5], ["a", None]).tolist() == [0.5, 0.5]
    two = Calibrator(min_rows=1).fit([0.0, 1.0], [0, 1], segments=[[1, 1], [None, None]])
    assert two.segments_ == ()
    assert Calibrator.from_json(two.to_json()).predict([0.5], [[1], ["x"]]).tolist() == [0.5]


def test_combinations_of_seen_keys_may_be_unseen() -> None:
    curves = Calibrator(min_rows=1).fit(
        [0, 1, 0, 1], [0, 1, 1, 0], segments=[["a", "a", "b", "b"], [1, 1, 2, 2]]
    )
    assert [segment.key for segment in curves.segments_] == [("a", 1), ("b", 2)]
    assert curves.locate([["a", "a", "b", "b", "c"], [1, 2, 1, 2, 1]], 5).tolist() == [0, -2, -2, 1, -2]


def forms() -> dict[str, Callable[[list[Any]], Any]]:
    import pandas as pd

    return {
        "list": lambda keys: keys,
        "tuple": tuple,
        "object array": lambda keys: np.array(keys, dtype=object),
        "pandas": pd.Series,
        "pandas object": lambda keys: pd.Series(keys, dtype=object),
        "pandas categorical": lambda keys: pd.Series(keys, dtype="category"),
        "bare categorical": pd.Categorical,
        "pandas with other index": lambda keys: pd.Series(keys, index=range(9, 9 + len(keys))),
        "pyarrow": pa.array,
        "pyarrow chunks": lambda keys: pa.chunked_array([keys[:2], keys[2:]]),
        "pyarrow dictionary": lambda keys: pa.array(keys).dictionary_encode(),
        "pyarrow no chunk": lambda keys: pa.chunked_array([pa.array(keys)]),
        "dict": lambda keys: {"column": keys},
        "data frame": lambda keys: pd.DataFrame({"column": keys}),
        "table": lambda keys: pa.table({"column": keys}),
        "one list in a list": lambda keys: [keys],
    }


KEY_SETS: dict[str, list[Any]] = {
    "string": ["b", "a", None, "b", "a", "z"],
    "integer": [7, -3, None, 7, -3, 2**53 + 1],
    "boolean": [True, False, None, True, False, False],
}


@pytest.mark.parametrize("form", forms())
@pytest.mark.parametrize("kind", KEY_SETS)
def test_every_form_of_keys(form: str, kind: str) -> None:
    keys = KEY_SETS[kind]
    if kind == "integer" and form.startswith(("pandas", "bare", "data")):
        keys = [7, -3, None, 7, -3, 12]  # pandas turns these into floats
    scores, labels = [0.0, 1.0, 0.5, 1.0, 0.0, 0.5], [0, 1, 1, 1, 0, 1]
    curves = Calibrator(min_rows=1).fit(scores, labels, segments=forms()[form](keys))
    present = sorted({key for key in keys if key is not None})
    assert [segment.key for segment in curves.segments_] == [(key,) for key in present]
    assert curves.segment_columns_[0].kind == kind
    assert list(map(type, curves.segments_[0].key)) == [type(present[0])]
    expected = [-1 if key is None else present.index(key) for key in keys]
    assert curves.locate(forms()[form](keys), 6).tolist() == expected
    again = Calibrator.from_json(curves.to_json())
    assert again.locate(forms()[form](keys), 6).tolist() == expected


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int64, np.bool_, np.float32, "U3", ">i4"])
def test_numpy_dtypes(dtype: Any) -> None:
    keys = np.array([1, 0, 1, 1, 0, 0]).astype(dtype)
    curves = Calibrator(min_rows=1).fit([0, 1, 2, 3, 4, 5], [0, 1, 0, 1, 0, 1], segments=keys)
    assert [segment.counts.rows for segment in curves.segments_] == [3.0, 3.0]
    assert curves.locate(keys, 6).tolist() == keys.astype(int).tolist()


def test_wide_integers_and_array_of_columns() -> None:
    wide = np.array([[-(2**63), 5], [2**63 - 1, 5], [-(2**63), 5], [2**63 - 1, 6]])
    curves = Calibrator(min_rows=1).fit([0, 1, 2, 3], [0, 1, 0, 1], segments=wide)
    assert [segment.key for segment in curves.segments_] == [
        (-(2**63), 5),
        (2**63 - 1, 5),
        (2**63 - 1, 6),
    ]
    assert Calibrator.from_json(curves.to_json()).locate(wide, 4).tolist() == [0, 1, 0, 2]


def test_many_columns_do_not_overflow() -> None:
    random = np.random.default_rng(0)
    columns = [random.integers(0, 10**12, 3000) for _ in range(9)]
    scores, labels = random.random(3000), random.integers(0, 2, 3000)
    curves = Calibrator(min_rows=1).fit(scores, labels, segments=columns)
    assert len(curves.segments_) == 3000
    located = curves.locate(columns, 3000)
    assert [curves.segments_[index].key for index in located.tolist()] == list(
        zip(*(column.tolist() for column in columns), strict=True)
    )


def test_pandas_missing_values_are_null() -> None:
    import pandas as pd

    for keys in (
        pd.Series(["a", None, np.nan, pd.NA], dtype=object),
        pd.Series([1, None, None, None], dtype="Int64"),
        pd.Series([1.0, np.nan, np.nan, np.nan]),
        pd.Series([True, None, None, None], dtype="boolean"),
        pd.Series(["a", None, None, None], dtype="category"),
    ):
        curves = Calibrator(min_rows=1).fit([0, 1, 2, 3], [0, 1, 0, 1], segments=keys)
        assert curves.fallbacks_["null"].rows == 3
        assert len(curves.segments_) == 1


def test_named_columns_are_matched_by_name() -> None:
    keys = {"country": ["AT", "AT", "DE", "DE"], "slot": [1, 1, 1, 1]}
    curves = Calibrator(min_rows=1).fit([0, 1, 0, 1], [0, 1, 1, 0], segments=keys)
    swapped = dict(reversed(keys.items()))
    assert curves.locate(swapped, 4).tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="segments has no column 'slot', which the fit had"):
        curves.locate({"country": ["AT"], "hour": [1]}, 1)
    with pytest.raises(ValueError, match="segments has 1 columns, the fit had 2"):
        curves.locate(["AT"], 1)
    assert curves.locate([["AT"], [1]], 1).tolist() == [0]


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "length": (["a"], ValueError, "segments has 1 entries, scores has 2"),
    "length of one of two": ([["a", "b"], [1]], ValueError, r"segments\[1\] has 1 entries, scores has 2"),
    "named length": ({"c": ["a"]}, ValueError, r"segments\['c'\] has 1 entries, scores has 2"),
    "no column": ({}, ValueError, "segments has no columns"),
    "a scalar": (3, TypeError, "segments must be an array or several, not int"),
    "text": ("ab", TypeError, "segments must be an array or several, not str"),
    "fractions": ([1.0, 0.5], ValueError, r"segments\[1\] is 0\.5; numbers must be whole to be keys"),
    "infinity": ([1.0, np.inf], ValueError, r"segments\[1\] is inf; numbers must be whole"),
    "beyond 64 bits": ([0, 2**63], ValueError, r"segments\[1\] is 9223372036854775808, which does not fit"),
    "mixed kinds": (["a", 1], TypeError, "segments mixes strings and integers"),
    "booleans and numbers": ([True, 1], TypeError, "segments mixes booleans and numbers"),
    "lists": ([["a"], ["b"], ["c"]], ValueError, r"segments\[0\] has 1 entries"),
    "sets": (np.array([{1}, {2}], dtype=object), TypeError, r"segments\[0\] is a set, which is no key"),
    "bytes": ([b"a", b"b"], TypeError, r"segments\[0\] is a bytes; keys are strings"),
    "byte array": (np.array([b"a", b"b"]), TypeError, "segments must hold strings, integers or booleans"),
    "dates": (np.array(["2020", "2021"], "M8[Y]"), TypeError, "must hold strings, integers or booleans"),
    "three dimensions": (np.zeros((2, 1, 1)), ValueError, r"segments must have shape \(n,\), got"),
    "a long key": (["a" * 1001, "b"], ValueError, r"segments\[0\] has more than 1,000 characters"),
    "half a surrogate": (["a", "\ud800"], ValueError, r"segments\[1\] holds half a surrogate pair"),
    "masked": (np.ma.masked_array([1, 2], [0, 1]), TypeError, "segments is a masked array"),
    "a name that is no text": ({3: ["a", "b"]}, TypeError, "a column's name must be a string"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_segments(name: str) -> None:
    segments, error, message = WRONG[name]
    curves = Calibrator(min_rows=1).fit([0, 1], [0, 1], segments=["x", "x"])
    before = curves.to_json()
    with pytest.raises(error, match=message):
        curves.fit([0, 1], [0, 1], segments=segments)
    assert curves.to_json() == before


def test_other_kinds_than_in_the_fit_are_refused() -> None:
    curves = Calibrator(min_rows=1).fit([0, 1], [0, 1], segments={"c": ["1", "2"]})
    with pytest.raises(TypeError, match=r"segments\['c'\] holds integers, in the fit it held strings"):
        curves.predict([0.5], segments=[1])
    with pytest.raises(ValueError, match="segments were given, but the fit had none"):
        Calibrator().fit([0, 1], [0, 1]).predict([0.5], segments=["1"])


@pytest.mark.parametrize(
    ("value", "error"), [(0, ValueError), (True, ValueError), (1.5, TypeError), ("1", TypeError)]
)
def test_min_rows_is_checked(value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="min_rows must be"):
        Calibrator(min_rows=value)


def test_a_fit_without_segments_forgets_them() -> None:
    curves = Calibrator(min_rows=1).fit([0, 1], [0, 1], segments=["a", "a"])
    assert '"version": 2' in curves.to_json()
    curves.fit([0, 1], [0, 1])
    assert curves.segments_ == ()
    assert '"version": 1' in curves.to_json()


def test_round_trip_of_everything(tmp_path: Any) -> None:
    curves = Calibrator(increasing=False, floor=0.1, ceiling=0.75, min_rows=2)
    curves.fit(
        [0, 1, 0, 1], [1, 0, 1, 1], segments={"a": ["x", "x", "y", None], "b": [True, True, False, False]}
    )
    curves.score_name = "points"
    curves.save(tmp_path / "curves.json")
    again = Calibrator.load(tmp_path / "curves.json")
    assert again.to_json() == curves.to_json()
    assert (again.min_rows, again.score_name, again.increasing) == (2, "points", False)
    assert again.fallbacks_ == curves.fallbacks_
    keys = [["x", "y", "x"], [True, False, False]]
    points = [0.25, 0.25, 0.25]
    assert oracle.same_bits(again.predict(points, keys), curves.predict(points, keys))
    assert isinstance(again.segments_[0], Segment)
    with pytest.raises(CurveFileError, match="checksum"):
        Calibrator.from_json(curves.to_json().replace('"x"', '"w"'))


def test_only_numpy_is_needed() -> None:
    import subprocess

    code = (
        "import sys\n"
        "for name in ('pandas', 'pyarrow', 'polars', 'scipy', 'sklearn'): sys.modules[name] = None\n"
        "from isofold.calibration import Calibrator\n"
        "c = Calibrator(min_rows=1).fit([0, 1], [0, 1], segments={'a': ['x', 'x'], 'b': [1, 1]})\n"
        "print(c.predict([0.5], [['x'], [1]]))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=dict(os.environ))
    assert run.stdout == "[0.5]\n", run.stderr
