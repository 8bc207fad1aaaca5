"""Traces of the predictive means of a few cells, to judge convergence by."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import component
from glfm_cli.latent.model import EtaLaw
from glfm_cli.links.link import Params, of_levels, of_numbers

TRACED_CELLS = 50


def trace_cells(
    posterior: Posterior, cells: Mapping[int, Array], rng: np.random.Generator
) -> dict[str, Array]:
    """Return traces (chain, draw) of the predictive mean of up to 50 of the cells.

    The mean of a categorical column is the probability of its first level, of an ordinal one
    the mean level code.
    """
    pairs = [(d, int(row)) for d, rows in cells.items() for row in rows]
    if len(pairs) > TRACED_CELLS:
        chosen = np.sort(rng.choice(len(pairs), TRACED_CELLS, replace=False))
        pairs = [pairs[i] for i in chosen]
    if not pairs:
        return {}
    rows = np.unique([row for _, row in pairs])
    where = {int(row): i for i, row in enumerate(rows)}
    by_column: dict[int, list[int]] = {}
    for d, row in pairs:
        by_column.setdefault(d, []).append(where[row])
    length = min(len(chain) for chain in posterior.chains)
    out = np.empty((len(pairs), len(posterior.chains), length))
    for c, chain in enumerate(posterior.chains):
        for t, draw in enumerate(chain[len(chain) - length :]):
            law = posterior.model.eta_law(draw.latent, rows)
            noise = posterior.model.draw_noise(draw.latent)
            out[:, c, t] = np.concatenate(
                [
                    _mean(posterior, d, law, np.array(index), float(noise[d]), draw.params[d])
                    for d, index in by_column.items()
                ]
            )
    names = [(d, int(rows[i])) for d, index in by_column.items() for i in index]
    return {f"cell_{row + 1}_{d}": out[i] for i, (d, row) in enumerate(names)}


def _mean(
    posterior: Posterior, d: int, law: EtaLaw, index: Array, noise: float, params: Params
) -> Array:
    link = posterior.links[d]
    total, mass = np.zeros(index.size), np.zeros(index.size)
    for c in range(law.weight.shape[1]):
        weight = law.weight[index, c]
        eta, var = component(posterior, d, law, index, c, noise)
        if link.discrete:
            levels = of_levels(link)
            p = levels.probabilities(eta, var, params)
            total += weight * (p @ np.arange(p.shape[1]) if levels.ordered else p[:, 0])
            mass += weight
        else:
            inside, first, _ = of_numbers(link).moments(eta, var, params)
            total += weight * first
            mass += weight * inside
    return total / np.where(mass > 0, mass, 1.0)
