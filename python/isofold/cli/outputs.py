"""Where results may go: settled before any row is read, so that no work is lost and no input is destroyed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from isofold.cli.errors import CommandError
from isofold.cli.inputs import files_of
from isofold.cli.sources import SUFFIXES, suffix_of

_DATA_SUFFIXES = frozenset({*SUFFIXES, ".tsv", ".tab", ".gz", ".zip", ".zst", ".orc", ".xlsx", ".xls"})


@dataclass(frozen=True)
class Output:
    """A file to be written, and the option that names it."""

    path: Path
    option: str
    kind: Literal["rows", "curve", "report"]


def _same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two names lead to one file, through links or not; the file need not exist."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _check_place(output: Output) -> None:
    folder, fault = output.path.parent, None
    if not folder.exists():
        fault = f"the folder {folder} does not exist"
    elif not folder.is_dir():
        fault = f"{folder} is not a folder"
    elif output.path.is_dir():
        fault = "it is a folder; name a file in it"
    elif output.path.exists() and not output.path.is_file():
        fault = f"{output.path} exists and is not a regular file"
    elif not os.access(folder, os.W_OK):
        fault = f"the folder {folder} may not be written to"
    if fault is not None:
        raise CommandError(f"{output.path}: cannot be written: {fault}")


def _check_name(output: Output) -> None:
    """A curve or a report under the name of a table is a slip, and may cost the table."""
    suffix = suffix_of(output.path)
    if output.kind != "rows" and suffix in _DATA_SUFFIXES:
        wanted = {"curve": "a curve file; name it .json", "report": "an HTML page; name it .html"}
        fault = f"{output.option} is {wanted[output.kind]}, not {suffix}"
        raise CommandError(f"{output.path}: {fault}")


def check_outputs(outputs: Sequence[Output], path: str | os.PathLike[str], curve: Path | None = None) -> None:
    """Refuse an output that would replace an input, the curve file or another output, or has no place.

    Raises CommandError.
    """
    given = os.fspath(path)
    files = files_of(path)
    for position, output in enumerate(outputs):
        for other in outputs[:position]:
            if _same_file(output.path, other.path):
                raise CommandError(f"{output.path}: {other.option} and {output.option} name the same file")
        if curve is not None and _same_file(output.path, curve):
            raise CommandError(f"{output.path}: {output.option} would replace the curve file; name another")
        if any(_same_file(output.path, file) for file in files):
            raise CommandError(f"{output.path}: {output.option} would replace the input; name another file")
        if output.kind == "rows" and os.path.isdir(given) and _same_file(output.path.parent, given):
            fault = f"{output.option} lies in the folder that is read, and would be read next time"
            raise CommandError(f"{output.path}: {fault}; name another folder")
        _check_name(output)
        _check_place(output)
