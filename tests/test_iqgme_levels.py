"""Columns of levels as the mixture of experts sees them: numbers with noise, to rules without."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm

import glfm_cli.latent.iqgme.rows as rows_module
from glfm_cli.classification.classifier import fit_classifier
from glfm_cli.classification.features import LatentColumn
from glfm_cli.classification.fit import Fitting, fit_experts
from glfm_cli.classification.level_codes import BLUR, level_codes
from glfm_cli.encoding import EncodedColumn
from glfm_cli.latent.iqgme import IqgmeConfig, KnownRows, LabelLaw, label_law
from glfm_cli.latent.iqgme.experts import Statistics
from glfm_cli.latent.iqgme.fit import begin
from glfm_cli.latent.iqgme.forms import forms_of, local_step
from glfm_cli.latent.iqgme.gibbs_draw import draw_prior
from glfm_cli.latent.iqgme.label_responses import Responses, ScoredRows
from glfm_cli.latent.iqgme.left_out_labels import every_level, left_out_labels
from glfm_cli.latent.iqgme.local import Local, Terms, complete_block, sum_block
from glfm_cli.latent.iqgme.model import ExpertAscent, State, TaskTables
from glfm_cli.latent.iqgme.prior import Prior
from glfm_cli.latent.iqgme.seen_law import SeenLaw
from glfm_cli.latent.iqgme.temperature import inverse_temperature
from glfm_cli.links import LinkConfig, of_levels
from glfm_cli.schema import Column, ColumnType, Role
from tests.iqgme_problems import choices, climbed, probabilities, problem, signs

Array = np.ndarray[Any, Any]

COLUMNS = 8
CONFIG = IqgmeConfig(experts=3, iterations=15)


def levelled(x: Array, n_levels: int, kind: ColumnType = ColumnType.CATEGORICAL) -> EncodedColumn:
    levels, seen = tuple(map(str, range(n_levels))), ~np.isnan(x)
    return EncodedColumn(Column("x", Role.FEATURE, kind), 0, x, seen, ~seen, levels)


def yes_no(n: int, rng: np.random.Generator, hidden: float) -> tuple[list[EncodedColumn], Array]:
    """Return binary columns that hang together, and labels of a logistic law of them."""
    group = rng.standard_normal((n, 1))
    x = (group + rng.logistic(size=(n, COLUMNS)) > 0.0).astype(np.float64)
    score = (x - 0.5) @ np.array([3.0, -2.5, 2.0, -2.0, 1.5, 1.0, 0.0, 0.0])
    code = (score + rng.logistic(size=n) > 0.0).astype(np.float64)
    x[rng.random(x.shape) < hidden] = np.nan
    names = [f"x{d}" for d in range(COLUMNS)]
    made = [levelled(np.ascontiguousarray(one), 2) for one in x.T]
    for name, one in zip(names, made, strict=True):
        object.__setattr__(one, "column", Column(name, Role.FEATURE, ColumnType.CATEGORICAL))
    return made, code


def log_loss(p: Array, code: Array) -> float:
    return float(-np.log(p[np.arange(code.size), code.astype(int)]).mean())


def test_yes_no_columns_are_as_good_as_in_logistic_regression(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (train, code), (test, truth) = yes_no(400, rng, 0.0), yes_no(2000, rng, 0.0)
    a, b = (
        np.column_stack([*(e.x for e in part), np.ones(part[0].x.size)]) for part in (train, test)
    )

    def loss(w: Array) -> float:
        return float(np.logaddexp(0.0, -(2.0 * code - 1.0) * (a @ w)).sum() + 0.05 * w @ w)

    p = 1.0 / (1.0 + np.exp(-b @ minimize(loss, np.zeros(COLUMNS + 1)).x))
    regression = log_loss(np.column_stack([1.0 - p, p]), truth)
    how = Fitting(IqgmeConfig(), LinkConfig(), chains=2, seed=seed)
    fit = fit_classifier(train, code, 2, how)
    assert log_loss(fit.probabilities(test), truth) < regression + 0.01


def test_gaps_of_yes_no_columns_are_better_than_their_means(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (train, code), (test, truth) = yes_no(400, rng, 0.3), yes_no(2000, rng, 0.3)
    how = Fitting(IqgmeConfig(experts=1), LinkConfig(), chains=1, seed=seed)
    fit = fit_classifier(train, code, 2, how)
    filled = [
        EncodedColumn(
            Column(e.column.name, Role.FEATURE, ColumnType.REAL), 0,
            np.where(e.observed, e.x, np.nanmean(e.x)), np.ones_like(e.observed), ~e.observed, (),
        )
        for part in (train, test)
        for e in part
    ]  # fmt: skip
    plain = fit_classifier(filled[:COLUMNS], code, 2, how)
    assert log_loss(fit.probabilities(test), truth) < log_loss(
        plain.probabilities(filled[COLUMNS:]), truth
    )


def test_gates_and_scores_are_those_of_normal_laws(seed: int) -> None:
    """What is seen with noise has a law with that noise; rules act on it, seen or not.

    Of some gaps something is told, with a noise of its own.
    """
    rng, P, H = np.random.default_rng(seed), 3, 4
    noise = np.array([0.0, 0.3, 0.7])
    config = IqgmeConfig(weight_shape=3.0, weight_rate=3.0, alpha_shape=40.0, alpha_rate=20.0)
    q = draw_prior(Prior.of(config, P), H, 1, rng)
    known = np.array([[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
    x = rng.standard_normal((len(known), P))
    label, every = signs(np.ones(6)), np.ones(6, bool)
    precision = np.zeros((6, 3))
    precision[[1, 2, 5, 5], [2, 0, 0, 1]] = 2.0, 0.5, 3.0, 1.0
    told = np.where(precision > 0.0, x, 0.0)
    shown = np.where(known, x, 0.0)
    rows = KnownRows(shown, known, label, every, noise, told, precision)
    law = label_law(rows, q, features=True)
    for i, u in enumerate(~known):
        o = ~u | (precision[i] > 0.0)
        blur = np.where(u, 1.0 / np.where(precision[i] > 0.0, precision[i], 1.0), 0.0)
        log_p, mean, var = np.log(q.pi), np.empty(H), np.empty(H)
        for h in range(H):
            D, w = np.linalg.inv(q.nB[h]) + np.diag(noise), q.mw[h, 0]
            S = (D + np.diag(blur))[np.ix_(o, o)]
            pull = np.linalg.solve(S, D[np.ix_(o, u)]).T if o.any() else np.zeros((P, 0))
            at = x[i].copy()
            at[u] = q.m[h, u] + pull @ (x[i, o] - q.m[h, o])
            cov = D[np.ix_(u, u)] - pull @ D[np.ix_(o, u)]
            mean[h], var[h] = w[:P] @ at + w[P], 1.0 + w[:P][u] @ cov @ w[:P][u]
            np.testing.assert_allclose(law.x[h, i, u], at[u], rtol=1e-8, atol=1e-9)
            np.testing.assert_allclose(law.x_var[h, i, u], np.diag(cov) - noise[u], rtol=1e-8)
            if o.any():
                log_p[h] += multivariate_normal(q.m[h, o], S).logpdf(x[i, o])
        p = np.exp(log_p - log_p.max())
        np.testing.assert_allclose(law.gate[:, i], p / p.sum(), atol=1e-9)
        np.testing.assert_allclose(law.mean[:, i, 0], mean, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(law.var[:, i, 0], var, rtol=1e-8)


def test_what_is_told_exactly_is_as_known(seed: int) -> None:
    fit = fit_experts(problem(seed), CONFIG, chains=1, seed=0)
    rows = problem(seed + 1, n=8, gaps=0.0).without_label()
    hidden = np.zeros((8, 3), dtype=bool)
    hidden[np.arange(8), np.arange(8) % 3] = True
    told, precision = np.where(hidden, rows.x, 0.0), np.where(hidden, 1e9, 0.0)
    as_told = replace(rows, known=~hidden, x=rows.x - told, told=told, precision=precision)
    law, same = label_law(rows, fit.experts), label_law(as_told, fit.experts)
    for name in ("gate", "mean", "var"):
        np.testing.assert_allclose(getattr(same, name), getattr(law, name), rtol=1e-4, atol=1e-9)


# Labels of several levels, and gaps ----------------------------------------------------------


class OfGaps:
    """Rows with gaps under experts of certain coefficients, and their laws on a grid."""

    def __init__(self, seed: int, n_gaps: int) -> None:
        fit = fit_experts(problem(seed, levels=4), CONFIG, chains=1, seed=0)
        self.q = copy.deepcopy(fit.experts)
        self.q.Sw[:] = 0.0
        self.q.mw[:, :, :-1] *= 2.0
        x = np.random.default_rng(seed).standard_normal((4, 3))
        known = np.tile(np.arange(3) >= n_gaps, (4, 1))
        label = choices(np.arange(4), 4, 3)
        noise, every = np.array([0.0, 0.0, 1.0]), np.ones(4, dtype=bool)
        told, precision = np.zeros((4, 3)), np.zeros((4, 3))
        told[::2, 0], precision[::2, 0] = 0.4, 1.5  # of every second row, of its first gap
        shown = np.where(known, x, 0.0)
        self.rows = KnownRows(shown, known, label, every, noise, told, precision)
        side = np.linspace(-8.0, 8.0, 401 if n_gaps == 1 else 101)
        mesh = np.meshgrid(*[side] * n_gaps, indexing="ij")
        self.m, self.grid = np.arange(n_gaps), np.column_stack([one.ravel() for one in mesh])

    def exact(self, h: int, i: int) -> tuple[float, Array, Array, Array]:
        """Return log P(label), E[x], E[x x'] and E[t [x, 1]'] of row i under expert h."""
        q, m, label = self.q, self.m, self.rows.label
        assert label is not None
        x = np.tile(self.rows.x[i], (len(self.grid), 1))
        x[:, m] = self.grid
        away = x - q.m[h]
        precision = np.linalg.inv(np.linalg.inv(q.nB[h]) + np.diag(self.rows.noise))
        square = np.einsum("gp,pq,gq->g", away, precision, away)
        assert self.rows.told is not None
        assert self.rows.precision is not None
        square += (x - self.rows.told[i]) ** 2 @ self.rows.precision[i]
        density = np.exp(-0.5 * square)
        eta = x @ q.mw[h, :, :-1].T + q.mw[h, :, -1]
        t, log_p = label.expect(np.full(len(x), i), eta[None])
        weight = density * np.exp(log_p[0])
        total, weight = weight.sum() / density.sum(), weight / weight.sum()
        with_one = np.column_stack([x, np.ones(len(x))])
        xx = np.einsum("g,gp,gq->pq", weight, x, x)
        tx = np.einsum("g,gk,gp->kp", weight, t[0], with_one)
        return float(np.log(total)), weight @ x, xx, tx

    def placed(self, local: Local) -> tuple[Array, list[Statistics]]:
        """Return what labels add to log rho (H, n), and the sums over each row alone."""
        (block,) = self.rows.blocks
        bare = replace(self.rows, labelled=np.zeros(4, dtype=bool))
        terms = Terms.of(self.q)
        done = complete_block(self.rows, block, self.q, terms, local)
        (same,) = bare.blocks
        without = complete_block(bare, same, self.q, terms, copy.deepcopy(local))
        sums = [Statistics.zero(self.q.H, 3, 3) for _ in range(4)]
        for i, s in enumerate(sums):
            rho = np.tile(np.eye(4)[block.rows == i][0], (self.q.H, 1))
            sum_block(s, block, done, rho, local.t[:, block.rows])
        return (done.log_rho - without.log_rho)[:, np.argsort(block.rows)], sums

    @property
    def local(self) -> Local:
        H = self.q.H
        return Local(np.full((H, 4), 1.0 / H), np.tile(self.rows.first_scores, (H, 1, 1)))


def test_utilities_and_one_gap_have_their_exact_law_together(seed: int) -> None:
    made = OfGaps(seed, 1)
    gain, sums = made.placed(made.local)
    for h, i in np.ndindex(gain.shape):
        log_p, x, xx, tx = made.exact(h, i)
        assert gain[h, i] == pytest.approx(log_p, abs=1e-4)
        s = sums[i]
        np.testing.assert_allclose(s.x[h, :2], x[:2], atol=1e-3)
        np.testing.assert_allclose(s.xx[h, :2, :2], xx[:2, :2], atol=3e-3)
        np.testing.assert_allclose(s.l_xx[h], xx, atol=3e-3)
        np.testing.assert_allclose(s.tx[h], tx, atol=3e-3)


def test_utilities_and_two_gaps_are_bounded_from_below(seed: int) -> None:
    short = []
    for one in range(seed, seed + 5):
        made = OfGaps(one, 2)
        local = made.local
        before = np.full((made.q.H, 4), -np.inf)
        for _ in range(20):
            gain, _ = made.placed(local)
            assert np.all(gain >= before - 1e-6)
            before = gain
        exact = np.array([[made.exact(h, i)[0] for i in range(4)] for h in range(made.q.H)])
        assert np.all(gain <= exact + 1e-3)
        short.append(np.mean(exact - gain))
    assert np.mean(short) < 0.2


def test_in_one_step_labels_move_gaps_along_one_line(seed: int) -> None:
    """Of rows alike but for their labels: the bound is that of gaps that follow a't alone."""
    made = OfGaps(seed, 2)
    rows = replace(made.rows, x=np.tile(made.rows.x[0], (4, 1)), told=None, precision=None)
    (block,), local = rows.blocks, made.local
    local.t[:] = np.random.default_rng(seed).standard_normal(3)
    done = complete_block(rows, block, made.q, Terms.of(made.q), local)
    assert done.coupled is not None
    along = done.coupled.along[:, :1] / np.linalg.norm(done.coupled.along[:, :1], axis=2)[..., None]
    moved = done.x[:, 1:] - done.x[:, :1]
    np.testing.assert_allclose(moved, (moved * along).sum(axis=2)[..., None] * along, atol=1e-12)
    assert np.abs(moved).max() > 0.1


