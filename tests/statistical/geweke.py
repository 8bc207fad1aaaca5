"""Geweke's joint-distribution test of one sweep of the package [Geweke 2004, JASA 99].

The joint law of (parameters, pseudo-observations y, table x) is drawn in two ways:

    marginal-conditional     parameters from the prior, then y and x given them   (prior.py alone)
    successive-conditional   one sweep of the package given x, then a new table given the parameters

If the sweep leaves the posterior of every table invariant, both have one law; if not, the second
drifts away. The new table is drawn at the observed cells from p(x | Z, B, noise, thresholds), y
integrated out; then y there by the link's own augmentation from p(y | x, ...), so that what the
link draws is what the next sweep sees. y at missing cells is the chain's own, and proposals keep a
fixed step.

The sweeps are split evenly over 200 chains. Each starts from a draw of the joint law of its own, so
there is no burn-in, and the chains' means are independent however slowly a chain mixes. The means
of all statistics are compared by

    z = (mean_chains - mean_simulated) / sqrt(var_chains + var_simulated).

Statistics of heavy-tailed quantities are bounded,

    odd(v) = v / sqrt(1 + v^2)          even(v) = v^2 / (1 + v^2),

because an inverse-gamma variance of shape 2 has no finite variance. The statistics are
correlated, so the sum of z^2 is only roughly chi-square: its spread is larger, and the bound errs
on the side of false alarms. The Hotelling statistic accounts for the correlations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.latent.glfm.state import GlfmConfig
from glfm_cli.streams import Streams, column_step
from tests.statistical.prior import Array, Draw
from tests.statistical.twins import WITH_ZEROS, Twins, make_twins, place, read

TYPES = ("real", WITH_ZEROS, "count", "categorical", "ordinal")
N_CHAINS = 200
LONGEST = 100  # sweeps of a chain of a `JointLaw`
LEVEL = 1e-4
LARGEST_LEVEL = 1e-3  # of the largest |z|, over all statistics

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


def geweke_twins(
    bias: bool,
    link_noise: float,
    prior_scale: Literal["noise", "independent"] = "noise",
    components: int = 0,
) -> Twins:
    """Return the model of the test: five types, everything sampled, at most 5 features."""
    config = GlfmConfig(bias=bias, prior_scale=prior_scale, max_features=5, components=components)
    return make_twins(TYPES, config, link_noise)


# The two simulators ------------------------------------------------------------------------------


def redraw_table(chain: Chain, twins: Twins, rng: np.random.Generator) -> None:
    """Draw x at observed cells given the parameters, then y there given x, in place."""
    draw = read(chain)
    y, x = twins.table_given(draw, rng)
    cells = chain.cells
    chain.problem.model.fill_eta(chain.state, chain.eta)
    for d, link in enumerate(twins.links):
        seen, cells_x = OBSERVED[:, d], chain.problem.xs[d]
        cells_x[seen] = x[seen, d]
        start, end = chain.spans[d]
        own = chain.streams.get(column_step(d))
        if link.known:
            cells.y[seen, start:end] = link.start(cells_x)[1][seen]
            continue
        cells.y[seen, start:end] = y[seen, start:end]
        noise = float(draw.noise[d])
        link.augment(cells_x, chain.eta_of(d), noise, chain.params[d], own, cells.y[:, start:end])


def simulated(twins: Twins, n_draws: int, of: Callable[[Draw], Array], seed: int) -> Array:
    """Return the statistics (n_draws, n) of independent draws of the joint law."""
    rng = np.random.default_rng([seed, 0])
    return np.array([of(twins.simulate(len(OBSERVED), rng)) for _ in range(n_draws)])


def sampled(twins: Twins, n_sweeps: int, of: Callable[[Draw], Array], seed: int) -> Array:
    """Return the means (N_CHAINS, n) of the statistics along chains of sweeps and new tables."""
    rng = np.random.default_rng([seed, 1])
    length = n_sweeps // N_CHAINS
    means = []
    with one_blas_thread():  # as in a run; taken once, not by every sweep
        for index in range(N_CHAINS):
            first = twins.simulate(len(OBSERVED), rng)
            chain = start_chain(twins.problem(first.x, OBSERVED), Streams(seed, index))
            place(chain, first)
            # A link may keep more than `place` knows of, drawn along with y.
            redraw_table(chain, twins, rng)
            found = []
            for _ in range(length):
                chain.sweep(adapt=False)
                redraw_table(chain, twins, rng)
                found.append(of(read(chain)))
            means.append(np.mean(found, axis=0))
    return np.array(means)


# Statistics --------------------------------------------------------------------------------------

PSEUDO = ("real", "positive", "count", "category_a", "category_b", "ordinal")
OWNER = np.array([0, 1, 2, 3, 3, 4])
SEEN = OBSERVED[:, OWNER].astype(np.float64)
# Columns of the table, and the value whose frequency among the seen cells is a statistic.
COLUMNS, VALUES = [1, 2, 3, 3, 4], [0, 0, 0, 1, 1]
# E[even(v)] of a standard normal v, 1 - sqrt(pi / 2) e^(1/2) erfc(1 / sqrt 2).
MEAN_EVEN = 0.3443204575812015


def odd(v: Array) -> Array:
    """Return v / sqrt(1 + v^2)."""
    return v / np.sqrt(1.0 + v * v)


def even(v: Array) -> Array:
    """Return v^2 / (1 + v^2)."""
    return v * v / (1.0 + v * v)


def make_statistics(twins: Twins) -> tuple[tuple[str, ...], Callable[[Draw], Array]]:
    """Return the names of the statistics and the function that computes them of a draw.

    Quantities that follow one another (alpha and K, weights and their variance, y and eta) are
    standardised by one another, so that correlations stay moderate.
    """
    bias, prior = int(twins.config.bias), twins.prior
    # sum Z has mean N alpha, and K has mean H_N alpha.
    expected_users = len(OBSERVED) / np.sum(1.0 / np.arange(1, len(OBSERVED) + 1))
    names = (
        *("K", "sum Z given K", "singletons given K", "alpha given K", "log var_B"),
        *(f"log noise {name}" for name in PSEUDO[:3]),
        *("theta_1",) * (1 - bias),
        *("log gap 1", "log gap 2"),
        *(f"square of weights {name}" for name in PSEUDO),
        *(f"y {name}" for name in PSEUDO),
        *(f"{what} {name}"
          for what in ("square of seen residual", "square of missing residual",
                       "seen residual along eta", "missing residual along eta")
          for name in PSEUDO),
        *("likeness", "y real * y ordinal", "y count * y category_b"),
        *("x positive = 0", "x count = 0", "level a", "level b", "second level"),
        *(f"{what} {number}" for number in range(prior.components)
          for what in ("omega", "square of U", "square of V", "y along U V")),
    )  # fmt: skip

    def of(draw: Draw) -> Array:
        m = draw.Z.sum(axis=0)
        B, sd = draw.B[bias:], np.sqrt(draw.noise[OWNER])
        scale = np.sqrt(draw.var_B) * (sd if prior.noise_scaled else 1.0)
        linear = draw.U @ draw.V
        eta = draw.Z @ B + draw.B[:bias].sum(axis=0) + linear
        squares = even((draw.y - eta) / sd) - MEAN_EVEN
        along = odd((draw.y - eta) / sd) * odd(eta)
        y = odd(draw.y)
        alike = draw.Z.astype(np.float64) @ draw.Z.T
        np.fill_diagonal(alike, 0.0)
        return np.concatenate((
            [m.size, m.sum() - expected_users * m.size, 2 * (m == 1).sum() - m.size],
            [draw.alpha / (prior.a_alpha + m.size), np.log(draw.var_B)],
            np.log(draw.noise[:3]),
            draw.thresholds[-1][: 1 - bias],
            np.log(np.diff(draw.thresholds[-1])),
            np.sum(even(B / scale) - MEAN_EVEN, axis=0),
            y.sum(axis=0),
            *((SEEN * v).sum(axis=0) if seen else v.sum(axis=0) - (SEEN * v).sum(axis=0)
              for v in (squares, along) for seen in (True, False)),
            [np.sum(alike * (y @ y.T)) / max(alike.sum(), 1.0)],
            [y[:, 0] @ y[:, 5], y[:, 2] @ y[:, 4]],
            (OBSERVED[:, COLUMNS] & (draw.x[:, COLUMNS] == VALUES)).sum(axis=0),
            *([odd(np.log(omega)), np.sum(even(u) - MEAN_EVEN),
               np.sum(even(v / np.sqrt(omega)) - MEAN_EVEN),
               np.sum(odd(np.outer(u, v)) * y)]
              for u, v, omega in zip(draw.U.T, draw.V, draw.omega, strict=True)),
        ))  # fmt: skip

    return names, of


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
            self.largest < stats.norm.isf(0.5 * LARGEST_LEVEL / self.z.size)
            and self.sum_of_squares < self.limit
            and self.hotelling > LEVEL
        )

    def __str__(self) -> str:
        worst = np.argsort(-np.abs(self.z))[:5]
        return (
            f"{self.z.size} statistics: largest |z| {self.largest:.2f}, sum z^2 "
            f"{self.sum_of_squares:.1f} (limit {self.limit:.1f}), "
            f"Hotelling p {self.hotelling:.2g}; "
            + ", ".join(f"{self.names[i]} {self.z[i]:.2f}" for i in worst)
        )


def compare(names: Sequence[str], means: Array, independent: Array) -> Comparison:
    """Compare the means (n_chains, n) of chains with the statistics (n_draws, n) of draws."""
    difference = means.mean(axis=0) - independent.mean(axis=0)
    n, p = means.shape
    covariance = np.cov(means.T) / n + np.cov(independent.T) / len(independent)
    t2 = difference @ np.linalg.solve(covariance, difference)
    return Comparison(
        tuple(names),
        difference / np.sqrt(np.diag(covariance)),
        float(stats.f.sf(t2 * (n - p) / (p * (n - 1)), p, n - p)),
    )


def geweke(twins: Twins, n_sweeps: int, seed: int) -> Comparison:
    """Run both simulators, as many draws as sweeps, and compare them."""
    names, of = make_statistics(twins)
    return compare(names, sampled(twins, n_sweeps, of, seed), simulated(twins, n_sweeps, of, seed))


@dataclass(frozen=True)
class JointLaw:
    """A model's joint law as both simulators need it: what they do to a chain, in place.

    new_chain : (seed, index) to a chain at a starting point of no meaning
    draw_prior, draw_table : parameters from their prior; then a table, and y, given them
    statistics : names and values of the statistics of the present state
    """

    new_chain: Callable[[int, int], Chain]
    draw_prior: Callable[[Chain, np.random.Generator], None]
    draw_table: Callable[[Chain, np.random.Generator], None]
    statistics: Callable[[Chain], tuple[list[str], Array]]

    def compare(self, n_sweeps: int, seed: int) -> Comparison:
        """Run both simulators, as many draws as sweeps, and compare them.

        Chains that are long beside those rare stretches in which a scale is far off its usual size
        mostly miss them, and take their means for more certain than they are.
        """
        rng = np.random.default_rng([seed, 1])
        n_chains = max(N_CHAINS // 2, n_sweeps // LONGEST)
        independent, means, names = [], [], []
        with one_blas_thread():
            for index in range(n_chains):
                chain = self.new_chain(seed, index)
                for _ in range(n_sweeps // n_chains):
                    self.draw_prior(chain, rng)
                    self.draw_table(chain, rng)
                    independent.append(self.statistics(chain)[1])
                found = []
                for _ in range(n_sweeps // n_chains):
                    chain.sweep(adapt=False)
                    self.draw_table(chain, rng)
                    names, values = self.statistics(chain)
                    found.append(values)
                means.append(np.mean(found, axis=0))
        return compare(names, np.array(means), np.array(independent))
