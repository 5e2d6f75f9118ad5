"""Makes the modules of bench/gpu importable from the tests beside."""

from __future__ import annotations

import sys
from pathlib import Path

# At the end: they are programs' parts with everyday names.
sys.path.append(str(Path(__file__).resolve().parents[2] / "bench" / "gpu"))
