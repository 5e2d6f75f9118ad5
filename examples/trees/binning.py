"""Feature values into bins: one for each distinct value while there are few, else quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass
class Feature:
    """A numerical feature's upper bounds, or a categorical one's categories; after them the missing bin."""

    bounds: NDArray[np.float64]
    categorical: bool
    missing: bool

    @property
    def values(self) -> int:
        return len(self.bounds) if self.categorical else len(self.bounds) + 1

    @property
    def bins(self) -> int:
        return self.values + self.missing

    def bin(self, column: NDArray[np.float64]) -> NDArray[np.int64]:
        """Categories that were not seen, and NaN where none was, are as good as missing: beyond all bins."""
        if not self.categorical:
            found = np.searchsorted(self.bounds, column, side="left")
        else:
            found = np.minimum(np.searchsorted(self.bounds, column), self.values - 1)
            found = np.where(self.bounds[found] == column, found, self.values)
        return np.where(np.isnan(column), self.values, found)


def find_bins(column: NDArray[np.float64], categorical: bool, most: int) -> Feature:
    present = column[~np.isnan(column)]
    missing = len(present) < len(column)
    values = np.unique(present)
    if categorical:
        return Feature(values, True, missing)
    if len(values) > most:
        values = np.unique(np.quantile(present, np.linspace(0, 1, most), method="lower"))
    # Halfway between neighbours; a value equal to a bound is below it.
    return Feature(values[:-1] / 2 + values[1:] / 2, False, missing)


@dataclass
class BinnedData:
    features: list[Feature]
    bins: NDArray[np.uint8] | NDArray[np.uint16]  # column-major

    @property
    def bin_count(self) -> int:
        return max((feature.bins for feature in self.features), default=1)


def bin_data(
    values: NDArray[np.float64], categorical: list[int] | None = None, most: int = 255
) -> BinnedData:
    features = [
        find_bins(column, index in (categorical or []), most) for index, column in enumerate(values.T)
    ]
    width = np.uint8 if max((feature.bins for feature in features), default=1) <= 256 else np.uint16
    bins = np.empty(values.shape, width, order="F")
    for index, feature in enumerate(features):
        bins[:, index] = feature.bin(values[:, index])
    return BinnedData(features, bins)
