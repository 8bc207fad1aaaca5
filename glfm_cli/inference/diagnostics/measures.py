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

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from glfm_cli.arrays import mean_ranks

Array = NDArray[np.float64]

MIN_DRAWS = 4  # a chain, so that each half has a variance
TAILS = (0.05, 0.95)


def rank_normalise(draws: Array) -> Array:
    """Return normal scores of the pooled ranks, Phi^-1((rank - 3/8) / (size + 1/4)).

    Ties share their mean rank, so that a trace with few distinct values keeps them.
    """
    ranks = mean_ranks(draws.ravel())
    return ndtri((ranks - 0.375) / (draws.size + 0.25)).reshape(draws.shape)


def split(draws: Array) -> Array:
    """Return the first and second half of every chain as chains of their own.

    draws : (n_chains, n_draws) array; with an odd number of draws the middle one is left out

    Returns (2 n_chains, n_draws // 2) array.
    """
    half = draws.shape[1] // 2
    return np.concatenate((draws[:, :half], draws[:, draws.shape[1] - half :]))


def rhat(draws: Array) -> float:
    """Return the rank-normalised split R-hat, the larger of location and scale.

    sqrt((n - 1) / n + var(chain means) / W), on normal scores   [Vehtari et al. 2021, sect. 4.1]

    draws : (n_chains, n_draws) float64; one chain is enough: its halves are compared

    Returns: NaN for fewer than 4 draws a chain, for a draw that is not finite, and when all draws
        are equal; infinite when no half ever moves but they stand at different values, or at
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

    draws : (n_chains, n_draws) float64

    Returns: NaN for fewer than 4 draws a chain or a draw that is not finite; the number of draws
        when all are equal.
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
    return sd(draws) / math.sqrt(_ess(split(_rescale(draws)[0])))


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


def mean(draws: Array) -> float:
    """Return the mean of all draws; that of equal draws is exactly theirs."""
    if _constant(draws):  # the sum would round
        return float(draws[0, 0])
    scaled, exponent = _rescale(draws)
    return math.ldexp(float(scaled.mean()), exponent)


def sd(draws: Array) -> float:
    """Return the standard deviation of all draws, divisor size - 1; 0 when all are equal."""
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
    padded = 1 << (2 * n - 1).bit_length()  # zeros, so that the circular lags do not wrap
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
