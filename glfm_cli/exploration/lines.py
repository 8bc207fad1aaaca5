"""Sentences about an exploration as a whole, for the terminal and the page."""

from __future__ import annotations

import re

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


def convergence_line(found: Exploration) -> str:
    """Return whether the chains agree, columns called by their names."""
    return re.sub(
        r"'noise_(\d+)'",
        lambda one: f"the noise of '{found.scales[int(one[1])].name}'",
        found.diagnostics.summary(),
    )


def remainder_line(found: Exploration) -> str | None:
    """Return what is to be said of the features that are not shown, None without any."""
    rest = found.remainder
    if rest.number == 0:
        return None
    where = "draws of the other chains" if len(found.posterior.chains) > 1 else "draws"
    part = f"{percent(rest.explained)} of what all features explain"
    share = percent(rest.largest)
    shapes = f" Some only describe the shape of one column: {', '.join(rest.shapes)}."
    if rest.number == 1:
        sure = f"found again in {percent(rest.stability)} of the {where}"
        said = f"1 more feature is not shown: in {share} of the rows, {sure}; it explains {part}."
        return f"{said} It only describes the shape of {rest.shapes[0]}." if rest.shapes else said
    if rest.stable:
        sure = f"{rest.stable} of them found again in most {where}"
    else:
        sure = f"found again in at most {percent(rest.stability)} of the {where}"
    return (
        f"{rest.number} more features are not shown: in at most {share} of the rows, {sure}; "
        f"they explain {part}.{shapes if rest.shapes else ''}"
    )
