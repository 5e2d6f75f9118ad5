"""The error of batched dot products: the table of NVIDIA Warp's issue 1700, beside exact arithmetic.

    python bench/segmented/accuracy.py [--trials 10] [--lengths 10500 ...] [--json FILE]

Four segments of one length in float32, a == b, ten seeded trials (seed 1000 trial + length) in two
regimes: `norm` draws from N(0, 1), `widerange` a random sign and magnitudes log-uniform in [1e-4, 1].
Errors are relative to the exact value, the largest of all segments and trials; `half ulps` is isofold's
largest error in half units of the result's last place: 1 is what rounding once may cost. `batched is
alone` says whether a segment's bits were the same in the batch as by itself. The other columns are
controls of our own (reductions.py), and torch's sum where torch is installed.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from reductions import SCALE, exact, float64_lanes, one_problem, serial_lanes, tile_tree

import isofold

sys.path.append(str(Path(__file__).parents[1] / "cpu"))
from machine import describe

LENGTHS = (10_500, 43_155, 65_536, 111_580, 262_144, 1_048_576, 4_194_304)
SEGMENTS = 4


def draw(random: np.random.Generator, count: int, regime: str) -> Any:
    if regime == "norm":
        return random.standard_normal(count).astype(np.float32)
    magnitude = 10.0 ** random.uniform(-4.0, 0.0, count)
    return (random.choice((-1.0, 1.0), count) * magnitude).astype(np.float32)


def _torch_sum() -> Any:
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    torch.set_num_threads(1)
    return lambda a, b: np.float32((torch.from_numpy(a) * torch.from_numpy(b)).sum().item())


def contenders() -> dict[str, tuple[Any, Any]]:
    """How a segment of a batch is reduced, and how one alone is."""
    found = {
        "serial lanes": (serial_lanes, one_problem),
        "one problem": (one_problem, one_problem),
        "tile tree": (tile_tree, tile_tree),
        "float64 lanes": (float64_lanes, float64_lanes),
    }
    whole = _torch_sum()
    if whole is not None:
        found["torch.sum"] = (whole, whole)
    return found


def row(regime: str, length: int, trials: int) -> dict[str, Any]:
    names = ["isofold", *contenders()]
    worst = dict.fromkeys(names, 0.0)
    same = dict.fromkeys(names, True)
    half_ulps = 0.0
    for trial in range(trials):
        random = np.random.default_rng(1000 * trial + length)
        a = draw(random, SEGMENTS * length, regime)
        offsets = np.arange(SEGMENTS + 1) * length
        batch = isofold.segment_dot(a, a, offsets)
        for s in range(SEGMENTS):
            x = a[offsets[s] : offsets[s + 1]]
            true = Fraction(exact(x, x), 2**SCALE)
            values = {"isofold": (batch[s], isofold.segment_dot(x, x))}
            for name, (batched, alone) in contenders().items():
                first = batched(x, x)
                values[name] = (first, first if alone is batched else alone(x, x))
            for name, (found, by_itself) in values.items():
                error = abs(Fraction(float(found)) - true)
                worst[name] = max(worst[name], float(error / true))
                same[name] = bool(same[name] and found == by_itself)
                if name == "isofold":
                    half_ulps = max(half_ulps, float(2 * error / Fraction(float(np.spacing(found)))))
    return {
        "regime": regime,
        "length": length,
        "additions_a_lane": length // 512,
        "error": worst,
        "isofold_half_ulps": half_ulps,
        "ratio_to_tree": {name: worst[name] / worst["tile tree"] for name in names},
        "batched_is_alone": same,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = ["isofold", *contenders()]
    titles = ["regime", "length", "adds/lane", *names, "serial/tree", "half ulps", "batched is alone"]
    print("| " + " | ".join(titles) + " |")
    print("|---" * len(titles) + "|")
    rows = []
    for regime in ("norm", "widerange"):
        for length in options.lengths:
            found = row(regime, length, options.trials)
            rows.append(found)
            errors = " | ".join(f"{found['error'][name]:.2e}" for name in names)
            differ = [name for name in names if not found["batched_is_alone"][name]]
            print(
                f"| {regime} | {length:,} | {found['additions_a_lane']:,} | {errors} | "
                f"{found['ratio_to_tree']['serial lanes']:.1f} | {found['isofold_half_ulps']:.3f} | "
                f"{'all' if not differ else 'not ' + ', '.join(differ)} |",
                flush=True,
            )
    if options.json:
        record = {
            "date": datetime.date.today().isoformat(),
            "segments": SEGMENTS,
            "trials": options.trials,
            "machine": describe(),
            "rows": rows,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
