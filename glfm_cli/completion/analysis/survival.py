"""Times until an event, or until nobody looked any more: proportional hazards.

    hazard(t | x) = h_k exp((x - c) b),  t in piece k
    log p(t, d | x) = d log hazard(t | x) - H(t) exp((x - c) b)

with d = 1 where the event happened, H the integral of h, and pieces that hold as many events each
[Holford 1980], of which many are near to Cox's law. Under p(h_k) ~ 1 / h_k each h_k given b is
gamma; b given h has the posterior of a Poisson regression of d with exposures H(t). The constant is
part of h; c is the mean of the x of a sweep, so that h and b go little together.

Time and event are one number y: t where the event happened, -t where it had not.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.random import Generator

from glfm_cli.arrays import Array
from glfm_cli.completion.analysis.families import (
    LARGEST,
    Exponential,
    Poisson,
    RegressionDraw,
    Seen,
)
from glfm_cli.completion.analysis.formula import AnalysisFormula
from glfm_cli.encoding import EncodedColumn
from glfm_cli.errors import counted
from glfm_cli.schema import Column

EVENTS_A_PIECE, MOST_PIECES = 5, 20
ROUNDS, CLOSE = 50, 1e-8  # of a fit; the largest step of the last one
LEAST, NO_EVENT = 1e-300, 1e-3  # of an exposure; events of a piece without any


@dataclass(frozen=True)
class SurvivalDraw(RegressionDraw):
    """b (p,), its constant 0, the hazards of the pieces (K,) where x is `centre` (p,)."""

    hazards: Array = field(default_factory=lambda: np.ones(1))
    centre: Array = field(default_factory=lambda: np.zeros(1))


@dataclass(frozen=True)
class ProportionalHazards:
    """Times and events; `cuts` part the pieces."""

    cuts: tuple[float, ...]
    words = "proportional hazards"

    @classmethod
    def of(cls, y: Array) -> ProportionalHazards:
        """Return the law with pieces as times and events (n,) have it."""
        times = np.abs(y[happened(y)])
        n_pieces = int(np.clip(times.size // EVENTS_A_PIECE, 1, MOST_PIECES))
        if n_pieces == 1:
            return cls(())
        cuts = np.quantile(times, np.arange(1, n_pieces) / n_pieces)
        return cls(tuple(np.unique(cuts).tolist()))

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        now = cast(SurvivalDraw, at)
        eta = np.minimum((X - now.centre) @ now.b, LARGEST)
        logs = np.log(np.maximum(now.hazards, LEAST))
        events = np.where(happened(y), logs[self.piece(y)] + eta, 0.0)
        return np.asarray(events - self.spent(y) @ now.hazards * np.exp(eta))

    def fit(self, seen: Seen) -> SurvivalDraw:
        b = np.zeros(seen.X.shape[1])
        for _ in range(ROUNDS):
            now = self._likeliest(seen, b)
            law, counts = self.as_counts(seen, now)
            last, b = b, _without_constant(law.mode(counts))
            if np.abs(b - last).max() < CLOSE:
                break
        return self._likeliest(seen, b)

    def draw(self, seen: Seen, last: RegressionDraw | None, rng: Generator) -> SurvivalDraw:
        now = self._likeliest(seen, self.fit(seen).b if last is None else last.b)
        counted = self._counted(seen.y)
        now = replace(now, hazards=now.hazards / counted * rng.gamma(counted))
        law, counts = self.as_counts(seen, now)
        b = law.draw(counts, RegressionDraw(now.b), rng).b
        # The constant is part of the hazards, which have the law of any scale.
        return SurvivalDraw(_without_constant(b), 1.0, now.hazards * np.exp(b[0]), now.centre)

    def as_counts(self, seen: Seen, at: SurvivalDraw) -> tuple[Exponential, Seen]:
        """Return the Poisson regression of whether events happened that b is of, given hazards.

        Its prior is that of slopes.
        """
        law = _Exposed(np.maximum(self.spent(seen.y) @ at.hazards, LEAST))
        y = happened(seen.y).astype(np.float64)
        slopes = seen.prior - np.outer(seen.prior[0], seen.prior[0])
        slopes[0, 0] = 1.0
        return law, Seen(y, seen.X - at.centre, slopes)

    def piece(self, y: Array) -> Array:
        """Return in which piece (n,) times are."""
        return np.searchsorted(self.cuts, np.abs(y))

    def spent(self, y: Array) -> Array:
        """Return the time (n, K) that is spent in each piece."""
        ends = np.array([*self.cuts, np.inf])
        starts = np.array([0.0, *self.cuts])
        return np.clip(np.abs(y)[:, None], starts, ends) - starts

    def _counted(self, y: Array) -> Array:
        """Return the number of events (K,) in each piece; a little where there are none."""
        found = np.bincount(self.piece(y[happened(y)]), minlength=len(self.cuts) + 1)
        return np.maximum(found, NO_EVENT)

    def _likeliest(self, seen: Seen, b: Array) -> SurvivalDraw:
        """Return b with the likeliest hazards: events by the time spent, weighed by risk."""
        centre = _without_constant(seen.X.mean(axis=0))
        risk = np.exp(np.minimum((seen.X - centre) @ b, LARGEST))
        exposed = np.maximum(risk @ self.spent(seen.y), LEAST)
        return SurvivalDraw(b, 1.0, self._counted(seen.y) / exposed, centre)


class _Exposed(Poisson):
    """Counts of rows (n,) whose means are those at their linear predictors times exposures."""

    def __init__(self, exposures: Array) -> None:
        self.exposures = exposures

    def first(self, y: Array) -> Array:
        return np.log((y + 0.5) / (self.exposures + 0.5))

    def mean(self, eta: Array) -> Array:
        return self.exposures * np.exp(np.minimum(eta, LARGEST))

    def log_density(self, y: Array, X: Array, at: RegressionDraw) -> Array:
        eta = X @ at.b
        return np.asarray(y * eta - self.mean(eta))


def happened(y: Array) -> Array:
    """Return where (n,) the event happened."""
    return np.asarray(~np.signbit(y) & ~np.isnan(y))


def events_of(regression: AnalysisFormula) -> str:
    """Return how many events survival times have, and what they are; of other responses nothing."""
    if not isinstance(regression.family, ProportionalHazards):
        return ""
    _, event = regression.told_by
    levels = regression.columns[event.formula.names[0]].levels
    what = event.formula.text
    if event.each:
        what += f" == {levels[-1]}"
    n = int(happened(regression.columns[regression.target].x).sum())
    return f", {counted(n, 'event')} ({what})"


def _without_constant(b: Array) -> Array:
    return np.append(0.0, b[1:])


def survival_column(name: str, times: EncodedColumn, events: Array) -> EncodedColumn:
    """Return times and events (n,), 0 or 1 and NaN where not known, as one column."""
    y = np.where(events > 0.0, times.x, -times.x)
    seen = times.observed & ~np.isnan(events)
    column = Column(name).of_numbers()
    nowhere = np.zeros(y.size, dtype=bool)
    return EncodedColumn(column, -1, np.where(seen, y, np.nan), seen, nowhere)
