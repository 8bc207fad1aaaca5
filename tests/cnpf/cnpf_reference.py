"""The bound of the Poisson factorization written out, term by term, on dense arrays.

Nothing here is shared with the kernels: shares phi (U, I, T) are held, q(x) is given, and the
expectations of the softplus link are quadratures of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, psi

from glfm_cli.latent.blocks import thread_pool
from glfm_cli.latent.cnpf.config import CnpfConfig
from glfm_cli.latent.cnpf.counts import Counts
from glfm_cli.latent.cnpf.rows import Rows, exposures, visit_rows
from glfm_cli.latent.cnpf.starts import start_rows, start_shared
from glfm_cli.latent.cnpf.tables import Globals, Tables, columns_of, tables_of

Array = NDArray[np.float64]
MODELS = {
    "hgp": {"scaled": False},
    "scaled": {"correlated": False},
    "exp": {},
    "softplus": {"inverse_link": "softplus"},
    "diln": {"likelihood": "topics"},
}
NODE, WEIGHT = np.polynomial.hermite_e.hermegauss(80)
WEIGHT = WEIGHT / WEIGHT.sum()


@dataclass(frozen=True)
class Q:
    """Everything that the bound depends on, and the data.

    y, mask : (U, I), mask 0 where a pair is missing;  phi : (U, I, T)
    ax, bx : (U, T) of q(x);  m : (U, F);  cov : (U, F, F)
    xi : (U,) of a topic model
    A : (I, T);  B : (I, T) rates of q(a)
    """

    y: Array
    mask: Array
    phi: Array
    ax: Array
    bx: Array
    m: Array
    cov: Array
    xi: Array
    w: Array
    c: float
    l: Array  # noqa: E741
    A: Array
    B: Array


def problem(
    name: str, seed: int, *, missing: bool = False, **settings: object
) -> tuple[CnpfConfig, Counts]:
    """Return a random problem of one of the models."""
    rng = np.random.default_rng(seed)
    U, I = int(rng.integers(2, 25)), int(rng.integers(2, 15))  # noqa: E741
    options: dict[str, object] = {
        "components": int(rng.integers(1, 10)),
        "dimensions": int(rng.integers(1, 4)),
        "column_shape": float(rng.choice([0.05, 0.5, 2.0])),
        "location_variance": float(rng.choice([0.1, 0.5])),
        "size_variance": float(rng.choice([0.5, 2.0])),
        "free_pass": 2,
        "passes": 6,
        "merge_every": 0,
    }
    config = CnpfConfig(**(options | MODELS[name] | settings))  # type: ignore[arg-type]
    y = rng.poisson(rng.gamma(0.4, 4.0, size=(U, I)) * rng.gamma(1.0, 1.0, size=(U, 1)))
    return config, counts_of(y, rng.random((U, I)) < 0.2 if missing else None)


def counts_of(y: Array, missing: Array | None = None, threads: int = 1) -> Counts:
    """Return a dense matrix of counts, some of its pairs missing."""
    y = np.where(missing, 0, y) if missing is not None else y
    row, column = np.nonzero(y)
    lost = np.nonzero(missing) if missing is not None else None
    pair = None if lost is None else (lost[0], lost[1])
    return Counts.of(row, column, y[row, column], y.shape, pair, threads)


def dense(counts: Counts) -> tuple[Array, Array]:
    """Return y and the mask, dense."""
    y = np.zeros(counts.shape)
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.rows.indptr))
    y[row, counts.rows.index] = counts.count
    mask = np.ones(counts.shape)
    lists = counts.missing_rows
    for k, u in enumerate(lists.units):
        listed = lists.index[lists.indptr[k] : lists.indptr[k + 1]]
        mask[u] = float(1 - lists.seen[k])
        mask[u, listed] = float(lists.seen[k])
    return y, mask


def begin(config: CnpfConfig, counts: Counts, seed: int) -> tuple[Globals, Rows]:
    """Return a start with rows that differ."""
    rng = np.random.default_rng(seed)
    shared, rows = start_shared(config, counts, rng), start_rows(config, counts, rng)
    rows.m[:] = 0.3 * rng.standard_normal(rows.m.shape)
    return shared, rows


def full_covariance(config: CnpfConfig, packed: Array) -> Array:
    """Return covariances (U, F, F) from what rows hold of them."""
    F = config.n_free
    out = np.zeros((packed.shape[0], F, F))
    i, j = (np.arange(F),) * 2 if config.diagonal else np.tril_indices(F)
    out[:, i, j] = out[:, j, i] = packed
    return out


def q_of(config: CnpfConfig, shared: Globals, rows: Rows, counts: Counts, tables: Tables) -> Q:
    """Return q after a visit of the rows with these tables; q(x) is the optimal one."""
    T, topics = config.components, config.topics
    y, mask = dense(counts)
    phi = rows.x[:, None, :T] * tables.a[None, :, :T]
    phi /= phi.sum(axis=2, keepdims=True)
    S = exposures(rows, tables)[:, :T]
    B = np.repeat(shared.B[None, :], counts.shape[1], axis=0)
    lists = columns_of(config, counts)
    B[lists.units] = shared.own_B
    n = rows.n[:, :T]
    with np.errstate(divide="ignore", invalid="ignore"):
        xi = y.sum(axis=1) / rows.g if topics else np.zeros(0)
    return Q(
        y=y,
        mask=np.ones_like(mask) if topics else mask,
        phi=phi,
        ax=shared.w + n,
        bx=rows.rho[:, :T] + S,
        m=rows.m.copy(),
        cov=full_covariance(config, rows.cov),
        xi=np.where(y.sum(axis=1) > 0, xi, 1.0) if topics else xi,
        w=shared.w.copy(),
        c=shared.c,
        l=shared.l.copy(),
        A=shared.A.copy(),
        B=B,
    )


def rates_of(config: CnpfConfig, q: Q) -> tuple[Array, Array]:
    """Return E log r and E r, (U, T)."""
    lt = np.ones((q.w.size, config.n_free))
    lt[:, : config.n_locations] = q.l
    mean = q.m @ lt.T
    var = np.einsum("kf,ufg,kg->uk", lt, q.cov, lt)
    if config.inverse_link == "exp":
        return -mean, np.exp(-mean + var / 2)
    g = mean[..., None] + np.sqrt(var)[..., None] * NODE
    softplus = np.logaddexp(0.0, g)
    return -np.log(softplus) @ WEIGHT, (1.0 / softplus) @ WEIGHT


def full_bound(config: CnpfConfig, q: Q, column_rate: float) -> float:
    """Return the lower bound, every term."""
    T, D, F = config.components, config.n_locations, config.n_free
    shape, ah, sl2 = config.concentration / T, config.column_shape, config.location_variance
    P = np.diag(np.r_[np.ones(D), np.full(F - D, 1.0 / config.size_variance)])
    total = T * (shape * np.log(q.c) - gammaln(shape)) + shape * np.log(q.w).sum()
    total += -q.c * q.w.sum() + config.rate_shape * np.log(q.c) - config.rate_rate * q.c
    total += -(q.l**2).sum() / (2 * sl2) - T * D / 2 * np.log(2 * np.pi * sl2)
    for m, cov in zip(q.m, q.cov, strict=True):
        logdets = np.linalg.slogdet(cov)[1] + np.linalg.slogdet(P)[1]
        total += 0.5 * (-m @ P @ m - np.trace(P @ cov) + logdets + F)
    log_r, rho = rates_of(config, q)
    ex, elx = q.ax / q.bx, psi(q.ax) - np.log(q.bx)
    total += (q.w * log_r - gammaln(q.w) + (q.w - 1) * elx - rho * ex).sum()
    total += (q.ax - np.log(q.bx) + gammaln(q.ax) + (1 - q.ax) * psi(q.ax)).sum()
    A, B = q.A, q.B
    if config.topics:
        ela = psi(A) - psi(A.sum(axis=0))
        N = q.y.sum(axis=1)
        total += T * (gammaln(A.shape[0] * ah) - A.shape[0] * gammaln(ah))
        total += -gammaln(A.sum(axis=0)).sum() + (gammaln(A) + (ah - A) * ela).sum()
        terms = N * (np.log(q.xi) + (ex.sum(axis=1) - q.xi) / q.xi)
        total += gammaln(N + 1).sum() - terms.sum()
    else:
        ela = psi(A) - np.log(B)
        total += (ah * np.log(column_rate) - gammaln(ah) + (ah - 1) * ela).sum()
        total += (-column_rate * A / B + A - np.log(B) + gammaln(A) + (1 - A) * psi(A)).sum()
        total -= np.einsum("uk,ik,ui->", ex, A / B, q.mask)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_phi = np.where(q.phi > 0, np.log(q.phi), 0.0)
    inner = (q.phi * (elx[:, None, :] + ela[None] - log_phi)).sum(axis=2)
    return float(total + (q.y * inner - gammaln(q.y + 1)).sum())


def slope(config: CnpfConfig, q: Q, rate: float, name: str, direction: Array, size: float) -> float:
    """Return the central difference of the bound along a direction in one of q's arrays."""

    def at(t: float) -> float:
        value = getattr(q, name)
        return full_bound(config, replace(q, **{name: value + t * direction}), rate)

    return (at(size) - at(-size)) / (2 * size)


def after_visit(
    config: CnpfConfig, shared: Globals, rows: Rows, counts: Counts
) -> tuple[Tables, Q]:
    """Visit the rows once in one thread; return the tables and q."""
    tables = tables_of(config, shared, counts, columns_of(config, counts))
    with thread_pool(1) as each:
        visit_rows(rows, counts, tables, each, 1)
    return tables, q_of(config, shared, rows, counts, tables)
