"""Random rows of every family against rational arithmetic, to the bit.

ISOFOLD_ORACLE_ROWS sets how many (100000 takes minutes), ISOFOLD_ORACLE_SEED where they start.
"""

from __future__ import annotations

import os

import numpy as np
import oracle
import pytest
from random_rows import FAMILIES, Row, random_row

from isofold import _native

ROWS = int(os.environ.get("ISOFOLD_ORACLE_ROWS", "4000"))
SEED = int(os.environ.get("ISOFOLD_ORACLE_SEED", "20260730"))
PARTS = 8


def check_row(row: Row) -> None:
    solution = oracle.solve(row.y, row.w, increasing=row.increasing, tie_offsets=row.tie_offsets)
    fitted, starts = _native.fit(
        row.y,
        row.w,
        None,
        None,
        row.increasing,
        row.lower,
        row.upper,
        row.tie_offsets,
        row.out_dtype,
        row.threads,
        row.chunk_size,
    )
    assert oracle.same_bits(starts, solution.flags()), "block starts"
    assert oracle.same_bits(fitted, solution.fit(row.out_dtype, row.lower, row.upper)), "fit"
    weights = _native.block_weights(row.y, row.w, None, None, starts, row.threads)
    assert weights.tolist() == solution.block_weights(), "block weights"

    weight_dtype = row.out_dtype if row.w is None else row.w.dtype.name
    expected = oracle.gradient(
        solution, row.y, row.w, row.grad, row.out_dtype, weight_dtype, row.lower, row.upper
    )
    found = _native.gradient(
        row.y,
        row.w,
        None,
        None,
        row.increasing,
        row.lower,
        row.upper,
        starts,
        row.grad,
        True,
        row.out_dtype,
        row.threads,
    )
    assert found[1] is not None
    assert oracle.same_bits(found[0], expected[0]), "gradient in y"
    assert oracle.same_bits(found[1], expected[1]), "gradient in the weights"


@pytest.mark.parametrize("part", range(PARTS))
def test_random_rows(part: int) -> None:
    families: dict[str, int] = {}
    for index in range(part, ROWS, PARTS):
        row = random_row(np.random.default_rng([SEED, index]))
        families[row.family] = families.get(row.family, 0) + 1
        try:
            check_row(row)
        except AssertionError as error:
            raise AssertionError(f"row {index} of seed {SEED} ({row.family}): {error}\n{row}") from error
    if ROWS >= 4000:
        assert set(families) == {*FAMILIES, "rates"}
