"""How far estimates would move with another seed: stated, true, and brought to a goal."""

from __future__ import annotations

import math
import sys
from copy import copy
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import norm

from glfm_cli.completion import Files, impute, judge, plan_imputation, verdict
from glfm_cli.completion.verdict import chain_count
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.precision import (
    CELLS,
    CHANCE,
    GOAL,
    MARGIN,
    Precision,
    _drift,
    _some,
    measure_precision,
)
from glfm_cli.inference.predictive import chain_means, predict
from glfm_cli.inference.run import Plan
from glfm_cli.options import MatrixOptions, Sampling, Saving, Scaling

TYPES = {"columns": {"a": {"type": "real"}, "b": {"type": "real"}, "c": {"type": "categorical"}}}
RECALIBRATED: dict[str, Any] = {"model": "glfm", "warmup": 15, "draws": 6, "thin": 1, "threads": 1}
SHORT = RECALIBRATED | {"settings": {"recalibrate": False}}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(5)
    a = rng.normal(size=60)
    b = a + 0.5 * rng.normal(size=60)
    c = np.where(a + rng.normal(size=60) > 0, "yes", "no").astype(object)
    hidden = rng.random((3, 60)) < 0.25
    return pa.table(
        {name: pa.array(x, mask=m) for name, x, m in zip("abc", (a, b, c), hidden, strict=True)}
    )


def precision(**changes: object) -> Precision:
    base = {"cells": 9, "chains": 4, "typical": 0.3, "most": 0.9, "drift": 0.0}
    return Precision(**{**base, **changes})  # type: ignore[arg-type]


def moves(runs: list[Posterior], cells: dict[int, np.ndarray]) -> np.ndarray:
    """Return by how far the estimates of every two runs differ, in units of the cells' sd."""
    found = [list(chain_means(posterior, cells).values()) for posterior in runs]
    mean = np.array([np.concatenate([x.whole.mean(axis=0) for x in run]) for run in found])
    var = np.array([np.concatenate([x.sd**2 for x in run]) for run in found])
    return np.concatenate(
        [
            np.abs(mean[i] - mean[j]) / np.sqrt((var[i] + var[j]) / 2)
            for i, j in combinations(range(len(runs)), 2)
        ]
    )


def test_the_stated_error_is_that_between_seeds(table: pa.Table) -> None:
    # 12 runs of 8 chains each: how far every two differ, and what each says of itself.
    runs = [impute(table, TYPES, seed=s, chains=8, **RECALIBRATED) for s in range(12)]
    cells = {d: np.flatnonzero(e.requested) for d, e in enumerate(runs[0].data.columns)}
    real = moves([run.posterior for run in runs], cells)
    typical, most = np.quantile(real, (0.5, 0.95))
    assert np.mean([run.precision.typical for run in runs]) == pytest.approx(typical, rel=0.2)
    assert np.mean([run.precision.most for run in runs]) == pytest.approx(most, rel=0.2)


def test_mcse_of_a_cell_is_that_of_its_chains(table: pa.Table) -> None:
    done = impute(table, TYPES, chains=5, **SHORT)
    part = done.columns[0]
    means = [
        predict(replace(done.posterior, chains=(chain,)), {0: part.marginal.rows})[0].mean
        for chain in done.posterior.chains
    ]
    expected = np.std(means, axis=0, ddof=1) / math.sqrt(5)
    np.testing.assert_allclose(part.marginal.mcse, expected, rtol=1e-9)


def test_mcse_of_a_level_is_that_of_its_probability_in_chains(table: pa.Table) -> None:
    done = impute(table, TYPES, chains=5, **SHORT)
    posterior = replace(done.posterior, recalibration=None)
    cells = {2: done.columns[2].marginal.rows}
    found = predict(posterior, cells)[2]
    assert found.probabilities is not None
    best = found.probabilities.argmax(axis=1)
    p = [
        predict(replace(posterior, chains=(chain,)), cells)[2].probabilities
        for chain in posterior.chains
    ]
    of_best = np.array(p)[:, np.arange(best.size), best]
    expected = np.std(of_best, axis=0, ddof=1) / math.sqrt(5)
    np.testing.assert_allclose(found.mcse, expected, rtol=1e-9)


def test_one_chain_tells_nothing(table: pa.Table) -> None:
    done = impute(table, TYPES, chains=1, **SHORT)
    assert np.isnan(done.columns[0].marginal.mcse).all()
    assert done.cells()["mcse"].null_count == done.n_completed
    assert not done.precision.good
    assert done.precision.chains_needed == 8
    assert "several chains" in done.precision.summary()
    assert "use --chains" not in done.precision.summary(stopped=True)


