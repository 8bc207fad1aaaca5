"""A snapshot of a fit: what rows share, and the gamma laws of the rows' weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import HERE
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.correlations import Correlations, count_correlations
from glfm_cli.latent.cnpf.counts import Missing
from glfm_cli.latent.cnpf.rows import Rows, exposures
from glfm_cli.latent.cnpf.state import load_shared
from glfm_cli.latent.cnpf.tables import Globals, Tables
from glfm_cli.latent.model import Sizes, take

TINY = 1e-300
GREATEST = 64.0  # by which the weights may be multiplied for new rows

Excess = tuple[float, float]


@dataclass(frozen=True)
class CnpfDraw:
    """What is predicted from: q(x) and q(a).

    shared : q(a), weights and locations;  columns : the columns' missing pairs in the fit
    shape, rate : (U, T) of q(x_uk)
    size : (U,) by which the rates of rows are multiplied, 1 but in a topic model
    tau : by which the weights are multiplied for new rows
    excess : e and f, of the variance of the factor that a cell has of its own, see `excess`
    """

    shared: Globals
    columns: Missing
    shape: Array
    rate: Array
    size: Array
    tau: float = 1.0
    excess: Excess = (0.0, 0.0)

    @property
    def mean_x(self) -> Array:
        """E x (U, T)."""
        mean: Array = self.shape / self.rate
        return mean

    @property
    def mean_a(self) -> Array:
        """E a (I, T)."""
        return self.shared.mean(self.columns)

    def correlations(self) -> Correlations:
        """Return how the components go together in rows; 0 without locations."""
        if not self.shared.l.any():
            nothing = np.zeros((self.shared.l.shape[0],) * 2)
            return Correlations(nothing, nothing + np.inf)
        return count_correlations(self.mean_x * self.size[:, None] * self.mean_a.sum(axis=0))

    def pack(self) -> dict[str, Array]:
        """Return it as named arrays."""
        s = self.shared
        return {
            "w": s.w,
            "c": np.array(s.c),
            "l": s.l,
            "A": s.A,
            "B": s.B,
            "own_B": s.own_B,
            "own": self.columns.units.astype(np.int64),
            "column_rate": np.array(s.column_rate),
            "x_shape": self.shape,
            "x_rate": self.rate,
            "x_size": self.size,
            "tau": np.array(self.tau),
            "excess": np.array(self.excess),
        }

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], sizes: Sizes) -> CnpfDraw:
        """Return what `pack` gave; ValueError, with a phrase, when it is no such snapshot.

        The columns' missing pairs themselves are not kept: only which columns have a rate of their
        own.
        """
        own = take(arrays, "own", np.int64, (None,))
        T, D = (array.shape[-1] for array in (_matrix(arrays, "A"), _matrix(arrays, "l")))
        if own.size and (own[0] < 0 or own[-1] >= sizes.latent or np.any(np.diff(own) <= 0)):
            raise ValueError("'own' is not an ascending list of columns")
        shared = load_shared(arrays, (T, D), sizes.latent, own.size)
        law = [take(arrays, name, np.float64, (sizes.rows, T)) for name in ("x_shape", "x_rate")]
        size = take(arrays, "x_size", np.float64, (sizes.rows,))
        tau = float(take(arrays, "tau", np.float64, ()))
        if not all(np.all(part > 0.0) for part in law) or not 0.0 < tau <= GREATEST:
            raise ValueError("'x_shape', 'x_rate' or 'tau' is out of range")
        if "excess" in arrays and not arrays["excess"].ndim:  # of before there was f
            arrays = {**arrays, "excess": np.append(take(arrays, "excess", np.float64, ()), 0.0)}
        e, f = take(arrays, "excess", np.float64, (2,)).tolist()
        if np.any(size < 0.0) or e < 0.0 or f < 0.0:
            raise ValueError("'x_size' or 'excess' is below 0")
        columns = columns_with_rates(own, sizes.latent)
        return cls(shared, columns, law[0], law[1], size, tau, (e, f))

    def with_rows(self, more: CnpfDraw) -> CnpfDraw:
        """Return the draw with other rows behind its own."""
        shape, rate, size = (
            np.concatenate([getattr(one, name) for one in (self, more)])
            for name in ("shape", "rate", "size")
        )
        return replace(self, shape=shape, rate=rate, size=size)


def factor_variance(mean: Array, excess: Excess) -> Array:
    """Return the variances of the factors of cells with rates of some means: e / sqrt(mean) + f."""
    e, f = excess
    out: Array = e / np.sqrt(np.maximum(mean, TINY)) + f
    return out


def widened(mean: Array, var: Array, excess: Excess) -> Array:
    """Return the variance of rates of some mean and variance, times their cells' factors."""
    factor = factor_variance(mean, excess)
    out: Array = var * (1.0 + factor) + factor * mean**2
    return out


def _matrix(arrays: Mapping[str, Array], name: str) -> Array:
    """Return an array of two dimensions; ValueError when it is none."""
    return take(arrays, name, np.float64, (None, None))


def columns_with_rates(own: Array, n_columns: int) -> Missing:
    """Return missing pairs of which nothing but their columns is known."""
    if not own.size:
        return Missing.of(HERE, HERE, 0, 0)
    at = np.full(n_columns, -1, dtype=np.int32)
    at[own] = np.arange(own.size)
    nothing = np.zeros(own.size + 1, np.int64), HERE, np.zeros(own.size, np.uint8)
    return Missing(at, *nothing)


def draw_of(
    config: CnpfConfig,
    shared: Globals,
    columns: Missing,
    rows: Rows,
    tables: Tables,
    totals: Array,
    tau: float = 1.0,
) -> CnpfDraw:
    """Return the snapshot of rows as last visited with `tables`; `totals` (U,) of their counts."""
    T = config.components
    # Shapes stay above 0 where a component without counts has hardly any weight.
    shape = np.maximum(tables.w[:T] + rows.n[:, :T], 1e-12)
    rate = (rows.rho + exposures(rows, tables))[:, :T]
    size = totals / (shape / rate).sum(axis=1) if config.topics else np.ones(totals.size)
    return CnpfDraw(shared.copy(), columns, shape, rate, size, tau)
