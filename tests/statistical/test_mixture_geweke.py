"""The joint law of the mixture, and a mutant that it catches [Geweke 2004].

That a sweep has it as its invariant law is tested in `tests/contract/test_priors.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
from scipy.stats import wishart

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.latent.mixture import sampler as mixture
from glfm_cli.latent.mixture.sampler import Mixture, MixtureConfig, MixtureState
from glfm_cli.latent.model import Problem
from glfm_cli.links import Link
from glfm_cli.links.ordinal import OrdinalLink
from glfm_cli.schema import ColumnType
from glfm_cli.streams import Streams
from tests.statistical.bsvd_prior import _thresholds, draw_table, make_links
from tests.statistical.geweke import Comparison, JointLaw, even, odd

SHORT = 2_000
CONFIG = MixtureConfig(
    components=3,
    alpha_shape=2.0,
    alpha_rate=1.0,
    component_degrees=3.0,
    center_precision=0.5,
    noise_shape=3.0,
    noise_rate=2.0,
)
# Missing cells in every column, and a row without any observed one.
SEEN = np.array([[1, 1, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0], [0, 0, 0]], dtype=bool)
TYPES = (ColumnType.REAL, ColumnType.ORDINAL, ColumnType.CATEGORICAL)


@dataclass(frozen=True)
class Setting:
    """The links of the test's table."""

    links: tuple[Link, ...]

    def chain(self, seed: int, index: int) -> Chain:
        """Return a chain of the package, at a starting point of no meaning."""
        xs = tuple(np.where(column, 1.0, np.nan) for column in SEEN.T)
        return start_chain(Problem(Mixture(), CONFIG, self.links, xs), Streams(seed, index))


def draw_prior(setting: Setting, chain: Chain, rng: np.random.Generator) -> None:
    """Put a draw of all parameters into a chain, independently of the package's sampler."""
    state = chain.state
    assert isinstance(state, MixtureState)
    (N, S), H = state.eta.shape, CONFIG.components
    state.alpha = rng.gamma(CONFIG.alpha_shape) / CONFIG.alpha_rate
    state.sticks = np.minimum(rng.beta(1.0, state.alpha, H - 1), 1.0 - 1e-12)
    pi = np.append(state.sticks, 1.0) * np.cumprod(np.append(1.0, 1.0 - state.sticks))
    state.z[:] = rng.choice(H, N, p=pi / pi.sum())
    nu0 = S + CONFIG.component_degrees
    B0 = np.eye(S) / (nu0 * CONFIG.component_variance)
    for h in range(H):
        state.Sigma[h] = np.linalg.inv(wishart(nu0, B0).rvs(random_state=rng))
        spread = state.Sigma[h] / CONFIG.center_precision
        state.mu[h] = rng.multivariate_normal(np.zeros(S), spread)
    state.root = np.linalg.cholesky(state.Sigma)
    for n in range(N):
        state.eta[n] = rng.multivariate_normal(state.mu[state.z[n]], state.Sigma[state.z[n]])
    noise = CONFIG.noise_rate / rng.gamma(CONFIG.noise_shape, size=state.noise.size)
    state.noise[:] = np.where(state.unit_noise == 0, noise, 1.0)
    for link, params in zip(setting.links, chain.params, strict=True):
        if isinstance(link, OrdinalLink):
            params["thresholds"][:] = _thresholds(link, rng)


def statistics(chain: Chain) -> tuple[list[str], Array]:
    """Return names and values of the statistics of the present state; no labels of components."""
    state = chain.state
    seen = state.seen != 0
    residual = np.where(seen, chain.cells.y - state.eta, 0.0)
    own = state.eta - state.mu[state.z]
    found: dict[str, float] = {
        "log alpha": np.log(state.alpha),
        "first stick": state.sticks[0],
        "together": np.mean(state.z[:, None] == state.z),
        "in the first": np.mean(state.z == 0),
        "eta": odd(state.eta).sum(),
        "eta square": even(state.eta).sum(),
        "eta missing": even(state.eta[~seen]).sum(),
        "eta products": odd(state.eta[:, 0] * state.eta[:, 1]).sum(),
        "around centre": even(own).sum(),
        "mu": odd(state.mu).sum(),
        "mu square": even(state.mu).sum(),
        "log det": np.mean([np.linalg.slogdet(one)[1] for one in state.Sigma]),
        "correlation": odd(state.Sigma[:, 0, 1]).sum(),
        "log noise": np.log(state.noise[0]),
        "residual": odd(residual).sum(),
        "residual square": even(residual).sum(),
        "residual along eta": (odd(residual) * odd(state.eta)).sum(),
    }
    for link, params, x in zip(chain.problem.links, chain.params, chain.problem.xs, strict=True):
        if not link.known:
            found[f"first level {link.name}"] = float(np.sum(x == 0.0))
        if isinstance(link, OrdinalLink):
            gaps = np.log(np.diff(params["thresholds"]))
            found |= {f"log gap {i} {link.name}": gap for i, gap in enumerate(gaps)}
    return list(found), np.array(list(found.values()), dtype=np.float64)


def run(n_sweeps: int, seed: int) -> Comparison:
    """Compare both simulators."""
    setting = Setting(make_links(*TYPES))
    own = (partial(one, setting) for one in (Setting.chain, draw_prior, draw_table))
    return JointLaw(*own, statistics).compare(n_sweeps, seed)  # type: ignore[arg-type]


@pytest.mark.slow
def test_sticks_that_forget_the_later_ones_are_caught(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A named mutant: V_h ~ Beta(1 + n_h, alpha), whatever lies behind it."""
    cumulative = np.cumsum

    def forgetful(values: Array, *rest: object) -> Array:
        return np.zeros_like(cumulative(values, *rest))  # type: ignore[arg-type]

    class Numbers:
        def __getattr__(self, name: str) -> object:
            return forgetful if name == "cumsum" else getattr(np, name)

    draw = mixture._draw_components

    def mutant(state: MixtureState, rng: np.random.Generator) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(mixture, "np", Numbers())
            draw(state, rng)

    monkeypatch.setattr(mixture, "_draw_components", mutant)
    comparison = run(SHORT, seed)
    assert not comparison.passes, str(comparison)
