"""What GLFM's sampler works on: its configuration, one chain's state, and a kept draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from glfm_cli._kernels import _glfm
from glfm_cli.arrays import Array
from glfm_cli.latent.glfm.known_features import KnownFeatures
from glfm_cli.latent.glfm.linear import LinearPart
from glfm_cli.latent.model import Cells, Spans
from glfm_cli.settings import require, require_each, require_whole

SMALLEST, LARGEST = 1e-10, 1e10  # beyond them a precision of doubles is lost in the sums


@dataclass(frozen=True)
class GlfmConfig:
    """Settings of the latent feature model; `--set name=value` reaches each.

    prior_scale : "noise" scales each column's weights by its noise variance; "independent" does
        not (exact too, slower: one inverse per noise variance).
    alpha : mass of the Indian buffet process; None = sampled from
        Gamma(alpha_shape, rate alpha_rate).
    weight_variance : prior variance sB2 of the weights; None = sampled from
        InvGamma(weight_variance_shape, weight_variance_rate).
    noise_shape, noise_rate : inverse-gamma prior of the noise variances of real, positive and
        count columns, whose pseudo-observations have variance about 1. A column that others tell
        exactly keeps a noise sd of about sqrt(2 noise_rate / N), however exactly.
    bias : add a feature that every row has.
    bias_variance : prior variance of its weights.
    max_features : the most features, bias not counted; the prior is cut off there.
    initial_features, initial_share : random features that a chain starts with, and the chance of
        a row to have one.
    components : of the linear part beside the features, at most one a latent column; 0 leaves
        it out.
    known_features : the most levels of complete categorical columns that are features, too, which
        are known and not drawn (known_features.py); 0 for none.
    """

    prior_scale: Literal["noise", "independent"] = "noise"
    alpha: float | None = None
    alpha_shape: float = 1.0
    alpha_rate: float = 1.0
    weight_variance: float | None = None
    weight_variance_shape: float = 2.0
    weight_variance_rate: float = 2.0
    noise_shape: float = 2.0
    noise_rate: float = 0.15
    bias: bool = True
    bias_variance: float = 10.0
    max_features: int = 50
    initial_features: int = 20
    initial_share: float = 0.3
    components: int = 0
    known_features: int = 10

    def __post_init__(self) -> None:
        positive = "alpha_shape alpha_rate weight_variance_shape weight_variance_rate"
        positive += " noise_shape noise_rate bias_variance"
        expected = "a number from 1e-10 to 1e10"
        require_each(self, positive, lambda x: SMALLEST <= x <= LARGEST, expected)
        for name in ("alpha", "weight_variance"):
            value = getattr(self, name)
            fits = value is None or SMALLEST <= value <= LARGEST
            require(fits, name, value, f"{expected}, or auto")
        require_whole(self, max_features=(int(not self.bias), 10_000), initial_features=(0, None))
        fits = 0 < self.initial_share < 1
        require(fits, "initial_share", self.initial_share, "a share in (0, 1)")
        require_whole(self, components=(0, 100), known_features=(0, 100))


@dataclass
class GlfmState:
    """One chain's state; the kernels update it in place.

    Z : (N, C) uint8, columns 0..n_columns-1 in use, the first the bias when there is one, then
        those that are known
    B : (C, S) weights on the scale of y;  noise : (D,) variances
    """

    config: GlfmConfig
    Z: Array
    n_columns: int
    B: Array
    noise: Array
    alpha: float
    weight_variance: float
    linear: LinearPart
    known: KnownFeatures
    layout: ScaleGroups
    work: Array
    iwork: Array
    counts: Array  # (C,) rows that have each feature; kept from `update` to `refine`
    odds: Array | None = None  # (C,) their log odds, drawn where rows come in blocks; kept so, too
    at_cap: bool = False  # a kept draw had as many features as are allowed

    @property
    def fixed(self) -> int:
        """Return the number of first columns of Z that are not drawn."""
        return int(self.config.bias) + len(self.known)


@dataclass(frozen=True)
class GlfmDraw:
    """A snapshot: Z packed to bits (N, ceil(K/8)), weights (K, S), noise variances (D,).

    known : the features that are known, after the bias
    """

    bits: Array
    n_columns: int
    B: Array
    noise: Array
    spans: Spans
    linear: LinearPart
    known: KnownFeatures


@dataclass(frozen=True)
class ScaleGroups:
    """Groups of pseudo-columns that share one prior scale, hence one P.

    spans : per column, its first pseudo-column and one past its last
    segments : (n, 3) int32, (start, end, group);  source : (G,) int32, a column whose noise
        variance is the group's, or -1 for unit scale
    """

    column: Array
    unit_noise: Array
    spans: Spans
    segments: Array
    source: Array

    @classmethod
    def of(cls, cells: Cells, prior_scale: str) -> ScaleGroups:
        n_latent, spans = cells.column.size, cells.spans
        if prior_scale == "noise":
            segments = [(0, n_latent, 0)]
            source = [-1]
        else:
            segments, source = [], []
            group_of: dict[int, int] = {}
            for d in range(cells.unit_noise.size):
                start, end = spans[d]
                key = -1 if cells.unit_noise[d] else d
                if key not in group_of:
                    group_of[key] = len(source)
                    source.append(key)
                segments.append((start, end, group_of[key]))
        return cls(
            cells.column,
            cells.unit_noise,
            spans,
            np.array(segments, dtype=np.int32).reshape(-1, 3),
            np.array(source, dtype=np.int32),
        )

    def scales(self, noise: Array) -> Array:
        """Return each group's noise variance where the prior is unscaled, else 1."""
        return np.where(self.source < 0, 1.0, noise[np.maximum(self.source, 0)])


def with_work_space(cells: Cells, config: GlfmConfig, Z: Array, **parts: Any) -> GlfmState:
    """Return a state of the given parts, with its layout and scratch space."""
    layout = ScaleGroups.of(cells, config.prior_scale)
    (n_rows, capacity), n_latent = Z.shape, cells.y.shape[1]
    n_work, n_iwork = _glfm.work_sizes(n_rows, capacity, n_latent, layout.source.size)
    return GlfmState(
        config=config,
        Z=Z,
        layout=layout,
        work=np.zeros(n_work),
        iwork=np.zeros(n_iwork, dtype=np.int32),
        counts=np.zeros(capacity, dtype=np.int64),
        **parts,
    )
