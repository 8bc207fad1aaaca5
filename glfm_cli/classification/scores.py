"""How good probabilities of levels are, judged by the levels that came true."""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array, mean_ranks

BINS = 10
LEAST = 1e-15  # probability; its logarithm stays finite


def all_scores(code: Array, p: Array) -> dict[str, float]:
    """Return every score of probabilities p (n, R) for levels that came true, code (n,)."""
    code = code.astype(np.intp)
    rows = np.arange(code.size)
    hit = np.zeros_like(p)
    hit[rows, code] = 1.0
    return {
        "auc": auc(hit, p),
        "accuracy": float(np.mean(p.argmax(axis=1) == code)),
        "log_score": float(np.mean(np.log(np.maximum(p[rows, code], LEAST)))),
        "brier": float(np.mean(((p - hit) ** 2).sum(axis=1))),
        "calibration_error": calibration_error(hit, p),
    }


def auc(hit: Array, p: Array) -> float:
    """Return the mean over levels of the area under each one's ROC curve against the rest.

    The probability that a row of the level has a higher probability of it than another row, ties
    counting a half [Mann and Whitney 1947]; levels that all rows or none have are left out. NaN
    when none is left.
    """
    areas = []
    for level in range(p.shape[1]):
        is_it = hit[:, level] > 0
        n_it, n_not = int(is_it.sum()), int((~is_it).sum())
        if n_it and n_not:
            above = mean_ranks(p[:, level])[is_it].sum() - n_it * (n_it + 1) / 2
            areas.append(float(above) / (n_it * n_not))
    return float(np.mean(areas)) if areas else float("nan")


def calibration_error(hit: Array, p: Array) -> float:
    """Return the sum over bins of (share of forecasts) |mean probability - share that came true|.

    Bins of equal width of the probability; every level of every row is a forecast.
    """
    bins = np.minimum((p * BINS).astype(np.intp), BINS - 1).ravel()
    off = np.bincount(bins, (p - hit).ravel(), minlength=BINS)
    return float(np.abs(off).sum() / p.size)
