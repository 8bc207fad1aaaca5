"""Kept draws of all chains, and what can be asked of them without knowing the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.recalibration import Recalibration
from glfm_cli.latent.model import LatentModel
from glfm_cli.links.link import Link, Params


def gates(name: str) -> bool:
    """Return whether a traced quantity decides on convergence; the number of features does not."""
    return name == "log_likelihood" or name.startswith(("noise_", "cell_"))


@dataclass(frozen=True)
class Draw:
    """One kept draw: the model's snapshot, the parameters of every link, and scalars."""

    latent: Any
    params: tuple[Params, ...]
    trace: dict[str, float]


@dataclass(frozen=True)
class Posterior:
    """The kept draws of a run.

    model : the latent model that made them
    links : one a modelled column, in table order
    spans : per column, its first pseudo-column and one past its last
    chains : per chain, its draws in order; chains may differ in length after an interruption
    recalibration : how forecasts that pool the draws are corrected; None leaves them as they are
    """

    model: LatentModel
    links: tuple[Link, ...]
    spans: tuple[tuple[int, int], ...]
    chains: tuple[tuple[Draw, ...], ...]
    recalibration: Recalibration | None = None

    @property
    def n_draws(self) -> int:
        """The number of draws over all chains."""
        return sum(len(chain) for chain in self.chains)

    def draws(self, at_most: int | None = None) -> Iterator[Draw]:
        """Yield the draws chain by chain; an evenly thinned `at_most` of them when given."""
        every = [draw for chain in self.chains for draw in chain]
        if at_most is not None and len(every) > at_most:
            keep = np.linspace(0, len(every) - 1, at_most).round().astype(int)
            every = [every[i] for i in keep]
        yield from every

    def traces(self) -> dict[str, Array]:
        """Return every traced scalar as (chain, draw), cut to the shortest chain from its end."""
        length = min(len(chain) for chain in self.chains)
        names = self.chains[0][0].trace
        return {
            name: np.array(
                [
                    [draw.trace[name] for draw in chain[len(chain) - length :]]
                    for chain in self.chains
                ]
            )
            for name in names
        }
