"""What most links have in common: one latent column, no variance of its own, no parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.links.observation import Params

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn
    from glfm_cli.links.config import LinkConfig
    from glfm_cli.schema import Column


class PlainLink:
    """A link with nothing besides y to draw; those that have more say so."""

    @property
    def spread(self) -> float:
        return 1.0

    @property
    def fixed_bounds(self) -> bool:
        """Return False: `bound` may read y, or draw."""
        return False

    def check_params(self, params: Params) -> None:
        """Raise ValueError unless there are none."""
        if params:
            raise ValueError(f"it has the parameters {sorted(params)}, expected []")

    def latent_levels(self) -> tuple[int | str | None, ...]:
        """Return None: the latent column is of all values."""
        return (None,)

    def own_variances(self, x: Array) -> Array | None:
        """Return None: y has the noise's variance alone."""
        return None

    def entropy(self, mean: Array, probabilities: Array | None) -> Array | None:
        return None

    def update_params(
        self, x: Array, eta: Array, params: Params, rng: np.random.Generator, adapt: bool
    ) -> None:
        """Leave the parameters alone: there are none."""

    def scale_group(self, params: Params) -> tuple[float, float]:
        """Return nothing that shares the scale of y."""
        return 0.0, 0.0

    def rescale(self, params: Params, factor: float) -> None:
        """Leave the parameters alone: there are none."""


@dataclass(frozen=True)
class UncalibratedLink(PlainLink):
    """A link that is the same for every column: it has no constants."""

    name: str

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Self:
        return cls(encoded.column.name)

    def constants(self) -> dict[str, Array]:
        """Return nothing."""
        return {}

    @classmethod
    def from_constants(
        cls, column: Column, n_levels: int, constants: Mapping[str, Array], config: LinkConfig
    ) -> Self:
        """Return the link; ValueError when there are constants."""
        if constants:
            raise ValueError(f"it has the constants {sorted(constants)}, expected none")
        return cls(column.name)

    def correctable(self, x: Array) -> bool:
        return False
