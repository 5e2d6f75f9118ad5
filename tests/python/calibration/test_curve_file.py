"""The curve file: to the bit there and back, and one clear error for anything damaged or hostile."""

from __future__ import annotations

import itertools
import json
import os
import re
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isofold.calibration import Calibrator, CurveFileError
from isofold.calibration.curve_file import MAX_BYTES

finite = st.floats(allow_nan=False, allow_infinity=False)
names = st.none() | st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=20)

DOCUMENT = Path(__file__).parents[3] / "docs" / "curve_format.md"


def sample() -> Calibrator:
    curve = Calibrator(floor=0.001, ceiling=0.9).fit([0.1, 0.2, 0.3, 0.4, 0.7], [0, 1, 0, 1, 1])
    curve.score_name = "score"
    return curve


@given(st.lists(st.tuples(finite, st.floats(0, 1)), min_size=1, max_size=30), st.booleans(), names)
def test_round_trip_to_the_bit(rows: list[tuple[float, float]], increasing: bool, name: str | None) -> None:
    scores, labels = zip(*rows, strict=True)
    curve = Calibrator(increasing=increasing).fit(scores, labels)
    curve.score_name = name
    text = curve.to_json()
    for copy in (Calibrator.from_json(text), Calibrator.from_json(text.encode())):
        assert oracle.same_bits(copy.knots_x_, curve.knots_x_)
        assert oracle.same_bits(copy.knots_y_, curve.knots_y_)
        assert (copy.increasing, copy.floor, copy.ceiling, copy.score_name) == (increasing, None, None, name)
        assert copy.to_json() == text
        assert oracle.same_bits(copy.predict(scores), curve.predict(scores))


def test_bounds_are_kept() -> None:
    copy = Calibrator.from_json(sample().to_json())
    assert (copy.floor, copy.ceiling) == (0.001, 0.9)


def test_spelling_and_order_are_free() -> None:
    content = json.loads(sample().to_json())
    shuffled = dict(reversed(content.items()))
    shuffled["knots_x"] = [0, *content["knots_x"][1:]]
    text = json.dumps(shuffled, indent=7).replace("0.2", "2e-1").replace('"score"', '"\\u0073core"')
    with pytest.raises(CurveFileError, match="checksum"):
        Calibrator.from_json(text)
    text = text.replace(" 0,", " 0.1000000000000000055511151231257827021181583404541015625,", 1)
    assert Calibrator.from_json(text).to_json() == sample().to_json()


def test_a_zero_is_positive() -> None:
    curve = Calibrator().fit([0.0, 1.0], [0, 1])
    copy = Calibrator.from_json(curve.to_json().replace("[0.0,", "[-0.0,"))
    assert oracle.same_bits(copy.knots_x_, curve.knots_x_)
    assert oracle.same_bits(copy.knots_y_, curve.knots_y_)


def replaced(key: str, value: Any) -> str:
    content = json.loads(sample().to_json())
    content[key] = value
    return json.dumps(content)


def without(key: str) -> str:
    content = json.loads(sample().to_json())
    del content[key]
    return json.dumps(content)


def edited(old: str, new: str) -> str:
    text = sample().to_json()
    assert old in text
    return text.replace(old, new, 1)


