"""Times of calls on a device: rounds in random order, medians and quartiles, and ratios within a round."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

WARM_UPS = 3
ENOUGH_MS = 1500.0  # who has taken this long in all sits out the rounds that are left


class Clock:
    """Milliseconds between two events on the stream; wall clock on a CPU."""

    def __init__(self, device: str) -> None:
        self.cuda = device.startswith("cuda")

    def time(self, call: Callable[[], Any]) -> float:
        if not self.cuda:
            start = time.perf_counter()
            call()
            return 1e3 * (time.perf_counter() - start)
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        stop.synchronize()
        return float(start.elapsed_time(stop))


def rounds_of(clock: Clock, calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Milliseconds by contender and round. The copy is in every round, so that ratios to it can be taken."""
    order = random.Random(1)
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        warm = 0.0
        for _ in range(WARM_UPS):
            if warm < ENOUGH_MS / 3:
                warm += clock.time(call)
    for _ in range(rounds):
        names = [name for name in calls if sum(taken[name]) < ENOUGH_MS or name == "copy"]
        order.shuffle(names)
        for name in names:
            taken[name].append(clock.time(calls[name]))
    return taken


def quartiles(figures: list[float]) -> list[float]:
    return [float(f"{q:.5g}") for q in np.quantile(figures, [0.25, 0.5, 0.75])]


def summary(taken: Mapping[str, list[float]]) -> dict[str, dict[str, Any]]:
    """By contender: milliseconds and ratios to the copy and to isofold, each as quartiles. Ratios are taken
    within a round; nobody joins a round after sitting one out, so rounds are aligned."""
    found: dict[str, dict[str, Any]] = {}
    for name, own in taken.items():
        found[name] = {"rounds": len(own), "ms": quartiles(own)}
        for other in ("copy", "isofold"):
            both = min(len(own), len(taken[other]))
            ratios = [a / b for a, b in zip(own[:both], taken[other][:both], strict=True)]
            found[name][f"to_{other}"] = quartiles(ratios)
    return found


def captured(call: Callable[[], Any]) -> Callable[[], Any] | None:
    """The call as a graph that can be replayed, or None where it cannot be captured."""
    graph = torch.cuda.CUDAGraph()
    try:
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            call()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            call()
    except RuntimeError as error:
        print(f"not captured: {error}", flush=True)
        torch.cuda.synchronize()
        return None
    replay: Callable[[], Any] = graph.replay
    return replay