def test_nothing_to_estimate_is_precise() -> None:
    assert precision(cells=0, typical=math.nan).good


def test_the_chains_needed_follow_the_root_law() -> None:
    found = precision(typical=2 * GOAL)
    assert found.chains_needed == math.ceil(MARGIN * 4 * 4)
    assert precision(typical=GOAL).chains_needed == 4
    assert f"--chains {found.chains_needed}, which takes about 45 s" in found.summary(10.0)


def test_a_drift_that_all_chains_share_is_found(table: pa.Table) -> None:
    done = impute(table, TYPES, chains=12, **SHORT)
    cells = {0: np.flatnonzero(done.data.columns[0].requested)}
    assert judge(done.posterior, done.data, 0).drift == 0.0
    # The same draws, in the second half of every chain with all weights of column 0 raised.
    chains = tuple(
        tuple(raised(draw) if t >= len(chain) // 2 else draw for t, draw in enumerate(chain))
        for chain in done.posterior.chains
    )
    moved = replace(done.posterior, chains=chains)
    found = measure_precision(moved, cells, np.random.default_rng(0))
    assert found.drift > 0.3
    assert not found.good


def test_what_chains_share_by_chance_is_no_drift() -> None:
    rng = np.random.default_rng(1)
    found = [_drift(rng.standard_normal((12, 5)), rng) for _ in range(300)]
    assert np.mean(np.array(found) > 0.0) < 4 * CHANCE


def test_a_drift_is_what_chance_leaves_of_it() -> None:
    rng = np.random.default_rng(2)
    shared = 0.5 * rng.choice([-1.0, 1.0], 4_000)
    moved = shared + 1.5 * rng.standard_normal((10, 4_000))
    assert _drift(moved, rng) == pytest.approx(0.5, abs=0.03)  # 0.69 with what is by chance


def test_halves_of_chains_are_chains_of_half_the_draws(table: pa.Table) -> None:
    done = impute(table, TYPES, chains=2, **SHORT)
    cells = {d: np.flatnonzero(e.requested) for d, e in enumerate(done.data.columns)}
    found = chain_means(done.posterior, cells)
    chains = done.posterior.chains
    for name, half in (("first", slice(None, 3)), ("second", slice(3, None)), ("whole", slice(6))):
        own = replace(done.posterior, chains=tuple(chain[half] for chain in chains))
        for d, means in chain_means(own, cells).items():
            if done.data.columns[d].levels:  # of the level that is likeliest in all draws
                continue
            np.testing.assert_allclose(getattr(found[d], name), means.whole, rtol=1e-9)


def test_some_of_many_cells_are_cells_each_once() -> None:
    rows = {0: 2 * np.arange(300), 2: np.arange(0), 3: 1 + np.arange(150)}
    for seed in range(20):
        found = _some(rows, 450, np.random.default_rng(seed))
        assert sum(own.size for own in found.values()) == CELLS
        for d, own in found.items():
            assert np.all(np.diff(own) > 0)
            assert np.isin(own, rows[d]).all()


def test_chains_are_worth_the_draws_whose_means_move_as_far() -> None:
    # Means of 40 draws of unit variance differ by N(0, 2 / 40), half of them by less than this.
    typical = norm.ppf(0.75) * math.sqrt(2.0 / 40.0)
    assert precision(typical=typical).worth == pytest.approx(40.0, rel=1e-3)


def raised(draw: Draw) -> Draw:
    latent = replace(draw.latent, B=draw.latent.B.copy())
    latent.B[0, 0] += 1.0  # the bias, which every row has
    return replace(draw, latent=latent)


@pytest.mark.parametrize("threads", [1, 3])
def test_chains_run_until_the_goal_holds(table: pa.Table, threads: int) -> None:
    options = {**SHORT, "threads": threads}
    done = impute(table, TYPES, chains=3, precision=0.12, **options)
    assert done.precision.typical <= 0.12
    n_chains = len(done.posterior.chains)
    assert n_chains > 3
    plain = impute(table, TYPES, chains=n_chains, **SHORT)
    assert done.table.equals(plain.table)
    assert done.precision.to_dict() == {**plain.precision.to_dict(), "goal": 0.12}


def test_a_kept_run_takes_more_chains(table: pa.Table, tmp_path: Path) -> None:
    folder = tmp_path / "fit.glfm"
    impute(table, TYPES, chains=2, save=folder, **RECALIBRATED)
    more = impute(table, chains=5, resume=folder, threads=1)
    assert more.table.equals(impute(table, TYPES, chains=5, **RECALIBRATED).table)
    until = impute(table, resume=folder, precision=0.12, threads=1)
    straight = impute(table, TYPES, chains=5, precision=0.12, **RECALIBRATED)
    assert until.table.equals(straight.table)
    with pytest.raises(Exception, match="chains"):
        impute(table, chains=3, resume=folder)


def test_a_small_table_takes_more_chains_while_its_estimates_are_imprecise(
    table: pa.Table, tmp_path: Path
) -> None:
    rough = SHORT | {"warmup": 3, "draws": 2}
    done = impute(table, TYPES, **rough)
    n_chains = len(done.posterior.chains)
    assert 8 < n_chains <= 16
    assert done.table.equals(impute(table, TYPES, chains=n_chains, **rough).table)
    folder = tmp_path / "cut.glfm"
    impute(table, TYPES, save=folder, time_limit=1e-9, **rough)
    assert impute(table, resume=folder, threads=1).table.equals(done.table)
    tables = Files(tmp_path / "m.csv", multiple=2)
    groups = Sampling(), Saving(), MatrixOptions(), Scaling()
    planned: Any = plan_imputation(table, TYPES, groups, tables)
    assert (planned.task.plan.chains, planned.task.plan.most_chains) == (16, None)


@pytest.mark.parametrize(("typical", "chains"), [(0.1, 8), (0.11, 11), (0.12, 13), (0.3, 16)])
def test_a_table_grows_until_half_of_its_estimates_move_by_less_than_a_tenth_of_an_sd(
    table: pa.Table, monkeypatch: pytest.MonkeyPatch, typical: float, chains: int
) -> None:
    def said(*args: Any) -> Precision:
        return precision(chains=8, typical=typical, goal=args[-1])

    monkeypatch.setattr(verdict, "judge", said)
    count: Any = chain_count(Plan(8, 15, 6, 1, 0, most_chains=16), None, None, copy)  # type: ignore[arg-type]
    assert count(None) == chains  # the least C above 8 with C >= 1.1 x 8 (typical / 0.1)^2


def test_chains_are_counted_to_the_goal_and_no_further(table: pa.Table) -> None:
    done = impute(table, TYPES, chains=3, **SHORT)
    plan = Plan(3, 15, 6, 1, 0)
    assert chain_count(plan, done.data, None, copy) is None
    grows = chain_count(replace(plan, most_chains=5), done.data, None, copy)
    assert grows is not None
    assert grows(done.posterior) == 5, "its error asks for more than may be had"
    goal = 1.01 * judge(done.posterior, done.data, 0).typical
    freely = chain_count(replace(plan, most_chains=5), done.data, goal, copy)
    assert freely is not None
    assert freely(done.posterior) == 3


@pytest.mark.parametrize("model", ["glfm", "auto"])
def test_a_run_that_may_grow_is_judged_once(
    table: pa.Table, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """The last look at how many chains there should be says how precise the answer is."""
    complete = sys.modules["glfm_cli.completion.complete"]
    monkeypatch.setattr(complete, "judge", None)
    short: dict[str, Any] = {"warmup": 3, "draws": 8, "thin": 1, "threads": 1}
    done = impute(table, TYPES, model=model, precision=0.5, **short)
    assert done.posterior.stacked == (model == "auto")
    assert len(done.posterior.chains) > 1
    assert done.precision == judge(done.posterior, done.data, done.seed, 0.5)


def test_what_is_tiny_is_said_to_be_less_once() -> None:
    said = Precision(9, 4, 0.001, 0.004, 0.0, 0.12).summary()
    assert "would move by less than 0.01 of a cell's standard deviation" in said
    assert said.endswith("95 % of them by less than 0.01.")


def test_what_is_a_little_above_the_goal_is_not_said_to_be_it() -> None:
    for typical, shown in ((0.1203, "0.121"), (0.1249, "0.125"), (0.126, "0.13")):
        said = Precision(9, 4, typical, 0.4, 0.0, 0.12).summary()
        assert f"would move by {shown} of a cell's" in said
        assert "For 0.12 take --chains" in said


def test_a_fit_is_what_can_have_more_chains() -> None:
    said = Precision(9, 4, 0.3, 0.8, 0.0, 0.12).summary(of_fit=True)
    assert "For 0.12 take a fit resumed with --chains" in said


def test_tables_need_chains_that_settled_and_no_precise_estimates() -> None:
    assert precision().of_tables(20) == (
        True, "Good: each of the 20 tables has a draw of its own.",
    )  # fmt: skip
    good, said = precision(drift=0.2).of_tables(20)
    assert not good
    assert said.startswith("Not settled: the second halves of the chains differ from the first")
    for other in (precision(typical=0.1), precision(typical=np.nan), precision(cells=0)):
        assert other.of_tables(20) == (other.good, other.summary())
