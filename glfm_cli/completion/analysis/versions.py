"""Completed versions of a table that are compatible with the analysis made of them.

A latent model of all columns need not agree with the regression that is to be made: products,
curves and a response on another scale than the model's draw its coefficients towards zero. Here
the latent model is of all columns but the response y, and the regression is the law of y
[Goldstein, Carpenter and Browne 2014; Bartlett and others 2015]:

    p(x, y) = p(x | latent) p(y | x, b)

A sweep is: one of the latent model, of all columns but y, completed; b given x and y; and TRIES
times for the missing cells of each row a proposal x' from their law given its latent variables,
taken with probability min(1, p(y | x', b) / p(y | x, b)). Each leaves the posterior of both models
together as it is. Missing y come last, from their law between the ends of what their column holds;
beside columns with a law given y (auxiliaries.py) they are proposed with x'. Memory O(N (S + p)).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.completion.analysis.auxiliaries import auxiliaries, logarithm_of
from glfm_cli.completion.analysis.checks import (
    check_response,
    check_table,
    related,
    related_warning,
)
from glfm_cli.completion.analysis.formula import AnalysisFormula
from glfm_cli.completion.analysis.limits import Limits, check_limits
from glfm_cli.completion.analysis.reading import read_regression
from glfm_cli.completion.analysis.survival import events_of
from glfm_cli.completion.analysis.told import Told
from glfm_cli.completion.analysis.walk import Walk
from glfm_cli.encoding import Data, learnt_cells, settle
from glfm_cli.errors import broke_down
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.posterior import Posterior
from glfm_cli.latent.capabilities import Candidates, HoldsLevels
from glfm_cli.latent.model import Problem
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.streams import Streams

SWEEPS = 60
_FIRST_CHAIN = 2**31  # beyond those of a run


@dataclass(frozen=True)
class Compatible:
    """What versions for an analysis are drawn with.

    problem : of all columns but the response and auxiliaries, their missing cells missing
    auxiliaries : regressions of columns that tell of the response beyond the formula
    left : such columns that have no regression
    sweeps : of each version, at least SWEEPS
    told : what the versions that were drawn show
    """

    regression: AnalysisFormula
    data: Data
    problem: Problem
    seed: int
    sweeps: int = SWEEPS
    auxiliaries: tuple[AnalysisFormula, ...] = ()
    left: tuple[str, ...] = ()
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
        config, link_config = configs
        try:
            regression = read_regression(text, data.columns)
            check_table(regression, data, run.model)
            check_limits(regression, data)
            X = regression.regressors({c.column.name: c.x for c in data.columns})
            check_response(regression, X.shape[1])
            more, left = auxiliaries(regression, data, related(regression, data), link_config)
        except np.linalg.LinAlgError as error:  # of a fit to complete rows
            raise broke_down(error) from error
        apart = {name for one in (regression, *more) for name in one.responses}
        links, xs = [], []
        every = zip(data.columns, run.links, learnt_cells(data.columns), strict=True)
        for encoded, link, cells in every:
            if encoded.column.name not in apart:
                logarithm = logarithm_of(encoded, link_config)
                links.append(link if logarithm is None else make_link(logarithm, link_config))
                xs.append(cells)
        problem = _of_one(Problem(run.model, config, tuple(links), tuple(xs), link_config))
        if isinstance(problem.model, HoldsLevels):  # cells that are drawn stand there, too
            problem = replace(problem, config=problem.model.holding_none(problem.config))
        return cls(regression, data, problem, seed, max(SWEEPS, sweeps), more, left)

    @one_blas_thread()
    def draw(self, start: Mapping[int, Array], number: int) -> dict[int, Array]:
        """Return the missing cells of version `number` by column, after SWEEPS from some others."""
        streams = Streams(self.seed, _FIRST_CHAIN + number)
        names = [encoded.column.name for encoded in self.data.columns]
        xs = {name: encoded.x.copy() for name, encoded in self.regression.columns.items()}
        for d, values in start.items():
            xs[names[d]][self.data.columns[d].requested] = values
        regressions = (self.regression, *self.auxiliaries)
        apart = {name for one in regressions for name in one.responses}
        seen = [name for name in names if name not in apart]
        try:
            limits = Limits.of(self.data, regressions)
            walk, trace = Walk(regressions, self.problem, seen, xs, streams, limits), []
            for sweep in range(self.sweeps):
                walk.sweep(adapt=2 * sweep < self.sweeps)
                trace.append([*walk.at.b, np.log(walk.at.s2)])
        except np.linalg.LinAlgError as error:
            raise broke_down(error) from error
        walk.fill()
        self.told.traces[number] = np.array(trace)
        self.told.outside[number] = walk.laws[0].outside
        drawn = {d: xs[names[d]][rows] for d, rows in self.data.missing.items()}
        return settle(self.data, drawn)

    def warnings(self) -> tuple[str, ...]:
        """Return what a user should know of the versions that were drawn, one line each."""
        regression, found = self.regression, []
        if self.left:
            found.append(related_warning(regression, self.left))
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
                f"sweeps: one still moved by {self.told.drift:.2f} of its standard deviation; use "
                f"--warmup {3 * self.sweeps}, which each table then gets"
            )
        return tuple(found)

    def summary(self) -> str:
        """Return which law the response was given, and whether the coefficients had settled."""
        regression = self.regression
        law = f"'{regression.text}' with {regression.family.words}{events_of(regression)}"
        if regression.chosen:
            name = regression.target
            law += f", which fits it best (or say normal({name}), poisson({name}), negbin({name}))"
        if self.told.drift is None:
            return f"For {law}; it takes several tables to tell whether coefficients had settled."
        verdict = "had settled" if self.told.settled else "had not settled"
        return f"For {law}; coefficients {verdict} after {self.sweeps} sweeps."

    def to_dict(self) -> dict[str, Any]:
        """Return the analysis, its law, auxiliaries and how far it still moved, for JSON."""
        regression = self.regression
        return {
            "analysis": regression.text,
            "law": regression.family.words,
            "auxiliaries": [one.target for one in self.auxiliaries],
            "sweeps": self.sweeps,
            "drift": self.told.drift,
        }


def _of_one(problem: Problem) -> Problem:
    """Return that of a single model: of candidates the first that can be swept beside another."""
    model = problem.model
    if not isinstance(model, Candidates):
        return problem
    each = (model.problem_of(problem, which) for which in range(len(model.candidates)))
    return next(one for one in each if one.model.sees == "gaussian")