def test_forecasts_of_several_levels_know_what_a_gap_does_to_all(seed: int) -> None:
    made = OfGaps(seed, 1)
    q = made.q
    pi = np.tile(np.eye(q.H)[0][:, None], (1, 4))
    p = probabilities(label_law(made.rows, q, pi=pi), made.rows.label)
    expected = [np.exp(made.exact(0, i)[0]) for i in range(4)]
    np.testing.assert_allclose(np.diagonal(p), expected, atol=1e-4)
    law = label_law(made.rows, q)
    twice = probabilities(LabelLaw.average([law, law]), made.rows.label)
    np.testing.assert_allclose(twice, probabilities(law, made.rows.label))


def test_labels_left_out_are_told_by_what_gaps_do_to_all(seed: int) -> None:
    made = OfGaps(seed, 1)
    q, label, none = made.q, made.rows.label, made.local
    q.Sw[:] = 0.5 * np.eye(4)
    none.rho[:] = 0.0  # nothing to be left out
    law, (node, weight) = label_law(made.rows, q), np.polynomial.hermite_e.hermegauss(40)
    assert label is not None
    p = np.zeros(4)
    for z, share in zip(node, weight / weight.sum(), strict=True):
        scaled = (law.mean + z * law.wide) / np.sqrt(law.var)
        p += share * (law.gate * np.exp(label.expect(np.arange(4), scaled)[1])).sum(axis=0)
    found = left_out_labels(made.rows, q, none, 0.1, [label])[made.rows.labelled].sum()
    assert found == pytest.approx(np.log(p).sum(), abs=1e-4)


