"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import isofold
from isofold.calibration.calibrator import DEFAULT_MIN_ROWS
from isofold.cli.apply import apply
from isofold.cli.audit import register as register_audit
from isofold.cli.calibrate import calibrate
from isofold.cli.errors import reported
from isofold.cli.report_command import register as register_report
from isofold.cli.rows import OnMissing

app = typer.Typer(
    name="isofold",
    help=(
        "Calibrate a model's scores by isotonic regression.\n\n"
        "FILE is Parquet (.parquet, .pq), CSV (.csv, UTF-8 with a header) or Arrow (.arrow, .feather, .ipc, "
        ".arrows); a folder of such files (others in it are skipped); or a quoted pattern such as "
        "'day=*/*.parquet'. Many files are read like one, in the order of their names. An output replaces an "
        "existing file of its name, but never an input or the curve file. An error is one line on standard "
        "error and exit code 2, and leaves no half-written file; it counts the rows of a file from 1, a "
        "header not among them."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

File = Annotated[
    str, typer.Argument(metavar="FILE", help="Rows: a file, a folder or a pattern.", show_default=False)
]
CurveFile = Annotated[Path, typer.Argument(help="A file that calibrate wrote.", show_default=False)]
Threads = Annotated[
    int | None,
    typer.Option(
        min=1, help="Threads to use, by default all processors available; changes no bit.", show_default=False
    ),
]
Missing = Annotated[
    OnMissing,
    typer.Option(
        help="What to do about a score, label or weight that is null, NaN or, in CSV, empty, NA or null: "
        "stop, or leave the row out and say how many."
    ),
]
Report = Annotated[
    Path | None,
    typer.Option(
        "--report", help="Also write an HTML report here; replaced if it exists.", show_default=False
    ),
]
Title = Annotated[str | None, typer.Option(help="Title of the report, by default FILE.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
FittedScore = Annotated[
    str | None, typer.Option(help="Column of scores, by default the one of calibrate.", show_default=False)
]
FittedSegments = Annotated[
    list[str] | None,
    typer.Option(
        "--segment",
        help="Segment column, by default those of calibrate; else repeat in its order.",
        show_default=False,
    ),
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
    file: File,
    score: Annotated[str, typer.Option(help="Column of scores: any finite numbers.", show_default=False)],
    out: Annotated[
        Path, typer.Option(help="The curve file to write (JSON); replaced if it exists.", show_default=False)
    ],
    label: Annotated[
        str | None,
        typer.Option(
            help="Column of outcomes: 0 or 1 (or true/false), or rates in between.", show_default=False
        ),
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="Column of weights; rows of weight 0 are dropped.", show_default=False)
    ] = None,
    positives: Annotated[
        str | None,
        typer.Option(
            help="Instead of --label, for aggregated rows: column of positives.", show_default=False
        ),
    ] = None,
    total: Annotated[
        str | None, typer.Option(help="With --positives: column of totals.", show_default=False)
    ] = None,
    segment: Annotated[
        list[str] | None,
        typer.Option(
            "--segment", help="A curve for each value of this column; may be repeated.", show_default=False
        ),
    ] = None,
    min_rows: Annotated[
        int, typer.Option(min=1, help="Segments with fewer rows are served by the global curve.")
    ] = DEFAULT_MIN_ROWS,
    decreasing: Annotated[bool, typer.Option("--decreasing", help="The rate falls as scores rise.")] = False,
    floor: Annotated[float | None, typer.Option(help="Least rate, in [0, 1].", show_default=False)] = None,
    ceiling: Annotated[
        float | None, typer.Option(help="Greatest rate, in [0, 1].", show_default=False)
    ] = None,
    on_missing: Missing = "error",
    html_report: Report = None,
    title: Title = None,
    as_json: Json = False,
    threads: Threads = None,
) -> None:
    """Fit calibration curves and print metrics before and after.

    isofold calibrate scored.parquet --score score --label clicked --segment country --out curves.json
    """
    with reported():
        calibrate(
            file,
            score=score,
            label=label,
            weight=weight,
            positives=positives,
            total=total,
            segments=segment or (),
            min_rows=min_rows,
            out=out,
            increasing=not decreasing,
            floor=floor,
            ceiling=ceiling,
            on_missing=on_missing,
            report=html_report,
            title=title,
            as_json=as_json,
            threads=threads,
        )


@app.command("apply")
def _apply(
    curve: CurveFile,
    file: File,
    out: Annotated[
        Path,
        typer.Option(
            help="Where to write the rows with one column more; replaced if it exists. The ending says the "
            "format; a CSV file can only become a CSV file.",
            show_default=False,
        ),
    ],
    score: FittedScore = None,
    segment: FittedSegments = None,
    column: Annotated[str, typer.Option(help="Name of the new column.")] = "calibrated",
    label: Annotated[
        str | None, typer.Option(help="Column of outcomes, to print metrics too.", show_default=False)
    ] = None,
    weight: Annotated[
        str | None, typer.Option(help="Column of weights for the metrics.", show_default=False)
    ] = None,
    on_missing: Missing = "error",
    html_report: Report = None,
    title: Title = None,
    as_json: Json = False,
    threads: Threads = None,
) -> None:
    """Add a column of calibrated rates to a file, batch by batch.

    Memory does not grow with the file, unless --label asks for metrics (24 bytes a row). With --on-missing
    drop, rows without a score are left out of the output, rows without label or weight only of the metrics.

    isofold apply curves.json today.parquet --out calibrated.parquet
    """
    with reported():
        apply(
            curve,
            file,
            out=out,
            score=score,
            segments=segment or (),
            column=column,
            label=label,
            weight=weight,
            on_missing=on_missing,
            report=html_report,
            title=title,
            as_json=as_json,
            threads=threads,
        )


register_report(app)
register_audit(app)
