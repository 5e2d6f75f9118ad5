"""Fits and gradients of flat float32 and float64 CUDA tensors: on the current stream, waiting for nothing."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from isofold import _native
from isofold.torch._halves import rounded, widened
from isofold.torch._rows import Call


def _problem(values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call, stream: int) -> Any:
    return _native.DeviceProblem(
        values.get_device(),
        values.__dlpack__(stream=stream),
        None if weights is None else weights.__dlpack__(stream=stream),
        None if offsets is None else offsets.__dlpack__(stream=stream),
        call.length,
        call.increasing,
        call.lower,
        call.upper,
    )


def current_stream(tensor: Tensor) -> int:
    """The stream of the tensor's device, as DLPack numbers it. Raises RuntimeError where there is no CUDA."""
    fault = _native.cuda_fault()
    if fault:
        raise RuntimeError(fault)
    # The default stream is 0 in CUDA and 1 in DLPack, where 0 is refused.
    return int(torch.cuda.current_stream(tensor.device).cuda_stream) or 1


def fit(values: Tensor, weights: Tensor | None, offsets: Tensor | None, call: Call) -> tuple[Tensor, Tensor]:
    weights = widened(weights)
    found = torch.empty_like(values)
    starts = torch.empty_like(values, dtype=torch.uint8)
    if values.numel():
        with torch.cuda.device(values.device):
            stream = current_stream(values)
            problem = _problem(values, weights, offsets, call, stream)
            scratch = torch.empty(problem.scratch_bytes(), dtype=torch.uint8, device=values.device)
            problem.fit(
                found.__dlpack__(stream=stream),
                starts.__dlpack__(stream=stream),
                scratch.__dlpack__(stream=stream) if scratch.numel() else None,
                stream,
            )
    return found, starts


def gradient(
    incoming: Tensor,
    values: Tensor,
    weights: Tensor | None,
    starts: Tensor,
    offsets: Tensor | None,
    call: Call,
    want_weights: bool,
) -> tuple[Tensor, Tensor | None]:
    if incoming.dtype not in (torch.float32, torch.float64):
        incoming = incoming.float()
    dtype = (values if weights is None else weights).dtype
    weights = widened(weights)
    found = torch.empty_like(values)
    of_weights = torch.empty_like(values if weights is None else weights) if want_weights else None
    if values.numel():
        with torch.cuda.device(values.device):
            stream = current_stream(values)
            _problem(values, weights, offsets, call, stream).gradient(
                starts.__dlpack__(stream=stream),
                incoming.__dlpack__(stream=stream),
                found.__dlpack__(stream=stream),
                None if of_weights is None else of_weights.__dlpack__(stream=stream),
                stream,
            )
    return found, None if of_weights is None else rounded(of_weights, dtype)