def test_levels_have_mean_0_and_variance_1_and_noise_by_their_distance() -> None:
    count = np.array([30, 50, 0, 20])
    share = (count + 0.5) / (count + 0.5).sum()
    codes, noise = level_codes(count, (None,), ordered=True)
    grid = np.linspace(-9.0, 9.0, 200_001)  # normal scores by quadrature
    level = np.searchsorted(np.cumsum(share)[:-1], norm.cdf(grid))
    every = [grid[level == r] for r in range(4)]
    score = np.array([np.average(one, weights=norm.pdf(one)) for one in every])
    score = score / np.sqrt(share @ score**2)
    np.testing.assert_allclose(codes[:, 0], score, atol=1e-3)
    assert noise == pytest.approx([(BLUR * (score[3] - score[0]) / 2) ** 2], rel=1e-3)
    codes, noise = level_codes(np.array([30, 50, 20]), (0, 2), ordered=False)
    share = np.array([30.5, 50.5, 20.5]) / 101.5
    np.testing.assert_allclose(share @ codes, 0.0, atol=1e-12)
    np.testing.assert_allclose(share @ codes**2, 1.0)
    np.testing.assert_allclose(noise, BLUR**2 / (share * (1 - share))[[0, 2]])


@pytest.mark.parametrize("kind", [ColumnType.CATEGORICAL, ColumnType.ORDINAL])
def test_of_a_cell_of_which_nothing_is_known_levels_are_as_probable_as_they_are_frequent(
    kind: ColumnType,
) -> None:
    x = np.repeat([0.0, 1.0, 2.0], [60, 110, 30])
    feature = LatentColumn.calibrate(levelled(x, 3, kind), LinkConfig())
    A = feature.n_latent
    var = 1.0 - feature.noise + np.zeros((1, 1, A))
    law = feature.cells_law(np.ones((1, 1)), np.zeros((1, 1, A)), var)
    p = of_levels(feature.link).probabilities(law, feature.params)
    np.testing.assert_allclose(p, [[0.3, 0.55, 0.15]], atol=0.01)
    sure = feature.cells_law(np.ones((1, 1)), feature.codes[None, 2:], np.full((1, 1, A), 1e-4))
    assert of_levels(feature.link).probabilities(sure, feature.params)[0, 2] > 0.9


