"""Chains of several models side by side, behind the `LatentModel` protocol.

Chain c is one of the candidate that the settings give it, and leaves that model's posterior as it
is: nothing is shared between chains. How much each candidate counts is no matter of this model:
`inference.stacking` finds it, column by column, by cells that were hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.capabilities import JoinsRows
from glfm_cli.latent.model import Cells, GaussianModel, Refill, Rows, Sizes, take
from glfm_cli.latent.plain import PlainModel
from glfm_cli.links.law import RowsLaw
from glfm_cli.settings import require
from glfm_cli.streams import Streams

MOST = 8  # chains of one candidate among the first


@dataclass(frozen=True)
class AutoConfig:
    """Of which models chains are: so many of each in turn, until there are as many as asked for.

    glfm : chains of the latent feature model
    mixture : chains of the mixture of normals
    bsvd : chains of the low-rank model
    """

    glfm: int = 3
    mixture: int = 1
    bsvd: int = 0

    def __post_init__(self) -> None:
        for name in (one.name for one in fields(self)):
            value = getattr(self, name)
            require(0 <= value <= MOST, name, value, f"a whole number from 0 to {MOST}")
        require(len(self.turns) > 0, "glfm", self.glfm, "one candidate at least")

    @property
    def turns(self) -> tuple[int, ...]:
        """Return the candidates of the first chains, which those after them repeat."""
        left = [getattr(self, one.name) for one in fields(self)]
        return tuple(k for turn in range(MOST) for k, n in enumerate(left) if n > turn)


@dataclass(eq=False)
class AutoState:
    """Where a chain stands: the place of its candidate in the table, and that model's state."""

    which: int
    own: Any


@dataclass(frozen=True, eq=False)
class AutoDraw:
    """A snapshot: the place of the candidate, and that model's snapshot."""

    which: int
    own: Any


@dataclass(frozen=True)
class Auto(PlainModel):
    """Chains of candidates. Every method is that of the candidate whose chain it is.

    models : the candidates, by the names of their settings
    """

    models: Mapping[str, GaussianModel] = field(default_factory=dict)

    name = "auto"
    Config = AutoConfig
    refines = True  # some candidates do

    @property
    def candidates(self) -> tuple[str, ...]:
        """Return the names of the candidates."""
        return tuple(self.models)

    def candidate(self, draw: AutoDraw) -> int:
        """Return the place of the candidate that made a draw."""
        return draw.which

    def _model(self, of: AutoState | AutoDraw) -> GaussianModel:
        return self.models[self.candidates[of.which]]

    def start(self, cells: Cells, config: AutoConfig, streams: Streams) -> AutoState:
        """Return the state that the chain's candidate begins with."""
        which = config.turns[streams.chain % len(config.turns)]
        model = self.models[self.candidates[which]]
        return AutoState(which, model.start(cells, model.Config(), streams))

    def update(self, state: AutoState, cells: Cells, streams: Streams) -> None:
        """Make the candidate's update."""
        self._model(state).update(state.own, cells, streams)

    def refine(
        self, state: AutoState, cells: Cells, eta: Array, streams: Streams, rows: slice
    ) -> None:
        """Draw the rows again where the candidate does."""
        self._model(state).refine(state.own, cells, eta, streams, rows)

    def fill_eta(self, state: AutoState, out: Array) -> None:
        """Fill `out` (N, S) with eta."""
        self._model(state).fill_eta(state.own, out)

    def noise(self, state: AutoState | AutoDraw) -> Array:
        """Return the noise variances (D,) of a state or a draw."""
        return self._model(state).noise(state.own)

    def noise_of(self, state: AutoState, d: int, rows: slice) -> float | Array:
        """Return the noise variance of column `d`, or those of a run of rows."""
        return self._model(state).noise_of(state.own, d, rows)

    def finish(self, state: AutoState, streams: Streams) -> None:
        """Draw the candidate's hyperparameters."""
        self._model(state).finish(state.own, streams)

    def trace(self, state: AutoState) -> dict[str, float]:
        """Return nothing: candidates have no scalars in common."""
        return {}

    def draw(self, state: AutoState) -> AutoDraw:
        """Return the candidate's snapshot."""
        return AutoDraw(state.which, self._model(state).draw(state.own))

    def cells_law(self, draw: AutoDraw, rows: Rows) -> RowsLaw:
        """Return the law of the cells of some rows under one draw."""
        return self._model(draw).cells_law(draw.own, rows)

    def joint(self, draw: AutoDraw, rows: Rows, rng: np.random.Generator) -> RowsLaw:
        """Return a law given which the cells of the rows are independent."""
        return self._model(draw).joint(draw.own, rows, rng)

    def warnings(self, state: AutoState) -> list[str]:
        """Return nothing: advice of a candidate is about settings that are not here."""
        return []

    def fold_in(
        self,
        draw: AutoDraw,
        config: AutoConfig,
        cells: Cells,
        refill: Refill,
        score: Callable[[RowsLaw, slice], Array],
        sweeps: int,
        rng: np.random.Generator,
    ) -> AutoDraw:
        """Return the candidate's snapshot of new rows."""
        model = self._model(draw)
        own = model.fold_in(draw.own, model.Config(), cells, refill, score, sweeps, rng)
        return AutoDraw(draw.which, own)

    def join_rows(self, draws: Sequence[AutoDraw]) -> AutoDraw:
        """Return the candidate's draw of all rows, below each other."""
        model = self._model(draws[0])
        assert isinstance(model, JoinsRows)
        return AutoDraw(draws[0].which, model.join_rows([draw.own for draw in draws]))

    def save(self, state: AutoState) -> dict[str, Array]:
        """Return what the candidate saves, and which it is."""
        return self._out(state, self._model(state).save(state.own))

    def load(self, arrays: Mapping[str, Array], cells: Cells, config: AutoConfig) -> AutoState:
        """Return the state that `save` was given."""
        which, model, own = self._in(arrays)
        return AutoState(which, model.load(own, cells, model.Config()))

    def pack(self, draw: AutoDraw) -> dict[str, Array]:
        """Return the candidate's arrays, and which it is."""
        return self._out(draw, self._model(draw).pack(draw.own))

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> AutoDraw:
        """Return the snapshot that `pack` was given."""
        which, model, own = self._in(arrays)
        return AutoDraw(which, model.unpack(own, sizes))

    def _out(self, of: AutoState | AutoDraw, own: Mapping[str, Array]) -> dict[str, Array]:
        which = np.array(of.which, dtype=np.int32)
        return {"candidate": which, **{f"own.{name}": value for name, value in own.items()}}

    def _in(self, arrays: Mapping[str, Array]) -> tuple[int, GaussianModel, dict[str, Array]]:
        which = int(take(arrays, "candidate", np.int32, ()))
        if not 0 <= which < len(self.models):
            raise ValueError(f"'candidate' is {which}, expected 0 to {len(self.models) - 1}")
        own = {
            name.removeprefix("own."): array
            for name, array in arrays.items()
            if name.startswith("own.")
        }
        return which, self.models[self.candidates[which]], own
