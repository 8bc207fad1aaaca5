"""Binomial matrices whose rates vary, or do not, more than rows and columns say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import binom, log_ndtr, ndtr

from glfm_cli import impute
from glfm_cli.encoding import EncodedColumn, pack_trials
from glfm_cli.inference.chain import start_chain
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.draw import BsvdDraw
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.latent.model import Entries, Problem, Sparse
from glfm_cli.links import LinkConfig
from glfm_cli.links.binomial import BinomialLink
from glfm_cli.links.law import normal
from glfm_cli.links.probit_normal import ProbitNormalLink
from glfm_cli.schema import COLUMN_TYPES, Column
from glfm_cli.streams import Streams

TYPES = {
    "columns": {
        "i": "row",
        "j": "column",
        "h": {"type": "binomial", "role": "value", "trials": "n"},
        "n": "ignore",
    }
}


def problem_of(hits: list[float], trials: list[float], config: BsvdConfig) -> Problem:
    """Return a matrix of one row, all of whose cells are seen."""
    m = len(hits)
    column = np.arange(m, dtype=np.int32)
    entries = Entries(np.zeros(m, dtype=np.int32), column, (1, m))
    xs = (pack_trials(np.array(hits), np.array(trials)),)
    return Problem(Bsvd(), config, (BinomialLink.of("h"),), xs, layout=Sparse(entries))


def log_likelihood(hits: list[float], trials: list[float], eta: float, sd: float) -> float:
    """Return log P(hits) by direct summation over the rates of cells."""
    e = np.linspace(-8.0, 8.0, 1601)
    z, h, n = (eta + sd * e)[:, None], np.array(hits), np.array(trials)
    log_p = np.log(binom(n, h)) + h * log_ndtr(z) + (n - h) * log_ndtr(-z)
    weight = stats.norm.pdf(e) * (e[1] - e[0])
    return float(np.sum(np.log(weight @ np.exp(log_p))))


def test_the_extra_deviation_has_its_exact_posterior(seed: int) -> None:
    """Of six cells whose rates have the median 1/2."""
    hits, trials = [4.0, 7.0, 30.0, 9.0, 1.0, 0.0], [10.0, 8.0, 90.0, 10.0, 1.0, 5.0]
    config = BsvdConfig(max_components=0, bias=False, extra_scale=0.8)
    chain = start_chain(problem_of(hits, trials, config), Streams(seed, 0))
    found = []
    for _ in range(5_000):
        chain.sweep(adapt=False)
        found.append(np.sqrt(chain.state.noise[0]))

    def density(sd: float, power: int) -> float:
        log_p = log_likelihood(hits, trials, 0.0, sd) - (sd / 0.8) ** 2 / 2
        return float(sd**power * np.exp(log_p))

    total, first, second = (quad(density, 0.0, 6.0, args=(k,), limit=100)[0] for k in range(3))
    mean, sd = first / total, np.sqrt(second / total - (first / total) ** 2)
    chunks = np.mean(np.reshape(found[100:], (-1, 100)), axis=1)
    error = chunks.std() / np.sqrt(chunks.size)
    assert error < 0.05 * sd
    assert abs(np.mean(found) - mean) < 4.0 * error
    assert np.std(found) == pytest.approx(sd, rel=0.12)


@pytest.mark.parametrize(("eta", "var"), [(-1.0, 1e-6), (0.7, 0.3), (2.0, 4.0)])
def test_moments_of_rates_are_those_of_their_density(eta: float, var: float) -> None:
    _, *found = BinomialLink.of("h").standard_moments(np.array([eta]), var, {})

    def power(e: float, k: int) -> float:
        rate = (ndtr(eta + np.sqrt(var) * e) - 0.5) / 0.25
        return float(stats.norm.pdf(e) * rate**k)

    exact = [quad(power, -9, 9, args=(k,))[0] for k in (1, 2)]
    assert [part[0] for part in found] == pytest.approx(exact, rel=1e-7)


def test_a_new_row_weighs_its_trials_by_the_extra_deviation(seed: int) -> None:
    """Its intercept, the only number that is unknown, has its exact posterior."""
    hits, trials, noise = [40.0, 10.0], [50.0, 50.0], 0.5
    config = BsvdConfig(max_components=0)
    right = np.array([[0.3, 1.0], [0.3, 1.0]])
    left = np.array([[1.0, 0.0]])
    latent = BsvdDraw(left, right, np.array([noise]), 0, 1, np.ones(4), 1, mu=0.3)
    posterior = Posterior(
        Bsvd(), (BinomialLink.of("h"),), ((0, 1),), ((Draw(latent, ({},), {}),) * 1_000,)
    )
    problem = problem_of(hits, trials, config)
    entries = Entries(np.ones(2, dtype=np.int32), np.arange(2, dtype=np.int32), (2, 2))
    new = Problem(Bsvd(), config, problem.links, problem.xs, layout=Sparse(entries))
    folded = fold_in(posterior, new, seed=seed, sweeps=8)
    found = np.array([draw.latent.left[1, 1] for draw in folded.chains[0]])

    grid = np.linspace(-5.0, 5.0, 401)
    log_p = [log_likelihood(hits, trials, 0.3 + g, noise**0.5) - g * g / 2 for g in grid]
    cdf = np.cumsum(np.exp(np.array(log_p) - np.max(log_p)))
    cdf /= cdf[-1]
    assert stats.kstest(found, lambda at: np.interp(at, grid, cdf)).pvalue > 1e-4


def planted(extra: float, seed: int) -> tuple[dict[str, Any], np.ndarray]:
    """Return a matrix of rank 1, and the rates of its hidden cells."""
    rng = np.random.default_rng(seed)
    z = 0.6 * rng.normal(size=(80, 1)) * rng.normal(size=40) + 0.3 * rng.normal(size=(80, 1))
    p, n = ndtr(z + extra * rng.normal(size=z.shape)), rng.integers(20, 60, size=z.shape)
    seen = rng.random(z.shape) < 0.5
    (i, j), (k, m) = np.nonzero(seen), np.nonzero(~seen)
    table = pa.table({"i": i, "j": j, "h": rng.binomial(n, p)[seen], "n": n[seen]})
    options = {"pairs": pa.table({"i": k, "j": m}), "seed": seed, "chains": 1}
    return {"table": table, "types": TYPES, **options}, p[~seen]


@pytest.mark.parametrize(("extra", "error"), [(0.0, 0.05), (0.7, 0.24)])
def test_rates_that_vary_beside_rows_and_columns_are_no_components(
    extra: float, error: float, seed: int
) -> None:
    given, truth = planted(extra, seed)
    done: Any = impute(given.pop("table"), given.pop("types"), warmup=60, draws=60, **given)
    found = done.to_table()
    mean, low, high = (found[name].to_numpy() for name in ("mean", "lower", "upper"))
    assert np.sqrt(np.mean((mean - truth) ** 2)) < error
    assert 0.9 < np.mean((low <= truth) & (truth <= high)) < 0.98
    traces = done.posterior.traces()
    assert np.mean(traces["rank"]) < 2.5
    assert np.mean(np.sqrt(traces["noise_0"])) == pytest.approx(extra, abs=0.07)


def test_the_law_of_hits_includes_the_extra_variance() -> None:
    hits, trials = np.array([0.0, 3.0, 17.0]), np.array([4.0, 4.0, 20.0])
    link, x = BinomialLink.of("h"), pack_trials(hits, trials)
    found = link.log_density(x, normal(np.full(3, 0.4), 0.5), {})
    exact = [log_likelihood([h], [n], 0.4, 0.5**0.5) for h, n in zip(hits, trials, strict=True)]
    np.testing.assert_allclose(found, exact, atol=1e-6)


@pytest.mark.parametrize("sd", [0.1, 0.5])
def test_rates_of_a_table_are_seen_by_the_mean_and_sd_that_they_have_beside_chance(
    sd: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    n = rng.integers(20, 60, 20_000)
    h = rng.binomial(n, ndtr(-1.2 + sd * rng.standard_normal(n.size)))
    column, every = Column("h", type=COLUMN_TYPES["binomial"]), np.ones(n.size, bool)
    encoded = EncodedColumn(column, 0, h / n, every, ~every, (), trials=n.astype(float))
    m, w = ProbitNormalLink.calibrate(encoded, LinkConfig())._place
    assert m == pytest.approx(-1.2, abs=0.2)
    assert w == pytest.approx(sd, rel=0.25)
