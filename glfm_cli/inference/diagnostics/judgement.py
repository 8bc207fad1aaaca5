"""Whether a run has converged: the measures of every traced quantity against the limits.

A quantity is watched ("gating") when the run counts as converged only if it has. Verdicts come as
numbers, as sentences for the user, and as plain objects for JSON.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.diagnostics.measures import (
    MIN_DRAWS,
    ess_bulk,
    ess_tail,
    mcse_mean,
    mean,
    rhat,
    sd,
)

Trace = Array | Sequence[Array]

RHAT_LIMIT = 1.05
ESS_LIMIT = 100.0


class Flag(StrEnum):
    """Why a quantity has no ordinary R-hat."""

    SHORT = "too few draws"
    BROKEN = "not finite"
    CONSTANT = "never changes"  # one value in every chain: nothing to judge, nothing wrong
    STUCK = "chains keep to different values"


@dataclass(frozen=True)
class QuantityDiagnostics:
    """How well one traced quantity was sampled.

    rhat, ess_bulk, ess_tail, mcse_mean, mean, sd : as the functions of this module give them; mean
        and sd over all draws of all chains
    gating : True when the run counts as converged only if this quantity has
    flag : set when R-hat is NaN or infinite, and says why
    """

    name: str
    rhat: float
    ess_bulk: float
    ess_tail: float
    mcse_mean: float
    mean: float
    sd: float
    gating: bool
    flag: Flag | None

    @property
    def ess(self) -> float:
        """The smaller of bulk and tail effective sample size."""
        return min(self.ess_bulk, self.ess_tail)

    def converged(self) -> bool:
        """Return True when R-hat and both sample sizes are within their limits.

        A quantity with one and the same value in all draws has converged, however few they are
        beyond 3; one with too few draws, or with draws that are not finite, has not.
        """
        return self.severity() <= 1.0

    def severity(self) -> float:
        """Return how far the quantity is from the limits: at most 1 within them, else above."""
        if self.flag is Flag.CONSTANT:
            return 0.0
        if self.flag is not None:
            return math.inf
        return max(self.rhat / RHAT_LIMIT, ESS_LIMIT / self.ess)

    def to_dict(self) -> dict[str, float | bool | str | None]:
        """Return plain numbers for JSON; what is NaN or infinite is None, and `flag` says why."""
        row: dict[str, float | bool | str | None] = {
            name: value if math.isfinite(value) else None
            for name in ("rhat", "ess_bulk", "ess_tail", "mcse_mean", "mean", "sd")
            for value in [getattr(self, name)]
        }
        return row | {"gating": self.gating, "flag": None if self.flag is None else str(self.flag)}


@dataclass(frozen=True)
class Diagnostics:
    """The diagnostics of all traced quantities, in the order they were traced.

    n_chains, n_draws : chains, and the draws of each that were compared
    bound_converged : of an ascent, whether the bound of its best restart had stopped rising, which
        alone decides
    """

    quantities: tuple[QuantityDiagnostics, ...]
    n_chains: int
    n_draws: int
    bound_converged: bool | None = None

    def __getitem__(self, name: str) -> QuantityDiagnostics:
        for quantity in self.quantities:
            if quantity.name == name:
                return quantity
        raise KeyError(name)

    def __iter__(self) -> Iterator[QuantityDiagnostics]:
        return iter(self.quantities)

    def converged(self) -> bool:
        """Return True when every watched quantity lies within the limits.

        False when none is watched: nothing was shown.
        """
        if self.bound_converged is not None:
            return self.bound_converged
        return bool(self._watched) and all(q.converged() for q in self._watched)

    def worst(self) -> QuantityDiagnostics | None:
        """Return the watched quantity furthest from the limits, None when none is watched."""
        return max(self._watched, key=lambda q: q.severity(), default=None)

    def summary(self, columns: Sequence[str] = ()) -> str:
        """Return one or two sentences for the user: converged or not, and by what.

        columns : names of the modelled columns, by which their noise is called
        """
        if self.bound_converged is not None:
            return bound_in_words(self.n_chains, self.bound_converged)
        watched, worst = self._watched, self.worst()
        if worst is None:
            return "Convergence was not judged: no quantity was watched."
        if worst.flag is Flag.CONSTANT:
            return "Converged: no watched quantity ever changes."
        failed = sum(not q.converged() for q in watched)
        if failed:
            share = f"{failed} of {len(watched)} watched quantities"
            return f"Not converged ({share}): {self._reason(worst, columns)}"
        moving = [q for q in watched if q.flag is None]
        highest = max(1.0, *(q.rhat for q in moving))
        return (
            f"Converged: R-hat at most {highest:.3f}, draws worth at least "
            f"{_whole(min(q.ess for q in moving))} independent ones "
            f"(watched quantities: {len(watched)})."
        )

    @property
    def _watched(self) -> list[QuantityDiagnostics]:
        return [q for q in self.quantities if q.gating]

    def _reason(self, quantity: QuantityDiagnostics, columns: Sequence[str]) -> str:
        name, (kind, _, d) = f"'{quantity.name}'", quantity.name.partition("_")
        if columns and kind == "noise" and d.isdigit():
            name = f"the noise of '{columns[int(d)]}'"
        if quantity.flag is Flag.SHORT:
            return f"each chain kept {self.n_draws} draws, {MIN_DRAWS} are needed to judge it."
        if quantity.flag is Flag.BROKEN:
            return f"{name} took values that are not finite numbers."
        if quantity.flag is Flag.STUCK:
            return f"the chains, or their halves, keep to different values of {name}."
        wrong = []
        if quantity.rhat > RHAT_LIMIT:
            wrong.append(f"R-hat {quantity.rhat:.3f} (at most {RHAT_LIMIT:g} is needed)")
        if quantity.ess < ESS_LIMIT:
            worth = f"draws worth {_whole(quantity.ess)} independent ones"
            wrong.append(f"{worth} (at least {ESS_LIMIT:g} are needed)")
        return f"{name} has {' and '.join(wrong)}."

    def to_dict(self) -> dict[str, object]:
        """Return the verdict, the size of the comparison and each quantity, ready for JSON."""
        return {
            "converged": self.converged(),
            "chains": self.n_chains,
            "draws": self.n_draws,
            "quantities": {q.name: q.to_dict() for q in self.quantities},
        }


def bound_in_words(restarts: int, converged: bool) -> str:
    """Return whether the bound of an ascent had stopped rising, as a sentence."""
    best = f"the bound of the best of {restarts} restarts"
    if converged:
        return f"Converged: {best} had stopped rising."
    return f"Not converged: {best} was still rising."


def diagnose(traces: Mapping[str, Trace], gating: Container[str]) -> Diagnostics:
    """Return the diagnostics of every trace.

    traces : mapping of name to (n_chains, n_draws) float64; or to a sequence of 1-D arrays, one a
        chain. Chains of unequal length are cut, over all quantities, to the shortest: its first
        draws are compared with the first of the others.
    gating : names of the quantities that decide whether the run has converged

    Raises ValueError: the quantities differ in the number of chains, or a trace has none.
    """
    chains = {name: [np.asarray(c, np.float64) for c in trace] for name, trace in traces.items()}
    counts = {len(trace) for trace in chains.values()}
    if len(counts) > 1 or 0 in counts:
        raise ValueError(f"every quantity needs the same chains, at least one: found {counts}")
    n_draws = min((len(c) for trace in chains.values() for c in trace), default=0)
    cut = {name: np.stack([c[:n_draws] for c in trace]) for name, trace in chains.items()}
    return Diagnostics(
        quantities=tuple(_diagnose_one(name, draws, name in gating) for name, draws in cut.items()),
        n_chains=max(counts, default=0),
        n_draws=n_draws,
    )


def _diagnose_one(name: str, draws: Array, gating: bool) -> QuantityDiagnostics:
    value = rhat(draws)
    usable = draws.size > 0 and bool(np.isfinite(draws).all())
    return QuantityDiagnostics(
        name=name,
        rhat=value,
        ess_bulk=ess_bulk(draws),
        ess_tail=ess_tail(draws),
        mcse_mean=mcse_mean(draws),
        mean=mean(draws) if usable else math.nan,
        sd=sd(draws) if usable and draws.size > 1 else math.nan,
        gating=gating,
        flag=_flag(draws, value),
    )


def _flag(draws: Array, value: float) -> Flag | None:
    if not np.isfinite(draws).all():
        return Flag.BROKEN
    if draws.shape[1] < MIN_DRAWS:
        return Flag.SHORT
    if math.isnan(value):
        return Flag.CONSTANT
    return Flag.STUCK if math.isinf(value) else None


def _whole(value: float) -> str:
    return f"{math.floor(value):,}"
