"""What each chain says of cells, by which the Monte Carlo error of all chains together is known."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.posterior import Posterior
from glfm_cli.links.observation import Average

Sums = dict[int, Array]  # by the number of draws that were added


class ChainMeans(NamedTuple):
    """What each of C chains says of n cells of a column, and in what unit that is measured.

    whole, first, second : (C, n) means of a cell over the draws of a chain, and of its halves
    sd : (n,) of the cell
    """

    whole: Array
    first: Array
    second: Array
    sd: Array

    def relative_error(self) -> Array:
        """Return (n,) the standard error of the mean over chains, in units of the sd."""
        n_chains = self.whole.shape[0]
        if n_chains < 2:
            return np.full(self.sd.size, np.nan)
        sd, places = np.frexp(np.where(self.sd > 0, self.sd, 1.0))
        whole = np.ldexp(self.whole, -places)  # by powers of two, so that squares do not overflow
        error = np.std(whole, axis=0, ddof=1) / np.sqrt(n_chains)
        return np.where(self.sd > 0, error / sd, 0.0)


def ends_of_halves(posterior: Posterior) -> list[tuple[int, int, int]]:
    """Return draws before each chain, its half and its end; none where chains do not compare."""
    if posterior.weights is not None or not posterior.compares:
        return []
    ends = list(accumulate((len(chain) for chain in posterior.chains), initial=0))
    return [(a, (a + b) // 2, b) for a, b in pairwise(ends)]


def means_of_chains(posterior: Posterior, d: int, average: Average, sums: Sums) -> ChainMeans:
    """Return what each chain says of the cells of an average, of column d."""
    upto = {0: np.zeros_like(next(iter(sums.values()))), **sums}
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):  # half of one draw is none
        parts = [
            [average.estimate(upto[end] - upto[start]) for start, end in ((a, c), (a, b), (b, c))]
            for a, b, c in ends_of_halves(posterior)
        ]
    whole, first, second = np.array(parts).swapaxes(0, 1)
    return within_candidates(posterior, d, ChainMeans(whole, first, second, average.sd()))


def within_candidates(posterior: Posterior, d: int, means: ChainMeans) -> ChainMeans:
    """Return means whose spread over chains is that of a stacked estimate.

    Chains of one candidate differ by chance, those of two because the models do. With weights v_c
    of chains, those of the C_g chains of candidate g the same, an estimate sum_c v_c m_c has the
    variance sum_c v_c^2 (m_c - mean of g)^2 C_g / (C_g - 1). Nothing tells of a candidate with a
    single chain.
    """
    of = np.array(posterior.groups)
    if np.ptp(of) == 0:
        return means
    n, v = of.size, posterior.chain_weights(d)[:, None]
    # A candidate without weight in this column has no mean there, and says nothing.
    own = [np.where(v > 0.0, one, 0.0) for one in (means.whole, means.first, means.second)]
    means = ChainMeans(own[0], own[1], own[2], means.sd)
    whole = np.empty_like(means.whole)
    for group in np.unique(of):
        here = of == group
        size = int(here.sum())
        away = means.whole[here] - means.whole[here].mean(axis=0)
        whole[here] = n * v[here] * away * np.sqrt(size / max(size - 1, 1) * (n - 1) / n)
    return ChainMeans(whole, n * v * means.first, n * v * means.second, means.sd)
