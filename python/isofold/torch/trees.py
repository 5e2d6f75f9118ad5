"""Exact histograms and best splits of tensors: on a CPU, and on CUDA with the same bits.

On CUDA everything is enqueued on the current stream and nothing waits for the device. What cannot be seen
from the host is not reported, unless ``validate=True`` asks for it and waits: gradients that are not finite
or beyond a given grid and hessians that are negative count as zero and set the grid's fault, with which there
are no splits; bins, nodes and rows out of range are left out and set the histogram's fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from isofold import _native
from isofold._histogram import MOST_ROWS, GradientGrid, Histogram, QuantizedGradients, count_of
from isofold._histogram import histogram as array_histogram
from isofold._histogram import quantize_gradients as quantize_array
from isofold._splits import RECORD, Splits, feature_rules, split_rules, top_count
from isofold._splits import best_splits as array_splits

__all__ = [
    "QuantizedTensors",
    "TensorHistogram",
    "TensorSplits",
    "best_splits",
    "histogram",
    "quantize_gradients",
]


class QuantizedTensors(NamedTuple):
    """Each row's gradient and hessian as integers on a grid."""

    values: Tensor  # int32, (rows, 2): gradient, hessian
    grid: Tensor  # int32: exponent of the gradients' unit, of the hessians', and 1 for a fault


class TensorHistogram:
    """As `isofold.Histogram`, of tensors. ``grid`` is int32: two exponents and a fault."""

    __slots__ = ("counts", "fault", "gradients", "grid", "hessians")

    def __init__(
        self, gradients: Tensor, hessians: Tensor, counts: Tensor, grid: Tensor, fault: Tensor
    ) -> None:
        self.gradients = gradients  # int64, (nodes, features, bins)
        self.hessians = hessians  # int64
        self.counts = counts  # int32
        self.grid = grid
        self.fault = fault  # int32 of shape (1,): 1 where a bin, node or row was out of range

    @property
    def shape(self) -> tuple[int, int, int]:
        nodes, features, bins = self.counts.shape
        return int(nodes), int(features), int(bins)

    def subtract(self, child: TensorHistogram) -> TensorHistogram:
        """The histogram of the rows that are not in `child`, on the same grid; also ``self - child``."""
        if child.shape != self.shape:
            raise ValueError(f"child has shape {child.shape}, but its parent has shape {self.shape}")
        return TensorHistogram(
            self.gradients - child.gradients,
            self.hessians - child.hessians,
            self.counts - child.counts,
            self.grid,
            self.fault | child.fault,
        )

    __sub__ = subtract

    def select(self, nodes: Any) -> TensorHistogram:
        """These nodes of it, in this order."""
        index = torch.as_tensor(nodes, device=self.counts.device).reshape(-1)
        return TensorHistogram(
            self.gradients[index], self.hessians[index], self.counts[index], self.grid, self.fault
        )

    def numpy(self) -> Histogram:
        """On the host, as `isofold.Histogram`. Waits for the device; raises ValueError for a fault."""
        check_fault(self.grid, self.fault)
        first, second, _ = self.grid.tolist()
        return Histogram(
            self.gradients.cpu().numpy(),
            self.hessians.cpu().numpy(),
            self.counts.cpu().numpy(),
            GradientGrid(first, second),
        )


