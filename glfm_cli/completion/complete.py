"""From draws to a completed table: every missing cell filled, with its uncertainty."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa

from glfm_cli.completion.dependent import TableDraws, settled_marginals
from glfm_cli.completion.estimates import MODE_GRID, Estimate, point
from glfm_cli.completion.requests import INTERVAL
from glfm_cli.completion.result import ColumnCompletion, Completion
from glfm_cli.completion.verdict import judge
from glfm_cli.encoding import Data, bounds_of, decode, placed, settle
from glfm_cli.inference.precision import Precision
from glfm_cli.inference.predictive import nothing, predict
from glfm_cli.inference.sampling import Run
from glfm_cli.streams import CELLS, Streams


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
    goal: float | None = None,
    precision: Precision | None = None,
) -> Completion:
    """Fill the missing cells of `table` from the draws of a run.

    Without `intervals` the quantiles of numeric columns are left out (NaN) where the estimate
    does not need them, which saves time. Rows are predicted by `threads` threads.
    `goal` is how precise estimates should be, `precision` how precise they are where that is known.
    """
    posterior = run.posterior
    missing = data.missing
    at = [(1 - interval) / 2, 0.5, (1 + interval) / 2]
    grid = list(MODE_GRID) if estimate == "mode" else []
    marginals = predict(
        posterior,
        missing,
        at + grid,
        numeric_quantiles=intervals or estimate in ("median", "mode"),
        threads=threads,
        ends=bounds_of(data),
    )
    rng = Streams(seed, 0).get(CELLS)
    joint = TableDraws(posterior, data).draw(rng) if estimate == "draw" else {}
    marginals |= settled_marginals(posterior, data, marginals, at + grid)
    values = settle(
        data,
        {
            d: joint[d] if d in joint else point(posterior.links[d], marginals[d], estimate)
            for d in missing
        },
    )
    whole, values = placed(data, values)
    columns, fills = [], {}
    for d, encoded in enumerate(whole.columns):
        if not encoded.column.completed:
            continue
        if d in missing:
            if encoded.trials is not None:
                values[d] = np.floor(values[d] + 0.5)
            kept = dataclasses.replace(marginals[d], quantiles=marginals[d].quantiles[:, :3])
            there = encoded.requested[kept.rows]
            part = ColumnCompletion(encoded, values[d], kept.take(there))
        else:
            part = ColumnCompletion(encoded, np.empty(0), nothing(posterior.links[d], 3))
        columns.append(part)
        fills[encoded.column.name] = part.estimate
    return Completion(
        data,
        run,
        precision or judge(posterior, data, seed, goal),
        interval,
        seed,
        decode(table, whole, fills),
        tuple(columns),
        table.select(list(data.ids)),
    )
