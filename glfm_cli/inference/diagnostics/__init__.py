"""Whether the chains agree, and how many independent draws theirs are worth.

`measures` has R-hat, effective sample sizes and Monte Carlo errors of one quantity's draws;
`judgement` holds those of all quantities against limits, and says in words what came out.
"""

from __future__ import annotations

from glfm_cli.arrays import Array
from glfm_cli.inference.diagnostics.judgement import (
    ESS_LIMIT,
    RHAT_LIMIT,
    Diagnostics,
    Flag,
    QuantityDiagnostics,
    diagnose,
)
from glfm_cli.inference.diagnostics.measures import (
    MIN_DRAWS,
    ess_bulk,
    ess_tail,
    mcse_mean,
    rank_normalise,
    rhat,
    split,
)

__all__ = [
    "ESS_LIMIT",
    "MIN_DRAWS",
    "RHAT_LIMIT",
    "Array",
    "Diagnostics",
    "Flag",
    "QuantityDiagnostics",
    "diagnose",
    "ess_bulk",
    "ess_tail",
    "mcse_mean",
    "rank_normalise",
    "rhat",
    "split",
]
