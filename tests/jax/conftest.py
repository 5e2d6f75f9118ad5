"""64-bit types for all tests that do not turn them off, two devices, and the exact oracle of tests/python."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=2"

import jax

sys.path += [str(Path(__file__).parent), str(Path(__file__).parent.parent / "python")]

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


@pytest.fixture
def without_x64() -> Iterator[None]:
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", True)
