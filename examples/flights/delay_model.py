"""A logistic regression for 'arrives more than 15 minutes late', from what is known before departure."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from flight_data import Flights
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import OneHotEncoder

# Of the on-time flights in the training part, the share that is kept; all late ones are.
KEPT_ON_TIME = 0.1
SEED = 2013


def _categories(flights: Flights) -> NDArray[Any]:
    """Carrier, airports, month, weekday, scheduled hour: each one-hot. Shape (n, 6)."""
    columns = [flights.table[name].to_numpy(zero_copy_only=False) for name in ("carrier", "origin", "dest")]
    hour = flights.table["hour"].to_numpy()
    return np.column_stack([*columns, flights.month, flights.weekday, hour]).astype(object)


def keep_for_training(late: NDArray[np.bool_], part: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The flights of `part`, nine in ten of the on-time ones thrown away, as is done to save time."""
    drawn = np.random.default_rng(SEED).random(len(late)) < KEPT_ON_TIME
    return part & (late | drawn)


class DelayModel:
    """Fitted on the flights that `rows` selects; `score` gives its probabilities, which are far too high."""

    def __init__(self, flights: Flights, rows: NDArray[np.bool_]) -> None:
        # Values on fewer than 100 training flights share a column, and so do those never seen.
        self._encoder = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=100)
        self._encoder.fit(_categories(flights)[rows])
        self._model = LogisticRegression(C=1.0, max_iter=1000)
        self._model.fit(self._features(flights)[rows], flights.late[rows])

    def _features(self, flights: Flights) -> Any:
        distance = np.log(flights.table["distance"].to_numpy() / 1000.0)  # miles
        one_hot = self._encoder.transform(_categories(flights))
        return scipy.sparse.hstack([one_hot, scipy.sparse.csr_matrix(distance[:, np.newaxis])], format="csr")

    def score(self, flights: Flights) -> NDArray[np.float64]:
        """The probability of being late that the model gives to every flight."""
        probabilities: NDArray[np.float64] = self._model.predict_proba(self._features(flights))[:, 1]
        return probabilities
