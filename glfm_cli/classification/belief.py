"""What a classifier believes of how many experts there are, and of alpha, beside its prior.

No q has the number of experts itself: sticks are drawn from q, and experts with a share of the
rows above `DOMINANT` counted. The last expert that is kept stands for all that are empty; its share
is broken by sticks as they are without rows.  [iQGME section 3.5.1, figures 3.3 and 3.8]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.classification.classifier import DOMINANT, Classifier
from glfm_cli.latent.iqgme import Drawn
from glfm_cli.latent.iqgme.sticks import Sticks, shares_of

DRAWS = 4000
RANGE = (0.1, 0.5, 0.9)


@dataclass(frozen=True, eq=False)
class Belief:
    """The law of the number of experts, and of alpha.

    counts : (H + 1,) probability that so many experts have a share that counts
    alpha : 10 %, 50 % and 90 % quantiles
    """

    counts: Array
    alpha: tuple[float, float, float]

    @property
    def named(self) -> dict[int, float]:
        """Return the numbers that are at all likely, and their probabilities."""
        return {int(k): float(self.counts[k]) for k in np.flatnonzero(self.counts >= DOMINANT)}

    def to_dict(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        low, median, high = self.alpha
        return {
            "experts": {str(k): p for k, p in self.named.items()},
            "alpha": {"median": median, "low": low, "high": high},
        }

    @classmethod
    def of(cls, sticks: Array, alpha: Array, weights: Array) -> Belief:
        """Return the law of draws: sticks (S, H - 1), alpha (S,), weights (S,) that add to 1."""
        found = (shares_of(sticks) > DOMINANT).sum(axis=1)
        counts = np.bincount(found, weights, minlength=sticks.shape[1] + 2)
        order = np.argsort(alpha)
        below = np.cumsum(weights[order])
        low, median, high = (float(alpha[order][np.searchsorted(below, p)]) for p in RANGE)
        return cls(counts, (low, median, high))


def believed(classifier: Classifier) -> tuple[Belief, Belief]:
    """Return what is believed after the data, and before them."""
    config = classifier.config
    most = config.experts if classifier.task is None else config.shared_experts
    most = max(most, *(m.experts.rules.H for m in classifier.members), 0)
    rng = np.random.default_rng(0)
    prior_alpha = rng.gamma(config.alpha_shape, 1.0 / config.alpha_rate, DRAWS)
    tiny = np.finfo(np.float64).tiny
    prior = Belief.of(
        rng.beta(1.0, np.maximum(prior_alpha, tiny)[:, None], (DRAWS, most - 1)),
        prior_alpha,
        np.full(DRAWS, 1.0 / DRAWS),
    )
    if classifier.fitted.draws:
        return _of_draws(classifier.fitted.draws), prior
    parts = [_of_fit(member.experts, most, rng) for member in classifier.members]
    weights = [np.full(DRAWS, member.weight / DRAWS) for member in classifier.members]
    sticks, alphas = (np.concatenate(every) for every in zip(*parts, strict=True))
    return Belief.of(sticks, alphas, np.concatenate(weights)), prior


def _of_draws(draws: Sequence[Drawn]) -> Belief:
    weights = np.full(len(draws), 1.0 / len(draws))
    return Belief.of(
        np.array([q.sticks for q in draws]), np.array([q.alpha for q in draws]), weights
    )


def _of_fit(q: Any, most: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return draws of sticks (DRAWS, most - 1) and of alpha (DRAWS,) of a fit's q."""
    own: Sticks = q.rules
    v1, v2 = np.ones(most - 1), np.full(most - 1, own.alpha)
    v1[: own.v1.size], v2[: own.v2.size] = own.v1, own.v2
    alpha = rng.gamma(own.tau1, 1.0 / own.tau2, DRAWS)
    return rng.beta(v1, v2, (DRAWS, most - 1)), alpha


def in_words(after: Belief, before: Belief) -> list[str]:
    """Return four lines."""

    def counted(belief: Belief) -> str:
        likely = sorted(belief.named.items(), key=lambda item: -item[1])[:4]
        return ", ".join(f"{k} ({p:.2f})" for k, p in sorted(likely))

    def ranged(belief: Belief) -> str:
        low, median, high = belief.alpha
        return f"{median:.2g} ({low:.2g} to {high:.2g})"

    return [
        f"Number of experts: {counted(after)}",
        f"  prior: {counted(before)}",
        f"alpha: {ranged(after)}",
        f"  prior: {ranged(before)}",
    ]
