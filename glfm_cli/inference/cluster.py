"""Tasks on the workers of a Dask cluster: `distributed` places them, and anew when one is lost."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from glfm_cli import __version__
from glfm_cli.errors import GlfmError, UsageError
from glfm_cli.inference.blas import one_blas_thread

Result = TypeVar("Result")
Context = TypeVar("Context")
Item = TypeVar("Item")

PATIENCE = 10.0  # seconds that a scheduler has to answer


class ClusterError(GlfmError):
    """A cluster does not do what it was asked for."""

    exit_status = 1


def run_on_cluster(
    function: Callable[[Context, Item], Result],
    context: Context,
    items: Sequence[Item],
    *,
    scheduler: str,
    on_result: Callable[[int, Result], None],
) -> None:
    """Call `function(context, item)` for every item on the workers of a cluster.

    function, context, items, on_result : as of `run_in_processes`; a call may be made again, when
        the worker that made it is lost
    scheduler : the address of Dask's scheduler, as `tcp://HOST:8786`

    Raises UsageError: `distributed` is not installed; ClusterError: no scheduler answers, it went
        away, or workers have another version of glfm; Exception: what a call raised.
    """
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError:
        raise UsageError(
            "--engine dask needs the library distributed",
            hint="Install it: pip install 'glfm-cli[cluster]'",
        ) from None
    try:
        client = distributed.Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError):
        raise _away(scheduler) from None
    with client, client.as_current():
        calls = [
            client.submit(_on_worker, __version__, function, context, item, pure=False)
            for item in items
        ]
        number = {call.key: i for i, call in enumerate(calls)}
        try:
            for call in distributed.as_completed(calls):
                on_result(number[call.key], call.result())
        except (
            distributed.CancelledError,
            distributed.client.FuturesCancelledError,
            distributed.comm.CommClosedError,
        ):
            raise _away(scheduler) from None
        except distributed.KilledWorker:
            raise ClusterError(
                "workers of the cluster ended again and again in the middle of a chain",
                hint="They may have run out of memory: give each more, or run fewer on a machine.",
            ) from None
        finally:
            client.cancel([call for call in calls if not call.done()])


def _away(scheduler: str) -> ClusterError:
    return ClusterError(
        f"no Dask scheduler answers at {scheduler}",
        hint="Start one with `dask scheduler`, and workers with `dask worker ADDRESS`.",
    )


def _on_worker(
    version: str, function: Callable[[Context, Item], Result], context: Context, item: Item
) -> Result:
    if version != __version__:
        raise ClusterError(
            f"a worker of the cluster has glfm {__version__}, and this is {version}",
            hint="Install the same version everywhere.",
        )
    with one_blas_thread():
        return function(context, item)
