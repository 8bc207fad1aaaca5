"""Rows of a matrix with noise variances of their own: found, kept, and used in forecasts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln
from scipy.stats import invgamma

from glfm_cli.arrays import Array
from glfm_cli.completion.matrix import Pairs, predict_pairs
from glfm_cli.inference.chain import Chain, load_chain, start_chain
from glfm_cli.inference.posterior import Posterior
from glfm_cli.latent.blocks import thread_pool
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.draw import BsvdDraw
from glfm_cli.latent.bsvd.row_noise import (
    LEAST,
    MOST,
    draw_noise_of_rows,
    draw_row_precision,
    log_likelihood,
)
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.latent.model import Entries, Problem, Sizes, Sparse
from glfm_cli.links.law import normal
from glfm_cli.schema import ColumnType
from glfm_cli.streams import Streams
from tests.statistical.bsvd_prior import make_links

SHAPE = (80, 30)


def chain_of(values: Array, seed: int, kind: ColumnType = ColumnType.REAL) -> Chain:
    """Return a chain over the cells of a matrix that are not NaN."""
    row, column = np.nonzero(~np.isnan(values))
    entries = Entries(row.astype(np.int32), column.astype(np.int32), values.shape)
    config = BsvdConfig(max_components=0, row_noise=True)
    x = values[row, column]
    return start_chain(
        Problem(Bsvd(), config, make_links(kind), (x,), layout=Sparse(entries)), Streams(seed, 0)
    )


def noisy(variances: Array, seed: int) -> Array:
    """Return cells around intercepts of rows and columns, the rows' noise variances given."""
    rng = np.random.default_rng(seed)
    x = 3.0 + rng.normal(size=(SHAPE[0], 1)) + rng.normal(size=SHAPE[1])
    cells = x + np.sqrt(variances)[:, None] * rng.normal(size=SHAPE)
    cells[rng.random(SHAPE) < 0.2] = np.nan
    return cells


@pytest.mark.parametrize(("shape", "low", "high"), [(1e6, LEAST, 0.15), (3.0, 0.45, 0.75)])
def test_how_much_rows_differ_is_found(seed: int, shape: float, low: float, high: float) -> None:
    f = np.random.default_rng(seed).gamma(shape, 1.0 / shape, size=SHAPE[0])
    chain = chain_of(noisy(1.0 / f, seed), seed)
    precision, variation = [], []
    for sweep in range(60):
        chain.sweep(adapt=sweep < 20)
        if sweep >= 20:
            precision.append(chain.state.row_precision.copy())
            variation.append(chain.state.variation)
    assert low <= np.mean(variation) <= high
    if shape == 3.0:
        found = np.log(np.mean(precision, axis=0))
        assert np.corrcoef(found, np.log(f))[0, 1] > 0.85


def test_likelihood_has_the_precisions_integrated_out() -> None:
    S, n, noise, variation = np.array([3.0, 0.0]), np.array([4.0, 0.0]), 0.7, 0.6
    a = variation**-2
    f = np.linspace(1e-6, 30.0, 400_000)
    density = f ** (a - 1.0) * np.exp(-a * f)
    given = (f / noise) ** 2.0 * np.exp(-0.5 * f * S[0] / noise)
    expected = np.log(np.sum(density * given) / np.sum(density))
    assert log_likelihood(S, n, np.log(noise), variation) == pytest.approx(expected, abs=1e-6)


def test_noise_and_variation_of_few_rows_have_their_posterior(seed: int) -> None:
    """On a grid of both logarithms: rows are multivariate t, the prior of 1 / sqrt(a) is even."""
    rng = np.random.default_rng(seed)
    cells = np.array([[0.3, -0.2, 0.6], [2.1, -1.8, 0.9], [0.1, 0.2, -0.4], [-1.2, 0.8, 0.7]])
    state = chain_of(cells, seed).state
    config, found = state.config, []
    with thread_pool(1) as each:
        for _ in range(900):
            draw_noise_of_rows(state, state.x + cells.ravel(), rng, each)
            found.append([np.log(state.noise[0]), np.log(state.variation)])
    log_noise, log_variation = np.linspace(-4.0, 4.0, 161), np.linspace(np.log(LEAST), 0.0, 300)
    noise, df = np.exp(log_noise)[:, None, None], 2.0 * np.exp(-2.0 * log_variation)[:, None]
    rows = gammaln(0.5 * (df + 3)) - gammaln(0.5 * df) - 1.5 * np.log(np.pi * df * noise)
    rows = rows - 0.5 * (df + 3) * np.log1p(np.sum(cells**2, axis=1) / (df * noise))
    log_p = rows.sum(axis=2) + log_variation
    log_p += invgamma(config.noise_shape, 0.0, config.noise_rate).logpdf(np.exp(log_noise))[:, None]
    p = np.exp(log_p + log_noise[:, None] - log_p.max())
    for k, at in enumerate((log_noise[:, None], log_variation[None])):
        mean = np.sum(p * at) / p.sum()
        sd = np.sqrt(np.sum(p * (at - mean) ** 2) / p.sum())
        assert np.mean(found, axis=0)[k] == pytest.approx(mean, abs=0.25 * sd)
        assert np.std(found, axis=0)[k] == pytest.approx(sd, rel=0.25)


