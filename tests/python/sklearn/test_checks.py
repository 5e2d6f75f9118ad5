"""scikit-learn's estimator checks, and CalibratedClassifierCV with this estimator inside."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import sklearn.calibration
import sklearn.isotonic
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import check_estimator

from isofold.sklearn import IsotonicRegression


@pytest.mark.filterwarnings("ignore")
def test_check_estimator() -> None:
    for estimator in (IsotonicRegression(), IsotonicRegression(increasing="auto", out_of_bounds="clip")):
        outcomes = check_estimator(estimator)
        assert outcomes
        assert {outcome["status"] for outcome in outcomes} == {"passed"}


class _TwoDimensional:
    """Claims two-dimensional input, or scikit-learn would leave most of its checks out."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = True
        return tags


class Ours(_TwoDimensional, IsotonicRegression):
    pass


class Theirs(_TwoDimensional, sklearn.isotonic.IsotonicRegression):
    pass


def _all_checks(estimator: Any) -> dict[str, set[str]]:
    """Statuses by check."""
    statuses: dict[str, set[str]] = {}
    for outcome in check_estimator(estimator, on_skip=None, on_fail=None):
        statuses.setdefault(outcome["check_name"], set()).add(outcome["status"])
    return statuses


@pytest.mark.filterwarnings("ignore")
def test_every_check_that_scikit_learns_own_estimator_passes() -> None:
    ours, theirs = _all_checks(Ours()), _all_checks(Theirs())
    passed = {name for name, statuses in theirs.items() if statuses == {"passed"}}
    assert len(passed) >= 25
    assert {name: ours[name] for name in passed if ours[name] != {"passed"}} == {}
    # And these, some of which scikit-learn's fails.
    for name in ("check_supervised_y_2d", "check_requires_y_none", "check_estimators_pickle"):
        assert ours[name] == {"passed"}


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("ensemble", [True, False])
@pytest.mark.parametrize(
    "base", [GaussianNB(), LogisticRegression(), RandomForestClassifier(20, random_state=0)]
)
def test_calibrated_classifier(
    monkeypatch: pytest.MonkeyPatch, base: Any, ensemble: bool, classes: int
) -> None:
    x, y = make_classification(1500, n_informative=6, n_classes=classes, random_state=3)
    w = np.random.default_rng(0).uniform(0.5, 2, 1500)

    def probabilities() -> tuple[Any, Any]:
        model = CalibratedClassifierCV(base, method="isotonic", cv=3, ensemble=ensemble)
        model.fit(x[:1000], y[:1000], sample_weight=w[:1000])
        return model.predict_proba(x[1000:]), model

    expected, _ = probabilities()
    monkeypatch.setattr(sklearn.calibration, "IsotonicRegression", IsotonicRegression)
    found, model = probabilities()
    inner = model.calibrated_classifiers_[0].calibrators[0]
    assert type(inner) is IsotonicRegression
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_without_scikit_learn_the_extra_is_named() -> None:
    code = "import sys; sys.modules['sklearn'] = None; import isofold.sklearn"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: isofold.sklearn needs scikit-learn: pip install 'isofold[sklearn]' "
        "(no module 'sklearn.base')"
    )
