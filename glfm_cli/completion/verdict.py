"""Whether the estimates of a completion are precise enough."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from glfm_cli.completion.header import Encoded
from glfm_cli.encoding import Data
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.precision import CELLS as MEASURED
from glfm_cli.inference.precision import GOAL, GROWTH_GOAL, Precision, measure_precision
from glfm_cli.inference.run import Plan, Stop
from glfm_cli.latent.capabilities import Candidates
from glfm_cli.latent.model import Pairs
from glfm_cli.streams import CELLS, Streams

Recalibrated = Callable[[Posterior], Posterior]


def judge(posterior: Posterior, data: Encoded, seed: int, goal: float | None = None) -> Precision:
    """Return how precise the estimates of missing cells are, or of pairs drawn at random."""
    rng = Streams(seed, 0).get(CELLS)
    missing = {d: np.flatnonzero(e.requested) for d, e in enumerate(data.columns)}
    if not isinstance(data, Data):
        pairs = (rng.integers(len(ids), size=MEASURED) for ids in (data.rows, data.others))
        posterior, missing = posterior.at(Pairs(*pairs)), {0: np.arange(MEASURED)}
    return measure_precision(posterior, missing, rng, goal or GOAL)


class ChainCount:
    """Says how many chains a run takes, given those it has, and keeps how precise these were.

    As many as bring the estimates to `goal`, where somebody says; else to `GROWTH_GOAL`, at most as
    many as the plan allows. Estimates are those of `recalibrated` draws, in which candidates have
    their weights.
    """

    def __init__(
        self, plan: Plan, data: Encoded, goal: float | None, recalibrated: Recalibrated
    ) -> None:
        self.plan, self.data, self.goal, self._recalibrated = plan, data, goal, recalibrated
        self.judged: tuple[Posterior, Precision] | None = None

    def __call__(self, posterior: Posterior) -> int:
        """Return the number of chains."""
        plan, goal = self.plan, self.goal
        posterior = self._recalibrated(posterior)
        found = judge(posterior, self.data, plan.seed, goal or GROWTH_GOAL)
        self.judged = posterior, found
        most = plan.most_chains if goal is None else max(8, 4 * found.chains)
        return max(plan.chains, min(found.chains_needed, most or plan.chains))

    def ended(self, posterior: Posterior) -> tuple[Posterior, Precision | None]:
        """Return draws recalibrated, and how precise their estimates are, where they were judged.
        """
        if self.judged is None or self.judged[0].chains is not posterior.chains:
            return self._recalibrated(posterior), None
        return self.judged[0], replace(self.judged[1], goal=self.goal or GOAL)


def chain_count(
    plan: Plan, data: Encoded, goal: float | None, recalibrated: Recalibrated
) -> ChainCount | None:
    """Return what says how many chains a run takes, None where that is fixed."""
    fixed = goal is None and plan.most_chains is None
    return None if fixed else ChainCount(plan, data, goal, recalibrated)


def unless_interrupted(recalibrated: Recalibrated, stop: Stop) -> Recalibrated:
    """Return what recalibrates draws, but leaves them as they are at the first Ctrl-C of a run.

    stop : of the run, which then has ended
    """

    def either(posterior: Posterior) -> Posterior:
        try:
            return recalibrated(posterior)
        except KeyboardInterrupt:
            if stop.reason == "interrupted":
                raise
            stop.reason = "interrupted"
            return posterior

    return either


def uncorrected(posterior: Posterior) -> str:
    """Return what to say of draws whose recalibration did not come about."""
    models = ", and models are not weighted" * isinstance(posterior.model, Candidates)
    return f"interrupted before observed cells were forecast: no interval is recalibrated{models}"
