"""Columns that tell of the response what the formula does not: their laws given it.

A latent model without the response cannot say how they go with it. So each has a regression of its
own, on the terms of the formula, the response, every other column and the auxiliaries before it:

    p(x, y, a) = p(x | latent) p(y | x, b) p(a_1 | x, y, c_1) p(a_2 | x, y, a_1, c_2) ...

which leaves the analysis as it is, for y given x has the law p(y | x, b) still [Luedtke, Robitzsch
and West 2020]. Numbers have normal errors, skewed ones by their logarithm; counts have a law that
fits them; levels that are ordered count as their codes, others have logistic regressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from glfm_cli.completion.analysis.counts import FAMILIES, law_of_counts
from glfm_cli.completion.analysis.families import Family
from glfm_cli.completion.analysis.formula import AnalysisFormula, Factor
from glfm_cli.completion.analysis.limits import results_of, stays_beside
from glfm_cli.completion.analysis.nominal import Nominal
from glfm_cli.encoding import Data, EncodedColumn, bounds_of
from glfm_cli.links import LinkConfig
from glfm_cli.links.margins import FEWEST_FOR_TAILS, standard_moment
from glfm_cli.schema import Transform
from glfm_cli.schema.atoms import atom_of
from glfm_cli.schema.formula import parse_formula

ROWS_A_TERM = 3  # the fewest rows of a regression by its terms


def auxiliaries(
    regression: AnalysisFormula, data: Data, names: Sequence[str], config: LinkConfig
) -> tuple[tuple[AnalysisFormula, ...], tuple[str, ...]]:
    """Return the regressions of some columns, the one with the most cells first, and the others.

    Others have an atom, intervals, a condition or too few cells.
    """
    columns, found, left = regression.columns, [], []
    limited = {data.columns[d].column.name for d in bounds_of(data)}
    own = regression.told_by or (_factor(columns[regression.target], regression),)
    terms = dict.fromkeys((*regression.terms, *((one,) for one in own)))
    apart = {*regression.names, *regression.responses, *names, *results_of(data)}
    for one in data.columns:
        whole = (one.observed | one.requested).all() and not stays_beside(one)
        if whole and one.column.name not in apart:
            terms[(_factor(one, None, config),)] = None
    for name in sorted(names, key=lambda name: -int(columns[name].observed.sum())):
        one = columns[name]
        made = None
        if not stays_beside(one) and name not in limited:
            made = _regression(one, tuple(terms), regression, config)
        if made is None:
            left.append(name)
            continue
        found.append(made)
        if (one.observed | one.requested).all():
            terms[(_factor(one, None, config),)] = None
    return tuple(found), tuple(name for name in names if name in left)


def _regression(
    one: EncodedColumn,
    terms: tuple[tuple[Factor, ...], ...],
    of: AnalysisFormula,
    config: LinkConfig,
) -> AnalysisFormula | None:
    """Return the regression of a column, None where it has none."""
    n_levels = len(one.levels)
    if not n_levels and atom_of(one.column, one.x[one.observed]) is not None:
        return None
    response = _factor(one, None, config).formula
    family: Family = FAMILIES["logistic" if n_levels == 2 else "linear"]
    n_regressions = 1
    if one.column.nominal and n_levels > 2:
        family, n_regressions = Nominal(n_levels), n_levels - 1
    made = AnalysisFormula(f"{one.column.name} ~ ...", response, terms, family, of.columns)
    seen, _ = made.complete()
    if seen.y.size < ROWS_A_TERM * seen.X.shape[1] * n_regressions:
        return None
    return replace(made, family=law_of_counts(seen)) if one.column.integral else made


def _factor(
    one: EncodedColumn, of: AnalysisFormula | None, config: LinkConfig | None = None
) -> Factor:
    """Return a column as a regressor, as the outcome that it is of a regression, if of one."""
    name = f"`{one.column.name}`"
    if of is not None and not one.levels:
        plain = of.family is FAMILIES["linear"]  # else a count, whose logarithm is linear
        formula = of.response if plain else parse_formula(f"log1p({name})")
        return Factor(formula.text, False, formula)
    if config is not None and logarithm_of(one, config) is not None:
        name = f"log({name})"
    return Factor(name, bool(one.levels), parse_formula(name))


def logarithm_of(encoded: EncodedColumn, config: LinkConfig) -> EncodedColumn | None:
    """Return a skewed positive column as one of its logarithm, None where that is skewed, too.

    Ranks know little of the tail from which cells are missing, the more the larger the response.
    """
    column, x = encoded.column, encoded.x[encoded.observed]
    free = column.positive and not column.integral and column.transform is None
    free = free and encoded.ends is None  # of which observed values are but a part
    if not free or x.size < FEWEST_FOR_TAILS or x.min() <= 0.0:
        return None
    skewed = abs(standard_moment(x, 3)) > config.rank_skewness
    if not skewed or abs(standard_moment(np.log(x), 3)) > config.rank_skewness:
        return None
    return replace(encoded, column=replace(column, transform=Transform.LOG))
