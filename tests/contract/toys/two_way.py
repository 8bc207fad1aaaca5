"""A toy model of matrices: every cell is its row's effect plus its column's, x_ij = u_i + v_j.

u_i, v_j ~ N(0, variance);  y_ij ~ N(x_ij, noise + own_ij);  noise ~ InvGamma
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.model import Cells, Entries, Pairs, Sizes, Sparse, take
from glfm_cli.latent.plain import PlainModel
from glfm_cli.links.law import GivenLatent, RowsLaw
from glfm_cli.streams import ROWS, Streams


@dataclass(frozen=True)
class TwoWayConfig:
    """Settings: variance of the effects; `shape` and `rate` of the noise's inverse gamma law."""

    variance: float = 1.0
    shape: float = 3.0
    rate: float = 1.0


@dataclass(frozen=True)
class Sides:
    """State and draw: u (I,), v (J,) and noise (1,); of a state the observed cells."""

    u: Array
    v: Array
    noise: Array
    entries: Entries | None = None
    config: TwoWayConfig = TwoWayConfig()

    @property
    def known(self) -> tuple[int, int]:
        return self.u.size, self.v.size

    def means(self, pairs: Entries | Pairs | None) -> Array:
        assert pairs is not None
        return (self.u[pairs.row] + self.v[pairs.column])[:, None]

    def draw_effects(
        self, cells: Cells, rng: np.random.Generator, known: tuple[int, int] = (0, 0)
    ) -> None:
        at_cells, weight = entries_of(cells), 1.0 / (self.noise + own_of(cells))
        row, column = at_cells.row, at_cells.column
        for own, other, at, over, first in (
            (self.u, self.v, row, column, known[0]),
            (self.v, self.u, column, row, known[1]),
        ):
            precision = 1.0 / self.config.variance + np.bincount(at, weight, own.size)
            total = np.bincount(at, weight * (cells.y[:, 0] - other[over]), own.size)
            drawn = total / precision + rng.standard_normal(own.size) / np.sqrt(precision)
            own[first:] = drawn[first:]


def entries_of(cells: Cells) -> Entries:
    assert isinstance(cells.layout, Sparse)
    return cells.layout.entries


def own_of(cells: Cells) -> Array:
    return np.zeros(len(cells.y)) if cells.own is None else cells.own[:, 0]


class TwoWay(PlainModel):
    """Effects of rows and columns by Gibbs sampling."""

    name = "two-way"
    Config = TwoWayConfig
    layouts = frozenset({"sparse"})

    def start(self, cells: Cells, config: TwoWayConfig, streams: Streams) -> Sides:
        u, v = (np.zeros(n) for n in entries_of(cells).shape)
        return Sides(u, v, np.ones(1), entries_of(cells), config)

    def update(self, state: Sides, cells: Cells, streams: Streams) -> None:
        rng, config = streams.get(ROWS), state.config
        state.draw_effects(cells, rng)
        if not cells.unit_noise[0]:
            # What of the residuals is the noise's, drawn given all of them.
            share = state.noise / (state.noise + own_of(cells))
            residual = share * (cells.y - state.means(state.entries))[:, 0]
            residual += np.sqrt(share * own_of(cells)) * rng.standard_normal(residual.size)
            rate = config.rate + residual @ residual / 2
            state.noise[0] = rate / rng.gamma(config.shape + residual.size / 2)

    def fill_eta(self, state: Sides, out: Array) -> None:
        out[:] = state.means(state.entries)

    def trace(self, state: Sides) -> dict[str, float]:
        return {"rows_square": float(np.mean(state.u**2))}

    def draw(self, state: Sides) -> Sides:
        return replace(state, u=state.u.copy(), v=state.v.copy(), noise=state.noise.copy())

    def cells_law(self, draw: Sides, rows: Pairs) -> RowsLaw:
        return GivenLatent(draw.means(rows), draw.noise, ((0, 1),))

    def fold_in(
        self,
        draw: Sides,
        config: TwoWayConfig,
        cells: Cells,
        refill: Callable[[Array], None],
        score: object,
        sweeps: int,
        rng: np.random.Generator,
    ) -> Sides:
        sides, known = zip((draw.u, draw.v), entries_of(cells).shape, strict=True), draw.known
        u, v = (np.append(own, np.zeros(n - own.size)) for own, n in sides)
        new = replace(draw, u=u, v=v, config=config)
        for _ in range(sweeps):
            refill(new.means(entries_of(cells)))
            new.draw_effects(cells, rng, known)
        return new

    def save(self, state: Sides) -> dict[str, Array]:
        return {"u": state.u, "v": state.v, "noise": state.noise}

    pack = save

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> Sides:
        shapes = {"u": (sizes.rows,), "v": (sizes.latent,), "noise": (1,)}
        found = {name: take(arrays, name, np.float64, shape) for name, shape in shapes.items()}
        if np.any(found["noise"] <= 0.0):
            raise ValueError("'noise' is not above 0")
        return Sides(**found)

    def load(self, arrays: Mapping[str, Array], cells: Cells, config: TwoWayConfig) -> Sides:
        found = self.unpack(arrays, Sizes(*entries_of(cells).shape, cells.spans))
        return replace(self.draw(found), entries=entries_of(cells), config=config)
