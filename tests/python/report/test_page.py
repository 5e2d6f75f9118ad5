"""The file: self-contained, escaped, whole or absent; the browser's part is in test_browser.py."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isofold.calibration.report import report_data, write_report

SCORES, LABELS, CALIBRATED = [0.2, 0.4, 0.6, 0.8], [0, 0, 1, 1], [0.0, 0.25, 0.75, 1.0]


def finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def test_data_block_is_what_was_computed(tmp_path: Path, parse: Any) -> None:
    random = np.random.default_rng(0)
    scores = random.random(500)
    columns = (scores, random.random(500) < scores, scores**2)
    keywords: dict[str, Any] = {
        "sample_weight": random.random(500),
        "segments": random.integers(0, 9, 500),
        "title": "A title",
        "drift": {"isotonic": {"ECE": 0.1}, "Platt": {"ECE": 0.2, "Brier": 0.3}},
        "notes": ["one", "two"],
    }
    path = tmp_path / "report.html"
    returned = write_report(path, *columns, **keywords)
    data = report_data(*columns, **keywords)
    assert returned == data
    page = parse(path.read_text("utf-8"))
    assert json.loads(page.data) == finite(data)
    assert data["drift"] == {
        "columns": ["ECE", "Brier"],
        "names": ["isotonic", "Platt"],
        "rows": [[0.1, None], [0.2, 0.3]],
    }
    assert page.tables["On data from another time"] == [
        ["", "ECE", "Brier"],
        ["isotonic", "0.1", "-"],
        ["Platt", "0.2", "0.3"],
    ]
    assert "A title" in page.text


def test_nothing_is_fetched(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    write_report(path, SCORES, LABELS, CALIBRATED, segments=["http://x/", "b", "b", "b"])
    text = path.read_text("utf-8")
    assert not re.search(r"""\b(src|srcset|href|action|data)\s*=\s*(?!["']?#)""", text)
    assert not re.search(
        r"@import|url\((?!#)|<link|<iframe|<img|<object|<embed|fetch\(|XMLHttp|import\(", text
    )
    assert "default-src 'none'" in text


def test_identifiers_are_unique_and_references_resolve(tmp_path: Path, parse: Any) -> None:
    path = tmp_path / "report.html"
    write_report(path, SCORES, LABELS, CALIBRATED, segments=list("aabb"))
    text = path.read_text("utf-8")
    names = [attributes["id"] for _, attributes in parse(text).elements if "id" in attributes]
    assert len(names) == len(set(names))
    assert set(re.findall(r'href="#([^"]*)"', text)) | set(re.findall(r"url\(#([^)]*)\)", text)) <= set(names)
    # No stand-in for a colour is left.
    assert not re.search(r"#00000[1-5]", text)


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; drop table",
    "</script><script>alert(2)</script>",
    "<!--<script>",
    "&lt;b&gt; & &amp;",
    "\u202egnp.exe",
    "tab\tand\nline",
    "",
    "x" * 900,
    "\x00\x1b[31m",
]


def test_hostile_names_are_text(tmp_path: Path, parse: Any) -> None:
    path = tmp_path / "report.html"
    rows = len(HOSTILE)
    write_report(
        path,
        np.full(rows, 0.5),
        np.arange(rows) % 2,
        np.full(rows, 0.5),
        segments=np.array(HOSTILE, dtype=object),
        segment_names=["<i>name</i>"],
        title="<script>alert('title')</script>",
        drift={"<u>row</u>": {"<s>column</s>": 1.0}},
        notes=["<script>alert('note')</script>", "half of a surrogate pair: \ud800"],
    )
    page = parse(path.read_text("utf-8"))
    tags = [tag for tag, _ in page.elements]
    assert tags.count("script") == 2
    assert not {"img", "i", "u", "s"} & set(tags)
    assert not any(name.startswith("on") for _, attributes in page.elements for name in attributes)
    table = page.tables[f"{rows} segments, the worst first"]
    assert table[0][0] == "<i>name</i>"
    names = {row[0] for row in table[1:]}
    for name in HOSTILE[:7]:
        assert name in names
    assert "x" * 119 + "…" in names
    assert sorted(json.loads(page.data)["segments"]["names"]) == sorted([name] for name in HOSTILE)
    for text in ("<script>alert('title')</script>", "<script>alert('note')</script>", "<u>row</u>"):
        assert text in page.text


def test_many_segments_are_cut_off_with_a_note(tmp_path: Path, parse: Any) -> None:
    path = tmp_path / "report.html"
    rows = 10_000
    random = np.random.default_rng(0)
    calibrated = random.random(rows)
    write_report(path, calibrated, random.random(rows) < 0.5, calibrated, segments=np.arange(rows))
    page = parse(path.read_text("utf-8"))
    table = page.tables["The 500 worst of 10,000 segments"]
    assert len(table) == 501
    assert "The data block of this page holds 10,000 segments" in page.text
    data = json.loads(page.data)["segments"]
    assert [row[0] for row in table[1:]] == [name for (name,) in data["names"][:500]]
    assert len(data["names"]) == 10_000


