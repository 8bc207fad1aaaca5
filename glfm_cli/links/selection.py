"""Numbers that are missing by their own value: a probit model of missingness beside a link.

    P(seen | y) = (1 - c) Phi(a + b y)         a, b ~ N(0, PRIOR_SD^2),  c ~ Beta(1, 9)

y is the latent number of a cell, whose mean eta the latent model knows: what is not seen is low
where b > 0, high where b < 0, and missing at random where b = 0 or the cell is one of the share c
that is lost whatever its value. The selection model of [Heckman 1979] with a probit for dropouts as
in [Ahlmann-Eltze and Anders 2019]; one curve a column.

Drawn with w ~ N(a + b y, 1), above 0 where a cell is seen and below where it is lost by its value
[Albert and Chib 1993], its scale moved along [Liu and Wu 1999]. A missing cell is drawn with its w:
both are normal given eta. A cell that was hidden for a test, x NaN, tells nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from scipy.special import log_ndtr, ndtri

from glfm_cli._kernels._variates import fill_truncated_normal
from glfm_cli.arrays import Array
from glfm_cli.links.constants import take
from glfm_cli.links.law import CellLaw, Normal, of_latent, one_number
from glfm_cli.links.numeric import NumericLink
from glfm_cli.links.observation import Params
from glfm_cli.links.positive import PositiveLink
from glfm_cli.links.real import RealLink
from glfm_cli.schema import Column

if TYPE_CHECKING:
    _Base = NumericLink
else:
    _Base = object

PRIOR_SD = 3.0  # of a and b; y of observed cells has variance 1
ALWAYS_SEEN, LOST = 9.0, 1.0  # the beta prior of c
N_SUMS = 7


def unseen_rows(x: Array) -> Array:
    """Return the rows of cells (n, 2) that are missing by their value: any number could be there.
    """
    return np.flatnonzero((x[:, 0] == -np.inf) & (x[:, 1] == np.inf))


def log_missing(eta: Array, var: Array | float, curve: Array) -> Array:
    """Return log P(missing), y ~ N(eta, var) integrated out."""
    a, b, c = curve
    lost = log_ndtr(-(a + b * eta) / np.sqrt(1.0 + b * b * var))
    return np.asarray(np.logaddexp(np.log(c), np.log1p(-c) + lost))


def draw_unseen(
    eta: Array, var: Array | float, curve: Array, rng: Generator
) -> tuple[Array, Array, Array]:
    """Return y (n,) of missing cells, which are lost by their value, and their w, 0 elsewhere.

    Lost at random with probability c / P(missing), else w ~ N(a + b eta, 1 + b^2 var) below 0;
    y | w is normal.
    """
    a, b, c = curve
    total = 1.0 + b * b * var
    sd, mean = np.broadcast_to(np.sqrt(total), eta.shape), a + b * eta
    by_value = np.log(rng.random(eta.size)) >= np.log(c) - log_missing(eta, var, curve)
    t = np.empty(eta.size)
    ends = np.full(eta.size, -np.inf), np.ascontiguousarray(-mean / sd)
    fill_truncated_normal(np.zeros(eta.size), 1.0, *ends, rng, t)
    away = sd * t
    shift = np.where(by_value, b * var / total * away, 0.0)
    left = np.where(by_value, var / total, var)
    y = eta + shift + np.sqrt(left) * rng.standard_normal(eta.size)
    return y, by_value, np.where(by_value, mean + away, 0.0)


def draw_curve(sums: Array, rng: Generator) -> Array:
    """Return a, b and c (3,) given sums over cells, their w and which were lost at random.

    sums : n, sums of y, y^2, w, w y and w^2 over cells seen or lost by value; how many were lost at
        random
    """
    n, y, yy, w, wy, ww, at_random = sums
    precision = np.array([[n, y], [y, yy]]) + np.eye(2) / PRIOR_SD**2
    cov = np.linalg.inv(precision)
    mean = cov @ [w, wy]
    # All w times g have the same signs: g is drawn with a and b integrated out, which mixes faster.
    spread = max(ww - float(mean @ [w, wy]), 1e-300)
    g = np.sqrt(rng.gamma(0.5 * n) / (0.5 * spread)) if n > 0.0 else 1.0
    a, b = g * mean + np.linalg.cholesky(cov) @ rng.standard_normal(2)
    c = rng.beta(LOST + at_random, ALWAYS_SEEN + n)
    return np.array([a, b, np.clip(c, 1e-12, 1.0 - 1e-12)])


class MissingByValue(_Base):
    """What a link of numbers has besides where cells are missing by their value."""

    selects = True

    @property
    def known(self) -> bool:
        """Return False: y of missing cells is drawn, and the curve with it."""
        return False

    @property
    def fixed_bounds(self) -> bool:
        """Return False: a missing cell is a point, held where it is."""
        return False

    def check_params(self, params: Params) -> None:
        """Raise ValueError unless they are a curve, and sums of the last sweep."""
        curve = take(params, "curve", 3)
        if not 0.0 < curve[2] < 1.0:
            raise ValueError("'curve' has a share that is not between 0 and 1")
        take(params, "sums", N_SUMS)
        super().check_params({n: p for n, p in params.items() if n not in ("curve", "sums")})

    def correctable(self, x: Array) -> bool:
        """Return False: values that were seen are not those that were not."""
        return False

    def start(self, x: Array) -> tuple[Params, Array]:
        """Return a curve that is flat, and y, 0 at missing cells."""
        params, y = super().start(x)
        seen = float(np.sum(x[:, 0] == x[:, 1])) if x.ndim == 2 else float(np.sum(~np.isnan(x)))
        lost = float(unseen_rows(x).size) if x.ndim == 2 else 0.0
        start = ndtri((seen + 1.0) / (seen + lost + 2.0))
        params["curve"] = np.array([start, 0.0, LOST / (LOST + ALWAYS_SEEN)])
        params["sums"] = np.zeros(N_SUMS)
        return params, y

    def update_params(
        self, x: Array, eta: Array, params: Params, rng: Generator, adapt: bool
    ) -> None:
        """Draw the curve given the last y and w; before there are some, leave it alone."""
        if params["sums"][0] > 0.0:
            params["curve"][:] = draw_curve(params["sums"], rng)

    def augment(
        self, x: Array, eta: Array, var: float, params: Params, rng: Generator, y: Array
    ) -> None:
        """Draw y of missing cells, and w of all."""
        super().augment(x, eta, var, params, rng, y)
        curve = params["curve"]
        rows = unseen_rows(x) if x.ndim == 2 else np.empty(0, np.intp)
        drawn, by_value, below = draw_unseen(np.ascontiguousarray(eta[rows]), var, curve, rng)
        y[rows, 0] = drawn
        seen = y[_seen(x), 0]
        above, mean = np.empty(seen.size), curve[0] + curve[1] * seen
        ends = np.zeros(seen.size), np.full(seen.size, np.inf)
        fill_truncated_normal(mean, 1.0, *ends, rng, above)
        v = np.concatenate([seen, drawn[by_value]])
        w = np.concatenate([above, below[by_value]])
        n, at_random = v.size, drawn.size - int(by_value.sum())
        params["sums"] = np.array([n, v.sum(), v @ v, w.sum(), w @ v, w @ w, at_random])

    def log_density(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return log p(x) whether it is seen or not, and log P(missing) of missing cells."""
        found = super().log_density(x, law, params)
        rows = unseen_rows(x) if x.ndim == 2 else np.empty(0, np.intp)
        if not rows.size:
            return found

        def log_p(part: Normal) -> Array:
            eta, var = one_number(part)
            return log_missing(eta, np.square(self.sd(var, params)), params["curve"])

        found[rows] = of_latent(law, 1).log_average(log_p)[rows]
        return found

    def sample_between(self, law: CellLaw, params: Params, rng: Generator, ends: Array) -> Array:
        """Return draws of cells between ends (n, 2); of those without, given that they are missing.
        """
        rows = unseen_rows(ends)
        x = np.empty(ends.shape[0])
        if rows.size < x.size:
            others = np.setdiff1d(np.arange(x.size), rows)
            own = of_latent(law, 1).take(others)
            x[others] = super().sample_between(own, params, rng, ends[others])
        eta, var = one_number(of_latent(law, 1).take(rows).pick(rng))
        var = np.broadcast_to(np.square(self.sd(var, params)), rows.shape)
        x[rows] = self.value(draw_unseen(eta, var, params["curve"], rng)[0])
        return x


def _seen(x: Array) -> Array:
    """Return the rows of cells of which something is seen."""
    if x.ndim == 1:
        return np.flatnonzero(~np.isnan(x))
    return np.flatnonzero(np.isfinite(x).any(axis=1))


@dataclass(frozen=True, eq=False)
class SelectedReal(MissingByValue, RealLink):
    """A real column whose cells are missing by their value."""


@dataclass(frozen=True, eq=False)
class SelectedPositive(MissingByValue, PositiveLink):
    """A positive column whose cells are missing by their value."""


def selected(column: Column) -> type[SelectedReal] | type[SelectedPositive]:
    """Return the class of a column's link."""
    return SelectedPositive if column.positive else SelectedReal
