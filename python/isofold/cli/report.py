"""What the commands print: progress while they work, and metrics before and after."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from isofold.calibration import brier_decomposition, expected_calibration_error, log_loss
from isofold.cli.sources import Source

Floats = NDArray[np.floating[Any]]


def with_progress(source: Source, batches: Iterator[Any], doing: str) -> Iterator[Any]:
    """Hand the batches on, with a bar on standard error if that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(doing, total=1.0)
        rows = 0
        for batch in batches:
            yield batch
            rows += batch.num_rows
            progress.update(task, completed=source.share_read(rows))


def say(text: str) -> None:
    Console(soft_wrap=True, markup=False, highlight=False).print(text)


def measure(labels: Floats, predictions: Floats, weights: Floats | None) -> dict[str, str]:
    """The metrics by name, as shown."""
    loss = log_loss(labels, predictions, sample_weight=weights)
    terms = brier_decomposition(labels, predictions, sample_weight=weights)
    infinite = f" ({loss.infinite_terms:,} infinite)" if loss.infinite_terms else ""
    uniform, quantile = (
        expected_calibration_error(labels, predictions, sample_weight=weights, strategy=strategy)
        for strategy in ("uniform", "quantile")
    )
    return {
        "ECE, 15 bins of equal width": f"{uniform:.6f}",
        "ECE, 15 bins of equal mass": f"{quantile:.6f}",
        "log loss": f"{loss.value:.6f}{infinite}",
        "Brier score": f"{terms.score:.6f}",
        "  miscalibration (MCB)": f"{terms.miscalibration:.6f}",
        "  discrimination (DSC)": f"{terms.discrimination:.6f}",
        "  uncertainty (UNC)": f"{terms.uncertainty:.6f}",
    }


def print_comparison(
    title: str, labels: Floats, scores: Floats, calibrated: Floats, weights: Floats | None
) -> None:
    """Print the metrics of the scores, if they can be read as probabilities, and of the calibrated rates."""
    after = measure(labels, calibrated, weights)
    readable = bool(((scores >= 0) & (scores <= 1)).all())
    before = measure(labels, scores, weights) if readable else {}
    say(title)
    table = Table()
    table.add_column("metric")
    table.add_column("before", justify="right")
    table.add_column("after", justify="right")
    for name, value in after.items():
        table.add_row(name, before.get(name, "-"), value)
    Console(highlight=False).print(table)
    if not readable:
        say("before: scores outside [0, 1] are no probabilities, so they have no such metrics")