X = [0.1, 0.2, 0.3, 0.4, 0.7]
HOSTILE: dict[str, tuple[Callable[[], str | bytes], str]] = {
    "empty": (lambda: "", "not JSON"),
    "not JSON": (lambda: "score,label\n1,2\n", "not JSON"),
    "truncated": (lambda: sample().to_json()[:-80], "not JSON"),
    "trailing text": (lambda: sample().to_json() + "{}", "not JSON"),
    "a list": (lambda: "[]", "not a JSON object"),
    "a number": (lambda: "1", "not a JSON object"),
    "not UTF-8": (lambda: sample().to_json().encode().replace(b"score", b"sc\xffre"), "byte .* is not UTF-8"),
    "UTF-16": (lambda: sample().to_json().encode("utf-16"), "byte 0 is not UTF-8"),
    "byte order mark": (lambda: b"\xef\xbb\xbf" + sample().to_json().encode(), "not JSON"),
    "zero bytes": (lambda: b"\0" * 1000, "not JSON"),
    "another format": (lambda: replaced("format", "isofold-model"), '"format" is not "isofold-curve"'),
    "no format": (lambda: "{}", '"format" is not'),
    "a future version": (lambda: replaced("version", 3), "version 3 is newer than 2"),
    "a version that is text": (lambda: replaced("version", "1"), '"version" is not a whole number'),
    "a version that is true": (lambda: replaced("version", True), '"version" is not a whole number'),
    "version 0": (lambda: replaced("version", 0), '"version" is not a whole number'),
    "an unknown key": (lambda: replaced("kernel", "rbf"), "'kernel' is not a key of this version"),
    "a key twice": (lambda: edited('"count"', '"floor": null, "count"'), "a key appears twice"),
    "increasing as number": (lambda: replaced("increasing", 1), '"increasing" is neither true nor false'),
    "wrong direction": (
        lambda: replaced("increasing", False),
        r'"knots_y"\[\d\] rises, against "increasing"',
    ),
    "floor out of range": (lambda: replaced("floor", -1), '"floor" is neither null nor a number in'),
    "floor as text": (lambda: replaced("floor", "0"), '"floor" is neither null nor a number in'),
    "floor as boolean": (lambda: replaced("floor", True), '"floor" is neither null nor a number in'),
    "floor above ceiling": (lambda: replaced("floor", 0.95), '"floor" is above "ceiling"'),
    "name as number": (lambda: replaced("score_name", 3), '"score_name" is not a string of 1 to 1,000'),
    "a long name": (lambda: replaced("score_name", "x" * 1001), '"score_name" is not a string of 1 to 1,000'),
    "half a surrogate": (lambda: replaced("score_name", "\ud800"), "half a surrogate pair"),
    "a billion knots claimed": (lambda: replaced("count", 10**9), '"count" is not a whole number from 1 to'),
    "fewer knots than claimed": (lambda: replaced("count", 6), '"knots_x" has 5 entries, "count" says 6'),
    "more knots than claimed": (lambda: replaced("count", 4), '"knots_x" has 5 entries, "count" says 4'),
    "count as float": (lambda: replaced("count", 5.0), '"count" is not a whole number'),
    "no knots": (lambda: replaced("count", 0), '"count" is not a whole number'),
    "a short y": (lambda: replaced("knots_y", [0.001, 0.9]), '"knots_y" has 2 entries, "count" says 5'),
    "knots as text": (lambda: replaced("knots_x", "0.1"), '"knots_x" is not a list of numbers'),
    "a knot as text": (lambda: replaced("knots_x", [*X[:-1], "0.7"]), '"knots_x" is not a list of numbers'),
    "a knot as boolean": (lambda: replaced("knots_x", [*X[:-1], True]), '"knots_x" is not a list of numbers'),
    "a knot as null": (lambda: replaced("knots_x", [*X[:-1], None]), '"knots_x" is not a list of numbers'),
    "a knot as list": (lambda: replaced("knots_x", [*X[:-1], [0.7]]), '"knots_x" is not a list of numbers'),
    "unsorted knots": (
        lambda: replaced("knots_x", [0.1, 0.3, 0.2, 0.4, 0.7]),
        r'"knots_x"\[2\] is not above',
    ),
    "equal knots": (lambda: replaced("knots_x", [0.1, 0.2, 0.2, 0.4, 0.7]), r'"knots_x"\[2\] is not above'),
    "equal zeros": (lambda: replaced("knots_x", [-0.0, 0.0, 0.2, 0.4, 0.7]), r'"knots_x"\[1\] is not above'),
    "NaN": (lambda: edited("[0.1", "[NaN"), "it holds NaN"),
    "Infinity": (lambda: edited("0.7]", "Infinity]"), "it holds Infinity"),
    "minus Infinity": (lambda: edited("[0.1", "[-Infinity"), "it holds -Infinity"),
    "a number beyond float64": (lambda: edited("0.7]", "1e400]"), r'"knots_x"\[4\] is beyond float64'),
    "falling y": (lambda: replaced("knots_y", [0.5, 0.4, 0.5, 0.9, 0.9]), r'"knots_y"\[1\] falls'),
    "y below 0": (lambda: replaced("knots_y", [-0.5, 0.4, 0.5, 0.9, 0.9]), r'"knots_y"\[0\] is outside'),
    "y above the ceiling": (
        lambda: replaced("knots_y", [0.5, 0.5, 0.5, 0.9, 0.91]),
        r'"knots_y"\[4\] is outside',
    ),
    "a changed knot": (lambda: replaced("knots_x", [0.1, 0.2, 0.3, 0.4, 0.8]), "the checksum does not fit"),
    "a changed last bit": (lambda: edited("0.4", "0.4000000000000001"), "the checksum does not fit"),
    "a changed name": (lambda: replaced("score_name", "Score"), "the checksum does not fit"),
    "a dropped floor": (lambda: replaced("floor", None), "the checksum does not fit"),
    "a checksum that is a number": (lambda: replaced("checksum", 5), "the checksum does not fit"),
    "deep lists": (lambda: "[" * 1_000_000, "nested more than four levels"),
    "deep objects": (lambda: '{"a":' * 1_000_000 + "1" + "}" * 1_000_000, "nested more than four levels"),
    "brackets in strings": (lambda: '{"format": "' + "[" * 100_000 + '"}', '"format" is not'),
    "an unterminated string": (lambda: '{"' + '\\"' * 200_000, "not JSON"),
    "a huge whole number": (lambda: edited('"version": 1', '"version": ' + "9" * 1_000_000), "more than 20"),
    "a huge real number": (lambda: edited("0.7]", "0." + "7" * 1_000_000 + "]"), "more than 1,200"),
    "a huge exponent": (lambda: edited("0.7]", "1e" + "9" * 1_000 + "]"), "beyond float64"),
    "many keys": (lambda: "{" + ",".join(f'"k{i}": 1' for i in range(100_000)) + "}", '"format" is not'),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused(name: str) -> None:
    make, message = HOSTILE[name]
    text = make()
    started = time.perf_counter()
    with pytest.raises(CurveFileError, match=message) as caught:
        Calibrator.from_json(text)
    assert time.perf_counter() - started < 5
    assert isinstance(caught.value, ValueError)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("key", json.loads(sample().to_json()))
def test_every_key_is_needed(key: str) -> None:
    with pytest.raises(CurveFileError, match=f'"{key}" is (missing|not)'):
        Calibrator.from_json(without(key))


def test_every_changed_byte_of_content_is_noticed() -> None:
    text = sample().to_json()
    same = sample()
    for position, replacement in itertools.product(range(len(text)), "0a,]"):
        changed = text[:position] + replacement + text[position + 1 :]
        try:
            curve = Calibrator.from_json(changed)
        except CurveFileError:
            continue
        # What still reads must mean the same: a line feed or space replaced, say.
        assert curve.to_json() == same.to_json(), changed


def test_a_huge_file_is_refused_without_being_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as stream:
        stream.truncate(64 * 2**30)
    started = time.perf_counter()
    with pytest.raises(CurveFileError, match="larger than 256 MiB"):
        Calibrator.load(path)
    assert time.perf_counter() - started < 20
    assert MAX_BYTES == 256 * 2**20


def test_save_and_load(tmp_path: Path) -> None:
    path = tmp_path / "curve.json"
    path.write_text("old")
    path.chmod(0o640)
    sample().save(path)
    assert Calibrator.load(str(path)).to_json() == sample().to_json()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["curve.json"]


def test_a_new_file_has_the_permissions_that_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        sample().save(tmp_path / "curve.json")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "curve.json").stat().st_mode) == 0o640


