"""Calibration: turn a model's scores into rates that can be believed, and measure how far they can.

`Calibrator` is an isotonic curve, or one for each segment, with a file form; `brier_score`, `log_loss`,
`expected_calibration_error` and `brier_decomposition` say how well predictions fit, and `audit` names the
segments where they do not; `PlattScaling` and `downsampling_correction` are the usual alternatives. Metrics
take the truth first, then the prediction, and give the same bits for every order of the rows.
"""

from isofold.calibration._audit import Audit, AuditSegment, audit
from isofold.calibration.calibrator import Calibrator, Fallback
from isofold.calibration.corp import (
    BrierDecomposition,
    ReliabilityCurve,
    brier_decomposition,
    reliability_curve,
)
from isofold.calibration.curve_file import CurveFileError
from isofold.calibration.downsampling import downsampling_correction
from isofold.calibration.metrics import LogLoss, brier_score, log_loss
from isofold.calibration.platt import PlattScaling
from isofold.calibration.reliability import ReliabilityTable, expected_calibration_error, reliability
from isofold.calibration.segment_curves import Counts, Segment, SegmentColumn

__all__ = [
    "Audit",
    "AuditSegment",
    "BrierDecomposition",
    "Calibrator",
    "Counts",
    "CurveFileError",
    "Fallback",
    "LogLoss",
    "PlattScaling",
    "ReliabilityCurve",
    "ReliabilityTable",
    "Segment",
    "SegmentColumn",
    "audit",
    "brier_decomposition",
    "brier_score",
    "downsampling_correction",
    "expected_calibration_error",
    "log_loss",
    "reliability",
    "reliability_curve",
]
