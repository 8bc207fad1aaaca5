"""What some latent models can do besides: small protocols, which tasks and the driver ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from glfm_cli.latent.model import Values


@dataclass(frozen=True)
class Round:
    """One round of successive halving among the restarts of an ascent.

    steps : that each restart in the round has made in all, at most, at its end
    halve : whether the better half alone, of each group, goes into the round
    best_alone : whether the best alone does, while the others stay where they are
    tolerance : times which the model's tolerance a restart may end with
    """

    steps: int
    halve: bool = False
    best_alone: bool = False
    tolerance: float = 1.0


@runtime_checkable
class Restarts(Protocol):
    """An ascent whose restarts compete; without it, all run to their end.  [Jamieson 2016]"""

    def rounds(self, problem: Any, restarts: int) -> Sequence[Round]:
        """Return the rounds; restarts that are left after the last predict together."""

    def group(self, problem: Any, restart: int) -> int:
        """Return the group of which a restart is; the better half of each group goes on."""

    def enter(self, state: Any, best_alone: bool) -> bool:
        """Take note that a restart goes into another round; return whether it is converged there.

        What was enough for a rough round need not be for the best alone.
        """

    def score(self, state: Any, values: Values, bound: float) -> float:
        """Return by what restarts are compared."""

    def weights(self, problem: Any, scores: Mapping[int, float]) -> list[float]:
        """Return the weights of restarts that predict together, which add up to 1."""
