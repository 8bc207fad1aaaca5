"""What every link promises, for every type in `LINKS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

from glfm_cli.encoding import EncodedColumn, pack_trials, successes_of, trials_of
from glfm_cli.links import LINKS, LinkConfig, NormalMixture, link_from, make_link
from glfm_cli.links.binomial import BinomialLink
from glfm_cli.links.law import normal
from glfm_cli.links.link import Cut
from glfm_cli.links.probit_normal import ProbitNormalLink
from glfm_cli.schema import COLUMN_TYPES, Column, Transform

pytestmark = pytest.mark.usefixtures("toys")
N_TRIALS = 6.0


@dataclass(frozen=True)
class Case:
    """A column of some type: how its observed values are made, and what it is given besides."""

    type: str
    make: Callable[[np.random.Generator, int], np.ndarray]
    n_levels: int = 0
    more: tuple[tuple[str, Any], ...] = ()
    noise: float = 0.0
    weights: bool = False

    def link(self) -> Any:
        x, trials = self.make(np.random.default_rng(3), 120), None
        levels = tuple("abcdefgh"[: self.n_levels])
        column = Column("c", type=COLUMN_TYPES[self.type], **dict(self.more))
        seen = np.ones(x.size, dtype=bool)
        if column.binomial and not self.weights:
            trials = trials_of(x)
            x = successes_of(x) / trials
        encoded = EncodedColumn(column, 0, x, seen, ~seen, levels, trials=trials)
        return make_link(encoded, LinkConfig(link_noise=self.noise), weights=self.weights)


def levels_of(n: int) -> Callable[[np.random.Generator, int], np.ndarray]:
    return lambda rng, size: rng.integers(n, size=size).astype(np.float64)


def gammas(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.gamma(2.0, 3.0, n)


def successes(rng: np.random.Generator, n: int) -> np.ndarray:
    return pack_trials(rng.integers(7, size=n), np.full(n, N_TRIALS))


CASES = {
    "real": Case("real", lambda rng, n: rng.normal(3.0, 2.0, n)),
    "real with noise": Case("real", gammas, more=(("transform", Transform.NONE),), noise=0.4),
    "positive": Case("positive", gammas, more=(("transform", Transform.NONE),)),
    "ranks": Case("positive", gammas, more=(("transform", Transform.RANK),)),
    "zeros near": Case(
        "positive",
        lambda rng, n: np.maximum(rng.normal(1.0, 1.0, n), 0.0),
        more=(("atom", "none"),),
    ),
    "zeros far": Case(
        "positive", lambda rng, n: np.where(np.arange(n) % 40 == 7, 0.0, 9.0 + rng.random(n))
    ),
    "two parts": Case(
        "positive", lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, gammas(rng, n))
    ),
    "two parts, real": Case(
        "real", lambda rng, n: np.where(rng.random(n) < 0.3, 0.5, rng.normal(0.0, 2.0, n))
    ),
    "two parts, bounds": Case(
        "positive",
        lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.uniform(2.0, 9.0, n)),
        more=(("bounds", (None, 9.5)), ("atom", 0.0)),
    ),
    "ceiling": Case(
        "real",
        lambda rng, n: np.minimum(rng.normal(80.0, 20.0, n), 100.0),
        more=(("bounds", (0.0, 100.0)), ("atom", 100.0)),
    ),
    "logarithms": Case("positive", gammas, more=(("transform", Transform.LOG),)),
    "count": Case(
        "count", lambda rng, n: rng.poisson(4.0, n) * 1.0, more=(("transform", Transform.NONE),)
    ),
    "two levels": Case("categorical", levels_of(2), 2),
    "two levels, of a matrix": Case("categorical", levels_of(2), 2, weights=True),
    "categorical": Case("categorical", levels_of(4), 4),
    "ordinal": Case("ordinal", levels_of(4), 4),
    "proportion": Case("proportion", lambda rng, n: rng.beta(2.0, 3.0, n)),
    "grades": Case("grades", levels_of(4), 4),
    "binomial": Case("binomial", successes),
    "binomial, of a matrix": Case("binomial", successes, weights=True),
}
NUMBERS = ("real", "real with noise", "positive", "ranks", "zeros near", "zeros far")
NUMBERS += ("two parts", "two parts, real", "logarithms", "count", "proportion")
LEVELS = ("two levels", "two levels, of a matrix", "categorical", "ordinal", "grades")
BOUNDED = ("two parts, bounds", "ceiling")


def test_every_type_is_tried() -> None:
    assert {case.type for case in CASES.values()} == {str(kind) for kind in LINKS}  # toys, too


def law_of(link: Any, n: int, seed: int, parts: int = 2) -> NormalMixture:
    """Return laws of n cells, mixtures of normals; utilities are correlated."""
    rng, s = np.random.default_rng(seed), link.n_latent
    means = rng.normal(0.0, 0.7, (n, parts, s))
    A = 0.6 * rng.normal(size=(n, parts, s, s))
    cov = A @ np.swapaxes(A, 2, 3) + (1.0 if link.unit_noise else 0.2) * np.eye(s)
    variances = np.einsum("ncss->ncs", cov)
    weights = rng.dirichlet(np.ones(parts), n)
    return NormalMixture(weights, means, variances, cov if s > 1 else None)


def params_of(link: Any) -> dict[str, np.ndarray]:
    if not link.discrete:
        return link.start(np.array([np.nan]))[0]
    x = np.arange(link.n_levels * 1.0)
    return link.start(x)[0]


def support(link: Any) -> np.ndarray | None:
    """Return every value that a cell may take, None for a density."""
    if link.discrete:
        return np.arange(link.n_levels * 1.0)
    if link.integral:
        return np.arange(400.0)
    if isinstance(link, (BinomialLink, ProbitNormalLink)):
        return pack_trials(np.arange(N_TRIALS + 1), np.full(int(N_TRIALS) + 1, N_TRIALS))
    return None


def repeated(law: NormalMixture, n: int) -> NormalMixture:
    """Return the first cell of a law, n times."""
    return law.take(np.zeros(n, dtype=int)) if law.size > 1 else law


@pytest.mark.parametrize("case", CASES)
def test_the_law_of_a_value_adds_up_to_one(case: str, seed: int) -> None:
    link = CASES[case].link()
    law, params, values = law_of(link, 2, seed), params_of(link), support(link)
    if values is None:
        # Of two latent numbers the law is dear, and its parts are smooth.
        ends = (-14.0, 14.0)
        if link.n_latent == 2:  # bounds cut off one part alone
            ends = np.clip(link.latent_bounds, *ends)
        y = np.linspace(*ends, 200_001 if link.n_latent == 1 else 20_001)
        # Middles, since the density may jump at the knots of a margin.
        ends = np.unique(link.margin.to_value(y))
        values = 0.5 * (ends[1:] + ends[:-1])
        log_p = link.log_density(values, repeated(law, values.size), params)
        total = np.sum(np.exp(log_p) * np.diff(ends))
        if type(link) is LINKS["positive"] or link.n_latent == 2:
            at = np.full(1, getattr(link, "at", 0.0))
            total += np.exp(link.log_density(at, repeated(law, 1), params)[0])
        assert total == pytest.approx(1.0, abs=1.5e-3)
        return
    p = np.exp(link.log_density(values, repeated(law, values.size), params))
    assert p.sum() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("case", [*NUMBERS, *LEVELS])
def test_draws_follow_the_density(case: str, seed: int) -> None:
    link, n = CASES[case].link(), 20_000
    law, params, values = law_of(link, 2, seed), params_of(link), support(link)
    x = link.sample(repeated(law, n), params, np.random.default_rng(seed))
    if values is None:
        at = np.sort(np.random.default_rng(1).choice(x, 60))
        bins = link.masses(at, law.take(np.zeros(1, int)), params)[0]
        found = np.array([np.mean(x <= value) for value in at])
        assert np.abs(np.cumsum(bins)[:-1] - found).max() < 5.0 * 0.5 / np.sqrt(n)
        low, high = link.latent_bounds
        assert stats.norm.cdf(low, 0, 1) < 0.02
        assert stats.norm.sf(high, 0, 1) < 0.02
        return
    p = np.exp(link.log_density(values, repeated(law, values.size), params))
    share = np.bincount(x.astype(int), minlength=values.size)[: values.size] / n
    assert np.all(np.abs(share - p) < 5.0 * np.sqrt(p * (1 - p) / n) + 2e-3)


@pytest.mark.parametrize("case", BOUNDED)
def test_draws_inside_bounds_follow_the_forecast(case: str, seed: int) -> None:
    link, n = CASES[case].link(), 20_000
    law, params = law_of(link, 2, seed), params_of(link)
    x = link.sample(repeated(law, n), params, np.random.default_rng(seed))
    at = np.linspace(*link.margin.to_value(np.array(link.latent_bounds).clip(-3.0, 3.0)), 40)
    at = np.append(at, link.at)
    below, allowed = link.forecast(at, repeated(law, at.size), params)[:, :2].T
    assert allowed == pytest.approx(1.0)
    found = np.array([np.mean(x <= value) for value in at])
    assert np.abs(below - found).max() < 5.0 * 0.5 / np.sqrt(n)
    p = link.split_law(law, params)[0][0]  # bounds are of the other values
    assert np.mean(x == link.at) == pytest.approx(p, abs=5.0 * 0.5 / np.sqrt(n))


@pytest.mark.parametrize("case", [*NUMBERS, *BOUNDED, *LEVELS])
def test_quantiles_and_moments_are_those_of_draws(case: str, seed: int) -> None:
    link, n, at = CASES[case].link(), 20_000, (0.1, 0.5, 0.9)
    law, params = law_of(link, 2, seed), params_of(link)
    average = link.average(2, 1)
    average.add(law, params, 1.0, quantiles=True)
    found = average.result(at, lambda p: p)
    if not link.ordered:
        assert np.isnan(found.mean).all()
        return
    x = link.sample(repeated(law, n), params, np.random.default_rng(seed))
    assert found.mean[0] == pytest.approx(x.mean(), abs=5.0 * x.std() / np.sqrt(n) + 1e-3)
    assert found.sd[0] == pytest.approx(x.std(), rel=0.08)
    assert link.expected(law, params)[0] == pytest.approx(found.mean[0], rel=1e-6)
    for quantile, p in zip(found.quantiles[0], at, strict=True):
        assert np.mean(x < quantile) <= p + 0.02
        assert np.mean(x <= quantile) >= p - 0.02


@pytest.mark.parametrize("case", LEVELS)
def test_probabilities_are_those_of_the_log_density(case: str, seed: int) -> None:
    link = CASES[case].link()
    law, params = law_of(link, 5, seed, parts=1), params_of(link)
    p = link.probabilities(law, params)
    assert np.allclose(p.sum(axis=1), 1.0)
    for r in range(link.n_levels):
        assert np.allclose(np.exp(link.log_density(np.full(5, r * 1.0), law, params)), p[:, r])


@pytest.mark.parametrize("s", [2, 3, 5])
def test_correlated_utilities_have_the_shares_of_a_long_simulation(s: int, seed: int) -> None:
    link = Case("categorical", levels_of(s + 1), s + 1).link()
    rng, n = np.random.default_rng(seed), 1_000_000
    cov = 1.2 * (0.85 + 0.15 * np.eye(s)) + np.eye(s)
    mean = rng.normal(size=s)
    weights, variances = np.ones((1, 1)), np.diag(cov)[None, None]
    law = NormalMixture(weights, mean[None, None], variances, cov[None, None])
    utility = rng.standard_normal((n, s + 1))
    latent = np.flatnonzero(link.slot >= 0)
    utility[:, latent] = utility[:, latent] @ np.linalg.cholesky(cov).T + mean
    share = np.bincount(utility.argmax(axis=1), minlength=s + 1) / n
    p = link.probabilities(law, {})[0]
    assert np.abs(p - share).max() < 3e-3
    apart = link.probabilities(law._replace(covariance=None), {})[0]
    assert np.abs(apart - share).max() > 2.0 * np.abs(p - share).max()


@pytest.mark.parametrize("case", CASES)
def test_bounds_that_are_fixed_follow_neither_y_nor_chance(case: str, seed: int) -> None:
    link, rng, found = CASES[case].link(), np.random.default_rng(seed), []
    x = CASES[case].make(rng, 60)
    params, y = link.start(x)
    for _ in range(2):
        eta = rng.normal(size=y.shape)
        link.augment(x, eta[:, 0] if link.n_latent == 1 else eta, 1.0, params, rng, y)
        found.append(np.zeros((2, *y.shape)))
        link.bound(x, params, y, rng, *found[-1])
    assert np.array_equal(*found) or not link.fixed_bounds


@pytest.mark.parametrize("case", CASES)
def test_constants_come_back(case: str, seed: int) -> None:
    one = CASES[case]
    link = one.link()
    column = Column("c", type=COLUMN_TYPES[one.type], **dict(one.more))
    config = LinkConfig(link_noise=one.noise)
    constants = link.constants()
    again = link_from(column, one.n_levels, constants, config)
    assert type(again) is type(link)
    law, params = law_of(link, 50, seed), params_of(link)
    again.check_params(params)
    x = one.make(np.random.default_rng(4), 50)
    link.check_cells(x)
    assert np.array_equal(*(o.log_density(x, law, params) for o in (link, again)))
    assert np.array_equal(*(o.forecast(x, law, params) for o in (link, again)))
    draws = [o.sample(law, params, np.random.default_rng(1)) for o in (link, again)]
    assert np.array_equal(*draws)
    for name, value in constants.items():
        nan = [np.full_like(value, np.nan)] if value.size else []
        for wrong in (*nan, np.zeros(value.shape, np.int64), np.zeros((2, 2))):
            with pytest.raises(ValueError):
                link_from(column, one.n_levels, {**constants, name: wrong}, config)
    with pytest.raises(ValueError):
        link.check_params({**params, "unknown": np.zeros(1)})


@pytest.mark.parametrize("case", CASES)
def test_cells_that_cannot_be_are_refused(case: str) -> None:
    link = CASES[case].link()
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError):
            link.check_cells(np.array([wrong]))
    bad = {"count": 1.5, "positive": -1.0, "proportion": 1.5, "binomial": pack_trials(7.0, 6.0)}
    wrong = bad.get(CASES[case].type, CASES[case].n_levels * 1.0)
    if CASES[case].type != "real":
        with pytest.raises(ValueError):
            link.check_cells(np.array([wrong]))


@pytest.mark.parametrize("case", CASES)
def test_laws_of_other_columns_are_refused(case: str) -> None:
    link = CASES[case].link()
    x, params = CASES[case].make(np.random.default_rng(4), 3), params_of(link)
    law = normal(np.zeros((3, link.n_latent + 1)), 1.0)
    for ask in (link.log_density, link.forecast):
        with pytest.raises(TypeError, match="latent numbers, expected"):
            ask(x, law, params)
    with pytest.raises(TypeError, match="latent numbers, expected"):
        link.sample(law, params, np.random.default_rng(0))


@pytest.mark.parametrize("case", CASES)
def test_the_expected_value_lies_between_those_of_its_components(case: str, seed: int) -> None:
    link = CASES[case].link()
    s, params = link.n_latent, params_of(link)
    ends = [normal(np.full((1, s), value), 1.0) for value in (-1.0, 1.0)]
    both = NormalMixture(
        np.array([[0.3, 0.7]]), np.concatenate([e.means for e in ends], axis=1), np.ones((1, 1, 1))
    )
    low, high = sorted(float(link.expected(end, params)[0]) for end in ends)
    assert low < float(link.expected(both, params)[0]) < high


def test_successes_among_known_trials_follow_their_density(seed: int) -> None:
    link, n, at = CASES["binomial"].link(), 20_000, (0.1, 0.5, 0.9)
    values = support(link)
    assert values is not None
    law, hits = law_of(link, 2, seed), np.arange(N_TRIALS + 1)
    p = np.exp(link.log_density(values, repeated(law, values.size), {}))
    ends = np.tile([0.0, N_TRIALS], (n, 1))
    x = link.sample_between(repeated(law, n), {}, np.random.default_rng(seed), ends)
    share = np.bincount(x.astype(int), minlength=values.size) / n
    assert np.all(np.abs(share - p) < 5.0 * np.sqrt(p * (1.0 - p) / n))
    average = link.average(2, 1)
    average.add(law, {}, 1.0, quantiles=True)
    found = link.summary_between(average, ends[:2], at)
    assert found.mean[0] == pytest.approx(p @ hits, rel=1e-5)
    assert found.sd[0] == pytest.approx(np.sqrt(p @ hits**2 - (p @ hits) ** 2), rel=1e-4)
    upto = np.cumsum(p)
    assert found.quantiles[0].tolist() == np.searchsorted(upto, at).tolist()
    below = link.forecast(values, repeated(law, values.size), {})[:, 0]
    assert np.abs(below - upto).max() < 2e-3
    # None of no trials.
    nothing = link.summary_between(average, np.zeros((2, 2)), at)
    assert (nothing.mean[0], nothing.sd[0], *nothing.quantiles[0]) == (0.0,) * 5


@pytest.mark.parametrize(
    ("h", "n", "mean", "sd"),
    [(0, 6, 0.0, 1.0), (2, 6, 3.0, 2.0), (90, 300, -4.0, 1.5), (1e5, 1e6, 0.0, 0.7), (1, 1, 0, 1)],
)
def test_probit_normal_cells_are_drawn_from_their_posterior(
    h: float, n: float, mean: float, sd: float, seed: int
) -> None:
    link, size = CASES["binomial"].link(), 4_000
    m, w = link.margin.m, link.margin.w
    x, y = np.full(size, pack_trials(np.array(h), np.array(n))), np.zeros((size, 1))
    rng, eta = np.random.default_rng(seed), np.full(size, (mean - m) / w)
    link.augment(x, eta, (sd / w) ** 2, {}, rng, y)
    guess = stats.norm.ppf((h + 0.5) / (n + 1.0))
    z = np.unique(np.concatenate([
        np.linspace(mean - 9.0 * sd, mean + 9.0 * sd, 20_001),
        guess + np.linspace(-0.1, 0.1, 20_001),
    ]))  # fmt: skip
    log_p = stats.binom.logpmf(h, n, stats.norm.cdf(z)) + stats.norm.logpdf(z, mean, sd)
    middle = np.exp(log_p - log_p.max())
    mass = np.append(0.0, np.cumsum(0.5 * (middle[1:] + middle[:-1]) * np.diff(z)))
    cdf = mass / mass[-1]
    assert stats.kstest(m + w * y[:, 0], lambda at: np.interp(at, z, cdf)).pvalue > 1e-4
    log_total = np.log(mass[-1]) + log_p.max()
    law = normal(eta[:1], (sd / w) ** 2)
    assert link.log_density(x[:1], law, {})[0] == pytest.approx(log_total, abs=1e-4)


def test_thresholds_that_a_fit_places_cut_the_levels() -> None:
    link = CASES["ordinal"].link()
    assert isinstance(link, Cut)
    params, theta = params_of(link), np.array([-0.7, 0.1, 1.9])
    link.set_thresholds(params, theta)
    p = link.probabilities(normal(np.zeros(1), 1.0), params)[0]
    assert np.allclose(np.cumsum(p)[:-1], stats.norm.cdf(theta))
