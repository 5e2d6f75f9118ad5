"""Makes oracle.py and random_rows.py importable from every test file."""

from __future__ import annotations

import sys
from pathlib import Path

# At the end: folders here are named after the packages they test.
sys.path.append(str(Path(__file__).parent))
