"""The numbers of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from isofold._arrays import thread_count
from isofold.calibration._audit import Audit
from isofold.calibration._inputs import Observations, as_column, collect, collect_kept
from isofold.calibration._segment_keys import KeyColumn, encode
from isofold.calibration._sums import exact_sum, scaled_weights, weighted_mean, weighted_values
from isofold.calibration.corp import brier_decomposition
from isofold.calibration.metrics import log_loss
from isofold.calibration.reliability import expected_calibration_error
from isofold.calibration.report.curves import diagram, histogram, linear_range, logit_range
from isofold.calibration.report.segments import encode_segments, segment_table

VERSION = 1
MAX_SEGMENTS = 10_000

Drift = Mapping[str, Mapping[str, float]]


def _predicted_over_observed(rows: Observations) -> float:
    weights = np.ones(len(rows)) if rows.weights is None else scaled_weights(rows.weights)[0]
    predicted, observed = exact_sum(weighted_values(weights, rows.scores)), exact_sum(weights * rows.labels)
    if observed == 0.0:
        return 1.0 if predicted == 0.0 else float("inf")
    return predicted / observed


def _measure(rows: Observations, epsilon: float, threads: int) -> dict[str, float]:
    """All metrics. Rows in canonical order spare each of them a sort."""
    labels, predictions, weights = rows.labels, rows.scores, rows.weights
    loss = log_loss(labels, predictions, sample_weight=weights, epsilon=epsilon)
    terms = brier_decomposition(labels, predictions, sample_weight=weights, threads=threads or None)
    width, mass = (
        expected_calibration_error(labels, predictions, sample_weight=weights, strategy=strategy)
        for strategy in ("uniform", "quantile")
    )
    return {
        "mean_prediction": weighted_mean(predictions, weights),
        "predicted_over_observed": _predicted_over_observed(rows),
        "ece_equal_width": width,
        "ece_equal_mass": mass,
        "brier": terms.score,
        "log_loss": loss.value,
        "log_loss_infinite_terms": loss.infinite_terms,
        "log_loss_epsilon": loss.epsilon,
        "mcb": terms.miscalibration,
        "dsc": terms.discrimination,
        "unc": terms.uncertainty,
    }


def _drift_rows(drift: Drift | None) -> dict[str, Any] | None:
    if drift is None:
        return None
    columns = list(dict.fromkeys(str(name) for row in drift.values() for name in row))
    rows = [
        [None if name not in row else float(row[name]) for name in columns]
        for row in ({str(name): value for name, value in row.items()} for row in drift.values())
    ]
    return {"columns": columns, "names": [str(name) for name in drift], "rows": rows}


def _server_column(served_by: Any, rows: int, kept: Any) -> KeyColumn:
    column = encode(None, served_by, "served_by")
    if len(column) != rows:
        raise ValueError(f"served_by has {len(column)} entries, scores has {rows}")
    return column if kept is None else KeyColumn(None, column.kind, column.codes[kept], column.levels)


def report_data(
    scores: ArrayLike,
    labels: ArrayLike,
    calibrated: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    segments: Any = None,
    segment_names: Sequence[str] | str | None = None,
    served_by: Any = None,
    title: str = "Calibration report",
    drift: Drift | None = None,
    audit: Audit | None = None,
    notes: Sequence[str] | None = None,
    threads: int | None = None,
) -> dict[str, Any]:
    """Compute what `write_report` shows.

    Parameters
    ----------
    scores : array_like, shape (n,) or (n, 1)
        Before calibration: finite reals. Unless all lie in [0, 1] they are no probabilities, and everything
        under "before" is None.
    labels : array_like, shape (n,) or (n, 1)
        Outcomes or rates in [0, 1].
    calibrated : array_like, shape (n,) or (n, 1)
        After calibration, in [0, 1].
    sample_weight : array_like, shape (n,), optional
        Finite, not negative; rows of weight zero are dropped.
    segments : optional
        As for `Calibrator.fit`: one column of n strings, integers or booleans, or several. Rows that are null
        in any column are one segment, "(missing)".
    segment_names : str or sequence of str, optional
        The columns' names. Default: their own, else "segment" or "segment 1", "segment 2", ...
    served_by : optional
        With segments: which curve served each row, one column of n strings for a column of the segment table.
    title : str
    drift : mapping of mappings, optional
        {row: {column: number}}, for a table of results on data from another time.
    audit : Audit, optional
        What `isofold.calibration.audit` found, of these rows or others.
    notes : sequence of str, optional
        Paragraphs to show.
    threads : int, optional

    Returns
    -------
    dict
        Of numbers, strings, lists and dicts: "rows", "weight", "positives", "observed_rate", "metrics"
        (before, after), "diagrams" (before, after), "axes", "distribution", "segments" (columns as lists,
        the worst of at most 10,000 first), "drift", "audit". A ratio without observed positives is inf, 1 if
        nothing was predicted either. Each metric is what the function of that name in
        `isofold.calibration` returns. The same bits for every order of the rows. O(n log n).

    Raises
    ------
    ValueError, TypeError
        Naming the argument and the position.
    """
    workers = thread_count(threads)
    before, kept = collect_kept(scores, labels, sample_weight)
    after = collect(calibrated, labels, sample_weight, scores_name="calibrated", probabilities=True)
    score_column, calibrated_column = as_column(scores, "scores"), as_column(calibrated, "calibrated")
    probabilities = bool(((before.scores >= 0.0) & (before.scores <= 1.0)).all())

    # log_loss clips by the dtype that it is given.
    sides = {"after": (after, float(np.finfo(calibrated_column.dtype).eps))}
    if probabilities:
        sides = {"before": (before, float(np.finfo(score_column.dtype).eps))} | sides
    metrics: dict[str, Any] = {"before": None, "after": None}
    diagrams: dict[str, Any] = {"before": None, "after": None}
    for name, (rows, epsilon) in sides.items():
        ordered = rows.in_canonical_order()
        metrics[name] = _measure(ordered, epsilon, workers)
        diagrams[name] = diagram(ordered, workers)

    shown = [diagrams[name] for name in sides]
    predictions = {name: rows.scores for name, (rows, _) in sides.items()}
    axes = {"linear": linear_range(shown), "logit": logit_range(shown, list(predictions.values()))}
    distribution = {
        axis: {
            name: histogram(predictions[name], *axes[axis], on_logit=axis == "logit")
            if name in predictions
            else None
            for name in metrics
        }
        for axis in axes
    }

    table = None
    if segments is not None:
        coded = encode_segments(segments, segment_names, len(score_column))
        if kept is not None:
            coded = type(coded)(coded.columns, coded.names, coded.codes[kept])
        servers = None if served_by is None else _server_column(served_by, len(score_column), kept)
        table = segment_table(
            coded,
            before.scores if probabilities else None,
            after.scores,
            after.labels,
            after.weights,
            served_by=servers,
            limit=MAX_SEGMENTS,
            threads=workers,
        )
    elif segment_names is not None:
        raise ValueError("segment_names is given without segments")
    elif served_by is not None:
        raise ValueError("served_by is given without segments")

    scaled, exponent = (np.ones(len(after)), 0) if after.weights is None else scaled_weights(after.weights)
    with np.errstate(over="ignore"):
        weight = float(np.ldexp(exact_sum(scaled), exponent))
        positives = float(np.ldexp(exact_sum(scaled * after.labels), exponent))
    return {
        "isofold_report": VERSION,
        "title": str(title),
        "notes": [str(note) for note in notes or ()],
        "rows": len(after),
        "weighted": after.weights is not None,
        "weight": weight,
        "positives": positives,
        "observed_rate": weighted_mean(after.labels, after.weights),
        "metrics": metrics,
        "diagrams": diagrams,
        "axes": {name: list(ends) for name, ends in axes.items()},
        "distribution": distribution,
        "segments": table,
        "drift": _drift_rows(drift),
        "audit": None if audit is None else audit.as_dict(),
    }
