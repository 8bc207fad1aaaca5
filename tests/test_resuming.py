"""Chains that go on from kept draws without some cells: where they start, and what they forget."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.completion import prepare
from glfm_cli.inference import hiding
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.hidden_cells import Hidden, recalibrate, without_cells
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.predictive import predict
from glfm_cli.inference.resuming import but_of_regrown, regrown, resume_chain, resumed
from glfm_cli.inference.sampling import Plan, sample
from glfm_cli.inference.scoring import scores_and_forecasts
from glfm_cli.latent.capabilities import Regrows, Resumes
from glfm_cli.latent.model import LatentModel, Problem
from glfm_cli.schema import Schema
from glfm_cli.streams import Streams

MODELS = {
    "glfm": ("glfm", {}),
    "linear": ("glfm", {"components": 2}),
    "mixture": ("mixture", {"components": 4}),
}


def table_of(n_rows: int, n_columns: int, seed: int) -> pa.Table:
    """Numbers that follow four factors, a count and levels; a tenth of the cells is missing."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n_rows, 4))
    x = factors @ rng.standard_normal((4, n_columns)) + rng.standard_normal((n_rows, n_columns))
    columns = {f"x{d}": x[:, d] for d in range(n_columns)}
    columns["n"] = rng.poisson(np.exp(1.0 + 0.5 * factors[:, 0]))
    columns["o"] = np.digitize(factors[:, 1], [-0.5, 0.5])
    return pa.table({k: pa.array(v, mask=rng.random(n_rows) < 0.1) for k, v in columns.items()})


def fitted(
    table: pa.Table,
    model: str = "glfm",
    settings: dict[str, object] | None = None,
    chains: int = 2,
) -> tuple[Problem, Posterior]:
    types = dict.fromkeys(table.column_names, "real") | {"n": "count", "o": "ordinal"}
    problem, _, plan = prepare(
        table, Schema.from_dict({"columns": types}), model=model, settings=settings or {},
        chains=chains, warmup=30, draws=16, thin=2, seed=5,
    )  # fmt: skip
    return problem, sample(problem, plan).posterior


def packed(model: LatentModel, draw: Draw) -> dict[str, bytes]:
    return {key: value.tobytes() for key, value in model.pack(draw.latent).items()}


def masked(problem: Problem, hidden: Hidden) -> Problem:
    xs = [x.copy() for x in problem.xs]
    for d, (at, _) in hidden.items():
        xs[d][at] = np.nan
    return replace(problem, xs=tuple(xs))


def error_of(posterior: Posterior, hidden: Hidden) -> float:
    """Return the root mean square error of forecasts of the real cells."""
    found = predict(posterior, {d: at for d, (at, _) in hidden.items()})
    real = [d for d in hidden if posterior.links[d].name.startswith("x")]
    return float(
        np.sqrt(np.mean(np.concatenate([found[d].mean - hidden[d][1] for d in real]) ** 2))
    )


def log_score(posterior: Posterior, hidden: Hidden) -> float:
    """Return the median log density of hidden cells."""
    truth = {d: x for d, (_, x) in hidden.items()}
    scores = scores_and_forecasts(posterior, hidden, truth)[0]
    return float(np.median(np.concatenate(list(scores.values()))))


@pytest.mark.parametrize("name", MODELS)
def test_a_chain_goes_on_from_where_the_draw_is(name: str) -> None:
    problem, posterior = fitted(table_of(30, 5, 0), *MODELS[name])
    draw = posterior.chains[1][-1]
    chain = resume_chain(problem, draw, Streams(9, 0))
    again, packed = (problem.model.pack(one) for one in (chain.keep().latent, draw.latent))
    assert again.keys() == packed.keys()
    for key, value in packed.items():
        np.testing.assert_allclose(again[key], value, rtol=1e-9, err_msg=key)
    for ours, theirs in zip(chain.params, draw.params, strict=True):
        for key, value in theirs.items():
            np.testing.assert_array_equal(ours[key], value)
    missing = ~problem.seen[:, :5]
    assert missing.any(axis=0).sum() > 2
    y, eta = chain.cells.y[:, :5], chain.eta[:, :5]
    for d, x in enumerate(problem.xs[:5]):
        start = problem.links[d].start(x)[1]
        np.testing.assert_array_equal(y[~missing[:, d], d], start.ravel()[~missing[:, d]])
    assert (np.abs(y - eta)[missing] > 0.0).all()


