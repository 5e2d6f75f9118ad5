"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import isofold
from isofold.cli.apply import apply
from isofold.cli.calibrate import calibrate
from isofold.cli.errors import reported

app = typer.Typer(
    name="isofold",
    help=(
        "Calibrate a model's scores by isotonic regression.\n\n"
        "Files are Parquet (.parquet, .pq), CSV (.csv, UTF-8 with a header) or Arrow (.arrow, .feather, "
        ".ipc, .arrows). An error is one line on standard error and exit code 2, and leaves no half-written "
        "file; it counts rows from 1, a header not among them."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Threads to use; changes no bit.  [default: all processors available]"),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"isofold {isofold.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and leave."
        ),
    ] = False,
) -> None:
    pass


@app.command("calibrate")
def _calibrate(
    file: Annotated[Path, typer.Argument(help="Rows with a score and an outcome.", show_default=False)],
    score: Annotated[str, typer.Option(help="Column of scores: any finite numbers.", show_default=False)],
    label: Annotated[
        str, typer.Option(help="Column of outcomes: 0 or 1, or rates in between.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The curve file to write (JSON).", show_default=False)],
    weight: Annotated[
        str | None, typer.Option(help="Column of weights; rows of weight 0 are dropped.", show_default=False)
    ] = None,
    decreasing: Annotated[bool, typer.Option("--decreasing", help="The rate falls as scores rise.")] = False,
    floor: Annotated[float | None, typer.Option(help="Least rate, in [0, 1].", show_default=False)] = None,
    ceiling: Annotated[
        float | None, typer.Option(help="Greatest rate, in [0, 1].", show_default=False)
    ] = None,
    threads: Threads = None,
) -> None:
    """Fit a calibration curve and print metrics before and after.

    isofold calibrate scored.parquet --score score --label clicked --out curve.json
    """
    with reported():
        calibrate(
            file,
            score=score,
            label=label,
            weight=weight,
            out=out,
            increasing=not decreasing,
            floor=floor,
            ceiling=ceiling,
            threads=threads,
        )


@app.command("apply")
def _apply(
    curve: Annotated[Path, typer.Argument(help="A file that calibrate wrote.", show_default=False)],
    file: Annotated[Path, typer.Argument(help="Rows with a score.", show_default=False)],
    out: Annotated[
        Path, typer.Option(help="Where to write the rows with one column more.", show_default=False)
    ],
    score: Annotated[
        str | None, typer.Option(help="Column of scores.  [default: as in calibrate]", show_default=False)
    ] = None,
    column: Annotated[str, typer.Option(help="Name of the new column.")] = "calibrated",
    label: Annotated[
        str | None, typer.Option(help="Column of outcomes, to print metrics too.", show_default=False)
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="Column of weights for the metrics.", show_default=False)
    ] = None,
    threads: Threads = None,
) -> None:
    """Add a column of calibrated rates to a file, batch by batch.

    isofold apply curve.json today.parquet --out calibrated.parquet
    """
    with reported():
        apply(curve, file, out=out, score=score, column=column, label=label, weight=weight, threads=threads)
