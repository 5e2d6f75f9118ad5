"""The command line: `isofold calibrate` and `isofold apply`.

It needs typer, rich and pyarrow, which `pip install 'isofold[cli]'` brings; nothing else in isofold loads
them.
"""

from __future__ import annotations

import sys

_NEEDED = frozenset({"pyarrow", "rich", "typer"})


def main() -> None:
    """Run the command line. Exits with 0, or 2 after one line on standard error that says what is wrong."""
    try:
        from isofold.cli.app import app
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in _NEEDED:
            raise
        print(
            f"isofold: the command line needs {missing}, which is not installed: pip install 'isofold[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2) from None
    app(prog_name="isofold")
