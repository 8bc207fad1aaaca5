"""What covariates say of the low-rank model's factors, and how its components come and go."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import binom, halfcauchy, multivariate_normal, norm

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.latent.blocks import thread_pool
from glfm_cli.latent.bsvd import Bsvd, births
from glfm_cli.latent.bsvd.births import move_rank
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.moves import draw_components
from glfm_cli.latent.bsvd.prior_means import PriorMeans, _half_cauchy
from glfm_cli.latent.bsvd.residuals import Residuals
from glfm_cli.latent.bsvd.rotations import rotate_components
from glfm_cli.latent.model import Entries, Problem, Sparse
from glfm_cli.schema import ColumnType
from glfm_cli.streams import Streams
from tests.statistical.bsvd_prior import make_links

ROWS, COLUMNS = 120, 60


def chain_of(
    x: Array, seen: Array, config: BsvdConfig, R: Array | None = None, C: Array | None = None
) -> Chain:
    """Return a chain of a real matrix."""
    row, column = np.nonzero(seen)
    entries = Entries(row.astype(np.int32), column.astype(np.int32), x.shape)
    (link,) = make_links(ColumnType.REAL)
    values = (link.value(x[seen]),)
    problem = Problem(Bsvd(), config, (link,), values, layout=Sparse(entries, R, C))
    return start_chain(problem, Streams(7, 0))


def planted(seed: int, rank: int) -> tuple[Array, Array]:
    """Return a matrix of a rank with noise, and which of its cells are seen."""
    rng = np.random.default_rng(seed)
    U, V = rng.normal(size=(ROWS, rank)), rng.normal(size=(COLUMNS, rank))
    return U @ V.T + rng.normal(size=(ROWS, COLUMNS)), rng.random((ROWS, COLUMNS)) < 0.5


@pytest.mark.parametrize("start", [1, 6])
def test_rank_is_found_from_fewer_and_from_more_components(start: int, seed: int) -> None:
    x, seen = planted(seed, 3)
    chain = chain_of(x, seen, BsvdConfig(initial_components=start, max_components=10))
    ranks = []
    for sweep in range(120):
        chain.sweep(adapt=sweep < 20)
        ranks.append(int(chain.state.on.sum()))
    assert abs(np.mean(ranks[-20:]) - 3) < 0.75


def test_precisions_of_coefficients_have_their_law_given_squares(seed: int) -> None:
    """1 / sqrt(l) half-Cauchy(3), and three coefficients N(0, 1 / l) of sum of squares 2."""
    rng, precision, found = np.random.default_rng(seed), 1.0, []
    for _ in range(20_000):
        precision = _half_cauchy(precision, 3.0, 3, 2.0, rng)
        found.append(np.log(precision))
    x = np.linspace(-20.0, 10.0, 6001)  # log l, of which 1 / sqrt(l) has the density of e^-x/2
    weights = np.exp(1.5 * x - np.exp(x)) * halfcauchy(0.0, 3.0).pdf(np.exp(-0.5 * x))
    weights *= np.exp(-0.5 * x)
    mean = weights @ x / weights.sum()
    sd = np.sqrt(weights @ (x - mean) ** 2 / weights.sum())
    assert np.mean(found) == pytest.approx(mean, abs=0.05)
    assert np.std(found) == pytest.approx(sd, rel=0.05)


def test_a_component_is_switched_on_by_its_evidence_around_what_covariates_say() -> None:
    """Against dense laws of rows: N(s m_i V, s^2 V V' / I + noise) with it, N(0, noise) without."""
    rng = np.random.default_rng(20260101)  # of which both are likely
    x, R = np.zeros((6, 4)), np.array([[-1.0], [-0.5], [0.2], [0.4], [0.9], [1.1]])
    config = BsvdConfig(max_components=2, initial_components=1, candidates=1)
    state = chain_of(x, np.ones((6, 4), bool), config, R).state
    V, U, m = np.array([0.9, -0.5, 0.3, -0.2]), np.array([0.5, -0.9, 0.1, 0.4, 0.7, -0.3]), 0.6
    state.noise[0], s, rest = 0.5, 1.3, np.outer(0.35 * R[:, 0], V) + 0.4 * rng.normal(size=(6, 4))
    with_it = multivariate_normal(np.zeros(4), s * s * np.outer(V, V) / 6 + 0.5 * np.eye(4))
    without = multivariate_normal(np.zeros(4), 0.5 * np.eye(4))
    away = rest - s * m * state.of_rows.X * V
    odds = with_it.logpdf(away).sum() - without.logpdf(rest).sum()
    found = []
    with thread_pool(1) as each:
        while len(found) < 2_000:
            state.on[:] = [True, False]
            state.V[:, 0], state.U[:, 0], state.s[0], state.of_rows.factors[0, 0] = V, U, s, m
            other = state.V[0, 1]
            draw_components(state, (rest - s * np.outer(U, V)).ravel(), rng, each)
            if state.V[0, 1] == other:  # else the other one was visited
                found.append(state.on[0])
    assert np.mean(found) == pytest.approx(expit(odds), abs=0.05)
    assert 0.2 < expit(odds) < 0.8


def test_rotations_leave_the_means_as_they_are(seed: int) -> None:
    x, seen = planted(seed, 3)
    rng = np.random.default_rng(seed)
    R, C = rng.normal(size=(ROWS, 2)), rng.normal(size=(COLUMNS, 1))
    state = chain_of(x, seen, BsvdConfig(initial_components=4), R, C).state
    for means in (state.of_rows, state.of_columns):
        means.factors[:, :4] = rng.normal(size=means.factors[:, :4].shape)
    k, old = state.active, state.U.copy()
    U, W, means = state.U[:, k], state.s[k] * state.V[:, k], state.of_rows.of_factors(k)
    around = state.U[:, k] - means
    rotate_components(state, rng)
    W_new = state.s[k] * state.V[:, k]
    assert np.abs(state.U - old).max() > 1e-3
    np.testing.assert_allclose(state.U[:, k] @ W_new.T, U @ W.T, atol=1e-9)
    around_new = state.U[:, k] - state.of_rows.of_factors(k)
    np.testing.assert_allclose(around_new @ around_new.T, around @ around.T, atol=1e-9)


def test_angles_of_a_pair_follow_the_prior_of_both_factors(seed: int) -> None:
    x, seen = planted(seed, 2)
    state = chain_of(x, seen, BsvdConfig(initial_components=2)).state
    rng, s = np.random.default_rng(seed), np.array([1.0, 2.0])
    W = rng.normal(size=(COLUMNS, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]]) / np.sqrt(COLUMNS)
    state.s[:2], state.V[:, :2] = s, W / s
    angles = np.linspace(0.0, np.pi, 2000, endpoint=False)

    def share(t: float) -> tuple[float, float]:
        turned = W @ np.array([[np.cos(t), -np.sin(t)], [np.sin(t), np.cos(t)]])
        squares = (turned**2).sum(axis=0)
        return float(squares[0]), float(-0.5 * COLUMNS * np.sum(squares / s**2))

    first, log_p = np.array([share(t) for t in angles]).T
    p = np.exp(log_p - log_p.max())
    expected = float(first @ p / p.sum())
    drawn = []
    for _ in range(3000):
        rotate_components(state, rng)
        drawn.append(float(((s * state.V[:, :2])[:, 0] ** 2).sum()))
    sd = np.sqrt(float((first - expected) ** 2 @ p / p.sum()))
    assert abs(np.mean(drawn) - expected) < 5.0 * sd / np.sqrt(3000)


