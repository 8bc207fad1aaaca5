"""How long chains take, told before they are run."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import glfm_cli.inference.chains as chains
from glfm_cli.cli.plan_text import plan_lines
from glfm_cli.completion.cost import _with
from glfm_cli.completion.dependent import settling_seconds
from glfm_cli.completion.efforts import EFFORTS
from glfm_cli.completion.folding_cost import FoldingCost, with_folding
from glfm_cli.completion.prepare import prepare
from glfm_cli.inference.pace import Pace
from glfm_cli.inference.run import Plan
from glfm_cli.latent.forest.leaves import SETTLED
from glfm_cli.latent.forest.model import TIMED
from glfm_cli.latent.glfm import Glfm
from glfm_cli.latent.model import Cells
from glfm_cli.streams import Streams

TABLE = pa.table({name: [1.0, 2.5, None, 4.0] * 10 for name in "ab"})
TYPES = {"columns": dict.fromkeys("ab", "real")}


def test_chains_side_by_side_take_the_time_of_one() -> None:
    pace = Pace(per_sweep=0.5, per_draw=2.0, draw_bytes=1.0, per_chain=7.0)
    plan = Plan(chains=7, warmup=4, draws=3, thin=2, seed=0)
    one = 0.5 * (4 + 3 * 2) + 2.0 * 3 + 7.0
    assert pace.seconds(plan, 1) == 7 * one
    assert pace.seconds(plan, 2) == 4 * one
    assert pace.seconds(plan, 9) == one
    assert pace.seconds(plan, 9, corrected=False) == one - 7.0
    assert replace(pace, per_start=5.0).seconds(plan, 2) == 4 * (one + 5.0)


def test_trees_are_timed_as_they_are_once_their_start_is_forgotten() -> None:
    rng = np.random.default_rng(3)
    smooth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 20))
    X = np.where(rng.random((60, 20)) < 0.1, np.nan, smooth + 0.01 * rng.normal(size=(60, 20)))
    names = [f"x{d}" for d in range(20)]
    table = pa.table(dict(zip(names, X.T, strict=True)))
    problem, _, plan = prepare(table, {"columns": dict.fromkeys(names, "real")}, model="forest")
    chain = chains.start(problem, plan.seed, 0)
    assert chains.settle(chain) == pytest.approx(TIMED / 20)
    assert chain.state.turn > SETTLED
    assert chain.state.linear.all()  # as lines are best for all of them in a chain, too
    chain.sweep(adapt=True)
    never = replace(problem, config=replace(problem.config, linear="never", least=3))
    plain = chains.start(never, plan.seed, 0)
    assert chains.settle(plain) == pytest.approx(TIMED / 20)
    assert not plain.state.linear.any()
    other, _, plan = prepare(TABLE, TYPES, model="glfm")
    assert chains.settle(chains.start(other, plan.seed, 0)) == 1.0


def test_efforts_are_timed_with_their_own_settings() -> None:
    problem, _, _ = prepare(TABLE, TYPES)
    quick = _with(problem, EFFORTS["quick"].lengths["auto"].settings)
    assert (quick.config.search, quick.config.linear) == (False, 0)
    assert _with(problem, {"recalibrate": False, "search": "true"}) is problem


class Meets(Glfm):
    """A model whose chains wait in their first sweep until `others` do."""

    def __init__(self, others: int) -> None:
        self.barrier, self.met = threading.Barrier(others), set[int]()

    def update(self, state: Any, cells: Cells, streams: Streams) -> None:
        if threading.get_ident() not in self.met:
            self.met.add(threading.get_ident())
            self.barrier.wait(timeout=60.0)
        super().update(state, cells, streams)


def test_chains_are_timed_beside_those_that_run_with_them() -> None:
    problem, _, plan = prepare(TABLE, TYPES, model="glfm")
    for threads, others in ((3, 3), (1, 1), (plan.chains + 5, plan.chains)):
        meets = Meets(others)
        pace = Pace.of(replace(problem, model=meets), plan, corrected=False, threads=threads)
        assert pace.per_sweep > 0.0
        assert len(meets.met) == others


@pytest.mark.parametrize("model", ["auto", "glfm", "forest"])
def test_corrections_of_forecasts_take_time_where_they_are_learnt(model: str) -> None:
    problem, _, plan = prepare(TABLE, TYPES, model=model)
    plain = replace(problem, link_config=replace(problem.link_config, recalibrate=False))
    assert Pace.of(problem, plan).per_chain > 0.0
    assert Pace.of(problem, plan, corrected=False).per_chain == 0.0
    assert Pace.of(plain, plan).per_chain == 0.0


@pytest.mark.parametrize("model", ["auto", "glfm"])
def test_joint_draws_of_cells_that_follow_take_time(model: str) -> None:
    table = TABLE.append_column("c", pa.array([1.0, None, 3.0, 4.5] * 10))
    plain = {"columns": dict.fromkeys("abc", "real")}
    follows = {"columns": plain["columns"] | {"c": {"type": "real", "formula": "a + b"}}}
    for types, takes in ((plain, False), (follows, True)):
        problem, data, plan = prepare(table, types, model=model)
        assert (settling_seconds(problem, data, plan.seed) > 0.0) is takes


def test_a_plan_that_may_grow_tells_the_time_of_all_chains() -> None:
    costs = {"seconds": 3.0, "most_seconds": 8.0, "megabytes": 1.0, "modelled_columns": 2}
    assert plan_lines(costs)[-1] == "about 3 to 8 s and 1 MB"
    short = {"seconds": 0.2, "most_seconds": 0.4, "megabytes": 0.1}
    assert plan_lines(short) == ["about 1 s and 1 MB"]
    longer = with_folding(costs, FoldingCost(seconds=10.0, row_bytes=0.0), 1)
    assert (longer["seconds"], longer["most_seconds"]) == (13.0, 18.0)
