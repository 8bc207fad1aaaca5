"""Tasks that share experts: the bound, its updates, and what is learnt from other tasks."""

from __future__ import annotations

import copy
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import digamma

from glfm_cli.classification.fit import fit_experts, problem_of
from glfm_cli.latent.iqgme import (
    ExpertAscent,
    Experts,
    IqgmeConfig,
    KnownRows,
    TaskDeviations,
    label_law,
)
from glfm_cli.latent.iqgme.deviation_scale import FOLDS, GRID, ROUNDS, choose_omega
from glfm_cli.latent.iqgme.forms import forms_of
from glfm_cli.latent.iqgme.left_out_labels import left_out_score
from glfm_cli.latent.iqgme.local import Terms, complete_block
from glfm_cli.latent.iqgme.merges import place_evidence, rule_evidence
from glfm_cli.latent.iqgme.prior import Prior
from glfm_cli.latent.iqgme.tasks import TaskStart, begin_tasks, task_step, told_by_labels
from glfm_cli.latent.model import Values
from glfm_cli.streams import Streams
from tests.iqgme_problems import Array, Patience, above, climbed, gamma_terms, problem, signs

CONFIG = IqgmeConfig(experts=4, shared_experts=7, iterations=30, short=30, tolerance=1e-6)
MOVING = replace(CONFIG, iterations=80, short=80, tolerance=1e-4)  # to fewer experts, too
KINDS: list[dict[str, Any]] = [
    {},
    {"gaps": 0.6},
    {"gaps": 0.2, "discrete": True},
    {"gaps": 0.0, "levels": 3},
]


def start_of(
    seed: int,
    kind: dict[str, Any],
    which: int,
    config: IqgmeConfig = CONFIG,
    omega: float | None = None,
) -> TaskStart:
    """Return a start of a few small tasks after some iterations."""
    tables = [problem(97 * seed + j, n=8 + 6 * j, **kind) for j in range(3)]
    form = forms_of(CONFIG, tables)[0]
    start = begin_tasks(tables, form, config, np.random.default_rng(seed), which, omega)
    climbed(start, tables, form, config, config.iterations)
    return start


def assert_bound_never_falls(
    seed: int,
    kind: dict[str, Any],
    which: int,
    config: IqgmeConfig = CONFIG,
    omega: float | None = None,
) -> None:
    bounds = np.array(start_of(seed, kind, which, config, omega).bounds)
    assert np.all(np.diff(bounds) >= -1e-8 * np.abs(bounds[1:]))
    assert bounds[-1] > bounds[0]


