"""The low-rank model drawn from its prior, independently of the package's sampler.

    alpha I J ~ Gamma      z_k ~ Bern(p0)      s_k ~ N(0, 1/alpha), s_k > 0
    U_ik ~ N(0, 1/I)       V_jk ~ N(0, 1/J)    sd2_d ~ InvGamma     mu ~ N(0, v)
    sd_d of binomial cells ~ |N(0, extra_scale^2)|
    G_R ~ N(mu or 0, 1/tau)    G_C ~ N(0, 1/tau)
    with covariates, means of U, V and the intercepts as in `prior_means`
    c_i ~ N(0, 1/tau)      1/sqrt(a) ~ U(1e-3, 1), f_i ~ Gamma(a, a): sd2_d / f_i in row i
    tau of covariates ~ Gamma  1/sqrt(tau) of intercepts and slopes c ~ half-Cauchy

Components that are off have no s, U and V here: they are integrated out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn, pack_trials, trials_of
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.latent.blocks import thread_pool
from glfm_cli.latent.bsvd.beside_own import LEAST
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.moves import BsvdState, fill_means
from glfm_cli.latent.bsvd.prior_means import PriorMeans
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.latent.model import Entries, Problem, Sparse
from glfm_cli.links import Link, LinkConfig, make_link
from glfm_cli.links.binomial import BinomialLink
from glfm_cli.links.law import normal
from glfm_cli.links.ordinal import OrdinalLink
from glfm_cli.links.probit_normal import ProbitNormalLink
from glfm_cli.schema import Column, ColumnType
from glfm_cli.streams import Streams, column_step

N_LEVELS = {ColumnType.ORDINAL: 4, ColumnType.CATEGORICAL: 3}


@dataclass(frozen=True)
class Setting:
    """A model to be tested: its links, its settings, and which cells are observed.

    observed : (I, J) of a matrix of one kind, or (N, D) of a table
    R, C : covariates of a matrix's rows and columns, without the constants
    trials : of binomial cells, in turn
    """

    links: tuple[Link, ...]
    config: BsvdConfig
    observed: Array
    R: Array | None = None
    C: Array | None = None
    trials: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)

    @property
    def one_kind(self) -> bool:
        """Whether it is a matrix of one kind."""
        return self.R is not None

    def problem(self) -> Problem:
        """Return the package's problem, its values those of no table in particular."""
        if not self.one_kind:
            xs = tuple(np.where(column, 1.0, np.nan) for column in self.observed.T)
            return Problem(Bsvd(), self.config, self.links, xs)
        row, column = np.nonzero(self.observed)
        entries = Entries(row.astype(np.int32), column.astype(np.int32), self.observed.shape)
        xs = (np.ones(row.size),)
        if isinstance(self.links[0], BinomialLink):  # cells of each number of trials in turn
            xs = (pack_trials(0.0, np.resize(self.trials, row.size)),)
        layout = Sparse(entries, self.R, self.C)
        return Problem(Bsvd(), self.config, self.links, xs, layout=layout)


def make_links(*types: ColumnType) -> tuple[Link, ...]:
    """Return links whose constants come from reference samples of their own."""
    found: list[Link] = []
    for d, kind in enumerate(types):
        rng = np.random.default_rng(d)
        if kind is ColumnType.BINOMIAL:
            found.append(BinomialLink.of("binomial"))
            continue
        levels = tuple("abcdefgh"[: N_LEVELS.get(kind, 0)])
        x = rng.integers(len(levels), size=200) if levels else rng.normal(3.0, 2.0, 200)
        column = Column(name=f"{kind}_{d}", type=kind)
        seen = np.ones(200, dtype=bool)
        encoded = EncodedColumn(column, d, x.astype(np.float64), seen, ~seen, levels)
        found.append(make_link(encoded, LinkConfig()))
    return tuple(found)


def new_chain(setting: Setting, seed: int, index: int) -> Chain:
    """Return a chain of the package, at a starting point of no meaning."""
    return start_chain(setting.problem(), Streams(seed, index))


