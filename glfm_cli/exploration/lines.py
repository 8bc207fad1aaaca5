"""Sentences about an exploration as a whole, for the terminal and the page."""

from __future__ import annotations

from glfm_cli.exploration.result import Exploration
from glfm_cli.exploration.words import percent

_BECAUSE = {
    "consensus": "in it rows go together most as they do on average",
    "best": "of all draws it has the highest log likelihood",
    "held-out": "of all draws it best predicts the cells hidden before the fit",
}


NO_FEATURE = "No feature: nothing in this table binds columns together by more than chance."


def sample_line(found: Exploration) -> str:
    """Return which draw is shown, and why that one."""
    shown, n = found.shown, found.n_features
    return (
        f"Shown is draw {shown.draw + 1} of chain {shown.chain + 1}, with {n} "
        f"feature{'' if n == 1 else 's'}: {_BECAUSE[found.sample]}."
    )


def convergence_line(found: Exploration) -> str:
    """Return whether the chains agree, columns called by their names."""
    return found.diagnostics.summary([scale.name for scale in found.scales])


def agreement_line(found: Exploration) -> str:
    """Return whether the chains agree; of features in which they do not, where to look.

    Chains of features hardly ever agree on all of them, which longer ones do not change.
    """
    worst = found.diagnostics.worst()
    if not found.features or worst is None or worst.flag or found.diagnostics.converged():
        return convergence_line(found)
    return (
        "The chains do not all hold the same features: stability says how much of each the others "
        "find, too."
    )


def remainder_line(found: Exploration) -> str | None:
    """Return what is to be said of the features that are not shown, None without any."""
    rest = found.remainder
    if rest.number == 0:
        return None
    part = f"{percent(rest.explained)} of what all features explain"
    share = percent(rest.largest)
    if rest.number == 1:
        return (
            f"1 more feature, in {share} of the rows, says no more than chance or those shown; it "
            f"explains {part} (--all-features shows it)."
        )
    return (
        f"{rest.number} more features, in at most {share} of the rows, say no more than chance or "
        f"those shown; they explain {part} (--all-features shows them)."
    )
