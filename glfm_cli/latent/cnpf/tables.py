"""What rows share (`Globals`), and the tables that a pass over rows derives from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import psi

from glfm_cli._kernels import _cnpf
from glfm_cli.arrays import Array
from glfm_cli.latent.blocks import HERE
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts, Missing

NODES = 20  # of the quadrature of the softplus link
NONE = np.empty(0)


@dataclass
class Globals:
    """Point estimates and q of everything that the rows share.

    w : (T,) weights;  c : their rate;  l : (T, D) locations, D = 0 without
    A : (I, T) gamma shapes of q(a), or Dirichlet parameters of topics
    B : (T,) gamma rates, or the sums of A over columns of a topic model
    own_B : (k, T) rates of the columns that have missing pairs
    column_rate : bh, prior rate of a
    """

    w: Array
    c: float
    l: Array  # noqa: E741
    A: Array
    B: Array
    own_B: Array
    column_rate: float

    def copy(self) -> Globals:
        """Return a copy that shares no memory."""
        arrays = (self.w.copy(), self.c, self.l.copy(), self.A.copy(), self.B.copy())
        return Globals(*arrays, self.own_B.copy(), self.column_rate)

    def mean(self, missing: Missing) -> Array:
        """Return E a (I, T)."""
        mean: Array = self.A / self.B
        mean[missing.units] = self.A[missing.units] / self.own_B
        return mean

    def log_mean(self, missing: Missing, topics: bool) -> Array:
        """Return E log a (I, T)."""
        log_mean: Array = psi(self.A)
        base = log_mean[missing.units]
        log_mean -= psi(self.B) if topics else np.log(self.B)
        log_mean[missing.units] = base - np.log(self.own_B)
        return log_mean


@dataclass(frozen=True)
class Tables:
    """Arrays that the kernels read, components padded with zeros to K.

    a : (I, K) exp(E log a), or E a for the mean step
    w : (K,);  loadings : (F, K) lt;  products : (J, K) of pairs of them;  prior : (F,) P
    S : (K,) sum of E a over columns, 1 beyond T
    own : (k, K) those of rows with missing pairs;  at : (U,) their numbers, see `Missing`
    node, weight : of the softplus link's quadrature, in units of the sd; empty: exp link
    """

    config: CnpfConfig
    a: Array
    w: Array
    loadings: Array
    products: Array
    prior: Array
    S: Array
    own: Array
    at: Array
    node: Array
    weight: Array

    @property
    def exposures(self) -> tuple[Array, Array, Array]:
        """S, own and at, as the kernels take them."""
        return self.S, self.own, self.at

    @property
    def link(self) -> tuple[Array, Array]:
        """The quadrature."""
        return self.node, self.weight


def padded(values: Array, fill: float = 0.0) -> Array:
    """Return an array (.., T) with its last axis filled up to a multiple of the kernels' width."""
    T = values.shape[-1]
    out = np.full((*values.shape[:-1], -(-T // _cnpf.PAD) * _cnpf.PAD), fill)
    out[..., :T] = values
    return out


def columns_of(config: CnpfConfig, counts: Counts) -> Missing:
    """Return the missing pairs that columns have rates of their own for: none in a topic model."""
    return Missing.of(HERE, HERE, 0, 0) if config.topics else counts.missing_columns


def prior_precision(config: CnpfConfig) -> Array:
    """Return P (F,), the prior precisions of the free coordinates of v."""
    prior = np.ones(config.n_free)
    prior[config.n_locations :] = 1.0 / config.size_variance
    return prior


def tables_of(
    config: CnpfConfig, shared: Globals, counts: Counts, columns: Missing, mean_step: bool = False
) -> Tables:
    """Return the tables of some rows; `columns` are the missing pairs that the fit has."""
    mean = shared.mean(columns)
    a = mean if mean_step else np.exp(shared.log_mean(columns, config.topics))
    S = padded(mean.sum(axis=0), 1.0)
    lists = counts.missing_rows
    own = np.empty((lists.seen.size, S.size))
    if lists.seen.size:
        ends = (lists.indptr, lists.index, lists.seen)
        _cnpf.fill_exposures(0, lists.seen.size, *ends, S, padded(mean), own)
    node, weight = NONE, NONE
    if config.inverse_link == "softplus":
        node, weight = np.polynomial.hermite_e.hermegauss(NODES)
        weight /= weight.sum()
    loadings = loadings_of(config, shared.l)
    return Tables(
        config=config,
        a=padded(a),
        w=padded(shared.w),
        loadings=loadings,
        products=products_of(loadings),
        prior=prior_precision(config),
        S=S,
        own=own,
        at=lists.at if lists.seen.size else HERE,
        node=node,
        weight=weight,
    )


def loadings_of(config: CnpfConfig, locations: Array) -> Array:
    """Return lt (F, K), the locations and a one for the row's size."""
    lt = np.ones((config.n_free, locations.shape[0]))
    lt[: config.n_locations] = locations.T
    return padded(lt)


def products_of(loadings: Array) -> Array:
    """Return the products (J, K) of pairs of loadings, in the kernels' order."""
    i, j = np.tril_indices(loadings.shape[0])
    return np.ascontiguousarray(loadings[i] * loadings[j])
