"""Makes oracle.py and random_rows.py importable from every test file, and sets hypothesis up."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

# At the end: folders here are named after the packages they test.
sys.path.append(str(Path(__file__).parent))

# A busy machine makes no test fail, and a CI run can be repeated.
settings.register_profile(
    "isofold",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize="CI" in os.environ,
    database=None if "CI" in os.environ else settings.default.database,
)
settings.load_profile("isofold")
