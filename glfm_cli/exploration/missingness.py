"""Which cells are missing: how many of each column, and which columns miss together.

Of cells that lie in an interval something is known: they are not missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.exploration.scales import Scale

CONSTANT = 1e-12  # sds of gaps, multiplied, of columns of which one never changes


@dataclass(frozen=True)
class Missingness:
    """The pattern of missing cells of the modelled columns, rows counted by their weights.

    names : the columns;  share : (D,) of the rows in which a column is missing
    together : (D, D) share of the rows in which both are;  phi : (D, D) the correlation of the two
    complete : share of the rows without a missing cell
    """

    names: tuple[str, ...]
    share: Array
    together: Array
    phi: Array
    complete: float


def missingness(scales: Sequence[Scale]) -> Missingness:
    """Return the pattern of missing cells."""
    each = [~(scale.encoded.observed | scale.encoded.between) for scale in scales]
    missing = np.column_stack(each).astype(np.float64)
    count = scales[0].counts(np.arange(missing.shape[0]))
    total = max(count.sum(), np.finfo(float).tiny)
    share, together = count @ missing / total, (missing.T * count) @ missing / total
    spread, away = np.maximum(share * (1.0 - share), 0.0), together - np.outer(share, share)
    sd = np.sqrt(np.outer(spread, spread))
    return Missingness(
        names=tuple(scale.name for scale in scales),
        share=share,
        together=together,
        phi=np.divide(away, sd, out=np.zeros_like(away), where=sd > CONSTANT),
        complete=float(count @ ~missing.any(axis=1) / total),
    )
