"""What importing loads: NumPy, until something else is asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pyarrow", "typer", "rich", "sklearn", "scipy", "matplotlib", "pandas")


@pytest.mark.parametrize("module", ["isofold", "isofold.calibration", "isofold.cli"])
def test_importing_loads_no_optional_dependency(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
