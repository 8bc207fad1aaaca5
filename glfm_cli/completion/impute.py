"""Complete a table: every requested gap filled, with its uncertainty."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa

from glfm_cli.completion.estimates import MODE_GRID, Estimate, point
from glfm_cli.completion.new_rows import Fitted, Unseen, check_unseen
from glfm_cli.completion.prepare import as_schema
from glfm_cli.completion.result import ColumnCompletion, Completion
from glfm_cli.completion.session import SamplingOptions, SaveOptions, plan_session
from glfm_cli.encoding import Data, decode
from glfm_cli.errors import UsageError
from glfm_cli.inference import chains
from glfm_cli.inference.cell_traces import trace_cells
from glfm_cli.inference.chain import Problem, spans_of
from glfm_cli.inference.executors import available_threads
from glfm_cli.inference.predictive import draw_jointly, nothing, predict
from glfm_cli.inference.sampling import Observer, Plan, Run
from glfm_cli.io import read_table
from glfm_cli.io.frames import table_of
from glfm_cli.schema import Schema
from glfm_cli.store import EVERY, Fit, load_fit
from glfm_cli.streams import CELLS, Streams

INTERVAL = 0.95


def impute(
    table: Any,
    types: Schema | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    model: str | None = None,
    chains: int | None = None,
    warmup: int | None = None,
    draws: int | None = None,
    thin: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    time_limit: float | None = None,
    settings: Mapping[str, object] | None = None,
    estimate: Estimate = "auto",
    interval: float = INTERVAL,
    save: str | os.PathLike[str] | None = None,
    resume: str | os.PathLike[str] | None = None,
    fit: Fit | str | os.PathLike[str] | None = None,
    unseen: Unseen = "error",
    no_data: bool = False,
    checkpoint: float = EVERY,
    observer: Observer | None = None,
) -> Completion:
    """Complete a table with missing values.

    Parameters
    ----------
    table : table, data frame, matrix or path
        The table, of pyarrow, pandas, polars, DuckDB or NumPy, or a file that `read_table` reads;
        `Completion.output` is completed data of the same kind.
    types : Schema, mapping or path
        What the columns mean: a schema, the content of a types file, or its path. Not needed
        with `resume` or `fit`.
    model : str, optional
        A latent model of `glfm_cli.latent.MODELS`; "glfm" if left out.
    chains, warmup, draws, thin : int, optional
        Independent chains (8 if left out, of a small table 16); sweeps dropped at the start
        of each (100); states kept from each (20); sweeps from one kept state to the next (2).
    seed : int, optional
        The same seed gives the same result, whatever `threads` is; 0 if left out.
    threads : int, optional
        Chains that run at the same time; by default as many as there are processors.
    time_limit : float, optional
        Seconds of sampling after which the draws so far are used.
    settings : mapping, optional
        Fields of the model's and the links' configuration, by name.
    estimate : {"auto", "mean", "median", "mode", "draw"}
        What fills a gap. "auto" is the mean for real and positive columns, the mean rounded to
        the nearest integer for counts, the median for ordinal and the mode for categorical ones.
        "draw" is one joint draw of all gaps, with the variability that the table itself has.
    interval : float
        Probability of the reported intervals, in (0, 1).
    save : path, optional
        A new folder NAME.glfm to keep the fit in; `load_fit` reads it.
    resume : path, optional
        The folder of an earlier run of this table to go on with: one that was cut short, or a
        complete one with more `draws` (a chain). What else fixes the draws is taken from there;
        the result is, byte for byte, that of one uninterrupted run.
    fit : Fit or path, optional
        A fit that was made before, or its folder: nothing is sampled anew but what belongs to
        the rows of `table`. The options of sampling are then not taken; `seed` is the fit's if
        left out.
    unseen : {"error", "missing"}
        With `fit`, what a level is that it does not know; as "missing" it tells nothing, and the
        cell is left as it stands.
    no_data : bool
        Leave the encoded table out of the folder.
    checkpoint : float
        Seconds between two saved states; less often where saving takes long.
    observer : Observer, optional
        Told after every sweep.

    Returns
    -------
    Completion

    Raises
    ------
    GlfmError
        The table, the types or an option are wrong; the error says where and what to do.
    """
    check_request(estimate, interval, threads, time_limit)
    given, file = table, str(table) if isinstance(table, str | os.PathLike) else None
    table = read_table(table) if file is not None else table_of(table)
    workers = threads or available_threads()
    said: dict[str, object] = {"types": types, "model": model}
    said |= {"chains": chains, "warmup": warmup, "draws": draws}
    said |= {"thin": thin, "time-limit": time_limit, "set": settings, "save": save}
    check_with_fit(fit is not None, {**said, "resume": resume}, unseen)
    if fit is not None:
        fitted = Fitted.of_fit(fit if isinstance(fit, Fit) else load_fit(fit))
        seed = fitted.seed if seed is None else seed
        data = fitted.encode(table, unseen=unseen, file=file)
        run = fitted.run(data, seed=seed, threads=workers)
        done = complete(
            run, data, table, seed=seed, estimate=estimate, interval=interval, threads=workers
        )
        return dataclasses.replace(done, given=given)
    keeping = SaveOptions(
        None if save is None else Path(save),
        None if resume is None else Path(resume),
        with_data=not no_data,
        every=checkpoint,
    )
    requested = SamplingOptions(model, chains, warmup, draws, thin, seed, settings)
    schema = None if types is None else as_schema(types)
    session = plan_session(table, schema, requested, keeping, file=file).begun()
    run = session.sample(threads=workers, time_limit=time_limit, observer=observer)
    seed = session.plan.seed
    done = complete(
        run, session.data, table, seed=seed, estimate=estimate, interval=interval, threads=workers
    )
    return dataclasses.replace(done, given=given)


def complete(
    run: Run,
    data: Data,
    table: pa.Table,
    *,
    seed: int,
    estimate: Estimate = "auto",
    interval: float = INTERVAL,
    intervals: bool = True,
    threads: int = 1,
) -> Completion:
    """Fill the gaps of `table` from the draws of a run.

    Without `intervals` the quantiles of numeric columns are left out (NaN) where the estimate
    does not need them, which saves time. Rows are predicted by `threads` threads.
    """
    posterior = run.posterior
    missing = {
        d: np.flatnonzero(e.requested) for d, e in enumerate(data.columns) if e.requested.any()
    }
    at = [(1 - interval) / 2, 0.5, (1 + interval) / 2]
    grid = list(MODE_GRID) if estimate == "mode" else []
    marginals = predict(
        posterior,
        missing,
        at + grid,
        numeric_quantiles=intervals or estimate in ("median", "mode"),
        threads=threads,
    )
    rng = Streams(seed, 0).get(CELLS)
    traces = {**posterior.traces(), **trace_cells(posterior, missing, rng)}
    joint = draw_jointly(posterior, missing, rng) if estimate == "draw" else {}
    columns, fills = [], {}
    for d, encoded in enumerate(data.columns):
        if not encoded.column.completed:
            continue
        if d in missing:
            value = joint[d] if d in joint else point(posterior.links[d], marginals[d], estimate)
            kept = dataclasses.replace(marginals[d], quantiles=marginals[d].quantiles[:, :3])
            part = ColumnCompletion(encoded, value, kept)
        else:
            part = ColumnCompletion(encoded, np.empty(0), nothing(posterior.links[d], 3))
        columns.append(part)
        fills[encoded.column.name] = part.estimate
    return Completion(
        table=decode(table, data, fills),
        data=data,
        columns=tuple(columns),
        posterior=posterior,
        run=run,
        traces=traces,
        diagnostics=posterior.diagnose(traces),
        interval=interval,
        seed=seed,
        ids=table.select(list(data.ids)),
    )


def check_request(
    estimate: str, interval: float, threads: int | None, time_limit: float | None
) -> Estimate:
    """Return the estimate; raise UsageError when an option that needs no table is out of range."""
    known: dict[str, Estimate] = {name: name for name in get_args(Estimate)}
    if estimate not in known:
        raise UsageError("--estimate", value=estimate, expected=" or ".join(known))
    if not 0 < interval < 1:
        raise UsageError("--interval", value=interval, expected="a number between 0 and 1")
    if threads is not None and threads < 1:
        raise UsageError("--threads", value=threads, expected="a whole number from 1")
    if time_limit is not None and not 0 < time_limit < float("inf"):
        raise UsageError("--time-limit", value=time_limit, expected="seconds above 0")
    return known[estimate]


def check_with_fit(fitted: bool, said: Mapping[str, object], unseen: str) -> None:
    """Raise UsageError when options of sampling meet a fit, or one of a fit meets none.

    Parameters
    ----------
    fitted : bool
        Whether there is a fit.
    said : mapping
        Options that shape a fit, by name; None or empty where the user said nothing.
    unseen : str
        What an unseen level is.
    """
    check_unseen(unseen)
    if not fitted and unseen != "error":
        raise UsageError("--unseen is about the levels of a fit", hint="Add --fit DIR.glfm.")
    for name, value in said.items() if fitted else ():
        if value is not None and value != {}:
            raise UsageError(
                f"--{name} and --fit cannot be used together: nothing is fitted anew",
                hint=f"Leave out --{name}; it is as it was when the fit was made.",
            )


def check_multiple(versions: int | None, estimate: Estimate, n_draws: int | None) -> None:
    """Raise UsageError when several versions of a table cannot be drawn as asked.

    Parameters
    ----------
    versions : int, optional
        How many; None asks for nothing.
    estimate : Estimate
        What fills the gaps of a single table.
    n_draws : int, optional
        Draws that the run will keep, over all chains; None of an ascent, which keeps laws.
    """
    if versions is None:
        return
    if estimate not in ("auto", "draw"):
        raise UsageError(
            f"--multiple fills gaps with joint draws, --estimate {estimate} with something else",
            hint="Leave out --estimate, or take --multiple away.",
        )
    if n_draws is not None and versions > n_draws:
        raise UsageError(
            f"--multiple {versions} needs a draw for each table, but {n_draws} will be kept",
            hint="Raise --draws or --chains.",
        )


def estimate_cost(problem: Problem, data: Data, plan: Plan, threads: int) -> dict[str, Any]:
    """Return what a run would do: sizes, gaps, and seconds and megabytes it would need.

    The time is that of a few sweeps of one chain, measured now; early sweeps have few features,
    so that it errs on the low side. The memory is counted from the sizes of state and draws.
    """
    chain = chains.start(problem, plan.seed, 0)
    began = time.monotonic()
    sweeps = 0
    while sweeps < 5 or (time.monotonic() - began < 1.0 and sweeps < plan.sweeps):
        chain.sweep(adapt=True)
        sweeps += 1
    per_sweep = (time.monotonic() - began) / sweeps
    n_rows, n_latent = problem.n_rows, spans_of(problem.links)[-1][1]
    state = n_rows * (16 * n_latent + len(problem.links))
    draw = problem.model.pack(problem.model.draw(chain.state))
    kept = plan.chains * plan.draws * sum(array.nbytes for array in draw.values())
    at_once = min(threads, plan.chains)
    return {
        "rows": n_rows,
        "modelled_columns": len(problem.links),
        "latent_columns": n_latent,
        "cells_to_complete": int(sum(e.requested.sum() for e in data.columns)),
        "gaps": {e.column.name: int(e.requested.sum()) for e in data.columns},
        "chains": plan.chains,
        "sweeps": plan.sweeps,
        "draws": plan.chains * plan.draws,
        "threads": at_once,
        "seconds": per_sweep * plan.sweeps * -(-plan.chains // at_once),
        "megabytes": (at_once * state + kept + 8 * n_rows * len(problem.links)) / 2**20,
    }
