"""Latent models as methods: sampled as `glfm impute` would, scored by their predictives."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion import Encoded, prepare_matrix
from glfm_cli.completion.efforts import paced
from glfm_cli.completion.estimates import point
from glfm_cli.completion.prepare import prepare
from glfm_cli.completion.verdict import chain_count
from glfm_cli.encoding import Data, level_numbers
from glfm_cli.evaluation.task import AT, HiddenTask, Prediction, TakesAll
from glfm_cli.inference.hidden_cells import Folded, recalibrate
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import Marginal, predict
from glfm_cli.inference.sampling import Plan, Run, sample
from glfm_cli.inference.scoring import log_scores
from glfm_cli.latent import MODELS
from glfm_cli.latent.model import Pairs, Problem
from glfm_cli.links import LinkConfig
from glfm_cli.options import MatrixOptions, Sampling
from glfm_cli.schema import Schema
from glfm_cli.settings import apply_settings

NOTHING = MatrixOptions()
PLAN = ("chains", "warmup", "draws", "thin")


@dataclass(frozen=True)
class ModelMethod(TakesAll):
    """A latent model, completed by its own links.

    fixed : settings that make the method what it is; the user's others are laid over the defaults
    matrix : what is known of a matrix
    """

    name: str
    model: str
    sampling: Sampling
    fixed: Mapping[str, object]
    matrix: MatrixOptions = NOTHING

    @property
    def key(self) -> str:
        """Return the model and all that steers its sampling."""
        length = paced(self.sampling, self.model).length(0)
        named: dict[str, object] = {
            "chains": self.sampling.chains,
            **{n: length[n] for n in PLAN[1:]},
        }
        named |= {"time_limit": self.sampling.time_limit, "settings": {}}
        named |= {} if self.sampling.effort is None else {"effort": self.sampling.effort}
        plan = f"Sampling({', '.join(f'{name}={value!r}' for name, value in named.items())})"
        settings = sorted((name, str(value)) for name, value in self.settings.items())
        known = sorted(self.matrix.written()), self.matrix.missingness_features
        more = f" {known}" if self.matrix != NOTHING else ""
        return f"{self.name} {self.model} {plan} {settings}{more}"

    @property
    def settings(self) -> dict[str, object]:
        """Return the user's settings that this model has, and the fixed ones."""
        known = self.known_settings()
        given = {name: v for name, v in (self.sampling.settings or {}).items() if name in known}
        return {**given, **self.fixed}

    def known_settings(self) -> set[str]:
        """Return the names of the settings of this model and of the links."""
        configs = (MODELS[self.model].Config(), LinkConfig())
        return {f.name for config in configs for f in dataclasses.fields(config)}

    def configure(self, settings: Mapping[str, object]) -> dict[str, Any]:
        """Return the configurations under some settings; raises UsageError for a wrong one."""
        configs = {"model": MODELS[self.model].Config(), "links": LinkConfig()}
        return apply_settings(configs, settings)

    def check(self, table: pa.Table, schema: Schema, data: Encoded) -> None:
        """Raise GlfmError when a setting is wrong or a column has no link."""
        self.prepare(table, schema, self.seen(data), seed=0)

    def prepare(
        self, table: pa.Table, schema: Schema, data: Encoded, *, seed: int
    ) -> tuple[Problem, Plan]:
        """Return what is sampled, and for how long."""
        sampling = dataclasses.replace(
            self.sampling, model=self.model, seed=seed, settings=self.settings
        )
        if MODELS[self.model].kind == "ascent":  # they are for the samplers beside it
            sampling = dataclasses.replace(sampling, warmup=None, draws=None, thin=None)
        if isinstance(data, Data):
            problem, _, plan = prepare(table, schema, sampling, data=data)
            return problem, plan
        problem, _, plan = prepare_matrix(
            data.triplets,
            sampling,
            features=(self.matrix.row_features, self.matrix.column_features),
            missingness_features=self.matrix.missingness_features,
        )
        return problem, plan

    def seen(self, data: Any) -> Any:
        """Return an encoded table as the model is to see it."""
        return data

    def sample(self, task: HiddenTask) -> Run:
        """Return the draws given the observed cells."""
        data = self.seen(task.data)
        problem, plan = self.prepare(task.table, task.schema, data, seed=task.seed)
        folded: Folded = {}

        def ready(posterior: Posterior) -> Posterior:
            if not isinstance(data, Data):
                return posterior
            return recalibrate(posterior, problem, threads=task.threads, folded=folded)

        count = chain_count(plan, data, None, ready)
        run = sample(
            problem,
            plan,
            threads=task.threads,
            time_limit=self.sampling.time_limit,
            enough=count,
        )
        if run.stopped == "interrupted":
            raise KeyboardInterrupt
        posterior = ready(run.posterior) if count is None else count.ended(run.posterior)[0]
        return dataclasses.replace(run, posterior=posterior)

    def fit(self, task: HiddenTask) -> dict[int, Prediction]:
        """Return the predictives of the hidden cells, and the estimates that `impute` puts in."""
        return self.answer(self.sample(task).posterior, task)

    def answer(self, posterior: Posterior, task: HiddenTask) -> dict[int, Prediction]:
        """Return what some draws say of the hidden cells."""
        held = task.holdout
        if held is not None:
            pairs = Pairs(held.test.row.astype(np.int64), held.test.column.astype(np.int64))
            posterior = posterior.at(pairs)
        marginals = predict(posterior, task.hidden, AT, threads=task.threads)
        logs = log_scores(posterior, task.hidden, task.truth)
        return {
            d: Prediction(
                estimate=point(posterior.links[d], marginal, "auto"),
                log_score=logs[d],
                quantiles=marginal.quantiles if marginal.probabilities is None else None,
                probabilities=marginal.probabilities,
                mean=None if held is None else _mean_of(marginal, held.test.value.levels),
            )
            for d, marginal in marginals.items()
        }


def _mean_of(marginal: Marginal, levels: tuple[str, ...]) -> Array:
    """Return means in the numbers that levels are."""
    if marginal.probabilities is None:
        return marginal.mean
    return marginal.probabilities @ level_numbers(levels)
