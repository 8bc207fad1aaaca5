"""The machinery that proves kernels exact: it passes an exact kernel and catches wrong ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum, auto
from functools import partial

import numpy as np
import pytest

from .enumeration import (
    Columns,
    Decision,
    TinyModel,
    class_of,
    compose,
    enumerate_paths,
    feature_classes,
    from_matrix,
    lift,
    log_class_prior,
    ordered_matrices,
    stationary,
    to_classes,
    to_matrix,
    total_variation,
    transition_matrix,
)

Run = Callable[[tuple[int, ...]], tuple[Sequence[Decision], Columns]]


class Rule(Enum):
    """How the reference kernel updates a row; all but the first are known to be wrong."""

    EXACT = auto()
    FIXED_SCAN = auto()  # features visited from left to right
    SINGLETONS_DROPPED_FIRST = auto()  # the row's own features removed before its bits are drawn
    NEW_FROM_PRIOR = auto()  # number of new features from Poisson(alpha / N)


class Scripted:
    """Random decisions taken from a script, and recorded."""

    def __init__(self, script: tuple[int, ...]) -> None:
        self.script = script
        self.decisions: list[Decision] = []

    def choose(self, options: Sequence[float]) -> int:
        made = len(self.decisions)
        option = self.script[made] if made < len(self.script) else 0
        self.decisions.append((option, options))
        return option


def reference_row(model: TinyModel, columns: Columns, n: int, rule: Rule = Rule.EXACT) -> Run:
    """Return the update of row n, every probability from the whole likelihood of the table."""
    N, bit = model.n_rows, 1 << n
    shared = tuple(h for h in columns if h & ~bit)
    own = () if rule is Rule.SINGLETONS_DROPPED_FIRST else (bit,) * (len(columns) - len(shared))

    def run(script: tuple[int, ...]) -> tuple[Sequence[Decision], Columns]:
        draw = Scripted(script)
        now = list(shared)
        left = list(range(len(now)))
        while left:
            random_place = rule is not Rule.FIXED_SCAN
            k = left.pop(draw.choose([1 / len(left)] * len(left)) if random_place else 0)
            with_bit, without = now[k] | bit, now[k] & ~bit
            m = without.bit_count()
            others = (*now[:k], *now[k + 1 :], *own)
            log_odds = math.log(m / (N - m)) + model.log_likelihood((*others, with_bit))
            log_odds -= model.log_likelihood((*others, without))
            p = 1 / (1 + math.exp(-log_odds))
            now[k] = with_bit if draw.choose([1 - p, p]) else without
        weights = []
        for k in range(model.max_features - len(now) + 1):
            log_p = k * math.log(model.alpha / N) - math.lgamma(k + 1)
            if rule is not Rule.NEW_FROM_PRIOR:
                log_p += model.log_likelihood((*now, *(bit,) * k))
            weights.append(log_p)
        top = max(weights)
        p_new = [math.exp(w - top) for w in weights]
        n_new = draw.choose([p / math.fsum(p_new) for p in p_new])
        return draw.decisions, (*now, *(bit,) * n_new)

    return run


@pytest.fixture(scope="module")
def model() -> TinyModel:
    """Three rows, three columns, two cells not observed."""
    y = np.array([[1.3, -0.4, 2.1], [-1.8, 0.9, 0.3], [1.1, 1.6, -1.2]])
    observed = np.array([[True, True, True], [True, False, True], [True, True, False]])
    noise = np.array([0.4, 1.0, 0.7])
    return TinyModel(y, observed, alpha=1.5, var_B=2.0, var_noise=noise)


def row_matrices(model: TinyModel, rule: Rule) -> list[np.ndarray]:
    states = ordered_matrices(model.n_rows, model.max_features)
    return [
        transition_matrix(states, partial(reference_row, model, n=n, rule=rule))
        for n in range(model.n_rows)
    ]


def sweep_error(
    model: TinyModel, rows: list[np.ndarray], order: Sequence[int] = (0, 1, 2)
) -> float:
    states = ordered_matrices(model.n_rows, model.max_features)
    law = to_classes(states, stationary(compose(rows, order)))
    return total_variation(law, model.posterior())


@pytest.fixture(scope="module")
def exact_rows(model: TinyModel) -> list[np.ndarray]:
    return row_matrices(model, Rule.EXACT)


def test_allocations_are_counted_right() -> None:
    assert len(feature_classes(3, 3)) == len(set(feature_classes(3, 3))) == 120
    assert len(ordered_matrices(3, 3)) == len(set(ordered_matrices(3, 3))) == 400
    assert {class_of(c) for c in ordered_matrices(3, 3)} == set(feature_classes(3, 3))
    assert len(feature_classes(4, 4)) == 3876


def test_matrix_and_columns_are_inverse() -> None:
    assert to_matrix((0b110, 0b001), 3).tolist() == [[0, 1], [1, 0], [1, 0]]
    assert to_matrix((), 3).shape == (3, 0)
    assert all(from_matrix(to_matrix(c, 3)) == c for c in ordered_matrices(3, 2))


def test_class_prior_sums_to_the_poisson_law_of_the_number_of_features() -> None:
    alpha, rate = 0.8, 0.8 * (1 + 1 / 2 + 1 / 3)
    for K in range(4):
        sizes = [c for c in feature_classes(3, 3) if len(c) == K]
        total = math.fsum(math.exp(log_class_prior(c, 3, alpha)) for c in sizes)
        assert total == pytest.approx(math.exp(-rate) * rate**K / math.factorial(K), rel=1e-13)


@pytest.mark.parametrize("var_bias", [None, 10.0])
def test_likelihood_ratio_is_the_predictive_law_of_a_row(var_bias: float | None) -> None:
    """p(y_n | z_n, other rows) = N(z M, sd2 (1 + z A z')),  A = P^-1,  M = A Z'y."""
    rng = np.random.default_rng(5)
    y, noise, var_B = rng.normal(size=(4, 2)), np.array([0.3, 2.0]), 1.7
    full = TinyModel(y, np.ones((4, 2), bool), 1.0, var_B, noise, var_bias)
    hidden = full.observed.copy()
    hidden[3] = False
    rest = replace(full, observed=hidden)
    columns = (0b1011, 0b0110, 0b1000)
    Z = to_matrix(columns, 4).astype(float)
    prior = np.full(3, 1 / var_B)
    if var_bias is not None:
        Z, prior = np.column_stack((np.ones(4), Z)), np.append(1 / var_bias, prior)
    A = np.linalg.inv(Z[:3].T @ Z[:3] + np.diag(prior))
    mean, var = Z[3] @ A @ Z[:3].T @ y[:3], noise * (1 + Z[3] @ A @ Z[3])
    expected = -0.5 * np.sum(np.log(2 * np.pi * var) + (y[3] - mean) ** 2 / var)
    ratio = full.log_likelihood(columns) - rest.log_likelihood(columns)
    assert ratio == pytest.approx(expected, rel=1e-12)


def test_independent_prior_does_not_scale_with_the_noise() -> None:
    y, noise = np.array([[1.0, 2.0], [0.5, -1.0]]), np.array([0.25, 4.0])
    scaled = TinyModel(y, np.ones((2, 2), bool), 1.0, 3.0, noise)
    independent = replace(scaled, noise_scaled=False)
    both = 0.0
    for s in range(2):
        Z = np.array([[1.0], [1.0]])
        covariance = noise[s] * np.eye(2) + 3.0 * Z @ Z.T
        both -= 0.5 * float(y[:, s] @ np.linalg.inv(covariance) @ y[:, s])
        both -= 0.5 * math.log(np.linalg.det(2 * math.pi * covariance))
    assert independent.log_likelihood((0b11,)) == pytest.approx(both, rel=1e-12)
    assert independent.log_likelihood(()) == pytest.approx(scaled.log_likelihood(()), rel=1e-12)
    assert abs(scaled.log_likelihood((0b11,)) - both) > 0.05


def test_paths_of_two_dice_give_the_law_of_their_sum() -> None:
    def run(script: tuple[int, ...]) -> tuple[Sequence[Decision], int]:
        draw = Scripted(script)
        return draw.decisions, sum(draw.choose([1 / 6] * 6) + 1 for _ in range(2))

    law = enumerate_paths(run)
    assert law[7] == pytest.approx(6 / 36, rel=1e-14)
    assert sorted(law) == list(range(2, 13))


def test_impossible_options_are_not_followed() -> None:
    def run(script: tuple[int, ...]) -> tuple[Sequence[Decision], str]:
        draw = Scripted(script)
        first = draw.choose([0.0, 0.5, 0.5, 0.0])
        if first in (0, 3):  # the law below depends on what can never happen
            draw.choose([0.5, 0.5])
            return draw.decisions, "impossible"
        second = draw.choose([0.25, 0.75]) if first == 1 else 0
        return draw.decisions, f"{first}{second}"

    assert enumerate_paths(run) == {"10": 0.125, "11": 0.375, "20": 0.5}


def test_procedure_without_decisions_is_certain() -> None:
    assert enumerate_paths(lambda script: ([], "end")) == {"end": 1.0}


@pytest.mark.parametrize(
    ("options", "complaint"),
    [([0.5, 0.4], "not a law"), ([1.5, -0.5], "not a law"), ([math.nan, 1.0], "not a law")],
)
def test_probabilities_that_are_no_law_are_reported(options: list[float], complaint: str) -> None:
    def run(script: tuple[int, ...]) -> tuple[Sequence[Decision], int]:
        draw = Scripted(script)
        return draw.decisions, draw.choose(options)

    with pytest.raises(ValueError, match=complaint):
        enumerate_paths(run)


def test_procedure_that_leaves_its_script_is_reported() -> None:
    with pytest.raises(ValueError, match="not followed"):
        enumerate_paths(lambda script: ([(0, [0.5, 0.5])], 0))


def test_stationary_law_of_a_small_chain() -> None:
    T = np.array([[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.0, 0.5, 0.5]])
    np.testing.assert_allclose(stationary(T), [0.25, 0.5, 0.25], rtol=1e-14)


def test_stationary_law_gives_no_mass_to_states_that_are_left_for_good() -> None:
    T = np.array([[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.5, 0.5]])
    np.testing.assert_allclose(stationary(T), [0.0, 0.5, 0.5], atol=1e-14)


def test_chain_in_two_parts_has_no_single_stationary_law() -> None:
    with pytest.raises(ValueError, match="more than one"):
        stationary(np.eye(2))


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_exact_kernel_has_the_posterior_as_stationary_law(
    model: TinyModel, exact_rows: list[np.ndarray], order: Sequence[int]
) -> None:
    assert sweep_error(model, exact_rows, order) < 1e-13


def test_each_row_update_leaves_the_posterior_invariant(
    model: TinyModel, exact_rows: list[np.ndarray]
) -> None:
    states, posterior = ordered_matrices(3, 3), model.posterior()
    for T in exact_rows:
        after = to_classes(states, lift(states, posterior) @ T)
        assert total_variation(after, posterior) < 1e-14


@pytest.mark.parametrize(
    ("rule", "least"),
    [
        (Rule.FIXED_SCAN, 0.01),
        (Rule.SINGLETONS_DROPPED_FIRST, 0.03),
        (Rule.NEW_FROM_PRIOR, 0.1),
    ],
)
def test_wrong_kernels_are_caught(model: TinyModel, rule: Rule, least: float) -> None:
    assert sweep_error(model, row_matrices(model, rule)) > least


@pytest.mark.parametrize("noise_scaled", [True, False])
def test_bias_feature_and_both_weight_priors_have_exact_kernels(noise_scaled: bool) -> None:
    y = np.array([[1.3, -0.4], [-1.8, 0.9], [1.1, 1.6]])
    model = TinyModel(
        y, np.ones((3, 2), bool), 0.7, 1.0, np.array([0.5, 1.0]), 10.0, noise_scaled, 2
    )
    assert sweep_error(model, row_matrices(model, Rule.EXACT)) < 1e-13
