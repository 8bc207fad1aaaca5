"""Births, rotations and prior means of the low-rank model, against sums and plain formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import halfnorm, norm

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import Chain, start_chain
from glfm_cli.latent.blocks import thread_pool
from glfm_cli.latent.bsvd import births
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.bsvd.moves import scan_side
from glfm_cli.latent.bsvd.prior_means import PriorMeans
from glfm_cli.latent.bsvd.residuals import Residuals, leading_vector
from glfm_cli.latent.bsvd.rotations import rotate_components
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.latent.model import Entries, Problem, Sparse
from glfm_cli.schema import ColumnType
from glfm_cli.streams import Streams
from tests.statistical.bsvd_prior import make_links

SEEN = np.array([[1, 1], [1, 0], [1, 1]], dtype=bool)


def begun(seed: int, n: int = 0) -> Chain:
    """Return a chain over five of six cells, with a covariate on either side."""
    rng = np.random.default_rng(seed)
    row, column = np.nonzero(SEEN)
    sides = np.array([[1.0], [-1.5], [0.5]]), np.array([[1.0], [-1.0]])
    layout = Sparse(Entries(row.astype(np.int32), column.astype(np.int32), SEEN.shape), *sides)
    config = BsvdConfig(max_components=2, initial_components=n)
    values = (rng.normal(size=row.size),)
    problem = Problem(Bsvd(), config, make_links(ColumnType.REAL), values, layout=layout)
    return start_chain(problem, Streams(seed, 0))


class Direct:
    """Draws of one component's V, s and coefficients from their prior, and its evidence at each."""

    def __init__(self, chain: Chain, E: Array, n: int, rng: np.random.Generator) -> None:
        state = chain.state
        (n_rows, n_columns), rows, columns = SEEN.shape, state.of_rows, state.of_columns
        self.b = rng.normal(size=n) / np.sqrt(n_rows * rows.precision[0])
        self.c = rng.normal(size=n) / np.sqrt(n_columns * columns.precision[0])
        own = rng.normal(size=(n, n_columns)) / np.sqrt(n_columns)
        self.V = self.c[:, None] * columns.X[:, 0] + own
        self.s = np.abs(rng.normal(size=n)) / np.sqrt(state.alpha)
        W = np.zeros(SEEN.shape)
        W[SEEN] = 1.0
        W *= np.outer(*state.precision)
        E_full = np.zeros(SEEN.shape)
        E_full[SEEN] = E
        linear = self.s[:, None] * (self.V @ (W * E_full).T)
        precision = self.s[:, None] ** 2 * (self.V**2 @ W.T)
        m = np.outer(self.b, rows.X[:, 0])
        self.U = (linear + n_rows * m) / (n_rows + precision)  # means, given the rest
        # U ~ N(m, 1 / n_rows) against exp(linear U - precision U^2 / 2).
        self.sums, self.m, self.alpha = (linear, precision), m, state.alpha
        self.log_evidence = self.log_evidence_at(1.0)
        own = np.sqrt(n_columns) * (self.V - self.c[:, None] * columns.X[:, 0])
        normal = norm.logpdf(own).sum(axis=1) + 0.5 * n_columns * np.log(n_columns)
        self.log_prior = normal + halfnorm.logpdf(self.s, scale=1.0 / np.sqrt(self.alpha))

    def log_evidence_at(self, b: float) -> Array:
        n_rows, (linear, precision) = len(SEEN), (b * part for part in self.sums)
        m = self.m
        return np.sum(
            (linear * m - 0.5 * precision * m**2)
            + 0.5 * (linear - precision * m) ** 2 / (n_rows + precision)
            - 0.5 * np.log1p(precision / n_rows),
            axis=1,
        )

    def log_weight(self, b: float, q: births.ResidualLaw) -> Array:
        """Return the log weights that make these the law at temperature b."""
        log_q = norm.logpdf(self.V, q.V, np.sqrt(q.variance)).sum(axis=1)
        log_q += norm.logpdf(self.s, q.s, q.sd_of_s)
        return (1.0 - b) * (log_q - self.log_prior) + self.log_evidence_at(b)


