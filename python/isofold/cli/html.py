"""Where the commands meet the HTML report, which needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from isofold.calibration._segment_keys import KeyColumn
from isofold.cli.columns import Floats
from isofold.cli.errors import CommandError, faults_of_file


class Writer(Protocol):
    """Writes the report on rows with outcomes. Raises CommandError."""

    def __call__(
        self,
        scores: Floats,
        labels: Floats,
        rates: Floats,
        weights: Floats | None,
        keys: Sequence[KeyColumn] | None,
        *,
        title: str,
        notes: Sequence[str] = (),
        served_by: KeyColumn | None = None,
    ) -> None: ...


def report_writer(path: Path) -> Writer:
    """A function that writes the report to `path`. Raises CommandError now if the report cannot be made."""
    try:
        import matplotlib  # noqa: F401 - said before the long work, not after it

        from isofold.calibration.report import write_report
    except ModuleNotFoundError as error:
        raise CommandError(
            f"the report needs {error.name}, which is not installed: pip install 'isofold[report]'"
        ) from error

    def write(
        scores: Floats,
        labels: Floats,
        rates: Floats,
        weights: Floats | None,
        keys: Sequence[KeyColumn] | None,
        *,
        title: str,
        notes: Sequence[str] = (),
        served_by: KeyColumn | None = None,
    ) -> None:
        with faults_of_file(path, "cannot be written"):
            write_report(
                path,
                scores,
                labels,
                rates,
                sample_weight=weights,
                segments=keys,
                served_by=served_by,
                title=title,
                notes=notes,
            )

    return write
