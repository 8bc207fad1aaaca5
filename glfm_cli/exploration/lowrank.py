"""What the draws of a low-rank model say of a matrix: its rank, its components, its covariates.

Components of a draw have no order and no sign, and those of two draws need not match. What can be
averaged is the matrix itself: the components shown are the singular vectors of the mean over draws
of its low-rank part,

    M = mean of U (s V)' = sum over c of size_c sqrt(I J) u_c v_c'

and what a draw says of component c is its own part along u_c and v_c: the size u_c' X_t v_c,
scores X_t v_c of rows and X_t' u_c of columns. Scores are scaled so that their mean square over
rows, or columns, is 1; sizes are root mean squares over the whole matrix, on the latent scale.
What covariates say of U and V is part of them here; of the variance it is told apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import UsageError
from glfm_cli.exploration.goes_with import TAIL, Amount, GoesWith, Support, goes_with
from glfm_cli.inference.posterior import Posterior
from glfm_cli.latent import MODELS
from glfm_cli.latent.capabilities import Components, Parts
from glfm_cli.latent.model import LatentModel, gaussian

MOST_VECTORS = 600  # of all draws together, from which the mean matrix is decomposed


@dataclass(frozen=True)
class Component:
    """One component of the mean of the low-rank part.

    size : root mean square of its cells;  size_sd : over draws
    share : of the mean square of the mean low-rank part
    rows, columns : (I,) and (J,) scores, mean square 1;  rows_sd, columns_sd : over draws
    goes_with : correlations of scores with covariates, over units by their observed cells; those
        surest not to be 0 first
    """

    name: str
    size: float
    size_sd: float
    share: float
    rows: Array
    rows_sd: Array
    columns: Array
    columns_sd: Array
    goes_with: tuple[GoesWith, ...] = ()

    @property
    def sure(self) -> bool:
        """True when its size is surely above 0: that of what draws do not share is not."""
        return self.size > 2.0 * self.size_sd


LowRank = tuple[Array, Array]


@dataclass(frozen=True)
class CovariateEffect:
    """What one unit (a standard deviation) of a covariate does to x.

    side : "row" or "column", whose covariate it is
    mean : over the units of the other side;  spread : standard deviation over these
    """

    side: str
    name: str
    mean: Amount
    spread: Amount


def component_model(model: LatentModel) -> Components:
    """Return the model as one with components.

    Raises UsageError: it has none.
    """
    if not isinstance(model, Components):
        able = [name for name, one in MODELS.items() if isinstance(one, Components)]
        raise UsageError(
            f"the model '{model.name}' has no components to explore",
            hint=f"Use a model that has them: --model {' or '.join(able)}.",
        )
    return cast(Components, model)


def low_rank(posterior: Posterior) -> list[LowRank]:
    """Return U (I, K) and s V (J, K) of every draw, chain by chain."""
    model = component_model(posterior.model)
    return [model.low_rank(draw.latent) for draw in posterior.draws()]


def ranks(posterior: Posterior) -> list[Array]:
    """Return the number of components of every draw, an array for each chain."""
    model = component_model(posterior.model)
    return [
        np.array([model.parts(draw.latent).U.shape[1] for draw in chain])
        for chain in posterior.chains
    ]


def components(
    draws: Sequence[LowRank],
    most: int,
    direction: Array | None = None,
    support: tuple[Support, Support] | None = None,
) -> list[Component]:
    """Return the largest components of the mean of the low-rank part.

    `support` is that of rows and of columns. `direction` (J,), of +1 and -1, turns columns whose
    latent scale runs against their values.
    O((I + J) n^2) for n vectors of the draws that are used, at most 600.
    """
    kept = _thinned(draws)
    left = np.concatenate([U for U, _ in kept], axis=1)
    right = np.concatenate([sV for _, sV in kept], axis=1) / len(kept)
    if left.shape[1] == 0:
        return []
    (q_left, r_left), (q_right, r_right) = np.linalg.qr(left), np.linalg.qr(right)
    a, values, b = np.linalg.svd(r_left @ r_right.T)
    n_rows, n_columns = left.shape[0], right.shape[0]
    total = float(np.sum(values**2))
    upward = np.ones(n_columns) if direction is None else direction
    found, vectors = [], []
    for c in range(min(most, int(np.sum(values > 1e-9 * values[0])))):
        u, v = q_left @ a[:, c], q_right @ b[c]
        largest = int(np.argmax(np.abs(v)))
        if upward[largest] * v[largest] < 0.0:
            u, v = -u, -v
        rows, columns, sizes = _scores(kept, u, v, float(values[c]))
        vectors.append((u, v))
        found.append(
            Component(
                name=f"C{c + 1}",
                size=float(values[c]) / np.sqrt(n_rows * n_columns),
                size_sd=float(sizes.std()) / np.sqrt(n_rows * n_columns),
                share=float(values[c]) ** 2 / total,
                rows=u * np.sqrt(n_rows),
                rows_sd=rows * np.sqrt(n_rows),
                columns=upward * v * np.sqrt(n_columns),
                columns_sd=columns * np.sqrt(n_columns),
            )
        )
    if support is None:
        return found
    known = goes_with(kept, vectors, support)
    return [replace(c, goes_with=of) for c, of in zip(found, known, strict=True)]


def _thinned(draws: Sequence[LowRank]) -> list[LowRank]:
    """Return evenly spaced draws whose components are at most 600 in all, but one at least."""
    total = sum(U.shape[1] for U, _ in draws)
    n = max(1, min(len(draws), int(len(draws) * MOST_VECTORS / max(total, 1))))
    return [draws[i] for i in np.linspace(0, len(draws) - 1, n).round().astype(int)]


def _scores(
    draws: Sequence[LowRank], u: Array, v: Array, value: float
) -> tuple[Array, Array, Array]:
    """Return the sd over draws of X_t v / value (I,), of X_t' u / value (J,), and u' X_t v (T,)."""
    first, second = np.zeros((2, u.size)), np.zeros((2, v.size))
    sizes = np.empty(len(draws))
    for t, (U, sV) in enumerate(draws):
        row = U @ (sV.T @ v) / value - u
        column = sV @ (U.T @ u) / value - v
        first += [row, row**2]
        second += [column, column**2]
        sizes[t] = value * (1.0 + u @ row)
    sds = [
        np.sqrt(np.maximum(s[1] / len(draws) - (s[0] / len(draws)) ** 2, 0.0))
        for s in (first, second)
    ]
    return sds[0], sds[1], sizes


def variance(posterior: Posterior, draws: Sequence[Parts], bias: bool) -> list[Amount]:
    """Return the parts of the variance of a matrix's pseudo-observations, as shares of their sum.

    Each part counts with the mean square over all cells, observed or not, of what it adds to x.
    """
    first, model = int(bias), component_model(posterior.model)
    found: dict[str, list[float]] = {}
    for part, draw in zip(draws, posterior.draws(), strict=True):
        n_cells = part.U.shape[0] * part.sV.shape[0]
        terms = {
            "components": _square(part.U, part.sV) / n_cells,
            "intercepts of columns": float(np.var(part.G_R[:, 0])) if bias else 0.0,
            "intercepts of rows": float(np.var(part.G_C[:, 0])) if bias else 0.0,
            "slopes of rows": _square(part.slope, part.level) / n_cells,
            "features of rows": _square(part.R[:, first:], part.G_R[:, first:]) / n_cells,
            "features of columns": _square(part.G_C[:, first:], part.C[:, first:]) / n_cells,
            "noise": float(np.mean(model.noise_of_rows(draw.latent, np.arange(part.U.shape[0])))),
        }
        total = sum(terms.values())
        for name, value in terms.items():
            found.setdefault(name, []).append(value / total)
    return [
        Amount.of(name, np.array(shares))
        for name, shares in found.items()
        if name in ("components", "noise") or max(shares) > 0.0
    ]


def _square(a: Array, b: Array) -> float:
    """Return the sum of squares of a b'."""
    return float(np.sum((a.T @ a) * (b.T @ b)))


