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
from glfm_cli.classification.features import BLUR, LatentColumn, level_codes
from glfm_cli.classification.fit import Fitting
from glfm_cli.encoding import EncodedColumn
from glfm_cli.latent.iqgme import IqgmeConfig, KnownRows, label_law
from glfm_cli.latent.iqgme.fit import begin
from glfm_cli.latent.iqgme.forms import forms_of, local_step
from glfm_cli.latent.iqgme.gibbs_draw import draw_prior
from glfm_cli.latent.iqgme.left_out_labels import left_out_labels
from glfm_cli.latent.iqgme.prior import Prior
from glfm_cli.links import LinkConfig, of_levels
from glfm_cli.schema import Column, ColumnType, Role
from tests.iqgme_problems import climbed, probabilities, problem, signs

Array = np.ndarray[Any, Any]

COLUMNS = 8


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
    """What is seen with noise has a law with that noise; rules act on it, and on f at gaps."""
    rng, P, H = np.random.default_rng(seed), 3, 4
    noise = np.array([0.0, 0.3, 0.7])
    q = draw_prior(Prior.of(IqgmeConfig(weight_shape=3.0, weight_rate=3.0), P), H, 1, rng)
    known = np.array([[1, 1, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)
    x = rng.standard_normal((len(known), P))
    rows = KnownRows(np.where(known, x, 0.0), known, signs(np.ones(6)), np.ones(6, bool), noise)
    law = label_law(rows, q)
    for i, o in enumerate(known):
        log_p, mean, var = np.log(q.pi), np.empty(H), np.empty(H)
        for h in range(H):
            D, w = np.linalg.inv(q.nB[h]), q.mw[h, 0]
            S = (D + np.diag(noise))[np.ix_(o, o)]
            pull = np.linalg.solve(S, D[np.ix_(o, ~o)]).T if o.any() else np.zeros((P, 0))
            at = x[i].copy()
            at[~o] = q.m[h, ~o] + pull @ (x[i, o] - q.m[h, o])
            cov = D[np.ix_(~o, ~o)] - pull @ D[np.ix_(o, ~o)]
            mean[h], var[h] = w[:P] @ at + w[P], 1.0 + w[:P][~o] @ cov @ w[:P][~o]
            if o.any():
                log_p[h] += multivariate_normal(q.m[h, o], S).logpdf(x[i, o])
        p = np.exp(log_p - log_p.max())
        np.testing.assert_allclose(law.gate[:, i], p / p.sum(), atol=1e-9)
        np.testing.assert_allclose(law.mean[:, i, 0], mean, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(law.var[:, i, 0], var, rtol=1e-8)


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
    """Against experts whose sums are made anew without the row, its score and share held."""
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
    for i in np.flatnonzero(rows.labelled):
        rho, t, f = local.rho[:, i], local.t[:, i, 0], np.append(x[i], 1.0)
        u, nu = q.u - rho, q.nu - rho
        m = (q.u[:, None] * q.m - rho[:, None] * x[i]) / u[:, None]
        around = q.u[:, None, None] * q.m[:, :, None] * q.m[:, None]
        around -= rho[:, None, None] * np.outer(x[i], x[i])
        around -= u[:, None, None] * m[:, :, None] * m[:, None]
        left = replace(q, m=m, u=u, nu=nu, B_inv=q.B_inv + around)
        precision = np.linalg.inv(q.Sw)
        left.Sw = np.linalg.inv(precision - rho[:, None, None] * np.outer(f, f))
        linear = np.einsum("hpq,hq->hp", precision, q.mw[:, 0]) - (rho * t)[:, None] * f
        left.mw = np.einsum("hpq,hq->hp", left.Sw, linear)[:, None]
        one = KnownRows(x[[i]], rows.known[[i]])
        p = probabilities(label_law(one, left, pi=q.pi[:, None]))[0]
        expected += np.log(p[int(rows.label.x[i])])
    assert left_out_labels(rows, q, local, form.prior.u0) == pytest.approx(expected, rel=1e-6)


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
        np.testing.assert_allclose(getattr(fast, name), array, rtol=1e-10, atol=1e-10)
