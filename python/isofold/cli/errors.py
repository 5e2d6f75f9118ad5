"""What a command reports instead of a traceback."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

import pyarrow as pa
import typer


class CommandError(Exception):
    """One line for the user: file, then column and row where there are any, then the fault."""


class _Terminated(BaseException):
    """Raised by the handler of SIGTERM and SIGHUP, so that unfinished files are removed on the way out."""


def first_line(error: BaseException) -> str:
    """What pyarrow or the system say, without the lines that only a developer needs."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".:") if lines else type(error).__name__


@contextlib.contextmanager
def faults_of_file(path: str | os.PathLike[str], doing: str) -> Iterator[None]:
    """Turn what pyarrow and the system raise inside the block into a CommandError about `path`."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise CommandError(f"{os.fspath(path)}: {doing}: a column's name is not UTF-8") from error
    except (OSError, pa.ArrowException) as error:
        raise CommandError(f"{os.fspath(path)}: {doing}: {first_line(error)}") from error


def _terminate(signal_number: int, frame: FrameType | None) -> NoReturn:
    raise _Terminated(signal_number)


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Run a command: errors become one line on standard error and exit code 2, signals 128 + their number."""
    caught = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, _terminate) for number in caught}
    try:
        yield
    except CommandError as error:
        _complain(str(error))
        raise typer.Exit(2) from None
    except MemoryError:
        _complain("out of memory")
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        _complain("interrupted")
        raise typer.Exit(128 + signal.SIGINT) from None
    except _Terminated as error:
        _complain("terminated")
        raise typer.Exit(128 + int(error.args[0])) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def warn(message: str) -> None:
    """Say on standard error what need not stop the command."""
    _complain(f"warning: {message}")


def _complain(message: str) -> None:
    print(f"isofold: {' '.join(message.splitlines())}", file=sys.stderr)
