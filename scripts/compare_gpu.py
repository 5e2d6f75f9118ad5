"""Compares the CUDA executor's times with those of another program, cell by cell.

    python scripts/compare_gpu.py FIGURES.json OUTPUT.txt [OUTPUT.txt ...] [--most 1.5] [--markdown FILE]

FIGURES.json is what time_gpu --json wrote. The other program is the prototype in which the GPU algorithm was
first tried; it is no part of this repository. OUTPUT.txt is what its runs `b`, `7`, `7s`, `t` and
`8 FAMILY ...` printed, in one file or several. Times of the same GPU in the same session, please: only ratios
of one sitting mean anything.

Its time of a cell is `total` (median of whole calls on a stream), or the time on a SHORT line, whichever is
less. Both programs say beside it how long a copy on the device took. Exit status 1 if a cell is missing from
FIGURES.json or takes more than --most times the prototype's time.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

# The prototype's families under their names in tests/cuda/shapes.cpp, all float32 without weights.
SHAPES = {
    "noise": "noise",
    "lab": "labels_straight",
    "dec": "decreasing",
    "const": "constant",
    "inc": "consecutive_small",
    "ulp": "consecutive",
    "mid": "steep_noise",
    "saw": "sawtooth1e5",
    "saw5": "sawtooth5003",
    "cliff": "cliff",
    "half": "rising_then_noise",
}
NUMBER = r"([0-9.]+)"
LONG_LINE = re.compile(rf"^(\w+)\s+n\s+(\d+)\s+R\s+(\d+)\s.*\btotal {NUMBER}\b.*\bcopy {NUMBER}\b")
SHORT_LINE = re.compile(rf"^SHORT (\w+)\s+n\s+(\d+)\s+R\s+(\d+)\s.*\| {NUMBER} ms copy {NUMBER}")


@dataclass(frozen=True)
class Cell:
    shape: str
    rows: int
    length: int


@dataclass(frozen=True)
class Time:
    ms: float
    copy_ms: float

    @property
    def copies(self) -> float:
        return self.ms / self.copy_ms


def prototype_times(text: str) -> dict[Cell, Time]:
    """The least time of each cell. A family without a counterpart is an error."""
    times: dict[Cell, Time] = {}
    for line in text.splitlines():
        match = SHORT_LINE.match(line) or LONG_LINE.match(line)
        if match is None:
            continue
        family, length, rows, ms, copy_ms = match.groups()
        if family not in SHAPES:
            raise SystemExit(f"no shape is known for the prototype's family {family}")
        cell = Cell(SHAPES[family], int(rows), int(length))
        time = Time(float(ms), float(copy_ms))
        if cell not in times or time.ms < times[cell].ms:
            times[cell] = time
    return times


def isofold_times(figures: dict[str, object]) -> dict[Cell, Time]:
    times = {}
    cells = figures["cells"]
    assert isinstance(cells, list)
    for cell in cells:
        if "call" in cell or cell.get("ragged") or cell["weighted"] or cell["dtype"] != "float32":
            continue
        key = Cell(cell["shape"], cell["rows"], cell["length"])
        times[key] = Time(cell["ms"][1], cell["copy_ms"][1])
    return times


def size(cell: Cell) -> str:
    return f"{cell.rows:,} x {cell.length:,}"


Row = tuple[str, ...]
HEAD: Row = ("shape", "rows x length", "ms", "copies", "prototype ms", "its copies", "ratio", "")


def table(ours: dict[Cell, Time], theirs: dict[Cell, Time], most: float) -> tuple[list[Row], int, int]:
    """The table's rows, and how many cells are too slow and how many missing."""
    rows: list[Row] = []
    slow = missing = 0
    for cell in sorted(theirs, key=lambda c: (c.rows, -c.length, c.shape)):
        other = theirs[cell]
        ends = (f"{other.ms:.4f}", f"{other.copies:.2f}")
        if cell not in ours:
            missing += 1
            rows.append((cell.shape, size(cell), "-", "-", *ends, "-", "missing"))
            continue
        time = ours[cell]
        ratio = time.ms / other.ms
        slow += ratio > most
        mark = "above" if ratio > most else ""
        values = (f"{time.ms:.4f}", f"{time.copies:.2f}", *ends, f"{ratio:.2f}", mark)
        rows.append((cell.shape, size(cell), *values))
    return rows, slow, missing


def as_text(rows: list[Row]) -> str:
    widths = [max(len(row[i]) for row in [HEAD, *rows]) for i in range(len(HEAD))]
    lines = []
    for row in [HEAD, *rows]:
        parts = [
            part.ljust(width) if i in (0, 7) else part.rjust(width)
            for i, (part, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def as_markdown(rows: list[Row], summary: str, figures: dict[str, object]) -> str:
    lines = [
        f"{figures.get('device', 'unknown device')}, commit {figures.get('commit', 'unknown')}. {summary}",
        "",
        "| " + " | ".join(HEAD) + " |",
        "|---|---|" + "---:|" * 5 + "---|",
        *("| " + " | ".join(row) + " |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("figures", type=Path, help="what time_gpu --json wrote")
    parser.add_argument("output", type=Path, nargs="+", help="what the prototype printed")
    parser.add_argument("--most", type=float, default=1.5, help="the largest ratio asked for")
    parser.add_argument("--markdown", type=Path, help="write the table here too")
    options = parser.parse_args()
    figures = json.loads(options.figures.read_text())
    theirs = prototype_times("\n".join(path.read_text() for path in options.output))
    if not theirs:
        raise SystemExit("no times found in the prototype's output")
    rows, slow, missing = table(isofold_times(figures), theirs, options.most)
    summary = (
        f"{len(rows)} cells: {len(rows) - slow - missing} within {options.most:g} times the prototype, "
        f"{slow} above, {missing} missing."
    )
    print(as_text(rows))
    print(summary)
    if options.markdown:
        options.markdown.write_text(as_markdown(rows, summary, figures))
    sys.exit(1 if slow or missing else 0)


if __name__ == "__main__":
    main()