def test_features_that_no_row_has_are_left_out() -> None:
    problem, posterior = fitted(table_of(30, 5, 0))
    draw = posterior.chains[0][0]
    Z = np.unpackbits(draw.latent.bits, axis=1, count=draw.latent.n_columns)
    Z[:, 2] = 0
    lonely = replace(draw, latent=replace(draw.latent, bits=np.packbits(Z, axis=1)))
    chain = resume_chain(problem, lonely, Streams(9, 0))
    kept = np.delete(np.arange(Z.shape[1]), 2)
    np.testing.assert_array_equal(chain.keep().latent.B, draw.latent.B[kept])
    chain.sweep(adapt=False)


@pytest.mark.parametrize("name", MODELS)
def test_of_few_rows_hidden_cells_are_forecast_as_by_refits(name: str) -> None:
    """Where weights are not far fewer than rows, those drawn with a cell in view know it."""
    problem, posterior = fitted(table_of(40, 10, 1), *MODELS[name])
    parts = [without_cells(posterior, problem, time) for time in range(4)]
    errors = []
    for folded, hidden in parts:
        less = masked(problem, hidden)
        refit = sample(less, Plan(2, 100, 8, 2, 8)).posterior
        rows_alone = fold_in(posterior.thinned(16), less, seed=0)
        errors.append([error_of(one, hidden) for one in (folded, refit, rows_alone)])
    found, refit_error, seen = np.mean(errors, axis=0)
    assert found == pytest.approx(refit_error, rel=0.15)
    assert seen < 0.85 * refit_error


def smooth(n_rows: int, seed: int) -> pa.Table:
    """Columns that are sines of two numbers, without noise; a tenth of the cells is missing."""
    rng = np.random.default_rng(seed)
    x = np.sin(rng.uniform(-2.0, 2.0, (n_rows, 2)) @ rng.normal(size=(2, 8)) + rng.uniform(0, 6, 8))
    gone = rng.random(x.shape) < 0.1
    return pa.table({f"x{d}": pa.array(x[:, d], mask=gone[:, d]) for d in range(8)})


