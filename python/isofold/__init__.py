"""Isotonic regression, calibration, sums and dots of segments: the exact real answer, rounded once.

``import isofold`` loads NumPy and nothing else; ``isofold.sklearn``, ``isofold.compat`` and
``isofold.calibration`` are loaded when first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from isofold._histogram import GradientGrid, Histogram, QuantizedGradients, histogram, quantize_gradients
from isofold._splits import Splits, best_splits
from isofold.conjugate_gradient import CGResult, CGSolver, CGStatus, cg
from isofold.isotonic import IsotonicResult, isotonic_gradient, isotonic_regression
from isofold.segmented import segment_dot, segment_dots, segment_norm, segment_sum

__all__ = [
    "CGResult",
    "CGSolver",
    "CGStatus",
    "GradientGrid",
    "Histogram",
    "IsotonicResult",
    "QuantizedGradients",
    "Splits",
    "__version__",
    "best_splits",
    "cg",
    "histogram",
    "isotonic_gradient",
    "isotonic_regression",
    "quantize_gradients",
    "segment_dot",
    "segment_dots",
    "segment_norm",
    "segment_sum",
]

__version__: str

_SUBMODULES = frozenset({"calibration", "compat", "linear_maps", "sklearn"})


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
