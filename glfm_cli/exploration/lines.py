"""Sentences about an exploration as a whole, for the terminal and the page."""

from __future__ import annotations

from glfm_cli.exploration.result import Exploration
from glfm_cli.exploration.words import percent

_BECAUSE = {
    "consensus": "in it rows go together most as they do on average",
    "best": "of all draws it has the highest log likelihood",
    "held-out": "of all draws it best predicts the cells hidden before the fit",
}


def sample_line(found: Exploration) -> str:
    """Return which draw is shown, and why that one."""
    shown, n = found.shown, found.n_features
    return (
        f"Shown is draw {shown.draw + 1} of chain {shown.chain + 1}, with {n} "
        f"feature{'' if n == 1 else 's'}: {_BECAUSE[found.sample]}."
    )


def remainder_line(found: Exploration) -> str | None:
    """Return what is to be said of the features that are not shown, None without any."""
    rest = found.remainder
    if rest.number == 0:
        return None
    others = "1 more feature is" if rest.number == 1 else f"{rest.number} more features are"
    where = "of the draws of other chains" if len(found.posterior.chains) > 1 else "of the draws"
    return (
        f"{others} not shown: in at most {percent(rest.largest)} of the rows, found again in at "
        f"most {percent(rest.stability)} {where}; "
        f"they explain {percent(rest.explained)} of what all features explain."
    )
