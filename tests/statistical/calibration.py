"""Simulation-based calibration of the package [Talts, Betancourt, Simpson, Vehtari, Gelman 2018].

Draw parameters and a table from the model (prior.py), hide some cells, run a chain of the package
on the rest: the rank of each true quantity among L draws of it is then uniform on 0..L, over
repeated tables, for parameters and for hidden cells alike. Ties (number of features, counts,
levels) are broken at random. Kept draws are `thin` sweeps apart so that they are close to
independent: correlated draws would push ranks to both ends.

The constants of the links are fixed beforehand (twins.py): constants calibrated on each simulated
table are no part of the model that the table was drawn from.

Two bands hold all ranks at once with probability 0.999 for a right sampler. Each has half of the
error, and each quantity an equal share of it (Bonferroni):

    histogram   every bin by its binomial law, bins again by Bonferroni
    ecdf        the empirical distribution at the ends of the bins, by its exact joint law
                [Säilynoja, Bürkner and Vehtari 2022, Stat. Comput. 32]
"""

from __future__ import annotations

import functools
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.inference.executors import available_threads
from glfm_cli.latent.glfm.state import GlfmConfig
from glfm_cli.links.law import normal
from glfm_cli.streams import Streams
from tests.statistical.prior import Array, Draw, Ordinal
from tests.statistical.twins import Twins, make_twins, place, read

ERROR = 1e-3  # probability that a right sampler leaves the bands
Ranks = NDArray[np.int64]


@dataclass(frozen=True)
class Design:
    """One study.

    n_missing : hidden cells of every column, in random rows; the first `n_held` are ranked
    n_draws : L, kept draws of a chain, `thin` sweeps apart after `warmup` sweeps
    n_bins : of the ranks 0..L, a divisor of L + 1
    truth : configuration of the model that tables are drawn from; None = `config`
    """

    types: tuple[str, ...]
    n_rows: int
    n_missing: int
    n_held: int
    warmup: int
    thin: int
    n_draws: int
    n_bins: int
    config: GlfmConfig = field(default_factory=GlfmConfig)
    truth: GlfmConfig | None = None


@functools.cache
def twins_of(design: Design) -> tuple[Twins, Twins]:
    """Return the model that the package samples, and the one that tables are drawn from."""
    return (
        make_twins(design.types, design.config),
        make_twins(design.types, design.truth or design.config),
    )


# Ranked quantities -------------------------------------------------------------------------------


def quantity_names(design: Design) -> tuple[str, ...]:
    """Return the names of the ranked quantities."""
    twins, _ = twins_of(design)
    noisy = [link.name for link in twins.links if not link.unit_noise]
    cuts = [
        f"threshold {r + 1} of {link.name}"
        for link, spec in zip(twins.links, twins.columns, strict=True)
        if isinstance(spec, Ordinal)
        for r in range(twins.config.bias, spec.n_levels - 1)
    ]
    cells = [f"cell {i + 1} of {link.name}" for link in twins.links for i in range(design.n_held)]
    return (
        *("alpha", "var_B", "K", "sum Z", "shared by rows 1 and 2", "log likelihood"),
        *(f"noise of {name}" for name in noisy),
        *cuts,
        *cells,
    )


def parameters(draw: Draw, log_likelihood: float, twins: Twins) -> Array:
    """Return the ranked functions of the parameters."""
    first_free = int(twins.config.bias)  # with a bias the first threshold is fixed
    return np.concatenate((
        [draw.alpha, draw.var_B, draw.Z.shape[1], draw.Z.sum(), draw.Z[0] @ draw.Z[1]],
        [log_likelihood],
        [v for v, spec in zip(draw.noise, twins.columns, strict=True) if not spec.unit_noise],
        *(theta[first_free:] for theta in draw.thresholds),
    ))  # fmt: skip


def draw_cells(chain: Chain, held: NDArray[np.intp], rng: np.random.Generator) -> Array:
    """Return one draw of the hidden cells held (D, n_held) given the state, column by column."""
    model, noise = chain.problem.model, chain.problem.model.noise(chain.state)
    out = np.empty(held.shape)
    model.fill_eta(chain.state, chain.eta)
    for d, link in enumerate(chain.problem.links):
        law = normal(chain.eta_of(d)[held[d]], float(noise[d]))
        out[d] = link.sample(law, chain.params[d], rng)
    return out.ravel()


# One replication ---------------------------------------------------------------------------------


def replicate(design: Design, seed: int, index: int) -> Ranks:
    """Return the rank of every quantity in one replication, each from 0 to L."""
    twins, source = twins_of(design)
    rng = np.random.default_rng([seed, index])
    truth = source.simulate(design.n_rows, rng)
    held = rng.permuted(
        np.tile(np.arange(design.n_rows), (len(twins.links), 1)), axis=1
    )[:, : design.n_missing]  # fmt: skip
    observed = np.ones(truth.x.shape, dtype=bool)
    np.put_along_axis(observed.T, held, False, axis=1)
    held = held[:, : design.n_held]
    problem = twins.problem(truth.x, observed)

    at_truth = start_chain(problem, Streams(seed, index))
    place(at_truth, truth)
    true = np.concatenate((
        parameters(truth, at_truth.log_likelihood(), twins),
        np.take_along_axis(truth.x.T, held, axis=1).ravel(),
    ))  # fmt: skip

    chain = start_chain(problem, Streams(seed, index))
    drawn = np.empty((design.n_draws, true.size))
    for _ in range(design.warmup):
        chain.sweep(adapt=True)
    for row in drawn:
        for _ in range(design.thin):
            chain.sweep(adapt=False)
        row[:] = np.concatenate((
            parameters(read(chain), chain.log_likelihood(), twins),
            draw_cells(chain, held, rng),
        ))  # fmt: skip
    below, ties = (drawn < true).sum(axis=0), (drawn == true).sum(axis=0)
    return below + rng.integers(0, ties, endpoint=True)


