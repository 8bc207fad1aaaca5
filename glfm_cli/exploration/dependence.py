"""How much two columns tell of each other under the model: their mutual information.

Given its features the cells of a row are independent, so the joint distribution of two columns is

    P(x_a, x_b) = mean over rows and draws of  P(x_a | z_n) P(x_b | z_n).

Numeric columns are cut into bins that hold about equally many of their cells, which can only
lower the mutual information.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.exploration.scales import Scale, scale_of
from glfm_cli.exploration.stability import some_rows, thinned
from glfm_cli.inference.posterior import Posterior

N_BINS = 10
_AT_MOST_ROWS = 1000
_AT_MOST_DRAWS = 40


@dataclass(frozen=True)
class Dependence:
    """Mutual information between columns.

    information : (D, D) in bits; the diagonal is NaN
    strength : (D, D) in [0, 1], sqrt(1 - 2^(-2 I)): for two normal variables their |correlation|
    """

    names: tuple[str, ...]
    information: Array
    strength: Array


def dependence(posterior: Posterior, scales: Sequence[Scale]) -> Dependence:
    """Return the mutual information between every two columns.

    O(draws N G^2) for G bins and levels in all, with at most 1,000 rows and 40 draws.
    """
    coarse = [scale_of(s.d, s.encoded, s.link, s.span, N_BINS) for s in scales]
    edges = np.cumsum([0, *(s.n_bins for s in coarse)])
    rows = some_rows(scales[0].encoded.x.size, _AT_MOST_ROWS)
    joint, n_draws = np.zeros((edges[-1], edges[-1])), 0
    per_chain = max(1, _AT_MOST_DRAWS // len(posterior.chains))
    for chain in posterior.chains:
        for t in thinned(len(chain), per_chain).tolist():
            draw = chain[t]
            law = posterior.cells_law(draw, rows)
            mass = np.column_stack(
                [s.link.masses(s.at, law.column(s.d), draw.params[s.d]) for s in coarse]
            )
            joint += mass.T @ mass / rows.size
            n_draws += 1
    joint /= n_draws
    n = len(scales)
    information = np.full((n, n), np.nan)
    for a in range(n):
        for b in range(a):
            block = joint[edges[a] : edges[a + 1], edges[b] : edges[b + 1]]
            information[a, b] = information[b, a] = mutual_information(block)
    strength = np.sqrt(1.0 - 2.0 ** (-2.0 * information))
    return Dependence(tuple(s.name for s in scales), information, strength)


def mutual_information(joint: Array) -> float:
    """Return the mutual information of a joint distribution (a, b), in bits."""
    joint = joint / joint.sum()
    expected = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    inside = joint > 0
    return max(0.0, float(np.sum(joint[inside] * np.log2(joint[inside] / expected[inside]))))
