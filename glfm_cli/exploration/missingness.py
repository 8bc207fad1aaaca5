"""Which cells are missing: how many of each column, and which columns miss together.

Of cells that lie in an interval something is known: they are not missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.exploration.scales import Scale
from glfm_cli.exploration.stability import correlations


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
    return Missingness(
        names=tuple(scale.name for scale in scales),
        share=count @ missing / total,
        together=(missing.T * count) @ missing / total,
        phi=correlations(missing, missing),
        complete=float(count @ ~missing.any(axis=1) / total),
    )
