"""Sentences about an exploration as a whole, for the terminal and the page."""

from __future__ import annotations

import numpy as np

from glfm_cli.exploration.result import Exploration
from glfm_cli.exploration.words import percent

_BECAUSE = {
    "consensus": "its grouping of rows is closest to the average",
    "best": "it has the highest log likelihood",
    "held-out": "it best predicts the cells hidden before the fit",
}


AGREED = 0.9  # stability of features of which chains agree
TOGETHER = 0.3  # correlation of gaps from which columns are said to miss together, and
FAR = 4.0  # how many standard errors that of unrelated gaps stays below
OFTEN = 0.02  # share of rows that lack both, from which it matters
MOST_PAIRS = 3
MOSTLY = 0.5  # what features that are not shown explain, where others are


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
    least = min(feature.stability for feature in found.features)
    if least >= AGREED and len(found.posterior.chains) > 1:
        return "The features listed are in nearly all draws of the other chains, too."
    return (
        "The chains do not all find the same features: stability says how often others find "
        "each."
    )


def no_feature_line(found: Exploration) -> str:
    """Return what it means that there is no feature."""
    groups = found.data.groups
    if groups is None or groups.time is None:
        return "No feature: nothing in this table binds columns together by more than chance."
    return (
        "No feature: apart from shared time series, nothing binds columns together by more than "
        "chance."
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
            f"1 more feature, in {share} of the rows, adds no more than chance, or nothing to "
            f"those shown; it explains {part} (--all-features shows it)."
        )
    by_degrees = (
        " Where columns vary together gradually, components (--model bsvd) describe them in "
        "fewer parts."
    )
    return (
        f"{rest.number} more features, in at most {share} of the rows, add no more than chance, "
        f"or nothing to those shown; they explain {part} (--all-features shows them)."
        f"{by_degrees if found.features and rest.explained > MOSTLY else ''}"
    )


def missing_line(found: Exploration) -> str | None:
    """Return which columns are missing in the same rows, None where none are by more than chance.

    Columns that have values in some rows alone (`only_if`) say nothing by that.
    """
    phi, n_rows = found.missing.phi, found.data.n_rows
    least = max(TOGETHER, FAR / np.sqrt(max(n_rows, 1)))
    shown = {scale.d for scale in found.columns if scale.inside is None}
    some = [i for i, scale in enumerate(found.scales) if scale.d in shown]
    pairs = [
        (phi[i, j], i, j)
        for i in some
        for j in some
        if i < j and phi[i, j] >= least and found.missing.together[i, j] >= OFTEN
    ]
    if not pairs:
        return None
    pairs.sort(key=lambda pair: -pair[0])
    name = found.missing.names
    texts = [f"{name[i]} and {name[j]} ({r:.2f})" for r, i, j in pairs[:MOST_PAIRS]]
    more = len(pairs) - len(texts)
    rest = f" and {more} more pair{'' if more == 1 else 's'}" if more else ""
    return (
        f"Missing in the same rows (correlation of gaps): {', '.join(texts)}{rest}. Features "
        "are found in values alone: add an indicator column to see which rows lack them."
    )
