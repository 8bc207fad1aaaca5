"""Counts of new rows: models of components, and the columns' shares in all rows."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.completion import MatrixData
from glfm_cli.evaluation.methods.models import ModelMethod
from glfm_cli.evaluation.task import HiddenTask, Prediction, TakesAll
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import Run, sample
from glfm_cli.latent.capabilities import HasFactors, TunesNewRows
from glfm_cli.latent.model import Entries, Problem

NONE = np.empty(0)


@dataclass(frozen=True)
class Unigram(TakesAll):
    """The columns' shares in the rows to learn from, times what a row has of counts on average."""

    name = "unigram"
    key = "unigram"

    def fit(self, task: HiddenTask) -> dict[int, Prediction]:
        """Return the same rates for all rows."""
        rows = task.new_rows
        assert rows is not None
        size = np.nansum(rows.train.value.x) / max(len(rows.train.rows), 1)
        rates = rows.shares * size

        def predict(part: slice) -> Array:
            return np.repeat(rates[None, :], part.stop - part.start, axis=0)

        return {0: Prediction(NONE, rates=predict)}


@dataclass(frozen=True)
class FactorMethod(ModelMethod):
    """A model of components, fitted to some rows and applied to others."""

    def sample(self, task: HiddenTask) -> Run:
        """Return the fit of the rows to learn from, tuned there for rows of few observed cells."""
        rows = task.new_rows
        assert rows is not None
        data = MatrixData(rows.train)
        problem, plan = self.prepare(task.table, task.schema, data, seed=task.seed)
        model = problem.model
        if isinstance(model, TunesNewRows):
            observed = float(np.clip(1.0 - rows.hidden.mean(), 0.01, 0.99))
            config = model.calibrate(problem, plan.chains, task.seed, observed, task.threads)
            problem = dataclasses.replace(problem, config=config)
        run = sample(problem, plan, threads=task.threads, time_limit=self.sampling.time_limit)
        if run.stopped == "interrupted":
            raise KeyboardInterrupt
        return run

    def answer(self, posterior: Posterior, task: HiddenTask) -> dict[int, Prediction]:
        """Return the rates of new rows, given the counts and zeros of their observed columns."""
        rows, model = task.new_rows, posterior.model
        assert rows is not None
        assert isinstance(model, HasFactors)
        n_train, (n, J) = len(rows.train.rows), rows.counts.shape
        known = np.where(rows.hidden, np.nan, rows.counts)  # hidden cells are missing, not zeros
        row, column = np.nonzero(known != 0.0)
        entries = Entries(
            (row + n_train).astype(np.int32), column.astype(np.int32), (n_train + n, J)
        )
        data = MatrixData(rows.train)
        given, _ = self.prepare(task.table, task.schema, data, seed=task.seed)
        problem = Problem(
            model,
            given.config,
            posterior.links,
            (known[row, column],),
            given.link_config,
            dataclasses.replace(data.layout, entries=entries),
        )
        folded = fold_in(posterior, problem, seed=task.seed, threads=task.threads)
        weights = zip(folded.draws(), folded.shares() / folded.n_draws, strict=True)
        draws = [(share, draw.latent) for draw, share in weights if share > 0.0]
        parts = [(share, model.factors(draw)) for share, draw in draws]

        def predict(part: slice) -> Array:
            at = slice(n_train + part.start, n_train + part.stop)
            rates = [share * (one.rows[at] @ one.columns.T) for share, one in parts]
            return np.sum(rates, axis=0)

        def likely(part: slice) -> Array:
            at = slice(n_train + part.start, n_train + part.stop)
            return np.sum([share * model.p_any(one, at) for share, one in draws], axis=0)

        return {0: Prediction(NONE, rates=predict, p_any=likely)}
