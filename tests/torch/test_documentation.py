"""What docs/torch.md tells a new user to type works, and gives what stands beside it."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).parents[2] / "docs" / "torch.md").read_text("utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_values_beside_the_code() -> None:
    found: dict[str, Any] = {}
    exec(PYTHON[0], found)
    shown = re.findall(r"^(\w+) = .*# (\[\[.*\]\])$", PYTHON[0], re.MULTILINE)
    assert [name for name, _ in shown] == ["ranks", "mask"]
    for name, value in shown:
        assert found[name].tolist() == ast.literal_eval(value)


def test_imports() -> None:
    exec(PYTHON[1], {})
