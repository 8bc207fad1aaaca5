"""Which draw is shown.

- `best`: the highest log likelihood of all draws [GLFM, section 5.2.1]. It favours draws with many
  features.
- `consensus`: the draw whose rows go together most as they do on average. With C_t the N x N matrix
  of how much two rows share features in draw t, it minimises ||C_t - mean C||, the least squares
  point of the posterior of C. Labels do not enter. With a bias C_t is the inner product of the
  centred memberships, which stays as it is when a feature is turned.
- `held-out`: the highest log density of cells hidden before the fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import UsageError
from glfm_cli.exploration.explanation import memberships, numbered
from glfm_cli.exploration.stability import some_rows, thinned
from glfm_cli.inference.posterior import Draw, Posterior

Sample = Literal["consensus", "best", "held-out"]

_AT_MOST_ROWS = 2000
_AT_MOST_DRAWS = 160


@dataclass(frozen=True)
class Hidden:
    """Cells hidden before the fit: per column their rows, and the values that stood there."""

    rows: Mapping[int, Array]
    values: Mapping[int, Array]

    @property
    def n_cells(self) -> int:
        """Return how many."""
        return sum(rows.size for rows in self.rows.values())


def check_sample(sample: str) -> Sample:
    """Return the way to choose a draw, or raise UsageError."""
    for known in get_args(Sample):
        if sample == known:
            return known
    raise UsageError("--sample", value=sample, expected=" or ".join(get_args(Sample)))


def choose(
    posterior: Posterior, sample: Sample, hidden: Hidden | None, n_rows: int, *, bias: bool
) -> tuple[int, int]:
    """Return the chain and the number of the draw to show."""
    if sample == "best":
        chain, draw, _ = max(numbered(posterior), key=lambda one: one[2].trace["log_likelihood"])
        return chain, draw
    if sample == "held-out":
        if hidden is None:
            raise UsageError(
                "--sample held-out needs cells that were hidden before the fit",
                hint="Give the table and its types, not a saved run; or use --sample consensus.",
            )
        chain, draw, _ = max(
            numbered(posterior), key=lambda one: hidden_log_density(posterior, one[2], hidden)
        )
        return chain, draw
    return nearest(posterior, n_rows, bias=bias)


def nearest(posterior: Posterior, n_rows: int, *, bias: bool) -> tuple[int, int]:
    """Return the draw whose co-activation is nearest to the average over all draws.

    ||C_t - mean C||^2 = ||Z_t'Z_t||^2 - 2 mean_s ||Z_s'Z_t||^2 + constant: no N x N matrix is
    formed. O(draws^2 N K^2), with at most 2,000 rows and 160 draws.
    """
    rows = some_rows(n_rows, _AT_MOST_ROWS)
    per_chain = max(1, _AT_MOST_DRAWS // len(posterior.chains))
    where: list[tuple[int, int]] = []
    for c, chain in enumerate(posterior.chains):
        where += [(c, t) for t in thinned(len(chain), per_chain).tolist()]
    parts = []
    for c, t in where:
        Z = memberships(posterior, posterior.chains[c][t], rows, bias=bias).astype(np.float32)
        parts.append(Z - Z.mean(axis=0) if bias else Z)
    gram = np.zeros((len(parts), len(parts)))
    for i, mine in enumerate(parts):
        for j in range(i, len(parts)):
            gram[i, j] = gram[j, i] = np.sum((mine.T @ parts[j]).astype(np.float64) ** 2)
    weight = np.array([1.0 / sum(one[0] == c for one in where) for c, _ in where])
    distance = np.diag(gram) - 2.0 * gram @ (weight / weight.sum())
    return where[int(np.argmin(distance))]


def hidden_log_density(posterior: Posterior, draw: Draw, hidden: Hidden) -> float:
    """Return the sum of log p(x | draw) over the hidden cells."""
    total, law = 0.0, posterior.cells_law(draw, slice(None))
    for d, rows in hidden.rows.items():
        own, link = law.column(d, rows), posterior.links[d]
        total += float(np.sum(link.log_density(hidden.values[d], own, draw.params[d])))
    return total