Q = births.ResidualLaw(np.array([0.1, -0.1]), np.array([0.6, 0.5]), 2.0, 0.6)


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a path have eight steps, from any law: its weights are unbiased whatever these are."""
    monkeypatch.setattr(births, "FEWEST_STEPS", 8)
    monkeypatch.setattr(births.ResidualLaw, "of", lambda *_: Q)


def settled(seed: int) -> tuple[Chain, Array]:
    """Return a chain whose hyperparameters make the residuals tell much of one component."""
    chain = begun(seed)
    state = chain.state
    state.alpha, state.noise[:] = 0.1, 0.6
    state.of_rows.precision[:], state.of_columns.precision[:] = 0.8, 1.4
    return chain, np.array([1.2, -0.8, -0.9, 0.7, 0.1])


def test_the_weights_of_births_and_deaths_average_to_the_evidence(few_steps: None) -> None:
    chain, E = settled(3)
    rng = np.random.default_rng(5)
    direct = Direct(chain, E, 200_000, rng)
    weight = np.exp(direct.log_evidence)
    evidence = float(weight.mean())
    up, V2, s, bU, UV = [], [], [], [], []
    with thread_pool(1) as each:
        for _ in range(1_200):
            path = births._Path.begun(chain.state, E, 0, rng, each)
            up.append(path.up())
            V2.append(float(path.V[0] * path.V[1]))
            s.append(path.s)
            bU.append(path.b_rows[0] * path.b_columns[0])
            path.keep(chain.state)
            UV.append(chain.state.U[0, 0] * path.V[0])
        of_posterior = rng.choice(direct.s.size, 1_200, p=weight / weight.sum())
        down = []
        for i in of_posterior:
            state = chain.state
            state.V[:, 0], state.s[0] = direct.V[i], direct.s[i]
            state.of_rows.factors[0, 0], state.of_columns.factors[0, 0] = direct.b[i], direct.c[i]
            down.append(births._Path.of(state, E, 0, rng, each).down())
    told = {
        "evidence": (np.exp(up), weight),
        "V": (np.exp(up) * V2, weight * direct.V[:, 0] * direct.V[:, 1]),
        "s": (np.exp(up) * s, weight * direct.s),
        "b": (np.exp(up) * bU, weight * direct.b * direct.c),
        "U": (np.exp(up) * UV, weight * direct.U[:, 0] * direct.V[:, 0]),
        # As many come as go, where odds are even.
        "death": (
            np.minimum(1.0, evidence * np.exp(-np.array(down))),
            np.minimum(1.0, np.exp(up) / evidence),
        ),
    }
    for name, (found, expected) in told.items():
        error = np.hypot(*(x.std() / np.sqrt(x.size) for x in (found, expected)))
        assert abs(found.mean() - expected.mean()) < 4.0 * error, name
        assert error < 0.12 * abs(expected).mean(), name


def test_rotations_leave_the_mean_and_have_the_law_of_the_prior(seed: int) -> None:
    chain = begun(seed, 2)
    state, rng = chain.state, np.random.default_rng(seed)
    before = state.U @ np.diag(state.s) @ state.V.T
    state.s[:] = np.array([1.0, 3.0]) * np.sqrt(6)
    state.of_columns.factors[:] = rng.normal(size=(1, 2))
    state.of_rows.factors[:], state.V[:] = rng.normal(size=(1, 2)), 1.5 * state.V
    U, W = state.U.copy(), state.s * state.V
    b, B = state.of_rows.factors.copy(), state.s * state.of_columns.factors
    before, precision, X = U @ W.T, state.of_columns.precision[0], state.of_columns.X

    def log_prior(t: Array) -> Array:
        """Return the log prior of W and its coefficients turned by t, of U not changing."""
        found = np.zeros(t.size)
        for k, sign in enumerate((1.0, -1.0)):
            own, other = (W[:, k], W[:, 1 - k]), (B[:, k], B[:, 1 - k])
            turn = np.cos(t)[:, None], (sign * np.sin(t))[:, None]
            w = own[0] * turn[0] + own[1] * turn[1]
            of_b = other[0] * turn[0] + other[1] * turn[1]
            rest = w - of_b @ X.T
            found -= (np.sum(rest**2, 1) + precision * np.sum(of_b**2, 1)) / state.s[k] ** 2
        return 0.5 * 2 * found

    grid = np.linspace(-np.pi, np.pi, 4001)
    law = np.exp(log_prior(grid) - log_prior(grid).max())
    law /= law.sum()
    angles = []
    for _ in range(1_500):
        state.U[:], state.V[:], state.of_rows.factors[:] = U, W / state.s, b
        state.of_columns.factors[:] = B / state.s
        rotate_components(state, rng)
        np.testing.assert_allclose(state.U @ (state.s * state.V).T, before, atol=1e-12)
        np.testing.assert_allclose(
            state.of_rows.factors @ (state.s * state.of_columns.factors).T, b @ B.T, atol=1e-12
        )
        Q = np.linalg.lstsq(U, state.U, rcond=None)[0]
        angles.append(np.arctan2(Q[1, 0], Q[0, 0]))
    for name, g in (("cos 2t", lambda t: np.cos(2 * t)), ("sin 2t", lambda t: np.sin(2 * t))):
        found, expected = g(np.array(angles)), float(law @ g(grid))
        error = np.sqrt(float(law @ (g(grid) - expected) ** 2) / found.size)
        assert abs(found.mean() - expected) < 4.0 * error, name


def test_rotations_of_three_components_leave_their_prior() -> None:
    rng, X = np.random.default_rng(4), np.array([[1.0], [-0.4], [0.7], [-1.3]])
    row, column = np.divmod(np.arange(20), 4)
    layout = Sparse(Entries(row.astype(np.int32), column.astype(np.int32), (5, 4)), None, X)
    config = BsvdConfig(max_components=3, initial_components=3)
    values = (rng.normal(size=20),)
    problem = Problem(Bsvd(), config, make_links(ColumnType.REAL), values, layout=layout)
    state = start_chain(problem, Streams(4, 0)).state
    state.s[:], state.of_columns.precision[0] = np.array([1.0, 2.5, 6.0]), 1.6
    found = []
    for _ in range(3_000):
        b = rng.normal(size=(1, 3)) / np.sqrt(4 * 1.6)
        state.U[:], state.of_columns.factors[:] = rng.normal(size=(5, 3)), b
        state.V[:] = X @ b + rng.normal(size=(4, 3)) / 2
        rotate_components(state, rng)
        b = state.of_columns.factors
        own = state.V - X @ b
        found.append([*(4 * own**2).mean(0), *(4 * 1.6 * b[0] ** 2), own[:, 0] @ own[:, 2]])
    z = np.mean(found, 0) - np.repeat([1.0, 0.0], [6, 1])
    z /= np.std(found, 0) / np.sqrt(len(found))
    assert np.abs(z).max() < 4.0, z


def test_coefficients_of_covariates_have_their_conditional_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, y, taus = rng.normal(size=(30, 2)), rng.normal(size=(30, 3)), (2.0, 0.7)
    means = PriorMeans.of(X, 3)
    draws = []
    for _ in range(3_000):
        means.precision[:] = taus
        means.draw(y / np.sqrt(30), np.arange(3), y[:, 0], 1.7, 1.0, rng)
        draws.append(np.append(means.factors[:, 1], means.intercepts))
    found = np.array(draws)
    for part, factor, noise, prior in (
        (found[:, :2], y[:, 1] / np.sqrt(30), 30.0, 30.0 * taus[0]),
        (found[:, 2:], y[:, 0], 1.7, taus[1]),
    ):
        covariance = np.linalg.inv(noise * X.T @ X + prior * np.eye(2))
        mean = covariance @ (noise * X.T @ factor)
        z = (part.mean(axis=0) - mean) / np.sqrt(np.diag(covariance) / len(part))
        assert np.abs(z).max() < 4.5
        np.testing.assert_allclose(np.cov(part.T), covariance, atol=0.12 * covariance.max())
    factor, k = rng.normal(size=30), 1
    off = factor - X @ means.factors[:, k]
    b = means.factors[:, k]
    assert means.squares(k, factor) == pytest.approx(off @ off + means.precision[0] * b @ b)
    renewed = np.array([means.renewed(rng) for _ in range(3_000)])
    assert renewed.var() == pytest.approx(1.0 / (30 * means.precision[0]), rel=0.1)


def test_precisions_of_coefficients_have_their_conditional_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = 1e-6 * rng.normal(size=(30, 4))  # factors say nothing of the coefficients
    means = PriorMeans.of(X, 2)
    found = []
    for _ in range(6_000):
        means.draw(np.zeros((30, 2)), np.arange(2), np.zeros(30), 1.0, 3.0, rng)
        found.append(means.precision.copy())
    # Their standard deviations are half-Cauchy: half of them lie above the scale.
    above = np.mean(np.array(found) < np.array([1.0, 1.0 / 9.0]), axis=0)
    assert np.abs(above - 0.5).max() < 0.12


def test_a_step_down_is_a_step_up_reversed() -> None:
    chain, E = settled(3)
    rng, state, b = np.random.default_rng(6), chain.state, 0.7
    q = births.ResidualLaw(np.array([0.9, -0.5]), np.array([0.4, 0.3]), 2.5, 0.6)
    direct = Direct(chain, E, 200_000, rng)
    weight = np.exp(direct.log_weight(b, q))
    steps: dict[bool, list[list[float]]] = {True: [], False: []}
    with thread_pool(1) as each:
        for forward, found in steps.items():
            for i in rng.choice(direct.s.size, 2_500, p=weight / weight.sum()):
                b_rows, b_columns = direct.b[[i]], direct.c[[i]]
                s, own = float(direct.s[i]), (direct.V[i].copy(), b_rows, b_columns)
                seen = Residuals.of(state, E, each)
                path = births._Path(state, seen, own[0], s, *own[1:], 0, q, rng)
                path._step(b, forward=forward)
                old = (direct.V[i, 0], direct.b[i], direct.c[i], s)
                new = (path.V[0], path.b_rows[0], path.b_columns[0], path.s)
                low, high = (old, new) if forward else (new, old)
                pairs = [x * y for x in low for y in high]
                squares = [x * x for x in new]
                found.append([*pairs, *squares, new[0] * new[2], path.V[0] * path.V[1], *new])
    up, down = (np.array(found) for found in steps.values())
    z = (up.mean(0) - down.mean(0)) / np.sqrt((up.var(0) + down.var(0)) / len(up))
    assert np.abs(z).max() < 4.0, z
    law = weight / weight.sum()
    of_V, first = direct.V[:, 0] * direct.c, direct.V[:, 0]
    for i, x in ((-6, of_V), (-7, direct.s**2), (-10, first**2), (-4, first), (-1, direct.s)):
        expected = float(law @ x)
        error = np.sqrt(up[:, i].var() / len(up) + float(law**2 @ (x - expected) ** 2))
        assert abs(up[:, i].mean() - expected) < 4.0 * error


@pytest.mark.parametrize(("odds", "a_sweep"), [(0.5, 32), (2.0, 32), (1.0, 1)])
def test_without_evidence_births_and_deaths_have_the_prior_of_the_rank(
    odds: float, a_sweep: int, few_steps: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(births, "FEWEST_STEPS", 3)
    monkeypatch.setattr(births, "A_SWEEP", a_sweep)
    chain = begun(1)
    state = chain.state
    state.config = replace(state.config, on_mass=odds)  # that each of two components is on
    state.noise[:], state.alpha = 1e9, 0.5
    rng, ranks = np.random.default_rng(2), []
    E_first = state.matrix.values(chain.cells.y).copy()
    row, column = np.nonzero(SEEN)
    E = E_first.copy()
    with thread_pool(1) as each:
        for _ in range(2_500):
            births.move_rank(state, E, rng, each)
            ranks.append(state.active.size)
    k = state.active
    x = np.einsum("nk,nk->n", state.U[row][:, k], (state.s * state.V)[column][:, k])
    np.testing.assert_allclose(E, E_first - x, atol=1e-8)
    share = np.bincount(ranks, minlength=3) / len(ranks)
    law = np.array([1.0, 2.0 * odds, odds**2]) / (1.0 + odds) ** 2
    np.testing.assert_allclose(share, law, atol=0.08)
    # A try takes three steps.
    moved = np.count_nonzero(np.diff(ranks)) / len(ranks)
    assert (0.1 < moved < 0.33) if a_sweep < 3 else (moved > 0.4)


def test_a_start_by_births_that_fail_holds_the_means_of_both_sides(seed: int) -> None:
    row, column = np.divmod(np.arange(120), 10)
    layout = Sparse(Entries(row.astype(np.int32), column.astype(np.int32), (12, 10)))
    values = (np.random.default_rng(seed).normal(size=120),)
    problem = Problem(Bsvd(), BsvdConfig(), make_links(ColumnType.REAL), values, layout=layout)
    chain = start_chain(problem, Streams(seed, 0))
    assert not chain.state.on.all()
    for _ in range(2):
        left, right = chain.state.sides()
        expected = np.einsum("nk,nk->n", left[row], right[column])
        np.testing.assert_allclose(chain.state.x, expected, atol=1e-9)
        chain.sweep(adapt=True)


def test_one_component_stays(seed: int) -> None:
    state = begun(seed, 2).state
    single = replace(state, s=state.s[:1], on=state.on[:1])
    with thread_pool(1) as each:
        for _ in range(20):
            births.move_rank(single, np.zeros(5), np.random.default_rng(seed), each)
    assert single.on.all()


@pytest.mark.parametrize("matrix", [[[3.0, 0.0, -4.0, 1.0]], [[3.0], [0.0], [-4.0]]])
def test_births_into_a_single_row_or_column_begin_along_it(matrix: list[list[float]]) -> None:
    A = np.array(matrix)
    found = leading_vector(A.dot, A.T.dot, np.linspace(0.5, 1.0, len(A)))
    expected = np.linalg.svd(A)[2][0]
    assert abs(found @ expected) == pytest.approx(1.0)


@pytest.mark.parametrize("shape", [(60, 40), (40, 60), (5, 8)])
def test_births_begin_along_what_residuals_show_most(seed: int, shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(seed)
    A = rng.normal(size=shape)
    A += 4.0 * np.outer(*(rng.normal(size=n) for n in shape))
    found = leading_vector(A.dot, A.T.dot, rng.normal(size=shape[0]))
    assert abs(found @ np.linalg.svd(A)[2][0]) == pytest.approx(1.0, abs=1e-9)
    few = np.outer(A[:, 0], A[0])  # of rank 1: nothing is left over after a step
    found = leading_vector(few.dot, few.T.dot, rng.normal(size=shape[0]))
    assert abs(found @ A[0]) == pytest.approx(np.linalg.norm(A[0]))
    np.testing.assert_array_equal(
        leading_vector((0 * A).dot, (0 * A.T).dot, np.ones(shape[0])), np.ones(shape[1])
    )


@pytest.mark.parametrize("own", [None, np.array([0.3, 1.2, 0.3, 0.7, 2.0])])
def test_residuals_that_stay_have_the_sums_of_those_that_change(
    seed: int, own: Array | None
) -> None:
    state, rng = begun(seed).state, np.random.default_rng(seed)
    if own is not None:  # variances of cells beside the noise's
        state = replace(state, matrix=replace(state.matrix, weight=own, own=own))
    state.row_precision[:] = rng.gamma(2.0, size=3)
    E = rng.normal(size=5)
    with thread_pool(1) as each:
        seen = Residuals.of(state, E, each)
        units = state.matrix.rows, state.matrix.columns
        for by_column, n in ((False, 2), (True, 3)):
            V, own_first = rng.normal(size=n), state.precision[:: -1 if by_column else 1]
            expected = scan_side(units[by_column], state.matrix.weight, E, V, *own_first, each)
            np.testing.assert_array_equal(seen.sums(V, by_column=by_column), expected)
