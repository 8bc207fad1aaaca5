"""What most links have in common: one latent column, no variance of its own, no parameters."""

from __future__ import annotations

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.links.observation import Params


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
