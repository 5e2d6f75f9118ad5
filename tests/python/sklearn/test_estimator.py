"""isofold.sklearn.IsotonicRegression: ties, weights, bounds, dtypes, persistence and scikit-learn's
conventions."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import oracle
import pandas as pd
import pytest
import sklearn
import sklearn.isotonic
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone, is_regressor
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags

from isofold.sklearn import IsotonicRegression, isotonic_regression

X7, Y7 = np.arange(7.0), np.array([3.0, 7, 5, 9, 8, 7, 10])


def _thresholds(x: Any, y: Any, **options: Any) -> tuple[list[float], list[float]]:
    sample_weight = options.pop("sample_weight", None)
    fitted = IsotonicRegression(**options).fit(x, y, sample_weight=sample_weight)
    return fitted.X_thresholds_.tolist(), fitted.y_thresholds_.tolist()


def test_signatures_are_those_of_scikit_learn_and_two_keywords() -> None:
    theirs = inspect.signature(sklearn.isotonic.IsotonicRegression).parameters
    ours = inspect.signature(IsotonicRegression).parameters
    assert list(ours) == [*theirs, "merge_tolerance", "threads"]
    for name, parameter in theirs.items():
        assert (ours[name].default, ours[name].kind) == (parameter.default, parameter.kind)
    for method in ("fit", "predict", "transform", "get_feature_names_out"):
        expected = inspect.signature(getattr(sklearn.isotonic.IsotonicRegression, method)).parameters
        assert list(inspect.signature(getattr(IsotonicRegression, method)).parameters) == list(expected)
    function = inspect.signature(sklearn.isotonic.isotonic_regression).parameters
    assert list(inspect.signature(isotonic_regression).parameters) == [*function, "threads"]


def test_attributes() -> None:
    fitted = IsotonicRegression(y_min=4).fit(X7[::-1], Y7[::-1])
    assert (fitted.X_min_, fitted.X_max_) == (0, 6)
    assert fitted.X_thresholds_.tolist() == [0, 1, 2, 3, 5, 6]
    assert fitted.y_thresholds_.tolist() == [4, 6, 6, 8, 8, 10]
    assert fitted.increasing_ is True
    assert fitted.f_(np.array([0.5, 4.0, 9.0]))[:2].tolist() == [5, 8]
    assert np.isnan(fitted.f_([9.0])).all()
    assert fitted.f_(3).shape == ()
    assert fitted.get_feature_names_out().tolist() == ["isotonicregression0"]


@st.composite
def _samples(draw: st.DrawFn) -> tuple[list[float], list[float], list[float]]:
    size = draw(st.integers(1, 15))
    scores = st.sampled_from([0.0, -0.0, 0.1, 0.25, 0.5, 1e-7, 5e-7, 1e300, 5e-324])
    labels = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(-10, 10))
    weights = st.one_of(st.sampled_from([0.0, 1.0, 2.0]), st.floats(1e-3, 10))
    x = draw(st.lists(scores, min_size=size, max_size=size))
    y = draw(st.lists(labels, min_size=size, max_size=size))
    w = draw(st.lists(weights, min_size=size, max_size=size).filter(any))
    return x, y, w


@given(_samples(), st.booleans(), st.booleans())
def test_equal_scores_are_pooled_exactly(
    samples: tuple[list[float], list[float], list[float]], increasing: bool, weighted: bool
) -> None:
    x, y, w = (np.array(part) for part in samples)
    if not weighted:
        w = np.ones_like(w)
    fitted = IsotonicRegression(increasing=increasing).fit(x, y, sample_weight=w if weighted else None)
    kept = np.flatnonzero(w)
    order = kept[np.argsort(x[kept], kind="stable")]
    scores, cuts = np.unique(x[order], return_index=True)
    solution = oracle.solve(
        y[order], w[order], increasing=increasing, tie_offsets=[*cuts.tolist(), order.size]
    )
    at_scores = solution.fit("float64")[cuts]
    assert oracle.same_bits(fitted.predict(scores), at_scores)
    assert fitted.X_min_ == scores[0]
    assert fitted.X_max_ == scores[-1]
    # Thresholds are the scores without the inner ones of flat stretches.
    inner = np.zeros(scores.size, dtype=bool)
    inner[1:-1] = (at_scores[1:-1] == at_scores[:-2]) & (at_scores[1:-1] == at_scores[2:])
    assert_array_equal(fitted.X_thresholds_, scores[~inner])
    assert_array_equal(fitted.y_thresholds_, at_scores[~inner])


@given(_samples(), st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_samples_never_matters(
    samples: tuple[list[float], list[float], list[float]], increasing: bool, random: Any
) -> None:
    rows = list(zip(*samples, strict=True))
    x, y, w = (np.array(part) for part in samples)
    expected = IsotonicRegression(increasing=increasing).fit(x, y, sample_weight=w)
    random.shuffle(rows)
    x, y, w = (np.array(part) for part in zip(*rows, strict=True))
    found = IsotonicRegression(increasing=increasing).fit(x, y, sample_weight=w)
    assert_array_equal(found.X_thresholds_, expected.X_thresholds_)
    assert oracle.same_bits(found.y_thresholds_, expected.y_thresholds_)


@given(_samples())
def test_a_zero_weight_is_removal_and_a_whole_one_repetition(
    samples: tuple[list[float], list[float], list[float]],
) -> None:
    x, y, w = (np.array(part) for part in samples)
    counts = np.ceil(w).astype(int)
    weighted = IsotonicRegression().fit(x, y, sample_weight=counts)
    repeated = IsotonicRegression().fit(np.repeat(x, counts), np.repeat(y, counts))
    assert_array_equal(weighted.X_thresholds_, repeated.X_thresholds_)
    assert oracle.same_bits(weighted.y_thresholds_, repeated.y_thresholds_)


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=1, max_size=20),
    st.floats(-1, 1),
    st.sampled_from([np.float32, np.float64]),
)
def test_predictions_are_monotone_over_neighbouring_floats(
    samples: list[tuple[float, float]], start: float, dtype: type
) -> None:
    x, y = (np.array(part, dtype=dtype) for part in zip(*samples, strict=True))
    fitted = IsotonicRegression(out_of_bounds="clip").fit(x, y)
    for around in (dtype(start), *fitted.X_thresholds_[:4]):
        points = [np.nextafter(around, dtype(-9))]
        while len(points) < 20:
            points.append(np.nextafter(points[-1], dtype(9)))
        predicted = fitted.predict(np.array(points, dtype=dtype))
        assert predicted.dtype == dtype
        assert (predicted[1:] >= predicted[:-1]).all()


def test_merge_tolerance_chains_from_the_first_of_a_group() -> None:
    x, y = [0.0, 0.5, 1.0, 1.5, 5.0], [0.0, 1.0, 2.0, 3.0, 4.0]
    assert _thresholds(x, y, merge_tolerance=0.75) == (x, [0.5, 0.5, 2.5, 2.5, 4.0])
    # "Closer than": 0.5 itself is not.
    assert _thresholds(x, y, merge_tolerance=0.5) == (x, y)
    assert _thresholds(x, y, merge_tolerance=np.nextafter(0.5, 1))[1] == [0.5, 0.5, 2.5, 2.5, 4]
    # The float 1.2 is a hair closer to 0.8 than 0.4.
    assert _thresholds([0.0, 0.4, 0.8, 1.2], y[:4], merge_tolerance=0.4)[1] == [0, 1, 2.5, 2.5]
    assert _thresholds(x, y, merge_tolerance=10) == ([0.0, 5.0], [2.0, 2.0])
    fitted = IsotonicRegression(merge_tolerance=0.75).fit(x, y)
    assert fitted.predict([0.0, 0.2, 0.5, 1.25]).tolist() == [0.5, 0.5, 0.5, 2.5]


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12),
    st.floats(0, allow_infinity=False, exclude_min=True),
)
def test_merge_tolerance_compares_exact_distances(scores: list[float], tolerance: float) -> None:
    from isofold._ties import tie_groups

    ordered = sorted(scores)
    expected, first = [0], 0
    for i, score in enumerate(ordered):
        if oracle.Fraction(score) - oracle.Fraction(ordered[first]) >= oracle.Fraction(tolerance):
            expected.append(i)
            first = i
    assert tie_groups(np.array(ordered), tolerance).tolist() == [*expected, len(ordered)]


@pytest.mark.parametrize("value", [-1e-9, np.nan, np.inf, "0.1", None])
def test_bad_merge_tolerance(value: Any) -> None:
    with pytest.raises(ValueError, match="merge_tolerance must be a finite number of at least 0"):
        IsotonicRegression(merge_tolerance=value).fit(X7, Y7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"increasing": "up"}, "increasing must be True, False or 'auto', not 'up'"),
        ({"increasing": None}, "increasing must be True, False or 'auto'"),
        (
            {"out_of_bounds": "extrapolate"},
            "out_of_bounds must be 'nan', 'clip' or 'raise', not 'extrapolate'",
        ),
        ({"y_min": 2, "y_max": 1}, "no value lies between y_min = 2 and y_max = 1"),
        ({"y_min": np.nan}, "y_min is not a number"),
        ({"threads": 0}, "threads must be at least 1"),
    ],
)
def test_bad_parameters(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        IsotonicRegression(**options).fit(X7, Y7)


def test_bad_samples() -> None:
    estimator = IsotonicRegression()
    with pytest.raises(ValueError, match="Input X contains NaN"):
        estimator.fit([0.0, np.nan], [0.0, 1.0])
    with pytest.raises(ValueError, match="Input y contains infinity"):
        estimator.fit([0.0, 1.0], [0.0, np.inf])
    with pytest.raises(ValueError, match="Input sample_weight contains NaN"):
        estimator.fit([0.0, 1.0], [0.0, 1.0], [1.0, np.nan])
    with pytest.raises(ValueError, match=r"sample_weight must not be negative, but is -0.5 at position 1"):
        estimator.fit([0.0, 1.0], [0.0, 1.0], [1.0, -0.5])
    with pytest.raises(ValueError, match="sample_weight is zero for every sample"):
        estimator.fit([0.0, 1.0], [0.0, 1.0], [0.0, 0.0])
    with pytest.raises(ValueError, match=r"sample_weight has shape \(2, 1\), expected \(2,\)"):
        estimator.fit([0.0, 1.0], [0.0, 1.0], [[1.0], [1.0]])
    with pytest.raises(ValueError, match="minimum of 1 is required"):
        estimator.fit([], [])
    with pytest.raises(ValueError, match="requires y to be passed"):
        estimator.fit([0.0], None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="Input contains NaN"):
        estimator.fit([0.0], [1.0]).predict([np.nan])
    with pytest.warns(DataConversionWarning):
        estimator.fit([0.0, 1.0], [[0.0], [1.0]])


def test_not_fitted() -> None:
    for method in ("predict", "transform"):
        with pytest.raises(NotFittedError):
            getattr(IsotonicRegression(), method)([1.0])
    with pytest.raises(NotFittedError):
        IsotonicRegression().get_feature_names_out()


@pytest.mark.parametrize("out_of_bounds", ["nan", "clip", "raise"])
def test_out_of_bounds(out_of_bounds: Any) -> None:
    fitted = IsotonicRegression(out_of_bounds=out_of_bounds).fit(X7, Y7)
    assert fitted.predict([0.0, 6.0]).tolist() == [3, 10]
    if out_of_bounds == "raise":
        with pytest.raises(
            ValueError, match=r"A value \(-1.0\) in x_new is below the interpolation range's minimum"
        ):
            fitted.predict([3.0, -1.0])
        with pytest.raises(
            ValueError, match=r"A value \(6.5\) in x_new is above the interpolation range's maximum"
        ):
            fitted.predict([6.5])
    elif out_of_bounds == "clip":
        assert fitted.predict([-1.0, 3.0, 6.5]).tolist() == [3, 8, 10]
    else:
        assert np.isnan(fitted.predict([-1.0, 3.0, 6.5])).tolist() == [True, False, True]


@pytest.mark.parametrize("x_dtype", ["float16", "float32", "float64", "int64", "bool"])
@pytest.mark.parametrize("y_dtype", ["float16", "float32", "float64", "int64", "bool"])
def test_dtypes(x_dtype: str, y_dtype: str) -> None:
    expected = "float32" if x_dtype == "float32" else "float64"
    x, y = np.array([0, 1], dtype=x_dtype), np.array([1, 0], dtype=y_dtype)
    fitted = IsotonicRegression().fit(x, y)
    assert fitted.X_thresholds_.dtype == fitted.y_thresholds_.dtype == expected
    assert fitted.predict(x).dtype == fitted.transform(x).dtype == expected
    assert fitted.predict(x).tolist() == [0.5, 0.5]


def test_labels_and_weights_are_not_rounded_to_the_dtype_of_the_scores() -> None:
    x = np.array([0, 0], dtype=np.float32)
    y, w = np.array([1 + 2**-25, 1 + 3 * 2**-25]), np.array([2**24 + 1.0, 2.0**24])
    fitted = IsotonicRegression().fit(x, y, sample_weight=w)
    solution = oracle.solve(y, w, tie_offsets=[0, 2])
    assert fitted.y_thresholds_.tolist() == solution.fit("float32")[:1].tolist()


def test_y_bounds_clip_and_keep_knots_apart() -> None:
    x, y = _thresholds(np.arange(6.0), np.arange(6.0), y_min=2, y_max=4)
    assert x == [0, 2, 3, 4, 5]
    assert y == [2, 2, 3, 4, 4]


def test_inputs_are_never_mutated() -> None:
    x, y, w = X7[::-1].copy(), Y7.copy(), np.array([1.0, 0, 1, 2, 1, 0, 1])
    before = [array.copy() for array in (x, y, w)]
    for array in (x, y, w):
        array.flags.writeable = False
    fitted = IsotonicRegression(increasing="auto").fit(x, y, sample_weight=w)
    fitted.predict(x)
    for array, old in zip((x, y, w), before, strict=True):
        assert oracle.same_bits(array, old)
    assert not np.shares_memory(fitted.X_thresholds_, x)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("out_of_bounds", ["nan", "clip", "raise"])
def test_pickle_and_clone(out_of_bounds: Any, dtype: str) -> None:
    fitted = IsotonicRegression(out_of_bounds=out_of_bounds, merge_tolerance=1e-9, threads=2)
    fitted.fit(X7.astype(dtype), Y7)
    twin = pickle.loads(pickle.dumps(fitted))
    points = np.linspace(0, 6, 50).astype(dtype)
    assert oracle.same_bits(twin.predict(points), fitted.predict(points))
    assert twin.get_params() == fitted.get_params()
    unfitted = clone(fitted)
    assert unfitted.get_params() == fitted.get_params()
    with pytest.raises(NotFittedError):
        unfitted.predict(points)
    if out_of_bounds == "raise":
        with pytest.raises(ValueError, match="below"):
            twin.predict([-1])


@pytest.mark.parametrize("container", ["pandas", "default"])
def test_set_output(container: str) -> None:
    fitted = IsotonicRegression().set_output(transform=container).fit(X7, Y7)
    transformed, predicted = fitted.transform(X7), fitted.predict(X7)
    assert isinstance(predicted, np.ndarray)
    if container == "pandas":
        assert isinstance(transformed, pd.DataFrame)
        assert transformed.columns.tolist() == ["isotonicregression0"]
        transformed = transformed["isotonicregression0"].to_numpy()
    assert_array_equal(transformed, predicted)


def test_data_frames() -> None:
    frame = pd.DataFrame({"score": X7}, index=list("abcdefg"))
    fitted = IsotonicRegression().fit(frame, pd.Series(Y7, index=frame.index))
    assert_array_equal(fitted.predict(frame), IsotonicRegression().fit(X7, Y7).predict(X7))
    with pytest.raises(ValueError, match="should be a 1d array or 2d array with 1 feature"):
        fitted.predict(frame.assign(other=1.0))


def test_sample_weight_is_routed() -> None:
    w = np.array([1.0, 2, 3, 1, 1, 5, 1])
    expected = IsotonicRegression().fit(X7, Y7, sample_weight=w).predict(X7)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = make_pipeline(IsotonicRegression().set_fit_request(sample_weight=True))
        assert_array_equal(routed.fit(X7, Y7, sample_weight=w).predict(X7), expected)
        refused = make_pipeline(IsotonicRegression())
        with pytest.raises(ValueError, match="sample_weight"):
            refused.fit(X7, Y7, sample_weight=w)
        requests = IsotonicRegression().get_metadata_routing()
        theirs = sklearn.isotonic.IsotonicRegression().get_metadata_routing()
        assert str(requests) == str(theirs)


def test_tags_and_score() -> None:
    estimator = IsotonicRegression()
    assert is_regressor(estimator)
    ours, theirs = get_tags(estimator), get_tags(sklearn.isotonic.IsotonicRegression())
    assert ours == theirs
    assert estimator.fit(X7, X7).score(X7, X7) == 1


def test_increasing_auto() -> None:
    up, down = IsotonicRegression(increasing="auto"), IsotonicRegression(increasing="auto")
    assert up.fit(X7, Y7).increasing_ is True
    assert down.fit(X7, -Y7).increasing_ is False
    # The direction is that of the samples that count.
    x, y = np.arange(8.0), np.array([1.0, 2, 3, 4, 90, 80, 70, 60])
    w = np.array([1.0, 1, 1, 1, 0, 0, 0, 0])
    assert IsotonicRegression(increasing="auto").fit(x, -y, sample_weight=1 - w).increasing_ is True
    with pytest.warns(UserWarning, match="Confidence interval"):
        IsotonicRegression(increasing="auto").fit(np.arange(6.0), [0, -1, 2, -3, 4, -5])


@pytest.mark.parametrize(
    ("x", "y"), [([1.0, 2, 3], [5.0, 5, 5]), ([1.0, 1, 1], [1.0, 2, 3]), ([1.0], [2.0]), ([1.0, 2], [3.0, 3])]
)
@pytest.mark.filterwarnings("error")
def test_auto_without_a_correlation_is_increasing(x: list[float], y: list[float]) -> None:
    assert IsotonicRegression(increasing="auto").fit(x, y).increasing_ is True


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("increasing", [True, False])
def test_agrees_with_scikit_learn_to_rounding(increasing: bool, weighted: bool, dtype: str) -> None:
    rng = np.random.default_rng(12)
    x, y = rng.random(3000).round(2).astype(dtype), rng.random(3000).astype(dtype)
    w = rng.uniform(0, 2, 3000) if weighted else None
    ours = IsotonicRegression(increasing=increasing, out_of_bounds="clip").fit(x, y, sample_weight=w)
    theirs = sklearn.isotonic.IsotonicRegression(increasing=increasing, out_of_bounds="clip")
    theirs.fit(x, y, sample_weight=w)
    points = np.linspace(-0.1, 1.1, 500).astype(dtype)
    tolerance = 1e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(ours.predict(points), theirs.predict(points), rtol=tolerance)


class TestFunction:
    def test_dtypes_and_values(self) -> None:
        for dtype in ("float32", "float64", "int32"):
            x = isotonic_regression(np.array([3, 1, 2], dtype=dtype), sample_weight=[1, 2, 1])
            assert x.dtype == ("float32" if dtype == "float32" else "float64")
            assert (
                x.tolist()
                == oracle.solve(np.array([3.0, 1, 2]), np.array([1.0, 2, 1])).fit(x.dtype.name).tolist()
            )

    def test_bounds_and_direction(self) -> None:
        assert isotonic_regression([3, 1, 2], increasing=False, y_min=1.6, y_max=2).tolist() == [2, 1.6, 1.6]

    @pytest.mark.parametrize(
        ("y", "w", "message"),
        [
            ([1.0, np.nan], None, "Input y contains NaN"),
            ([[1.0, 2.0]], None, "y must be a 1d array"),
            ([1.0, 2.0], [1.0, 0.0], "sample_weight must be finite and greater than zero, but is 0.0"),
            ([1.0, 2.0], [1.0, -1.0], "sample_weight must be finite and greater than zero, but is -1.0"),
            ([1.0, 2.0], [1.0], r"sample_weight has shape \(1,\)"),
        ],
    )
    def test_errors(self, y: Any, w: Any, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            isotonic_regression(y, sample_weight=w)