class TensorSplits:
    """As `isofold.Splits`, of tensors."""

    def __init__(self, records: Tensor, words: Tensor | None, bins: int) -> None:
        self._records = records  # uint8, (..., 72)
        self._words = words  # uint8, (..., bytes)
        self._bins = bins

    def __getattr__(self, name: str) -> Tensor:
        records = self.__dict__.get("_records")
        fields = RECORD.fields
        if records is None or fields is None or name not in fields or name == "unused":
            raise AttributeError(f"'TensorSplits' object has no attribute {name!r}")
        dtype, offset = fields[name][:2]
        base = dtype.base
        wide: Tensor = records.view(getattr(torch, "uint8" if base == np.bool_ else base.name))
        place = offset // base.itemsize
        if dtype.shape:
            return wide[..., place : place + dtype.shape[0]]
        found = wide[..., place]
        return found.to(torch.bool) if base == np.bool_ else found

    @property
    def categories(self) -> Tensor | None:
        """For categorical splits, which bins go left."""
        if self._words is None:
            return None
        bits = torch.arange(8, dtype=torch.uint8, device=self._words.device)
        flags = (self._words[..., None] >> bits) & 1
        return flags.flatten(-2)[..., : self._bins].to(torch.bool)

    def numpy(self) -> Splits:
        """On the host, as `isofold.Splits`. Waits for the device."""
        categories = self.categories
        records = self._records.cpu().numpy().view(RECORD)[..., 0]
        return Splits(records, None if categories is None else categories.cpu().numpy())


def check_fault(grid: Tensor, fault: Tensor | None = None) -> None:
    """Raise ValueError for what the device has found. Waits for it."""
    if int(grid[2]):
        raise ValueError(
            "gradients and hessians must be finite, hessians not negative, and a given grid hold them"
        )
    if fault is not None and int(fault[0]):
        raise ValueError("a bin, a node id or a row is out of range")


def quantize_gradients(
    gradients: Tensor,
    hessians: Tensor | None = None,
    *,
    grid: Tensor | None = None,
    validate: bool = False,
) -> QuantizedTensors:
    """As `isofold.quantize_gradients`. `grid`: of another result, int32 of length 3."""
    gradients = _floats(gradients, "gradients")
    hessians = None if hessians is None else _beside(_floats(hessians, "hessians"), gradients, "hessians")
    if hessians is not None and hessians.shape != gradients.shape:
        raise ValueError(
            f"hessians has shape {tuple(hessians.shape)}, but gradients has {tuple(gradients.shape)}"
        )
    if grid is not None:
        grid = _beside(_tensor(grid, "grid"), gradients, "grid").to(torch.int32).contiguous()
        if grid.shape != (3,):
            raise ValueError(f"grid must hold two exponents and a fault, not {tuple(grid.shape)}")
    if not gradients.is_cuda:
        given = None if grid is None else GradientGrid(*grid.tolist()[:2])
        found = quantize_array(gradients.numpy(), None if hessians is None else hessians.numpy(), grid=given)
        return QuantizedTensors(
            torch.from_numpy(found.values), torch.tensor([*found.grid, 0], dtype=torch.int32)
        )
    with torch.cuda.device(gradients.device):
        stream = _stream(gradients)
        values = torch.empty((len(gradients), 2), dtype=torch.int32, device=gradients.device)
        chosen = torch.empty(3, dtype=torch.int32, device=gradients.device)
        _native.device_quantize_gradients(
            gradients.get_device(),
            gradients.__dlpack__(stream=stream),
            _capsule(hessians, stream),
            None if grid is None else _bytes(grid).__dlpack__(stream=stream),
            _bytes(values).__dlpack__(stream=stream),
            _bytes(chosen).__dlpack__(stream=stream),
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
    bins = _tensor(bins, "bins")
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
    _beside(quantized.values, bins, "gradients")
    if len(quantized.values) != len(bins):
        raise ValueError(f"gradients has {len(quantized.values)} rows, but bins has {len(bins)}")
    ids = None if node_ids is None else _beside(_whole(node_ids, "node_ids"), bins, "node_ids")
    subset = None if rows is None else _beside(_whole(rows, "rows"), bins, "rows")
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
        stream = _stream(bins)
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
            _bytes(quantized.values.contiguous()).__dlpack__(stream=stream),
            shape[2],
            _capsule(None if ids is None else ids.to(torch.int32).contiguous(), stream),
            shape[0],
            _capsule(None if subset is None else subset.to(torch.int64).contiguous(), stream),
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
    _check_categories(of_features)
    device = histogram.counts.device
    mask = _placed(feature_mask, "feature_mask", torch.bool, device, [(features,), (nodes, features)])
    outputs = _placed(parent_outputs, "parent_outputs", torch.float64, device, [(nodes,)])
    bounds = _placed(output_bounds, "output_bounds", torch.float64, device, [(nodes, 2)])
    numbers = _placed(node_numbers, "node_numbers", torch.int64, device, [(nodes,)])
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
        stream = _stream(histogram.counts)
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
            _bytes(histogram.grid).__dlpack__(stream=stream),
            nodes,
            features,
            bins,
            packed.__dlpack__(stream=stream) if features else None,
            _capsule(mask, stream),
            _capsule(outputs, stream),
            _capsule(bounds, stream),
            _capsule(numbers, stream),
            rules,
            count,
            _bytes(records).__dlpack__(stream=stream),
            None if words is None else _bytes(words).__dlpack__(stream=stream),
            stream,
        )
    return TensorSplits(records, words, bins)


