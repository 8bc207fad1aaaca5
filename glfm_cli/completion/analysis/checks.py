"""What of a table and a model does not go with an analysis, and what a user is told of it."""

from __future__ import annotations

import numpy as np
from scipy.special import fdtrc, ndtri

from glfm_cli.arrays import Array
from glfm_cli.completion.analysis.families import Exponential, Linear
from glfm_cli.completion.analysis.formula import AnalysisFormula
from glfm_cli.completion.analysis.limits import results_of, unknown_of
from glfm_cli.completion.analysis.survival import ProportionalHazards, happened
from glfm_cli.encoding import Data, EncodedColumn, Relations
from glfm_cli.errors import UsageError, counted
from glfm_cli.latent.model import LatentModel
from glfm_cli.schema.atoms import atom_of

CHANCE, CONSIDERABLE = 0.01, 0.01  # of all columns together; of the variance that is left
MOST_NAMED = 5


def check_table(regression: AnalysisFormula, data: Data, model: LatentModel) -> None:
    """Raise UsageError for a model that cannot be swept beside a regression, or such a table."""
    if model.sees != "gaussian" or model.kind != "gibbs":
        raise UsageError(
            f"--analysis needs one model that is sampled, and --model {model.name} is not",
            hint="Use --model glfm, bsvd or mixture.",
        )
    found = {
        "rows that belong together (role group or time)": data.groups is not None,
        "successes among trials": any(c.trials is not None for c in data.columns),
    }
    for what, there in found.items():
        if there:
            raise UsageError(
                f"--analysis does not support {what}",
                hint="Leave out --analysis, or these columns.",
            )
    for d in sorted(Relations.of(data.columns).numbers):
        column = data.columns[d].column
        if n := int(unknown_of(data.columns[d]).sum()):
            raise UsageError(
                f"--analysis does not support formula, parts_of or less_than where known cells "
                f"do not determine the missing ones: {counted(n, 'cell')} of "
                f"'{column.name}'",
                hint=_without_formula(regression, data, d),
            )


def _without_formula(regression: AnalysisFormula, data: Data, d: int) -> str:
    """Return how an analysis does without the formula that column d belongs to."""
    columns = [encoded.column for encoded in data.columns]
    equations = Relations.of(data.columns, as_stated=True).equations
    stated = (one for one in equations if d in (one.d, *one.of) and columns[one.d].formula)
    one = next(stated, None)
    if one is None:
        return "Leave these out in the types file."
    own = columns[one.d]
    ignore = f"Give '{own.name}' `role: ignore`, and "
    if own.name in regression.responses:
        unknown = (of for of in one.of if unknown_of(data.columns[of]).any())
        return (
            f"{ignore}analyse '{columns[next(unknown, one.of[0])].name}' in its place; "
            f"of completed tables '{own.name}' is {own.formula}."
        )
    if own.name in regression.names:
        return f"{ignore}write I({own.formula}) in its place."
    return f"{ignore}compute it of completed tables: {own.formula}."


def check_response(regression: AnalysisFormula, n_terms: int) -> None:
    """Raise UsageError where too little of a response is observed, or missing ones have an atom."""
    target = regression.columns[regression.target]
    n, least = int(target.observed.sum()), n_terms + 2
    what = f"{counted(n, 'row')} have its response"
    if isinstance(regression.family, ProportionalHazards):
        n = int(happened(target.x).sum())
        what = f"its event happened in {counted(n, 'row')}"
    if n < least:
        raise UsageError(
            f"--analysis '{regression.text}' has {n_terms} coefficients, and {what}",
            expected=f"{least} or more",
            hint="Leave out some terms.",
        )
    at = atom_of(target.column, target.x[target.observed]) if target.requested.any() else None
    if at is not None:
        name = regression.target
        raise UsageError(
            f"--analysis '{regression.text}': many cells of '{name}' are {at:g} exactly, and the "
            f"errors of a regression never are",
            hint=f"Make two columns of it, whether it is {at:g} and its other values, and analyse "
            f"each; leave out --analysis; or set `atom: none` for '{name}' in the types file.",
        )


def related(regression: AnalysisFormula, data: Data) -> tuple[str, ...]:
    """Return the columns that the formula does not name and that tell of its residuals.

    By score tests in complete rows of each column, seen by its normal scores or its levels.
    """
    seen, rows = regression.complete()
    n, p = seen.X.shape
    named = {*regression.responses, *regression.names, *results_of(data)}
    others = [one for one in data.columns if one.column.name not in named]
    of_it = (*regression.responses, *regression.names)
    touched = any(regression.columns[name].requested.any() for name in of_it)
    if not touched or n <= p + 1:
        return ()
    family = regression.family
    if isinstance(family, ProportionalHazards):
        family, seen = family.as_counts(seen, family.fit(seen))
    assert isinstance(family, Linear | Exponential)  # as those of other responses are
    moments = family.moments(seen.X, family.fit(seen))
    sd = np.sqrt(np.maximum(moments.variance, np.finfo(float).tiny))
    z, X = (seen.y - moments.mean) / sd, (moments.slope / sd)[:, None] * seen.X
    found = []
    for one in others:
        known = one.observed[rows]
        V = _as_regressors(one, one.x[rows[known]])
        k, left = V.shape[1], int(known.sum()) - p - V.shape[1]
        if k == 0 or left < 1:
            continue
        V = (moments.slope / sd)[known, None] * V
        rest = _residuals(X[known], z[known])
        told = rest - _residuals(_residuals(X[known], V), rest)
        share = float(told @ told / max(rest @ rest, np.finfo(float).tiny))
        p_value = fdtrc(k, left, share / k / max(1.0 - share, 1e-12) * left)
        if share > CONSIDERABLE and p_value * len(others) < CHANCE:
            found.append((share, one.column.name))
    return tuple(name for _, name in sorted(found, reverse=True))


def related_warning(regression: AnalysisFormula, names: tuple[str, ...]) -> str:
    """Return what is said of such columns."""
    shown = ", ".join(f"'{name}'" for name in names[:MOST_NAMED])
    if len(names) > MOST_NAMED:
        shown += f" and {len(names) - MOST_NAMED} more"
    one = len(names) == 1
    free = all(regression.columns[name].column.only_if is None for name in names)
    name_it = f"Name {'it' if one else 'them'} in the formula, give" if free else "Give"
    return (
        f"{shown} {'predicts' if one else 'predict'} '{regression.target}' beyond the formula, but "
        f"--analysis assumes that other columns add nothing to it: its coefficients are biased. "
        f"{name_it} {'it' if one else 'them'} "
        f"`role: ignore`, or leave out --analysis where cells are missing by what "
        f"{'it says' if one else 'they say'}"
    )


def _as_regressors(encoded: EncodedColumn, x: Array) -> Array:
    """Return normal scores (n, 1), or indicators (n, k) of each level that is there but one."""
    if not encoded.levels:
        values, which, counts = np.unique(x, return_inverse=True, return_counts=True)
        scores = ndtri((np.cumsum(counts) - 0.5 * counts) / max(x.size, 1))
        return np.asarray(scores[which][:, None][:, : values.size > 1])
    return (x[:, None] == np.unique(x)[1:]).astype(np.float64)


def _residuals(X: Array, y: Array) -> Array:
    """Return what a regression of y (n,) or (n, k) on X (n, p) leaves."""
    return np.asarray(y - X @ np.linalg.lstsq(X, y, rcond=None)[0])