def draw_prior(setting: Setting, chain: Chain, rng: np.random.Generator) -> None:
    """Put a draw of all parameters into a chain, and the means that follow from them."""
    state, config = chain.state, setting.config
    assert isinstance(state, BsvdState)
    n_rows, n_columns = state.matrix.shape
    K = state.s.size
    p0 = config.on_mass / (config.on_mass + config.off_mass * (K - 1))
    state.alpha = rng.gamma(config.scale_shape) / config.scale_rate / (n_rows * n_columns)
    state.on[:] = rng.random(K) < p0
    state.s[:] = np.abs(rng.normal(size=K)) / np.sqrt(state.alpha)
    state.U[:] = _factors(state.of_rows, rng)
    state.V[:] = _factors(state.of_columns, rng)
    free = state.unit_noise == 0
    noise = config.noise_rate / rng.gamma(config.noise_shape, size=free.size)
    state.noise[:] = np.where(free, noise, 1.0)
    if isinstance(setting.links[0], BinomialLink):
        state.noise[0] = max(abs(config.extra_scale * rng.normal()), LEAST) ** 2
        state.matrix.weigh(float(state.noise[0]))
    state.tau[:] = rng.gamma(config.effect_shape, size=state.tau.size) / config.effect_rate
    of_intercepts = [0, 2, 4][: 2 + state.slope.shape[1]]
    uniform = rng.random(len(of_intercepts))
    sd = config.intercept_scale * np.abs(np.tan(np.pi * (uniform - 0.5)))
    state.tau[of_intercepts] = sd**-2.0
    state.mu = np.sqrt(config.bias_variance) * rng.normal() if setting.one_kind else 0.0
    constant = np.arange(state.G_R.shape[1]) == 0
    sd = 1.0 / np.sqrt(np.where(constant, state.tau[0], state.tau[1]))
    state.G_R[:] = state.mu * constant + sd * rng.normal(size=state.G_R.shape)
    state.G_R[:, :1] += _intercepts(state.of_columns, config, rng)
    constant = np.arange(state.G_C.shape[1]) == 0
    sd = 1.0 / np.sqrt(np.where(constant, state.tau[2], state.tau[3]))
    state.G_C[:] = sd * rng.normal(size=state.G_C.shape)
    state.G_C[:, :1] += _intercepts(state.of_rows, config, rng)
    n_weights = state.design.n_weights
    state.G_R[:, n_weights[0] :] = state.G_C[:, n_weights[1] :] = 0.0
    state.slope[:] = rng.normal(size=state.slope.shape) / np.sqrt(state.tau[-1])
    if state.design.row_noise:
        state.variation = rng.uniform(1e-3, 1.0)
        a = 1.0 / state.variation**2
        state.row_precision[:] = rng.gamma(a, size=n_rows) / a
    for link, params in zip(setting.links, chain.params, strict=True):
        if isinstance(link, OrdinalLink):
            params["thresholds"][:] = _thresholds(link, rng)
    with thread_pool(1) as each:
        fill_means(state, each)
    chain.problem.model.fill_eta(state, chain.eta)


def _factors(means: PriorMeans, rng: np.random.Generator) -> Array:
    """Draw the coefficients of covariates for factors, and return factors (n, K) given these."""
    n, p = means.X.shape
    means.precision[0] = np.tan(np.pi * (rng.random() - 0.5)) ** -2.0
    sd = 1.0 / np.sqrt(n * means.precision[0])
    means.factors[:] = sd * rng.normal(size=means.factors.shape) if p else 0.0
    normal: Array = rng.normal(size=(n, means.factors.shape[1])) / np.sqrt(n)
    return means.X @ means.factors + normal


def _intercepts(means: PriorMeans, config: BsvdConfig, rng: np.random.Generator) -> Array:
    """Draw the coefficients of covariates for intercepts, and return the means (n, 1)."""
    sd = config.intercept_scale * np.abs(np.tan(np.pi * (rng.random() - 0.5)))
    means.precision[1] = sd**-2.0
    means.intercepts[:] = sd * rng.normal(size=means.intercepts.size)
    out: Array = (means.X @ means.intercepts)[:, None]
    return out


def _thresholds(link: OrdinalLink, rng: np.random.Generator) -> Array:
    """Return increasing normals, the first 0 where it is fixed, by rejection."""
    sd, n = np.sqrt(link.config.threshold_variance), link.n_levels - 1
    while True:
        theta = sd * rng.normal(size=n)
        if link.config.first_threshold_fixed:
            theta[0] = 0.0
        if np.all(np.diff(theta) > 0.0):
            return theta


def draw_table(setting: Setting, chain: Chain, rng: np.random.Generator) -> None:
    """Draw x at observed cells given the parameters, then y there given x, in place."""
    model = chain.problem.model
    model.fill_eta(chain.state, chain.eta)
    for d, link in enumerate(setting.links):
        x, (start, end) = chain.problem.xs[d], chain.spans[d]
        seen, own, eta = ~np.isnan(x), chain.streams.get(column_step(d)), chain.eta_of(d)
        y, var = chain.cells.y[:, start:end], model.noise_of(chain.state, d, slice(0, x.size))
        if isinstance(link, BinomialLink):
            trials = trials_of(x)
            z = eta + np.sqrt(var) * rng.normal(size=x.size)
            x[:] = pack_trials(rng.binomial(trials.astype(int), ndtr(z)), trials)
            link.augment(x, z, 0.0, chain.params[d], own, y)  # given z, whatever y was
            continue
        if isinstance(link, ProbitNormalLink):
            trials = trials_of(x[seen])
            ends = np.column_stack([np.zeros(trials.size), trials])
            hits = link.sample_between(normal(eta[seen], var), chain.params[d], rng, ends)
            x[seen] = pack_trials(hits, trials)
        else:
            x[seen] = link.sample(normal(eta, var), chain.params[d], rng)[seen]
        if link.known:
            y[seen] = link.start(x)[1][seen]
        else:
            link.augment(x, eta, var, chain.params[d], own, y)
