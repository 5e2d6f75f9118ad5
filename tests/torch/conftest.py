"""Makes tests/python/oracle.py importable, and the helpers of this folder."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "python"):
    sys.path.append(str(folder))