def test_labels_left_out_are_predicted_by_experts_without_the_row(seed: int) -> None:
    """Against experts whose sums are made anew without the row, its share held."""
    rows = problem(seed, n=25, gaps=0.0)
    config = IqgmeConfig(experts=2, factors=0)
    (form,) = forms_of(config, [rows])
    start = begin(rows, form, config, np.random.default_rng(seed), 2)
    climbed(start, rows, form, config, 8)
    q, local, s = start.experts, start.local, start.sums
    q.update(form.prior, s)
    q.update_weights(s)
    expected, x = 0.0, rows.x
    assert rows.label is not None
    at = np.flatnonzero(rows.labelled)
    f, rho = np.tile(x[at], (q.H, 1, 1)), local.rho[:, at]
    scored = ScoredRows.of(at, f, rho, q)
    moved = Responses.of([scored], rows.label, q).without(scored)[0] - scored.mean
    for place, i in enumerate(at):
        rho, f = local.rho[:, i], np.append(x[i], 1.0)
        u, nu = q.u - rho, q.nu - rho
        m = (q.u[:, None] * q.m - rho[:, None] * x[i]) / u[:, None]
        around = q.u[:, None, None] * q.m[:, :, None] * q.m[:, None]
        around -= rho[:, None, None] * np.outer(x[i], x[i])
        around -= u[:, None, None] * m[:, :, None] * m[:, None]
        left = replace(q, m=m, u=u, nu=nu, B_inv=q.B_inv + around)
        precision = np.linalg.inv(q.Sw)
        left.Sw = np.linalg.inv(precision - rho[:, None, None] * np.outer(f, f))
        left.mw = q.mw.copy()
        left.mw[:, :, -1] += moved[:, place]
        one = KnownRows(x[[i]], rows.known[[i]])
        p = probabilities(label_law(one, left, pi=q.pi[:, None]))[0]
        expected += np.log(p[int(rows.label.x[i])])
    own = left_out_labels(rows, q, local, form.prior.u0, [rows.label])[rows.labelled]
    assert own.sum() == pytest.approx(expected, rel=1e-6)
    log_p = left_out_labels(rows, q, local, form.prior.u0, every_level(rows))
    code = rows.label.x[rows.labelled].astype(np.intp)
    np.testing.assert_array_equal(log_p[rows.labelled, code], own[:, 0])
    np.testing.assert_allclose(np.exp(log_p[rows.labelled]).sum(axis=1), 1.0)


