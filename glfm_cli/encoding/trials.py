"""Successes and trials of a binomial cell, as the one number that a cell has."""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array

MOST_TRIALS = 1_000_000  # of a cell
_STRIDE = float(1 << 20)  # a power of two above MOST_TRIALS: sums and quotients are exact


def pack_trials(successes: Array, trials: Array) -> Array:
    """Return x (n,), NaN where the successes are."""
    return np.asarray(trials) * _STRIDE + successes


def trials_of(x: Array) -> Array:
    """Return the trials (n,) of cells x."""
    return np.floor(x / _STRIDE)


def successes_of(x: Array) -> Array:
    """Return the successes (n,) of cells x."""
    return x - np.floor(x / _STRIDE) * _STRIDE


def is_trials(x: Array) -> bool:
    """Return whether every x (n,) stands for successes among at least as many trials, from 1."""
    if not np.isfinite(x).all():
        return False
    h, n = successes_of(x), trials_of(x)
    return bool(np.all((h == np.floor(h)) & (n >= 1.0) & (n <= MOST_TRIALS) & (h <= n)))
