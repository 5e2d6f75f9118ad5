"""Exact histograms and best splits of tensors: on a CPU, and on CUDA with the same bits.

On CUDA everything is enqueued on the current stream and nothing waits for the device. What cannot be seen
from the host is not reported, unless ``validate=True`` asks for it and waits: gradients that are not finite
or beyond a given grid and hessians that are negative count as zero and set the grid's fault, with which there
are no splits; bins, nodes and rows out of range are left out and set the histogram's fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isofold import _native
from isofold._histogram import MOST_ROWS, GradientGrid, QuantizedGradients, count_of
from isofold._histogram import histogram as array_histogram
from isofold._histogram import quantize_gradients as quantize_array
from isofold._splits import RECORD, feature_rules, split_rules, top_count
from isofold._splits import best_splits as array_splits
from isofold.torch._tree_tensors import (
    QuantizedTensors,
    TensorHistogram,
    TensorSplits,
    as_bytes,
    as_floats,
    as_integers,
    as_tensor,
    beside,
    capsule,
    check_categories,
    check_fault,
    current_stream,
    placed,
)

__all__ = [
    "QuantizedTensors",
    "TensorHistogram",
    "TensorSplits",
    "best_splits",
    "histogram",
    "quantize_gradients",
]


def quantize_gradients(
    gradients: Tensor,
    hessians: Tensor | None = None,
    *,
    grid: Tensor | None = None,
    validate: bool = False,
) -> QuantizedTensors:
    """As `isofold.quantize_gradients`. `grid`: of another result, int32 of length 3."""
    gradients = as_floats(gradients, "gradients")
    hessians = None if hessians is None else beside(as_floats(hessians, "hessians"), gradients, "hessians")
    if hessians is not None and hessians.shape != gradients.shape:
        raise ValueError(
            f"hessians has shape {tuple(hessians.shape)}, but gradients has {tuple(gradients.shape)}"
        )
    if grid is not None:
        grid = beside(as_tensor(grid, "grid"), gradients, "grid").to(torch.int32).contiguous()
        if grid.shape != (3,):
            raise ValueError(f"grid must hold two exponents and a fault, not {tuple(grid.shape)}")
    if not gradients.is_cuda:
        given = None if grid is None else GradientGrid(*grid.tolist()[:2])
        found = quantize_array(gradients.numpy(), None if hessians is None else hessians.numpy(), grid=given)
        return QuantizedTensors(
            torch.from_numpy(found.values), torch.tensor([*found.grid, 0], dtype=torch.int32)
        )
    with torch.cuda.device(gradients.device):
        stream = current_stream(gradients)
        values = torch.empty((len(gradients), 2), dtype=torch.int32, device=gradients.device)
        chosen = torch.empty(3, dtype=torch.int32, device=gradients.device)
        _native.device_quantize_gradients(
            gradients.get_device(),
            gradients.__dlpack__(stream=stream),
            capsule(hessians, stream),
            None if grid is None else as_bytes(grid).__dlpack__(stream=stream),
            as_bytes(values).__dlpack__(stream=stream),
            as_bytes(chosen).__dlpack__(stream=stream),
            stream,
        )
    if validate:
        check_fault(chosen)
    return QuantizedTensors(values, chosen)


def histogram(
    bins: Tensor,
    gradients: Tensor | QuantizedTensors,
    hessians: Tensor | None = None,
    node_ids: Tensor | None = None,
    *,
    nodes: int | None = None,
    rows: Tensor | None = None,
    bin_count: int | None = None,
    grid: Tensor | None = None,
    validate: bool = False,
    threads: int | None = None,
) -> TensorHistogram:
    """As `isofold.histogram`. On CUDA, `bin_count` is by default all that the dtype of `bins` holds: 256, or
    65,536; and `nodes` has to be given with `node_ids`."""
    bins = as_tensor(bins, "bins")
    if bins.dtype not in (torch.uint8, torch.uint16):
        raise TypeError(f"bins must be uint8 or uint16, not {bins.dtype}")
    if bins.dim() != 2:
        raise ValueError(f"bins must have shape (rows, features), not {tuple(bins.shape)}")
    if isinstance(gradients, QuantizedTensors):
        if hessians is not None or grid is not None:
            raise TypeError("hessians and grid are part of quantised gradients already")
        quantized = gradients
    else:
        quantized = quantize_gradients(gradients, hessians, grid=grid, validate=validate)
    beside(quantized.values, bins, "gradients")
    if len(quantized.values) != len(bins):
        raise ValueError(f"gradients has {len(quantized.values)} rows, but bins has {len(bins)}")
    ids = None if node_ids is None else beside(as_integers(node_ids, "node_ids"), bins, "node_ids")
    subset = None if rows is None else beside(as_integers(rows, "rows"), bins, "rows")
    if ids is not None and len(ids) != len(bins):
        raise ValueError(f"node_ids has {len(ids)} entries, but bins has {len(bins)} rows")
    if not bins.is_cuda:
        units = quantized.grid.tolist()
        built = array_histogram(
            bins.numpy(),
            QuantizedGradients(quantized.values.numpy(), GradientGrid(*units[:2])),
            None,
            None if ids is None else ids.numpy(),
            nodes=nodes,
            rows=None if subset is None else subset.numpy(),
            bin_count=bin_count,
            threads=threads,
        )
        return TensorHistogram(
            torch.from_numpy(built.gradients),
            torch.from_numpy(built.hessians),
            torch.from_numpy(built.counts),
            quantized.grid,
            torch.zeros(1, dtype=torch.int32),
        )
    if ids is not None and nodes is None:
        raise ValueError("nodes must be given with node_ids on CUDA: to find out would be to wait")
    most = 256 if bins.dtype == torch.uint8 else 65536
    shape = (
        count_of(1 if nodes is None else nodes, "nodes", MOST_ROWS),
        int(bins.shape[1]),
        count_of(most if bin_count is None else bin_count, "bin_count", most),
    )
    device = bins.device
    with torch.cuda.device(device):
        stream = current_stream(bins)
        found = TensorHistogram(
            torch.empty(shape, dtype=torch.int64, device=device),
            torch.empty(shape, dtype=torch.int64, device=device),
            torch.empty(shape, dtype=torch.int32, device=device),
            quantized.grid,
            torch.zeros(1, dtype=torch.int32, device=device),
        )
        _native.device_histogram(
            bins.get_device(),
            bins.__dlpack__(stream=stream),
            as_bytes(quantized.values.contiguous()).__dlpack__(stream=stream),
            shape[2],
            capsule(None if ids is None else ids.to(torch.int32).contiguous(), stream),
            shape[0],
            capsule(None if subset is None else subset.to(torch.int64).contiguous(), stream),
            found.gradients.reshape(-1).__dlpack__(stream=stream),
            found.hessians.reshape(-1).__dlpack__(stream=stream),
            found.counts.reshape(-1).__dlpack__(stream=stream),
            found.fault.__dlpack__(stream=stream),
            stream,
        )
    if validate:
        check_fault(found.grid, found.fault)
    return found


def best_splits(
    histogram: TensorHistogram,
    *,
    bin_counts: Sequence[int] | None = None,
    missing: Any = None,
    categorical: Any = None,
    monotone: Any = None,
    feature_mask: Any = None,
    lambda_l1: float = 0.0,
    lambda_l2: float = 0.0,
    min_data_in_leaf: int = 20,
    min_sum_hessian_in_leaf: float = 1e-3,
    min_gain_to_split: float = 0.0,
    max_delta_step: float = 0.0,
    path_smooth: float = 0.0,
    parent_outputs: Any = None,
    output_bounds: Any = None,
    max_cat_to_onehot: int = 4,
    max_cat_threshold: int = 32,
    min_data_per_group: int = 100,
    cat_smooth: float = 10.0,
    cat_l2: float = 10.0,
    ties: str = "lowest",
    top_k: int | None = None,
    extra_trees_seed: int | None = None,
    node_numbers: Any = None,
) -> TensorSplits:
    """As `isofold.best_splits`. Arguments of features are read on the host; those of nodes may be tensors."""
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
    check_categories(of_features)
    device = histogram.counts.device
    mask = placed(feature_mask, "feature_mask", torch.bool, device, [(features,), (nodes, features)])
    outputs = placed(parent_outputs, "parent_outputs", torch.float64, device, [(nodes,)])
    bounds = placed(output_bounds, "output_bounds", torch.float64, device, [(nodes, 2)])
    numbers = placed(node_numbers, "node_numbers", torch.int64, device, [(nodes,)])
    shape = (nodes,) if top_k is None else (nodes, count)
    if not histogram.counts.is_cuda:
        plain: dict[str, Any] = {
            name: value for name, value in rules.items() if name not in ("extra_trees", "extra_seed")
        }
        found = array_splits(
            histogram.numpy(),
            bin_counts=bin_counts,
            missing=missing,
            categorical=categorical,
            monotone=monotone,
            feature_mask=None if mask is None else mask.numpy(),
            parent_outputs=None if outputs is None else outputs.numpy(),
            output_bounds=None if bounds is None else bounds.numpy(),
            node_numbers=None if numbers is None else numbers.numpy(),
            top_k=top_k,
            extra_trees_seed=extra_trees_seed,
            **plain,
        )
        flat = np.ascontiguousarray(found.records).view(np.uint8).reshape(*shape, RECORD.itemsize)
        words = None
        if found.categories is not None:
            words = torch.from_numpy(np.packbits(found.categories, axis=-1, bitorder="little"))
        return TensorSplits(torch.from_numpy(flat), words, bins)
    with torch.cuda.device(device):
        stream = current_stream(histogram.counts)
        if mask is not None:
            mask = mask.expand(nodes, features).contiguous().view(torch.uint8)
        records = torch.empty((*shape, RECORD.itemsize), dtype=torch.uint8, device=device)
        words = None
        if of_features["categorical"].any():
            size = 4 * ((bins + 31) // 32)
            words = torch.empty((*shape, size), dtype=torch.uint8, device=device)
        packed = torch.from_numpy(of_features.view(np.uint8)).to(device)
        _native.device_best_splits(
            histogram.counts.get_device(),
            histogram.gradients.contiguous().reshape(-1).__dlpack__(stream=stream),
            histogram.hessians.contiguous().reshape(-1).__dlpack__(stream=stream),
            histogram.counts.contiguous().reshape(-1).__dlpack__(stream=stream),
            as_bytes(histogram.grid).__dlpack__(stream=stream),
            nodes,
            features,
            bins,
            packed.__dlpack__(stream=stream) if features else None,
            capsule(mask, stream),
            capsule(outputs, stream),
            capsule(bounds, stream),
            capsule(numbers, stream),
            rules,
            count,
            as_bytes(records).__dlpack__(stream=stream),
            None if words is None else as_bytes(words).__dlpack__(stream=stream),
            stream,
        )
    return TensorSplits(records, words, bins)
