"""The result: immutable, picklable, comparable, and its own master."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import oracle
import pytest

import isofold


def _result(**options: object) -> isofold.IsotonicResult:
    y = np.array([[3.0, 1.0, 2.0, 5.0], [1.0, 1.0, 0.0, 0.5]])
    return isofold.isotonic_regression(y, **options)  # type: ignore[arg-type]


def test_fields_of_one_row_are_those_of_scipy() -> None:
    result = isofold.isotonic_regression([3.0, 1.0, 2.0, 5.0], weights=[1, 2, 3, 4])
    assert result.x.tolist() == [5 / 3, 5 / 3, 2.0, 5.0]
    assert result.weights.tolist() == [3, 3, 4]
    assert result.blocks.tolist() == [0, 2, 3, 4]
    assert result.block_offsets.tolist() == [0, 3]
    assert result.weights.dtype == np.float64
    assert result.blocks.dtype == result.block_offsets.dtype == np.int64


def test_blocks_of_a_batch_are_flat() -> None:
    result = _result()
    assert result.x.tolist() == [[2, 2, 2, 5], [0.625] * 4]
    assert result.blocks.tolist() == [0, 3, 4, 8]
    assert result.block_offsets.tolist() == [0, 2, 3]
    assert result.weights.tolist() == [3, 1, 4]


def test_blocks_along_another_axis_count_through_the_moved_axis() -> None:
    y = np.array([[2.0, 0.0], [1.0, 1.0]])
    result = isofold.isotonic_regression(y, axis=0)
    flat = np.moveaxis(result.x, 0, -1).ravel()
    assert result.blocks.tolist() == [0, 2, 3, 4]
    for start, end in zip(result.blocks[:-1], result.blocks[1:], strict=True):
        assert len(set(flat[start:end])) == 1


def test_immutable() -> None:
    result = _result()
    for name in ("x", "weights", "blocks", "block_offsets", "anything"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(result, name, None)
    with pytest.raises(AttributeError, match="immutable"):
        del result.x
    assert not hasattr(result, "__dict__")


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 1.0, 0.25]])
@pytest.mark.parametrize("looked_at", [False, True])
def test_pickle_and_copy(weights: list[float] | None, looked_at: bool) -> None:
    result = _result(weights=weights, axis=-1)
    grad = np.arange(8.0).reshape(2, 4)
    expected = isofold.isotonic_gradient(_result(weights=weights), grad)
    if looked_at:
        _ = result.weights, result.blocks, result.block_offsets
    for twin in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
        assert twin == result
        found = isofold.isotonic_gradient(twin, grad)
        assert oracle.same_bits(found[0], expected[0])
        if weights is not None:
            assert found[1] is not None
            assert expected[1] is not None
            assert oracle.same_bits(found[1], expected[1])


def test_equality() -> None:
    assert _result() == _result()
    assert _result() != _result(increasing=False)
    assert _result() != _result(weights=2.0)
    assert _result() != "result"
    single = isofold.isotonic_regression([1.0, 2.0])
    assert single != isofold.isotonic_regression(np.array([1, 2], dtype=np.float32))
    # Equal fits, other blocks: 1 + 2**-53 rounds to 1.
    near = isofold.isotonic_regression([1.0, 1.0, 1 + 2**-52, 1.0])
    assert near.x.tolist() == [1.0, 1.0, 1.0, 1.0]
    assert near != isofold.isotonic_regression([1.0, 1.0, 1.0, 1.0])
    with pytest.raises(TypeError, match="unhashable"):
        hash(single)


def test_repr_shows_the_fields() -> None:
    text = repr(isofold.isotonic_regression([2.0, 1.0]))
    assert text == (
        "IsotonicResult(x=array([1.5, 1.5]), weights=array([2.]), blocks=array([0, 2]), "
        "block_offsets=array([0, 1]))"
    )


def test_weights_do_not_follow_later_changes_of_the_input() -> None:
    y, w = np.array([2.0, 1.0, 3.0]), np.array([1.0, 2.0, 4.0])
    result = isofold.isotonic_regression(y, weights=w)
    y[:] = 9
    w[:] = 9
    assert result.weights.tolist() == [3, 4]
    assert result.x.tolist() == [4 / 3, 4 / 3, 3]
    assert result.blocks.tolist() == [0, 2, 3]


def test_block_mask_is_set_where_blocks_start() -> None:
    y = np.random.default_rng(1).standard_normal((3, 50, 2))
    result = isofold.isotonic_regression(y, axis=1)
    mask = result.block_mask
    assert mask.dtype == np.bool_
    assert mask.shape == y.shape
    assert np.flatnonzero(np.moveaxis(mask, 1, -1)).tolist() == result.blocks[:-1].tolist()
    with pytest.raises(ValueError, match="read-only"):
        mask[0, 0, 0] = False