def test_labels_left_out_tell_the_power_of_forecasts(seed: int) -> None:
    rows = problem(seed, n=25, gaps=0.0)
    config = IqgmeConfig(experts=2, factors=0)
    (form,) = forms_of(config, [rows])
    start = begin(rows, form, config, np.random.default_rng(seed), 2)
    climbed(start, rows, form, config, 8)
    kept = ExpertAscent().draw(State(start, form, 0, TaskTables((rows,), config, False, 1)))
    every = left_out_labels(rows, start.experts, start.local, form.prior.u0, every_level(rows))
    assert rows.label is not None
    log_p, code = every[rows.labelled], rows.label.x[rows.labelled].astype(np.intp)
    assert kept.power == pytest.approx(inverse_temperature(log_p, code))
    assert kept.power != pytest.approx(1.0, rel=1e-4)
    assert kept.left_out is not None
    np.testing.assert_array_equal(kept.left_out, log_p)


@pytest.mark.parametrize("n_levels", [2, 3])
def test_slips_say_nothing_of_a_score(n_levels: int, seed: int) -> None:
    """Against a grid of the only score, or differences of the log probability of several."""
    rng, slips = np.random.default_rng(seed), 0.2
    plain = signs(np.array([1.0])) if n_levels == 2 else choices(np.array([1.0]), 3, 0)
    label, row = replace(plain, slips=slips), np.array([0])
    eta = rng.normal(size=(1, 1, n_levels - 1)) - 1.0

    def log_p(eta: Array) -> float:
        return float(label.expect(row, eta)[1][0, 0])

    without = float(plain.expect(row, eta)[1][0, 0])
    assert log_p(eta) == pytest.approx(np.log(0.8 * np.exp(without) + slips / n_levels))
    mean = label.expect(row, eta)[0][0, 0]
    for k, step in enumerate(1e-4 * np.eye(n_levels - 1)):
        slope = (log_p(eta + step) - log_p(eta - step)) / 2e-4
        assert mean[k] - eta[0, 0, k] == pytest.approx(slope, abs=1e-5)
    many = replace(label, x=np.ones(20_000))
    draws = many.draw(np.arange(20_000), np.repeat(eta[0], 20_000, axis=0), rng)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.05)
    if n_levels == 2:
        _, var, _ = label.moments(row, eta, np.ones(1))
        grid = np.linspace(-10.0, 10.0, 20_001)
        p = norm.pdf(grid - eta[0, 0, 0]) * (0.8 * (grid > 0.0) + slips / 2)
        exact = np.average((grid - mean[0]) ** 2, weights=p)
        assert var[0, 0, 0] == pytest.approx(exact, rel=1e-3)
        assert draws.var() == pytest.approx(exact, rel=0.05)