@pytest.mark.parametrize("some_rows", [False, True])
def test_trees_forecast_hidden_cells_as_refits_do(
    some_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those few of a draw that have not seen a cell forecast it worse than all will."""
    if some_rows:
        monkeypatch.setattr(hiding, "ALL_ROWS", 100)
        monkeypatch.setattr(hiding, "ROWS", 120)
    found = []
    for seed in (1, 2, 3, 4):
        table = smooth(240, seed)
        schema = Schema.from_dict({"columns": dict.fromkeys(table.column_names, "real")})
        length = {"chains": 2, "warmup": 20, "draws": 8, "thin": 2, "seed": 5}
        problem, _, plan = prepare(table, schema, model="forest", **length)
        posterior = sample(problem, plan).posterior
        for time in range(2):
            folded, hidden = without_cells(posterior, problem, time)
            rows = folded.chains[0][0].latent.own
            of_all = {d: (rows[at], x) for d, (at, x) in hidden.items()}
            refit = sample(masked(problem, of_all), Plan(2, 20, 2, 2, 8)).posterior
            errors = error_of(folded, hidden), error_of(refit, of_all)
            found.append((*errors, log_score(folded, hidden), log_score(refit, of_all)))
    error, error_of_refit, score, score_of_refit = np.mean(found, axis=0)
    assert error == pytest.approx(error_of_refit, rel=0.15)
    assert score > score_of_refit - 0.15


def test_candidates_that_go_on_are_weighed_by_what_they_have_not_seen() -> None:
    problem, posterior = fitted(table_of(40, 6, 1), "auto", {"forest": 1, "linear": 1, "glfm": 1})
    few = replace(posterior, chains=tuple(chain[:2] for chain in posterior.chains))
    again, at_once = (resumed(few, problem, seed=0, sweeps=n, draws=2) for n in (1, 0))
    folded = fold_in(few, problem, seed=0)
    assert again.groups == few.groups
    model = problem.model
    chains = again.chains, at_once.chains, folded.chains, few.groups
    for ours, first, theirs, which in zip(*chains, strict=True):
        goes_on = isinstance(model.problem_of(problem, which).model, Resumes)
        same = [packed(model, a) == packed(model, b) for a, b in zip(ours, theirs, strict=True)]
        assert same == [not goes_on] * 2
        assert packed(model, ours[0]) != packed(model, ours[1])
        assert (packed(model, ours[0]) == packed(model, first[0])) == (not goes_on)


def test_trees_alone_are_grown_anew_by_each_chain_from_its_last_draw() -> None:
    settings = {"forest": 1, "linear": 1, "glfm": 0}
    problem, posterior = fitted(table_of(40, 6, 1), "auto", settings, 4)
    model, rows = problem.model, np.arange(0, 40, 2)
    trees = [isinstance(model.problem_of(problem, k).model, Regrows) for k in posterior.groups]
    assert sorted(set(trees[1:])) == [False, True]
    kept = but_of_regrown(posterior, problem)
    how = {"seed": 0, "sweeps": 1, "draws": 2}
    found = regrown(kept, posterior, problem, rows, **how)
    chains = posterior.chains, kept.chains, found.chains, trees
    for fitted_chain, kept_chain, chain, regrow in zip(*chains, strict=True):
        if not regrow:
            assert kept_chain is chain is fitted_chain
            continue
        assert len(kept_chain) == 1
        assert kept_chain[0] is fitted_chain[-1]
        assert len(chain) == 2
        assert packed(model, chain[0]) != packed(model, chain[1])
        for draw in chain:
            np.testing.assert_array_equal(model.own(draw.latent).own, rows)
    # Without the first chain, and all draws but the last, the others are as they were.
    later = replace(kept, chains=kept.chains[1:])
    again = regrown(later, later, problem, rows, **how, first=1)
    for ours, theirs in zip(again.chains, found.chains[1:], strict=True):
        assert [packed(model, a) for a in ours] == [packed(model, b) for b in theirs]


@pytest.mark.parametrize("seed", [0, 1])
def test_some_cells_are_hidden_whatever_made_the_gaps(seed: int) -> None:
    """Also where a generator with a plain seed made them, a column at a time."""
    x = np.random.default_rng(7).standard_normal((200, 3))
    rng = np.random.default_rng(seed)
    gone = [rng.random(200) < 0.5 for _ in range(3)]
    table = pa.table({f"x{d}": pa.array(x[:, d], mask=gone[d]) for d in range(3)})
    schema = Schema.from_dict({"columns": dict.fromkeys(table.column_names, "real")})
    problem, _, plan = prepare(
        table, schema, model="glfm", chains=2, warmup=2, draws=2, thin=1, seed=0
    )
    posterior = sample(problem, plan).posterior
    for time in range(4):
        hidden = without_cells(posterior, problem, time)[1]
        assert all(at.size >= 4 for at, _ in hidden.values())


def test_corrections_of_few_rows_do_not_depend_on_threads() -> None:
    problem, posterior = fitted(table_of(40, 6, 1))
    one, two = (recalibrate(posterior, problem, threads=n).recalibration for n in (1, 2))
    assert one is not None
    assert two is not None
    np.testing.assert_array_equal(one.exponents, two.exponents)
    np.testing.assert_array_equal(one.tilts, two.tilts)
