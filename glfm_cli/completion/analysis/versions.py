"""Completed versions of a table that are compatible with the analysis made of them.

A latent model of all columns need not agree with the regression that is to be made: products,
curves and a response on another scale than the model's draw its coefficients towards zero. Here
the latent model is of all columns but the response y, and the regression is the law of y
[Goldstein, Carpenter and Browne 2014; Bartlett and others 2015]:

    p(x, y) = p(x | latent) p(y | x, b)

A sweep is: one of the latent model, of all columns but y, completed; b given x and y; and TRIES
times for the missing cells of each row a proposal x' from their law given its latent variables,
taken with probability min(1, p(y | x', b) / p(y | x, b)). Each leaves the posterior of both models
together as it is. Missing y come last, from their law between the ends of what their column holds.
Memory O(N (S + p)).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.completion.analysis.checks import (
    check_response,
    check_table,
    related,
    related_warning,
)
from glfm_cli.completion.analysis.families import RegressionDraw, wide
from glfm_cli.completion.analysis.formula import AnalysisFormula
from glfm_cli.completion.analysis.reading import read_regression
from glfm_cli.completion.analysis.told import Told
from glfm_cli.encoding import Data, EncodedColumn
from glfm_cli.errors import broke_down
from glfm_cli.inference.chain import start_chain
from glfm_cli.inference.one_draw import draw_jointly
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.latent.capabilities import Candidates
from glfm_cli.latent.model import Problem
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.links.margins import FEWEST_FOR_TAILS, standard_moment
from glfm_cli.schema import Transform
from glfm_cli.streams import TABLES, Streams

SWEEPS, TRIES = 60, 3
_FIRST_CHAIN = 2**31  # beyond those of a run


@dataclass(frozen=True)
class Compatible:
    """What versions for an analysis are drawn with.

    problem : of all columns but the response, their missing cells missing
    sweeps : of each version, at least SWEEPS
    told : what the versions that were drawn show
    """

    regression: AnalysisFormula
    data: Data
    problem: Problem
    seed: int
    sweeps: int = SWEEPS
    told: Told = field(default_factory=Told)

    @classmethod
    def of(
        cls,
        text: str,
        data: Data,
        run: Posterior | Problem,
        configs: tuple[Any, LinkConfig],
        seed: int,
        sweeps: int = SWEEPS,
    ) -> Compatible:
        """Return that of an analysis, with the model, links and settings of a run.

        Raises UsageError: the text is no regression of the table, or the model or the table is
            beyond this.
        """
        regression = read_regression(text, data.columns)
        check_table(data, run.model)
        config, link_config = configs
        X = regression.regressors({c.column.name: c.x for c in data.columns})
        check_response(regression, X.shape[1])
        links, xs = [], []
        for encoded, link in zip(data.columns, run.links, strict=True):
            if encoded.column.name != regression.target:
                logarithm = _logarithm(encoded, link_config)
                links.append(link if logarithm is None else make_link(logarithm, link_config))
                xs.append(encoded.cells)
        problem = Problem(run.model, config, tuple(links), tuple(xs), link_config)
        return cls(regression, data, _of_one(problem), seed, max(SWEEPS, sweeps))

    def draw(self, start: Mapping[int, Array], number: int) -> dict[int, Array]:
        """Return the missing cells of version `number` by column, after SWEEPS from some others."""
        streams = Streams(self.seed, _FIRST_CHAIN + number)
        names = [encoded.column.name for encoded in self.data.columns]
        xs = {}
        for d, encoded in enumerate(self.data.columns):
            xs[names[d]] = encoded.x.copy()
            if d in start:
                xs[names[d]][encoded.requested] = start[d]
        y = xs.pop(self.regression.target)
        try:
            walk, trace = Walk(self, xs, self._observed_outcome(), streams), []
            for sweep in range(self.sweeps):
                walk.sweep(adapt=2 * sweep < self.sweeps)
                trace.append([*walk.at.b, np.log(walk.at.s2)])
        except np.linalg.LinAlgError as error:
            raise broke_down(error) from error
        X = self.regression.regressors(xs)
        target = self.regression.columns[self.regression.target]
        rows = np.flatnonzero(target.requested & np.isfinite(X).all(axis=1))
        rng, ends = streams.get(TABLES), self.regression.ends
        drawn, outside = self.regression.family.sample(X[rows], walk.at, ends, rng)
        self.told.traces[number], self.told.outside[number] = np.array(trace), outside
        y[rows] = self.regression.undone(drawn)
        xs[self.regression.target] = y
        return {d: xs[names[d]][self.data.columns[d].requested] for d in self.data.missing}

    def warnings(self) -> tuple[str, ...]:
        """Return what a user should know of the versions that were drawn, one line each."""
        regression, found = self.regression, []
        if names := related(regression, self.data):
            found.append(related_warning(regression, names))
        if share := self.told.too_far:
            name = regression.target
            above = regression.columns[name].column.bounds[1] is None
            logged = regression.plain and above
            mend = f"log({name}) ~ ..." if logged else "a function of it whose errors are"
            found.append(
                f"--analysis '{regression.text}': errors are not normal there: {100 * share:.0f} % "
                f"of the law of missing '{name}' lay outside the values that it can have, and was "
                f"left out; analyse {mend}"
            )
        if not self.told.settled:
            found.append(
                f"--analysis '{regression.text}': coefficients had not settled after {self.sweeps} "
                f"sweeps: one still moved by {self.told.drift:.2f} of its standard deviation; take "
                f"--warmup {3 * self.sweeps}, which each table then gets"
            )
        return tuple(found)

    def summary(self) -> str:
        """Return which law the response was given, and whether the coefficients had settled."""
        law = f"'{self.regression.text}' with {self.regression.family.words}"
        if self.told.drift is None:
            return f"For {law}; it takes several tables to tell whether coefficients had settled."
        verdict = "had settled" if self.told.settled else "had not settled"
        return f"For {law}; coefficients {verdict} after {self.sweeps} sweeps."

    def to_dict(self) -> dict[str, Any]:
        """Return the analysis, its law and how far coefficients still moved, for JSON."""
        regression = self.regression
        return {
            "analysis": regression.text,
            "law": regression.family.words,
            "sweeps": self.sweeps,
            "drift": self.told.drift,
        }

    def _observed_outcome(self) -> Array:
        target = self.regression.columns[self.regression.target]
        return self.regression.outcome(np.where(target.observed, target.x, np.nan))


def _of_one(problem: Problem) -> Problem:
    """Return that of a single model: of candidates the first that can be swept beside another."""
    model = problem.model
    if not isinstance(model, Candidates):
        return problem
    each = (model.problem_of(problem, which) for which in range(len(model.candidates)))
    return next(one for one in each if one.model.sees == "gaussian")


def _logarithm(encoded: EncodedColumn, config: LinkConfig) -> EncodedColumn | None:
    """Return a skewed positive column as one of its logarithm, None where that is skewed, too.

    Ranks know little of the tail from which cells are missing, the more the larger the response.
    """
    column, x = encoded.column, encoded.x[encoded.observed]
    free = column.positive and not column.integral and column.transform is None
    if not free or x.size < FEWEST_FOR_TAILS or x.min() <= 0.0:
        return None
    skewed = abs(standard_moment(x, 3)) > config.rank_skewness
    if not skewed or abs(standard_moment(np.log(x), 3)) > config.rank_skewness:
        return None
    return replace(encoded, column=replace(column, transform=Transform.LOG))


class Walk:
    """The completed columns but the response, changed in place sweep by sweep, and b.

    xs : values and codes (n,) by column;  y : outcomes (n,), NaN where missing;  at : b
    """

    at: RegressionDraw

    def __init__(self, of: Compatible, xs: dict[str, Array], y: Array, streams: Streams) -> None:
        self.of, self.xs, self.y, self.streams = of, xs, y, streams
        self.names = list(xs)
        columns = of.regression.columns
        requested = {k: columns[name].requested for k, name in enumerate(xs)}
        self.missing = {k: np.flatnonzero(one) for k, one in requested.items() if one.any()}
        self.last: RegressionDraw | None = None
        self.squares = wide(of.regression.regressors({name: columns[name].x for name in xs}))
        self.chain = start_chain(replace(of.problem, xs=tuple(xs.values())), streams)
        self.law = Posterior(self.chain.model, of.problem.links, self.chain.spans, ())

    def sweep(self, adapt: bool) -> None:
        """Make one transition of everything."""
        chain, xs, rng = self.chain, self.xs, self.streams.get(TABLES)
        chain.sweep(adapt)
        seen = self.of.regression.seen(xs, self.y)[0]._replace(squares=self.squares)
        self.at = self.last = self.of.regression.family.draw(seen, self.last, rng)
        now = self._log_density(xs)
        draw = Draw(chain.model.draw(chain.state), chain.params, {})
        for _ in range(TRIES):
            proposed = dict(xs)
            for k, x in draw_jointly(self.law, self.missing, rng, draw).items():
                proposed[self.names[k]] = xs[self.names[k]].copy()
                proposed[self.names[k]][self.missing[k]] = x
            new = self._log_density(proposed)
            with np.errstate(invalid="ignore"):  # of two that are impossible the first is kept
                taken = np.log(rng.random(self.y.size)) < new - now
            now = np.where(taken, new, now)
            for k in self.missing:
                xs[self.names[k]][taken] = proposed[self.names[k]][taken]
        self._see()

    def _log_density(self, xs: Mapping[str, Array]) -> Array:
        """Return log p(y | x) of each row, 0 where y or a regressor will never be known."""
        regression = self.of.regression
        X, unknown = regression.regressors(xs), np.isnan(self.y)
        for name in regression.names:
            unknown = unknown | np.isnan(xs[name])
        possible = ~unknown & np.isfinite(X).all(axis=1)
        out = np.where(unknown, 0.0, -np.inf)
        out[possible] = regression.family.log_density(self.y[possible], X[possible], self.at)
        return out

    def _see(self) -> None:
        """Let the chain see the values of missing cells: draw their pseudo-observations."""
        chain, rng = self.chain, self.streams.get(TABLES)
        noise = chain.model.noise(chain.state)
        chain.model.fill_eta(chain.state, chain.eta)
        for k, rows in self.missing.items():
            link, x, at = chain.problem.links[k], self.xs[self.names[k]][rows], chain.spans[k]
            y = np.ascontiguousarray(chain.cells.y[rows, slice(*at)])
            if chain.cells.known[k]:
                _, y = link.start(x, rng)
            else:
                eta = np.ascontiguousarray(chain.eta_of(k)[rows])
                link.augment(x, eta, float(noise[k]), chain.params[k], rng, y)
            chain.cells.y[rows, slice(*at)] = y
