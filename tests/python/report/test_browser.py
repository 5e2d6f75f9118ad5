"""Reports in headless Chromium: rendered, silent on the console, with the computed numbers in them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isofold.calibration import Calibrator, brier_decomposition, expected_calibration_error, log_loss
from isofold.calibration.report import write_report

BEFORE, AFTER = (0xA8, 0x48, 0x0A), (0x0B, 0x6E, 0x5F)  # page.css, light


def pixels_near(picture: Any, colour: tuple[int, int, int], within: int = 24) -> Any:
    return (np.abs(picture - np.array(colour)) <= within).all(axis=-1)


def events(rows: int, rate: float, seed: int = 0) -> tuple[Any, Any, Any]:
    """Scores that are too high, outcomes, and rates calibrated on other rows."""
    random = np.random.default_rng(seed)
    truth = random.beta(0.5, 0.5 / rate, 2 * rows)
    labels = random.random(2 * rows) < truth
    scores = truth / (truth + (1 - truth) * 0.2)
    curve = Calibrator().fit(scores[:rows], labels[:rows])
    return scores[rows:], labels[rows:], curve.predict(scores[rows:])


@pytest.mark.parametrize(
    "wrong",
    [
        "<script>console.error('told')</script>",
        "<script>throw new Error('thrown')</script>",
        # What a report's policy turns away, for a report that tried.
        "<meta http-equiv=Content-Security-Policy content=\"default-src 'none'\"><img src=x.png>",
    ],
)
def test_an_error_on_the_console_would_be_seen(browser: Any, tmp_path: Path, wrong: str) -> None:
    path = tmp_path / "wrong.html"
    path.write_text(f"<!doctype html><title>x</title>{wrong}")
    assert browser.dom(path)[1]


def test_a_report(browser: Any, parse: Any, tmp_path: Path) -> None:
    scores, labels, calibrated = events(20_000, 0.2)
    carrier = np.array(["AA", "B6", "<script>alert(1)</script>", 'd\'Or & "Co"'])[np.arange(20_000) % 4]
    path = tmp_path / "report.html"
    write_report(
        path,
        scores,
        labels,
        calibrated,
        segments=[carrier, np.arange(20_000) % 3],
        segment_names=["carrier", "origin"],
        drift={"isotonic": {"ECE": 0.0123}},
    )
    dom, console = browser.dom(path)
    assert console == []
    page = parse(dom)

    data = json.loads(page.data)
    shown = {
        re.split(r" {2}| (?=less|more|1 is|what|the data|nats|rows)", row[0])[0]: row[1:]
        for row in page.tables["All rows"][1:]
    }
    for column, (name, predictions) in enumerate((("before", scores), ("after", calibrated))):
        terms, loss = brier_decomposition(labels, predictions), log_loss(labels, predictions)
        width = expected_calibration_error(labels, predictions)
        mass = expected_calibration_error(labels, predictions, strategy="quantile")
        found = data["metrics"][name]
        assert (found["brier"], found["mcb"], found["dsc"], found["unc"]) == tuple(terms)
        assert (found["ece_equal_width"], found["ece_equal_mass"]) == (width, mass)
        assert (found["log_loss"], found["log_loss_infinite_terms"]) == loss[:2]
        expected = {
            "ECE, 15 bins of equal width": width,
            "ECE, 15 bins of equal mass": mass,
            "Brier score": terms.score,
            "miscalibration (MCB)": terms.miscalibration,
            "discrimination (DSC)": terms.discrimination,
            "uncertainty (UNC)": terms.uncertainty,
            "log loss": loss.value,
        }
        for metric, value in expected.items():
            assert float(shown[metric][column]) == pytest.approx(value, rel=5e-4), metric
        assert shown["infinite terms of the log loss"][column] == f"{loss.infinite_terms:,}"

    table = page.tables["12 segments, the worst first"]
    assert table[0][:4] == ["carrier", "origin", "rows", "positives"]
    for name, origin, rows, positives, rate, high, ratio, *_ in table[1:]:
        own = (carrier == name) & (np.arange(20_000) % 3 == int(origin))
        assert int(rows.replace(",", "")) == own.sum()
        assert int(positives.replace(",", "")) == labels[own].sum()
        assert float(rate) == pytest.approx(labels[own].mean(), rel=5e-5)
        assert float(high) == pytest.approx(scores[own].sum() / labels[own].sum(), rel=5e-5)
        assert float(ratio) == pytest.approx(calibrated[own].sum() / labels[own].sum(), rel=5e-5)
    assert page.tables["On data from another time"][1] == ["isotonic", "0.0123"]

    picture = browser.screenshot(path)
    assert (picture[0, 0] == 255).all()
    assert pixels_near(picture, BEFORE).sum() > 500
    assert pixels_near(picture, AFTER).sum() > 500
    dark = browser.screenshot(path, "--blink-settings=preferredColorScheme=0")
    assert dark[0, 0].max() < 60
    assert pixels_near(dark, (0xE8, 0xEA, 0xED)).sum() > 500


def test_rare_events_are_readable(browser: Any, tmp_path: Path) -> None:
    """All scores near 0: the bins spread over the diagrams and do not sit in a corner."""
    scores, labels, calibrated = events(50_000, 4e-4)
    assert np.quantile(scores, 0.99) < 0.03
    path = tmp_path / "report.html"
    data = write_report(path, scores, labels, calibrated)
    assert data["axes"]["linear"][1] < 0.05
    low, high = data["axes"]["logit"]
    bins = data["diagrams"]["before"]["bins"]["mean_prediction"]
    places = (np.log(bins) - np.log(low)) / (np.log(high) - np.log(low))
    assert ((places > 0) & (places < 1)).all()
    assert places.max() - places.min() > 0.5
    texts = [entry.strip() for entry in re.findall(r"<text [^>]*>([^<]*)</text>", path.read_text("utf-8"))]
    assert "0.01%" in texts
    assert browser.dom(path)[1] == []
    picture = browser.screenshot(path, size=(1280, 1800))
    left, right = picture[:, :640], picture[:, 640:]
    for half in (left, right):
        rows, columns = np.nonzero(pixels_near(half, BEFORE))
        assert rows.max() - rows.min() > 100
        assert columns.max() - columns.min() > 250


def test_hostile_names_do_nothing(browser: Any, parse: Any, tmp_path: Path) -> None:
    names = [
        "<script>document.title='hacked'</script>",
        "</script><script>document.title='hacked'</script>",
        '"><img src=x onerror="document.title=\'hacked\'">',
        "<!--<script>",
        "\x00",
    ]
    path = tmp_path / "report.html"
    columns = ([0.5] * 5, [0, 1, 0, 1, 1], [0.5] * 5)
    write_report(path, *columns, segments=np.array(names, object), title=names[0], notes=names[:4])
    dom, console = browser.dom(path)
    assert console == []
    page = parse(dom)
    assert re.findall(r"<title>.*?</title>", dom) == [
        "<title>&lt;script&gt;document.title='hacked'&lt;/script&gt;</title>"
    ]
    assert [row[0] for row in json.loads(page.data)["segments"]["names"]].count(names[3]) == 1
    assert not any(tag == "img" for tag, _ in page.elements)


def test_many_segments(browser: Any, parse: Any, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    calibrated = random.random(20_000)
    path = tmp_path / "report.html"
    write_report(
        path, calibrated, random.random(20_000) < calibrated, calibrated, segments=np.arange(20_000) % 10_000
    )
    dom, console = browser.dom(path)
    assert console == []
    assert len(parse(dom).tables["The 500 worst of 10,000 segments"]) == 501


def test_a_click_sorts_the_segments(browser: Any, parse: Any, tmp_path: Path) -> None:
    """The page's own script with one that clicks added, for which the policy is taken out."""
    path = tmp_path / "report.html"
    scores = [0.5, 0.5, 0.9, 0.1, 0.2, 0.3]
    write_report(path, scores, [0, 1, 1, 0, 0, 0], scores, segments=list("bbacca"))
    text = path.read_text("utf-8")
    for clicks, expected in (("0", "abc"), ("0, 0", "cba"), ("4", "cab"), ("4, 4", "bac")):
        script = f"for (const k of [{clicks}]) document.querySelectorAll('th button')[k].click()"
        changed = re.sub(r"<meta http-equiv[^>]*>", "", text).replace(
            "</body>", f"<script>{script}</script></body>"
        )
        other = tmp_path / "clicked.html"
        other.write_text(changed, "utf-8")
        dom, console = browser.dom(other)
        assert console == []
        table = parse(dom).tables["3 segments, the worst first"]
        assert "".join(row[0] for row in table[1:]) == expected
        assert dom.count("aria-sort") - text.count("aria-sort") == 1
