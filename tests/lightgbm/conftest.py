"""Makes the helpers of tests/python importable; skips all of this where LightGBM is not installed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("lightgbm")
for folder in (
    Path(__file__).parent.parent / "python",
    Path(__file__).parent,
    Path(__file__).parents[2] / "examples" / "trees",
):
    sys.path.append(str(folder))
