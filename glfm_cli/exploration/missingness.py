"""Which cells are missing: how many of each column, and which columns miss together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.exploration.scales import Scale
from glfm_cli.exploration.stability import correlations
from glfm_cli.latent.latent import Array


@dataclass(frozen=True)
class Missingness:
    """The pattern of gaps of the modelled columns.

    names : the columns;  share : (D,) of the rows in which a column is missing
    together : (D, D) share of the rows in which both are;  phi : (D, D) the correlation of the two
    complete : share of the rows without a gap
    """

    names: tuple[str, ...]
    share: Array
    together: Array
    phi: Array
    complete: float


def missingness(scales: Sequence[Scale]) -> Missingness:
    """Return the pattern of gaps."""
    gaps = np.column_stack([~scale.encoded.observed for scale in scales]).astype(np.float64)
    n_rows = max(gaps.shape[0], 1)
    return Missingness(
        names=tuple(scale.name for scale in scales),
        share=gaps.mean(axis=0),
        together=gaps.T @ gaps / n_rows,
        phi=correlations(gaps, gaps),
        complete=float(np.mean(~gaps.any(axis=1))),
    )
