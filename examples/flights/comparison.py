"""Four ways to read the same scores, measured on flights that neither model nor curves have seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from delay_model import KEPT_ON_TIME
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from isofold.calibration import (
    Calibrator,
    PlattScaling,
    brier_decomposition,
    downsampling_correction,
    expected_calibration_error,
    log_loss,
)

Floats = NDArray[np.floating[Any]]

METRICS = ("ECE", "Brier", "log loss", "MCB")


@dataclass(frozen=True)
class Part:
    """Scores and outcomes of one part of the year."""

    scores: Floats
    late: NDArray[np.bool_]
    days: NDArray[np.int64]


def calibrate_all(calibration: Part, scores: Floats) -> dict[str, Floats]:
    """Each method's predictions for `scores`; those that learn do so from `calibration`."""
    return {
        "uncalibrated": scores,
        "analytic": downsampling_correction(scores, KEPT_ON_TIME),
        "Platt": PlattScaling().fit(calibration.scores, calibration.late).predict(scores),
        "isotonic": Calibrator().fit(calibration.scores, calibration.late).predict(scores),
    }


def measure(predictions: dict[str, Floats], late: NDArray[np.bool_]) -> dict[str, dict[str, float]]:
    """By method, then metric; less is better in all. 'infinite' counts the log loss's infinite terms."""
    results = {}
    for method, values in predictions.items():
        terms, loss = brier_decomposition(late, values), log_loss(late, values)
        error = expected_calibration_error(late, values, strategy="quantile")
        found = (error, terms.score, loss.value, terms.miscalibration)
        results[method] = dict(zip(METRICS, found, strict=True)) | {"infinite": loss.infinite_terms}
    return results


def brier_difference(first: Floats, second: Floats, part: Part) -> tuple[float, float, float]:
    """Brier of `first` minus that of `second`, and a 95% interval from resampling whole days 2,000 times.

    Flights of one day share weather and knock-on delays, so single flights are no independent draws.
    """
    gaps = (first - part.late) ** 2 - (second - part.late) ** 2
    _, day = np.unique(part.days, return_inverse=True)
    sums, counts = np.bincount(day, gaps), np.bincount(day)
    drawn = np.random.default_rng(0).integers(0, len(counts), (2000, len(counts)))
    resampled = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(resampled, (0.025, 0.975))
    return float(gaps.mean()), float(low), float(high)


def brier_sentence(name: str, first: Floats, second_name: str, second: Floats, part: Part) -> str:
    """Which of two predictions is better by Brier, by how much, and whether chance would explain it.

    The difference is that of the worse minus the better, so that it and its interval have the same sign.
    """
    gap, low, high = brier_difference(first, second, part)
    verdict = "better"
    if gap > 0:
        verdict = "worse"
    else:
        gap, low, high = -gap, -high, -low
    judgement = "more than" if low > 0 else "no more than"
    return (
        f"By Brier, {name} are {verdict} than {second_name} by {gap:.6f} "
        f"(95% of resampled days: {low:.6f} to {high:.6f}), {judgement} chance would give."
    )


def before_and_after(results: dict[str, dict[str, float]], flights: int) -> str:
    """The demo in one sentence."""
    before, after = results["uncalibrated"], results["isotonic"]
    ece, brier = (f"from {before[name]:.3f} to {after[name]:.3f}" for name in ("ECE", "Brier"))
    return (
        f"On {flights:,} unseen flights, isotonic calibration takes the ECE {ece}, the Brier score {brier}."
    )


def print_table(console: Console, title: str, results: dict[str, dict[str, float]]) -> None:
    table = Table(title=title, title_justify="left", title_style="bold")
    table.add_column("")
    for name in METRICS:
        table.add_column(name, justify="right")
    least = {name: min(result[name] for result in results.values()) for name in METRICS}
    for method, result in results.items():
        cells = [f"{result[name]:.5f}" + (" *" if result[name] == least[name] else "  ") for name in METRICS]
        table.add_row(method, *cells)
    console.print(table)
    infinite = [f"{method} {result['infinite']}" for method, result in results.items() if result["infinite"]]
    note = "* least in its column. ECE: 15 bins of equal mass. Log loss: predictions clipped to 2^-52"
    console.print(f"{note}; infinite terms: {', '.join(infinite) or 'none'}.")


def print_verdict(
    console: Console, results: dict[str, dict[str, float]], predictions: dict[str, Floats], part: Part
) -> None:
    """Say who wins by each metric, and whether the draw of days could explain the lead by Brier."""
    winners = {}
    for name in METRICS:
        found = {method: result[name] for method, result in results.items()}
        winners[name] = min(found, key=found.__getitem__)
    console.print("Winners: " + ", ".join(f"{name} {method}" for name, method in winners.items()) + ".")
    best = winners["Brier"]
    for other in results:
        if other in (best, "uncalibrated"):
            continue
        gap, low, high = brier_difference(predictions[other], predictions[best], part)
        judgement = "more than" if low > 0 else "no more than"
        console.print(
            f"By Brier, {best} leads {other} by {gap:.5f} (95% of resampled days: {low:.5f} to {high:.5f}), "
            f"{judgement} chance would give."
        )
    means = ", ".join(f"{method} {values.mean():.1%}" for method, values in predictions.items())
    console.print(f"Mean prediction: {means}; late: {part.late.mean():.1%}.")
