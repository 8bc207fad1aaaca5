"""Scores of labels that are left out, beside fits that are made anew without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from glfm_cli.classification.fit import fit_experts
from glfm_cli.latent.iqgme import IqgmeConfig
from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.label_responses import Responses, ScoredRows
from tests.iqgme_problems import choices, problem, signs

Array = np.ndarray[Any, Any]

N = 120


class Rules:
    """Rows of several experts, and rules that are the best for their labels."""

    def __init__(self, n_levels: int, H: int, seed: int) -> None:
        rng, self.K = np.random.default_rng(seed), n_levels - 1
        fit = fit_experts(
            problem(seed, levels=n_levels), IqgmeConfig(experts=1), chains=1, seed=0
        ).experts
        assert isinstance(fit, Experts)
        self.q, self.F = fit, fit.F + 1
        self.f = rng.standard_normal((H, N, fit.F))
        self.rho = rng.dirichlet(np.full(H, 0.05), N).T  # a row is mostly one expert's
        self.var = rng.uniform(1.0, 5.0, (H, N, self.K))
        code = rng.integers(n_levels, size=N)
        self.label = signs(1.0 * code) if n_levels == 2 else choices(code, n_levels, 0)
        self.q.mw, self.q.Sw = self.best(np.ones(N)), np.tile(0.1 * np.eye(self.F), (H, 1, 1))
        self.q.g = 0.1 + H

    def scores(self, w: Array) -> Array:
        return np.einsum("hkf,hnf->hnk", w[:, :, :-1], self.f) + w[:, None, :, -1]

    def best(self, counted: Array) -> Array:
        """Return the w that are best, with the prior's centre; `counted` (N,) of each label."""
        H, lam = len(self.f), self.q.lam
        with_one = np.append(self.f, np.ones((H, N, 1)), axis=2)

        def loss(numbers: Array) -> tuple[float, Array]:
            """Return minus the log posterior, and its gradient."""
            each = numbers.reshape(H + 1, self.K, self.F)
            w, zeta = each[:-1], each[-1]
            eta = self.scores(w) / np.sqrt(self.var)
            t, log_p = self.label.expect(np.arange(N), eta)
            away = lam * (w - zeta)
            value = 0.5 * float((away * (w - zeta)).sum() + 0.1 * (lam * zeta**2).sum())
            pull = (counted * self.rho)[:, :, None] * (t - eta) / np.sqrt(self.var)
            slope = away - np.einsum("hnk,hnf->hkf", pull, with_one)
            of_zeta = 0.1 * lam * zeta - away.sum(axis=0)
            total = value - float((counted * self.rho * log_p).sum())
            return total, np.append(slope.ravel(), of_zeta.ravel())

        start = np.zeros((H + 1) * self.K * self.F)
        found = minimize(loss, start, jac=True, method="BFGS", options={"gtol": 1e-9})
        return np.asarray(found.x.reshape(H + 1, self.K, self.F)[:-1])

    @property
    def rows(self) -> ScoredRows:
        """Return all rows, under the rules."""
        spread = np.full((len(self.f), N, 1), 0.3)
        scores = self.scores(self.q.mw)
        return ScoredRows(np.arange(N), self.f, self.rho, scores, self.var, spread)


@pytest.mark.parametrize(("n_levels", "H"), [(2, 1), (2, 2), (3, 1)])
def test_scores_are_those_of_a_fit_without_the_label(n_levels: int, H: int, seed: int) -> None:
    made = Rules(n_levels, H, seed)
    rows = made.rows
    mean, var = Responses.of([rows], made.label, made.q).without(rows)
    held, same = Responses.held(made.label, made.q).without(rows)
    np.testing.assert_allclose(var, made.var + 0.3 / (1.0 - 0.3 * made.rho[:, :, None]))
    np.testing.assert_array_equal(var, same)
    found, exact, others = [], [], []
    for i in range(0, N, 24):
        moved = made.scores(made.best(1.0 * (np.arange(N) != i)))[:, i] - rows.mean[:, i]
        share = rows.rho[:, i, None]
        exact.append(share * moved)
        found.append(share * (mean[:, i] - rows.mean[:, i]))
        others.append(share * (held[:, i] - rows.mean[:, i]))
    size = np.linalg.norm(exact)
    assert np.linalg.norm(np.subtract(found, exact)) < 0.05 * size
    assert np.linalg.norm(np.subtract(others, exact)) > 0.3 * size


def test_rows_may_come_in_parts(seed: int) -> None:
    made = Rules(2, 2, seed)
    rows = made.rows

    def part(at: slice) -> ScoredRows:
        own = (one[:, at] for one in (rows.f, rows.rho, rows.mean, rows.var, rows.spread))
        return ScoredRows(rows.rows[at], *own)

    whole = Responses.of([rows], made.label, made.q)
    parts = [part(slice(0, 15)), part(slice(15, None))]
    each = Responses.of(parts, made.label, made.q)
    np.testing.assert_allclose(each.C, whole.C)
    np.testing.assert_allclose(each.without(parts[1])[0], whole.without(rows)[0][:, 15:])