def _replicate_all(design: Design, seed: int, indices: range) -> list[Ranks]:
    # As the package itself does: several BLAS threads would only wait for one another.
    with threadpool_limits(limits=1, user_api="blas"):
        return [replicate(design, seed, index) for index in indices]


def calibrate(design: Design, n_replications: int, seed: int) -> Calibration:
    """Run all replications, one process a core; the ranks do not depend on their number."""
    n_jobs = available_threads()
    with ProcessPoolExecutor(n_jobs, multiprocessing.get_context("spawn")) as pool:
        jobs = [
            pool.submit(_replicate_all, design, seed, range(first, n_replications, n_jobs))
            for first in range(n_jobs)
        ]
        ranks = [rank for job in jobs for rank in job.result()]
    return Calibration(quantity_names(design), np.array(ranks), design.n_draws, design.n_bins)


# Verdict -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Calibration:
    """Ranks (n_replications, n) of n quantities, each from 0 to n_draws."""

    names: tuple[str, ...]
    ranks: Ranks
    n_draws: int
    n_bins: int

    def histograms(self) -> Ranks:
        """Return the number of ranks in each bin, (n, n_bins)."""
        bins = self.ranks * self.n_bins // (self.n_draws + 1)
        return np.array([np.bincount(b, minlength=self.n_bins) for b in bins.T])

    @functools.cached_property
    def deviations(self) -> dict[str, Array]:
        """Return, for both bands, each quantity's largest deviation; 1 = at the band's edge."""
        counts, n = self.histograms(), len(self.ranks)
        level = ERROR / 2 / len(self.names)
        return {
            "histogram": _excess(counts, *histogram_band(n, self.n_bins, level)),
            "ecdf": _excess(counts.cumsum(axis=1)[:, :-1], *ecdf_band(n, self.n_bins, level)),
        }

    @property
    def passes(self) -> bool:
        """Whether all ranks lie inside both bands."""
        return all(deviation.max() <= 1.0 for deviation in self.deviations.values())

    def __str__(self) -> str:
        parts = [f"{len(self.names)} quantities, {len(self.ranks)} replications"]
        for band, deviation in self.deviations.items():
            worst = np.argsort(-deviation)[:4]
            parts.append(
                f"{band} (1 = edge of the band): "
                + ", ".join(f"{self.names[i]} {deviation[i]:.2f}" for i in worst)
            )
        return "; ".join(parts)


def _excess(counts: Ranks, lower: Array, centre: Array, upper: Array) -> Array:
    """Return the largest deviation of each row of counts from the centre, in band half-widths."""
    half = np.where(counts > centre, upper - centre, centre - lower)
    return np.max(np.abs(counts - centre) / half, axis=1)


def histogram_band(n: int, n_bins: int, level: float) -> tuple[Array, Array, Array]:
    """Return lower end, centre and upper end of the counts of n uniform ranks in the bins."""
    law = stats.binom(n, 1.0 / n_bins)
    tail = level / n_bins / 2.0
    return law.ppf(tail), np.array(law.mean()), law.isf(tail)


def ecdf_band(n: int, n_bins: int, level: float) -> tuple[Array, Array, Array]:
    """Return lower end, centre and upper end of the cumulated counts, without the last bin.

    Pointwise binomial intervals of one common tail probability, the largest for which all hold
    together with probability 1 - level at least.
    """
    ends = np.arange(1, n_bins) / n_bins
    law = stats.binom(n, ends)
    low, high = np.log(level / n_bins / 2.0), np.log(level / 2.0)
    for _ in range(12):
        middle = 0.5 * (low + high)
        if coverage(law.ppf(np.exp(middle)), law.isf(np.exp(middle)), n, ends) >= 1.0 - level:
            low = middle
        else:
            high = middle
    return law.ppf(np.exp(low)), n * ends, law.isf(np.exp(low))


def coverage(lower: Array, upper: Array, n: int, ends: Array) -> float:
    """Return P(lower_i <= number of n uniforms below ends_i <= upper_i for all i).

    The numbers are a Markov chain: of the n - a not yet below one end, each is below the next with
    the same probability.
    """
    counts, law, previous = np.zeros(1), np.ones(1), 0.0
    for end, least, most in zip(ends, lower, upper, strict=True):
        following = np.arange(least, most + 1.0)
        share = (end - previous) / (1.0 - previous)
        steps = stats.binom.pmf(following[:, None] - counts, n - counts, share)
        counts, law, previous = following, steps @ law, end
    return float(law.sum())
