"""Memory that a call needs beyond its input and its output.

Each measurement runs in a fresh process: the row is made and one short call loads all code; free heap memory
is given back (malloc_trim); the kernel's mark of the highest resident set is reset (5 written to
/proc/self/clear_refs); then one call. What the mark (VmHWM) has risen by, less the bytes of the result's
fields, is the memory beyond input and output. It is taken when the fit is there, and again when all fields
have been read. Linux with glibc.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from contenders import MAKERS
from families import FAMILIES, Row, make_row


@dataclass(frozen=True)
class Memory:
    """Bytes; `beyond_fit` and `beyond_all` as above; `kept`: what the result holds beyond its fields."""

    input: int
    output: int
    beyond_fit: int
    beyond_all: int
    kept: int

    def fractions(self) -> dict[str, float]:
        """Multiples of the input."""
        return {name: value / self.input for name, value in asdict(self).items() if name != "input"}


def _resident(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status has no {name}")


def _settle() -> int:
    """Give free memory back, put the high-water mark down to the resident set, and return that."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return _resident("VmRSS")


def measure_here(contender: str, family: str, n: int) -> Memory:
    made = MAKERS[contender]()
    row = make_row(family, n)
    # Long enough that the second thread of two starts as well.
    short = 100_000
    made.fields(made.solve(Row(row.values[:short], None if row.weights is None else row.weights[:short])))
    before = _settle()
    result = made.solve(row)
    at_fit = _resident("VmHWM") - before
    answer = made.fields(result)
    at_end = _resident("VmHWM") - before
    after = _settle() - before
    return Memory(
        input=row.nbytes,
        output=answer.nbytes,
        beyond_fit=at_fit - answer.fit.nbytes,
        beyond_all=at_end - answer.nbytes,
        kept=after - answer.nbytes,
    )


def measure(contender: str, family: str, n: int) -> Memory:
    """`measure_here` in a fresh process."""
    command = [sys.executable, __file__, contender, family, str(n)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Memory(**json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description="Print the memory of one call, in bytes, as JSON.")
    parser.add_argument("contender", choices=list(MAKERS))
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("n", type=int)
    options = parser.parse_args()
    print(json.dumps(asdict(measure_here(options.contender, options.family, options.n))))


if __name__ == "__main__":
    main()
