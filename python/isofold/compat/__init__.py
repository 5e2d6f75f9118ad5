"""Functions with other packages' names, arguments and results: ``isofold.compat.scipy``, ``.torchsort``,
``.torchisotonic`` and ``.warp``."""

from __future__ import annotations

import importlib
from typing import Any

_SUBMODULES = frozenset({"scipy", "torchisotonic", "torchsort", "warp"})


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"isofold.compat.{name}")
    raise AttributeError(f"module 'isofold.compat' has no attribute {name!r}")
