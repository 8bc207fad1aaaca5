"""How well laws of whole rows explain rows: log probabilities of the observed cells, but for a
constant of each row.

Under a draw they say which of some known rows a new one resembles, where it then starts: all rows
are compared with all laws, in single precision. Numbers are products of matrices; of levels, and of
counts with few values, the laws have a table each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

import numpy as np

from glfm_cli._kernels._predictive import add_table_rows
from glfm_cli.arrays import Array
from glfm_cli.latent.model import Problem
from glfm_cli.links import CellLaw, Link, Params, RowsLaw, of_levels
from glfm_cli.links.law import NormalMixture

LEAST = 1e-300  # probability of a level; its logarithm stays finite
LARGEST = 1e18  # of a y; products of it are finite in single precision
MOST_VALUES = 16  # of a column; one with more, whose cells are intervals, is taken at their middles


class RowScores:
    """The observed cells of some rows, made ready to be scored under many draws.

    problem : the rows, and the links of their columns
    starts : per column y (n, S_d), that of known links, or a y inside what is known of it
    """

    def __init__(self, problem: Problem, starts: Sequence[Array]) -> None:
        self.problem = problem
        points: list[int] = []
        self.tables: list[tuple[int, Array]] = []  # column and values
        at: list[Array] = []
        n = 0
        for d, (link, x) in enumerate(zip(problem.links, problem.xs, strict=True)):
            if link.n_latent == 0:
                continue
            if problem.known[d] and link.n_latent == 1:
                points.append(d)
                continue
            values, place = distinct(x)
            if link.n_latent == 1 and not link.discrete and len(values) > MOST_VALUES:
                points.append(d)
                continue
            self.tables.append((d, values))
            at.append(np.where(place < len(values), n + place, -1))
            n += len(values)
        self.n_values, self.points = n, points
        places = np.array(at, dtype=np.int32).reshape(len(at), problem.n_rows).T
        self.places = np.ascontiguousarray(np.where(places < 0, n, places), dtype=np.int32)
        seen = problem.seen[:, points]
        y = np.array([starts[d][:, 0] for d in points]).reshape(len(points), problem.n_rows).T
        y = np.where(seen, np.clip(y, -LARGEST, LARGEST), 0.0)
        self.cells = np.concatenate([y, seen], axis=1, dtype=np.float32)


class DrawScores:
    """The scores of rows under one draw, whose columns' parameters are `params`."""

    def __init__(self, rows: Callable[[], RowScores], params: Sequence[Params]) -> None:
        self._rows, self.params = rows, params
        self.law: RowsLaw | None = None
        self.table = self.factors = np.empty((0, 0), dtype=np.float32)

    def __call__(self, law: RowsLaw, rows: slice) -> Array:
        """Return log p(observed cells of row | law) of m rows under each of C laws, as (m, C)."""
        own = self._rows()
        if law is not self.law:
            self.law = law
            self._tabulate(own, law)
        out: Array = own.cells[rows] @ self.factors
        add_table_rows(own.places[rows], self.table, out)
        return out

    def _tabulate(self, own: RowScores, law: RowsLaw) -> None:
        """Compute what the laws say of every value, and the factors of the numbers."""
        links = own.problem.links
        factors = []
        for d in own.points:
            cells = cast(NormalMixture, law.column(d))  # one normal, of one known latent number
            mean = cells.means[:, 0, 0]
            scaled = mean / cells.variances.item()
            factors.append((scaled, -0.5 * mean * scaled))
        n_laws = law.column(0).size
        both = np.array(factors).reshape(len(factors), 2, n_laws)
        self.factors = np.concatenate(both.swapaxes(0, 1)).astype(np.float32)
        tables = [log_table(links[d], x, law.column(d), self.params[d]) for d, x in own.tables]
        self.table = np.concatenate([*tables, np.zeros((1, n_laws))], dtype=np.float32)


def distinct(x: Array) -> tuple[Array, Array]:
    """Return the distinct values of the observed cells, and the place of each cell among them.

    Missing cells, NaN, have that after the last.
    """
    seen = np.flatnonzero(~np.isnan(x if x.ndim == 1 else x[:, 0]))
    values, which = np.unique(x[seen], return_inverse=True, axis=None if x.ndim == 1 else 0)
    place = np.full(len(x), len(values))
    place[seen] = which.ravel()
    return values, place


def log_table(link: Link, values: Array, law: CellLaw, params: Params) -> Array:
    """Return log p(value | law c) of V values under each of C laws, as (V, C)."""
    n_laws = law.size
    if link.discrete:
        p = of_levels(link).probabilities(law, params)
        return np.log(np.maximum(p.T[values.astype(np.intp)], LEAST))
    each = law.take(np.tile(np.arange(n_laws), len(values)))
    log_p = link.log_density(np.repeat(values, n_laws, axis=0), each, params)
    return log_p.reshape(len(values), n_laws)


def log_densities(link: Link, x: Array, law: CellLaw, params: Params) -> Array:
    """Return log p(x_n | law c) of m cells under each of C laws, as (m, C); 0 of missing cells."""
    values, place = distinct(x)
    if link.n_latent == 0 or len(values) == 0:
        return np.zeros((len(x), law.size))
    log_p = log_table(link, values, law, params)
    return np.vstack([log_p, np.zeros((1, law.size))]).take(place, axis=0)
