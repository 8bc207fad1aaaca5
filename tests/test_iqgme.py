"""The variational mixture of experts: its bound, its updates, and what it says of new rows."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.stats import norm, truncnorm, wishart

from glfm_cli.classification.fit import ExpertsFit, fit_experts
from glfm_cli.errors import NumericalError
from glfm_cli.latent.iqgme import (
    Experts,
    IqgmeConfig,
    KnownRows,
    label_law,
)
from glfm_cli.latent.iqgme.ascent import rise_of
from glfm_cli.latent.iqgme.fit import begin
from glfm_cli.latent.iqgme.forms import Full, local_step
from glfm_cli.latent.iqgme.gates import GatedRows
from glfm_cli.latent.iqgme.local import Terms, complete_block
from tests.iqgme_problems import (
    Array,
    above,
    choices,
    climbed,
    plain_bound,
    probabilities,
    problem,
    signs,
    steps,
    three_gaussians,
)

EVERY_RISE = IqgmeConfig(experts=5, iterations=25, short=25, tolerance=1e-14)
MOVING = IqgmeConfig(experts=8, iterations=80, short=80, tolerance=1e-4)  # to fewer experts, too


def fitted(rows: KnownRows, config: IqgmeConfig = EVERY_RISE, starts: int = 1) -> ExpertsFit:
    return fit_experts(rows, config, chains=starts, seed=0)


# The bound -----------------------------------------------------------------------------------

KINDS = [
    {},
    {"gaps": 0.0},
    {"gaps": 0.6},
    {"discrete": True},
    {"levels": 3},
    {"levels": 4, "discrete": True, "gaps": 0.2},
    {"unlabelled": 1.0},
    {"told": 0.7},
    {"levels": 4, "discrete": True, "told": 0.7},
]


def assert_bound_never_falls(
    seed: int, kind: dict[str, Any], config: IqgmeConfig = EVERY_RISE
) -> None:
    bounds = fitted(problem(seed, **kind), config).bounds
    assert np.all(np.diff(bounds) >= -1e-8 * np.abs(bounds[1:]))
    assert bounds[-1] > bounds[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_never_falls(kind: dict[str, Any], seed: int) -> None:
    assert_bound_never_falls(seed, kind)


@pytest.mark.slow
def test_the_bound_never_falls_on_200_problems(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for i in range(200):
        kind = KINDS[i % len(KINDS)] | {"gaps": float(rng.uniform(0.0, 0.6))}
        kind |= {"P": int(rng.integers(1, 7))}
        assert_bound_never_falls(seed + i, kind, (EVERY_RISE, MOVING)[i // len(KINDS) % 2])


def test_a_falling_bound_is_an_error() -> None:
    with pytest.raises(NumericalError, match="fell"):
        rise_of([-100.0], -100.1)


class Frozen:
    """q of the rows of a small binary problem, held still."""

    def __init__(self, seed: int) -> None:
        self.positive = np.random.default_rng(seed).random(25) < 0.5
        base = problem(seed, n=25, unlabelled=0.0)
        self.rows = KnownRows(base.x, base.known, signs(self.positive), np.ones(25, dtype=bool))
        config = IqgmeConfig(experts=3)
        self.form = Full(config, 3)
        self.prior = self.form.prior
        start = begin(self.rows, self.form, config, np.random.default_rng(seed), 1)
        climbed(start, self.rows, self.form, config, 5)
        self.q, self.local = start.experts, start.local
        before = copy.deepcopy(self.local)
        self.statistics = local_step(self.form, self.rows, self.q, self.local)
        self.value = self.statistics.log_norm + self.q.bound(self.prior)
        shape = (3, 25, 3)
        self.best, self.along = np.empty(shape), np.zeros(shape)
        self.cov = np.zeros((*shape, 3))
        for block in self.rows.blocks:
            done = complete_block(self.rows, block, self.q, Terms.of(self.q), before)
            self.best[:, block.rows] = done.x
            rows = GatedRows(done.log_rho, done.x, done.missing, done.log_rho)
            for places, m, cov in rows.patterns(block):
                w = self.q.mw[:, 0, m]
                for i in block.rows[places]:
                    self.cov[(slice(None), i, *np.ix_(m, m))] = cov
                    self.along[:, i, m] = np.einsum("hpq,hq->hp", cov, w)
        self.best -= self.local.t * self.along
        w = self.q.mw[:, 0, None, :-1]
        self.v_t = 1.0 / (1.0 - (self.along * w).sum(axis=2))
        self.m_t = self.v_t * ((self.best * w).sum(axis=2) + self.q.mw[:, :, -1])

    def bound(self, q: Experts, **other: Array) -> float:
        names = ("best", "along", "cov", "m_t", "v_t")
        said = {name: getattr(self, name) for name in names} | {"rho": self.local.rho} | other
        return plain_bound(self.prior, q, self.positive, **said)


@pytest.fixture(scope="module")
def frozen(seed: int) -> Frozen:
    return Frozen(seed)


def test_the_bound_is_that_of_the_model_written_out(frozen: Frozen) -> None:
    assert frozen.value == pytest.approx(frozen.bound(frozen.q), rel=1e-12)


def slope(function: Any, at: Array, index: tuple[int, ...], step: float) -> float:
    """Return the central difference of a function in one entry of an array, changed in place."""
    kept = at[index]
    values = []
    for sign in (1.0, -1.0):
        at[index] = kept + sign * step
        values.append(function())
    at[index] = kept
    return (values[0] - values[1]) / (2.0 * step)


def test_each_update_of_the_experts_is_stationary(frozen: Frozen) -> None:
    q = copy.deepcopy(frozen.q)
    for _ in range(4000):  # with the rows held still, the coordinates meet at their joint optimum
        before = q.b.copy()
        q.update(frozen.prior, frozen.statistics)
        if np.allclose(before, q.b, rtol=1e-12, atol=0.0):
            break
    for name in ("v1", "v2", "m", "u", "nu", "d", "mw", "phi", "b"):
        values = getattr(q, name)
        for index in list(np.ndindex(values.shape))[:4]:
            found = slope(lambda: frozen.bound(q), values, index, 1e-5 * max(1, values[index]))
            assert abs(found) < 1e-3, (name, index, found)
    for name in ("B_inv", "Sw"):
        values = getattr(q, name)
        found = slope(lambda: frozen.bound(q), values, (0, 1, 1), 1e-5 * values[0, 1, 1])
        assert abs(found) < 1e-3, (name, found)
    for name in ("tau1", "tau2", "a", "c", "g"):
        at = getattr(q, name)
        ends = []
        for sign in (1.0, -1.0):
            setattr(q, name, at * (1 + sign * 1e-5))
            ends.append(frozen.bound(q))
        setattr(q, name, at)
        assert abs(ends[0] - ends[1]) / (2e-5 * at) < 1e-3, name


def test_each_update_of_the_rows_is_stationary(frozen: Frozen) -> None:
    # The responsibilities are the best given the rest, within their simplex.
    rho = frozen.local.rho.copy()
    for i in range(5):
        best = frozen.bound(frozen.q)
        for move in (1e-3, -1e-3):
            other = rho.copy()
            other[0, i] *= 1 + move
            other[:, i] /= other[:, i].sum()
            assert frozen.bound(frozen.q, rho=other) <= best + 1e-12


def test_missing_features_and_scores_are_at_their_joint_best(frozen: Frozen) -> None:
    h, i, p = (int(k[0]) for k in np.nonzero(frozen.along))

    def value() -> float:
        return frozen.bound(frozen.q)

    for name in ("best", "along"):
        assert abs(slope(value, getattr(frozen, name), (h, i, p), 1e-4)) < 1e-6, name
    assert abs(slope(value, frozen.cov, (h, i, p, p), 1e-5)) < 1e-5
    for name in ("m_t", "v_t"):
        for index in [(h, i), (0, 1), (1, 2), (2, 3)]:
            assert abs(slope(value, getattr(frozen, name), index, 1e-4)) < 1e-6, (name, index)


# Fits ----------------------------------------------------------------------------------------


def test_the_number_of_threads_does_not_change_the_result(monkeypatch: Any) -> None:
    monkeypatch.setattr("glfm_cli.latent.iqgme.rows.BLOCK", 4)
    rows = problem(3)
    alone = fit_experts(rows, EVERY_RISE, chains=1, seed=0)
    with ThreadPoolExecutor(3) as pool:
        together = fit_experts(rows, EVERY_RISE, chains=1, seed=0, pool=pool, threads=3)
    assert len(rows.blocks) > 3
    assert np.array_equal(alone.experts.B_inv, together.experts.B_inv)


def test_a_missing_feature_widens_the_label_by_what_it_may_be(seed: int) -> None:
    """Mean and variance of a score are those of simulated features and weights."""
    rows = problem(seed, gaps=0.0, unlabelled=0.0)
    q = fitted(rows).experts
    hidden = KnownRows(rows.x * [1, 1, 0], rows.known & [True, True, False])
    law = label_law(hidden, q, features=True)
    rng = np.random.default_rng(seed)
    h, i, n = 0, 4, 200_000
    x = rows.x[i, :2]
    d = np.linalg.inv(q.nB[h])
    regression = np.linalg.solve(d[:2, :2], d[:2, 2])
    mean = q.m[h, 2] + regression @ (x - q.m[h, :2])
    var = d[2, 2] - regression @ d[:2, 2]
    assert law.x[h, i] == pytest.approx([*x, mean])
    assert law.x_var[h, i] == pytest.approx([0.0, 0.0, var])
    third = mean + np.sqrt(var) * rng.standard_normal(n)
    w = rng.multivariate_normal(q.mw[h, 0], q.Sw[h], n)
    score = w[:, :2] @ x + w[:, 2] * third + w[:, 3] + rng.standard_normal(n)
    assert law.mean[h, i, 0] == pytest.approx(score.mean(), abs=5 * score.std() / n**0.5)
    assert law.var[h, i, 0] == pytest.approx(score.var(), rel=0.03)


def test_gates_are_student_densities(seed: int) -> None:
    """Whatever is missing, the known features have the t density of a simulated expert."""
    rows = problem(seed, gaps=0.0, unlabelled=0.0)
    q = fitted(rows).experts
    hidden = KnownRows(rows.x[:1] * [1, 0, 1], np.array([[True, False, True]]))
    rng = np.random.default_rng(seed)
    density = []
    for h in range(q.H):
        lam = wishart(q.nu[h], np.linalg.inv(q.B_inv[h])).rvs(20000, random_state=rng)
        cov = np.linalg.inv(lam)[:, [0, 2]][:, :, [0, 2]]
        cov = cov * (1 + 1 / q.u[h])  # the centre's own spread
        away = rows.x[0, [0, 2]] - q.m[h, [0, 2]]
        square = np.einsum("p,npq,q->n", away, np.linalg.inv(cov), away)
        density.append(np.mean(np.exp(-0.5 * square) / np.sqrt(np.linalg.det(cov))))
    expected = q.pi * density / np.sum(q.pi * density)
    assert np.allclose(label_law(hidden, q).gate[:, 0], expected, atol=0.02)


def test_three_gaussians_give_three_experts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = three_gaussians(1000, rng)
    mean, sd = x.mean(axis=0), x.std(axis=0)
    rows = KnownRows(
        (x - mean) / sd, np.ones(x.shape, dtype=bool), signs(y), np.ones(1000, dtype=bool)
    )
    fit = fitted(rows, IqgmeConfig(), starts=4)
    assert int(np.sum(fit.experts.pi > 0.05)) == 3
    centers = np.sort((fit.experts.m * sd + mean)[fit.experts.pi > 0.05, 0])
    assert np.allclose(centers, [-3.0, 1.0, 5.0], atol=0.5)
    x, y = three_gaussians(500, rng)
    p = label_law(KnownRows((x - mean) / sd, np.ones(x.shape, dtype=bool)), fit.experts)
    assert np.mean((above(p) > 0.5) == y) > 0.95


def test_a_row_without_features_gets_the_weights_of_the_experts(seed: int) -> None:
    q = fitted(problem(seed)).experts
    law = label_law(KnownRows(np.zeros((1, 3)), np.zeros((1, 3), dtype=bool)), q)
    assert np.allclose(law.gate[:, 0], q.pi)


def test_probabilities_of_levels_add_up_and_agree_with_simulation(seed: int) -> None:
    rows = problem(seed, levels=4, discrete=True)
    law = label_law(rows, fitted(rows).experts)
    p = probabilities(law, choices(np.zeros(1), 4, 3))
    assert np.allclose(p.sum(axis=1), 1.0)
    rng = np.random.default_rng(seed)
    i = 0
    h = rng.choice(law.gate.shape[0], 40000, p=law.gate[:, i] / law.gate[:, i].sum())
    u = law.mean[h, i] + np.sqrt(law.var[h, i]) * rng.standard_normal((40000, 3))
    won = np.column_stack([u, rng.standard_normal(40000)]).argmax(axis=1)
    assert np.allclose(np.bincount(won, minlength=4) / 40000, p[i], atol=0.012)


# Truncated variables -------------------------------------------------------------------------


@pytest.mark.parametrize(("low", "high"), [(-np.inf, 0.3), (1.0, np.inf), (-0.2, 0.9), (4.0, 4.5)])
def test_moments_between_two_ends(low: float, high: float) -> None:
    cuts = [end for end in (low, high) if np.isfinite(end)]
    between = steps(np.full(1, float(np.isfinite(low))), *cuts)
    for eta in (-3.0, 0.0, 2.0):
        mean, log_z = between.expect(np.array([0]), np.array([[[eta]]]))
        law = truncnorm(low - eta, high - eta)
        assert mean[0, 0, 0] == pytest.approx(eta + law.mean(), abs=1e-7)
        width = norm.sf(low - eta) - norm.sf(high - eta)  # keeps its digits in the upper tail
        assert log_z[0, 0] == pytest.approx(np.log(width))


def test_moments_far_in_the_tails_are_finite_and_inside() -> None:
    between = steps(np.array([1.0, 2.0]), 0.0, 0.1)
    mean, log_z = between.expect(np.arange(2), np.full((1, 2, 1), -60.0))
    assert np.all((mean > 0) & (mean < 0.12))
    assert np.all(np.isfinite(log_z))


@pytest.mark.parametrize("behind", [0.0, -4.0, -12.0])
def test_moments_of_the_largest_utility(behind: float) -> None:
    eta = np.array([behind, 0.5, -0.3])  # and the reference at 0
    utility = np.append(eta, 0.0)
    u = np.linspace(-22.0, 22.0, 20001)
    for won in range(4):
        others = np.delete(utility, won)
        density = norm.pdf(u - utility[won]) * np.prod(norm.cdf(u[:, None] - others), axis=1)
        z, first = trapezoid(density, u), trapezoid(u * density, u)
        mean, log_z = choices(np.array([won]), 4, 3).expect(np.array([0]), eta[None, None])
        assert log_z[0, 0] == pytest.approx(np.log(z), abs=1e-8)
        if won < 3:
            assert mean[0, 0, won] == pytest.approx(first / z, abs=1e-7)
        for c in range(3):  # one that did not win lies below the winner
            if c != won:
                rest = np.prod(norm.cdf(u[:, None] - np.delete(utility, [won, c])), axis=1)
                below = utility[c] * norm.cdf(u - utility[c]) - norm.pdf(u - utility[c])
                expected = trapezoid(norm.pdf(u - utility[won]) * rest * below, u) / z
                assert mean[0, 0, c] == pytest.approx(expected, abs=1e-7)
