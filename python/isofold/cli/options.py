"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isofold.cli.rows import OnMissing

File = Annotated[
    str, typer.Argument(metavar="FILE", help="Rows: a file, a folder or a pattern.", show_default=False)
]
CurveFile = Annotated[Path, typer.Argument(help="A file that calibrate wrote.", show_default=False)]
Outcomes = Annotated[
    str,
    typer.Option(help="Column of outcomes: 0 or 1 (or true/false), or rates in between.", show_default=False),
]
Weights = Annotated[
    str | None, typer.Option(help="Column of weights; rows of weight 0 are dropped.", show_default=False)
]
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
