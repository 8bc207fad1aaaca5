"""Cells of groups without a value of a column have corrections of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glfm_cli import GlfmError, Schema, impute
from glfm_cli.arrays import Array, Groups
from glfm_cli.completion.prepare import prepare
from glfm_cli.inference.hidden_cells import recalibrate, stacked_forecasts, without_cells
from glfm_cli.inference.hiding import TIMES, chosen_cells, worth_of_cells
from glfm_cli.inference.joint_draws import JointDraws
from glfm_cli.inference.lone_cells import groups_without, lone_columns, of_rows
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import predict
from glfm_cli.inference.recalibration import KNOTS, Recalibration
from glfm_cli.inference.sampling import sample
from glfm_cli.inference.scoring import forecasts, log_scores
from glfm_cli.inference.stacking import SHRINK, best_weights, stacked
from glfm_cli.latent.capabilities import Candidates
from glfm_cli.latent.model import Problem
from glfm_cli.store import load_fit

G, EACH = 40, 6
TYPES = {"columns": {"firm": {"role": "group"}, "x": "real", "y": "real", "n": "count",
                     "k": "categorical"}}  # fmt: skip
SHORT = {"chains": 6, "warmup": 12, "draws": 10, "thin": 1, "seed": 3}


def firms(seed: int) -> tuple[pa.Table, dict[str, Array], Array]:
    """Return a table of firms, some of which lack columns, its values, and what was hidden."""
    rng = np.random.default_rng(seed)
    code = np.repeat(np.arange(G), EACH)
    x, y = rng.normal(size=(2, G))[:, code] + 0.2 * rng.normal(size=(2, code.size))
    n = rng.poisson(np.exp(1.0 + 0.6 * y)).astype(float)
    k = (x + 0.3 * rng.normal(size=code.size) > 0.0).astype(float)
    values = {"x": x, "y": y, "n": n, "k": k}
    gone = rng.random((code.size, 4)) < 0.1
    for d in (1, 2, 3):
        gone[:, d] |= np.isin(code, rng.choice(G, 10, replace=False))
    columns = {
        name: pa.array(column, mask=gone[:, d]) for d, (name, column) in enumerate(values.items())
    }
    columns["n"] = columns["n"].cast(pa.int64())
    columns["k"] = pa.array(np.array(["a", "b"])[k.astype(int)], mask=gone[:, 3])
    return pa.table({"firm": [f"f{g}" for g in code], **columns}), values, gone


@cache
def fitted(model: str = "glfm") -> tuple[Problem, Posterior]:
    problem, _, plan = prepare(firms(1)[0], Schema.from_dict(TYPES), model=model, **SHORT)
    return problem, sample(problem, plan).posterior


@cache
def corrected(model: str = "glfm") -> Posterior:
    problem, posterior = fitted(model)
    return recalibrate(posterior, problem)


def unlike(problem: Problem, posterior: Posterior) -> tuple[Recalibration, Recalibration]:
    """Return a correction, and the same with one of lone cells that differs much."""
    n, weights = len(problem.links), [None, None]
    if isinstance(posterior.model, Candidates):
        models = np.eye(len(posterior.model.candidates))
        weights = [np.tile(models[which], (n, 1)) for which in (0, 3)]  # glfm, and trees
    near = Recalibration.alike(np.full(n, 0.7), np.tile([0.3, -0.2, 0.0, 0.0], (n, 1)), weights[0])
    lone = Recalibration.alike(np.full(n, 1.6), np.tile([-0.3, 0.4, 0.0, 0.1], (n, 1)), weights[1])
    assert problem.groups is not None
    without = groups_without(problem.groups, problem.seen)
    without[:, 0] = False
    return near, replace(near, lone=lone, without=without)


@given(st.data())
def test_cells_are_lone_where_no_row_of_their_group_has_a_value(data: st.DataObject) -> None:
    known = data.draw(st.integers(0, 4))  # groups of the fit, of which new rows are, or of others
    n = data.draw(st.integers(1, 12))
    code = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)))
    cells = st.lists(st.booleans(), min_size=3 * n, max_size=3 * n)
    seen = np.array(data.draw(cells)).reshape(n, 3)
    flags = st.lists(st.booleans(), min_size=3 * known, max_size=3 * known)
    without = np.array(data.draw(flags), dtype=bool).reshape(known, 3)
    problem, posterior = fitted()
    nothing = np.zeros((3, 2))
    by = Recalibration(nothing + 1.0, np.zeros((3, KNOTS, 4)), nothing)
    by = replace(by, lone=by, without=without)
    found = of_rows(
        replace(posterior, recalibration=by), Groups(code, ("g",) * max(known, 1)), seen
    ).lone
    assert found is not None
    told = without.any(axis=0)  # the columns that have such corrections
    for row in range(n):
        for d in range(3):
            has = seen[code == code[row], d].any()
            has |= code[row] < known and not without[min(code[row], known - 1), d]
            assert found[row, d] == (told[d] and not has)
    assert of_rows(posterior, problem.groups, problem.seen).lone is None


def test_only_columns_that_several_groups_lack_are_told_apart() -> None:
    problem, _ = fitted()
    assert lone_columns(problem).tolist() == [1, 2, 3]
    assert problem.groups is not None
    one = replace(problem, group_level=(2,))
    assert lone_columns(one).tolist() == [1, 3]
    assert lone_columns(replace(problem, groups=None)).size == 0
    singles = replace(problem, groups=replace(problem.groups, code=np.arange(G * EACH)))
    assert lone_columns(singles).size == 0  # each row has itself alone, known or not


def test_all_cells_of_a_group_are_hidden_once_and_together() -> None:
    problem, posterior = fitted()
    assert problem.groups is not None
    times = np.zeros((G, 4), dtype=int)
    for time in range(TIMES):
        rows, chosen = chosen_cells(problem, time, lone=True)
        assert np.array_equal(rows, np.arange(G * EACH))
        assert not chosen[:, 0].any()
        for d in (1, 2, 3):
            hit = np.unique(problem.groups.code[chosen[:, d]])
            inside = np.isin(problem.groups.code, hit)
            assert np.array_equal(chosen[:, d], inside & problem.seen[:, d])
            times[hit, d] += 1
        hidden = without_cells(posterior, problem, time, lone=True)[1]
        for d, (at, _) in hidden.items():
            assert np.array_equal(at, np.flatnonzero(chosen[:, d]))
    has = ~groups_without(problem.groups, problem.seen)
    assert np.array_equal(times[:, 1:], has[:, 1:])
    counts = worth_of_cells(problem, TIMES, lone=True)
    np.testing.assert_allclose(counts[1:], has[:, 1:].sum(axis=0) / problem.seen[:, 1:].sum(axis=0))
    assert worth_of_cells(problem, TIMES).tolist() == [1.0] * 4


def test_weights_are_drawn_to_those_of_other_cells() -> None:
    log_p = np.log(np.random.default_rng(2).random((30, 3)))
    prior = np.array([[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]])
    counts = np.array([0.2, 1.0])
    found = stacked({0: log_p}, np.ones(3, dtype=bool), counts, prior)
    np.testing.assert_array_equal(found[1], prior[1])
    w = found[0]
    p = np.exp(log_p)
    slope = 0.2 * (p / (p @ w)[:, None]).sum(axis=0) + SHRINK * prior[0] / w
    np.testing.assert_allclose(slope, slope.mean(), rtol=1e-4)  # at its largest score
    np.testing.assert_array_equal(w, best_weights(log_p, SHRINK / 0.2 * prior[0]))


@pytest.mark.parametrize("model", ["glfm", "auto"])
def test_forecasts_of_lone_cells_are_those_of_their_own_corrections(model: str) -> None:
    problem, posterior = fitted(model)
    near, both = unlike(problem, posterior)
    whole = of_rows(replace(posterior, recalibration=both), problem.groups, problem.seen)
    assert both.lone is not None
    missing = {d: np.flatnonzero(~problem.seen[:, d]) for d in range(4)}
    at = (0.05, 0.5, 0.95)
    truth = {d: np.full(rows.size, 1.0) for d, rows in missing.items()}
    parts = [
        (predict(one, missing, at), log_scores(one, missing, truth),
         forecasts(one, {d: (rows, truth[d]) for d, rows in missing.items()}))
        for one in (whole, *(replace(posterior, recalibration=by) for by in (near, both.lone)))
    ]  # fmt: skip
    assert whole.lone is not None
    for d, rows in missing.items():
        lone = whole.lone[rows, d]
        assert lone.any() == (d > 0)
        assert not lone.all()
        found, *others = ([m[d].mean, m[d].sd, s[d], f[d]] for m, s, f in parts)
        for mine, by_near, by_lone in zip(found, *others, strict=True):
            expected = by_near.copy()
            expected[lone] = by_lone[lone]
            np.testing.assert_allclose(mine, expected, rtol=1e-4)  # by grids of each block
        assert np.array_equal(parts[0][0][d].rows, rows)


@pytest.mark.parametrize(("model", "near"), [("glfm", True), ("glfm", False), ("auto", True)])
def test_joint_draws_of_lone_cells_are_of_their_forecasts(model: str, near: bool) -> None:
    problem, posterior = fitted(model)
    _, both = unlike(problem, posterior)
    if not near:  # nothing is to be corrected of the others
        both = replace(both, exponents=np.ones((4, 2)), tilts=np.zeros((4, KNOTS, 4)))
    whole = of_rows(replace(posterior, recalibration=both), problem.groups, problem.seen)
    assert whole.lone is not None
    missing = {d: np.flatnonzero(~problem.seen[:, d]) for d in (1, 2, 3)}
    joint, rng = JointDraws(whole, missing), np.random.default_rng(5)
    drawn = [joint.draw(rng) for _ in range(400)]
    at = (0.2, 0.5, 0.8)
    found = predict(whole, missing, at)
    for d, rows in missing.items():
        x = np.array([one[d] for one in drawn])
        lone = whole.lone[rows, d]
        for cells in (lone, ~lone):
            p = found[d].probabilities
            if p is not None:
                shares = [np.mean(x[:, cells] == level) for level in range(p.shape[1])]
                np.testing.assert_allclose(shares, p[cells].mean(axis=0), atol=0.03)
                continue
            for j, share in enumerate(at):
                q = found[d].quantiles[cells, j]
                below, upto = np.mean(x[:, cells] < q), np.mean(x[:, cells] <= q)
                assert below - 0.03 < share < upto + 0.03


def test_corrections_of_lone_cells_are_learnt_from_whole_groups() -> None:
    by = corrected("glfm").recalibration
    assert by is not None
    assert by.lone is not None
    problem, posterior = fitted()
    plain = recalibrate(posterior, replace(problem, group_level=(1, 2, 3)))
    assert plain.lone is None
    assert plain.recalibration is not None
    assert plain.recalibration.lone is None
    assert not np.array_equal(by.lone.tilts, by.tilts)
    assert by.without is not None
    assert not by.without[:, 0].any()
    assert np.array_equal(by.without[:, 1:].sum(axis=0) >= 10, [True] * 3)


def test_weights_of_lone_cells_are_learnt_from_whole_groups_each_of_which_counts_once() -> None:
    problem, posterior = fitted("auto")
    by = corrected("auto").recalibration
    assert by is not None
    assert by.lone is not None
    assert by.lone.weights is not None
    parts = [without_cells(posterior, problem, time, lone=True) for time in range(TIMES)]
    truth = {d: np.concatenate([hidden[d][1] for _, hidden in parts]) for d in (1, 2, 3)}
    worth = worth_of_cells(problem, TIMES, lone=True)
    expected = stacked_forecasts(parts, truth, 5, worth, by.weights)[1]
    np.testing.assert_array_equal(by.lone.weights, expected)
    assert np.abs(by.lone.weights[1:] - by.weights[1:]).max() > 0.02
    assert np.array_equal(by.lone.weights[0], by.weights[0])


def test_a_saved_fit_keeps_them_for_its_rows_and_for_new_ones(tmp_path: Path) -> None:
    table, folder = firms(1)[0], tmp_path / "fit.glfm"
    done = impute(table, TYPES, model="glfm", save=folder, **SHORT)
    kept, loaded = done.posterior, load_fit(folder).posterior
    assert kept.recalibration is not None
    assert kept.recalibration.lone is not None
    assert loaded.recalibration is not None
    assert loaded.recalibration.lone is not None
    np.testing.assert_array_equal(loaded.recalibration.without, kept.recalibration.without)
    for name in ("exponents", "tilts", "log_sds"):
        one, other = (getattr(by.recalibration.lone, name) for by in (loaded, kept))  # type: ignore[union-attr]
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(loaded.lone, kept.lone)
    assert impute(table, fit=folder).cells().equals(done.cells())
    bare = tmp_path / "bare.glfm"
    impute(table, TYPES, model="glfm", save=bare, with_data=False, **SHORT)
    assert impute(table, fit=bare).cells().equals(done.cells())
    # New rows of a firm with values, of one without, and of one that nobody knows.
    assert kept.recalibration.without is not None
    lacking = kept.recalibration.without[:, 1]
    names = [f"f{np.flatnonzero(lacking == which)[0]}" for which in (False, True)]
    new = pa.table({"firm": [*names, "new"], "x": [0.1, 0.2, 0.3], "y": pa.nulls(3, pa.float64()),
                    "n": [1, 2, 3], "k": ["a", "b", "a"]})  # fmt: skip
    found = impute(new, fit=folder).posterior.lone
    assert found is not None
    assert found[:, 1].tolist() == [False, True, True]


@pytest.mark.parametrize(
    "wrong", [None, [[]], [[], [], [], [G]], [[], [], [], [-1]], [[], [], [], ["a"]]]
)
def test_groups_that_do_not_exist_are_refused(tmp_path: Path, wrong: object) -> None:
    folder = tmp_path / "fit.glfm"
    impute(firms(1)[0], TYPES, model="glfm", save=folder, **SHORT)
    header = folder / "run.json"
    content = json.loads(header.read_text())
    content["recalibration"]["without"] = wrong
    header.write_text(json.dumps(content))
    with pytest.raises(GlfmError, match="recalibration"):
        load_fit(folder)


def test_a_run_does_not_depend_on_threads_or_on_what_was_found_before() -> None:
    problem, posterior = fitted("auto")
    folded: dict[int, object] = {}
    first = replace(posterior, chains=posterior.chains[:-1])
    recalibrate(first, problem, folded=folded)  # type: ignore[arg-type]
    steps: list[tuple[int, int]] = []
    after = recalibrate(
        posterior, problem, folded=folded, threads=2,  # type: ignore[arg-type]
        told=lambda sets, of: steps.append((sets, of)),
    )  # fmt: skip
    by, again = corrected("auto").recalibration, after.recalibration
    assert by is not None
    assert again is not None
    assert by.lone is not None
    assert again.lone is not None
    np.testing.assert_array_equal(by.lone.weights, again.lone.weights)
    np.testing.assert_array_equal(by.lone.tilts, again.lone.tilts)
    assert steps == [(k, 2 * TIMES) for k in range(2 * TIMES + 1)]


def test_intervals_of_groups_without_a_value_are_wide_enough() -> None:
    code, held, types = np.repeat(np.arange(60), 8), [], {"firm": {"role": "group"}}
    types |= dict.fromkeys(["x", "y"], "real")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_t(4, (2, 60))[:, code] + 0.05 * rng.normal(size=(2, code.size))
        y += x
        gone = np.isin(code, rng.choice(60, 15, replace=False))
        table = pa.table({"firm": [f"f{g}" for g in code], "x": x, "y": pa.array(y, mask=gone)})
        how = {"model": "bsvd", "chains": 2, "warmup": 50, "draws": 20, "thin": 1, "seed": seed}
        cells = impute(table, {"columns": types}, **how).cells()
        low, high = (np.array(cells[name].to_pylist(), float) for name in ("lower", "upper"))
        held.append(np.mean((low <= y[gone]) & (y[gone] <= high)))
    assert np.mean(held) > 0.88  # 0.83 to 0.85 by corrections of cells with others in their group