def explained(posterior: Posterior, draws: Sequence[Parts]) -> list[tuple[float, float, float]]:
    """Return, of every latent column of a table, what the columns beside it tell of its variance.

    Mean and middle 95 % over draws of the squared multiple correlation that the components give it
    with the latent columns of all other columns: a component of one column alone tells nothing,
    for it cannot be told from noise. O(J K^2) a draw.
    """
    owner = np.concatenate(
        [np.full(end - start, d) for d, (start, end) in enumerate(posterior.spans)]
    ).astype(np.intp)
    noises = (gaussian(posterior.model).noise(draw.latent)[owner] for draw in posterior.draws())
    every = np.array(
        [
            told_by_others(part.U, part.sV, noise, posterior.spans)
            for part, noise in zip(draws, noises, strict=True)
        ]
    )
    lower, upper = np.quantile(every, TAIL, axis=0)
    return [
        (float(mean), float(low), float(high))
        for mean, low, high in zip(every.mean(axis=0), lower, upper, strict=True)
    ]


def told_by_others(U: Array, sV: Array, noise: Array, spans: Sequence[tuple[int, int]]) -> Array:
    """Return the squared multiple correlations (J,) of one draw.

    U : (I, K);  sV : (J, K);  noise : (J,) what is of latent columns alone;  spans : of columns

    With x ~ N(0, S = L L' + D) and B the latent columns of one column, x_B given all others has
    covariance (inverse of S)_BB, inverted.
    """
    told, k = np.zeros(noise.size), U.shape[1]
    if k == 0:
        return told
    values, vectors = np.linalg.eigh(np.atleast_2d(np.cov(U, rowvar=False, bias=True)))
    L = sV @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    scaled = L / noise[:, None]
    middle = np.linalg.inv(np.eye(k) + L.T @ scaled)
    for start, end in spans:
        own = slice(start, end)
        precision = np.diag(1.0 / noise[own]) - scaled[own] @ middle @ scaled[own].T
        left = np.diagonal(np.linalg.inv(precision))
        told[own] = 1.0 - left / (np.sum(L[own] ** 2, axis=1) + noise[own])
    return told


def effects(
    draws: Sequence[Parts], covariates: tuple[tuple[str, ...], tuple[str, ...]], bias: bool
) -> list[CovariateEffect]:
    """Return what the covariates of rows and of columns do, the intercepts left out."""
    found = []
    for side, names in zip(("row", "column"), covariates, strict=True):
        for i, name in enumerate(names):
            place = i + int(bias)
            of = [(part.G_R if side == "row" else part.G_C)[:, place] for part in draws]
            mean = np.array([g.mean() for g in of])
            spread = np.array([g.std() for g in of])
            parts = Amount.of("mean", mean), Amount.of("spread", spread)
            found.append(CovariateEffect(side, name, *parts))
    return found
