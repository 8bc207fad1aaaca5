"""BLAS stays at one thread while any of several overlapping users needs it, and is freed then."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import glfm_cli as glfm
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.executors import run_in_processes, run_jobs, thread_pool


def threads() -> set[int]:
    return {int(one["num_threads"]) for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.mark.parametrize("first_to_leave", [0, 1])
def test_the_last_of_overlapping_threads_frees_blas(first_to_leave: int) -> None:
    with one_blas_thread():
        pass  # every library is loaded
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(limits=2, user_api="blas"))
        # Two threads, neither of them this one, which holds a limit of its own.
        crew = [stack.enter_context(ThreadPoolExecutor(1)) for _ in range(2)]
        held = [ExitStack() for _ in crew]
        for one, hold in zip(crew, held, strict=True):
            one.submit(hold.enter_context, one_blas_thread()).result()
            assert threads() == {1}
        for i in (first_to_leave, 1 - first_to_leave):
            assert threads() == {1}
            crew[i].submit(held[i].close).result()
        assert threads() == {2}


def test_whoever_does_the_work_holds_blas() -> None:
    found: list[set[int]] = []
    with one_blas_thread():
        pass  # every library is loaded
    with threadpool_limits(limits=2, user_api="blas"):
        found += run_jobs([threads], threads=1, on_interrupt=lambda: None)
        run_in_processes(
            lambda *_: threads(), None, [0], workers=1, on_result=lambda _, one: found.append(one)
        )
        for n in (1, 2):
            with thread_pool(n):
                found.append(threads())
        assert threads() == {2}
    assert found == 4 * [{1}]


class Watch:
    """Notes how many threads BLAS has where the caller of a run is told of it."""

    def __init__(self) -> None:
        self.found: set[int] = set()

    def begun(self, *_: object) -> None:
        self.found |= threads()

    planned = fitted = forecast = finished = begun

    def swept(self, *_: object) -> None:
        pass


SMALL = {"a": [1.5, None, 2.5, 3.0, 0.5, 2.0] * 5, "b": ["x", "y", None, "x", "y", "y"] * 5}
TYPES = {"columns": {"a": "real", "b": "categorical"}}
SHORT = {"chains": 2, "warmup": 2, "draws": 2, "threads": 1, "model": "glfm"}


@pytest.mark.parametrize(
    "entrance",
    [
        lambda watch: glfm.impute(pa.table(SMALL), TYPES, observer=watch, **SHORT),
        lambda watch: glfm.explore(pa.table(SMALL), TYPES, observer=watch, **SHORT),
        lambda watch: glfm.suggest(pa.table(SMALL), TYPES, observer=watch, count=1, **SHORT),
        lambda watch: glfm.evaluate(
            pa.table(SMALL), TYPES, observer=watch, methods=["mean"], rates=[0.2], repeats=1
        ),
    ],
    ids=["impute", "explore", "suggest", "evaluate"],
)
def test_a_run_holds_blas_from_its_beginning_to_its_end(entrance: Callable[[Any], Any]) -> None:
    watch = Watch()
    with one_blas_thread():
        pass  # every library is loaded
    with threadpool_limits(limits=2, user_api="blas"):
        entrance(watch)
        assert threads() == {2}
    assert watch.found == {1}


class Told(PathLike[str]):
    """A path that notes how many threads BLAS has where it is read."""

    def __init__(self, path: Path) -> None:
        self.path, self.found = path, set[int]()

    def __fspath__(self) -> str:
        self.found |= threads()
        return str(self.path)


@pytest.mark.parametrize(
    "entrance",
    [
        lambda types: glfm.classify(
            pa.table(SMALL), types, target="b", chains=1, threads=1, settings={"iterations": 3}
        ),
        lambda types: glfm.GlfmImputer(types, **SHORT).fit(pa.table(SMALL)),
    ],
    ids=["classify", "imputer"],
)
def test_so_do_classifiers_and_estimators(entrance: Callable[[Any], Any], tmp_path: Path) -> None:
    types = Told(tmp_path / "types.yaml")
    types.path.write_text("columns: {a: real, b: categorical}")
    with one_blas_thread():
        pass
    with threadpool_limits(limits=2, user_api="blas"):
        entrance(types)
        assert threads() == {2}
    assert types.found == {1}


def test_so_does_a_diagnosis(tmp_path: Path) -> None:
    fit = Told(tmp_path / "small.glfm")
    glfm.impute(pa.table(SMALL), TYPES, save=fit.path, **SHORT)
    with threadpool_limits(limits=2, user_api="blas"):
        glfm.diagnose_fit(fit, replicates=2)
    assert fit.found == {1}


def test_what_is_written_does_not_depend_on_the_threads_of_blas(sample_data: Path) -> None:
    """Forecasts of hidden cells and their corrections are sums of BLAS, too."""
    table = sample_data / "messy.csv", sample_data / "messy.types.yaml"
    cells, drawn = [], []
    for n in (1, 2):
        with threadpool_limits(limits=n, user_api="blas"):
            done = glfm.impute(*table, chains=4, warmup=4, draws=20, threads=1, seed=0)
            cells.append(done.cells())
            drawn.append(np.concatenate([part["value"].to_numpy() for part in done.draws()]))
    assert cells[0].equals(cells[1])
    np.testing.assert_array_equal(*drawn)
