"""Calibrate a real model on real flights: `make demo`, or

    python examples/flights/calibrate_flights.py --out demo/

A logistic regression predicts which flights arrive more than 15 minutes late, from what is known before
departure. Nine in ten of its on-time training flights were thrown away, so that its probabilities are far too
high. Four ways to read them are compared on days that it has never seen; then one isotonic curve with one for
each carrier and each origin; and an audit names the segments in which the one curve is wrong.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from audit_flights import FEATURES, audit_one_curve
from comparison import Part, before_and_after, calibrate_all, measure, print_table, print_verdict
from delay_model import KEPT_ON_TIME, DelayModel, keep_for_training
from diagram import save_diagram
from flight_data import ROWS, Flights, Rows, load_flights, split_by_day, split_by_season
from numpy.typing import NDArray
from rich.console import Console
from segments import compare_segments

from isofold.calibration.report import write_report
from isofold.cli.apply import apply
from isofold.cli.calibrate import calibrate


def score(
    console: Console, flights: Flights, split: tuple[Rows, Rows, Rows]
) -> tuple[NDArray[np.float64], Part, Part]:
    """Train on the first part and score all flights. Returns all scores, then the other two parts."""
    training, calibration, evaluation = split
    kept = keep_for_training(flights.late, training)
    scores = DelayModel(flights, kept).score(flights)
    console.print(
        f"trained on {kept.sum():,} flights, after throwing away {(training & ~kept).sum():,} of "
        f"{(training & ~flights.late).sum():,} on-time ones; late: {share(flights, training)} before that, "
        f"{share(flights, calibration)} of {calibration.sum():,} flights that calibrate, "
        f"{share(flights, evaluation)} of {evaluation.sum():,} that evaluate"
    )
    return scores, part_of(flights, scores, calibration), part_of(flights, scores, evaluation)


def part_of(flights: Flights, scores: NDArray[np.float64], rows: Rows) -> Part:
    return Part(scores[rows], flights.late[rows], flights.day_of_year[rows])


def columns_of(flights: Flights, rows: Rows) -> dict[str, NDArray[Any]]:
    table = flights.table.filter(pa.array(rows))
    return {name: np.asarray(table[name].to_pylist()) for name in FEATURES}


def share(flights: Flights, rows: Rows) -> str:
    return f"{flights.late[rows].mean():.1%}"


def write_scored(path: Path, flights: Flights, rows: Rows, scores: NDArray[np.float64]) -> None:
    table = flights.table.append_column("late", pa.array(flights.late)).append_column(
        "score", pa.array(scores)
    )
    pyarrow.parquet.write_table(table.filter(pa.array(rows)), path)


def run_command_line(console: Console, out: Path, inputs: Path) -> NDArray[np.float64]:
    """Do with the command line what `calibrate_all` does in Python; returns the calibrated column."""
    curve, scored, calibrated = out / "curve.json", inputs / "evaluation.parquet", out / "calibrated.parquet"
    console.print(
        f"\n$ isofold calibrate {inputs}/calibration.parquet --score score --label late --out {curve}"
    )
    calibrate(inputs / "calibration.parquet", score="score", label="late", out=curve)
    console.print(f"\n$ isofold apply {curve} {scored} --label late --out {calibrated}")
    apply(curve, scored, label="late", out=calibrated)
    column: NDArray[np.float64] = pyarrow.parquet.read_table(calibrated)["calibrated"].to_numpy()
    return column


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("demo"), help="folder for results")
    parser.add_argument("--data", type=Path, default=Path("build/demo-data"), help="folder for the download")
    options = parser.parse_args()
    out: Path = options.out
    scored = out / "scored"
    scored.mkdir(parents=True, exist_ok=True)
    console = Console(soft_wrap=True, highlight=False)

    started = time.perf_counter()
    flights = load_flights(options.data)
    console.print(
        f"{ROWS:,} flights from New York in 2013; {flights.dropped:,} without an arrival delay dropped, "
        f"{len(flights):,} left, {flights.late.mean():.1%} of them more than 15 minutes late"
    )

    console.print(
        "\n[bold]Days mixed[/bold]: day of the year modulo 5 is 0, 1, 2: train; 3: calibrate; 4: evaluate"
    )
    split = split_by_day(flights)
    scores, calibration, evaluation = score(console, flights, split)
    write_scored(scored / "calibration.parquet", flights, split[1], scores)
    write_scored(scored / "evaluation.parquet", flights, split[2], scores)
    from_command_line = run_command_line(console, out, scored)

    predictions = calibrate_all(calibration, evaluation.scores)
    if not np.array_equal(predictions["isotonic"], from_command_line):
        raise SystemExit("the command line and the Python interface disagree")
    results = measure(predictions, evaluation.late)
    console.print()
    print_table(console, f"Unseen days, {len(evaluation.late):,} flights", results)
    print_verdict(console, results, predictions, evaluation)

    console.print("\n[bold]Segments[/bold]: the same scores, a curve for each carrier, then for each origin")
    unseen = flights.table.filter(pa.array(split[2]))
    keys = {name: np.array(unseen[name].to_pylist(), dtype=object) for name in ("carrier", "origin")}
    compare_segments(console, out, scored, evaluation, keys, predictions["isotonic"])

    console.print("\n[bold]Audit[/bold]: in which segments the one curve is wrong")
    audited = audit_one_curve(
        console,
        calibration,
        evaluation,
        (columns_of(flights, split[1]), columns_of(flights, split[2])),
        (calibrate_all(calibration, calibration.scores)["isotonic"], predictions["isotonic"]),
        out / "calibrated.parquet",
    )

    console.print(
        "\n[bold]drift[/bold]: January to August train, September and October calibrate, "
        "November and December evaluate"
    )
    split = split_by_season(flights)
    _, autumn, winter = score(console, flights, split)
    drifted = calibrate_all(autumn, winter.scores)
    drifted_results = measure(drifted, winter.late)
    print_table(console, f"drift, {len(winter.late):,} flights", drifted_results)
    print_verdict(console, drifted_results, drifted, winter)
    console.print(
        f"A fitted curve is as good as the months it was fitted to: autumn had {share(flights, split[1])} "
        f"late, winter {share(flights, split[2])}. Platt and isotonic learned from autumn; analytic knows "
        f"only that {KEPT_ON_TIME:.0%} of the on-time flights were kept."
    )

    panels = {
        "days mixed": (evaluation.late, predictions),
        "drift: autumn to winter": (winter.late, drifted),
    }
    save_diagram(out / "reliability.png", panels)
    write_report(
        out / "report.html",
        evaluation.scores,
        evaluation.late,
        predictions["isotonic"],
        segments=unseen.select(["carrier", "origin"]),
        title="Flights from New York: which arrive more than 15 minutes late",
        drift=drifted_results,
        audit=audited,
        notes=[
            "Unseen days. Before: a logistic regression, trained with nine in ten on-time flights thrown "
            "away. After: its scores through the isotonic curve. Drift: autumn's curves on winter's flights.",
        ],
    )
    names = [f"scored/{part}.parquet" for part in ("calibration", "evaluation")]
    names += ["curve.json", "calibrated.parquet"]
    for column in keys:
        names += [f"curves_by_{column}.json", f"calibrated_by_{column}.parquet"]
    names += ["reliability.png", "report.html"]
    console.print("\nwritten: " + ", ".join(f"{out}/{name}" for name in names))
    console.print(before_and_after(results, len(evaluation.late)))
    console.print(f"{time.perf_counter() - started:.0f} seconds")


if __name__ == "__main__":
    main()
