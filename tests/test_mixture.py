"""The sampled mixture: its kernel against plain formulas, its states and draws as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import beta, gamma, invgamma, kstest, multivariate_normal

from glfm_cli._kernels._mixture import place_rows
from glfm_cli.completion import prepare
from glfm_cli.errors import NumericalError, UsageError
from glfm_cli.inference import chains
from glfm_cli.inference.chain import start_chain
from glfm_cli.latent.mixture.sampler import (
    Mixture,
    MixtureConfig,
    MixtureDraw,
    _draw_components,
    _draw_noise,
)
from glfm_cli.latent.model import Problem, Sizes
from glfm_cli.streams import Streams
from tests.iqgme_problems import Array


def components(rng: np.random.Generator, H: int, S: int) -> tuple[Array, Array]:
    root = rng.standard_normal((H, S, S))
    return rng.standard_normal((H, S)), root @ np.swapaxes(root, 1, 2) + np.eye(S)


def place(
    y: Array, seen: Array, mu: Array, Sigma: Array, noise: Array, pi: Array, seed: int
) -> Any:
    """Draw z and eta of rows by the kernel."""
    rng = np.random.default_rng(seed)
    (N, S), H = y.shape, len(pi)
    z, eta = np.empty(N, dtype=np.int32), np.empty((N, S))
    normal = rng.standard_normal((2, N, S))
    bad = place_rows(
        0, N, y, seen, np.log(pi), mu, Sigma, np.linalg.cholesky(Sigma), noise, rng.random(N),
        normal[0], normal[1], z, eta, np.empty(H), np.empty((S, S)), np.empty(S),
        np.empty(S, dtype=np.intp),
    )  # fmt: skip
    assert bad == -1
    return z, eta


@pytest.mark.parametrize("pattern", [[1, 1, 1], [1, 0, 1], [0, 1, 0], [0, 0, 0]])
def test_rows_are_placed_by_their_conditional_law(pattern: list[int], seed: int) -> None:
    """Shares of components, and mean and covariance of eta, are those of the joint normal."""
    rng = np.random.default_rng(seed)
    n, S, pi = 40_000, 3, np.array([0.5, 0.3, 0.2])
    mu, Sigma = components(rng, 3, S)
    noise = np.array([0.5, 1.0, 0.2])
    y = np.tile(rng.standard_normal(S), (n, 1))
    seen = np.tile(np.array(pattern, dtype=np.uint8), (n, 1))
    z, eta = place(y, seen, mu, Sigma, noise, pi, seed)
    o = np.flatnonzero(pattern)
    log_p = np.log(pi)
    for h in range(3):
        if o.size:
            A = Sigma[h][np.ix_(o, o)] + np.diag(noise[o])
            log_p[h] += multivariate_normal(mu[h, o], A).logpdf(y[0, o])
    p = np.exp(log_p - np.logaddexp.reduce(log_p))
    assert np.allclose(np.bincount(z, minlength=3) / n, p, atol=0.012)
    h = int(np.argmax(p))
    mean, cov = mu[h], Sigma[h]
    if o.size:
        gain = np.linalg.solve(Sigma[h][np.ix_(o, o)] + np.diag(noise[o]), Sigma[h][o]).T
        mean, cov = mu[h] + gain @ (y[0, o] - mu[h, o]), Sigma[h] - gain @ Sigma[h][o]
    mine = eta[z == h]
    assert np.allclose(mine.mean(axis=0), mean, atol=6 * np.sqrt(np.diag(cov).max() / len(mine)))
    assert np.allclose(np.cov(mine.T), cov, atol=0.06 * np.abs(cov).max() + 0.02)


def test_the_law_of_missing_eta_is_normal_given_the_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mu, Sigma = components(rng, 2, 3)
    eta = rng.standard_normal((2, 3))
    seen = np.array([[1, 0, 1], [0, 0, 0]], dtype=np.uint8)
    z = np.array([1, 0], dtype=np.int32)
    noise = np.array([0.5, 0.3, 0.2])
    spans = ((0, 1), (1, 2), (2, 3))
    draw = MixtureDraw(eta, z, seen, np.log([0.5, 0.5]), mu, Sigma, noise, spans)
    law = Mixture().cells_law(draw, slice(None))
    mean = np.column_stack([law.column(d).means[:, 0, 0] for d in range(3)])
    var = np.column_stack([law.column(d).variances[:, 0, 0] - noise[d] for d in range(3)])
    o = [0, 2]
    gain = np.linalg.solve(Sigma[1][np.ix_(o, o)], Sigma[1][o, 1])
    assert mean[0] == pytest.approx(
        [eta[0, 0], mu[1, 1] + gain @ (eta[0, o] - mu[1, o]), eta[0, 2]]
    )
    assert var[0] == pytest.approx([0.0, Sigma[1, 1, 1] - gain @ Sigma[1][o, 1], 0.0])
    assert np.allclose(mean[1], mu[0])
    assert np.allclose(var[1], np.diag(Sigma[0]))


def test_the_law_of_utilities_has_their_covariance_and_noise(seed: int) -> None:
    """Of a column of two latent numbers beside one that is seen."""
    rng = np.random.default_rng(seed)
    mu, Sigma = components(rng, 1, 3)
    eta, seen = rng.standard_normal((1, 3)), np.array([[1, 0, 0]], dtype=np.uint8)
    draw = MixtureDraw(
        eta, np.zeros(1, np.int32), seen, np.zeros(1), mu, Sigma, np.array([0.5, 0.7]),
        ((0, 1), (1, 3)),
    )  # fmt: skip
    law = Mixture().cells_law(draw, slice(None)).column(1)
    gain = Sigma[0, 0, 1:] / Sigma[0, 0, 0]
    cov = Sigma[0, 1:, 1:] - np.outer(gain, Sigma[0, 0, 1:]) + 0.7 * np.eye(2)
    assert law.means[0, 0] == pytest.approx(mu[0, 1:] + gain * (eta[0, 0] - mu[0, 0]))
    assert law.variances[0, 0] == pytest.approx(np.diag(cov))
    assert law.covariance[0, 0] == pytest.approx(cov)


def chain_of(seed: int) -> Any:
    """A chain of a small table of two numbers, after a few sweeps."""
    from glfm_cli.schema import ColumnType
    from tests.statistical.bsvd_prior import make_links

    rng = np.random.default_rng(seed)
    links = make_links(ColumnType.REAL, ColumnType.ORDINAL, ColumnType.CATEGORICAL)
    xs = (rng.normal(3, 2, 30), rng.integers(4, size=30) * 1.0, rng.integers(3, size=30) * 1.0)
    for x in xs:
        x[rng.random(30) < 0.2] = np.nan
    chain = start_chain(
        Problem(Mixture(), MixtureConfig(components=4), links, xs), Streams(seed, 0)
    )
    for _ in range(5):
        chain.sweep(adapt=True)
    return chain


def test_sticks_are_drawn_from_their_conditional(seed: int) -> None:
    # V_h ~ Beta(1 + n_h, alpha + number of rows in later components), given z.
    state, rng = chain_of(seed).state, np.random.default_rng(seed)
    state.z[:] = np.repeat([0, 1, 3], [3, 1, 26])
    state.alpha, drawn = 1.5, []
    for _ in range(2000):
        _draw_components(state, rng)
        drawn.append(state.sticks.copy())
    for stick, n, after in zip(np.array(drawn).T, (3, 1, 0), (27, 26, 26), strict=True):
        assert kstest(stick, beta(1 + n, 1.5 + after).cdf).pvalue > 1e-4


def test_the_concentration_is_drawn_given_the_sticks(seed: int) -> None:
    """alpha | V ~ Gamma(a + H - 1, rate b - sum of log(1 - V))."""
    state, streams, drawn = chain_of(seed).state, Streams(seed, 1), []
    state.sticks[:] = [0.6, 0.3, 0.8]
    for _ in range(3000):
        Mixture().finish(state, streams)
        drawn.append(state.alpha)
    rate = state.config.alpha_rate - np.log([0.4, 0.7, 0.2]).sum()
    assert kstest(drawn, gamma(state.config.alpha_shape + 3, scale=1.0 / rate).cdf).pvalue > 1e-3


def test_noise_variances_are_drawn_given_the_cells_that_are_seen(seed: int) -> None:
    chain, drawn = chain_of(seed), []
    state, config, rng = chain.state, chain.state.config, np.random.default_rng(seed)
    state.eta[:] = chain.cells.y + np.where(state.seen, 0.4, 9.0)
    n = int(state.seen[:, 0].sum())
    assert n < len(state.eta)
    for _ in range(3000):
        _draw_noise(state, chain.cells.y, rng)
        drawn.append(state.noise[0])
    law = invgamma(config.noise_shape + n / 2, scale=config.noise_rate + n * 0.16 / 2)
    assert kstest(drawn, law.cdf).pvalue > 1e-3
    assert np.all(state.noise[1:] == 1.0)


def test_places_and_covariances_are_drawn_from_their_conditional(seed: int) -> None:
    """A normal-inverse-Wishart law: E Sigma = B / (nu - S - 1), Cov mu = E Sigma / u, of a few rows
    and of none.
    """
    chain = chain_of(seed)
    state, rng, config = chain.state, np.random.default_rng(seed), chain.state.config
    (N, S), u0 = state.eta.shape, config.center_precision
    state.z[:] = np.repeat([0, 2], [6, N - 6])
    state.eta += 3.0  # by which the prior's centre counts
    mu, Sigma = [], []
    for _ in range(1500):
        _draw_components(state, rng)
        mu.append(state.mu.copy())
        Sigma.append(state.Sigma.copy())
    nu0 = S + config.component_degrees
    for h, n in ((0, 6), (2, N - 6)):
        x, u, nu = state.eta[state.z == h], u0 + n, nu0 + n
        m = x.sum(axis=0) / u
        B = nu0 * config.component_variance * np.eye(S) + x.T @ x - u * np.outer(m, m)
        mean = B / (nu - S - 1)
        drawn = np.array(mu)[:, h]
        sd = np.sqrt(np.diag(mean) / u)
        assert drawn.mean(axis=0) == pytest.approx(m, abs=0.15 * sd.max())
        assert drawn.std(axis=0) == pytest.approx(sd, rel=0.15)
        scale = np.sqrt(np.outer(np.diag(mean), np.diag(mean)))
        away = (np.mean([one[h] for one in Sigma], axis=0) - mean) / scale
        assert np.abs(away).max() < 0.15


def test_a_draw_comes_back_from_its_arrays(seed: int) -> None:
    chain = chain_of(seed)
    model, draw = Mixture(), Mixture().draw(chain.state)
    N, S = draw.eta.shape
    again = model.unpack(model.pack(draw), Sizes(N, S, draw.spans))
    for name, value in vars(draw).items():
        assert np.array_equal(value, getattr(again, name)), name
    for name, wrong in (("noise", -draw.noise), ("z", draw.z + 9), ("Sigma", -draw.Sigma)):
        with pytest.raises(ValueError, match=name):
            model.unpack({**model.pack(draw), name: wrong}, Sizes(N, S, draw.spans))


def test_a_chain_goes_on_with_the_sticks_of_its_draw(seed: int) -> None:
    chain = chain_of(seed)
    draw, streams = Mixture().draw(chain.state), Streams(seed, 2)
    again = Mixture().resume(draw, chain.cells, chain.state.config, streams)
    np.testing.assert_allclose(again.log_pi, draw.log_pi, rtol=1e-9)
    np.testing.assert_allclose(again.sticks, chain.state.sticks, rtol=1e-9)


def test_settings_out_of_range_are_said() -> None:
    for name, value in (("components", 0), ("noise_rate", 0.0), ("component_degrees", 1.0)):
        with pytest.raises(UsageError, match=name):
            MixtureConfig(**{name: value})


def test_a_covariance_that_vanishes_is_a_numerical_error() -> None:
    table = pa.table({name: np.random.default_rng(0).normal(size=25) for name in "ab"})
    types = {"columns": dict.fromkeys("ab", "real")}
    config = {"component_variance": 1e-300}
    problem = prepare(table, types, model="mixture", settings=config)[0]
    with pytest.raises(NumericalError, match="component_variance"):
        chains.start(problem, 1, 0).sweep(adapt=True)
