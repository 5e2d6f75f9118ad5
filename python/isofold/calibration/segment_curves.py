"""What a fit by segments leaves behind: the segments, their counts, and who serves each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from isofold.calibration._inputs import Float64Array

KeyKind: TypeAlias = Literal["string", "integer", "boolean"]
KeyValue: TypeAlias = str | int | bool
ServedBy: TypeAlias = Literal["own_curve", "single_class", "under_min_rows"]


@dataclass(frozen=True)
class SegmentColumn:
    """A column that segments are told apart by; all its keys are of one kind."""

    name: str | None
    kind: KeyKind


@dataclass(frozen=True)
class Counts:
    """What a curve was fitted to."""

    rows: float  # rows of positive weight; an aggregated row counts as its total
    weight: float  # their total weight; the largest float64 where that is exceeded
    positives: float  # the sum of weight times label


@dataclass(frozen=True)
class Segment:
    """One segment that the fit saw.

    `served_by` is "own_curve", or why the global curve serves it: "single_class" (all labels 0 or all labels
    1, which an own curve would repeat for ever) or "under_min_rows". Without an own curve the knots are None.
    """

    key: tuple[KeyValue, ...]  # one entry for each segment column
    counts: Counts
    served_by: ServedBy
    knots_x: Float64Array | None
    knots_y: Float64Array | None


@dataclass(frozen=True)
class SegmentCurves:
    """Everything about segments that a curve file holds. `segments` rise strictly by key."""

    columns: tuple[SegmentColumn, ...]
    min_rows: int
    counts: Counts  # of all rows, which the global curve was fitted to
    null_rows: float  # rows among them without a segment: a key of theirs is null
    segments: tuple[Segment, ...]
