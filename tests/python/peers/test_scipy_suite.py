"""SciPy's own tests of isotonic regression, from the installed wheel, with isofold.compat.scipy swapped in.

All of them pass; test_simple_pava tests SciPy's private kernel and stays SciPy's. (SciPy 1.12 refused a
scalar y with a scalar weight, which later versions take as rows of one: of its tests that one case fails.)
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import scipy.optimize

import isofold.compat.scipy


def _load_suite() -> ModuleType:
    path = Path(scipy.optimize.__file__).parent / "tests" / "test_isotonic_regression.py"
    spec = importlib.util.spec_from_file_location("scipy_isotonic_suite", path)
    assert spec is not None
    assert spec.loader is not None
    suite = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suite)
    assert suite.isotonic_regression is scipy.optimize.isotonic_regression
    suite.isotonic_regression = isofold.compat.scipy.isotonic_regression
    return suite


_suite = _load_suite()
TestIsotonicRegression = _suite.TestIsotonicRegression


def test_suite_is_the_real_one() -> None:
    tests = [name for name in vars(TestIsotonicRegression) if name.startswith("test_")]
    assert len(tests) >= 8
    swapped = TestIsotonicRegression.test_weights.__globals__["isotonic_regression"]
    assert swapped is isofold.compat.scipy.isotonic_regression
