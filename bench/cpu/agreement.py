"""No wrong answer is timed: fits agree with SciPy's, and isofold's with itself on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from contenders import Answer, Contender
from families import Row

TOLERANCE = 1e-9


def difference(answer: Answer, reference: Answer) -> float:
    """The largest difference of fitted values, relative to the reference's."""
    gap = np.abs(answer.fit - reference.fit)
    size = np.maximum(np.abs(reference.fit), np.finfo(np.float64).tiny)
    return float(np.max(gap / size, initial=0.0))


def check(contenders: list[Contender], row: Row) -> dict[str, Any]:
    """Difference from SciPy and number of blocks, by contender; raises SystemExit where one is wrong."""
    answers = {contender.name: contender.fields(contender.solve(row)) for contender in contenders}
    reference = answers["SciPy"]
    differences = {name: difference(answer, reference) for name, answer in answers.items()}
    for name, gap in differences.items():
        if not gap <= TOLERANCE:
            raise SystemExit(f"{name} differs from SciPy by {gap:g} of the fitted value: nothing timed")
    ours = [answer for name, answer in answers.items() if name.startswith("isofold")]
    for answer in ours[1:]:
        for field in ("fit", "blocks", "weights"):
            if not np.array_equal(getattr(answer, field), getattr(ours[0], field)):
                raise SystemExit(f"isofold's {field} depends on the number of threads: nothing timed")
    blocks = {name: len(a.blocks) - 1 for name, a in answers.items() if a.blocks is not None}
    return {"relative_difference": differences, "blocks": blocks}
