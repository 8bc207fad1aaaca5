"""The driver: how much is sampled, who hears of it, and how it ends early."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import expit

from glfm_cli.completion import prepare
from glfm_cli.inference.chain import load_chain, start_chain
from glfm_cli.inference.executors import available_threads, run_jobs
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import Plan, Stop, sample
from glfm_cli.latent.model import Problem
from glfm_cli.streams import Streams

TYPES = {"columns": {"a": "real", "n": "count", "city": "categorical", "k": "ordinal"}}


@pytest.fixture(scope="module")
def problem() -> Problem:
    """A small table of four types, ready to be sampled."""
    n = 20
    table = pa.table(
        {
            "a": [None if i % 5 == 0 else i / 7 for i in range(n)],
            "n": [None if i % 7 == 1 else i % 4 for i in range(n)],
            "city": [None if i % 6 == 2 else "xyz"[i % 3] for i in range(n)],
            "k": pa.array([i % 3 for i in range(n)]),
        }
    )
    plan = {"model": "glfm", "chains": 1, "warmup": 0, "draws": 1, "thin": 1, "seed": 0}
    return prepare(table, TYPES, settings=None, **plan)[0]  # type: ignore[arg-type]


class Listener:
    """Remembers what it hears, and may act on it."""

    def __init__(self, act: Callable[[int, int], None] | None = None) -> None:
        self.heard: list[tuple[int, int, dict[str, float] | None]] = []
        self.act = act

    def swept(self, chain: int, sweep: int, trace: dict[str, float] | None) -> None:
        self.heard.append((chain, sweep, trace))
        if self.act is not None:
            self.act(chain, sweep)


def traces(posterior: Posterior) -> dict[str, list[list[float]]]:
    return {name: trace.tolist() for name, trace in posterior.traces().items()}


# One sweep -----------------------------------------------------------------------------------


def test_scale_moves_leave_the_table_as_it_is(problem: Problem) -> None:
    chain = start_chain(problem, Streams(3, 0))
    factors = []
    for _ in range(30):
        before = [link.scale_group(p) for link, p in zip(problem.links, chain.params, strict=True)]
        for d, group in enumerate(before):
            chain.cells.scale_group[d] = group
        problem.model.update(chain.state, chain.cells, chain.streams)
        for d, (link, x) in enumerate(zip(problem.links, problem.xs, strict=True)):
            factor = float(chain.cells.factor[d])
            link.rescale(chain.params[d], factor)
            squares = link.scale_group(chain.params[d])[0]
            np.testing.assert_allclose(squares, before[d][0] * factor**2)
            if link.name == "k":
                start = chain.spans[d][0]
                cut = np.searchsorted(chain.params[d]["thresholds"], chain.cells.y[:, start])
                assert np.array_equal(cut, x)
        factors.append(chain.cells.factor.copy())
        problem.model.fill_eta(chain.state, chain.eta)
        chain.refill(adapt=True)
        problem.model.finish(chain.state, chain.streams)
    moved = np.array([link.unit_noise for link in problem.links])
    assert np.all(np.std(factors, axis=0)[moved] > 0.01)
    assert np.all(np.array(factors)[:, ~moved] == 1.0)


# How much ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("warmup", "draws", "thin"), [(0, 1, 1), (3, 4, 1), (2, 3, 4)])
def test_draws_are_kept_after_the_warm_up_and_thin_sweeps_apart(
    problem: Problem, warmup: int, draws: int, thin: int
) -> None:
    plan, listener = Plan(2, warmup, draws, thin, seed=0), Listener()
    run = sample(problem, plan, observer=listener)
    assert plan.sweeps == warmup + draws * thin
    assert [len(chain) for chain in run.posterior.chains] == [draws, draws]
    assert run.posterior.n_draws == 2 * draws
    assert (run.stopped, run.warnings) == (None, ())
    for chain in range(2):
        heard = [(sweep, trace) for c, sweep, trace in listener.heard if c == chain]
        assert [sweep for sweep, _ in heard] == list(range(1, plan.sweeps + 1))
        kept = [sweep for sweep, trace in heard if trace is not None]
        assert kept == list(range(warmup + thin, plan.sweeps + 1, thin))
        traced = [trace["log_likelihood"] for _, trace in heard if trace is not None]
        assert traced == run.posterior.traces()["log_likelihood"][chain].tolist()


def test_blocks_of_rows_are_the_same_by_any_number_of_threads_and_go_on(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glfm_cli.inference.chain.BLOCK", 6)
    one, three = (start_chain(problem, Streams(0, 0), threads) for threads in (1, 3))
    for i in range(8):
        if i == 5:
            three = load_chain(problem, three.save(), 3)
        one.sweep(adapt=True)
        three.sweep(adapt=True)
    first, second = one.save(), three.save()
    assert {name: array.tolist() for name, array in first.items()} == {
        name: array.tolist() for name, array in second.items()
    }
    # The reference level's utilities of all blocks count in the move along the scale.
    assert one.params[2]["reference"][1] == problem.seen[:, 2].sum()


def test_odds_that_blocks_of_rows_share_are_those_of_beta_shares(
    problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glfm_cli.inference.chain.BLOCK", 6)
    chain, beyond = start_chain(problem, Streams(0, 0)), []
    state = chain.state
    for _ in range(240):
        chain.model.update(state, chain.cells, chain.streams)
        used = slice(0, state.n_columns)
        m, share = state.counts[used], expit(state.odds[used])
        beyond += list(share - m / (problem.n_rows + 1))
        chain.model.fill_eta(state, chain.eta)
        before = [state.Z[start : start + 6].any(axis=0) for start in range(0, 20, 6)]
        chain.refill(adapt=False)
        after = [state.Z[start : start + 6].any(axis=0) for start in range(0, 20, 6)]
        assert np.array_equal(before, after)  # which blocks have a feature is given
    assert abs(np.mean(beyond)) < 4 * np.std(beyond) / np.sqrt(len(beyond)) < 0.01


def test_every_free_noise_variance_is_traced_and_no_other(problem: Problem) -> None:
    names = sample(problem, Plan(1, 0, 2, 1, 0)).posterior.traces()
    assert {name for name in names if name.startswith("noise_")} == {"noise_0", "noise_1"}
    assert {"log_likelihood", "features", "alpha"} < set(names)
    assert all(np.all(np.isfinite(trace)) for trace in names.values())


# One seed, one result ------------------------------------------------------------------------


def test_draws_do_not_depend_on_threads(problem: Problem) -> None:
    plan = Plan(4, 3, 3, 1, seed=9)
    one, many = (sample(problem, plan, threads=n).posterior for n in (1, 4))
    assert traces(one) == traces(many)
    for a, b in zip(one.draws(), many.draws(), strict=True):
        np.testing.assert_array_equal(a.latent.B, b.latent.B)
        np.testing.assert_array_equal(a.latent.bits, b.latent.bits)


def test_a_chain_is_the_same_whatever_the_others(problem: Problem) -> None:
    few = sample(problem, Plan(1, 2, 3, 1, seed=9)).posterior
    more = sample(problem, Plan(3, 2, 3, 1, seed=9)).posterior
    assert traces(few)["log_likelihood"][0] == traces(more)["log_likelihood"][0]
    assert len({tuple(chain) for chain in traces(more)["log_likelihood"]}) == 3


def test_another_seed_gives_other_draws(problem: Problem) -> None:
    first, second = (sample(problem, Plan(1, 2, 3, 1, seed)).posterior for seed in (0, 1))
    assert traces(first) != traces(second)


def test_kept_draws_are_not_changed_by_later_sweeps(problem: Problem) -> None:
    short = sample(problem, Plan(1, 1, 1, 1, 0)).posterior
    long = sample(problem, Plan(1, 1, 6, 1, 0)).posterior
    a, b = next(short.draws()), next(long.draws())
    np.testing.assert_array_equal(a.latent.B, b.latent.B)
    np.testing.assert_array_equal(a.latent.noise, b.latent.noise)
    assert [p.keys() for p in a.params] == [p.keys() for p in b.params]
    for p, q in zip(a.params, b.params, strict=True):
        assert all(np.array_equal(p[name], q[name]) for name in p)


# Ending early --------------------------------------------------------------------------------


def test_stop_remembers_its_first_reason() -> None:
    assert not Stop().now()
    late = Stop(deadline=time.monotonic() - 1)
    assert late.now()
    late.interrupt()
    assert (late.now(), late.reason) == (True, "time limit")
    early = Stop(deadline=time.monotonic() + 60)
    assert not early.now()
    early.interrupt()
    assert (early.now(), early.reason) == (True, "interrupted")


def test_a_time_limit_keeps_at_least_one_draw(problem: Problem) -> None:
    run = sample(problem, Plan(5, 100_000, 5, 1, 0), threads=2, time_limit=1e-6)
    assert run.stopped == "time limit"
    assert run.posterior.n_draws >= 1
    assert all(len(chain) >= 1 for chain in run.posterior.chains)
    assert run.warnings[-1].startswith("no chain finished its warm-up (the farthest made 1 of 1000")


def test_a_time_limit_ends_all_chains_in_time(problem: Problem) -> None:
    run = sample(problem, Plan(3, 1, 10_000_000, 1, 0), threads=3, time_limit=0.3)
    assert run.stopped == "time limit"
    assert run.seconds >= 0.3  # ten million draws would take hours
    assert len(run.posterior.chains) == 3
    assert run.warnings == ()


def test_a_time_limit_that_is_not_reached_changes_nothing(problem: Problem) -> None:
    plan = Plan(2, 2, 2, 1, 0)
    limited, free = sample(problem, plan, time_limit=600), sample(problem, plan)
    assert limited.stopped is None
    assert traces(limited.posterior) == traces(free.posterior)


def press_ctrl_c() -> None:
    time.sleep(0.1)  # by now the main thread waits for the jobs
    os.kill(os.getpid(), signal.SIGINT)


def press_ctrl_c_at(chain: int, sweep: int) -> Callable[[int, int], None]:
    """Return an action that interrupts the process, and waits until it has noticed."""

    def act(c: int, s: int) -> None:
        if (c, s) == (chain, sweep):
            press_ctrl_c()
            time.sleep(0.4)

    return act


def test_ctrl_c_keeps_the_draws_so_far(problem: Problem) -> None:
    listener = Listener(press_ctrl_c_at(0, 7))
    run = sample(problem, Plan(1, 2, 10_000_000, 1, 0), observer=listener)
    assert run.stopped == "interrupted"
    assert len(run.posterior.chains[0]) == len(listener.heard) - 2
    whole = sample(problem, Plan(1, 2, len(listener.heard) - 2, 1, 0))
    assert traces(run.posterior) == traces(whole.posterior)


def test_chains_stopped_while_warming_up_do_not_count_beside_others(problem: Problem) -> None:
    plan = Plan(4, 5, 3, 1, 0)
    run = sample(problem, plan, threads=1, observer=Listener(press_ctrl_c_at(1, 2)))
    assert run.stopped == "interrupted"
    assert [len(chain) for chain in run.posterior.chains] == [3]
    assert run.warnings == ("1 of 4 chains finished their warm-up; only they count",)
    alone = sample(problem, Plan(1, 5, 3, 1, 0))
    assert traces(run.posterior) == traces(alone.posterior)


def test_of_chains_that_only_warmed_up_the_farthest_count(problem: Problem) -> None:
    run = sample(problem, Plan(3, 50, 3, 1, 0), observer=Listener(press_ctrl_c_at(0, 9)))
    assert [len(chain) for chain in run.posterior.chains] == [1]
    assert run.warnings == (
        "no chain finished its warm-up (the farthest made 9 of 50 sweeps), so the result is rough",
    )


def test_an_error_in_one_chain_ends_the_others(problem: Problem) -> None:
    def act(chain: int, sweep: int) -> None:
        if (chain, sweep) == (1, 3):
            raise ArithmeticError("chain 1 broke down")

    began = time.monotonic()
    with pytest.raises(ArithmeticError, match="chain 1 broke down"):
        sample(problem, Plan(2, 0, 10_000_000, 1, 0), threads=2, observer=Listener(act))
    assert time.monotonic() - began < 5


# Executors -----------------------------------------------------------------------------------


def test_results_come_in_the_order_of_the_jobs() -> None:
    def job(i: int) -> Callable[[], int]:
        return lambda: (time.sleep(0.02 * (4 - i)), i)[1]

    jobs = [job(i) for i in range(5)]
    assert run_jobs(jobs, threads=5, on_interrupt=lambda: None) == list(range(5))
    assert run_jobs(jobs[:1], threads=1, on_interrupt=lambda: None) == [0]


def test_no_more_jobs_run_at_once_than_threads() -> None:
    lock, running, most = threading.Lock(), [0], [0]

    def job() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.02)
        with lock:
            running[0] -= 1

    run_jobs([job] * 6, threads=2, on_interrupt=lambda: None)
    assert most[0] == 2


def test_the_first_ctrl_c_asks_and_its_jobs_still_answer() -> None:
    asked = threading.Event()

    def job() -> str:
        press_ctrl_c()
        return "done" if asked.wait(10) else "never asked"

    assert run_jobs([job], threads=1, on_interrupt=asked.set) == ["done"]


def test_the_second_ctrl_c_raises() -> None:
    asked = threading.Event()

    def job() -> None:
        press_ctrl_c()
        asked.wait(10)
        press_ctrl_c()
        time.sleep(0.3)

    with pytest.raises(KeyboardInterrupt):
        run_jobs([job], threads=1, on_interrupt=asked.set)


def test_there_is_a_thread_to_use() -> None:
    assert available_threads() >= 1
