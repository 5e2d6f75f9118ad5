"""A part of the parity sweep: the same models for any order of rows and any threads; controls that fail."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "bench" / "trees"))
sys.path.append(str(Path(__file__).parents[3] / "examples" / "trees"))

from libraries import FloatSums, Shuffled
from parity_sweep import compare_control, configurations, fit, make_data, same_trees

import isofold

ALL = configurations(4)


def test_there_are_53_configurations() -> None:
    assert len({configuration.name for configuration in ALL}) == 53


@pytest.mark.parametrize("number", range(0, 53, 4))
def test_models_are_the_same_to_the_bit(number: int) -> None:
    data = make_data(ALL[number], number)
    one = fit(ALL[number], data, isofold)
    other = fit(ALL[number], data, Shuffled(number))
    assert sum(len(tree.decisions) for trees in one.trees for tree in trees) > 10
    assert same_trees(one, other)
    assert (one.predict(data.unseen) == other.predict(data.unseen)).all()


def test_float_sums_differ_in_some_bits() -> None:
    configuration = configurations(10)[0]
    data = make_data(configuration, 0)
    scan = fit(configuration, data, FloatSums())
    for rule in ("strict", "tolerance"):
        found = compare_control(scan, fit(configuration, data, FloatSums(rule, True, 1)), data)
        assert not found["predictions to the bit"]
