"""Whether the chains agree, and how many independent draws theirs are worth.

`measures` has R-hat, effective sample sizes and Monte Carlo errors of one quantity's draws;
`judgement` holds those of all quantities against limits, and says in words what came out.
"""

from glfm_cli.inference.diagnostics.judgement import RHAT_LIMIT, Diagnostics, Flag, diagnose
from glfm_cli.inference.diagnostics.measures import (
    ess_bulk,
    ess_tail,
    mcse_mean,
    rank_normalise,
    rhat,
    split,
)
