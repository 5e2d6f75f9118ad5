"""The 120 rows of isotonic_cases.json, computed in rational arithmetic elsewhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest

import isofold

_CASES: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data" / "isotonic_cases.json").read_text()
)


def _array(numbers: list[str] | None, dtype: str) -> np.ndarray | None:
    if numbers is None:
        return None
    return np.array([float.fromhex(number) for number in numbers], dtype=np.float64).astype(dtype)


def test_all_rows_are_there() -> None:
    assert len(_CASES) == 120


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case["name"])
def test_case(case: dict[str, Any]) -> None:
    y = _array(case["y"], case["dtype"])
    w = _array(case["w"], case["dtype"])
    expected = _array(case["fit"], case["dtype"])
    assert y is not None
    assert expected is not None
    result = isofold.isotonic_regression(y, weights=w, increasing=case["increasing"])
    assert result.x.dtype == y.dtype
    assert (result.x == expected).all()
    assert result.blocks.tolist() == [*case["block_starts"], len(y)]
    # And the oracle of these tests agrees with whoever made the file.
    solution = oracle.solve(y, w, increasing=case["increasing"])
    assert (solution.fit(case["dtype"]) == expected).all()
    assert solution.starts() == case["block_starts"]
    assert result.weights.tolist() == solution.block_weights()
