"""BLAS stays at one thread while any of several overlapping users needs it, and is freed then."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

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
