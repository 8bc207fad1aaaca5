"""The one value that stands for a predictive distribution."""

from __future__ import annotations

from typing import Literal

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn, level_numbers
from glfm_cli.inference.predictive import Marginal
from glfm_cli.links import Link, NumericObservation, of_levels, of_numbers

Estimate = Literal["auto", "mean", "median", "mode", "draw"]

MODE_GRID = np.linspace(0.005, 0.995, 199)  # probabilities at which `mode` looks for the peak
_MODE_SHARE = 20  # the mode is the centre of the narrowest interval with this many grid steps


def in_numbers(encoded: EncodedColumn, marginal: Marginal) -> Marginal:
    """Return a marginal in the column's own unit: of ordered levels their numbers, not codes."""
    if not encoded.levels or encoded.column.nominal:
        return marginal
    return marginal.at_levels(level_numbers(encoded.levels))


def point(link: Link, marginal: Marginal, estimate: Estimate) -> Array:
    """Return the value or level code (n,) that stands for each predictive distribution."""
    if link.discrete:
        assert marginal.probabilities is not None
        if not of_levels(link).ordered or estimate == "mode":
            return np.argmax(marginal.probabilities, axis=1).astype(np.float64)
        if estimate == "mean":
            return np.floor(marginal.mean + 0.5)
        return marginal.quantiles[:, 1]
    if estimate == "median":
        return marginal.quantiles[:, 1]
    if estimate == "mode":
        return _numeric_mode(of_numbers(link), marginal.quantiles[:, 3:])
    return np.floor(marginal.mean + 0.5) if of_numbers(link).integral else marginal.mean


def _numeric_mode(link: NumericObservation, quantiles: Array) -> Array:
    """Return the centre of the narrowest interval of 10 %, or an integer as probable as that."""
    width = quantiles[:, _MODE_SHARE:] / 2 - quantiles[:, :-_MODE_SHARE] / 2  # halved: no overflow
    first = np.argmin(width, axis=1)
    rows = np.arange(quantiles.shape[0])
    out = quantiles[rows, first] / 2 + quantiles[rows, first + _MODE_SHARE] / 2
    if link.integral:
        for i, row in enumerate(quantiles):
            values, counts = np.unique(row, return_counts=True)
            often = int(np.argmax(counts))
            out[i] = values[often] if counts[often] > _MODE_SHARE else np.floor(out[i] + 0.5)
    return out
