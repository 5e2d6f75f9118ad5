"""Scored rows as an ads or risk team has them, to a Parquet file.

    python bench/calibration/generate.py rows.parquet --rows 45000000

Columns: `score` (float64), `clicked` (int8), `campaign` (one of 280 strings, stored as a dictionary). Scores
are beta-distributed, of another shape in each campaign; outcomes are drawn from a rate that the score
overstates, by another factor in each campaign. Campaigns are of very unequal size, some see no click at all,
and in every second row the score is rounded to four decimals, so that long runs of rows tie.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

SEGMENTS = 280
ROWS_AT_ONCE = 1_000_000
SCHEMA = pa.schema(
    [("score", pa.float64()), ("clicked", pa.int8()), ("campaign", pa.dictionary(pa.int16(), pa.string()))]
)


class Campaigns:
    """What differs between them."""

    def __init__(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        sizes = 1.0 / np.arange(1, SEGMENTS + 1)
        self.share = sizes / sizes.sum()
        self.first = random.uniform(0.4, 2.0, SEGMENTS)
        self.second = self.first * random.uniform(10.0, 400.0, SEGMENTS)
        self.factor = random.uniform(2.0, 20.0, SEGMENTS)  # by how much the score overstates the odds
        self.factor[-5:] = np.inf  # no clicks
        self.names = pa.array([f"campaign {k:03d}" for k in range(SEGMENTS)])

    def draw(self, rows: int, random: np.random.Generator) -> Any:
        campaign = random.choice(SEGMENTS, rows, p=self.share).astype(np.int16)
        score = random.beta(self.first[campaign], self.second[campaign])
        score[::2] = score[::2].round(4)
        rate = score / (score + (1.0 - score) * self.factor[campaign])
        clicked = (random.random(rows) < rate).astype(np.int8)
        dictionary = pa.DictionaryArray.from_arrays(pa.array(campaign), self.names)
        return pa.record_batch([pa.array(score), pa.array(clicked), dictionary], schema=SCHEMA)


def generate(path: Path, rows: int, seed: int = 0) -> None:
    """Write `rows` rows in row groups of a million, about 180 MB at a time in memory."""
    campaigns, random = Campaigns(seed), np.random.default_rng(seed + 1)
    with pyarrow.parquet.ParquetWriter(path, SCHEMA) as writer:
        for start in range(0, rows, ROWS_AT_ONCE):
            writer.write_batch(campaigns.draw(min(ROWS_AT_ONCE, rows - start), random))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=45_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generate(options.path, options.rows, options.seed)


if __name__ == "__main__":
    main()
