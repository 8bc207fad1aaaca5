"""From draws to a completed table: every missing cell filled, with its uncertainty."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from glfm_cli.completion.dependent import TableDraws, group_marginals, settled_marginals
from glfm_cli.completion.estimates import MODE_GRID, Estimate, point
from glfm_cli.completion.requests import INTERVAL
from glfm_cli.completion.result import ColumnCompletion, Completion
from glfm_cli.completion.rounded import with_rounding
from glfm_cli.completion.verdict import judge
from glfm_cli.encoding import Data, bounds_of, decode, levels_of, placed, settle
from glfm_cli.inference.precision import Precision
from glfm_cli.inference.predictive import nothing, predict
from glfm_cli.inference.sampling import Run
from glfm_cli.streams import CELLS, Streams


@dataclass(frozen=True)
class Filling:
    """How missing cells are filled.

    estimate : what fills a cell;  interval : probability of the reported intervals
    threads : how many predict rows;  goal : how precise estimates should be, where somebody says
    """

    seed: int
    estimate: Estimate = "auto"
    interval: float = INTERVAL
    threads: int = 1
    goal: float | None = None


def complete(
    run: Run,
    data: Data,
    table: pa.Table,
    how: Filling,
    *,
    intervals: bool = True,
    precision: Precision | None = None,
) -> Completion:
    """Fill the missing cells of `table` from the draws of a run.

    Without `intervals` the quantiles of numeric columns are left out (NaN) where the estimate
    does not need them, which saves time. `precision` is how precise estimates are, where known.
    """
    posterior, estimate = run.posterior, how.estimate
    missing = data.missing
    at = [(1 - how.interval) / 2, 0.5, (1 + how.interval) / 2]
    grid = list(MODE_GRID) if estimate == "mode" else []
    marginals = predict(
        posterior,
        missing,
        at + grid,
        numeric_quantiles=intervals or estimate in ("median", "mode"),
        threads=how.threads,
        ends=bounds_of(data),
    )
    for d, possible in levels_of(data).items():
        marginals[d] = marginals[d].among(possible, at + grid)
    rng = Streams(how.seed, 0).get(CELLS)
    joint = TableDraws(posterior, data).draw(rng) if missing and estimate == "draw" else {}
    marginals |= group_marginals(data, marginals)
    marginals |= with_rounding(
        data, settled_marginals(posterior, data, marginals, at + grid), at + grid
    )
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
        precision or judge(posterior, data, how.seed, how.goal),
        how.interval,
        how.seed,
        decode(table, whole, fills),
        tuple(columns),
        table.select(list(data.ids)),
    )