def test_residuals_follow_births_and_deaths(seed: int) -> None:
    x, seen = planted(seed, 2)
    chain = chain_of(x, seen, BsvdConfig(initial_components=1, max_components=6))
    state, rng = chain.state, np.random.default_rng(seed)
    y = state.matrix.values(chain.cells.y)
    with thread_pool(1) as each:
        E, ranks = y - state.x, {1}
        for _ in range(60):
            move_rank(state, E, rng, each)
            left, right = state.sides()
            np.testing.assert_allclose(E, y - (left @ right.T)[seen], atol=1e-8)
            ranks.add(int(state.on.sum()))
    assert len(ranks) > 1


def test_without_data_components_are_on_as_their_prior_says(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(births, "FEWEST_STEPS", 1)
    q = births.ResidualLaw(np.zeros(3), np.full(3, 0.4), 2.0, 0.7)
    monkeypatch.setattr(births.ResidualLaw, "of", lambda *_: q)
    K, n_moves = 4, 6_000
    config = BsvdConfig(initial_components=1, max_components=K, on_mass=2.0, off_mass=1.0)
    chain = chain_of(np.zeros((4, 3)), np.ones((4, 3), dtype=bool), config)
    state, rng = chain.state, np.random.default_rng(seed)
    state.row_precision[:], state.alpha = 1e-300, 0.25
    counts = np.zeros(K + 1)
    with thread_pool(1) as each:
        E = state.matrix.values(chain.cells.y) - state.x
        for _ in range(n_moves):
            move_rank(state, E, rng, each)
            counts[int(state.on.sum())] += 1
    p = binom.pmf(np.arange(K + 1), K, 2.0 / (2.0 + K - 1.0))
    error = 5.0 * np.sqrt(10.0 * p * (1.0 - p) / n_moves)  # of moves that hang together
    np.testing.assert_array_less(np.abs(counts / n_moves - p), error)


@pytest.mark.parametrize("b", [0.2, 1.0])
def test_the_evidence_of_a_component_is_the_integral_over_its_rows(b: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, R = rng.normal(size=(5, 4)), rng.normal(size=(5, 2))
    config = BsvdConfig(initial_components=1, max_components=2)
    chain = chain_of(x, np.ones(x.shape, dtype=bool), config, R=R)
    state = chain.state
    with thread_pool(1) as each:
        path = births._Path.begun(state, rng.normal(size=x.size), 0, rng, each)
    (linear, square), m = path.sums, state.of_rows.X @ path.b_rows
    at = np.linspace(-40.0, 40.0, 20_001)
    U = m[:, None] + at / np.sqrt(m.size)
    along, across = path.s * U * linear[:, None], (path.s * U) ** 2 * square[:, None]
    each_row = logsumexp(b * (along - 0.5 * across) + norm.logpdf(at), axis=1)
    total = float(np.sum(each_row + np.log(at[1] - at[0])))
    assert np.abs(m).max() > 0.0
    assert path._log_evidence(0.0, b) == pytest.approx(total, rel=1e-6, abs=1e-8)


def test_new_components_come_from_what_residuals_show(seed: int) -> None:
    rng, n = np.random.default_rng(seed), 2_000
    u, v = rng.normal(size=(60, 1)), rng.normal(size=(1, 40))
    x = u @ v + rng.normal(size=(60, 40))
    chain = chain_of(x, rng.random(x.shape) < 0.5, BsvdConfig(initial_components=0))
    state = chain.state
    with thread_pool(1) as each:
        E = state.matrix.values(chain.cells.y) - state.x
        seen = Residuals.of(state, E, each)
        q = births.ResidualLaw.of(seen, state.alpha, np.random.default_rng(3))
        one = births._Path.begun(state, E, 0, rng, each)
        same = births.ResidualLaw.of(seen, state.alpha, np.random.default_rng(3))
        U = []
        for _ in range(n):
            one.keep(state)
            U.append(state.U[:, 0].copy())
    np.testing.assert_array_equal(q.V, same.V)
    share = np.sum((q.V @ v[0]) ** 2) / np.sum(v**2)
    assert share > 0.8
    # What it holds of its direction is what it says it holds.
    length = float(q.V @ q.V)
    assert length == pytest.approx(1.0 - q.variance.sum(), abs=1e-9)
    assert share == pytest.approx(length, abs=0.1)
    assert q.s == pytest.approx(np.linalg.norm(u) * np.linalg.norm(v), rel=0.25)
    R, Q = one.sums
    spread = 60.0 + one.s**2 * Q
    error = 5.0 / np.sqrt(n * spread)
    np.testing.assert_array_less(np.abs(np.mean(U, axis=0) - one.s * R / spread), error)
    np.testing.assert_allclose(np.var(U, axis=0) * spread, 1.0, atol=6.0 * np.sqrt(2.0 / n))


def test_coefficients_have_their_normal_conditional(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3))
    means, U = PriorMeans.of(X, 1), rng.normal(size=30)
    means.precision[0] = 2.0
    Q = 30.0 * (X.T @ X + 2.0 * np.eye(3))
    drawn = np.array([means.drawn_of(U, rng) for _ in range(20_000)])
    covariance = np.linalg.inv(Q)
    error = np.abs(drawn.mean(axis=0) - covariance @ (30.0 * X.T @ U))
    np.testing.assert_array_less(error, 5.0 * np.sqrt(np.diag(covariance) / 20_000))
    np.testing.assert_allclose(np.cov(drawn.T), covariance, atol=0.1 * covariance.max())


@pytest.mark.parametrize("own_weights", [False, True])
def test_parts_of_a_draw_add_up_to_its_means(own_weights: bool, seed: int) -> None:
    x, seen = planted(seed, 2)
    rng = np.random.default_rng(seed)
    R, C = rng.normal(size=(ROWS, 2)), rng.normal(size=(COLUMNS, 1))
    config = BsvdConfig(initial_components=3, own_weights=own_weights, slopes=True)
    chain = chain_of(x, seen, config, R, C)
    for _ in range(3):
        chain.sweep(adapt=True)
    draw = Bsvd().draw(chain.state)
    U, sV, covariates, G_R, G_C, C_all, slope, level = draw.parts()
    total = U @ sV.T + covariates @ G_R.T + G_C @ C_all.T + slope @ level.T
    np.testing.assert_allclose(total, draw.left @ draw.right.T, atol=1e-9)
    np.testing.assert_allclose(covariates[:, 1:], R)


def test_a_row_without_cells_is_predicted_from_its_covariates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    R = rng.normal(size=(ROWS, 2))
    V = rng.normal(size=(COLUMNS, 1))
    truth = (R @ np.array([[1.5], [-1.0]])) @ V.T
    x, seen = truth + 0.3 * rng.normal(size=truth.shape), rng.random(truth.shape) < 0.5
    seen[:20] = False
    chain = chain_of(x, seen, BsvdConfig(initial_components=1), R, np.empty((COLUMNS, 0)))
    for _ in range(60):
        chain.sweep(adapt=True)
    total = np.zeros((20, COLUMNS))
    for _ in range(60):
        chain.sweep(adapt=False)
        left, right = chain.state.sides()
        total += left[:20] @ right.T / 60
    assert np.corrcoef(total.ravel(), truth[:20].ravel())[0, 1] > 0.95


def test_new_columns_without_cells_have_the_prior_of_their_components(seed: int) -> None:
    """s_k V_jk ~ N(0, s_k^2 / J), J the columns of the fit."""
    rng = np.random.default_rng(seed)
    config = BsvdConfig(max_components=1, initial_components=1)
    state = chain_of(rng.normal(size=(8, 5)), np.ones((8, 5), bool), config).state
    state.s[0] = 4.0
    draw = Bsvd().draw(state)
    seen = np.zeros((8, 1005), bool)
    seen[:, :5] = True
    more = chain_of(np.zeros(seen.shape), seen, config)
    found = Bsvd().fold_in(
        draw, config, more.cells, lambda eta: None,
        lambda eta, rows: eta, 1, rng,
    )  # fmt: skip
    drawn = found.right[5:, 0]
    assert drawn.std() == pytest.approx(4.0 / 5.0**0.5, rel=0.1)
    assert drawn.mean() == pytest.approx(0.0, abs=0.25)
