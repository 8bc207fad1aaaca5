"""Responses that are counts: a law that varies more than Poisson's, and which law fits them.

    negbin   y ~ Poisson(g exp X b),  g ~ Gamma(1/a, 1/a),  so that var y = m + a m^2

b given a takes the step of the other laws, a given b a slice of log a [Neal 2003]. The prior of a,
p(a) = 1 / (1 + a)^2, is even next to Poisson's law, which a = 0 is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from scipy.special import betainc, betaln, log_expit

from glfm_cli.arrays import Array
from glfm_cli.completion.analysis.families import (
    LARGEST,
    Exponential,
    Family,
    Linear,
    Logistic,
    Poisson,
    RegressionDraw,
    ResponseMoments,
    Seen,
)
from glfm_cli.latent.bsvd.effects import slice_draw
from glfm_cli.links.intervals import log_interval

LOG_A = (-20.0, 8.0)  # of dispersions; beyond them nothing changes
OF_FIT = (-12.0, 5.0)  # where the likeliest is looked for
MOST_MEAN = 2.0**53  # of a count that is drawn
LEAST = 1e-12  # variance of normal errors


@dataclass(frozen=True)
class NegativeBinomial(Poisson):
    """Counts whose variance is m + a m^2; `a` where the dispersion is given."""

    a: float = 1.0
    words = "negative binomial, log link"

    def weight(self, mean: Array) -> Array:
        return mean / (1.0 + self.a * mean)

    def score(self, y: Array, mean: Array) -> Array:
        return (y - mean) / (1.0 + self.a * mean)

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        a, eta = at.s2, np.minimum(X @ at.b, LARGEST)
        above = np.log1p(a * np.exp(eta))
        choose = -betaln(1.0 / a, y + 1.0) - np.log(1.0 / a + y)
        return np.asarray(choose + y * (eta + np.log(a) - above) - above / a)

    def moments(self, X: Array, at: RegressionDraw) -> ResponseMoments:
        mean = self.mean(X @ at.b)
        return ResponseMoments(mean, mean, mean + at.s2 * mean**2)

    def propose(self, X: Array, at: RegressionDraw, rng: Generator) -> Array:
        g = rng.gamma(1.0 / at.s2, at.s2, len(X))
        return rng.poisson(np.minimum(g * self.mean(X @ at.b), MOST_MEAN)).astype(np.float64)

    def up_to(self, end: float, X: Array, at: RegressionDraw) -> Array:
        if end < 0.0 or end == np.inf:
            return Poisson.up_to(self, end, X, at)
        above = 1.0 / (1.0 + at.s2 * self.mean(X @ at.b))
        return np.asarray(betainc(1.0 / at.s2, np.floor(end) + 1.0, above))

    def fit(self, seen: Seen) -> RegressionDraw:
        from scipy.optimize import minimize_scalar  # takes long to import

        def at(t: float) -> RegressionDraw:
            a = float(np.exp(t))
            return RegressionDraw(_Given(a).mode(seen), a)

        def minus_log_p(t: float) -> float:
            return -float(np.sum(self.log_density(seen.y, seen.X, at(t))))

        return at(float(minimize_scalar(minus_log_p, bounds=OF_FIT, method="bounded").x))

    def draw(self, seen: Seen, last: RegressionDraw | None, rng: Generator) -> RegressionDraw:
        a = self.a if last is None else last.s2
        given = _Given(a)
        b = Exponential.draw(given, seen, last, rng).b

        def log_p(t: float) -> float:
            if not LOG_A[0] < t < LOG_A[1]:
                return -np.inf
            at = RegressionDraw(b, float(np.exp(t)))
            log_prior = t + 2.0 * float(log_expit(-t))
            return float(np.sum(self.log_density(seen.y, seen.X, at))) + log_prior

        return RegressionDraw(b, float(np.exp(slice_draw(log_p, float(np.log(a)), rng))))


class _Given(NegativeBinomial):
    """Such counts of a known dispersion."""

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        return NegativeBinomial.log_density(self, y, X, replace(at, s2=self.a))


FAMILIES: dict[str, Family] = {
    "linear": Linear(),
    "logistic": Logistic(),
    "poisson": Poisson(),
    "negbin": NegativeBinomial(),
}


def law_of_counts(seen: Seen) -> Family:
    """Return the law of complete rows with the least Akaike's criterion.

    Poisson's where counts vary as its do, the negative binomial where they vary more, normal errors
    where they vary less or are far from 0. Of too few rows the negative binomial.
    """
    n, p = seen.X.shape
    if n <= p + 1:
        return FAMILIES["negbin"]

    def criterion(name: str) -> float:
        at = FAMILIES[name].fit(seen)
        if name == "linear":  # of what is rounded: a density is no probability
            away, sd = seen.y - seen.X @ at.b, np.sqrt(max(at.s2, LEAST))
            log_p = log_interval((away - 0.5) / sd, (away + 0.5) / sd)
        else:
            log_p = FAMILIES[name].log_density(seen.y, seen.X, at)
        return p + (name != "poisson") - float(np.sum(log_p))

    return FAMILIES[min(("poisson", "negbin", "linear"), key=criterion)]
