"""Second moments of gaps, one inverse for each pattern of them and expert."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm_cli._kernels._iqgme_missing import add_covariances, factor_missing, fill_missing
from glfm_cli.arrays import Array
from glfm_cli.errors import NumericalError
from glfm_cli.latent.iqgme.rows import Block

SCRATCH = 16  # times the size of the largest covariance


@dataclass(frozen=True, eq=False)
class Gaps:
    """Second moments of the gaps of a block's patterns, under every expert.

    cov : (H, sum of c^2) covariances (Q_mm)^-1, one pattern's after another's
    log_det : (H, G) log|Q_mm|
    """

    cov: Array
    log_det: Array

    @classmethod
    def of(
        cls, block: Block, A: Array, B: Array, second: Array, held: Array | None = None
    ) -> Gaps:
        """Return those of Q = A (+ B where `second`) + noise; NumericalError when singular.

        held : (H, b) which rows need them under which experts, 0 elsewhere; None for all
        """
        H, G = len(A), block.labelled.size
        needed = np.ones((H, G), dtype=np.uint8)
        if held is not None:
            needed = np.logical_or.reduceat(held, block.start[:-1], axis=1).view(np.uint8)
        cov = np.zeros((H, int(block.cov_start[-1])))
        log_det = np.empty((H, G))
        scratch = np.empty(SCRATCH * max(block.largest**2, 1))
        bad = factor_missing(
            block.missing_start, block.cov_start, block.missing, second, block.noisy, A, B,
            needed, cov, log_det, scratch,
        )  # fmt: skip
        if bad:
            raise NumericalError("a precision of missing features is not positive definite")
        return cls(cov, log_det)

    def fill(self, block: Block, linear: Array, x: Array) -> None:
        """Put cov linear (H, b, P) into the gaps of x (H, b, P)."""
        fill_missing(
            block.start, block.missing_start, block.cov_start, block.missing, self.cov, linear, x
        )

    def along(self, block: Block, w: Array, which: Array) -> Array:
        """Return how gaps go with t (H, G, P), by w (H, P) at the gaps of patterns (G,), else 0."""
        H, G = self.log_det.shape
        linear = w[:, None, :] * which[:, None]
        out = np.zeros((H, G, w.shape[1]))
        each = np.arange(G + 1)
        fill_missing(
            each, block.missing_start, block.cov_start, block.missing, self.cov, linear, out
        )
        return out

    def add(self, block: Block, weight: Array, total: Array) -> None:
        """Add covariances, weighted (H, G), to total (H, P, P)."""
        add_covariances(
            block.missing_start, block.cov_start, block.missing, self.cov, weight, total
        )

    def traces(self, block: Block, B: Array) -> Array:
        """Return tr(cov B) (H, G) of B (H, P, P) at the gaps of each pattern."""
        out, some = np.zeros(self.log_det.shape), np.diff(block.cov_start) > 0
        each = B.reshape(len(B), -1)[:, block.pairs] * self.cov
        out[:, some] = np.add.reduceat(each, block.cov_start[:-1][some], axis=1)
        return out
