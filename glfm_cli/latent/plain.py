"""What most samplers of Gaussian cells have in common; those that differ say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.model import Cells, Kind, Rows, Sees
from glfm_cli.links.law import RowsLaw
from glfm_cli.streams import Streams


class PlainModel:
    """A sampler for tables without weights, its state with a noise variance a column.

    series_noise : factor of the setting noise_rate beside series in time, after which far less is
        noise than after what columns and groups say
    """

    sees: Sees = "gaussian"
    kind: Kind = "gibbs"
    layouts = frozenset({"dense"})
    refines = False
    series_noise = 0.1

    if TYPE_CHECKING:  # a method of those who inherit

        def cells_law(self, draw: Any, rows: Rows) -> RowsLaw:
            """Return the law of the cells of some rows under one draw."""

    def refine(self, state: Any, cells: Cells, eta: Array, streams: Streams, rows: slice) -> None:
        """Leave the rows as they were drawn."""

    def finish(self, state: Any, streams: Streams) -> None:
        """Draw nothing: there are no hyperparameters."""

    def noise(self, state: Any) -> Array:
        return state.noise

    def noise_of(self, state: Any, d: int, rows: slice) -> float | Array:
        return float(state.noise[d])

    def joint(self, draw: Any, rows: Rows, rng: np.random.Generator) -> RowsLaw:
        """Return the law of cells: given a draw nothing of the rows is random."""
        return self.cells_law(draw, rows)

    def warnings(self, state: Any) -> list[str]:
        return []
