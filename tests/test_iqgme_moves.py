"""Moves of a fit to fewer experts, and the fits that predict together."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from glfm_cli.classification.fit import fit_experts
from glfm_cli.latent.iqgme import IqgmeConfig, KnownRows, LabelLaw, fit, label_law
from glfm_cli.latent.iqgme.acceleration import MEMORY, Acceleration
from glfm_cli.latent.iqgme.fit import Start, begin, weights_of
from glfm_cli.latent.iqgme.forms import Form, forms_of
from glfm_cli.latent.iqgme.merges import assignment_gain, place_evidence, rule_evidence
from glfm_cli.latent.iqgme.prior import forms_for, what_forms
from glfm_cli.latent.iqgme.tasks import TaskStart, begin_tasks
from tests.iqgme_problems import Array, above, climbed, problem, signs, three_gaussians

pytestmark = pytest.mark.kernels

CONFIG = IqgmeConfig(experts=16)


def groups(seed: int, n: int = 120) -> KnownRows:
    rng = np.random.default_rng(seed)
    x, y = three_gaussians(n, rng)
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    known = rng.random(x.shape) >= 0.1
    return KnownRows(np.where(known, x, 0.0), known, signs(y), np.ones(n, dtype=bool))


def ran(rows: KnownRows, iterations: int, *, moves: bool) -> tuple[Start, Form]:
    """Return a start with as many clusters of rows as there may be experts."""
    (form,) = forms_of(CONFIG, [rows])
    start = begin(rows, form, CONFIG, np.random.default_rng(0), 1)
    if not moves:
        start._simpler = lambda form: iter(())  # type: ignore[method-assign]
    climbed(start, rows, form, CONFIG, iterations)
    return start, form


def test_experts_are_joined_or_taken_away_where_the_bound_rises(seed: int) -> None:
    rows = groups(seed)
    without, _ = ran(rows, 1000, moves=False)
    start, form = ran(rows, 1000, moves=True)
    bounds = np.array(start.bounds)
    assert start.converged
    assert np.all(np.diff(bounds) >= -1e-8 * np.abs(bounds[1:]))
    assert start.bounds[-1] > without.bounds[-1] + 1.0
    assert np.sum(start.experts.pi > 0.02) <= np.sum(without.experts.pi > 0.02)
    assert start.sums.n.sum() == pytest.approx(len(rows.x))
    renewed = copy.deepcopy(start)._renew(rows, form, None)
    assert renewed >= bounds[-1] - 1e-8 * abs(bounds[-1])


def arrays(start: Any) -> dict[str, Array]:
    """Return copies of all arrays that a start holds."""
    found: dict[str, Array] = {}
    parts = {"q": start.experts, "s": start.sums}
    locals_ = start.locals if isinstance(start, TaskStart) else [start.local]
    parts |= {f"local {j}": local for j, local in enumerate(locals_)}
    if isinstance(start, TaskStart):
        parts |= {"usage": start.usage, "own": start.own, "own sums": start.own_sums}
    for name, part in parts.items():
        values = {
            k: np.array(v) for k, v in vars(part).items() if isinstance(v, np.ndarray | float)
        }
        found |= {f"{name}.{key}": value for key, value in values.items()}
    return found


@pytest.mark.parametrize("many", [False, True])
def test_a_move_that_is_not_kept_leaves_everything_as_it_was(many: bool, seed: int) -> None:
    config = IqgmeConfig(experts=4, shared_experts=6)
    tables: Any = [problem(seed + j, n=30, discrete=True) for j in range(2 if many else 1)]
    (form,) = forms_of(config, tables)
    rng, data = np.random.default_rng(seed), tables if many else tables[0]
    start: Any
    if many:
        start = begin_tasks(data, form, config, rng, 0, omega=2.0)
    else:
        start = begin(data, form, config, rng, 0)
    climbed(start, data, form, config, 6)
    before = arrays(start)
    assert len(before) > 20
    for trial in (start._with_joined(0, 1, form), start._without(1, form)):
        for _ in range(2):
            trial._renew(data, form, None)
            trial._update(form, trial.sums)
        assert trial.experts.H <= start.experts.H
    after = arrays(start)
    assert [name for name in before if not np.array_equal(before[name], after[name])] == []


def test_the_three_planted_experts_are_found(seed: int) -> None:
    fits = [
        fit_experts(groups(seed + i, 200), IqgmeConfig(), chains=4, seed=seed + i) for i in range(5)
    ]
    assert sum(int((one.experts.pi > 0.005).sum()) == 3 for one in fits) >= 4
    for one in fits:
        assert np.all(np.diff(one.bounds) >= -1e-8 * np.abs(one.bounds[1:]))


def test_joining_two_experts_gains_about_what_was_said(seed: int) -> None:
    """The bound changes at once by no less than the gain with the rows' scores held still."""
    rows = groups(seed)
    start, form = ran(rows, 25, moves=False)
    q, s, shares, at = start.experts, start.sums, start._shares(), np.arange(start.sums.n.size)
    none, gains = type(s).zero(1, q.P, q.K), {}
    for a, b in zip(*np.triu_indices(int(np.sum(s.n > 1e-4)), 1), strict=True):
        parts = (s.joined(a, b).ordered(at[[a]]), 1), (none, 1), (s.ordered(at[[a, b]]), -1)
        places = sum(sign * place_evidence(form.prior, q.P, part).sum() for part, sign in parts)
        places += assignment_gain(shares, at[[a]], at[[b]])[0]
        gain = places + sum(sign * rule_evidence(q, part).sum() for part, sign in parts)
        if max(gain, places) > 0.0:
            gains[int(a), int(b)] = float(gain)
    pairs = form.candidates(q, s, shares, 1e-4)
    assert pairs == sorted(gains, key=lambda pair: -gains[pair])
    assert gains[pairs[0]] > 0.0
    for a, b in pairs:
        if gains[a, b] > 0.0:
            rise = start._with_joined(a, b, form)._renew(rows, form, None) - start.bounds[-1]
            assert rise > gains[a, b] - 5.0


