"""Isotonic regression and calibration: the exact real answer, rounded once.

``import isofold`` loads NumPy and nothing else; ``isofold.sklearn``, ``isofold.compat`` and
``isofold.calibration`` are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from isofold._histogram import GradientGrid, Histogram, QuantizedGradients, histogram, quantize_gradients
from isofold._splits import Splits, best_splits
from isofold.isotonic import IsotonicResult, isotonic_gradient, isotonic_regression

__all__ = [
    "GradientGrid",
    "Histogram",
    "IsotonicResult",
    "QuantizedGradients",
    "Splits",
    "__version__",
    "best_splits",
    "histogram",
    "isotonic_gradient",
    "isotonic_regression",
    "quantize_gradients",
]

__version__: str

_SUBMODULES = frozenset({"calibration", "compat", "sklearn"})


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        globals()["__version__"] = version("isofold")
        return globals()["__version__"]
    if name in _SUBMODULES:
        return importlib.import_module(f"isofold.{name}")
    raise AttributeError(f"module 'isofold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
