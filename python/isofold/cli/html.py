"""Where the commands meet the HTML report, which needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from isofold.calibration import Audit
from isofold.calibration._segment_keys import KeyColumn
from isofold.cli.columns import Floats
from isofold.cli.errors import CommandError, faults_of_file


class ReportWriter:
    """Writes the report to a path. Raises CommandError on construction if no report can be made here."""

    def __init__(self, path: Path) -> None:
        try:
            import matplotlib  # noqa: F401 - said before the long work, not after it

            from isofold.calibration.report import write_report
        except ModuleNotFoundError as error:
            raise CommandError(
                f"the report needs {error.name}, which is not installed: pip install 'isofold[report]'"
            ) from error
        self._path, self._write_report = path, write_report

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
        audit: Audit | None = None,
    ) -> None:
        """The report on rows with outcomes. Raises CommandError."""
        with faults_of_file(self._path, "cannot be written"):
            self._write_report(
                self._path,
                scores,
                labels,
                rates,
                sample_weight=weights,
                segments=keys,
                served_by=served_by,
                title=title,
                notes=notes,
                audit=audit,
            )
