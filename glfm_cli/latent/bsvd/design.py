"""What is known of the rows and columns of the low-rank model's matrix (`bsvd`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.latent.model import Cells, Sparse


@dataclass(frozen=True)
class Covariates:
    """Covariates: R (I, Jr) of the rows, C (J, Jc) of the columns; a constant comes first.

    features : (I, p) and (J, p'), what is known of rows and columns, for their prior means
    n_weights : of the columns of R, and of C, those that other units have weights of their own for
    one_kind : the matrix has one link for all its columns, hence effects of rows and a common mean
    slopes : rows of such a matrix respond each by a factor of its own to the columns' intercepts
    row_noise : rows of such a matrix, whose values fix y, have each a noise variance of its own
    """

    R: Array
    C: Array
    features: tuple[Array, Array]
    n_weights: tuple[int, int]
    one_kind: bool
    bias: bool
    slopes: bool
    row_noise: bool

    @classmethod
    def of(cls, cells: Cells, shape: tuple[int, int], config: BsvdConfig) -> Covariates:
        """Return the covariates of a matrix."""
        layout, one_kind, bias = cells.layout, isinstance(cells.layout, Sparse), config.bias
        sides, features, n_weights = [], [], []
        given: tuple[Array | None, Array | None] = (None, None)
        if isinstance(layout, Sparse):
            given = layout.row_covariates, layout.column_covariates
        constants = (bias, bias and one_kind)
        for n, known, constant in zip(shape, given, constants, strict=True):
            none = np.empty((n, 0))
            known = none if known is None else known
            parts = [np.ones((n, int(constant))), known]
            sides.append(np.ascontiguousarray(np.concatenate(parts, axis=1)))
            features.append(known if config.prior_means else none)
            n_weights.append(int(constant) + (known.shape[1] if config.own_weights else 0))
        fixed = one_kind and bool(np.all(cells.known)) and not np.any(cells.unit_noise)
        return cls(
            sides[0],
            sides[1],
            (features[0], features[1]),
            (n_weights[0], n_weights[1]),
            one_kind,
            bias,
            slopes=config.slopes and bias and one_kind,
            row_noise=config.row_noise and fixed,
        )

    def precision(self, tau: Array) -> tuple[Array, Array]:
        """Return the prior precisions of the weights, and of those of columns' and the slopes."""
        found = []
        for n, constant, (own, others) in (
            (self.n_weights[0], self.bias, tau[:2]),
            (self.n_weights[1], self.bias and self.one_kind, tau[2:4]),
        ):
            precision = np.full(n, others)
            precision[: int(constant)] = own
            found.append(precision)
        return found[0], np.concatenate([found[1], tau[4:]])
