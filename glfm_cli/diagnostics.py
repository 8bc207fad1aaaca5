"""Whether the chains agree, and how many independent draws theirs are worth.

For each scalar quantity traced over several chains:

- R-hat, rank-normalised and split: every chain is cut in two halves, the draws are replaced by
  normal scores of their ranks, and the variance between halves is compared with the variance
  within; once for the draws (location) and once for their distance from the median (scale).
  The larger is reported. 1 means the halves cannot be told apart.
- Bulk and tail effective sample size: the number of independent draws that would give the same
  precision, for the middle of the distribution and for its 5 % and 95 % quantiles (the smaller).
- The Monte Carlo standard error of the mean.

Glossary: M split chains (two a chain), n draws in each, W mean variance within a split chain,
rho_t autocorrelation at lag t pooled over chains, P_j = rho_2j + rho_(2j+1), tau integrated
autocorrelation time.

References: Vehtari, Gelman, Simpson, Carpenter and Bürkner 2021, Bayesian Analysis 16, 667-718;
Geyer 1992, Statistical Science 7, 473-483 (initial monotone sequence).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len
from scipy.special import ndtri

Array = NDArray[np.float64]
Trace = Array | Sequence[Array]

RHAT_LIMIT = 1.05
ESS_LIMIT = 100.0
MIN_DRAWS = 4  # a chain, so that each half has a variance
TAILS = (0.05, 0.95)


def rank_normalise(draws: Array) -> Array:
    """Return normal scores of the pooled ranks, Phi^-1((rank - 3/8) / (size + 1/4)).

    Ties share their mean rank, so that a trace with few distinct values keeps them.
    """
    _, position, count = np.unique(draws, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(count) - (count - 1) / 2
    scores = ndtri((mean_rank - 0.375) / (draws.size + 0.25))
    return scores[position].reshape(draws.shape)


def split(draws: Array) -> Array:
    """Return the first and second half of every chain as chains of their own.

    Parameters
    ----------
    draws : (n_chains, n_draws) array
        With an odd number of draws the middle one is left out.

    Returns
    -------
    (2 n_chains, n_draws // 2) array
    """
    half = draws.shape[1] // 2
    return np.concatenate((draws[:, :half], draws[:, draws.shape[1] - half :]))


def rhat(draws: Array) -> float:
    """Return the rank-normalised split R-hat, the larger of location and scale.

    sqrt((n - 1) / n + var(chain means) / W), on normal scores   [Vehtari et al. 2021, sect. 4.1]

    Parameters
    ----------
    draws : (n_chains, n_draws) float64
        One chain is enough: its halves are compared.

    Returns
    -------
    float
        NaN for fewer than 4 draws a chain, for a draw that is not finite, and when all draws are
        equal; infinite when no half ever moves but they stand at different values, or at
        different distances from the median.
    """
    halves = split(_rescale(draws)[0])
    if not _judgeable(draws) or _constant(halves):
        return math.nan
    folded = np.abs(halves - np.median(halves))
    location = _plain_rhat(rank_normalise(halves))
    # A trace with two equally frequent values lies everywhere at one distance from its median:
    # there is no scale to compare, and the location alone decides.
    scale = location if _constant(folded) else _plain_rhat(rank_normalise(folded))
    return max(location, scale)


def ess_bulk(draws: Array) -> float:
    """Return the effective sample size of the rank-normalised draws.

    Parameters
    ----------
    draws : (n_chains, n_draws) float64

    Returns
    -------
    float
        NaN for fewer than 4 draws a chain or a draw that is not finite; the number of draws when
        all are equal.
    """
    return _ess(rank_normalise(split(draws))) if _judgeable(draws) else math.nan


def ess_tail(draws: Array) -> float:
    """Return the smaller effective sample size of the 5 % and 95 % quantiles.

    Parameters and special cases as in `ess_bulk`.
    """
    if not _judgeable(draws):
        return math.nan
    scaled, _ = _rescale(draws)
    below = [(scaled <= q).astype(np.float64) for q in np.quantile(scaled, TAILS)]
    return min(_ess(split(indicator)) for indicator in below)


def mcse_mean(draws: Array) -> float:
    """Return the Monte Carlo standard error of the mean, sd / sqrt(ESS of the raw draws).

    Parameters and special cases as in `ess_bulk`.
    """
    if not _judgeable(draws):
        return math.nan
    return _sd(draws) / math.sqrt(_ess(split(_rescale(draws)[0])))


def _judgeable(draws: Array) -> bool:
    return draws.shape[1] >= MIN_DRAWS and bool(np.isfinite(draws).all())


def _constant(draws: Array) -> bool:
    return bool(draws.max() == draws.min())


def _rescale(draws: Array) -> tuple[Array, int]:
    """Return draws / 2^e and e, with magnitudes below 1: squares neither over- nor underflow.

    Nothing is rounded, so the results are those of the draws themselves.
    """
    largest = float(np.abs(draws).max(initial=0.0))
    exponent = math.frexp(largest)[1] if math.isfinite(largest) else 0
    return np.ldexp(draws, -exponent), exponent


def _mean(draws: Array) -> float:
    if _constant(draws):  # the sum would round
        return float(draws[0, 0])
    scaled, exponent = _rescale(draws)
    return math.ldexp(float(scaled.mean()), exponent)


def _sd(draws: Array) -> float:
    if _constant(draws):
        return 0.0
    scaled, exponent = _rescale(draws)
    return float(np.ldexp(np.std(scaled, ddof=1), exponent))


def _plain_rhat(chains: Array) -> float:
    n = chains.shape[1]
    between = float(np.var(chains.mean(axis=1), ddof=1))
    if (chains == chains[:, :1]).all():  # stuck, at different places: within is exactly zero
        return math.inf
    within = float(np.var(chains, axis=1, ddof=1).mean())
    return math.sqrt(between / within + (n - 1) / n)


def _autocovariance(chains: Array) -> Array:
    """Return the autocovariance of each chain at lags 0..n-1, divisor n, by FFT."""
    n = chains.shape[1]
    centred = chains - chains.mean(axis=1, keepdims=True)
    padded = next_fast_len(2 * n, real=True)  # zeros, so that the circular lags do not wrap
    spectrum = np.fft.rfft(centred, n=padded, axis=1)
    power = spectrum.real**2 + spectrum.imag**2
    return np.fft.irfft(power, n=padded, axis=1)[:, :n] / n


def _ess(chains: Array) -> float:
    """Return M n / tau over chains already split, by Geyer's initial monotone sequence.

    Of the pairs P_j those before the first that is not positive are summed, each capped by the
    ones before it; of the first left out, the even half counts once, which lowers the variance
    for antithetic chains. tau is at least 1 / log10(M n).   [Vehtari et al. 2021, sect. 3.2]
    """
    if _constant(chains):
        return float(chains.size)
    n_chains, n = chains.shape
    covariance = _autocovariance(chains).mean(axis=0)
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + (float(np.var(chains.mean(axis=1), ddof=1)) if n_chains > 1 else 0.0)
    rho = 1.0 - (within - covariance) / total
    rho[0] = 1.0

    last = max(0, (n - 3) // 2)  # the furthest pair looked at; later lags are mostly noise
    even, odd = rho[0 : 2 * last + 1 : 2], rho[1 : 2 * last + 2 : 2]
    pairs = even + odd
    stop = int(np.argmax(pairs <= 0.0)) if (pairs <= 0.0).any() else last
    kept = np.minimum.accumulate(pairs[:stop])
    remainder = even[stop] if even[stop] > 0.0 or pairs[stop] >= 0.0 else 0.0
    tau = -1.0 + 2.0 * float(kept.sum()) + float(remainder)
    return chains.size / max(tau, 1.0 / math.log10(chains.size))


class Flag(StrEnum):
    """Why a quantity has no ordinary R-hat."""

    SHORT = "too few draws"
    BROKEN = "not finite"
    CONSTANT = "never changes"  # one value in every chain: nothing to judge, nothing wrong
    STUCK = "chains keep to different values"


@dataclass(frozen=True)
class QuantityDiagnostics:
    """How well one traced quantity was sampled.

    Attributes
    ----------
    rhat, ess_bulk, ess_tail, mcse_mean, mean, sd : float
        As the functions of this module give them; mean and sd over all draws of all chains.
    gating : bool
        True when the run counts as converged only if this quantity has.
    flag : Flag or None
        Set when R-hat is NaN or infinite, and says why.
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

    def converged(self, rhat: float = RHAT_LIMIT, ess: float = ESS_LIMIT) -> bool:
        """Return True when R-hat is at most `rhat` and both sample sizes are at least `ess`.

        A quantity with one and the same value in all draws has converged, however few they are
        beyond 3; one with too few draws, or with draws that are not finite, has not.
        """
        return self.severity(rhat, ess) <= 1.0

    def severity(self, rhat: float = RHAT_LIMIT, ess: float = ESS_LIMIT) -> float:
        """Return how far the quantity is from the limits: at most 1 within them, else above."""
        if self.flag is Flag.CONSTANT:
            return 0.0
        if self.flag is not None:
            return math.inf
        return max(self.rhat / rhat, ess / self.ess)

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

    Attributes
    ----------
    quantities : tuple of QuantityDiagnostics
    n_chains, n_draws : int
        Chains, and the draws of each that were compared.
    """

    quantities: tuple[QuantityDiagnostics, ...]
    n_chains: int
    n_draws: int

    def __getitem__(self, name: str) -> QuantityDiagnostics:
        for quantity in self.quantities:
            if quantity.name == name:
                return quantity
        raise KeyError(name)

    def __iter__(self) -> Iterator[QuantityDiagnostics]:
        return iter(self.quantities)

    def converged(
        self,
        rhat: float = RHAT_LIMIT,
        ess: float = ESS_LIMIT,
        gating: Callable[[str], bool] | None = None,
    ) -> bool:
        """Return True when every watched quantity lies within the limits.

        `gating(name)` replaces the choice made in `diagnose`. False when none is watched:
        nothing was shown.
        """
        watched = self._watched(gating)
        return bool(watched) and all(q.converged(rhat, ess) for q in watched)

    def worst(self, rhat: float = RHAT_LIMIT, ess: float = ESS_LIMIT) -> QuantityDiagnostics | None:
        """Return the watched quantity furthest from the limits, None when none is watched."""
        return max(self._watched(None), key=lambda q: q.severity(rhat, ess), default=None)

    def summary(self, rhat: float = RHAT_LIMIT, ess: float = ESS_LIMIT) -> str:
        """Return one or two sentences for the user: converged or not, and by what."""
        watched = self._watched(None)
        worst = self.worst(rhat, ess)
        if worst is None:
            return "Convergence was not judged: no quantity was watched."
        if worst.flag is Flag.CONSTANT:
            return "Converged: no watched quantity ever changes."
        failed = sum(not q.converged(rhat, ess) for q in watched)
        if failed:
            share = f"{failed} of {len(watched)} watched quantities"
            return f"Not converged ({share}): {self._reason(worst, rhat, ess)}"
        moving = [q for q in watched if q.flag is None]
        highest = max(1.0, *(q.rhat for q in moving))
        return (
            f"Converged: R-hat at most {highest:.3f}, draws worth at least "
            f"{_whole(min(q.ess for q in moving))} independent ones "
            f"(watched quantities: {len(watched)})."
        )

    def _watched(self, gating: Callable[[str], bool] | None) -> list[QuantityDiagnostics]:
        return [q for q in self.quantities if (gating(q.name) if gating else q.gating)]

    def _reason(self, quantity: QuantityDiagnostics, rhat: float, ess: float) -> str:
        name = f"'{quantity.name}'"
        if quantity.flag is Flag.SHORT:
            return f"each chain kept {self.n_draws} draws, {MIN_DRAWS} are needed to judge it."
        if quantity.flag is Flag.BROKEN:
            return f"{name} took values that are not finite numbers."
        if quantity.flag is Flag.STUCK:
            return f"the chains, or their halves, keep to different values of {name}."
        wrong = []
        if quantity.rhat > rhat:
            wrong.append(f"R-hat {quantity.rhat:.3f} (at most {rhat:g} is needed)")
        if quantity.ess < ess:
            wrong.append(
                f"draws worth {_whole(quantity.ess)} independent ones (at least {ess:g} are needed)"
            )
        return f"{name} has {' and '.join(wrong)}. Run more draws, or a longer warm-up."

    def to_dict(self) -> dict[str, object]:
        """Return the verdict, the size of the comparison and each quantity, ready for JSON."""
        return {
            "converged": self.converged(),
            "chains": self.n_chains,
            "draws": self.n_draws,
            "quantities": {q.name: q.to_dict() for q in self.quantities},
        }


def diagnose(traces: Mapping[str, Trace], gating: Container[str]) -> Diagnostics:
    """Return the diagnostics of every trace.

    Parameters
    ----------
    traces : mapping of name to (n_chains, n_draws) float64
        Or to a sequence of 1-D arrays, one a chain. Chains of unequal length are cut, over all
        quantities, to the shortest: its first draws are compared with the first of the others.
    gating : container of str
        Names of the quantities that decide whether the run has converged.

    Raises
    ------
    ValueError
        The quantities differ in the number of chains, or a trace has none.
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
        mean=_mean(draws) if usable else math.nan,
        sd=_sd(draws) if usable and draws.size > 1 else math.nan,
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
