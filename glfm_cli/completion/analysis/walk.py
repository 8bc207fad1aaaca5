"""Sweeps of a latent model and regressions together, of which versions.py says what they draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.random import Generator

from glfm_cli.arrays import Array
from glfm_cli.completion.analysis.families import Completes, RegressionDraw, wide
from glfm_cli.completion.analysis.formula import AnalysisFormula, Evaluated
from glfm_cli.completion.analysis.limits import NO_LIMITS, Limits, unknown_of
from glfm_cli.inference.chain import start_chain
from glfm_cli.inference.one_draw import draw_jointly
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.latent.model import Problem
from glfm_cli.streams import TABLES, Streams

TRIES = 3


class Law:
    """One regression of a walk.

    at : its coefficients, None before the first are drawn
    outside : how much of the law of missing responses lay outside their column, when last drawn
    within : whether missing responses are part of what coefficients are drawn from
    evaluated : factors of columns, shared by laws
    """

    def __init__(
        self, regression: AnalysisFormula, within: bool, evaluated: Evaluated | None = None
    ) -> None:
        self.regression, self.at, self.outside = regression, None, 0.0
        self.evaluated = evaluated
        target = regression.columns[regression.target]
        self.seen, self.missing = target.observed, unknown_of(target)
        self.used = self.seen | self.missing if within else self.seen
        self.prior = wide(regression.regressors({n: c.x for n, c in regression.columns.items()}))

    at: RegressionDraw | None

    def draw(self, xs: Mapping[str, Array], rng: Generator) -> RegressionDraw:
        """Draw and return coefficients given the completed columns.

        Missing responses lie between the ends of their column, and have what is outside shared
        out inside: a step without that is taken by the ratio of what lies inside.
        """
        regression = self.regression
        y = np.where(self.used, regression.outcome(xs[regression.target]), np.nan)
        seen, rows = regression.seen(xs, y, self.evaluated)
        drawn = regression.family.draw(seen._replace(prior=self.prior), self.at, rng)
        among = seen.X[self.missing[rows]]
        if self.at is None or not among.size:
            self.at = drawn
            return drawn
        family = regression.family
        assert isinstance(family, Completes)  # a response of others has no missing cells
        with np.errstate(divide="ignore", invalid="ignore"):
            before, after = (
                np.sum(np.log(family.inside(among, at, regression.ends)))
                for at in (self.at, drawn)
            )
            if np.log(rng.random()) < before - after:
                self.at = drawn
        return self.at

    def log_density(self, xs: Mapping[str, Array]) -> Array:
        """Return log p(y | x) (n,) of observed y, 0 where y or a regressor will never be known."""
        regression, unknown = self.regression, ~self.seen
        for name in regression.names:
            unknown = unknown | np.isnan(xs[name])
        X = regression.regressors(xs, self.evaluated)
        possible = ~unknown & np.isfinite(X).all(axis=1)
        out = np.where(unknown, 0.0, -np.inf)
        y = regression.outcome(xs[regression.target][possible])
        assert self.at is not None
        out[possible] = regression.family.log_density(y, X[possible], self.at)
        return out

    def fill(self, xs: dict[str, Array], rng: Generator) -> None:
        """Put draws into the missing cells of the response, where all regressors have a value."""
        regression, name = self.regression, self.regression.target
        X = regression.regressors(xs, self.evaluated)
        rows = np.flatnonzero(self.missing & np.isfinite(X).all(axis=1))
        if not rows.size:
            return
        family = regression.family
        assert self.at is not None
        assert isinstance(family, Completes)
        y, self.outside = family.sample(X[rows], self.at, regression.ends, rng)
        x = regression.undone(y)
        xs[name] = xs[name].copy()
        column = regression.columns[name].column
        xs[name][rows] = np.rint(x) if column.integral or column.levelled else x


class Walk:
    """Completed columns, changed sweep by sweep, and the coefficients of regressions.

    regressions : that of the response, then those of auxiliaries, of which each may depend on all
        before it
    problem : of the other columns, `names`
    xs : values and codes (n,) by column
    limits : what is known of missing cells
    """

    def __init__(
        self,
        regressions: Sequence[AnalysisFormula],
        problem: Problem,
        names: Sequence[str],
        xs: dict[str, Array],
        streams: Streams,
        limits: Limits = NO_LIMITS,
    ) -> None:
        self.xs, self.names, self.streams, self.limits = xs, list(names), streams, limits
        self.evaluated, within = Evaluated(), len(regressions) > 1
        self.laws = [Law(one, within, self.evaluated) for one in regressions]
        columns = regressions[0].columns
        self.rows = {name: np.flatnonzero(unknown_of(one)) for name, one in columns.items()}
        some = {k: self.rows[name] for k, name in enumerate(names) if self.rows[name].size}
        self.beside = {k: rows for k, rows in some.items() if names[k] in limits.beside}
        self.missing = {k: rows for k, rows in some.items() if k not in self.beside}
        self.ends = {k: limits.ends[name] for k, name in enumerate(names) if name in limits.ends}
        seen = [
            own if name in limits.beside else xs[name]
            for name, own in zip(names, problem.xs, strict=True)
        ]
        self.chain = start_chain(replace(problem, xs=tuple(seen)), streams)
        self.law = Posterior(self.chain.model, problem.links, self.chain.spans, ())

    @property
    def at(self) -> RegressionDraw:
        """The coefficients of the response."""
        assert self.laws[0].at is not None
        return self.laws[0].at

    def sweep(self, adapt: bool) -> None:
        """Make one transition of everything."""
        chain, rng = self.chain, self.streams.get(TABLES)
        chain.sweep(adapt)
        for law in self.laws:
            law.draw(self.xs, rng)
        now = self._log_density(self.xs)
        draw = Draw(chain.model.draw(chain.state), chain.params, {})
        for _ in range(TRIES):
            proposed = dict(self.xs)
            for k, x in draw_jointly(self.law, self.missing, rng, draw, self.ends).items():
                proposed[self.names[k]] = self.xs[self.names[k]].copy()
                proposed[self.names[k]][self.missing[k]] = x
            now = self._try(proposed, now, rng)
            if len(self.laws) > 1:  # responses alone, whose proposals are refused less
                now = self._try(dict(self.xs), now, rng)
        self._see()

    def fill(self) -> None:
        """Draw what does not move the walk: columns beside it, responses without auxiliaries."""
        rng = self.streams.get(TABLES)
        if len(self.laws) == 1:
            self.laws[0].fill(self.xs, rng)
        if not self.beside:
            return
        draw = Draw(self.chain.model.draw(self.chain.state), self.chain.params, {})
        for k, x in draw_jointly(self.law, self.beside, rng, draw, self.ends).items():
            self.xs[self.names[k]][self.beside[k]] = x

    def _try(self, proposed: dict[str, Array], now: Array, rng: Generator) -> Array:
        """Take proposed cells, and responses drawn for them, in some rows; return densities (n,).

        All missing cells come from their laws, so that densities of observed responses are what is
        left of the ratio. now : those of the cells before
        """
        if len(self.laws) > 1:
            for law in self.laws:
                law.fill(proposed, rng)
        new = self._log_density(proposed)
        with np.errstate(invalid="ignore"):  # of two that are impossible the first is kept
            taken = np.log(rng.random(now.size)) < new - now
        changed = {name for name, x in proposed.items() if x is not self.xs[name]}
        for name in changed:  # in place, where the chain has them, too
            self.xs[name][taken] = proposed[name][taken]
        self.evaluated.forget(changed)
        return np.where(taken, new, now)

    def _log_density(self, xs: Mapping[str, Array]) -> Array:
        """Return the log density (n,) of each row's observed responses and known limits."""
        found = np.sum([law.log_density(xs) for law in self.laws], axis=0)
        found[self.limits.broken(self.rows, xs)] = -np.inf
        return np.asarray(found)

    def _see(self) -> None:
        """Let the chain see the values of missing cells: draw their pseudo-observations."""
        chain, rng = self.chain, self.streams.get(TABLES)
        noise = chain.model.noise(chain.state)
        chain.model.fill_eta(chain.state, chain.eta)
        for k, rows in self.missing.items():
            link, x, at = chain.problem.links[k], self.xs[self.names[k]][rows], chain.spans[k]
            y = np.ascontiguousarray(chain.cells.y[rows, slice(*at)])
            if chain.cells.known[k]:
                _, y = link.start(x)
            else:
                eta = np.ascontiguousarray(chain.eta_of(k)[rows])
                link.augment(x, eta, float(noise[k]), chain.params[k], rng, y)
            chain.cells.y[rows, slice(*at)] = y