def test_rows_without_cells_have_the_prior(seed: int) -> None:
    none = np.zeros(20_000)
    drawn = draw_row_precision(none, none, 0.3, 0.5, np.random.default_rng(seed))
    assert drawn.mean() == pytest.approx(1.0, abs=0.02)
    assert drawn.std() == pytest.approx(0.5, abs=0.02)


def test_discrete_values_have_no_noise_of_rows(seed: int) -> None:
    levels = np.random.default_rng(seed).integers(4, size=(9, 7)).astype(np.float64)
    chain = chain_of(levels, seed, ColumnType.ORDINAL)
    chain.sweep(adapt=True)
    assert not chain.state.design.row_noise
    assert np.all(chain.state.row_precision == 1.0)
    assert "row_precision" not in Bsvd().save(chain.state)
    assert Bsvd().draw(chain.state).row_precision.size == 0


def test_a_chain_and_its_draws_are_kept(seed: int) -> None:
    chain = chain_of(noisy(np.linspace(0.2, 2.0, SHAPE[0]), seed), seed)
    chain.sweep(adapt=True)
    again = load_chain(chain.problem, chain.save())
    for one in (chain, again):
        one.sweep(adapt=True)
    np.testing.assert_array_equal(chain.state.row_precision, again.state.row_precision)
    assert chain.state.variation == again.state.variation
    draw = Bsvd().draw(chain.state)
    kept = BsvdDraw.unpack(draw.pack(), Sizes(SHAPE[0], SHAPE[1], ((0, 1),)))
    np.testing.assert_array_equal(kept.row_precision, chain.state.row_precision)
    assert kept.variation == chain.state.variation
    broken = draw.pack() | {"variation": np.array(0.0)}
    with pytest.raises(ValueError, match="do not fit"):
        BsvdDraw.unpack(broken, Sizes(SHAPE[0], SHAPE[1], ((0, 1),)))
    broken = chain.save() | {"latent.variation": np.array(2.0 * MOST)}
    with pytest.raises(ValueError, match="'variation' is not from"):
        load_chain(chain.problem, broken)


def test_log_likelihood_is_that_of_every_row(seed: int) -> None:
    cells = noisy(np.linspace(0.2, 2.0, SHAPE[0]), seed)
    chain = chain_of(cells, seed)
    chain.sweep(adapt=True)
    state, link = chain.state, chain.problem.links[0]
    row = np.nonzero(~np.isnan(cells))[0]
    var = state.noise[0] / state.row_precision[row]
    expected = link.log_density(chain.problem.xs[0], normal(state.x, var), {}).sum()
    assert chain.log_likelihood() == pytest.approx(expected, rel=1e-12)


def test_intervals_are_as_wide_as_the_rows_noise(seed: int) -> None:
    chain = chain_of(noisy(np.where(np.arange(SHAPE[0]) < 40, 0.1, 2.0), seed), seed)
    chain.sweep(adapt=True)
    draw = chain.keep()
    posterior = Posterior(Bsvd(), chain.problem.links, chain.spans, ((draw,),))
    row, column = np.arange(SHAPE[0]), np.zeros(SHAPE[0], dtype=np.int64)
    found = predict_pairs(posterior, Pairs(row, column), [0.025, 0.975])
    link = chain.problem.links[0]
    sd = np.sqrt(chain.state.noise[0] / chain.state.row_precision)
    unit = link.value(np.array([1.0]))[0] - link.value(np.array([0.0]))[0]
    np.testing.assert_allclose(found.sd, unit * sd, rtol=1e-6)
    width = found.quantiles[:, 1] - found.quantiles[:, 0]
    np.testing.assert_allclose(width, 2.0 * 1.959964 * unit * sd, rtol=1e-3)
    assert np.median(width[:40]) < 0.5 * np.median(width[40:])


def test_new_rows_get_noise_of_their_own(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chain = chain_of(noisy(np.linspace(0.2, 2.0, SHAPE[0]), seed), seed)
    for _ in range(20):
        chain.sweep(adapt=True)
    draw = Bsvd().draw(chain.state)
    n_new = 200
    cells = np.full((SHAPE[0] + n_new, SHAPE[1]), np.nan)
    level = draw.right[:, 0]
    sd = np.repeat([0.2, 1.5], n_new // 2)
    own = level + sd[:, None] * rng.normal(size=(n_new, SHAPE[1]))
    own[::4] = np.nan  # nothing is known of these
    cells[SHAPE[0] :] = own
    more = chain_of(cells, seed)
    more.cells.y[:, 0] = own[~np.isnan(own)]
    folded = Bsvd().fold_in(
        draw, chain.problem.config, more.cells, lambda eta: None, lambda eta, rows: eta, 5, rng
    )
    np.testing.assert_array_equal(folded.row_precision[: SHAPE[0]], draw.row_precision)
    f = folded.row_precision[SHAPE[0] :]
    seen = np.arange(n_new) % 4 > 0
    calm = np.arange(n_new) < n_new // 2
    assert np.median(f[calm & seen]) > 4.0 * np.median(f[~calm & seen])
    drawn = replace(draw, row_precision=folded.row_precision).noise_of_rows(
        np.array([SHAPE[0] + 1])
    )
    assert drawn[0] == draw.noise[0] / folded.row_precision[SHAPE[0] + 1]
    # Gamma(a, a) has standard deviation `variation`; 50 draws say it within a third.
    assert 0.6 < f[~seen].std() / draw.variation < 1.5