@pytest.mark.parametrize(("which", "omega"), [(0, 0.5), (1, None), (1, 20.0)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_of_many_tasks_never_falls(
    kind: dict[str, Any], which: int, omega: float | None, seed: int
) -> None:
    assert_bound_never_falls(seed, kind, which, omega=omega)


@pytest.mark.slow
def test_the_bound_of_many_tasks_never_falls_on_200_problems(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for i in range(200):
        kind = KINDS[i % len(KINDS)] | {"gaps": float(rng.uniform(0.0, 0.6))}
        omega = None if i % 3 == 0 else float(10.0 ** rng.uniform(-1.0, 3.0))
        config = (CONFIG, MOVING)[i // 12 % 2]
        assert_bound_never_falls(seed + i, kind, i % 6, config, omega)


class Frozen:
    """Three tasks, whose rows are held still."""

    def __init__(self, seed: int, omega: float | None = None) -> None:
        self.tables = [problem(97 * seed + j, n=14 + 6 * j) for j in range(3)]
        form = forms_of(CONFIG, self.tables)[0]
        self.prior: Prior = form.prior
        start = begin_tasks(self.tables, form, CONFIG, np.random.default_rng(seed), 1, omega)
        climbed(start, self.tables, form, CONFIG, 16)
        self.q, self.usage, self.own = start.experts, start.usage, start.own
        before = copy.deepcopy(start.locals)
        self.sums, self.own_sums, self.value = task_step(
            form, self.tables, self.q, self.usage, start.locals, self.own
        )
        self.log_p = []
        for j, (rows, kept) in enumerate(zip(self.tables, before, strict=True)):
            found, q = np.empty((self.q.H, len(rows.x))), self.q
            if self.own is not None:
                q = q.with_rules(*self.own.seen(q, j))
            for block in rows.blocks:
                done = complete_block(rows, block, q, Terms.of(q), kept)
                found[:, block.rows] = done.log_rho - self.q.log_pi[:, None]
            self.log_p.append(found)
        self.rho = [kept.rho for kept in start.locals]

    def bound(self, sigma: Array | None = None, rho: list[Array] | None = None) -> float:
        """Return the bound, its sums over rows and atoms written out."""
        sigma = self.usage.sigma if sigma is None else sigma
        rho = self.rho if rho is None else rho
        total = self.usage.sticks_bound(self.prior.rules) + self.q.bound(self.prior)
        total += 0.0 if self.own is None else plain_own_bound(self.prior, self.own)
        log_pi, log_eta = self.usage.log_shares, self.q.log_pi
        for j, log_p in enumerate(self.log_p):
            for h in range(log_pi.shape[1]):
                for s in range(self.q.H):
                    p = sigma[j, h, s]
                    total += p * (log_eta[s] - np.log(p)) if p > 0 else 0.0
                    total += p * float(rho[j][h] @ log_p[s])
                mine = rho[j][h][rho[j][h] > 0]
                total += float((mine * (log_pi[j, h] - np.log(mine))).sum())
        return float(total)


def plain_own_bound(prior: Prior, own: TaskDeviations) -> float:
    """Return what tasks' own rules add to the bound, term by term."""
    total = gamma_terms(prior.o1, prior.o2, own.a, own.b)
    J, K, size = own.mv.shape
    for j in range(J):
        for k in range(K):
            entropy = 0.5 * np.linalg.slogdet(own.C[j])[1] + 0.5 * size * (1 + np.log(2 * np.pi))
            total += float(entropy)
            for p in range(size):
                last = p == size - 1
                d = own.a / own.b if last else own.omega
                log_d = digamma(own.a) - np.log(own.b) if last else np.log(own.omega)
                square = own.mv[j, k, p] ** 2 + own.C[j, p, p]
                total += 0.5 * (log_d - np.log(2 * np.pi) - d * square)
    return float(total)


@pytest.fixture(scope="module")
def frozen(seed: int) -> Frozen:
    return Frozen(seed)


@pytest.fixture(scope="module")
def with_own(seed: int) -> Frozen:
    return Frozen(seed, omega=2.0)


def test_the_bound_of_tasks_is_that_written_out(frozen: Frozen, with_own: Frozen) -> None:
    for one in (frozen, with_own):
        bound = one.value + one.usage.sticks_bound(one.prior.rules) + one.q.bound(one.prior)
        bound += 0.0 if one.own is None else one.own.bound(one.prior)
        assert bound == pytest.approx(one.bound(), rel=1e-12)


# Rules of tasks' own ---------------------------------------------------------------------------


def label_part(one: Frozen, q: Experts, own: TaskDeviations) -> float:
    """Return all that depends on rules, shared and own: the rows' part given their sums, too."""
    assert one.own_sums is not None
    total = q._weights(one.prior) + own.bound(one.prior)
    for j, (X, T) in enumerate(zip(one.own_sums.X, one.own_sums.T, strict=True)):
        mw, Sw = own.seen(q, j)
        for h in range(q.H):
            WW = np.einsum("kp,kq->pq", mw[h], mw[h]) + q.K * Sw[h]
            total += float((mw[h] * T[h]).sum()) - 0.5 * float((WW * X[h]).sum())
    return total


def settled(one: Frozen) -> tuple[Experts, TaskDeviations]:
    """Return rules where updates have come to rest, given the sums."""
    q, own = copy.deepcopy(one.q), one.own
    assert own is not None
    assert one.own_sums is not None
    for _ in range(400):
        own = own.updated(one.prior, q, one.own_sums, one.sums)
    return q, own


def test_rules_of_tasks_own_are_stationary(with_own: Frozen) -> None:
    q, own = settled(with_own)
    J, _, size = own.mv.shape
    places: list[tuple[Any, str, tuple[int, ...]]] = [
        *((own, "mv", (j, 0, p)) for j in range(J) for p in (0, size - 1)),
        *((own, "C", (j, p, p)) for j in range(J) for p in (0, size - 1)),
        *((q, "mw", (h, 0, p)) for h in range(2) for p in (0, size - 1)),
        *((own, name, ()) for name in ("a", "b")),
    ]
    for holder, name, index in places:
        ends = []
        for sign in (1.0, -1.0):
            value = np.array(getattr(holder, name), dtype=float)
            value[index] += sign * 1e-5
            new = replace(holder, **{name: value if index else float(value)})
            pair = (new, own) if holder is q else (q, new)
            ends.append(label_part(with_own, *pair))
        assert abs(ends[0] - ends[1]) / 2e-5 < 1e-4, (name, index)


def test_each_update_of_rules_raises_the_bound(with_own: Frozen) -> None:
    q, own, sums = copy.deepcopy(with_own.q), with_own.own, with_own.own_sums
    assert own is not None
    assert sums is not None
    before = label_part(with_own, q, own)
    for _ in range(5):
        for update in (
            lambda own: own.with_spread(sums).with_means(q, sums),
            lambda own: own.with_intercepts(with_own.prior),
            lambda own: own.updated(with_own.prior, q, sums, with_own.sums),
        ):
            own = update(own)
            value = label_part(with_own, q, own)
            assert value >= before - 1e-9 * abs(before)
            before = value


def test_without_room_for_own_rules_all_tasks_have_the_shared_ones(with_own: Frozen) -> None:
    assert with_own.own_sums is not None
    shared, q = copy.deepcopy(with_own.q), copy.deepcopy(with_own.q)
    own = replace(with_own.own, omega=1e12, a=1e12, b=1.0)
    own.updated(with_own.prior, q, with_own.own_sums, with_own.sums)
    shared.update_weights(with_own.sums)
    assert np.allclose(q.mw, shared.mw, atol=1e-6)
    assert np.allclose(q.Sw, shared.Sw, atol=1e-6)


def opposite(n: int, seed: int, *, same: bool, n_tasks: int = 6) -> list[KnownRows]:
    """Return tasks whose rows lie at one place, with one rule for all or two opposite ones."""
    rng, out = np.random.default_rng(seed), []
    for j in range(n_tasks):
        x = rng.standard_normal((n, 3))
        up = x[:, 0] * (1.0 if same or j % 2 else -1.0) + 0.3 * rng.standard_normal(n) > 0
        known = rng.random(x.shape) > 0.1
        out.append(KnownRows(np.where(known, x, 0.0), known, signs(up), np.ones(n, dtype=bool)))
    return out


def test_how_far_rules_are_apart_is_told_by_labels(seed: int) -> None:
    apart, alike = (opposite(20, seed, same=same) for same in (False, True))
    assert choose_omega(apart, forms_of(CONFIG, apart)[0]) <= 3.0
    assert choose_omega(alike, forms_of(CONFIG, alike)[0]) >= 30.0
    few = [replace(rows, labelled=np.arange(20) < 1) for rows in apart]
    assert choose_omega(few, forms_of(CONFIG, few)[0]) == max(GRID)


def test_the_search_for_omega_ends_when_told(seed: int) -> None:
    apart = opposite(20, seed, same=False)
    form = forms_of(CONFIG, apart)[0]
    none, some = Patience(0), Patience(ROUNDS + 2 * FOLDS)
    assert choose_omega(apart, form, none) == GRID[0]  # features are not even completed
    assert none.asked == 1
    assert choose_omega(apart, form, some) == GRID[1]  # the best of two
    assert some.asked == ROUNDS + 2 * FOLDS + 1
    assert choose_omega(apart, form, Patience(10**6)) == choose_omega(apart, form)


def test_tasks_of_opposite_rules_are_told_apart(seed: int) -> None:
    train, test = opposite(20, seed, same=False), opposite(200, seed + 1, same=False)
    right = {}
    for own_rules in (True, False):
        config = replace(CONFIG, own_rules=own_rules, experts=1, shared_experts=1)
        fitted = fit_experts(train, config, chains=1, seed=0)
        hits = []
        for j, rows in enumerate(test):
            q, pi = fitted.members[0].of_task(j)
            p = above(label_law(rows, q, pi=np.tile(pi[:, None], (1, 200))))
            assert rows.label is not None
            hits.append(np.mean((p > 0.5) == (rows.label.x == 1.0)))
        right[own_rules] = np.mean(hits)
    assert right[True] > 0.8 > 0.65 > right[False]
    new, _ = fitted.members[0].of_task(None)
    assert new.K == 1


def test_left_out_scores_are_those_of_rules_without_the_row(seed: int) -> None:
    """One expert, its scores held where they are."""
    tables = [problem(seed + j, n=12, gaps=0.0) for j in range(2)]
    config = replace(CONFIG, experts=1, shared_experts=1)
    (form,) = forms_of(config, tables)
    start = begin_tasks(tables, form, config, np.random.default_rng(seed), 0)
    climbed(start, tables, form, config, 5)
    q, s = start.experts, start.sums
    q.update_weights(s)
    expected = 0.0
    for rows in tables:
        assert rows.label is not None
        for i in np.flatnonzero(rows.labelled):
            f, row = np.append(rows.x[i], 1.0), np.array([i])
            t = rows.label.expect(row, np.full((1, 1, 1), f @ q.mw[0, 0]))[0].item()
            X = np.block([[s.l_xx[0], s.l_x[0][:, None]], [s.l_x[0][None], s.l_n[0]]])
            cov = np.linalg.inv(X - np.outer(f, f) + np.diag(q.lam))
            mean = cov @ (np.linalg.solve(q.Sw[0], q.mw[0, 0]) - t * f)
            at = f @ mean / np.sqrt(1.0 + f @ cov @ f)
            expected += rows.label.expect(row, np.full((1, 1, 1), at))[1].item()
    shares = np.ones((2, 1))
    score = left_out_score(form, tables, q, None, shares, start.locals)
    assert score == pytest.approx(expected, rel=1e-6)


def test_of_many_features_labels_left_out_tell_starts(seed: int) -> None:
    tables = [problem(seed + j, n=12, P=101, gaps=0.1) for j in range(2)]
    config = IqgmeConfig(factors=2, iterations=12, short=6)
    (form,) = forms_of(config, tables)
    rng = np.random.default_rng(0)
    experts = [begin_tasks(tables, form, config, rng, i, 1.0).experts.H for i in range(4)]
    assert experts == [2, 3, 5, 9]  # one of them empty
    fitted = fit_experts(tables, config, chains=4, seed=0)
    assert len(fitted.members) == 2
    assert fitted.members[0].weight > fitted.members[1].weight > 0.0
    assert sum(member.weight for member in fitted.members) == pytest.approx(1.0)
    assert told_by_labels(tables)
    assert not told_by_labels([problem(seed, n=12)])
    assert not told_by_labels([replace(rows, labelled=np.zeros(12, dtype=bool)) for rows in tables])


# Shared experts --------------------------------------------------------------------------------


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
        usage.update_sticks(frozen.prior.rules, n)
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
    said = rule_evidence(q, s).sum() - rule_evidence(q, empty).sum()
    said += (place_evidence(frozen.prior, q.P, s) - place_evidence(frozen.prior, q.P, empty)).sum()
    assert gained == pytest.approx(said, rel=1e-9)


def two_kinds(n_tasks: int, n: int, seed: int) -> tuple[list[KnownRows], list[KnownRows], Array]:
    """Return small training tables, test tables and the kind of each task."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n_tasks) % 2
    out: tuple[list[KnownRows], list[KnownRows]] = ([], [])
    for j in range(n_tasks):
        for m, tables in zip((n, 60), out, strict=True):
            x = 0.6 * rng.standard_normal((m, 2)) + np.where(kind[j], 1.2, -1.2)
            up = x[:, 1] > (-x[:, 0] if kind[j] else x[:, 0])
            known = rng.random(x.shape) > 0.1
            tables.append(
                KnownRows(np.where(known, x, 0.0), known, signs(up), np.ones(m, dtype=bool))
            )
    return out[0], out[1], kind


def test_tasks_of_a_kind_share_their_experts(seed: int) -> None:
    train, _, kind = two_kinds(6, 14, seed)
    config = IqgmeConfig(experts=4, shared_experts=12, iterations=80)
    fitted = fit_experts(train, config, chains=4, seed=0)
    p = fitted.members[0].shares
    assert np.allclose(p.sum(axis=1), 1.0)
    overlap = np.minimum(p[:, None], p[None]).sum(axis=2)
    same = kind[:, None] == kind
    assert overlap[same].mean() > 0.8
    assert overlap[~same].mean() < 0.2


def test_a_task_of_one_row_and_threads(seed: int) -> None:
    train, test, _ = two_kinds(4, 14, seed)
    train[3] = KnownRows(
        train[3].x[:1], train[3].known[:1], signs(np.array([True])), np.array([True])
    )
    config = IqgmeConfig(experts=3, shared_experts=6, iterations=15, short=10)
    alone = fit_experts(train, config, chains=1, seed=0)
    with ThreadPoolExecutor(3) as pool:
        together = fit_experts(train, config, chains=1, seed=0, pool=pool, threads=3)
    assert np.array_equal(alone.experts.B_inv, together.experts.B_inv)
    pi = np.tile(alone.members[0].shares[3][:, None], (1, 60))
    law = label_law(test[3], alone.experts, pi=pi)
    assert np.all(np.isfinite(above(law)))


def test_a_start_that_was_saved_goes_on_to_the_same_bits(seed: int) -> None:
    """Whatever order the experts came to on the way, which sums of them may depend on."""
    tables = [problem(97 * seed + j, n=8 + 6 * j) for j in range(3)]
    model, values = ExpertAscent(), Values(problem_of(tables, MOVING, many=True, chains=2), ())
    for chain in range(2):
        streams = Streams(seed, chain)
        state = model.start(values, MOVING, streams, chain)
        for _ in range(40):
            model.step(state, values, streams, adapt=False)
            kept = {name: np.array(one, order="C") for name, one in model.save(state).items()}
            again = model.load(kept, values, MOVING)
            for one in (state, again):
                model.step(one, values, streams, adapt=False)
            found, expected = model.save(again), model.save(state)
            assert not [name for name in found if not np.array_equal(found[name], expected[name])]
