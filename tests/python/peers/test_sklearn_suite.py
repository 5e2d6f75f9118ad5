"""scikit-learn's own tests of isotonic regression, from the installed wheel, with isofold swapped in.

All of them must pass. None of them pins the pooling of nearly equal scores on the estimator: in
test_isotonic_make_unique_tolerance 1 + 1e-16 is 1 in float64. The two that do, test_make_unique_dtype and
test_make_unique_tolerance, call scikit-learn's private _make_unique, which has no counterpart here and stays
scikit-learn's; their expectations are put to isofold's estimator below, by way of merge_tolerance.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_array_equal

import isofold.sklearn


def _load_suite() -> ModuleType:
    path = Path(sklearn.__file__).parent / "tests" / "test_isotonic.py"
    spec = importlib.util.spec_from_file_location("sklearn_isotonic_suite", path)
    assert spec is not None
    assert spec.loader is not None
    suite = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(suite)
    for name in ("IsotonicRegression", "check_increasing", "isotonic_regression"):
        assert hasattr(suite, name)
        setattr(suite, name, getattr(isofold.sklearn, name))
    return suite


_suite = _load_suite()
_tests = {name: test for name, test in vars(_suite).items() if name.startswith("test_")}
globals().update(_tests)


def test_suite_is_the_real_one() -> None:
    assert len(_tests) >= 38
    assert (
        _tests["test_isotonic_thresholds"].__globals__["IsotonicRegression"]
        is isofold.sklearn.IsotonicRegression
    )


@pytest.mark.parametrize(
    ("dtype", "expected"), [(np.float64, [0, 1, 1 + 1e-14]), (np.float32, [0, 1])], ids=["float64", "float32"]
)
def test_pooling_of_nearly_equal_scores_is_merge_tolerance(dtype: type, expected: list[float]) -> None:
    scores = np.array([0, 1e-16, 1, 1 + 1e-14], dtype=dtype)
    values = np.array([0, 1, 2, 3], dtype=dtype)
    tolerance = float(np.finfo(dtype).resolution)
    merged = isofold.sklearn.IsotonicRegression(merge_tolerance=tolerance).fit(scores, values)
    # A group keeps a knot at either end, so that all its scores share its value: scikit-learn's are the first
    # ones.
    first = np.concatenate(([True], np.diff(merged.y_thresholds_) != 0))
    assert_array_equal(merged.X_thresholds_[first], np.array(expected, dtype=dtype))

    exact = isofold.sklearn.IsotonicRegression().fit(scores, values)
    assert_array_equal(exact.X_thresholds_, np.unique(scores))
