"""What a call launches: kernels, fills and copies by name, how many and how long, from torch's profiler."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stage:
    """Of one call: `launches` of this name, and what they take together."""

    name: str
    launches: float
    microseconds: float


def short_name(kernel: str) -> str:
    """`fit_rows` for `void isofold::cuda::(anonymous namespace)::fit_rows<isofold::E<float>, 4>(Plan)`."""
    text = kernel.replace("(anonymous namespace)::", "").removeprefix("void ")
    while (bare := re.sub(r"<[^<>]*>", "", text)) != text:
        text = bare
    if not re.match(r"Mem(set|cpy)", text):
        text = text.split("(")[0]
    return text.split("::")[-1].strip()


def merged(kernels: list[tuple[str, int, float]], calls: int) -> list[Stage]:
    """From (name, count, microseconds in all) over several calls; order is kept."""
    counts: dict[str, tuple[int, float]] = {}
    for name, count, microseconds in kernels:
        known = counts.get(short_name(name), (0, 0.0))
        counts[short_name(name)] = (known[0] + count, known[1] + microseconds)
    return [Stage(name, count / calls, round(us / calls, 3)) for name, (count, us) in counts.items()]


def profiled(call: Callable[[], Any], calls: int = 5) -> list[Stage]:
    """Means over some calls. Kernels that overlap are each counted whole."""
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    call()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
    kernels = [
        (event.key, event.count, float(event.self_device_time_total))
        for event in seen.key_averages()
        if event.device_type == DeviceType.CUDA
    ]
    return merged(kernels, calls)