def test_assignments_gain_what_is_no_longer_said_of_rows(seed: int) -> None:
    """Twice 30 rows, each surely of one of two experts: 60 bits; shares in proportion: nothing."""
    sure = np.repeat(np.eye(2), 30, axis=1)
    assert assignment_gain([sure], *np.array([[0], [1]])) == pytest.approx(60.0 * np.log(2.0))
    even = np.outer([0.3, 0.7], np.ones(60))
    assert assignment_gain([even], *np.array([[0], [1]])) == pytest.approx(0.0, abs=1e-12)
    # Tasks that have one of the two alone gain nothing, whatever the others.
    apart = [np.outer([1.0, 0.0], np.ones(30)), np.outer([0.0, 1.0], np.ones(30))]
    assert assignment_gain(apart, *np.array([[0], [1]])) == pytest.approx(0.0, abs=1e-12)
    rho = np.random.default_rng(seed).dirichlet([0.2, 0.3, 0.5], 40).T
    one, two = assignment_gain([rho], np.array([0, 1]), np.array([2, 2]))
    share = rho[[0, 2]] / rho[[0, 2]].sum(axis=0)
    mean = rho[[0, 2]].sum(axis=1) / rho[[0, 2]].sum()
    weight = rho[[0, 2]].sum(axis=0)
    divergence = (share * np.log(np.maximum(share, 1e-300) / mean[:, None])).sum(axis=0)
    assert one == pytest.approx(weight @ divergence)
    assert two > 0.0


def test_moves_of_experts_in_another_order_are_forgotten(seed: int) -> None:
    start, _ = ran(groups(seed, 40), 4, moves=False)
    assert start.past.moves.size
    start._keep(start.sums, np.array([1, 0]))
    assert not start.past.moves.size