def test_segments_of_one_class(tmp_path: Path, parse: Any) -> None:
    path = tmp_path / "report.html"
    segments = ["none", "none", "all", "all"]
    data = write_report(path, SCORES, LABELS, CALIBRATED, segments=segments)["segments"]
    by_name = {name: k for k, (name,) in enumerate(data["names"])}
    assert data["before"]["predicted_over_observed"][by_name["none"]] == math.inf
    assert data["after"]["predicted_over_observed"][by_name["all"]] == 0.875
    page = parse(path.read_text("utf-8"))
    rows = {row[0]: row for row in page.tables["2 segments, the worst first"][1:]}
    assert rows["none"][1:4] == ["2", "0", "0"]
    assert rows["none"][4] == "∞"
    assert rows["all"][1:4] == ["2", "2", "1"]
    assert json.loads(page.data)["segments"]["before"]["predicted_over_observed"][by_name["none"]] is None


def test_who_served_each_segment(tmp_path: Path, parse: Any) -> None:
    path = tmp_path / "report.html"
    keywords: dict[str, Any] = {"segments": ["a", None, "b", "b"], "sample_weight": [1, 1, 1, 1]}
    data = write_report(
        path, SCORES, LABELS, CALIBRATED, served_by=["own", "global", "own", "global"], **keywords
    )
    found = dict(
        zip([name for (name,) in data["segments"]["names"]], data["segments"]["served_by"], strict=True)
    )
    assert found == {"a": "own", "(missing)": "global", "b": "several"}
    assert data["segments"]["missing"] is True
    table = parse(path.read_text("utf-8")).tables["2 segments and the rows without one, the worst first"]
    assert table[0][:3] == ["segment", "served by", "rows"]
    assert {(row[0], row[1]) for row in table[1:]} == set(found.items())
    # Rows of weight zero are dropped, and what served them with them.
    keywords["sample_weight"] = [1, 1, 0, 1]
    data = report_data(SCORES, LABELS, CALIBRATED, served_by=["own", "global", "own", "global"], **keywords)
    assert sorted(data["segments"]["served_by"]) == ["global", "global", "own"]
    with pytest.raises(ValueError, match="served_by has 1 entries, scores has 4"):
        report_data(SCORES, LABELS, CALIBRATED, served_by=["own"], **keywords)
    with pytest.raises(ValueError, match="served_by is given without segments"):
        report_data(SCORES, LABELS, CALIBRATED, served_by=["own"] * 4)


@pytest.mark.parametrize("label", [0, 1, 0.5])
@pytest.mark.parametrize("prediction", [0.0, 1.0, 0.5, 5e-324, 1 - 2**-53])
def test_one_row(tmp_path: Path, parse: Any, label: float, prediction: float) -> None:
    path = tmp_path / "report.html"
    data = write_report(path, [prediction], [label], [prediction], segments=["only"])
    assert data["metrics"]["after"]["brier"] == (label - prediction) ** 2
    infinite = int((prediction == 0 and label > 0) or (prediction == 1 and label < 1))
    assert data["metrics"]["after"]["log_loss_infinite_terms"] == infinite
    page = parse(path.read_text("utf-8"))
    assert "1 segment, the worst first" in page.tables
    assert "1 row, " in page.text
    assert [tag for tag, _ in page.elements].count("svg") == 2


def test_no_segments_no_section(tmp_path: Path, parse: Any) -> None:
    path = tmp_path / "report.html"
    assert write_report(path, SCORES, LABELS, CALIBRATED)["segments"] is None
    page = parse(path.read_text("utf-8"))
    assert "Segments" not in page.text
    assert "Drift" not in page.text


def test_scores_that_are_no_probabilities_have_no_numbers(tmp_path: Path, parse: Any) -> None:
    path = tmp_path / "report.html"
    write_report(path, [-5, 1, 2, 9], LABELS, CALIBRATED, segments=list("aabb"))
    page = parse(path.read_text("utf-8"))
    assert {row[1] for row in page.tables["All rows"][1:]} == {"-"}
    assert "they are no probabilities" in page.text


def test_the_same_data_give_the_same_file(tmp_path: Path) -> None:
    texts = []
    for name in ("one.html", "two.html"):
        write_report(tmp_path / name, SCORES, LABELS, CALIBRATED, segments=list("abab"))
        texts.append((tmp_path / name).read_bytes())
    assert texts[0] == texts[1]


def test_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")
    with pytest.raises(ValueError, match="labels"):
        write_report(path, SCORES, [0, 1, 2, 3], CALIBRATED)
    assert path.read_text() == "before"
    with pytest.raises(FileNotFoundError):
        write_report(tmp_path / "no" / "report.html", SCORES, LABELS, CALIBRATED)

    def fail(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(path, SCORES, LABELS, CALIBRATED)
    assert path.read_text() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["report.html"]


def test_settings_of_matplotlib_are_left_alone(tmp_path: Path) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    write_report(tmp_path / "report.html", SCORES, LABELS, CALIBRATED)
    assert dict(mpl.rcParams) == before
