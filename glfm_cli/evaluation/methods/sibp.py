"""The baseline of the GLFM article: the feature model on columns that are all taken as Gaussian.

Numbers and the codes of levels are standardised and modelled as real columns by GLFM itself, with
identity margins; the answer is rounded back  [GLFM section 5.1]. The probability of a discrete
value x is that of (x - 1/2, x + 1/2], without a lower end for the smallest observed value and
without an upper end for the largest  [GLFM appendix A.2]. Each column has a noise variance of its
own, where [Griffiths and Ghahramani 2011] has one for all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data, EncodedColumn
from glfm_cli.evaluation.methods.models import ModelMethod
from glfm_cli.evaluation.task import AT, HiddenTask, Prediction
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import predict
from glfm_cli.inference.scoring import log_scores
from glfm_cli.links import Params
from glfm_cli.links.intervals import log_interval
from glfm_cli.links.law import Normal, one_number
from glfm_cli.links.levels import LevelLink
from glfm_cli.links.numeric import LogDensity
from glfm_cli.links.real import RealLink
from glfm_cli.options import Sampling
from glfm_cli.schema import Transform


class Sibp(ModelMethod):
    """GLFM on Gaussian columns, its answer rounded back."""

    def __init__(self, sampling: Sampling) -> None:
        super().__init__("sibp", "glfm", sampling, {"recalibrate": False})

    def seen(self, data: Data) -> Data:
        """Return the table with Gaussian columns only."""
        return as_gaussian(data)

    def answer(self, gaussian: Posterior, task: HiddenTask) -> dict[int, Prediction]:
        """Return rounded means, intervals of the Gaussians, and scores by the interval rule."""
        means = predict(gaussian, task.hidden)
        links: Sequence[Any] = [
            rounded(link, encoded)
            if d in task.hidden and (encoded.column.integral or encoded.levels)
            else link
            for d, (link, encoded) in enumerate(
                zip(gaussian.links, task.data.columns, strict=True)
            )
        ]
        posterior = dataclasses.replace(gaussian, links=tuple(links))
        spread = predict(posterior, task.hidden, AT)
        logs = log_scores(posterior, task.hidden, task.truth)
        answer = {}
        for d, marginal in spread.items():
            answer[d] = Prediction(
                estimate=round_back(task.data.columns[d], means[d].mean),
                log_score=logs[d],
                quantiles=marginal.quantiles if marginal.probabilities is None else None,
                probabilities=marginal.probabilities,
            )
        return answer


def as_gaussian(data: Data) -> Data:
    """Return an encoded table whose columns are all real, codes of levels among them."""
    columns = tuple(
        dataclasses.replace(
            encoded,
            column=dataclasses.replace(
                encoded.column.of_numbers(),
                transform=Transform.NONE,
                reflect=None,
                bounds=(None, None),
                levels=None,
                atom="none",
            ),
            levels=(),
        )
        for encoded in data.columns
    )
    return dataclasses.replace(data, columns=columns)


def round_back(encoded: EncodedColumn, mean: Array) -> Array:
    """Return Gaussian means as values of the column's own type: the nearest that it has."""
    if encoded.levels:
        return np.clip(np.floor(mean + 0.5), 0.0, len(encoded.levels) - 1.0)
    if encoded.column.integral:
        return np.maximum(np.floor(mean + 0.5), 0.0)
    return np.maximum(mean, 0.0) if encoded.column.positive else mean


def rounded(link: Any, encoded: EncodedColumn) -> RoundedCounts | RoundedLevels:
    """Return the link of a discrete column that was modelled as a Gaussian one."""
    if encoded.levels:
        return RoundedLevels(encoded.column.name, link, len(encoded.levels))
    seen = encoded.x[encoded.observed]
    fields = {f.name: getattr(link, f.name) for f in dataclasses.fields(RealLink)}
    return RoundedCounts(**fields, first=float(seen.min()), last=float(seen.max()))


def log_rounded(
    link: RealLink, x: Array, eta: Array, sd: Array, first: float, last: float
) -> Array:
    """Return log P(x - 1/2 < v <= x + 1/2) of a Gaussian v, open beyond `first` and `last`."""
    low = np.where(x <= first, -np.inf, link.margin.to_latent(x - 0.5))
    high = np.where(x >= last, np.inf, link.margin.to_latent(x + 0.5))
    return log_interval((low - eta) / sd, (high - eta) / sd)


@dataclass(frozen=True, eq=False)
class RoundedCounts(RealLink):
    """A count column behind a Gaussian one.

    first, last : the smallest and largest observed count
    """

    first: float = 0.0
    last: float = 0.0

    integral = True

    def value(self, y: Array) -> Array:
        """Return the count nearest to the Gaussian value."""
        return np.maximum(np.floor(super().value(y) + 0.5), 0.0)

    def log_density_at(self, x: Array, params: Params) -> LogDensity:
        """Return the log probability of each count."""
        return lambda eta, var: log_rounded(self, x, eta, np.sqrt(var), self.first, self.last)


@dataclass(frozen=True, eq=False)
class RoundedLevels(LevelLink):
    """A level column behind a Gaussian one: only what predictives need of a link."""

    name: str
    link: RealLink
    n_levels: int

    n_latent = 1
    ordered = True

    def log_probability(self, x: Array, part: Normal, params: Params) -> Array:
        """Return the log probability of each level."""
        eta, var = one_number(part)
        return log_rounded(self.link, x, eta, np.sqrt(var), 0.0, self.n_levels - 1.0)

    def level_probabilities(self, part: Normal, params: Params) -> Array:
        """Return (n, R) probabilities of the levels."""
        eta, var = one_number(part)
        codes, sd = np.arange(float(self.n_levels)), np.sqrt(var)[:, None]
        return np.exp(log_rounded(self.link, codes, eta[:, None], sd, 0.0, self.n_levels - 1.0))
