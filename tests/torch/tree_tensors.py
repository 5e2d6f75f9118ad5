"""Random tree problems on tensors of a device, and the checks that hold on every one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from random_trees import TreeProblem, random_problem

import isofold
import isofold.torch.trees as trees


def arrays(problem: TreeProblem) -> tuple[isofold.Histogram, isofold.Splits]:
    histogram = isofold.histogram(
        problem.bins,
        problem.gradients,
        problem.hessians,
        problem.node_ids,
        nodes=problem.nodes,
        bin_count=problem.bin_count,
    )
    return histogram, isofold.best_splits(histogram, **arguments(problem))


def arguments(problem: TreeProblem) -> dict[str, Any]:
    return {
        **problem.features,
        **problem.rules,
        "parent_outputs": problem.parent_outputs,
        "output_bounds": problem.output_bounds,
        "top_k": problem.top_k,
    }


def tensors(problem: TreeProblem, device: str) -> trees.TensorHistogram:
    def placed(array: np.ndarray | None) -> torch.Tensor | None:
        return None if array is None else torch.from_numpy(array).to(device)

    return trees.histogram(
        placed(problem.bins),
        placed(problem.gradients),
        placed(problem.hessians),
        placed(problem.node_ids),
        nodes=problem.nodes,
        bin_count=problem.bin_count,
        validate=True,
    )


def check_bits(seeds: range, device: str) -> None:
    for seed in seeds:
        problem = random_problem(seed, most_rows=800)
        expected, splits = arrays(problem)
        found = tensors(problem, device)
        assert found.numpy() == expected, seed
        searched = trees.best_splits(found, **arguments(problem))
        assert searched.numpy().tobytes() == splits.tobytes(), seed
        assert searched.feature.shape == splits.feature.shape
        for name in ("gain", "left_gradient", "bin", "plateau", "default_left", "kind"):
            assert np.array_equal(getattr(searched, name).cpu().numpy(), getattr(splits, name)), (seed, name)
        rest = found - found
        assert rest.select([0]).numpy().counts.sum() == 0


def check_bad_input(device: str) -> None:
    bins = torch.zeros((3, 1), dtype=torch.uint8, device=device)
    ones = torch.ones(3, device=device)
    for gradients, hessians in (
        (torch.tensor([1.0, float("nan"), 1.0], device=device), None),
        (ones, torch.tensor([1.0, -1.0, 1.0], device=device)),
    ):
        with pytest.raises(ValueError, match=r"finite|negative"):
            trees.quantize_gradients(gradients, hessians, validate=True)
    with pytest.raises(TypeError, match="bins must be uint8 or uint16"):
        trees.histogram(bins.to(torch.int64), ones)
    with pytest.raises(ValueError, match="gradients has 2 rows, but bins has 3"):
        trees.histogram(bins, ones[:2])
    with pytest.raises(ValueError, match=r"out of range|bins: row 0"):
        trees.histogram(bins + 5, ones, bin_count=3, validate=True)
    with pytest.raises(ValueError, match="feature_mask has shape"):
        trees.best_splits(trees.histogram(bins, ones), feature_mask=[True, False])
