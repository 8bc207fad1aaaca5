"""One model twice: as the package samples it, and as the independent simulator draws it.

The constants of the links are calibrated once on a fixed reference sample and given to both.
Calibrating them on each simulated table would make the model depend on its own data, and neither
a joint-distribution test nor simulation-based calibration would hold for any sampler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from glfm_cli.encoding import EncodedColumn
from glfm_cli.inference.chain import Chain
from glfm_cli.latent.glfm.linear import LinearPart
from glfm_cli.latent.glfm.sampler import Glfm
from glfm_cli.latent.glfm.state import GlfmConfig
from glfm_cli.latent.model import Problem
from glfm_cli.links import Link, LinkConfig, make_link
from glfm_cli.links.margins import Smooth
from glfm_cli.links.shapes import Identity, Softplus
from glfm_cli.schema import COLUMN_TYPES, Column, Transform
from tests.statistical.prior import (
    Array,
    Categorical,
    ColumnSpec,
    Count,
    Draw,
    Ordinal,
    Positive,
    Prior,
    Real,
    draw_table,
    simulate,
)

REFERENCE_ROWS = 200
N_LEVELS = {"categorical": 3, "ordinal": 4}
WITH_ZEROS = "positive with zeros"  # a kind of column: below its smallest value x is 0


@dataclass(frozen=True)
class Twins:
    """The same model for both sides.

    links, config : what the package samples
    columns, prior, smallest : what the simulator draws; cells below `smallest` (D,) become 0
    """

    links: tuple[Link, ...]
    config: GlfmConfig
    columns: tuple[ColumnSpec, ...]
    prior: Prior
    smallest: Array

    def simulate(self, n_rows: int, rng: np.random.Generator) -> Draw:
        """Return a draw of parameters, pseudo-observations and table."""
        draw = simulate(n_rows, self.columns, self.prior, rng)
        return replace(draw, x=self._with_zeros(draw.x))

    def table_given(self, draw: Draw, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return new pseudo-observations and a new table given the parameters of a draw."""
        y, x = draw_table(
            draw.Z,
            draw.B,
            draw.noise,
            draw.thresholds,
            draw.U @ draw.V,
            self.columns,
            self.prior,
            rng,
        )
        return y, self._with_zeros(x)

    def _with_zeros(self, x: Array) -> Array:
        return np.where(x < self.smallest, 0.0, x)

    def problem(self, x: Array, observed: Array) -> Problem:
        """Return the package's problem for a table x (N, D) seen where `observed`."""
        xs = tuple(np.ascontiguousarray(column) for column in np.where(observed, x, np.nan).T)
        return Problem(Glfm(), self.config, self.links, xs)


def make_twins(types: Sequence[str], config: GlfmConfig, link_noise: float = 0.0) -> Twins:
    """Return both sides of a model with columns of the given types.

    Link noise, where there is some, is that of real and positive columns.
    """
    link_config = LinkConfig(
        link_noise=link_noise, first_threshold_fixed=config.bias, atoms=False
    )
    links = tuple(
        make_link(_reference_column(kind, d), link_config) for d, kind in enumerate(types)
    )
    columns = tuple(
        _specification(kind, link, link_noise) for kind, link in zip(types, links, strict=True)
    )
    prior = Prior(
        a_alpha=config.alpha_shape,
        b_alpha=config.alpha_rate,
        a_B=config.weight_variance_shape,
        b_B=config.weight_variance_rate,
        beta1=config.noise_shape,
        beta2=config.noise_rate,
        var_theta=link_config.threshold_variance,
        var_bias=config.bias_variance if config.bias else None,
        noise_scaled=config.prior_scale == "noise",
        max_features=config.max_features,
        components=config.components,
    )
    smallest = [
        link.smallest if kind == WITH_ZEROS else -np.inf
        for kind, link in zip(types, links, strict=True)
    ]
    return Twins(links, config, columns, prior, np.array(smallest))


def _reference_column(kind: str, d: int) -> EncodedColumn:
    """Return a column whose only use is to fix the constants of a link."""
    rng = np.random.default_rng(d)
    levels: tuple[str, ...] = ()
    match kind:
        case "real":
            x = rng.normal(3.0 + d, 2.0, REFERENCE_ROWS)
        case "positive":
            x = rng.gamma(3.0, 2.0, REFERENCE_ROWS)
        case "positive with zeros":
            x = rng.gamma(3.0, 2.0, REFERENCE_ROWS)
            x[x < 2.5] = 0.0
        case "count":
            x = rng.poisson(4.0, REFERENCE_ROWS).astype(np.float64)
        case _:  # a kind with levels
            levels = tuple("abcdefgh"[: N_LEVELS[kind]])
            # Weights that leave the most frequent level, the reference, neither first nor last.
            weights = np.array([2.0, 3.0, 1.0, 1.0])[: len(levels)]
            x = rng.choice(len(levels), REFERENCE_ROWS, p=weights / weights.sum()).astype(float)
    numeric = not levels
    column = Column(
        f"{kind} {d}",
        type=COLUMN_TYPES[kind.split()[0]],
        transform=Transform.NONE if numeric else None,
    )
    seen = np.ones(REFERENCE_ROWS, dtype=bool)
    return EncodedColumn(column, d, x, seen, ~seen, levels)


def _specification(kind: str, link: Link, link_noise: float) -> ColumnSpec:
    """Return the simulator's column with the constants of a link."""
    match kind:
        case "categorical":
            (reference,) = np.flatnonzero(np.asarray(link.slot) < 0)
            return Categorical(N_LEVELS[kind], int(reference))
        case "ordinal":
            return Ordinal(N_LEVELS[kind])
    margin = link.margin
    assert isinstance(margin, Smooth)
    shift, scale, shape = margin.m, margin.w, margin.shape
    if kind == "real":
        assert isinstance(shape, Identity)
        return Real(scale * shape.unit, shift * shape.unit, link_noise)
    assert isinstance(shape, Softplus)
    if kind in ("positive", WITH_ZEROS):
        return Positive(shape.scale, scale, shift, link_noise)
    return Count(shape.scale, scale, shift)


def place(chain: Chain, draw: Draw) -> None:
    """Put a simulated draw of the parameters and pseudo-observations into a chain."""
    state = chain.state
    bias = int(state.config.bias)
    used = bias + draw.Z.shape[1]
    state.Z[:] = 0
    state.Z[:, :bias] = 1
    state.Z[:, bias:used] = draw.Z
    state.n_columns = used
    state.B[:used] = draw.B
    state.noise[:] = draw.noise
    state.alpha, state.weight_variance = draw.alpha, draw.var_B
    state.linear = LinearPart(draw.U.copy(), draw.V.copy(), draw.omega.copy())
    for params, theta in zip(chain.params, draw.thresholds, strict=True):
        if theta.size:
            params["thresholds"][:] = theta
    chain.cells.y[:] = draw.y


def read(chain: Chain) -> Draw:
    """Return the state of a chain as the simulator writes it; x has NaN where missing."""
    state = chain.state
    bias = int(state.config.bias)
    none = np.empty(0)
    return Draw(
        state.alpha,
        state.weight_variance,
        state.Z[:, bias : state.n_columns],
        state.noise,
        state.B[: state.n_columns],
        tuple(params.get("thresholds", none) for params in chain.params),
        chain.cells.y,
        np.column_stack(chain.problem.xs),
        state.linear.U,
        state.linear.V,
        state.linear.omega,
    )