def test_save_follows_a_link_and_refuses_what_is_no_file(tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    link.symlink_to(real)
    sample().save(link)
    assert link.is_symlink()
    assert Calibrator.load(real).to_json() == sample().to_json()
    with pytest.raises(OSError, match="not a regular file"):
        sample().save(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(OSError, match="not a regular file"):
        sample().save(pipe)
    with pytest.raises(FileNotFoundError):
        sample().save(tmp_path / "missing" / "curve.json")
    assert sorted(os.listdir(tmp_path)) == ["link.json", "pipe", "real.json"]


def test_a_failed_save_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "curve.json"
    path.write_text("old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        sample().save(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["curve.json"]


def test_unfitted_and_badly_named_curves_are_not_saved(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="call fit or load first"):
        Calibrator().save(tmp_path / "curve.json")
    curve = sample()
    curve.score_name = ""
    with pytest.raises(ValueError, match="score_name"):
        curve.save(tmp_path / "curve.json")
    assert os.listdir(tmp_path) == []


def test_the_documented_example_reads() -> None:
    example = re.findall(r"```json\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)[0]
    curve = Calibrator.from_json(example)
    assert curve.predict([0.05, 0.15, 0.25]).tolist()[::2] == [0.0, 0.5]
    assert curve.to_json() == example


def test_a_large_curve_round_trips() -> None:
    scores = np.random.default_rng(1).random(100_000)
    curve = Calibrator().fit(scores, scores)
    copy = Calibrator.from_json(curve.to_json())
    assert len(copy.knots_x_) == 100_000
    assert oracle.same_bits(copy.knots_x_, curve.knots_x_)
