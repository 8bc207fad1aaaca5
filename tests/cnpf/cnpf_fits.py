"""Fits of simulated counts, for tests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

import glfm_cli.latent.cnpf.engine as engine
from glfm_cli.latent.cnpf import CnpfConfig, CnpfState, Counts
from glfm_cli.streams import Streams

Array = NDArray[np.float64]


def fit(
    counts: Counts, config: CnpfConfig, steps: int, seed: int = 3
) -> tuple[CnpfState, Streams, list[float | None]]:
    streams = Streams(seed, 0)
    state = engine.start(counts, config, streams)
    bounds = [engine.step(state, counts, streams).bound for _ in range(steps)]
    return state, streams, bounds


def arrays_equal(one: Mapping[str, Array], other: Mapping[str, Array]) -> bool:
    same = one.keys() == other.keys()
    return same and all(one[name].tobytes() == other[name].tobytes() for name in one)


def planted(
    rng: np.random.Generator, n_rows: int, n_columns: int, components: int, size: float
) -> tuple[Array, Array, Array]:
    """Return counts of components in two groups that exclude each other; columns and signs."""
    a = rng.gamma(0.1, 1.0, (n_columns, components)) + 1e-6
    a /= a.sum(axis=0)
    sign = np.where(np.arange(components) < components // 2, 1.0, -1.0)
    d = rng.standard_normal((n_rows, 1))
    x = rng.gamma(0.5, 1.0, (n_rows, components)) * np.exp(1.5 * d * sign)
    x *= size / x.sum(axis=1, keepdims=True)
    return rng.poisson(x @ a.T), a, sign