def _check_categories(of_features: np.ndarray[Any, Any]) -> None:
    """What the host refuses, before a device would have to."""
    for index, feature in enumerate(of_features):
        at = f"feature_rules: feature {index}, "
        if feature["missing"] and feature["bins"] == 0:
            raise ValueError(f"{at}has_missing, but no bins")
        if feature["categorical"] and feature["monotone"]:
            raise ValueError(f"{at}a categorical feature cannot be monotone")
        if feature["categorical"] and feature["bins"] > 1024:
            raise ValueError(f"{at}a categorical feature has at most 1024 bins, not {feature['bins']}")


def _stream(tensor: Tensor) -> int:
    fault = _native.cuda_fault()
    if fault:
        raise RuntimeError(fault)
    # The default stream is 0 in CUDA and 1 in DLPack, where 0 is refused.
    return int(torch.cuda.current_stream(tensor.device).cuda_stream) or 1


def _tensor(value: Any, name: str) -> Tensor:
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, not {type(value).__name__}")
    return value.detach()


def _floats(value: Any, name: str) -> Tensor:
    tensor = _tensor(value, name)
    if tensor.dim() != 1:
        raise ValueError(f"{name} must be 1-D, but has shape {tuple(tensor.shape)}")
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.to(torch.float32)
    if tensor.dtype not in (torch.float32, torch.float64):
        raise TypeError(f"{name} must be a floating-point tensor, not {tensor.dtype}")
    return tensor.contiguous()


def _whole(value: Any, name: str) -> Tensor:
    tensor = _tensor(value, name)
    if tensor.dim() != 1:
        raise ValueError(f"{name} must be 1-D, but has shape {tuple(tensor.shape)}")
    if tensor.dtype not in (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8):
        raise TypeError(f"{name} must hold integers, not {tensor.dtype}")
    return tensor


def _beside(tensor: Tensor, other: Tensor, name: str) -> Tensor:
    if tensor.device != other.device:
        raise ValueError(f"{name} is on {tensor.device}, and the others are on {other.device}")
    return tensor


def _placed(
    value: Any, name: str, dtype: torch.dtype, device: torch.device, shapes: list[Any]
) -> Tensor | None:
    if value is None:
        return None
    tensor = torch.as_tensor(value)
    if dtype == torch.bool and tensor.dtype != torch.bool:
        raise TypeError(f"{name} must hold booleans, not {tensor.dtype}")
    if tuple(tensor.shape) not in shapes:
        wanted = " or ".join(map(str, shapes))
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, not {wanted}")
    return tensor.detach().to(device=device, dtype=dtype).contiguous()


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1).view(torch.uint8)


def _capsule(tensor: Tensor | None, stream: int) -> Any:
    return None if tensor is None else tensor.reshape(-1).__dlpack__(stream=stream)
