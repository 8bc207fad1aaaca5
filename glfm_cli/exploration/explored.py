"""What every exploration says of the fit behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from glfm_cli.inference.diagnostics import Diagnostics
from glfm_cli.inference.posterior import Posterior
from glfm_cli.io.frames import AsGiven
from glfm_cli.schema import Schema


@dataclass(frozen=True, eq=False, repr=False)
class Explored(AsGiven):
    """The fit behind an exploration, and how it ended.

    data : the encoded table, or the matrix
    options : what the run was asked for, by name;  schema : the types as they were given
    notes : what a user should know, one line each
    """

    data: Any
    posterior: Posterior
    diagnostics: Diagnostics
    stopped: str | None
    seconds: float
    options: dict[str, Any]
    schema: Schema
    notes: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know, one line each."""
        return self.notes

    def of_fit(self) -> dict[str, Any]:
        """Return what a summary as JSON says of the fit at its end."""
        return {
            "options": self.options,
            "chains": len(self.posterior.chains),
            "draws": self.posterior.n_draws,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "diagnostics": self.diagnostics.to_dict(),
            "warnings": list(self.notes),
        }
