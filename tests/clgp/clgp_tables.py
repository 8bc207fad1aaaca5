"""Tables, parameters and blocks that the tests of the latent Gaussian process share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm_cli.latent.clgp.blocks import RowBlock
from glfm_cli.latent.clgp.bound import (
    EvaluatedBlock,
    RowsGradient,
    bound_of_rows,
    bound_of_shared,
    evaluate,
    gradient,
)
from glfm_cli.latent.clgp.features import Inducing
from glfm_cli.latent.clgp.parameters import Places, Shared
from glfm_cli.latent.clgp.table import ColumnKind, ObservedTable

Array = NDArray[Any]

NUMBER = ColumnKind("number")
KINDS = (
    NUMBER,
    NUMBER,  # intervals
    ColumnKind("ordered", 4),
    ColumnKind("levels", 3),
    ColumnKind("levels", 2),
)


def mixed_table(rng: np.random.Generator, n_rows: int, missing: float = 0.2) -> ObservedTable:
    """Return a table of every kind of column, with intervals that have open ends."""
    lower = rng.normal(size=(len(KINDS), n_rows))
    upper = lower.copy()
    upper[1] += rng.gamma(1.0, size=n_rows)
    lower[1, ::5], upper[1, 1::5] = -np.inf, np.inf
    for d, n_levels in ((2, 4), (3, 3), (4, 2)):
        lower[d] = upper[d] = rng.integers(0, n_levels, n_rows)
    gap = rng.random(lower.shape) < missing
    lower[gap] = upper[gap] = np.nan
    return ObservedTable(KINDS, lower, upper)


def number_table(y: Array) -> ObservedTable:
    """Return a table of points (N, D)."""
    lower = np.ascontiguousarray(y.T)
    return ObservedTable((NUMBER,) * y.shape[1], lower, lower.copy())


def planted_table(rng: np.random.Generator, n_rows: int) -> tuple[ObservedTable, Array]:
    """Return columns that follow one curve, a quarter hidden, and the complete numbers (N, 6)."""
    angle = rng.uniform(-2.5, 2.5, n_rows)
    curve = np.stack([np.sin((1.0 + 0.3 * d) * angle + d) for d in range(6)], axis=1)
    y = (curve - curve.mean(axis=0)) / curve.std(axis=0) + 0.1 * rng.normal(size=curve.shape)
    hidden = np.where(rng.random(y.shape) < 0.25, np.nan, y)
    return number_table(hidden), y


def random_shared(
    rng: np.random.Generator, table: ObservedTable, Q: int, M: int, linear: bool
) -> Shared:
    """Return parameters away from every special value."""
    slots = table.slots
    S, P = slots.n_latent, M + Q * linear
    steps = 0.3 * rng.normal(size=slots.n_thresholds)
    return Shared(
        Z=rng.normal(size=(M, Q)),
        log_ell=0.3 * rng.normal(size=Q),
        log_rho=np.array(0.2 if M and linear else 0.0),
        log_a=0.3 * rng.normal(size=S),
        b=0.3 * rng.normal(size=S) * slots.has_intercept,
        log_noise=(np.log(0.3) + 0.2 * rng.normal(size=len(slots.kinds))) * slots.has_noise,
        steps=steps,
        mu=rng.normal(size=(P, S)),
        log_c=0.3 * rng.normal(size=(S, P)) - 0.5,
        V=np.linalg.qr(rng.normal(size=(P, P)))[0],
    )


def random_places(rng: np.random.Generator, n_rows: int, Q: int) -> Places:
    """Return places away from the prior."""
    return Places(rng.normal(size=(n_rows, Q)), -0.5 * rng.random((n_rows, Q)) - 0.5)


def blocks_of(
    rng: np.random.Generator,
    table: ObservedTable,
    Q: int,
    samples: int = 3,
    category_samples: int = 4,
    cuts: tuple[int, ...] = (),
) -> list[RowBlock]:
    """Return the table's rows in blocks that end at the cuts, with normals."""
    parts = np.split(np.arange(table.n_rows), cuts)
    return [RowBlock.drawn(table, rows, samples, category_samples, Q, rng) for rows in parts]


def looked(
    blocks: list[RowBlock], places: Places, shared: Shared, table: ObservedTable
) -> list[EvaluatedBlock]:
    return evaluate(blocks, places, shared, table.slots, Inducing.of(shared), None)


def bound(blocks: list[RowBlock], places: Places, shared: Shared, table: ObservedTable) -> float:
    """Return the bound of a whole table."""
    return bound_of_rows(looked(blocks, places, shared, table), places) + bound_of_shared(
        shared, table.slots
    )


def gradient_of(
    blocks: list[RowBlock], places: Places, shared: Shared, table: ObservedTable, **options: Any
) -> tuple[RowsGradient, dict[str, Array]]:
    """Return the gradient of the bound of a whole table."""
    inducing = Inducing.of(shared)
    seen = evaluate(blocks, places, shared, table.slots, inducing, None)
    return gradient(seen, places, shared, table.slots, inducing, **options)


def differences(value: Callable[[], float], x: Array, step: float = 1e-5) -> Array:
    """Return the central differences of a function of an array that it sees change."""
    out = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        kept = x[i]
        x[i] = kept + step
        above = value()
        x[i] = kept - step
        out[i] = (above - value()) / (2.0 * step)
        x[i] = kept
    return out
