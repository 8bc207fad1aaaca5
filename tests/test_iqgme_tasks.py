"""Tasks that share experts: the bound, its updates, and what is learnt from other tasks."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from iqgme_problems import Array, problem, signs

from glfm_cli.latent.iqgme import IqgmeConfig, Rows, fit_tasks, label_law
from glfm_cli.latent.iqgme.forms import forms_of
from glfm_cli.latent.iqgme.local import Terms, complete_block
from glfm_cli.latent.iqgme.merges import candidates, evidence
from glfm_cli.latent.iqgme.prior import Prior
from glfm_cli.latent.iqgme.tasks import TaskStart, begin_tasks, task_step

CONFIG = IqgmeConfig(experts=4, shared_experts=7, iterations=30, short=30, tolerance=1e-6)
MOVING = replace(CONFIG, iterations=80, short=80, tolerance=1e-4)  # to fewer experts, too
KINDS: list[dict[str, Any]] = [
    {},
    {"gaps": 0.6},
    {"gaps": 0.2, "discrete": True},
    {"gaps": 0.0, "levels": 3},
]


def start_of(
    seed: int, kind: dict[str, Any], which: int, config: IqgmeConfig = CONFIG, n_tasks: int = 3
) -> TaskStart:
    """Return a start of a few small tasks after some iterations."""
    tables = [problem(97 * seed + j, n=8 + 6 * j, **kind) for j in range(n_tasks)]
    form = forms_of(CONFIG, tables)[0]
    start = begin_tasks(tables, form, config, np.random.default_rng(seed), which)
    start.run(tables, form, config, config.iterations)
    return start


def assert_bound_never_falls(
    seed: int, kind: dict[str, Any], which: int, config: IqgmeConfig = CONFIG
) -> None:
    bounds = np.array(start_of(seed, kind, which, config).bounds)
    assert np.all(np.diff(bounds) >= -1e-8 * np.abs(bounds[1:]))
    assert bounds[-1] > bounds[0]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_of_many_tasks_never_falls(kind: dict[str, Any], which: int, seed: int) -> None:
    assert_bound_never_falls(seed, kind, which)


@pytest.mark.slow
def test_the_bound_of_many_tasks_never_falls_on_200_problems(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for i in range(200):
        kind = KINDS[i % len(KINDS)] | {"gaps": float(rng.uniform(0.0, 0.6))}
        assert_bound_never_falls(seed + i, kind, i % 6, (CONFIG, MOVING)[i // 12 % 2])


class Frozen:
    """Three tasks, whose rows are held still."""

    def __init__(self, seed: int) -> None:
        self.tables = [problem(97 * seed + j, n=14 + 6 * j) for j in range(3)]
        form = forms_of(CONFIG, self.tables)[0]
        self.prior: Prior = form.prior
        start = begin_tasks(self.tables, form, CONFIG, np.random.default_rng(seed), 1)
        start.run(self.tables, form, CONFIG, 6)
        self.q, self.usage = start.experts, start.usage
        before = copy.deepcopy(start.locals)
        self.sums, self.value = task_step(form, self.tables, self.q, self.usage, start.locals)
        terms = Terms.of(self.q)
        self.log_p = []
        for rows, kept in zip(self.tables, before, strict=True):
            found = np.empty((self.q.H, len(rows.x)))
            for block in rows.blocks:
                done = complete_block(rows, block, self.q, terms, kept)
                found[:, block.rows] = done.log_rho - self.q.log_pi[:, None]
            self.log_p.append(found)
        self.rho = [kept.rho for kept in start.locals]

    def bound(self, sigma: Array | None = None, rho: list[Array] | None = None) -> float:
        """Return the bound, its sums over rows and atoms written out."""
        sigma = self.usage.sigma if sigma is None else sigma
        rho = self.rho if rho is None else rho
        total = self.usage.bound(self.prior) + self.q.bound(self.prior)
        log_pi, log_eta = self.usage.log_pi, self.q.log_pi
        for j, log_p in enumerate(self.log_p):
            for h in range(log_pi.shape[1]):
                for s in range(self.q.H):
                    p = sigma[j, h, s]
                    total += p * (log_eta[s] - np.log(p)) if p > 0 else 0.0
                    total += p * float(rho[j][h] @ log_p[s])
                mine = rho[j][h][rho[j][h] > 0]
                total += float((mine * (log_pi[j, h] - np.log(mine))).sum())
        return float(total)


@pytest.fixture(scope="module")
def frozen(seed: int) -> Frozen:
    return Frozen(seed)


def test_the_bound_of_tasks_is_that_written_out(frozen: Frozen) -> None:
    bound = frozen.value + frozen.usage.bound(frozen.prior) + frozen.q.bound(frozen.prior)
    assert bound == pytest.approx(frozen.bound(), rel=1e-12)


def test_rows_are_at_their_best_given_the_atoms(frozen: Frozen) -> None:
    for i in range(4):
        for move in (1e-3, -1e-3):
            rho = [one.copy() for one in frozen.rho]
            rho[1][0, i] *= 1 + move
            rho[1][:, i] /= rho[1][:, i].sum()
            assert frozen.bound(rho=rho) <= frozen.bound() + 1e-12


def test_sticks_of_tasks_are_stationary(frozen: Frozen) -> None:
    usage, n = frozen.usage, np.array([rho.sum(axis=1) for rho in frozen.rho])
    kept = copy.deepcopy(usage)
    for _ in range(3000):
        before = usage.tau2
        usage.update_sticks(frozen.prior, n)
        if abs(usage.tau2 - before) < 1e-13 * before:
            break
    for name, index in (("v1", (0, 0)), ("v2", (1, 1)), ("tau1", ()), ("tau2", ())):
        ends = []
        at = np.array(getattr(usage, name), dtype=float)
        for sign in (1.0, -1.0):
            moved = at.copy()
            moved[index] *= 1.0 + sign * 1e-5
            setattr(usage, name, moved if index else float(moved))
            ends.append(frozen.bound())
        setattr(usage, name, at if index else float(at))
        assert abs(ends[0] - ends[1]) / (2e-5 * float(at[index])) < 1e-3, name
    vars(usage).update(vars(kept))


def test_what_joining_two_experts_gains_is_what_the_bound_gains(frozen: Frozen) -> None:
    """Places and weights at their best for sums add the evidence to the bound."""
    q = copy.deepcopy(frozen.q)
    q.update_places(frozen.prior, frozen.sums)
    q.update_weights(frozen.sums)
    q.refresh()
    nothing = copy.deepcopy(q)
    empty = type(frozen.sums).zero(q.H, q.P, q.K)
    nothing.update_places(frozen.prior, empty)
    nothing.update_weights(empty)
    nothing.refresh()
    s = frozen.sums
    fit = 0.0
    for h in range(q.H):  # what the rows add, given their sums
        WW = np.einsum("kp,kq->pq", q.mw[h], q.mw[h]) + q.K * q.Sw[h]
        xx = np.block([[s.l_xx[h], s.l_x[h][:, None]], [s.l_x[h][None], s.l_n[h]]])
        fit += float((q.mw[h] * s.tx[h]).sum()) - 0.5 * float((WW * xx).sum())
        away = s.xx[h] - np.outer(s.x[h], q.m[h]) - np.outer(q.m[h], s.x[h])
        away += s.n[h] * np.outer(q.m[h], q.m[h])
        fit -= 0.5 * float((q.nB[h] * away).sum())
        fit += 0.5 * s.n[h] * (q.log_Lam[h] - q.P / q.u[h])
    gained = fit + q._places(frozen.prior) + q._weights(frozen.prior)
    gained -= nothing._places(frozen.prior) + nothing._weights(frozen.prior)
    said = evidence(q, frozen.prior, s).sum() - evidence(q, frozen.prior, empty).sum()
    assert gained == pytest.approx(said, rel=1e-9)
    assert all(a < b for a, b in candidates(q, frozen.prior, s, 1e-4))


def two_kinds(n_tasks: int, n: int, seed: int) -> tuple[list[Rows], list[Rows], Array]:
    """Return small training tables, test tables and the kind of each task."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n_tasks) % 2
    out: tuple[list[Rows], list[Rows]] = ([], [])
    for j in range(n_tasks):
        for m, tables in zip((n, 60), out, strict=True):
            x = 0.6 * rng.standard_normal((m, 2)) + np.where(kind[j], 1.2, -1.2)
            up = x[:, 1] > (-x[:, 0] if kind[j] else x[:, 0])
            known = rng.random(x.shape) > 0.1
            tables.append(Rows(np.where(known, x, 0.0), known, signs(up), np.ones(m, dtype=bool)))
    return out[0], out[1], kind


