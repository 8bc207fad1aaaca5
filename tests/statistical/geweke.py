"""Geweke's joint-distribution test of one sweep of the package [Geweke 2004, JASA 99].

The joint law of (parameters, pseudo-observations y, table x) is drawn in two ways:

    marginal-conditional     parameters from the prior, then y and x given them   (prior.py alone)
    successive-conditional   one sweep of the package given x, then a new table given the parameters

If, and only if, the sweep leaves the posterior invariant for every table, both have one law. The
new table is drawn at the observed cells from p(x | Z, B, noise, thresholds), y integrated out;
then y there by the link's own augmentation from p(y | x, ...), so that what the link draws is what
the next sweep sees. y at missing cells is the chain's own. The chain starts from a draw of the
joint law, so it needs no burn-in, and proposals keep a fixed step.

The means of all statistics are compared by

    z = (mean_chain - mean_simulated) / sqrt(var_chain + var_simulated)

with var_chain from batch means. Statistics of heavy-tailed quantities are bounded,

    odd(v) = v / sqrt(1 + v^2)          even(v) = v^2 / (1 + v^2),

because an inverse-gamma variance of shape 2 has no finite variance. The statistics are
correlated, so the sum of z^2 is only roughly chi-square: its spread is larger, and the bound errs
on the side of false alarms. The Hotelling statistic takes the correlations from batch means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from threadpoolctl import threadpool_limits

from glfm_cli.latent.glfm import GlfmConfig
from glfm_cli.sampling import Chain, start_chain
from glfm_cli.streams import Streams, column_step
from tests.statistical.prior import Array, Draw
from tests.statistical.twins import WITH_ZEROS, Twins, make_twins, place, read

TYPES = ("real", WITH_ZEROS, "count", "categorical", "ordinal")
N_BATCHES = 40
LARGEST_Z = 4.0
LEVEL = 1e-4

# One or two missing cells in every column of 4 rows; one row is complete.
OBSERVED = np.array(
    [
        [1, 1, 1, 1, 1],
        [0, 1, 1, 0, 1],
        [1, 0, 1, 1, 0],
        [1, 1, 0, 0, 1],
    ],
    dtype=bool,
)


def geweke_twins(bias: bool, link_noise: float, prior_scale: str = "noise") -> Twins:
    """Return the model of the test: five types, everything sampled, at most 5 features."""
    config = GlfmConfig(bias=bias, prior_scale=prior_scale, max_features=5)
    return make_twins(TYPES, config, link_noise)


# The two simulators ------------------------------------------------------------------------------


def redraw_table(chain: Chain, twins: Twins, rng: np.random.Generator) -> None:
    """Draw x at observed cells given the parameters, then y there given x, in place."""
    draw = read(chain)
    y, x = twins.table_given(draw, rng)
    cells = chain.cells
    for d, link in enumerate(twins.links):
        seen, cells_x = OBSERVED[:, d], chain.problem.xs[d]
        cells_x[seen] = x[seen, d]
        start, end = cells.span(d)
        own = chain.streams.get(column_step(d))
        if link.known:
            cells.y[seen, start:end] = link.start(cells_x, own)[1][seen]
            continue
        cells.y[seen, start:end] = y[seen, start:end]
        chain.problem.model.fill_eta(chain.state, cells, d, chain.eta[d])
        eta = chain.eta[d][:, 0] if link.n_latent == 1 else chain.eta[d]
        noise = float(draw.noise[d])
        link.augment(cells_x, eta, noise, chain.params[d], own, cells.y[:, start:end])


def simulated(twins: Twins, n_draws: int, of: Callable[[Draw], Array], seed: int) -> Array:
    """Return the statistics (n_draws, n) of independent draws of the joint law."""
    rng = np.random.default_rng([seed, 0])
    return np.array([of(twins.simulate(len(OBSERVED), rng)) for _ in range(n_draws)])


def sampled(twins: Twins, n_sweeps: int, of: Callable[[Draw], Array], seed: int) -> Array:
    """Return the statistics (n_sweeps, n) along a chain of sweeps and new tables."""
    rng = np.random.default_rng([seed, 1])
    first = twins.simulate(len(OBSERVED), rng)
    chain = start_chain(twins.problem(first.x, OBSERVED), Streams(seed, 0))
    place(chain, first)
    found = []
    # As the package itself does: several BLAS threads would only wait for one another.
    with threadpool_limits(limits=1, user_api="blas"):
        for _ in range(n_sweeps):
            chain.sweep(adapt=False)
            redraw_table(chain, twins, rng)
            found.append(of(read(chain)))
    return np.array(found)


# Statistics --------------------------------------------------------------------------------------


def odd(v: Array) -> Array:
    """Return v / sqrt(1 + v^2)."""
    return v / np.sqrt(1.0 + v * v)


def even(v: Array) -> Array:
    """Return v^2 / (1 + v^2)."""
    return v * v / (1.0 + v * v)


def make_statistics(bias: bool) -> tuple[tuple[str, ...], Callable[[Draw], Array]]:
    """Return the names of the statistics and the function that computes them of a draw."""
    pseudo = ("real", "positive", "count", "category_a", "category_b", "ordinal")
    owner = np.array([0, 1, 2, 3, 3, 4])
    seen = OBSERVED[:, owner].astype(np.float64)
    weights = np.stack((seen / seen.sum(axis=0), (1.0 - seen) / (1.0 - seen).sum(axis=0)))
    free = slice(1, None) if bias else slice(None)
    names = (
        *("K", "sum Z", "max m_k", "singletons", "pairs", "alpha", "log var_B"),
        *(f"log noise {name}" for name in pseudo[:3]),
        *(f"theta_{r}" for r in range(1, 4)[free]),
        *("odd bias weights",) * bias,
        *(f"{kind} weights {name}" for kind in ("odd", "even") for name in pseudo),
        *(f"{kind} y {where} {name}" for kind in ("odd", "even")
          for where in ("seen", "missing") for name in pseudo),
        *("likeness", "y real * y ordinal", "y count * y category_b"),
        *("x real", "x positive", "x positive = 0", "x count", "x count = 0"),
        *("level a", "level b", "lowest", "highest"),
    )  # fmt: skip

    def of(draw: Draw) -> Array:
        Z = draw.Z.astype(np.float64)
        m = Z.sum(axis=0)
        B = draw.B[int(bias) :]
        bounded = np.stack((odd(draw.y), even(draw.y)))
        alike = Z @ Z.T
        np.fill_diagonal(alike, 0.0)
        first = bounded[0]
        return np.concatenate((
            [m.size, m.sum(), m.max(initial=0.0), (m == 1).sum(), alike.sum()],
            [draw.alpha, np.log(draw.var_B)],
            np.log(draw.noise[:3]),
            draw.thresholds[-1][free],
            odd(draw.B[: int(bias)]).sum(axis=1),
            odd(B).sum(axis=0),
            even(B).sum(axis=0),
            np.einsum("wns,ens->ews", weights, bounded).ravel(),
            [np.sum(alike * (first @ first.T))],
            [first[:, 0] @ first[:, 5], first[:, 2] @ first[:, 4]],
            table_statistics(draw.x),
        ))  # fmt: skip

    return names, of


def table_statistics(x: Array) -> Array:
    """Return statistics of the observed cells of a table."""
    real, positive, count, category, grade = (
        column[seen] for column, seen in zip(x.T, OBSERVED.T, strict=True)
    )
    return np.array([
        odd(real - 3.0).mean(),
        odd(positive).mean(),
        (positive == 0).mean(),
        odd(np.log1p(count)).mean(),
        (count == 0).mean(),
        (category == 0).mean(),
        (category == 1).mean(),
        (grade == 0).mean(),
        (grade == 3).mean(),
    ])  # fmt: skip


# Verdict -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """The two samples compared.

    z : one value a statistic, standard normal for a right sampler
    hotelling : probability of a larger Hotelling statistic, for a right sampler
    """

    names: tuple[str, ...]
    z: NDArray[np.float64]
    hotelling: float

    @property
    def largest(self) -> float:
        """The largest |z|."""
        return float(np.abs(self.z).max())

    @property
    def sum_of_squares(self) -> float:
        """The sum of z^2."""
        return float(self.z @ self.z)

    @property
    def limit(self) -> float:
        """The upper 1e-4 point of chi-square with a degree of freedom a statistic."""
        return float(stats.chi2.isf(LEVEL, self.z.size))

    @property
    def passes(self) -> bool:
        """Whether the two laws may be the same."""
        return (
            self.largest < LARGEST_Z and self.sum_of_squares < self.limit and self.hotelling > LEVEL
        )

    def __str__(self) -> str:
        worst = np.argsort(-np.abs(self.z))[:5]
        return (
            f"{self.z.size} statistics: largest |z| {self.largest:.2f}, sum z^2 "
            f"{self.sum_of_squares:.1f} (limit {self.limit:.1f}), "
            f"Hotelling p {self.hotelling:.2g}; "
            + ", ".join(f"{self.names[i]} {self.z[i]:.2f}" for i in worst)
        )


def batch_means(sample: Array, n_batches: int) -> Array:
    """Return the means (n_batches, n) of consecutive stretches of a sample."""
    length = len(sample) // n_batches
    return sample[: n_batches * length].reshape(n_batches, length, -1).mean(axis=1)


def compare(names: Sequence[str], chain: Array, independent: Array) -> Comparison:
    """Compare a chain's statistics (n_sweeps, n) with those of independent draws."""
    batches = batch_means(chain, N_BATCHES)
    difference = batches.mean(axis=0) - independent.mean(axis=0)
    var = batches.var(axis=0, ddof=1) / N_BATCHES + independent.var(axis=0) / len(independent)
    return Comparison(
        tuple(names), difference / np.sqrt(var), hotelling(chain, independent, difference)
    )


def hotelling(chain: Array, independent: Array, difference: Array) -> float:
    """Return the probability of a larger Hotelling T^2 for the difference of means.

    Three batches a statistic, for a covariance matrix that can be inverted; they are independent as
    long as they are many autocorrelation times long.
    """
    n = 3 * difference.size
    covariance = np.cov(batch_means(chain, n).T) / n
    covariance += np.cov(independent.T) / len(independent)
    t2 = difference @ np.linalg.solve(covariance, difference)
    p = difference.size
    return float(stats.f.sf(t2 * (n - p) / (p * (n - 1)), p, n - p))


def geweke(twins: Twins, n_sweeps: int, seed: int) -> Comparison:
    """Run both simulators, as many draws as sweeps, and compare them."""
    names, of = make_statistics(twins.config.bias)
    return compare(names, sampled(twins, n_sweeps, of, seed), simulated(twins, n_sweeps, of, seed))
