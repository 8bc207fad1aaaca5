"""Traces of the predictive means of a few cells, to judge convergence by."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.posterior import Posterior

TRACED_CELLS = 50


def trace_cells(
    posterior: Posterior, cells: Mapping[int, Array], rng: np.random.Generator
) -> dict[str, Array]:
    """Return traces (chain, draw) of the predictive mean of up to 50 of the cells.

    The mean of a categorical column is the probability of its first level, of an ordinal one
    the mean level code.
    """
    n_cells, start, pairs = sum(rows.size for rows in cells.values()), 0, list[tuple[int, int]]()
    chosen = np.arange(n_cells)
    if n_cells > TRACED_CELLS:
        chosen = np.sort(rng.choice(n_cells, TRACED_CELLS, replace=False))
    for d, rows in cells.items():
        here = chosen[(chosen >= start) & (chosen < start + rows.size)] - start
        pairs += [(d, int(row)) for row in rows[here]]
        start += rows.size
    if not pairs:
        return {}
    rows = np.unique([row for _, row in pairs])
    where = {int(row): i for i, row in enumerate(rows)}
    by_column: dict[int, list[int]] = {}
    for d, row in pairs:
        by_column.setdefault(d, []).append(where[row])
    chains = posterior.of_one_length().chains
    out = np.empty((len(pairs), len(chains), len(chains[0])))
    for c, chain in enumerate(chains):
        for t, draw in enumerate(chain):
            law = posterior.cells_law(draw, rows)
            out[:, c, t] = np.concatenate(
                [
                    posterior.links[d].expected(law.column(d, np.array(index)), draw.params[d])
                    for d, index in by_column.items()
                ]
            )
    names = [(d, int(rows[i])) for d, index in by_column.items() for i in index]
    return {f"cell_{row + 1}_{d}": out[i] for i, (d, row) in enumerate(names)}