def test_tasks_of_a_kind_share_their_experts(seed: int) -> None:
    train, _, kind = two_kinds(6, 14, seed)
    config = IqgmeConfig(experts=4, shared_experts=12, iterations=80)
    fitted = fit_tasks(train, config, [np.random.default_rng(s) for s in range(2)])
    p = fitted.usage.weights
    assert np.allclose(p.sum(axis=1), 1.0)
    overlap = np.minimum(p[:, None], p[None]).sum(axis=2)
    same = kind[:, None] == kind
    assert overlap[same].mean() > 0.8
    assert overlap[~same].mean() < 0.2


def test_a_task_of_one_row_and_threads(seed: int) -> None:
    train, test, _ = two_kinds(4, 14, seed)
    train[3] = Rows(train[3].x[:1], train[3].known[:1], signs(np.array([True])), np.array([True]))
    config = IqgmeConfig(experts=3, shared_experts=6, iterations=15, short=10)
    alone = fit_tasks(train, config, [np.random.default_rng(0)])
    with ThreadPoolExecutor(3) as pool:
        together = fit_tasks(train, config, [np.random.default_rng(0)], pool=pool)
    assert np.array_equal(alone.experts.B_inv, together.experts.B_inv)
    pi = np.tile(alone.usage.weights[3][:, None], (1, 60))
    law = label_law(test[3], alone.experts, pi=pi)
    assert np.all(np.isfinite(law.probability_above()))