@pytest.mark.parametrize("levels", [2, 3])
@pytest.mark.parametrize("discrete", [True, False])
def test_rows_without_gaps_are_placed_as_rows_with_gaps_are(
    discrete: bool, levels: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = {"discrete": discrete, "levels": levels, "unlabelled": 0.3, "P": 4}
    rows = problem(seed, n=30, gaps=0.1, **kind)  # two thirds of the rows have none
    config = IqgmeConfig(experts=3, factors=0)
    form = forms_of(config, [rows])[0]
    start = begin(rows, form, config, np.random.default_rng(seed), 1)
    climbed(start, rows, form, config, 3)
    done = []
    for products in (rows_module.PRODUCTS, 0):
        monkeypatch.setattr(rows_module, "PRODUCTS", products)
        again = replace(rows)
        assert any(block.whole for block in again.blocks) == (products > 0)
        local = copy.deepcopy(start.local)
        done.append((local_step(form, again, start.experts, local), local))
    (fast, own), (slow, other) = done
    np.testing.assert_allclose(own.rho, other.rho, atol=1e-12)
    np.testing.assert_allclose(own.t, other.t, atol=1e-10)
    for name, array in vars(slow).items():
        np.testing.assert_allclose(getattr(fast, name), array, rtol=1e-8, atol=1e-10)


def test_forecasts_leave_room_for_slips(seed: int) -> None:
    columns, code = yes_no(60, np.random.default_rng(seed), 0.0)
    held = IqgmeConfig(experts=1, iterations=20, slips=0.5, stack=False)
    how = Fitting(held, LinkConfig(), chains=1)
    made = fit_classifier(columns, code, 2, how)
    as_fitted = tuple(replace(member, power=1.0) for member in made.members)
    p, power = replace(made, members=as_fitted).probabilities(columns), made.members[0].power
    raised = p**power
    assert power > 1.01
    np.testing.assert_allclose(
        made.probabilities(columns), raised / raised.sum(axis=1, keepdims=True)
    )
    assert 0.25 <= p.min() < 0.3


def test_sums_over_features_are_those_of_their_law_given_what_is_seen(seed: int) -> None:
    rng, noise = np.random.default_rng(seed), np.array([0.0, 0.3, 0.7])
    q = draw_prior(Prior.of(IqgmeConfig(), 3), 2, 1, rng)
    x, rho = rng.standard_normal((5, 3)), rng.random((2, 5))
    law = SeenLaw.of(q, noise)
    found = law.of_features(rho.sum(axis=1), rho @ x, np.einsum("hn,np,nq->hpq", rho, x, x))
    for h in range(2):
        D = np.linalg.inv(q.nB[h])
        J = D @ np.linalg.inv(D + np.diag(noise))
        f, cov = q.m[h] + (x - q.m[h]) @ J.T, D - J @ D
        np.testing.assert_allclose(found[0][h], rho[h] @ f, atol=1e-9)
        second = np.einsum("n,np,nq->pq", rho[h], f, f) + rho[h].sum() * cov
        np.testing.assert_allclose(found[1][h], second, atol=1e-9)
    many = law.draw(np.ones(20_000, dtype=np.intp), np.tile(x[0], (20_000, 1)), rng)
    np.testing.assert_allclose(many.mean(axis=0), f[0], atol=0.05)
    np.testing.assert_allclose(np.cov(many.T), cov, atol=0.05)
