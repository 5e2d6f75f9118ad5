"""The best splits of histograms: gains by one sequence of operations, winners by a total order."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isofold import _native
from isofold._arrays import flat, thread_count
from isofold._histogram import Histogram

__all__ = ["Splits", "TiePolicy", "best_splits"]

MOST_CATEGORIES = 1024  # bins of a categorical feature

TiePolicy: TypeAlias = Literal["lowest", "highest", "middle", "lightgbm"]

RECORD = np.dtype(
    [
        ("gain", np.float64),
        ("margin", np.float64),
        ("left_output", np.float64),
        ("right_output", np.float64),
        ("left_gradient", np.int64),
        ("left_hessian", np.int64),
        ("left_count", np.int32),
        ("feature", np.int32),
        ("bin", np.int32),
        ("plateau", np.int32, 2),
        ("default_left", np.bool_),
        ("kind", np.int8),
        ("from_above", np.bool_),
        ("unused", np.int8),
    ]
)
_FEATURE = np.dtype(
    [
        ("bins", np.int32),
        ("categorical", np.uint8),
        ("missing", np.uint8),
        ("monotone", np.int8),
        ("", np.int8),
    ]
)


class Splits:
    """What `best_splits` returns. Arrays have the shape (nodes,), or (nodes, top_k) where top_k was given.

    Attributes
    ----------
    feature : int32
        -1 where there is no split; the other fields then mean nothing.
    bin : int32
        Rows in bins up to this one go left. One-hot: the category that goes left. Subsets: see `categories`.
    default_left : bool
        Whether rows in the feature's bin of missing values go left.
    gain : float64
        Of both sides, less the node's own and `min_gain_to_split`.
    plateau : int32, of shape (..., 2)
        The first and last of the neighbouring bins around `bin` whose gain is the same to the bit.
    margin : float64
        How much less the best other candidate gains: one of the same feature outside of the plateau, or of a
        feature ranked after it. Infinite where there is none.
    left_output, right_output : float64
        The values of the two leaves.
    left_gradient, left_hessian, left_count : int64, int64, int32
        The left side's sums in the grid's units; the right side is the node less these.
    kind : int8
        0: a threshold, 1: one category against the rest, 2: a subset of categories.
    categories : bool, of shape (..., bins), or None
        For categorical splits, which bins go left; None where no feature is categorical.
    """

    def __init__(self, records: NDArray[Any], categories: NDArray[np.bool_] | None) -> None:
        self._records = records
        self.categories = categories

    def __getattr__(self, name: str) -> Any:
        records = self.__dict__.get("_records")
        if records is None or name not in (RECORD.names or ()) or name == "unused":
            raise AttributeError(f"'Splits' object has no attribute {name!r}")
        return records[name]

    @property
    def records(self) -> NDArray[Any]:
        """All fields as one structured array."""
        return self._records

    def __len__(self) -> int:
        return len(self._records)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *(RECORD.names or ())} - {"unused"})

    def tobytes(self) -> bytes:
        """All of it, for comparisons to the bit."""
        return self._records.tobytes() + (b"" if self.categories is None else self.categories.tobytes())

    def __repr__(self) -> str:
        return f"Splits({np.count_nonzero(self.feature >= 0)} of {self.feature.size})"


def best_splits(
    histogram: Histogram,
    *,
    bin_counts: ArrayLike | None = None,
    missing: ArrayLike | None = None,
    categorical: ArrayLike | None = None,
    monotone: ArrayLike | None = None,
    feature_mask: ArrayLike | None = None,
    lambda_l1: float = 0.0,
    lambda_l2: float = 0.0,
    min_data_in_leaf: int = 20,
    min_sum_hessian_in_leaf: float = 1e-3,
    min_gain_to_split: float = 0.0,
    max_delta_step: float = 0.0,
    path_smooth: float = 0.0,
    parent_outputs: ArrayLike | None = None,
    output_bounds: ArrayLike | None = None,
    max_cat_to_onehot: int = 4,
    max_cat_threshold: int = 32,
    min_data_per_group: int = 100,
    cat_smooth: float = 10.0,
    cat_l2: float = 10.0,
    ties: TiePolicy = "lowest",
    top_k: int | None = None,
    extra_trees_seed: int | None = None,
    node_numbers: ArrayLike | None = None,
    threads: int | None = None,
) -> Splits:
    """The best split of each node.

    Parameters are LightGBM's, as far as they bear its names, with its defaults.

    Parameters
    ----------
    bin_counts : integer array_like of shape (features,), optional
        The bins in use of each feature, the one of missing values included. Default: all.
    missing : boolean array_like, optional
        Features whose last bin in use holds missing values. Both directions are tried, if a row of the node
        misses the feature; if none does, missing values go left.
    categorical : boolean array_like, optional
        Features whose bins have no order.
    monotone : integer array_like, optional
        1 where outputs must not fall as the feature rises, -1 where they must not rise.
    feature_mask : boolean array_like of shape (features,) or (nodes, features), optional
        The features that may be used.
    parent_outputs : array_like of shape (nodes,), optional
        The value that each node has now, towards which `path_smooth` draws its children's.
    output_bounds : array_like of shape (nodes, 2), optional
        The children's values are kept within these.
    ties : {"lowest", "highest", "middle", "lightgbm"}
        Which bin is taken of a feature's bins with the same gain. "middle": of the plateau of the lowest.
        "lightgbm": as its CPU learner, with its kEpsilon, too. Features tie to the lowest.
    top_k : int, optional
        The best splits of the k best features, best first.
    extra_trees_seed : int, optional
        Extremely randomised trees: one candidate for each node and feature, drawn by this seed, the node's
        number (`node_numbers`, by default its position) and the feature.
    """
    if not isinstance(histogram, Histogram):
        raise TypeError(f"histogram must be an isofold.Histogram, not {type(histogram).__name__}")
    nodes, features, bins = histogram.shape
    rules = split_rules(
        lambda_l1=lambda_l1,
        lambda_l2=lambda_l2,
        min_data_in_leaf=min_data_in_leaf,
        min_sum_hessian_in_leaf=min_sum_hessian_in_leaf,
        min_gain_to_split=min_gain_to_split,
        max_delta_step=max_delta_step,
        path_smooth=path_smooth,
        max_cat_to_onehot=max_cat_to_onehot,
        max_cat_threshold=max_cat_threshold,
        min_data_per_group=min_data_per_group,
        cat_smooth=cat_smooth,
        cat_l2=cat_l2,
        ties=ties,
        extra_trees_seed=extra_trees_seed,
    )
    count = top_count(top_k)
    of_features = feature_rules(features, bins, bin_counts, missing, categorical, monotone)
    records, words = _native.best_splits(
        flat(histogram.gradients),
        flat(histogram.hessians),
        flat(histogram.counts),
        tuple(histogram.grid),
        nodes,
        features,
        bins,
        flat(of_features.view(np.uint8)),
        mask_of(feature_mask, nodes, features),
        doubles(parent_outputs, "parent_outputs", (nodes,)),
        doubles(output_bounds, "output_bounds", (nodes, 2)),
        numbers_of(node_numbers, nodes),
        rules,
        count,
        bool(of_features["categorical"].any()),
        thread_count(threads),
    )
    shape = (nodes,) if top_k is None else (nodes, count)
    categories = None
    if words is not None:
        bits = np.unpackbits(words.reshape(*shape, -1), axis=-1, bitorder="little")
        categories = bits[..., :bins].astype(np.bool_)
    return Splits(records.view(RECORD).reshape(shape), categories)


def split_rules(*, ties: str, extra_trees_seed: int | None, **parameters: Any) -> dict[str, Any]:
    """The rules as the native module takes them."""
    integers = {"min_data_in_leaf", "max_cat_to_onehot", "max_cat_threshold", "min_data_per_group"}
    rules: dict[str, Any] = {
        name: _integer(value, name) if name in integers else _real(value, name)
        for name, value in parameters.items()
    }
    rules["ties"] = _tie_policy(ties)
    rules["extra_trees"] = extra_trees_seed is not None
    rules["extra_seed"] = 0 if extra_trees_seed is None else int(extra_trees_seed) & (2**64 - 1)
    return rules


def top_count(top_k: int | None) -> int:
    if top_k is None:
        return 1
    if _integer(top_k, "top_k") < 1:
        raise ValueError(f"top_k must be at least 1, or None for one split without that axis, not {top_k}")
    return int(top_k)


def feature_rules(
    features: int, bins: int, bin_counts: Any, missing: Any, categorical: Any, monotone: Any
) -> NDArray[Any]:
    """Records as the native module takes them."""
    rules = np.zeros(features, _FEATURE)
    rules["bins"] = bins
    for name, value, field, lowest, highest in (
        ("bin_counts", bin_counts, "bins", 0, bins),
        ("missing", missing, "missing", 0, 1),
        ("categorical", categorical, "categorical", 0, 1),
        ("monotone", monotone, "monotone", -1, 1),
    ):
        if value is None:
            continue
        array = np.asarray(value)
        if array.dtype.kind not in "biu" and array.size:
            kind = "booleans" if (lowest, highest) == (0, 1) else "integers"
            raise TypeError(f"{name} must hold {kind}, not {array.dtype}")
        if array.shape not in ((), (features,)):
            raise ValueError(f"{name} has shape {array.shape}, but there are {features} features")
        wrong = np.flatnonzero((np.atleast_1d(array) < lowest) | (np.atleast_1d(array) > highest))
        if wrong.size:
            found = np.atleast_1d(array)[wrong[0]]
            raise ValueError(f"{name}[{wrong[0]}] is {found}, which is not from {lowest} to {highest}")
        rules[field] = array
    return rules


def mask_of(value: Any, nodes: int, features: int) -> NDArray[np.uint8] | None:
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype != np.bool_:
        raise TypeError(f"feature_mask must hold booleans, not {array.dtype}")
    if array.shape not in ((features,), (nodes, features)):
        raise ValueError(
            f"feature_mask has shape {array.shape}, neither {(features,)} nor {(nodes, features)}"
        )
    return flat(np.ascontiguousarray(np.broadcast_to(array, (nodes, features))).view(np.uint8))


def doubles(value: Any, name: str, shape: tuple[int, ...]) -> NDArray[np.float64] | None:
    if value is None:
        return None
    array = np.asarray(value, dtype=np.float64)
    if array.shape != shape:
        raise ValueError(f"{name} has shape {array.shape}, not {shape}")
    wrong = np.flatnonzero(np.isnan(array))
    if wrong.size:
        raise ValueError(f"{name} is not a number at position {wrong[0]}")
    return flat(array)


def numbers_of(value: Any, nodes: int) -> NDArray[np.int64] | None:
    if value is None:
        return None
    array = np.asarray(value)
    if array.dtype.kind not in "iu" or array.shape != (nodes,):
        raise ValueError(f"node_numbers must be {nodes} integers, not {array.dtype} of shape {array.shape}")
    return flat(array.astype(np.int64))


def _real(value: float, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, not {value!r}") from None
    if not 0 <= number < np.inf:
        raise ValueError(f"{name} must be finite and not negative, not {value}")
    return number


def _integer(value: int, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if not 0 <= value < 2**31:
        raise ValueError(f"{name} must be from 0 to 2**31 - 1, not {value}")
    return int(value)


def _tie_policy(value: str) -> str:
    if value not in ("lowest", "highest", "middle", "lightgbm"):
        raise ValueError(f"ties must be lowest, highest, middle or lightgbm, not {value!r}")
    return value
