"""What the commands print: progress while they work, metrics, who serves which segments, JSON, warnings."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from isofold.calibration import Calibrator, brier_decomposition, expected_calibration_error, log_loss
from isofold.calibration._inputs import collect
from isofold.cli.columns import Floats
from isofold.cli.errors import warn
from isofold.cli.inputs import Input
from isofold.cli.sources import Piece
from isofold.cli.wording import counted

Metrics = dict[str, float]

_METRIC_NAMES = {
    "ece_equal_width": "ECE, 15 bins of equal width",
    "ece_equal_mass": "ECE, 15 bins of equal mass",
    "log_loss": "log loss",
    "brier": "Brier score",
    "mcb": "  miscalibration (MCB)",
    "dsc": "  discrimination (DSC)",
    "unc": "  uncertainty (UNC)",
}
_REASONS = {
    "null": "without a segment",
    "unseen": "in segments that the fit has not seen",
    "single_class": "in segments whose labels were all 0 or all 1",
    "under_min_rows": "in segments of too few rows",
}


def with_progress(source: Input, pieces: Iterator[Piece], doing: str) -> Iterator[Piece]:
    """Hand the pieces on, with a bar on standard error if that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(doing, total=1.0)
        rows = 0
        for piece in pieces:
            yield piece
            rows += piece.rows
            progress.update(task, completed=source.share_read(rows))


def say(text: str) -> None:
    Console(soft_wrap=True, markup=False, highlight=False).print(text)


def print_json(summary: dict[str, Any]) -> None:
    print(json.dumps(summary, ensure_ascii=False, allow_nan=False))


def measure(labels: Floats, predictions: Floats, weights: Floats | None) -> Metrics:
    # Sorted once for all of them. log_loss clips by the dtype that it is given.
    epsilon = float(np.finfo(predictions.dtype).eps)
    rows = collect(predictions, labels, weights, probabilities=True).in_canonical_order()
    labels, predictions, weights = rows.labels, rows.scores, rows.weights
    loss = log_loss(labels, predictions, sample_weight=weights, epsilon=epsilon)
    terms = brier_decomposition(labels, predictions, sample_weight=weights)
    uniform, quantile = (
        expected_calibration_error(labels, predictions, sample_weight=weights, strategy=strategy)
        for strategy in ("uniform", "quantile")
    )
    return {
        "ece_equal_width": uniform,
        "ece_equal_mass": quantile,
        "log_loss": loss.value,
        "log_loss_infinite_terms": loss.infinite_terms,
        "brier": terms.score,
        "mcb": terms.miscalibration,
        "dsc": terms.discrimination,
        "unc": terms.uncertainty,
    }


def compare(
    labels: Floats, scores: Floats, calibrated: Floats, weights: Floats | None
) -> dict[str, Metrics | None]:
    """Metrics of the scores, if they can be read as probabilities, and of the calibrated rates."""
    readable = bool(((scores >= 0) & (scores <= 1)).all())
    return {
        "before": measure(labels, scores, weights) if readable else None,
        "after": measure(labels, calibrated, weights),
    }


def _shown(metrics: Metrics | None, name: str, decimals: int) -> str:
    if metrics is None:
        return "-"
    infinite = metrics["log_loss_infinite_terms"] if name == "log_loss" else 0
    return f"{metrics[name]:.{decimals}f}" + (f" ({infinite:,} infinite)" if infinite else "")


def print_comparison(title: str, metrics: dict[str, Metrics | None], *, decimals: int = 6) -> None:
    """The table of metrics before and after, and what its reader must know."""
    say(title)
    table = Table()
    table.add_column("metric")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    for name, text in _METRIC_NAMES.items():
        table.add_row(text, *(_shown(metrics[side], name, decimals) for side in ("before", "after")))
    Console(highlight=False).print(table)
    if metrics["before"] is None:
        say("before: scores outside [0, 1] are no probabilities, so they have no such metrics")
    after = metrics["after"]
    if after is not None and after["log_loss_infinite_terms"]:
        rows = counted(int(after["log_loss_infinite_terms"]), "row")
        say(
            f"after: {rows} went against a rate of 0 or 1, which is an infinite loss; calibrate's --floor "
            "and --ceiling keep rates off 0 and 1"
        )


def segment_summary(calibrator: Calibrator) -> dict[str, Any]:
    """Who serves the segments of a fit."""
    own = [segment for segment in calibrator.segments_ if segment.served_by == "own_curve"]
    served_by_global = {
        reason: {"segments": found.segments, "rows": found.rows}
        for reason, found in calibrator.fallbacks_.items()
    }
    return {
        "columns": [column.name for column in calibrator.segment_columns_],
        "segments": len(calibrator.segments_),
        "own_curve": {"segments": len(own), "rows": sum(segment.counts.rows for segment in own)},
        "served_by_global": served_by_global,
    }


def print_segments(summary: dict[str, Any], min_rows: int) -> None:
    own, total = summary["own_curve"], summary["segments"]
    names = ", ".join(str(name) for name in summary["columns"])
    served = counted(round(own["rows"]), "row")
    say(f"own curves for {own['segments']:,} of {counted(total, 'segment')} by {names}: {served}")
    for reason, found in summary["served_by_global"].items():
        of_segments = "" if reason == "null" else f" ({counted(found['segments'], 'segment')})"
        limit = f" (under {min_rows:,})" if reason == "under_min_rows" else ""
        if found["rows"]:
            rows = counted(round(found["rows"]), "row")
            say(f"  the global curve: {rows} {_REASONS[reason]}{limit}{of_segments}")


def print_served(rows: dict[str, int]) -> None:
    say(f"served by curves of their segments: {counted(rows['own_curve'], 'row')}")
    for reason, text in _REASONS.items():
        if rows[reason]:
            say(f"  by the global curve: {counted(rows[reason], 'row')} {text}")


def print_dropped(rows: int, by_column: dict[str, int]) -> None:
    if rows:
        found = ", ".join(f"{count:,} without {name!r}" for name, count in by_column.items())
        say(f"{counted(rows, 'row')} dropped: {found}")


def warn_of_labels(path: str | os.PathLike[str], labels: Floats, weights: Floats | None) -> None:
    """Outcomes of one kind only are more often a wrong column or filter than the truth."""
    counts = labels if weights is None else labels[weights > 0]
    for value, missing in ((0, "positives"), (1, "negatives")):
        if bool((counts == value).all()):
            warn(f"{os.fspath(path)}: no {missing}: every label is {value}")


class RangeCheck:
    """Counts scores outside the range that the global curve was fitted to.

    A curve is constant there, so that percents put through a curve of fractions all get one rate.
    """

    def __init__(self, calibrator: Calibrator) -> None:
        self._least, self._greatest = calibrator.knots_x_[0], calibrator.knots_x_[-1]
        self.rows = self.outside = 0

    def add(self, scores: Floats) -> None:
        self.rows += len(scores)
        self.outside += int(np.count_nonzero((scores < self._least) | (scores > self._greatest)))

    def warn(self, path: str | os.PathLike[str]) -> None:
        """Say so when most scores lie outside."""
        if 2 * self.outside > self.rows:
            share = f"{self.outside:,} of {counted(self.rows, 'score')}"
            fitted = f"the fitted range {self._least:.6g} to {self._greatest:.6g}"
            warn(f"{os.fspath(path)}: {share} lie outside {fitted}, where the curve is flat: other units?")
