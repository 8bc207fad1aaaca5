"""Chains in other processes and on a cluster: the same draws, a lost worker, a scheduler away."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import GlfmError, classify, evaluate, explore, impute
from glfm_cli.completion import prepare
from glfm_cli.inference.sampling import sample
from glfm_cli.inference.tasks import runner_of

TYPES = {"columns": {"a": "real", "k": "categorical"}}
SHORT: dict[str, Any] = {"chains": 3, "warmup": 10, "draws": 6, "thin": 1}


def make(n: int = 60) -> pa.Table:
    rng = np.random.default_rng(0)
    group = rng.random(n) < 0.5
    a = np.where(group, 2.0, -2.0) + 0.3 * rng.standard_normal(n)
    k = np.where(group, "x", "y")
    gaps = rng.random((2, n)) < 0.2
    return pa.table({"a": pa.array(a, mask=gaps[0]), "k": pa.array(k, mask=gaps[1])})


def test_processes_make_the_draws_of_threads_and_go_on_with_them(tmp_path: Path) -> None:
    table = make()
    local = impute(table, TYPES, threads=1, **SHORT)
    few = {**SHORT, "chains": 2, "draws": 2}
    impute(table, TYPES, save=tmp_path / "f.glfm", threads=1, **few)
    # Two chains go on from a state, the third begins; at last all are at their end.
    for _ in range(2):
        gone_on = impute(
            table, resume=tmp_path / "f.glfm", chains=3, draws=6, engine="processes", threads=2
        )
        assert gone_on.cells().equals(local.cells())
        ours, theirs = gone_on.posterior.traces(), local.posterior.traces()
        assert all(np.array_equal(ours[name], theirs[name]) for name in theirs)


def test_rows_of_groups_are_drawn_elsewhere_as_here() -> None:
    table = make().append_column("who", pa.array([i % 7 for i in range(60)]))
    types = {"columns": {**TYPES["columns"], "who": "group"}}
    few = {**SHORT, "chains": 2}
    local = impute(table, types, threads=1, **few)
    assert impute(table, types, engine="processes", threads=2, **few).cells().equals(local.cells())


def test_folds_are_predicted_alike_by_other_processes() -> None:
    types = {"columns": {"a": "real", "k": {"type": "categorical", "role": "target"}}}
    short = {"experts": 3, "iterations": 10, "short": 2}
    few: dict[str, Any] = {"cv": 3, "chains": 2, "settings": short}
    here, there = (
        classify(make(), types, threads=2, **few, **more)
        for more in ({}, {"engine": "processes"})
    )
    assert here.predictions is not None
    assert there.predictions is not None
    assert np.array_equal(here.predictions.p, there.predictions.p)
    assert here.cross_validation.scores == there.cross_validation.scores
    cut = classify(make(), types, threads=2, engine="processes", time_limit=1e-3, **few)
    assert cut.stopped == "time limit"
    with pytest.raises(GlfmError, match="engine is for the folds of cv"):
        classify(make(), types, engine="processes")


def test_a_time_limit_holds_in_other_processes() -> None:
    problem, _, plan = prepare(make(), TYPES, **{**SHORT, "draws": 100_000})
    runner = runner_of("processes", None, 2)
    run = sample(problem, plan, threads=2, time_limit=1.0, runner=runner)
    assert run.stopped == "time limit"
    assert 0 < run.posterior.n_draws < 100_000


def test_chains_that_wait_for_a_worker_have_no_time_of_their_own() -> None:
    problem, _, plan = prepare(make(), TYPES, **{**SHORT, "chains": 5, "draws": 100_000})
    run = sample(problem, plan, time_limit=1.0, runner=runner_of("processes", None, 2))
    assert run.stopped == "time limit"
    assert 0 < len(run.posterior.chains) <= 2


def test_workers_end_when_their_caller_is_killed(tmp_path: Path) -> None:
    call = "import os, pathlib, time; pathlib.Path(str(os.getpid())).touch(); time.sleep(600)"
    start = (
        "import operator; from glfm_cli.inference.executors import run_in_processes as run; "
        f"run(operator.call, exec, [{call!r}] * 2, workers=2, on_result=print)"
    )
    # The workers share its standard error, which ends when the last of them has ended.
    caller = subprocess.Popen([sys.executable, "-c", start], cwd=tmp_path, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.iterdir())) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    caller.kill()
    caller.communicate(timeout=30)


def test_what_does_not_go_together_is_one_clear_error(tmp_path: Path) -> None:
    for given, said in (
        ({"engine": "spark"}, "engine.*local or processes or dask"),
        ({"engine": "dask"}, "needs scheduler=ADDRESS"),
        ({"scheduler": "tcp://x:1"}, 'engine="dask" uses'),
        ({"engine": "processes", "fit": tmp_path}, "engine and fit"),
        ({"engine": "processes", "model": "clgp"}, "'clgp' has none"),
    ):
        types = None if "fit" in given else {"columns": {"a": "ignore", "k": "categorical"}}
        with pytest.raises(GlfmError, match=said):
            impute(make(), types, **given)


def test_a_scheduler_that_does_not_answer_is_a_failure_of_status_1_that_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("glfm_cli.inference.cluster.PATIENCE", 0.3)
    how = {"engine": "dask", "scheduler": "tcp://127.0.0.1:9", "save": tmp_path / "f.glfm"}
    with pytest.raises(GlfmError, match="no Dask scheduler answers at tcp:") as error:
        impute(make(), TYPES, **how, **SHORT)
    assert error.value.exit_status == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_cluster_makes_the_draws_of_threads_when_workers_are_lost_too(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed")
    table, length = make(4000), {**SHORT, "chains": 4, "warmup": 300}
    local = impute(table, TYPES, threads=1, save=tmp_path / "local.glfm", **length)
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        how: dict[str, Any] = {"engine": "dask", "scheduler": cluster.scheduler_address}
        done = impute(table, TYPES, save=tmp_path / "dask.glfm", **how, **length)
        assert done.cells().equals(local.cells())
        for name in sorted(path.name for path in (tmp_path / "local.glfm").iterdir()):
            if "draws" in name:
                ours, theirs = (tmp_path / f"{f}.glfm" / name for f in ("dask", "local"))
                assert ours.read_bytes() == theirs.read_bytes()
        killed: list[float] = []

        def kill() -> None:
            time.sleep(0.5)
            killed.append(time.monotonic())
            os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        done = impute(table, TYPES, **how, **length)
        assert time.monotonic() - killed[0] > 1.0  # chains were under way
        killer.join()
        assert done.cells().equals(local.cells())


def test_an_exploration_says_the_same_whoever_makes_its_chains() -> None:
    few: dict[str, Any] = {**SHORT, "chains": 2}
    said = [
        explore(make(), TYPES, threads=2, **few, **more).to_dict()
        for more in ({}, {"engine": "processes"})
    ]
    for one in said:
        del one["seconds"]
    assert said[0] == said[1]


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_makes_the_fits_of_every_command() -> None:
    distributed = pytest.importorskip("distributed")
    hidden: dict[str, Any] = {"methods": ("glfm", "mean"), "rates": (0.3,), "repeats": 2}
    few: dict[str, Any] = {**SHORT, "chains": 2}

    def work(**how: Any) -> tuple[Any, Any]:
        scores = evaluate(make(), TYPES, jobs=1, **hidden, **few, **how).lines
        found = explore(make(), TYPES, threads=1, **few, **how).to_dict()
        cost = ("seconds", "megabytes")
        kept = [str(line) for line in scores if line.what.score not in cost]
        labels = {"columns": {"a": "real", "k": {"type": "categorical", "role": "target"}}}
        more = {"settings": {"iterations": 5}, **how}
        p = classify(make(), labels, cv=2, chains=1, threads=1, **more).predictions
        assert p is not None
        return kept, {**found, "seconds": None, "p": p.p.tolist()}

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        assert work(engine="dask", scheduler=cluster.scheduler_address) == work()
