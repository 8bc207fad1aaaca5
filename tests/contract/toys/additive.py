"""A toy model of tables: every cell is a column's level plus a row's, eta_ns = m_s + a_n.

m_s, a_n ~ N(0, variance);  y_ns ~ N(eta_ns, noise_d);  noise_d ~ InvGamma
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.model import Cells, Rows, Sizes, Spans, take
from glfm_cli.latent.plain import PlainModel
from glfm_cli.links.law import GivenLatent, RowsLaw
from glfm_cli.streams import ROWS, Streams


@dataclass(frozen=True)
class AdditiveConfig:
    """Settings: variance of the effects; `shape` and `rate` of the noise's inverse gamma law."""

    variance: float = 1.0
    shape: float = 3.0
    rate: float = 1.0


@dataclass(frozen=True)
class Effects:
    """State and draw: m (S,), a (N,) and noise (D,)."""

    m: Array
    a: Array
    noise: Array
    spans: Spans
    config: AdditiveConfig = AdditiveConfig()

    def draw_rows(self, cells: Cells, rng: np.random.Generator) -> None:
        weight = cells.observed[:, cells.column] / self.noise[cells.column]
        precision = 1.0 / self.config.variance + weight.sum(axis=1)
        mean = (weight * (cells.y - self.m)).sum(axis=1) / precision
        self.a[:] = mean + rng.standard_normal(mean.size) / np.sqrt(precision)


class Additive(PlainModel):
    """Rows and columns by Gibbs sampling."""

    name = "row-plus-column"
    Config = AdditiveConfig

    def start(self, cells: Cells, config: AdditiveConfig, streams: Streams) -> Effects:
        N, S = cells.y.shape
        return Effects(np.zeros(S), np.zeros(N), np.ones(len(cells.spans)), cells.spans, config)

    def update(self, state: Effects, cells: Cells, streams: Streams) -> None:
        rng, config, seen = streams.get(ROWS), state.config, cells.observed[:, cells.column]
        state.draw_rows(cells, rng)
        precision = 1.0 / config.variance + seen.sum(axis=0) / state.noise[cells.column]
        total = (seen * (cells.y - state.a[:, None])).sum(axis=0) / state.noise[cells.column]
        state.m[:] = total / precision + rng.standard_normal(total.size) / np.sqrt(precision)
        square = seen * (cells.y - state.m - state.a[:, None]) ** 2
        for d in np.flatnonzero(cells.unit_noise == 0):
            own = slice(*state.spans[d])
            shape, rate = config.shape + seen[:, own].sum() / 2, square[:, own].sum() / 2
            state.noise[d] = (config.rate + rate) / rng.gamma(shape)

    def fill_eta(self, state: Effects, out: Array) -> None:
        out[:] = state.m + state.a[:, None]

    def trace(self, state: Effects) -> dict[str, float]:
        return {"rows_square": float(np.mean(state.a**2))}

    def draw(self, state: Effects) -> Effects:
        return replace(state, m=state.m.copy(), a=state.a.copy(), noise=state.noise.copy())

    def cells_law(self, draw: Effects, rows: Rows) -> RowsLaw:
        return GivenLatent(draw.m + draw.a[rows, None], draw.noise, draw.spans)

    def fold_in(
        self,
        draw: Effects,
        config: AdditiveConfig,
        cells: Cells,
        refill: Callable[[Array], None],
        score: object,
        sweeps: int,
        rng: np.random.Generator,
    ) -> Effects:
        new = replace(draw, a=np.zeros(len(cells.y)), config=config)
        for _ in range(sweeps):
            refill(new.m + new.a[:, None])
            new.draw_rows(cells, rng)
        return new

    def save(self, state: Effects) -> dict[str, Array]:
        return {"m": state.m, "a": state.a, "noise": state.noise}

    pack = save

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> Effects:
        shapes = {"m": (sizes.latent,), "a": (sizes.rows,), "noise": (sizes.columns,)}
        found = {name: take(arrays, name, np.float64, shape) for name, shape in shapes.items()}
        if np.any(found["noise"] <= 0.0):
            raise ValueError("'noise' is not above 0")
        return Effects(**found, spans=sizes.spans)

    def load(self, arrays: Mapping[str, Array], cells: Cells, config: Any) -> Effects:
        sizes = Sizes(*cells.y.shape, cells.spans)
        return replace(self.draw(self.unpack(arrays, sizes)), config=config)
