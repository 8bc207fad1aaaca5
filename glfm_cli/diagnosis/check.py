"""Posterior predictive check: does the model make columns that look like the observed ones?

For each of some draws every observed cell is drawn anew, x_rep ~ p(x | z_n, B, noise, thresholds),
and the columns so replicated are compared with the observed one [Gelman, Meng and Stern 1996]:

    distance   D(x) = max over a grid of |F_x - F|, F the average over replicated columns; for
               categorical ones half the sum over levels of |share - average share|
    p-value    the share of replicated columns with D(x_rep) >= D(x), counted with x itself

A small p-value says that columns as far from the average as the observed one are rare. A row's
features were inferred from the very cells that are drawn anew, so the check is lenient: it finds
a wrong shape of a column, not a model that follows its table too closely.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glfm_cli.arrays import Array, step_of
from glfm_cli.encoding import Data, EncodedColumn
from glfm_cli.inference.one_draw import BLOCK_ROWS
from glfm_cli.inference.posterior import Posterior
from glfm_cli.links import CellLaw, Link, NumericObservation, Params, of_levels, of_numbers

REPLICATES = 100
MISFIT = 0.01  # p-value below which a column is reported
GRID = 256
BINS = 24
STEP = 0.25  # sds of a column, the coarsest rounding
_INTERVAL = (0.025, 0.975)


@dataclass(frozen=True)
class Compared:
    """One summary of the observed column, beside those of the replicated columns.

    p_value : two-sided: twice the smaller share of replicated columns on one side of the observed
    """

    name: str
    observed: float
    mean: float
    lower: float
    upper: float
    p_value: float

    @classmethod
    def of(cls, name: str, observed: float, replicated: Array) -> Compared:
        """Return the comparison, with the interval that holds 95 % of the replicated columns."""
        low, high = np.quantile(replicated, _INTERVAL)
        n = replicated.size + 1
        above, below = (
            (1 + int(np.sum(side))) / n for side in (replicated >= observed, replicated <= observed)
        )
        p_value = min(1.0, 2.0 * min(above, below))
        return cls(name, observed, float(replicated.mean()), float(low), float(high), p_value)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        named = vars(self).items()
        return {k: None if isinstance(x, float) and not np.isfinite(x) else x for k, x in named}


@dataclass(frozen=True)
class ColumnCheck:
    """How the observed column compares with the replicated ones.

    summaries : mean and sd of numbers, the share of each level
    edges : (b + 1,) limits of the bars of a histogram; empty for levels
    observed, replicated : (b,) and (T, b) shares of cells in each bar, or of each level
    """

    column: str
    type: str
    n_observed: int
    p_value: float
    summaries: tuple[Compared, ...]
    levels: tuple[str, ...]
    edges: Array
    observed: Array
    replicated: Array

    @property
    def fits(self) -> bool:
        """True unless columns as far from the average as the observed one are rare."""
        return self.p_value >= MISFIT

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "column": self.column,
            "type": self.type,
            "observed": self.n_observed,
            "p_value": self.p_value,
            "fits": self.fits,
            "summaries": [compared.to_dict() for compared in self.summaries],
        }


def check_columns(
    posterior: Posterior, data: Data, rng: np.random.Generator, *, replicates: int = REPLICATES
) -> tuple[ColumnCheck, ...]:
    """Return the check of every modelled column without cells that are intervals.

    O(replicates x cells) time; memory O(replicates x (GRID + levels)) a column.

    data : the table it was fitted to
    replicates : how many columns are made of each, by evenly spread draws; where there are fewer
        draws, some make several
    """
    # What stands beside dates no link is made for, and nothing of it is completed. Numbers beside
    # intervals are those that no limit has hidden: a replicate of them has no such choice.
    counts: dict[int, _Levels | _Numbers] = {
        d: _Levels(link, encoded) if link.discrete else _Numbers(link, encoded)
        for d, (link, encoded) in enumerate(zip(posterior.links, data.columns, strict=True))
        if encoded.column.calendar is None and encoded.ends is None
    }
    draws = list(posterior.draws(replicates))
    for i in range(replicates):
        draw = draws[i * len(draws) // replicates]
        for counter in counts.values():
            counter.begin()
        for start in range(0, data.n_rows, BLOCK_ROWS):
            block = slice(start, min(start + BLOCK_ROWS, data.n_rows))
            law = posterior.joint(draw, block, rng)
            for d, counter in counts.items():
                seen = np.flatnonzero(data.columns[d].observed[block])
                if seen.size:
                    trials, link = data.columns[d].trials, posterior.links[d]
                    known = None if trials is None else trials[block][seen]
                    counter.add(_replicate(link, law.column(d, seen), draw.params[d], rng, known))
    return tuple(counter.result() for counter in counts.values())


def _replicate(
    link: Link, law: CellLaw, params: Params, rng: np.random.Generator, trials: Array | None
) -> Array:
    """Return draws of cells; of successes among trials their shares."""
    if trials is None:
        return link.sample(law, params, rng)
    ends = np.column_stack([np.zeros(trials.size), trials])
    return of_numbers(link).sample_between(law, params, rng, ends) / trials


class _Levels:
    """Counts the levels of replicated columns."""

    def __init__(self, link: Link, encoded: EncodedColumn) -> None:
        self.encoded = encoded
        self.ordered = of_levels(link).ordered
        self.n_levels = len(encoded.levels)
        self.n = int(encoded.observed.sum())
        self.rows: list[Array] = []

    def begin(self) -> None:
        self.rows.append(np.zeros(self.n_levels))

    def add(self, x: Array) -> None:
        self.rows[-1] += self.count(x)

    def count(self, x: Array) -> Array:
        return np.bincount(x.astype(np.intp), minlength=self.n_levels)

    def result(self) -> ColumnCheck:
        encoded = self.encoded
        observed = self.count(encoded.x[encoded.observed]) / self.n
        replicated = np.array(self.rows) / self.n
        summaries = [
            Compared.of(level, float(observed[r]), replicated[:, r])
            for r, level in enumerate(encoded.levels)
        ]
        far = _distance_of_shares if not self.ordered else _distance_of_cumulative
        return ColumnCheck(
            column=encoded.column.name,
            type=str(encoded.column.type),
            n_observed=self.n,
            p_value=_p_value(far, observed, replicated),
            summaries=tuple(summaries),
            levels=encoded.levels,
            edges=np.empty(0),
            observed=observed,
            replicated=replicated,
        )


class _Numbers:
    """Counts the values of replicated columns on a grid and in bars, and their two moments."""

    def __init__(self, link: Link, encoded: EncodedColumn) -> None:
        self.encoded, self.link = encoded, of_numbers(link)
        x = encoded.x[encoded.observed]
        self.n = x.size
        self.grid = _between(x)
        self.edges = _edges(x, self.link)
        self.on_grid: list[Array] = []
        self.in_bars: list[Array] = []
        self.moments: list[Array] = []

    def begin(self) -> None:
        self.on_grid.append(np.zeros(self.grid.size + 1))
        self.in_bars.append(np.zeros(self.edges.size - 1))
        self.moments.append(np.zeros(2))

    def add(self, x: Array) -> None:
        self.on_grid[-1] += self.place(x)
        self.in_bars[-1] += self.bars(x)
        u = self.link.standard(x)
        self.moments[-1] += [u.sum(), u @ u]

    def place(self, x: Array) -> Array:
        return np.bincount(np.searchsorted(self.grid, x), minlength=self.grid.size + 1)

    def bars(self, x: Array) -> Array:
        # Values beyond the observed range stand in the outer bars.
        at = np.searchsorted(self.edges[1:-1], x, side="right")
        return np.bincount(at, minlength=self.edges.size - 1)

    def result(self) -> ColumnCheck:
        encoded, link = self.encoded, self.link
        x = encoded.x[encoded.observed]
        u = link.standard(x)
        moments = np.array(self.moments) / self.n
        sds = np.sqrt(np.maximum(moments[:, 1] - moments[:, 0] ** 2, 0.0))
        means = link.center + link.scale * moments[:, 0]
        mean = link.center + link.scale * float(u.mean())
        summaries = (
            Compared.of("mean", mean, means),
            Compared.of("sd", link.scale * float(u.std()), link.scale * sds),
        )
        p_value = _p_value(
            _distance_of_cumulative, self.place(x) / self.n, np.array(self.on_grid) / self.n
        )
        return ColumnCheck(
            column=encoded.column.name,
            type=str(encoded.column.type),
            n_observed=self.n,
            p_value=p_value,
            summaries=summaries,
            levels=(),
            edges=self.edges,
            observed=self.bars(x) / self.n,
            replicated=np.array(self.in_bars) / self.n,
        )


def _between(x: Array) -> Array:
    """Return points, at most GRID, at which columns are compared: a little above observed values.

    Values that were rounded stand for those up to halfway to the next: where that is nearer than
    STEP sds of the column.
    """
    values = np.unique(x)
    with np.errstate(over="ignore", invalid="ignore"):
        halves = np.append(values[1:] / 2 - values[:-1] / 2, 0.0)
        ends = values + np.where(halves <= STEP * float(np.std(x / 2)), halves, 0.0)
    if ends.size <= GRID:
        return ends
    some = np.quantile(x, np.linspace(0, 1, GRID), method="inverted_cdf")
    return np.asarray(ends[np.unique(np.searchsorted(values, some))])


def _edges(x: Array, link: NumericObservation) -> Array:
    """Return the limits of at most BINS bars over the observed range.

    Of counts, and of values that were rounded, each bar has the same number of steps.
    """
    low, high = float(x.min()), float(x.max())
    if low == high and not link.integral:
        return np.array([low, np.nextafter(high, np.inf)])
    if step := 1.0 if link.integral else step_of(x):
        n_steps = round((high - low) / step) + 1
        each = -(-n_steps // BINS)
        return low - step / 2 + step * each * np.arange(-(-n_steps // each) + 1)
    edges = np.unique(low * (1 - np.linspace(0, 1, BINS + 1)) + high * np.linspace(0, 1, BINS + 1))
    return edges if edges.size > 1 else np.array([low, high])


def _distance_of_shares(shares: Array, average: Array) -> Array:
    return 0.5 * np.abs(shares - average).sum(axis=-1)


def _distance_of_cumulative(shares: Array, average: Array) -> Array:
    return np.abs(np.cumsum(shares - average, axis=-1)).max(axis=-1)


def _p_value(distance: Any, observed: Array, replicated: Array) -> float:
    """Return the share of columns, the observed one among them, that are as far or farther."""
    average = replicated.mean(axis=0)
    ours, theirs = distance(observed, average), distance(replicated, average)
    # Shares that are equal come out a rounding error apart.
    return float((1 + np.sum(theirs >= ours - 1e-12)) / (1 + theirs.size))
