"""One conjugate gradient method, of which only the dot product is exchanged.

    python bench/segmented/intervention.py [--frames 3188] [--budget 64] [--json FILE]

The system of the report (NVIDIA Warp issue 1700) is not to be had; this one has its form: 35 unknowns a
frame, 3,188 frames, 111,580 unknowns; J^T J of second differences in time and of twelve random
measurements a frame, banded by blocks, in float32, preconditioned by its blocks. Four identical copies
are solved as a batch, and one alone, in the arithmetic of isofold.cg except for the dots. Printed are the
true residual after every so many iterations, relative to b, and whether the batch and the solitary solve
agree to the bit. What is claimed is only what is printed: well-behaved systems shrug off a rounded dot.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from reductions import one_problem, serial_lanes, tile_tree
from scipy import sparse

import isofold

sys.path.append(str(Path(__file__).parents[1] / "cpu"))
from machine import describe

FREEDOMS = 35
MEASUREMENTS = 12


def system(frames: int, smoothness: float, damping: float) -> tuple[Any, Any]:
    """(J^T J + damping in float32, b) of one trajectory."""
    random = np.random.default_rng(3188)
    measured = random.standard_normal((frames, MEASUREMENTS, FREEDOMS)) / np.sqrt(MEASUREMENTS)
    data = sparse.block_diag(list(measured), format="csr")
    second = sparse.diags_array([1.0, -2.0, 1.0], offsets=[0, 1, 2], shape=(frames - 2, frames))
    smooth = sparse.kron(second, np.sqrt(smoothness) * sparse.eye_array(FREEDOMS), format="csr")
    jacobian = sparse.vstack([data, smooth]).tocsr()
    matrix = (jacobian.T @ jacobian + damping * sparse.eye_array(jacobian.shape[1])).tocsr()
    residual = np.concatenate([random.standard_normal(data.shape[0]), np.zeros(smooth.shape[0])])
    return matrix.astype(np.float32), (jacobian.T @ residual).astype(np.float32)


def inverse_blocks(matrix: Any) -> Any:
    frames = matrix.shape[0] // FREEDOMS
    blocks = np.empty((frames, FREEDOMS, FREEDOMS), np.float32)
    for f in range(frames):
        here = slice(f * FREEDOMS, (f + 1) * FREEDOMS)
        blocks[f] = np.linalg.inv(matrix[here, here].toarray().astype(np.float64))
    return blocks


Dots = Callable[[Any, Any], Any]  # of (systems, n) arrays, a value a system


def each(dot: Callable[[Any, Any], Any]) -> Dots:
    return lambda a, b: np.array([float(dot(x, y)) for x, y in zip(a, b, strict=True)])


def exact(a: Any, b: Any) -> Any:
    return isofold.segment_dot(a, b, dtype=np.float64)


def solve(matrix: Any, blocks: Any, b: Any, dots: Dots, budget: int) -> tuple[Any, list[Any]]:
    """(x, the true relative residuals after 0, 1, .. budget iterations) of the systems, the rows of b."""

    def axpy(x: Any, factor: Any, y: Any) -> Any:
        return (x.astype(np.float64) + factor[:, None] * y).astype(np.float32)

    def apply(x: Any) -> Any:
        return np.stack([matrix @ row for row in x])

    def precondition(r: Any) -> Any:
        shaped = r.reshape(len(r), -1, FREEDOMS)
        return np.einsum("fij,sfj->sfi", blocks, shaped).reshape(r.shape)

    wide = matrix.astype(np.float64)

    def true_residual(x: Any) -> Any:
        rest = np.stack([row_b - wide @ row_x for row_b, row_x in zip(b.astype(np.float64), x, strict=True)])
        return np.linalg.norm(rest, axis=1) / np.linalg.norm(b, axis=1)

    x = np.zeros_like(b)
    r = b.copy()
    z = precondition(r)
    p = z
    rho = dots(r, z)
    history = [true_residual(x)]
    for _ in range(budget):
        q = apply(p)
        alpha = rho / dots(p, q)
        x = axpy(x, alpha, p)
        r = axpy(r, -alpha, q)
        z = precondition(r)
        new = dots(r, z)
        p = axpy(z, new / rho, p)
        rho = new
        history.append(true_residual(x))
    return x, history


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--frames", type=int, default=3188)
    parser.add_argument("--budget", type=int, default=64)
    parser.add_argument("--smoothness", type=float, default=1e4)
    parser.add_argument("--damping", type=float, default=1e-4)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    matrix, b = system(options.frames, options.smoothness, options.damping)
    blocks = inverse_blocks(matrix)
    # (of a batch, of one alone): in a batch the report's reduction was serial whatever the length.
    contenders: dict[str, tuple[Dots, Dots]] = {
        "isofold": (exact, exact),
        "serial lanes": (each(serial_lanes), each(one_problem)),
        "tile tree": (each(tile_tree), each(tile_tree)),
    }
    shown = [k for k in (1, 2, 4, 8, 16, 32, 48, 64, 128, 256) if k <= options.budget]
    print(f"{matrix.shape[0]:,} unknowns, {matrix.nnz:,} entries, budget {options.budget}")
    print("| dots | batch | " + " | ".join(str(k) for k in shown) + " | batch is alone |")
    print("|---" * (len(shown) + 3) + "|")
    rows = []
    for name, (batched, alone) in contenders.items():
        x_batch, h_batch = solve(matrix, blocks, np.tile(b, (4, 1)), batched, options.budget)
        x_alone, h_alone = solve(matrix, blocks, b[None], alone, options.budget)
        same = all(row.tobytes() == x_alone[0].tobytes() for row in x_batch)
        for count, history in ((4, h_batch), (1, h_alone)):
            values = [float(entry.max()) for entry in history]
            figures = " | ".join(f"{values[k]:.3e}" for k in shown)
            print(f"| {name} | {count} | {figures} | {'yes' if same else 'no'} |", flush=True)
            rows.append({"dots": name, "systems": count, "residuals": values, "batch_is_alone": same})
    if options.json:
        record = {
            "date": datetime.date.today().isoformat(),
            "unknowns": int(matrix.shape[0]),
            "entries": int(matrix.nnz),
            "smoothness": options.smoothness,
            "damping": options.damping,
            "budget": options.budget,
            "machine": describe(),
            "rows": rows,
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
