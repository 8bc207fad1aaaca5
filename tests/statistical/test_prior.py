"""The forward simulator against closed forms, so that it can judge the sampler."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from scipy import integrate, special, stats

from .enumeration import class_of, feature_classes, from_matrix, log_class_prior
from .prior import (
    Array,
    Categorical,
    ColumnSpec,
    Count,
    Draw,
    Ordinal,
    Positive,
    Prior,
    Real,
    draw_buffet,
    draw_features,
    draw_table,
    draw_thresholds,
    draw_weights,
    observe,
    simulate,
)

ALL_TYPES = (Real(2.0, 5.0), Positive(3.0), Count(2.0), Categorical(3, reference=1), Ordinal(4))
LEAST_P = 1e-5  # each test of a right simulator falls below it this often over seeds


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def p_of_counts(found: Sequence[int], p: Sequence[float]) -> float:
    """Return the chi-square p value of counts; cells expecting fewer than 10 are pooled."""
    observed, expected = np.asarray(found, float), sum(found) * np.asarray(p)
    rare = expected < 10
    if rare.any():
        observed = np.append(observed[~rare], observed[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
    return float(stats.chisquare(observed, expected).pvalue)


def histogram(x: Array, n: int) -> list[int]:
    """Return how often 0, 1, ..., n - 2 and anything above occur."""
    return np.bincount(np.minimum(x.astype(int), n - 1), minlength=n).tolist()


def column_draws(column: ColumnSpec, eta: Array, theta: Array, var: float, seed: int) -> Array:
    """Return 40,000 values of one column with y ~ N(eta, var)."""
    rng = np.random.default_rng(seed)
    y = eta + rng.normal(0.0, math.sqrt(var), (40_000, len(eta)))
    return observe(column, y, theta, rng)


# The buffet --------------------------------------------------------------------------------------


def test_number_of_features_is_poisson(rng: np.random.Generator) -> None:
    alpha, n_rows = 1.3, 5
    sizes = np.array([draw_buffet(n_rows, alpha, rng).shape[1] for _ in range(8000)])
    rate = alpha * sum(1 / i for i in range(1, n_rows + 1))
    p = stats.poisson(rate).pmf(np.arange(11))
    assert p_of_counts(histogram(sizes, 12), [*p, 1 - p.sum()]) > LEAST_P


def test_features_of_every_row_are_poisson_alpha(rng: np.random.Generator) -> None:
    alpha, n_rows = 1.3, 5
    sums = np.array([draw_buffet(n_rows, alpha, rng).sum(axis=1) for _ in range(8000)])
    p = stats.poisson(alpha).pmf(np.arange(7))
    for n in range(n_rows):
        assert p_of_counts(histogram(sums[:, n], 8), [*p, 1 - p.sum()]) > LEAST_P


def test_classes_have_the_probabilities_of_the_enumeration(rng: np.random.Generator) -> None:
    alpha, draws = 1.0, 30_000
    found = Counter(class_of(from_matrix(draw_buffet(3, alpha, rng))) for _ in range(draws))
    classes = feature_classes(3, 3)
    p = [math.exp(log_class_prior(c, 3, alpha)) for c in classes]
    counts = [found[c] for c in classes]
    assert p_of_counts([*counts, draws - sum(counts)], [*p, 1 - math.fsum(p)]) > LEAST_P


def test_cap_conditions_the_features_and_their_concentration(rng: np.random.Generator) -> None:
    """With alpha ~ Gamma(a, b): P(K) is negative binomial, and alpha | K ~ Gamma(a + K, b + H)."""
    prior, harmonic = Prior(a_alpha=2.0, b_alpha=1.0, max_features=2), 1 + 1 / 2 + 1 / 3
    draws = [draw_features(3, prior, rng) for _ in range(10_000)]
    sizes = np.array([Z.shape[1] for _, Z in draws])
    p = stats.nbinom(2.0, 1.0 / (1.0 + harmonic)).pmf(np.arange(3))
    assert p_of_counts(np.bincount(sizes, minlength=3).tolist(), (p / p.sum()).tolist()) > LEAST_P
    for K in range(3):
        alphas = [alpha for alpha, Z in draws if Z.shape[1] == K]
        law = stats.gamma(2.0 + K, scale=1 / (1.0 + harmonic))
        assert stats.kstest(alphas, law.cdf).pvalue > LEAST_P


def test_columns_stand_in_random_order(rng: np.random.Generator) -> None:
    pairs = [Z for Z in (draw_buffet(4, 0.8, rng) for _ in range(12_000)) if Z.shape[1] == 2]
    larger = [(int(Z[:, 0].sum()) > int(Z[:, 1].sum())) for Z in pairs if np.ptp(Z.sum(axis=0))]
    assert stats.binomtest(sum(larger), len(larger)).pvalue > LEAST_P


# Parameters --------------------------------------------------------------------------------------


def many(columns: Sequence[ColumnSpec], prior: Prior, rng: np.random.Generator) -> list[Draw]:
    return [simulate(3, columns, prior, rng) for _ in range(4000)]


def test_variances_are_inverse_gamma(rng: np.random.Generator) -> None:
    prior = Prior(a_B=3.0, b_B=1.5, beta1=2.5, beta2=0.7)
    draws = many(ALL_TYPES, prior, rng)
    found = np.array([d.var_B for d in draws])
    assert stats.kstest(found, stats.invgamma(3.0, scale=1.5).cdf).pvalue > LEAST_P
    noise = np.array([d.noise for d in draws])
    for d in range(3):
        assert stats.kstest(noise[:, d], stats.invgamma(2.5, scale=0.7).cdf).pvalue > LEAST_P
    assert (noise[:, 3:] == 1.0).all()


@pytest.mark.parametrize("noise_scaled", [True, False])
@pytest.mark.parametrize("var_bias", [None, 7.0])
def test_weights_have_the_variance_of_their_prior(
    noise_scaled: bool, var_bias: float | None, rng: np.random.Generator
) -> None:
    prior, noise = Prior(var_bias=var_bias, noise_scaled=noise_scaled), np.array([0.2, 3.0])
    B = np.array([draw_weights(2, 1.7, noise, prior, rng) for _ in range(4000)])
    unit = noise if noise_scaled else np.ones(2)
    var = np.outer([7.0, 1.7, 1.7] if var_bias else [1.7, 1.7], unit)
    assert B.shape[1:] == var.shape
    for k, s in np.ndindex(*var.shape):
        assert stats.kstest(B[:, k, s], stats.norm(0, math.sqrt(var[k, s])).cdf).pvalue > LEAST_P


def test_thresholds_follow_the_order_restricted_normal_law(rng: np.random.Generator) -> None:
    """Two free thresholds: the lower has density 2 phi(t) (1 - Phi(t)), in units of the sd."""
    free, tied = Prior(var_theta=4.0, var_bias=None), Prior(var_theta=4.0, var_bias=10.0)
    theta = np.array([draw_thresholds(3, free, rng) for _ in range(4000)])
    lower = stats.kstest(theta[:, 0], lambda t: 1 - special.ndtr(-t / 2) ** 2)
    upper = stats.kstest(theta[:, 1], lambda t: special.ndtr(t / 2) ** 2)
    assert min(lower.pvalue, upper.pvalue) > LEAST_P
    theta = np.array([draw_thresholds(4, tied, rng) for _ in range(4000)])
    assert (theta[:, 0] == 0.0).all()
    assert (np.diff(theta, axis=1) > 0.0).all()
    half = stats.halfnorm(scale=2.0)
    lower = stats.kstest(theta[:, 1], lambda t: 1 - half.sf(t) ** 2)
    upper = stats.kstest(theta[:, 2], lambda t: half.cdf(t) ** 2)
    assert min(lower.pvalue, upper.pvalue) > LEAST_P


# The table ---------------------------------------------------------------------------------------


def test_pseudo_observations_given_features_have_the_collapsed_covariance(
    rng: np.random.Generator,
) -> None:
    """y_s ~ N(0, sd2 (I + var_B Z Z' + var_bias 1 1')) with the weights integrated out."""
    prior, noise = Prior(var_bias=2.0), np.array([0.5])
    Z = np.array([[1, 0], [1, 1], [0, 1]], np.uint8)
    covariance = 0.5 * (np.eye(3) + 1.5 * Z.astype(float) @ Z.T + 2.0)
    whiten = np.linalg.inv(np.linalg.cholesky(covariance))
    y = []
    for _ in range(4000):
        B = draw_weights(2, 1.5, noise, prior, rng)
        drawn = draw_table(Z, B, noise, [np.empty(0)], np.zeros((3, 1)), [Real()], prior, rng)
        y.append(drawn[0][:, 0])
    white = np.array(y) @ whiten.T
    assert stats.kstest(white.ravel(), stats.norm.cdf).pvalue > LEAST_P
    products = np.array([white[:, 0] * white[:, 1], white[:, 0] * white[:, 2]])
    assert np.abs(products.mean(axis=1) * math.sqrt(4000)).max() < 4


def test_real_column_is_normal_with_noise_and_link_noise(seed: int) -> None:
    x = column_draws(Real(3.0, -1.0, var_u=0.5), np.array([0.4]), np.empty(0), 0.8, seed)
    law = stats.norm(3.0 * 0.4 - 1.0, 3.0 * math.sqrt(0.8 + 0.5))
    assert stats.kstest(x, law.cdf).pvalue > LEAST_P


def test_positive_column_has_the_law_of_its_link(seed: int) -> None:
    x = column_draws(Positive(4.0, 0.9, 0.3, var_u=0.1), np.array([-0.5]), np.empty(0), 0.8, seed)

    def cdf(v: Array) -> Array:
        return special.ndtr(((np.log(np.expm1(v / 4.0)) - 0.3) / 0.9 + 0.5) / math.sqrt(0.9))

    assert x.min() > 0
    assert stats.kstest(x, cdf).pvalue > LEAST_P


def test_count_column_has_the_interval_probabilities(seed: int) -> None:
    x = column_draws(Count(2.0, 0.9, 0.3, smallest=1), np.array([0.5]), np.empty(0), 0.6, seed)
    edges = (np.log(np.expm1(np.arange(1, 12) / 2.0)) - 0.3) / 0.9
    cdf = special.ndtr((edges - 0.5) / math.sqrt(0.6))
    assert p_of_counts(histogram(x - 1, 12), np.diff([0.0, *cdf, 1.0]).tolist()) > LEAST_P


@pytest.mark.parametrize("reference", [0, 1, 2, None])
def test_categorical_column_has_the_probit_probabilities(reference: int | None, seed: int) -> None:
    """P(x = r) = E_u prod_{j != r} Phi(u + eta_r - eta_j), u ~ N(0, 1)."""
    eta = np.array([0.6, -0.3, 0.9])
    if reference is not None:
        eta[reference] = 0.0
    given = eta if reference is None else np.delete(eta, reference)
    x = column_draws(Categorical(3, reference), given, np.empty(0), 1.0, seed)

    def probability(r: int) -> float:
        others = np.delete(eta, r)
        return integrate.quad(
            lambda u: stats.norm.pdf(u) * np.prod(special.ndtr(u + eta[r] - others)), -9, 9
        )[0]

    assert p_of_counts(histogram(x, 3), [probability(r) for r in range(3)]) > LEAST_P


def test_ordinal_column_has_the_threshold_probabilities(seed: int) -> None:
    theta = np.array([-0.5, 0.2, 1.4])
    x = column_draws(Ordinal(4), np.array([0.3]), theta, 1.0, seed)
    p = np.diff([0.0, *special.ndtr(theta - 0.3), 1.0])
    assert p_of_counts(histogram(x, 4), p.tolist()) > LEAST_P


def test_draw_of_a_mixed_table_has_the_stated_shapes_and_supports(
    rng: np.random.Generator,
) -> None:
    for draw in (simulate(6, ALL_TYPES, Prior(max_features=4), rng) for _ in range(50)):
        K = draw.Z.shape[1]
        assert K <= 4
        assert (draw.Z.shape, draw.B.shape) == ((6, K), (K + 1, 6))
        assert (draw.y.shape, draw.x.shape) == ((6, 6), (6, 5))
        assert [len(t) for t in draw.thresholds] == [0, 0, 0, 0, 3]
        assert (draw.x[:, 1] > 0).all()
        assert (draw.x[:, 2] == np.floor(draw.x[:, 2])).all()
        assert (draw.x[:, 2] >= 0).all()
        assert set(draw.x[:, 3]) <= {0, 1, 2}
        assert set(draw.x[:, 4]) <= {0, 1, 2, 3}
        np.testing.assert_allclose(draw.x[:, 0], 2.0 * draw.y[:, 0] + 5.0)