@pytest.mark.parametrize("many", [False, True])
def test_no_move_is_made_where_features_are_many(many: bool, seed: int) -> None:
    config = IqgmeConfig(factors=2, tolerance=1e-3)
    tables: Any = [problem(seed + j, n=12, P=101, gaps=0.1) for j in range(2 if many else 1)]
    (form,) = forms_of(config, tables)
    rng, data = np.random.default_rng(seed), tables if many else tables[0]
    begun: Any = begin_tasks if many else begin
    start = begun(data, form, config, rng, 1)
    moves: list[None] = []
    start._simpler = lambda form: iter(moves.append(None) or ())
    climbed(start, data, form, config, 200)
    assert start.converged
    assert moves == []


# Coefficients ahead of their updates ---------------------------------------------------------


def test_acceleration_finds_the_fixed_point_of_a_line_in_as_many_moves_as_it_has_axes(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    rates, point = np.array([0.99, 0.9, 0.5]), rng.normal(size=3)
    past, w = Acceleration(), np.zeros((1, 1, 3))
    for _ in range(4):
        after = point + rates * (w - point)
        ahead = past.ahead(w, after)
        w = after if ahead is None else ahead
    assert np.allclose(w, point, atol=1e-6)  # 0.99 ** 4 of the way is left without


def test_acceleration_looks_back_on_few_moves_and_forgets(seed: int) -> None:
    rng, past = np.random.default_rng(seed), Acceleration()
    for _ in range(MEMORY + 3):
        past.ahead(*rng.normal(size=(2, 2, 1, 3)))
    assert past.before.shape == past.moves.shape == (MEMORY, 6)
    assert past.ahead(*rng.normal(size=(2, 2, 1, 2))) is None  # of other experts
    past.forget()
    assert past.ahead(*rng.normal(size=(2, 2, 1, 2))) is None


@pytest.mark.parametrize("levels", [2, 4])
def test_coefficients_that_lower_the_bound_are_not_gone_on_with(
    levels: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = IqgmeConfig(experts=3)
    rows = problem(seed, n=40, levels=levels, discrete=True)

    def ascent(ahead: Any) -> Any:
        monkeypatch.setattr(Acceleration, "ahead", ahead)
        (form,) = forms_of(config, [rows])
        start = begin(rows, form, config, np.random.default_rng(seed), 0)
        climbed(start, rows, form, config, 12)
        return start

    plain = ascent(lambda past, before, after: None)
    wrong = ascent(lambda past, before, after: after + 5.0)
    assert wrong.bounds == plain.bounds
    assert np.array_equal(wrong.experts.mw, plain.experts.mw)
    assert np.array_equal(wrong.local.t, plain.local.t)


@pytest.mark.parametrize("levels", [2, 4])
def test_rows_keep_to_their_experts_without_being_placed_elsewhere(
    levels: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = IqgmeConfig(experts=6)
    rows = problem(seed, n=90, levels=levels, discrete=True)
    few: list[bool] = []
    step = fit.local_step

    def watched(*args: Any, narrow: bool) -> Any:
        few.append(narrow)
        return step(*args, narrow=narrow)

    monkeypatch.setattr(fit, "local_step", watched)
    (form,) = forms_of(config, [rows])
    found = []
    for _ in range(2):
        start = begin(rows, form, config, np.random.default_rng(seed), 1)
        climbed(start, rows, form, config, 12)
        assert np.all(np.diff(start.bounds) > -1e-5 * abs(start.bounds[-1]))
        found.append(start)
        monkeypatch.setattr(fit, "EVERY", 1)
    assert any(few)
    assert not all(few)
    assert (found[0].local.rho == 0.0).any()
    assert found[0].bounds == pytest.approx(found[1].bounds, rel=1e-6)


def test_labels_that_features_tell_well_are_learnt_in_fewer_iterations(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(seed).normal(size=(200, 3))
    every, score = np.ones(200, dtype=bool), x @ [4.0, -3.0, 2.0]
    rows = KnownRows(x, np.ones(x.shape, dtype=bool), signs(score > 0.0), every)
    config = IqgmeConfig(experts=1, tolerance=1e-12)
    (form,) = forms_of(config, [rows])
    bounds = []
    for _ in range(2):
        start = begin(rows, form, config, np.random.default_rng(seed), 0)
        climbed(start, rows, form, config, 40)
        bounds.append(start.bounds[-1])
        monkeypatch.setattr(Acceleration, "ahead", lambda past, before, after: None)
    assert bounds[0] > bounds[1] + 5.0


# Fits that predict together ------------------------------------------------------------------


def test_the_better_half_of_the_starts_predicts_by_its_weights(seed: int) -> None:
    rows = groups(seed, 60)
    config = IqgmeConfig(experts=6, iterations=30)
    fit = fit_experts(rows, config, chains=4, seed=0)
    assert len(fit.members) == 2
    weights = [member.weight for member in fit.members]
    assert weights[0] >= weights[1] > 0.0
    assert fit.experts is fit.members[0].experts
    assert fit.bounds[-1] in fit.ends
    laws = [label_law(rows, member.experts) for member in fit.members]
    each = [above(law) for law in laws]
    together = above(LabelLaw.average(laws, weights))
    assert np.allclose(together, weights[0] * each[0] + weights[1] * each[1])


def test_the_best_may_predict_alone(seed: int) -> None:
    config = IqgmeConfig(experts=6, iterations=30, average=False)
    fit = fit_experts(groups(seed, 60), config, chains=4, seed=0)
    assert [member.weight for member in fit.members] == [1.0]


@pytest.mark.parametrize(("labelled", "forms"), [(240, 2), (241, 1), (0, 1)])
def test_forms_are_by_the_rows_with_labels(labelled: int, forms: int) -> None:
    x = np.random.default_rng(0).standard_normal((300, 12))
    rows = KnownRows(x, np.ones(x.shape, dtype=bool), signs(x[:, 0] > 0), np.arange(300) < labelled)
    assert len(forms_of(IqgmeConfig(), [rows])) == forms


def test_weights_follow_the_bounds_on_the_scale_of_an_experts_numbers() -> None:
    rows = groups(0, 30)
    forms = forms_of(CONFIG, [rows])
    slack = forms[0].numbers(1)
    assert slack == 2 + 3 + 3  # a centre, a covariance and a rule of two features
    weights = weights_of([-10.0, -10.0 - slack, -10.0], forms, 1)
    assert sum(weights) == pytest.approx(1.0)
    assert weights[1] == pytest.approx(weights[0] * np.exp(-1.0))
    assert weights[0] == weights[2]


def test_starts_come_in_both_forms_where_features_are_many() -> None:
    auto = IqgmeConfig()
    assert forms_for(auto, 300, 34, 300) == (0, 15)  # half of the starts each
    assert forms_for(auto, 100, 34, 100) == (15, 0)  # features outnumber a fifth of the rows
    assert forms_for(auto, 1000, 34, 1000) == (0,)
    assert forms_for(auto, 120, 620, 120) == (15,)
    assert forms_for(auto, 100, 9, 100) == (0,)
    assert forms_for(IqgmeConfig(average=False), 100, 34, 100) == (15,)
    assert forms_for(IqgmeConfig(average=False), 300, 34, 300) == (0,)
    assert forms_for(IqgmeConfig(factors=3), 300, 34, 300) == (3,)
    assert forms_for(auto, 1000, 34, 680) == (0, 15)  # labels are for rules, rows for places
    assert forms_for(auto, 1000, 34, 681) == (0,)
    assert what_forms(auto, 300, 9, 300, 8) is None
    assert what_forms(auto, 300, 34, 300, 1) is None
    assert "more than a fifth of the 100 rows" in str(what_forms(auto, 100, 34, 100, 1))
    assert "half of the starts" in str(what_forms(auto, 300, 34, 300, 2))
    assert "one for 20 of the 60 labelled rows" in str(what_forms(auto, 1000, 34, 60, 2))
