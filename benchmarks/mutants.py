"""Would the tests notice a slip? Plants wrong lines one by one in a copy and runs the tests meant.

    python benchmarks/mutants.py [NAME ...] [--out FILE]

Of each mutant, one line of the package stands differently; the table names the first test that
fails, or says SURVIVED. Kernels have mutants of their own in `tests/statistical/mutants.py`. Exits
with 1 when one survives.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
LEFT_OUT = shutil.ignore_patterns(".git", "build", "docs", "benchmarks", "*.c", "__pycache__")


class Mutant(NamedTuple):
    """A file of the package, its right text and the wrong one, and the tests that should fail."""

    file: str
    right: str
    wrong: str
    tests: str


SLIPS = "tests/test_small_slips.py"
ROW_EFFECTS = "tests/test_row_effects.py"
SHARED = "tests/test_factor_series.py"
EXPLORED = "tests/cli/test_explore_shared.py"
STACKED, LONE = "tests/test_stacking.py", "tests/test_lone_cells.py"
RESUMING, DEPENDENCE = "tests/test_resuming.py", "tests/test_guess_dependence.py"
PRECISION, RECALIBRATION = "tests/test_precision.py", "tests/test_recalibration.py"
PREDICTIVE, LINKS = "tests/test_predictive.py", "tests/contract/test_links.py"
EVIDENCE = "tests/test_evidence.py"
TWO_PART, ANALYSIS = "tests/test_two_part.py", "tests/test_analysis.py"
WALK, FAMILIES = "completion/analysis/walk.py", "completion/analysis/families.py"
COUNTS, REGRESSION = "completion/analysis/counts.py", "completion/analysis/formula.py"
CHECKS, TOLD = "completion/analysis/checks.py", "completion/analysis/told.py"
ANALYSIS_LAWS, BESIDE = "tests/test_analysis_laws.py", "tests/test_analysis_auxiliaries.py"
ANALYSIS_COUNTS = "tests/test_analysis_counts.py"
SURVIVAL, TIMES = "completion/analysis/survival.py", "tests/test_analysis_survival.py"
ANALYSIS_LIMITS = "tests/test_analysis_limits.py"
MARGINS, ORDINAL = "tests/test_links.py", "tests/test_links_levels.py"
PRIORS = "tests/contract/test_priors.py::test_a_model_predicts_cells_that_it_has_not_seen"
MAP = "tests/cli/test_explore_map.py"
TOGETHER = "tests/cnpf/test_cnpf_correlations.py"
LAWS = "tests/clgp/test_clgp_draws.py"
FOREST, INTERVALS = "tests/test_forest.py", "tests/test_forest_intervals.py"
SHAPES, DRAWS = "tests/test_forest_shapes.py", "tests/test_forest_draws.py"
GOES_WITH, KEPT_TRIPLETS = "tests/test_goes_with.py", "tests/cli/test_kept_triplets.py"
CONDITIONS, SURVEYS = "tests/test_conditions.py", "tests/test_guess_surveys.py"
EXTRA = "tests/test_extra_variance.py"
FULL_SUMS, MASKS = "tests/cli/test_full_sums.py", "tests/test_evaluation_masks.py"
LINES, TWINS = "tests/test_forest_lines.py", "tests/test_forest_twins.py"
GAP_RUNS, SUMS = "tests/test_gap_runs.py", "tests/test_forest_sums.py"
LEARN_ROWS = "tests/test_learn_rows.py"
LEAVES, SCAN = "tests/test_forest_leaves.py", "tests/statistical/test_scan.py"
MATES = "tests/test_forest_mates.py"
FAR = "tests/test_forest_far.py"
NEIGHBOURS = "tests/test_forest_neighbours.py"
RUBIN, MARGINALS = "tests/test_rubin.py", "tests/test_marginals.py"
COUNT_CELLS = "tests/cli/test_impute_counts.py"
EXPERTS = "tests/statistical/test_experts_geweke.py"

MUTANTS = {
    "slopes are forecast without what goes with intercepts": Mutant(
        "latent/row_effects.py", "slopes = self.b + self.d * self.a", "slopes = self.b", ROW_EFFECTS
    ),
    "slopes of new groups are without it": Mutant(
        "latent/joined_rows.py",
        "(1.0 + self.fitted.d * self.t[:, None])",
        "(1.0 + 0.0 * self.t[:, None])",
        ROW_EFFECTS,
    ),
    "curves are drawn beside intercepts that never move": Mutant(
        "latent/row_effects.py", "(mean[code] * own[:, 0] +", "(mean[code] +", ROW_EFFECTS
    ),
    "slopes that go with intercepts have another prior": Mutant(
        "latent/row_effects.py", "PARTING = 0.1", "PARTING = 1.0", ROW_EFFECTS
    ),
    "values seen by logarithms go three sds beyond the largest": Mutant(
        "links/positive.py", "BEYOND = 1.0", "BEYOND = 3.0", "tests/test_beyond.py"
    ),
    "values seen by logarithms stay below the largest": Mutant(
        "links/positive.py", "to_latent(largest) + BEYOND",
        "to_latent(largest) - BEYOND", MARGINS
    ),
    "values seen by logarithms may be above their reach": Mutant(
        "links/positive.py", "x = np.minimum(super().value(y), self.reach)",
        "x = super().value(y)", MARGINS
    ),
    "cells above a limit stay near the largest known value": Mutant(
        "links/positive.py", "if np.isinf(largest).any():", "if False:", MARGINS
    ),
    "a law without width on the grid has no sd": Mutant(
        "links/averages.py", "vary = (before > 0.0) & (after > 0.0)", "vary = before > 0.0",
        RECALIBRATION
    ),
    "numbers stored as categories are numbers": Mutant(
        "guess/judge.py", "or column.order is not None or column.is_category:",
        "or column.order is not None:", "tests/test_guess.py"
    ),
    "every number of a stored category is one": Mutant(
        "guess/profile.py", "is_category = of_dictionary and kind is Kind.NUMBER",
        "is_category = False", "tests/test_guess.py"
    ),
    "the rounding of a sum is taken for a part": Mutant(
        "encoding/sums.py", "np.abs(x) <= slack", "np.abs(x) < 0.0 * slack", FULL_SUMS
    ),
    "missing parts of a full sum are guessed": Mutant(
        "encoding/sums.py", "if nothing.any() else {}", "if nothing.all() else {}", FULL_SUMS
    ),
    "little that is left of a sum is taken for rounding": Mutant(
        "encoding/sums.py", "ROUNDED = 1e-14", "ROUNDED = 1e-9", FULL_SUMS
    ),
    "parts that may be negative are 0": Mutant(
        "encoding/sums.py", "and not can_hold(columns[d], zero - 1e-300)[0]", "", FULL_SUMS
    ),
    "percentages that were rounded contradict their sum": Mutant(
        "encoding/relations.py", "left_for_parts(columns, one) < -slack",
        "left_for_parts(columns, one) < 0.0", FULL_SUMS,
    ),
    "a result that is 0 but for rounding follows as it is": Mutant(
        "encoding/relations.py", "value = without_rounding(one.formula.evaluate, named)",
        "value = np.asarray(one.formula.evaluate(named), dtype=np.float64)", FULL_SUMS,
    ),
    "numbers of no call are genotypes": Mutant(
        "guess/codes.py", "gaps |= no_calls", "gaps |= calls", "tests/test_guess_laboratory.py"
    ),
    "codes of no call are looked for among all words": Mutant(
        "guess/codes.py", "calls.sum() >= 2", "calls.sum() >= 0", "tests/test_guess_laboratory.py"
    ),
    "hidden stretches fall apart": Mutant(
        "inference/gap_runs.py", "rng.permutation(n_rows)[begins]",
        "rng.permutation(n_rows)[row + 0 * begins]", MASKS,
    ),
    "single cells stand for long gaps in forecasts of trees": Mutant(
        "inference/hiding.py", "key[series] = cells_in_runs(seen[series]",
        "key[rng.permutation(series)] = cells_in_runs(seen[series]", GAP_RUNS,
    ),
    "trees that are grown again still see hidden cells": Mutant(
        "inference/hidden_cells.py", "replace(problem, xs=whole)", "problem", GAP_RUNS
    ),
    "rows of a series in the order of the table": Mutant(
        "inference/gap_runs.py", 'order = np.argsort(clock, kind="stable")',
        "order = np.arange(clock.size)", GAP_RUNS,
    ),
    "runs of missing cells are counted by their cells": Mutant(
        "inference/gap_runs.py", "(gaps[1:] & ~gaps[:-1]).sum()", "gaps[1:].sum()", GAP_RUNS
    ),
    "hidden stretches follow the table, not time": Mutant(
        "evaluation/masks.py", "np.lexsort((time, code))", "np.arange(code.size)", MASKS
    ),
    "hidden stretches stand where the table's own are": Mutant(
        "inference/gap_runs.py", "np.roll(gaps, rng.integers(n_rows), axis=0)", "gaps.copy()", MASKS
    ),
    "stretches of several sensors come one by one": Mutant(
        "inference/gap_runs.py", "np.where(first, row, 0)",
        "np.where(first, (row + np.arange(gaps.shape[1])) % n_rows, 0)", MASKS,
    ),
    "a dry run forgets the draws of the rows that are not learnt from": Mutant(
        "completion/folding_cost.py",
        "+ row_bytes * held / 2**20",
        "",
        "tests/test_learn_rows.py",
    ),
    "every block of rows has the first one's intervals": Mutant(
        "inference/chain.py",
        "self._links[block] = [told(part.link, part.x[rows])",
        "self._links[block] = [told(part.link, part.x[: rows.stop - rows.start])",
        "tests/test_told.py",
    ),
    "link noise moves the ends of intervals": Mutant(
        "links/told.py",
        "if self.link.noise == 0.0:",
        "if True:",
        "tests/test_told.py",
    ),
    "and decided by what is true": Mutant(
        "schema/formula.py",
        "decides = 0.0 if isinstance(node.op, ast.And) != negated else 1.0",
        "decides = 0.0 if isinstance(node.op, ast.And) else 1.0",
        CONDITIONS,
    ),
    "nothing known of a column without a value": Mutant(
        "schema/formula.py",
        "return np.where(absent, 0.0, np.where(unknown",
        "return np.where(absent, np.nan, np.where(unknown",
        CONDITIONS,
    ),
    "conditions in the order of the table": Mutant(
        "schema/relations.py",
        "return {name: texts[name] for name in sorted(texts, key=depth.__getitem__)}",
        "return {name: texts[name] for name in texts if depth[name]}",
        CONDITIONS,
    ),
    "an answer that tells of the question before alone": Mutant(
        "encoding/conditions.py",
        "found[d] |= found[one.d] & (_truth(columns, one, cells, gone) == 0.0)",
        "found[d] |= found[one.d] & (_truth(columns, one, cells, gone) == 1.0)",
        CONDITIONS,
    ),
    "levels that a condition excludes stay possible": Mutant(
        "encoding/conditions.py",
        "possible = _possible(columns, one, d) | ~rows[:, None]",
        "possible = _possible(columns, one, d) | rows[:, None]",
        CONDITIONS,
    ),
    "a number next to a limit is that limit": Mutant(
        "encoding/conditions.py",
        "return float(nearest + way * (strict and nearest == at))",
        "return float(nearest)",
        CONDITIONS,
    ),
    "the wider of two limits": Mutant(
        "encoding/conditions.py",
        'np.maximum(ends[rows, 0], _beyond(encoded, at, 1.0, how == ">"))',
        'np.minimum(ends[rows, 0], _beyond(encoded, at, 1.0, how == ">"))',
        CONDITIONS,
    ),
    "probabilities of the levels left do not add up": Mutant(
        "inference/predictive.py", "p /= p.sum(axis=1, keepdims=True)", "p /= 1.0", CONDITIONS
    ),
    "levels drawn again from the wrong end": Mutant(
        "completion/dependent.py",
        "np.sum(np.cumsum(p[again], axis=1) < u, axis=1)",
        "np.sum(np.cumsum(p[again], axis=1) > u, axis=1)",
        CONDITIONS,
    ),
    "levels that may not be are not drawn again": Mutant(
        "completion/dependent.py", "codes] == 0.0", "codes] < 0.0", CONDITIONS
    ),
    "levels with answers taken for not asked": Mutant(
        "guess/skips.py", "asked = (hits > 0) | (rows == 0)", "asked = hits == rows", SURVEYS
    ),
    "a question that chance left out": Mutant(
        "guess/skips.py", "np.log(missing) + choices < np.log(CHANCE)", "0 < 1", SURVEYS
    ),
    "levels of few rows that chance left out": Mutant(
        "guess/skips.py", "(missing) + choices <", "(missing) <", SURVEYS
    ),
    "pseudo-observations of trials weigh as one": Mutant(
        "latent/bsvd/matrix.py", "1.0 / (noise + self.own)", "1.0 / (noise + 1.0)", EXTRA
    ),
    "trials say nothing of the extra variance": Mutant(
        "latent/bsvd/beside_own.py", "squares / variance)", "squares)", EXTRA
    ),
    "the extra deviation is drawn as if its logarithm were flat": Mutant(
        "latent/bsvd/beside_own.py", "float(likelihood) + log_sd", "float(likelihood)", EXTRA
    ),
    "the extra deviation has a wider prior": Mutant(
        "latent/bsvd/beside_own.py", "0.5 * (sd / scale) ** 2", "0.25 * (sd / scale) ** 2", EXTRA
    ),
    "a cell's rate follows its pseudo-observations alone": Mutant(
        "links/binomial.py", "share * (y[:, 0] - eta)", "y[:, 0] - eta", EXTRA
    ),
    "a cell's rate is not drawn": Mutant(
        "links/binomial.py", "np.sqrt(share * own)", "0.0 * np.sqrt(share * own)", EXTRA
    ),
    "new rows take trials as free of extra variance": Mutant(
        "latent/bsvd/new_units.py", "    matrix.weigh(noise)", "    matrix.weigh(1e-6)", EXTRA
    ),
    "squares of rates by the wrong tangent": Mutant(
        "links/probit_normal.py", "np.sqrt(1.0 + 2.0 * square)", "np.sqrt(1.0 + square)", EXTRA
    ),
    "precisions of a matrix of trials are not followed": Mutant(
        "latent/bsvd/beside_own.py", "    matrix.weigh(float(state.noise[0]))", "    pass", EXTRA
    ),
    "columns with light tails are seen by logarithms": Mutant(
        "links/choice.py", "abs(skewness) < LOG_SKEWNESS", "skewness < LOG_SKEWNESS", MARGINS
    ),
    "columns that hardly spread are seen by logarithms": Mutant(
        "links/choice.py", "mean_sd(v)[1] < LEAST_LOG_SD", "mean_sd(v)[1] > 99.0", MARGINS
    ),
    "ranks go before logarithms": Mutant(
        "links/positive.py", "Log() if log else Softplus(scale)", "Softplus(scale)", MARGINS
    ),
    "logarithms of cut off numbers without their slope": Mutant(
        "links/censored.py",
        "_log_likelihood(*logs) - slope",
        "_log_likelihood(*logs)",
        "tests/test_censored.py",
    ),
    "sums that follow, whatever their column can hold": Mutant(
        "inference/following.py",
        "good = of.allowed(one.d, at, value, self.cells, self.ends)",
        "good = np.isfinite(value)",
        "tests/test_equations.py",
    ),
    "a model that starts beside groups from y itself": Mutant(
        "latent/grouped.py",
        "        cells.y -= np.where(observed, w, 0.0)\n",
        "",
        "tests/test_panels.py",
    ),
    "intercepts go the wrong way with others": Mutant(
        "latent/row_effects.py",
        "mean, precision = self.m[s] - away",
        "mean, precision = self.m[s] + away",
        ROW_EFFECTS,
    ),
    "curves of predictors in the variance of the common one": Mutant(
        "latent/row_effects.py", "Q = A + R / variance[s]", "Q = A + R / self.p[s]", ROW_EFFECTS
    ),
    "curves of a predictor in its own column": Mutant(
        "latent/row_effects.py", "        if self.led[s]:\n", "        if True:\n", ROW_EFFECTS
    ),
    "a variance of counts that falls where much is expected": Mutant(
        "latent/cnpf/draw.py",
        "np.maximum(mean, TINY)) + f",
        "np.maximum(mean, TINY))",
        "tests/cnpf/test_cnpf_excess.py",
    ),
    "intercepts with the curves of predictors": Mutant(
        "latent/row_effects.py",
        "rest -= self.curves(self.given.x, self.code, self.time)",
        "rest -= curve(self.knots, self.f, self.time)",
        ROW_EFFECTS,
    ),
    "what others tell, as if series were a column's own": Mutant(
        "exploration/shared.py",
        "alone = np.maximum(1.0 - variance[0] / size, LEAST)",
        "alone = np.maximum(1.0 - variance[1] / size, LEAST)",
        EXPLORED,
    ),
    "series of chains by sign": Mutant(
        "exploration/shared.py", "np.abs(u[:, c] @ one)", "u[:, c] @ one", EXPLORED
    ),
    "own series among what groups share": Mutant(
        "latent/grouped.py", "at] - own - g @", "at] - g @", EXPLORED
    ),
    "velocities of series in values' units": Mutant(
        "latent/factor_series.py", "math.sqrt(np.prod(lengths))", "1.0", SHARED
    ),
    "loadings with their variances for precisions": Mutant(
        "latent/factor_series.py", "A + np.diag(1.0 / self.p)", "A + np.diag(self.p)", SHARED
    ),
    "shared series given others of before": Mutant(
        "latent/factor_series.py", "            g[:, k] = G[k, 0]\n", "", SHARED
    ),
    "lengths of shared series by the inverse ratio": Mutant(
        "latent/factor_series.py",
        "law.square(b) - law.log_ratio) + log_length_prior(new)",
        "law.square(b) + law.log_ratio) + log_length_prior(new)",
        SHARED,
    ),
    "sums of series without what they share": Mutant(
        "latent/factor_series.py",
        "z = own.x + np.tensordot(L.T, G, 1)",
        "z = own.x - np.tensordot(L.T, G, 1)",
        SHARED,
    ),
    "shared series move, and columns' own stay": Mutant(
        "latent/factor_series.py",
        "return G, z - np.tensordot(L.T, G, 1)",
        "return G, own.x",
        SHARED,
    ),
    "loadings in view of themselves": Mutant(
        "latent/row_effects.py",
        "self.factors.draw_loadings(s, g, law, b + shared, series.code, rng)",
        "self.factors.draw_loadings(s, g, law, b, series.code, rng)",
        ROW_EFFECTS,
    ),
    "scales move without loadings": Mutant(
        "latent/row_effects.py", "        self.factors.loading *= factor\n", "", ROW_EFFECTS
    ),
    "new rows follow shared series that are held nowhere": Mutant(
        "latent/joined_rows.py", "self.held_at[known] = HELD", "self.held_at[known] = 1.0", SHARED
    ),
    "lines of groups with their variances for precisions": Mutant(
        "latent/row_laws.py", "every, prior, code,", "every, 1.0 / prior, code,", ROW_EFFECTS
    ),
    "a predictor that changes within groups": Mutant(
        "latent/given.py",
        "at = np.flatnonzero((sd > 1e-9) & ~apart.any(axis=0))",
        "at = np.flatnonzero(sd > 1e-9)",
        "tests/cli/test_group_predictors.py",
    ),
    "one stream for all versions": Mutant(
        "completion/multiple.py", "get(TABLES, number)", "get(TABLES, 1)", SLIPS
    ),
    "column 0's noise for every column": Mutant(
        "links/law.py",
        "return normal(eta, self.noise[d])",
        "return normal(eta, self.noise[0])",
        SLIPS,
    ),
    "proposals go on adapting": Mutant(
        "inference/sampling.py", "adapt=chain.done < plan.warmup", "adapt=True", SLIPS
    ),
    "y drawn before the features": Mutant(
        "inference/chain.py",
        "            self.model.refine(self.state, cells, self.eta, self.streams, rows)\n"
        "            spare.append(cells)\n        noise = self.model.noise(self.state)\n"
        "        for link, (_, x, y, eta, params, rng, (d, *_)) in "
        "zip(links, drawn, strict=True):\n"
        "            link.augment(x[rows], eta[rows], float(noise[d]), params, rng, y[rows])\n",
        "            spare.append(cells)\n        noise = self.model.noise(self.state)\n"
        "        for link, (_, x, y, eta, params, rng, (d, *_)) in "
        "zip(links, drawn, strict=True):\n"
        "            link.augment(x[rows], eta[rows], float(noise[d]), params, rng, y[rows])\n"
        "        if self.model.refines:\n"
        "            self.model.refine(self.state, cells, self.eta, self.streams, rows)\n",
        SLIPS,
    ),
    "I for I - 1 in the Jacobian": Mutant(
        "latent/bsvd/moves.py", "(moved - 1) * log_t", "moved * log_t", SLIPS
    ),
    "no Jacobian between sides": Mutant(
        "latent/bsvd/moves.py",
        "(moved - n_columns - of_columns.p) * log_t",
        "0.0 * log_t",
        SLIPS,
    ),
    "weights' variance scaled by the noise": Mutant(
        "latent/glfm/sampler.py",
        'state.noise[state.layout.column] if config.prior_scale == "noise" else 1.0',
        "state.noise[state.layout.column]",
        SLIPS,
    ),
    "forecasts of cells that were seen": Mutant(
        "inference/hidden_cells.py", "        x[at] = np.nan\n", "", RECALIBRATION
    ),
    "sweeps of few rows left out": Mutant(
        "inference/resuming.py", "[sweeps] + [max(", "[0] + [0 * max(", RESUMING
    ),
    "draws of one state": Mutant(
        "inference/resuming.py", "[sweeps] + [max(", "[sweeps] + [0 * max(", RESUMING
    ),
    "hidden cells in view of the sweeps": Mutant(
        "inference/hidden_cells.py",
        "resumed(folded, again,",
        "resumed(folded, problem,",
        RESUMING,
    ),
    "chains that come later with random numbers of the first": Mutant(
        "inference/hidden_cells.py", '"first": len(before)}', '"first": 0}',
        "tests/test_stacking.py",
    ),
    "what was found of other draws taken for theirs": Mutant(
        "inference/hidden_cells.py", "all(a is b for a, b in zip(one, other, strict=True))",
        "True", "tests/test_stacking.py",
    ),
    "trees that have seen the cells that they forecast": Mutant(
        "inference/resuming.py", "        if not regrow[index]:\n", "        if True:\n", RESUMING
    ),
    "every chain thinned to one draw where trees are grown anew": Mutant(
        "inference/resuming.py", "(c[-1:] if again else c for", "(c[-1:] for", RESUMING
    ),
    "trees grown anew from the first draw": Mutant(
        "inference/resuming.py",
        "starts = replace(fitted, chains=tuple(chain[-1:] for",
        "starts = replace(fitted, chains=tuple(chain[:1] for",
        RESUMING,
    ),
    "trees grown anew with random numbers of other chains": Mutant(
        "inference/resuming.py",
        "first + index)\n        return lambda: _resumed(starts",
        "index)\n        return lambda: _resumed(starts",
        RESUMING,
    ),
    "a density that is integrated too near": Mutant(
        "links/expectation.py", "window(e, s, sharpness)))", "window(e, s, 0.0)))", MARGINS
    ),
    "integrals of rows in another order": Mutant(
        "links/expectation.py", "        out[rows] = (t @",
        "        out[start : start + TOGETHER] = (t @", LINKS
    ),
    "trees grown anew for all rows": Mutant(
        "inference/resuming.py", "latent = regrow.of_rows(latent, rows)", "pass", RESUMING
    ),
    "trees grown anew from a table that was never drawn": Mutant(
        "latent/forest/model.py", "cells[same], state.turn = drawn[same], SETTLED + 1",
        "state.turn = SETTLED + 1", LEAVES
    ),
    "trees grown on nearer neighbours than missing cells have": Mutant(
        "latent/forest/series.py",
        "least[:, there] = steps[:, rng.integers(steps.shape[1], size=there.size)]", "pass",
        NEIGHBOURS
    ),
    "trees told of other columns' neighbours": Mutant(
        "latent/forest/columns.py", "np.flatnonzero(self.about != d)",
        "np.flatnonzero(self.about < -1)", NEIGHBOURS
    ),
    "rows of a fit told of themselves as new ones": Mutant(
        "latent/forest/neighbours.py", "own[own >= 0])", "own[own < -1])", NEIGHBOURS
    ),
    "gaps of three rows taken for near ones": Mutant(
        "latent/forest/neighbours.py", "own.sum(axis=0) > NEAR", "own.sum(axis=0) > NEAR + 1",
        NEIGHBOURS
    ),
    "trees of their own for a single far cell": Mutant(
        "latent/forest/neighbours.py", ">= FEWEST", ">= 1", NEIGHBOURS
    ),
    "new rows that are far in columns without such trees": Mutant(
        "latent/forest/related.py", "far & self.two[:, None]", "far", MATES
    ),
    "roles guessed for two visits of each person": Mutant(
        "guess/panel_roles.py", "visits.people.size < VISITS *", "visits.people.size < 1 *", SURVEYS
    ),
    "roles guessed for people who hardly differ": Mutant(
        "guess/panels.py", "return 1.0 - within / float(np.var(x[there]))",
        "return float(np.var(x[there])) / within", SURVEYS
    ),
    "an observed cell told of all others of its group": Mutant(
        "latent/forest/mates.py", "there & (hand != own)", "there", MATES
    ),
    "cells of a group all in hands of their own": Mutant(
        "latent/forest/mates.py", "size)) % HANDS", "size))", MATES
    ),
    "the variance within groups over that of all cells": Mutant(
        "latent/forest/mates.py", "/ max(free, 1)", "/ max(v.size - 1, 1)", MATES
    ),
    "cells of columns of groups apart": Mutant(
        "latent/forest/mates.py", " & (d not in same)", "", MATES
    ),
    "trees in time told of mates that missing cells lack": Mutant(
        "latent/forest/mates.py", "np.sum(gone & alone, axis=1)", "np.sum(gone & ~gone, axis=1)",
        MATES
    ),
    "far cells judged by trees that have seen their group": Mutant(
        "latent/forest/far.py", "lines, units=units)", "lines)", FAR
    ),
    "twins judged by trees that have seen their group": Mutant(
        "latent/forest/twins.py", "lines, twins, units)", "lines, twins)", FAR
    ),
    "twins that are missing together told of no group": Mutant(
        "latent/forest/related.py", "[np.where(self.two[mates], -1, mates)]", "[no_mates]", MATES
    ),
    "trees for new groups where the fit knew every group": Mutant(
        "latent/forest/model.py", "strange.sum() > BEYOND", "strange.sum() < -BEYOND", MATES
    ),
    "rows of a fit told of themselves by their group": Mutant(
        "latent/forest/mates.py", "np.arange(self.code.size), own[own >= 0])",
        "np.arange(self.code.size), own[own < -1])", MATES
    ),
    "trees told by whole groups what whole groups lack": Mutant(
        "latent/forest/model.py", "same = problem.group_level", "same = ()", MATES
    ),
    "trees for rows beyond all that they know": Mutant(
        "latent/forest/model.py", "return beyond <= BEYOND * n", "return True", NEIGHBOURS
    ),
    "the time itself among the numbers of later rows": Mutant(
        "latent/forest/model.py", "d == problem.groups.clock", "d == -1", NEIGHBOURS
    ),
    "neighbours of other groups": Mutant(
        "latent/forest/related.py", "groups.code if groups.n else None", "None", MATES
    ),
    "neighbours beyond the end of a group": Mutant(
        "latent/forest/series.py", "has &= self.code[order[at]] == self.code", "pass", NEIGHBOURS
    ),
    "far cells drawn by the trees of near ones": Mutant(
        "latent/forest/draw.py", "self.far is None or not self.is_far[d][rows].any()", "True",
        NEIGHBOURS
    ),
    "far cells forecast by the trees of near ones": Mutant(
        "latent/forest/draw.py", "draw.far is None or not draw.is_far[d][rows].any()", "True",
        NEIGHBOURS
    ),
    "leaves of grown trees as small as at the start": Mutant(
        "latent/forest/model.py", '"right") - 1]', '"right") * 0]', LEAVES
    ),
    "no lines in trees that are grown anew": Mutant(
        "latent/forest/model.py", "draw.lines.place >= 0, draw.middle", "False, draw.middle", LEAVES
    ),
    "as many trees of leaves of one row as of others": Mutant(
        "latent/forest/config.py", "np.where(least == 1, 2, 1) * self.trees",
        "np.where(least == 1, 1, 1) * self.trees", FOREST + " tests/test_forest_leaves.py"
    ),
    "columns that tell themselves": Mutant(
        "guess/dependence.py", "seen[:, of != place]", "seen", DEPENDENCE
    ),
    "levels that no row shares with another column": Mutant(
        "guess/dependence.py", "few = np.count_nonzero(counts, axis=0)",
        "few = np.full(counts.shape[1], levels.size)", DEPENDENCE
    ),
    "sums of rows that are not seen": Mutant(
        "guess/dependence.py", "is_level @ is_seen, is_level @ y, is_seen.sum(axis=0)",
        "is_level @ is_seen, is_level @ y, np.full(y.shape[1], len(y))", DEPENDENCE
    ),
    "a parabola that has a part of the line": Mutant(
        "guess/dependence.py",
        "    t2 -= np.sum(counts * t**3, axis=0) / np.sum(counts * t**2, axis=0) * t\n", "",
        DEPENDENCE,
    ),
    "dependences of columns of few rows in common": Mutant(
        "guess/dependence.py", "(n >= 20) & (total > 0)", "(n >= 2) & (total > 0)", DEPENDENCE
    ),
    "what the last column alone leaves of a weighted sum": Mutant(
        "guess/weighted.py", "X[:, c] - X[:, taken] @ weights",
        "X[:, c] - X[:, taken[-1:]] @ weights[-1:]", "tests/test_guess_derived.py"
    ),
    "times of day in days": Mutant(
        "guess/conversions.py", "FACTORS[moments[later]]", 'FACTORS["date"]',
        "tests/test_guess_herds.py"
    ),
    "the time between a date and a time of day": Mutant(
        "guess/conversions.py", "if moments[later] != moments[earlier]:", "if False:",
        "tests/test_guess_herds.py"
    ),
    "a step above a range taken for a code inside it": Mutant(
        "guess/scales.py", "any(one <= low <= other for", "any(one <= low for",
        "tests/test_guess_herds.py"
    ),
    "a ceiling taken for a code": Mutant(
        "guess/codes.py", "near = int(counts[(x > x.max() / 2) & ~top].sum())", "near = 0",
        "tests/test_guess_herds.py"
    ),
    "levels left out for one column of numbers": Mutant(
        "guess/rules.py", "if n >= MANY_COLUMNS}", "if n >= 1}", "tests/test_guess_herds.py"
    ),
    "counts taken for codes of samples": Mutant(
        "guess/dependence.py", "counts.min() >= BALANCED * counts.max()", "counts.min() > 0",
        "tests/test_guess_herds.py"
    ),
    "missing cells at their means": Mutant(
        "inference/resuming.py",
        "chain.eta[n, s] + sd * streams.get(START).standard_normal(s.size)",
        "chain.eta[n, s]",
        RESUMING,
    ),
    "features without rows": Mutant(
        "latent/glfm/sampler.py", "used = Z.any(axis=0) | (np", "used = (0 * np", RESUMING
    ),
    "corrections without doubt": Mutant(
        "inference/corrections.py",
        "    p[at.size // 2] += NO_CORRECTION\n",
        "",
        "tests/test_corrections.py",
    ),
    "tilts the wrong way": Mutant(
        "inference/corrections.py",
        "tensordot(softmax(np.log(chance)",
        "tensordot(-softmax(np.log(chance)",
        "tests/test_corrections.py",
    ),
    "sds before the correction": Mutant(
        "inference/predictive.py", "sd=found.sd * ratio", "sd=found.sd", RECALIBRATION
    ),
    "errors of means scaled with the sd": Mutant(
        "inference/predictive.py", "error / ratio", "error", RECALIBRATION
    ),
    "sds corrected the wrong way": Mutant(
        "links/averages.py", "before, after = variances", "after, before = variances", RECALIBRATION
    ),
    "settled means as sure as those of all draws": Mutant(
        "completion/dependent.py", " + 1.0 / SAMPLES)", ")", "tests/test_relations.py"
    ),
    "chains of all models with one mean": Mutant(
        "completion/dependent.py",
        "own = groups[drawn] == group",
        "own = groups[drawn] >= 0",
        "tests/test_relations.py",
    ),
    "draws cut off before they are moved": Mutant(
        "inference/joint_draws.py",
        "draw_jointly(self.source,",
        "draw_jointly(self.posterior,",
        PREDICTIVE,
    ),
    "no random numbers of columns that are not needed": Mutant(
        "inference/joint_draws.py", "rng.random(drawn[d].size)", "pass", STACKED
    ),
    "bounds left to the values": Mutant(
        "links/numeric.py",
        "dataclasses.replace(free, lower=float(lowest), upper=float(largest))",
        "free",
        PREDICTIVE,
    ),
    "draws of candidates moved from their forecasts": Mutant(
        "inference/joint_draws.py",
        "own.drawn.get(d, own.quantiles[d])",
        "own.quantiles[d]",
        "tests/test_stacking.py",
    ),
    "powers of levels inverted": Mutant(
        "inference/recalibration.py",
        "np.exp(self.powers(d, p)[:, None] * np.log(",
        "np.exp(1.0 / self.powers(d, p)[:, None] * np.log(",
        RECALIBRATION,
    ),
    "tilts that depend on certainty above the bend": Mutant(
        "inference/corrections.py",
        "np.minimum(log_sd - bend, 0.0)",
        "np.maximum(log_sd - bend, 0.0)",
        "tests/test_corrections.py",
    ),
    "certain cells tell what columns share": Mutant(
        "inference/corrections.py",
        "self.ends[1] + np.log(LEAST_SHARED)",
        "self.ends[0] + np.log(LEAST_SHARED)",
        "tests/test_corrections.py",
    ),
    "evidence of tilts whatever the width of their prior": Mutant(
        "inference/corrections.py",
        "    log_det -= np.sum(np.log(np.where(free, precision, 1.0)), axis=1)\n",
        "",
        "tests/test_corrections.py",
    ),
    "powers that certainty changes the wrong way": Mutant(
        "inference/recalibration.py",
        "first + (last - first) * certainty(p)",
        "last + (first - last) * certainty(p)",
        RECALIBRATION,
    ),
    "tilts of the other end of certainty": Mutant(
        "inference/recalibration.py",
        "yield np.flatnonzero(steps == step), curve[step]",
        "yield np.flatnonzero(steps == step), curve[-1 - step]",
        RECALIBRATION,
    ),
    "latent numbers of averages without their noise": Mutant(
        "links/averages.py",
        "square = eta**2 + self.link.sd(var, params[-1]) ** 2",
        "square = eta**2",
        RECALIBRATION,
    ),
    "latent numbers of forecasts without their noise": Mutant(
        "links/numeric.py",
        "square = eta**2 + np.broadcast_to(sd, eta.shape) ** 2",
        "square = eta**2",
        RECALIBRATION,
    ),
    "one seed's variance for two": Mutant(
        "inference/precision.py",
        "np.sqrt(2.0 * (size - 1) / (n * (n - 1)))",
        "np.sqrt((size - 1) / (n * (n - 1)))",
        PRECISION,
    ),
    "contrasts of candidates put side by side": Mutant(
        "inference/precision.py",
        "return np.sum([part[every % len(part)] for part in parts], axis=0)",
        "return np.concatenate(parts)",
        "tests/test_stacking.py",
    ),
    "error of a cell with the wrong divisor": Mutant(
        "inference/chain_means.py", "axis=0, ddof=1)", "axis=0, ddof=0)", PRECISION
    ),
    "error falls with the number of chains": Mutant(
        "inference/precision.py",
        "(self.typical / self.goal) ** 2",
        "(self.typical / self.goal)",
        PRECISION,
    ),
    "halves that are the whole": Mutant(
        "inference/precision.py",
        "_drift(second - first, rng)",
        "_drift(whole - whole, rng)",
        PRECISION,
    ),
    "drift by chance": Mutant(
        "inference/precision.py", "if np.mean(sizes >= sizes[0]) > CHANCE:", "if False:", PRECISION
    ),
    "pooled scores not averaged": Mutant(
        "inference/scoring.py", "log_p - n, sums.get(d)", "log_p, sums.get(d)", PREDICTIVE
    ),
    "restarts without weights in scores": Mutant(
        "inference/scoring.py", " + np.log(weight)", "", SLIPS
    ),
    "restarts without weights in probabilities": Mutant(
        "links/averages.py", "self.total += share * ", "self.total += ", SLIPS
    ),
    "versions that no analysis chooses": Mutant(
        WALK, "rng.random(now.size)) < new - now", "rng.random(now.size)) < 9.0", ANALYSIS
    ),
    "accepted versions with the density of those before": Mutant(
        WALK, "return np.where(taken, new, now)", "return now", ANALYSIS
    ),
    "a chain that does not see its versions": Mutant(WALK, "        self._see()\n", "", BESIDE),
    "coefficients of the first sweep": Mutant(
        WALK,
        "drawn = regression.family.draw(",
        "drawn = self.at or regression.family.draw(",
        ANALYSIS,
    ),
    "what is cut off weighs the other way": Mutant(
        WALK, "< before - after", "< after - before", "tests/test_analysis_auxiliaries.py"
    ),
    "a prior about x of 0": Mutant(
        FAMILIES, "np.append(1.0, mean[1:])", "np.append(1.0, 0.0 * mean[1:])", ANALYSIS
    ),
    "a prior as wide as x is large": Mutant(
        FAMILIES, "np.where(seen, X - mean, 0.0)", "np.where(seen, X, 0.0)", ANALYSIS
    ),
    "hazards of one event more": Mutant(
        SURVIVAL, "rng.gamma(counted)", "rng.gamma(counted + 1.0)", TIMES
    ),
    "hazards that no risk weighs": Mutant(
        SURVIVAL, "(seen.X - centre) @ b, LARGEST", "0.0 * (seen.X - centre) @ b, LARGEST",
        TIMES,
    ),
    "events and ends of observation exchanged": Mutant(
        SURVIVAL, "events > 0.0, times.x, -times.x", "events > 0.0, -times.x, times.x",
        TIMES,
    ),
    "a covariate below a limit drawn anywhere": Mutant(
        WALK, "self.missing, rng, draw, self.ends", "self.missing, rng, draw", ANALYSIS_LIMITS
    ),
    "columns beside a regression seen as drawn": Mutant(
        WALK, "own if name in limits.beside else xs[name]", "xs[name]", ANALYSIS_LIMITS
    ),
    "a level that a known answer rules out": Mutant(
        WALK, "xs)] = -np.inf", "xs)] += 0.0", ANALYSIS_LIMITS
    ),
    "a level drawn that a condition tells": Mutant(
        "completion/analysis/limits.py", "requested & ~encoded.observed", "requested",
        ANALYSIS_LIMITS,
    ),
    "rows of earlier levels stay": Mutant(
        "completion/analysis/nominal.py",
        "every = [seen.y >= k",
        "every = [seen.y >= 0",
        "tests/test_analysis_nominal.py",
    ),
    "tails of a new column in its own units": Mutant(
        "completion/beyond.py",
        "z = x / self.spread - self.middle / self.spread",
        "z = x - self.middle",
        "tests/test_beyond.py",
    ),
    "versions that are taken where they are refused": Mutant(
        WALK,
        "self.xs[name][taken] = proposed[name][taken]",
        "self.xs[name][~taken] = proposed[name][~taken]",
        ANALYSIS,
    ),
    "auxiliaries that tell nothing of missing cells": Mutant(
        WALK,
        "np.sum([law.log_density(xs) for law in self.laws], axis=0)",
        "self.laws[0].log_density(xs)",
        BESIDE,
    ),
    "coefficients that do not see responses drawn beside auxiliaries": Mutant(
        WALK, "self.seen | self.missing if within else self.seen", "self.seen", BESIDE
    ),
    "responses outside what their column can hold": Mutant(
        REGRESSION, "inside = max(low, min(0.0, high))", "inside = low", ANALYSIS_LAWS
    ),
    "truncated draws of the wrong spread": Mutant(
        FAMILIES,
        "fill_truncated_normal(mean, sd, low, high",
        "fill_truncated_normal(mean, at.s2, low, high",
        ANALYSIS_LAWS,
    ),
    "a dispersion without the Jacobian of its logarithm": Mutant(
        COUNTS, "t + 2.0 * float(log_expit(-t))", "2.0 * float(log_expit(-t))", ANALYSIS_COUNTS
    ),
    "counts with the inverse of their dispersion": Mutant(
        COUNTS, "rng.gamma(1.0 / at.s2, at.s2", "rng.gamma(at.s2, 1.0 / at.s2", ANALYSIS_COUNTS
    ),
    "laws of counts compared without their sizes": Mutant(
        COUNTS, 'return p + (name != "poisson") -', "return p -", ANALYSIS_COUNTS
    ),
    "normal errors of counts by their density": Mutant(
        COUNTS,
        "log_p = log_interval((away - 0.5) / sd, (away + 0.5) / sd)",
        "log_p = -0.5 * (away / sd) ** 2 - np.log(np.sqrt(2.0 * np.pi) * sd)",
        ANALYSIS_COUNTS,
    ),
    "columns that tell of a response through its regressors": Mutant(
        CHECKS, "_residuals(_residuals(X[known], V), rest)", "_residuals(V, rest)", ANALYSIS_LAWS
    ),
    "coefficients that have settled since the first sweeps": Mutant(
        TOLD, "traces[:, -2 * third : -third]", "traces[:, :third]", ANALYSIS_LAWS
    ),
    "coefficients accepted whatever proposes them": Mutant(
        FAMILIES, "log_p + 0.5 * (DF + b.size)", "log_p + 0.0 * (DF + b.size)", ANALYSIS
    ),
    "residual variance with n degrees of freedom": Mutant(
        FAMILIES, "rng.chisquare(n - p)", "rng.chisquare(n)", ANALYSIS
    ),
    "coefficients without their variance": Mutant(
        FAMILIES, "mode + np.sqrt(s2) * np.linalg", "mode + 0.0 * np.linalg", ANALYSIS
    ),
    "quantiles of the wrong tail": Mutant(
        "links/averages.py", "cdf < probability - 1e-12", "cdf < 1.0 - probability", LINKS
    ),
    "restarts chosen alike": Mutant(
        "inference/posterior.py", "p=self.shares() / len(every)", "p=None", SLIPS
    ),
    "an atom that is never drawn": Mutant(
        "links/two_part.py", "(atom + within) < atom", "(atom + within) < 0.0", LINKS
    ),
    "an atom that moves its neighbours": Mutant(
        "links/two_part.py",
        "x = np.where(encoded.x == at, np.nan, encoded.x)",
        "x = encoded.x",
        TWO_PART,
    ),
    "an atom beside a whole density": Mutant(
        "links/two_part.py", "beside = log_ndtr(-z) + ", "beside = ", LINKS
    ),
    "bounds that take from an atom": Mutant(
        "links/two_part.py", "atom, rest / allowed, second", "atom, rest, second", LINKS
    ),
    "joint draws that pile up at a ceiling": Mutant(
        "inference/joint_draws.py",
        "BOUNDED = NumericLink, TwoPartLink",
        "BOUNDED = (NumericLink,)",
        TWO_PART,
    ),
    "structural values that are completed": Mutant(
        "encoding/relations.py",
        "    requested = encoded.requested & ~empty",
        "    requested = encoded.requested",
        "tests/test_relations.py",
    ),
    "amounts held where there are none": Mutant(
        "links/two_part.py", "np.where(is_at, free, ", "np.where(is_at, 0.0, ", TWO_PART
    ),
    "amounts left behind by their scale": Mutant(
        "links/two_part.py",
        'params["inverse_sd"] *= factor',
        'params["inverse_sd"] *= 1.0',
        TWO_PART,
    ),
    "small values counted twice": Mutant(
        "links/positive.py", "density + np.log1p(-of_zero), density)", "density, density)", LINKS
    ),
    "every value a knot": Mutant(
        "links/margins.py", "rank[k] + APART)", "rank[k] + 1)", "tests/test_margins.py"
    ),
    "knots that pass over shared values": Mutant(
        "links/margins.py",
        "kept[1:] |= shared[:-1]",
        "kept[1:] |= shared[1:]",
        "tests/test_margins.py",
    ),
    "ranks that end with the sample": Mutant(
        "links/margins.py", "    if counts[-1] == 1:\n", "    if False:\n", MARGINS
    ),
    "thresholds without a Jacobian": Mutant(
        "links/ordinal.py", " + float(np.log(gaps).sum())", "", ORDINAL
    ),
    "thresholds without a prior": Mutant(
        "links/ordinal.py",
        "prior = -0.5 * float(theta @ theta)",
        "prior = -0.0 * float(theta @ theta)",
        ORDINAL,
    ),
    "counts two wide": Mutant(
        "links/count.py",
        "low, high = self.cut(x), self.cut(x + 1.0)\n\n        def log_p",
        "low, high = self.cut(x), self.cut(x + 2.0)\n\n        def log_p",
        LINKS,
    ),
    "mass of features without their number": Mutant(
        "latent/glfm/sampler.py",
        "rng.gamma(config.alpha_shape + n_features)",
        "rng.gamma(config.alpha_shape)",
        SLIPS,
    ),
    "a column tells who it is told of": Mutant(
        "exploration/crossfit.py", "rest = total - own", "rest = total", EVIDENCE
    ),
    "a feature is not turned": Mutant(
        "exploration/crossfit.py",
        "np.where(phi[contained] > 0, has, 1 - has)",
        "np.where(phi[contained] > -2, has, 1 - has)",
        EVIDENCE,
    ),
    "rows judge what they found": Mutant(
        "exploration/crossfit.py",
        "half.other[some_rows(half.other.size",
        "half.own[some_rows(half.own.size",
        EVIDENCE,
    ),
    "both halves the same": Mutant(
        "exploration/halves.py",
        "HalfSample(run.posterior, rows, others)",
        "HalfSample(run.posterior, rows, rows)",
        EVIDENCE,
    ),
    "halves added up": Mutant(
        "exploration/evidence.py", "one.sum(axis=0) / times[:, None]", "one.sum(axis=0)", EVIDENCE
    ),
    "half of the permuted tables": Mutant(
        "exploration/evidence.py", "LEVEL = 0.95", "LEVEL = 0.5", EVIDENCE
    ),
    "columns that are not permuted": Mutant(
        "exploration/evidence.py", "views[order, v]", "views[np.sort(order), v]", EVIDENCE
    ),
    "features taken twice over": Mutant(
        "exploration/evidence.py", "column.p[:, list(given)]", "column.p[:, :0]", EVIDENCE
    ),
    "few rows are evidence": Mutant(
        "exploration/evidence.py", "_FEWEST = 3.0", "_FEWEST = 0.0", EVIDENCE
    ),
    "with a feature and without it": Mutant(
        "exploration/features.py",
        "for weight in (1.0 - p, p)",
        "for weight in (p, 1.0 - p)",
        EVIDENCE,
    ),
    "an effect by halves that lack it": Mutant(
        "exploration/features.py", "if one.known[k]]", "if True]", EVIDENCE
    ),
    "draws count as trials": Mutant(
        "exploration/stability.py",
        "np.sqrt(a * b / (a + b + 1.0)) / (a + b)",
        "np.sqrt(a * b / (20 * (a + b) + 1.0)) / (a + b)",
        EVIDENCE,
    ),
    "patterns of chance": Mutant(
        "exploration/patterns.py",
        "[feature for feature in features if feature.credible]",
        "[*features]",
        "tests/test_exploration.py",
    ),
    "sticks with another prior": Mutant(
        "latent/mixture/sampler.py",
        "rng.standard_gamma(1.0 + n[:-1])",
        "rng.standard_gamma(2.0 + n[:-1])",
        "tests/test_mixture.py",
    ),
    "new rows scored by their numbers alone": Mutant(
        "inference/row_scores.py", "add_table_rows(own.places[rows], self.table, out)", "", SLIPS
    ),
    "counts that are not rounded": Mutant(
        "evaluation/methods/sibp.py",
        "np.floor(super().value(y) + 0.5)",
        "super().value(y)",
        "tests/test_evaluation.py",
    ),
    "experts twice as sure of their spread": Mutant(
        "latent/iqgme/experts.py", "= prior.nu0 + s.n", "= prior.nu0 + 2.0 * s.n", PRIORS
    ),
    "spread of scores taken off": Mutant(
        "latent/iqgme/local.py",
        "part.xx += np.swapaxes(spread * along, 1, 2) @ along",
        "part.xx -= np.swapaxes(spread * along, 1, 2) @ along",
        "tests/test_iqgme.py",
    ),
    "trees that know the labels they are weighed by": Mutant(
        "classification/label_trees.py",
        "n_levels, x, rows)[rows, own]",
        "n_levels, x, rows * 0 - 1)[rows, own]",
        "tests/test_label_trees.py",
    ),
    "trees of missing cells at their means": Mutant(
        "classification/classifier.py",
        "np.where(own.known, own.x, mean)",
        "own.x",
        "tests/test_label_trees.py",
    ),
    "weights of trees beside starts of equal weights": Mutant(
        "classification/label_mixing.py",
        "np.log(member.weight) + log_p[",
        "log_p[",
        "tests/test_label_mixing.py",
    ),
    "labels left out while the others' scores stay": Mutant(
        "latent/iqgme/label_responses.py",
        "W[..., k] = (g - _pull(",
        "W[..., k] = 2.0 * (g - _pull(",
        "tests/test_label_responses.py",
    ),
    "labels left out under a prior whose centre stays": Mutant(
        "latent/iqgme/label_responses.py",
        "C = own + to_center @ center @ np.swapaxes(to_center, 1, 2)",
        "C = own + 0.0 * (to_center @ center @ np.swapaxes(to_center, 1, 2))",
        "tests/test_label_responses.py",
    ),
    "scores without a label as far on the other side": Mutant(
        "latent/iqgme/label_responses.py",
        "return one.mean - moved",
        "return one.mean + moved",
        "tests/test_label_responses.py",
    ),
    "forecasts as sure as labels left out without a lump": Mutant(
        "latent/iqgme/temperature.py",
        "moved = expit(log_slab - tempered(log_p, 1.0)[own].sum())",
        "moved = 1.0",
        "tests/test_temperature.py",
    ),
    "powers without a prior": Mutant(
        "latent/iqgme/temperature.py",
        "-0.5 * z**2 - log_sum",
        "-0.0 * z**2 - log_sum",
        "tests/test_temperature.py",
    ),
    "forecasts as sure as the fit": Mutant(
        "classification/classifier.py", "** self.power", "** 1.0", "tests/test_iqgme_levels.py"
    ),
    "labels left out without the power of forecasts": Mutant(
        "classification/label_mixing.py",
        "member.power if s is None else s)",
        "1.0 if s is None else s)",
        "tests/test_label_mixing.py",
    ),
    "the power of forecasts by labels seen": Mutant(
        "latent/iqgme/model.py",
        "log_p, code = state.left_out(every_level(rows))[rows.labelled], rows",
        "from glfm_cli.latent.iqgme import label_law; from glfm_cli.links import of_levels; "
        "law = label_law(rows, start.experts).of_label(); "
        "log_p = np.log(of_levels(rows.label.link).probabilities(law, rows.label.params)); "
        "log_p, code = log_p[rows.labelled], rows",
        "tests/test_iqgme_levels.py",
    ),
    "starts of one form alone go on": Mutant(
        "latent/iqgme/model.py",
        "if not tables.config.average:\n            return 0",
        "if True:\n            return 0",
        "tests/cli/test_classify_factors.py",
    ),
    "forms of experts by rows without labels": Mutant(
        "latent/iqgme/prior.py",
        "n_labelled <= ROWS_EACH * n_features",
        "n_rows <= ROWS_EACH * n_features",
        "tests/test_iqgme_moves.py",
    ),
    "indicators that are unknown": Mutant(
        "classification/features.py",
        "self.gaps.values(xs), True",
        "self.gaps.values(xs), False",
        "tests/cli/test_classify_gaps.py",
    ),
    "gaps that tell by forecasts that are too sure": Mutant(
        "classification/gaps.py",
        "np.maximum((square * spread).sum(axis=0), (square * rest * rest).sum(axis=0))",
        "(square * spread).sum(axis=0)",
        "tests/cli/test_classify_gaps.py",
    ),
    "gaps beside a mean of no weight": Mutant(
        "classification/gaps.py",
        "(gap @ spread) /",
        "0.5 * (gap @ spread) /",
        "tests/cli/test_classify_gaps.py",
    ),
    "rows of a group in several folds": Mutant(
        "classification/classify.py",
        "self.how, n_folds, runner, task.groups)",
        "self.how, n_folds, runner)",
        "tests/cli/test_classify_groups.py",
    ),
    "groups to the fullest fold": Mutant(
        "classification/stratified.py",
        "total @ share[g]))[0]",
        "-total @ share[g]))[0]",
        "tests/cli/test_classify_groups.py",
    ),
    "levels scored by their own rows' labels": Mutant(
        "classification/level_scores.py",
        "scores_of(count - counted(own), s, places)",
        "scores_of(count, s, places)",
        "tests/test_level_scores.py",
    ),
    "scores of levels from half the prior's rows": Mutant(
        "classification/level_scores.py",
        "np.log(count + s * prior) - np.log(share)",
        "np.log(count + 0.5 * s * prior) - np.log(share)",
        "tests/test_level_scores.py",
    ),
    "levels that say nothing are believed": Mutant(
        "classification/level_scores.py",
        "- best.fun > EVIDENCE",
        "- best.fun > -np.inf",
        "tests/test_level_scores.py",
    ),
    "strength without the levels' rows": Mutant(
        "classification/level_scores.py",
        "gammaln(s) - gammaln(n + s)",
        "gammaln(s) - gammaln(n)",
        "tests/test_level_scores.py",
    ),
    "scores against the last label": Mutant(
        "classification/level_scores.py",
        "log_p[:, :1])",
        "log_p[:, -1:])",
        "tests/test_level_scores.py",
    ),
    "levels drawn to the shares of all, not to their line": Mutant(
        "classification/level_scores.py",
        "prior = share if places is None else",
        "prior = share if places is not None else",
        "tests/test_ordered_scores.py",
    ),
    "slopes of levels with a prior of another width": Mutant(
        "classification/level_scores.py",
        "w[K - 1 :]) / SLOPES",
        "w[K - 1 :]) * SLOPES",
        "tests/test_ordered_scores.py",
    ),
    "every column in an order by scores": Mutant(
        "classification/classifier.py",
        "if found.levels.any() or not e.column.ordinal:",
        "if True:",
        "tests/test_ordered_scores.py",
    ),
    "missing levels by scores without their noise": Mutant(
        "classification/features.py",
        "var = var + self.noise\n",
        "var = var + 0.0\n",
        "tests/test_level_scores.py",
    ),
    "missing levels whatever their share": Mutant(
        "classification/features.py",
        "self.share[r] * (weights",
        "1.0 * (weights",
        "tests/test_level_scores.py",
    ),
    "features as sure as what is seen of them": Mutant(
        "latent/iqgme/seen_law.py",
        "spread = n[:, None, None] * self.cov",
        "spread = 0.0 * self.cov",
        "tests/test_iqgme_levels.py",
    ),
    "noise that makes a row more probable": Mutant(
        "latent/iqgme/seen_law.py",
        "constant = -0.5 * (",
        "constant = 0.5 * (",
        "tests/test_iqgme_levels.py",
    ),
    "sticks that forget who comes behind": Mutant(
        "latent/iqgme/sticks.py", "self.alpha + rows_behind(n)", "self.alpha + 0.0 * n[:-1]", PRIORS
    ),
    "experts where rows are not": Mutant(
        "latent/iqgme/gates.py", "log_pi + q.log_density(", "log_pi - q.log_density(", PRIORS
    ),
    "columns seen half as often": Mutant(
        "latent/cnpf/columns.py",
        "shared.B = shared.column_rate + scale * total",
        "shared.B = shared.column_rate + 0.5 * scale * total",
        PRIORS,
    ),
    "missing pairs taken for zeros": Mutant(
        "latent/cnpf/rows.py",
        "S[have] = tables.own[tables.at[have]]",
        "S[have] = S[have]",
        PRIORS,
    ),
    "columns known from one count": Mutant(
        "latent/cnpf/prediction.py", "var_a = a**2 / draw.shared.A", "var_a = a**2", PRIORS
    ),
    "rows' sizes that count as correlation": Mutant(
        "latent/cnpf/correlations.py", "own = covariance - common", "own = covariance", TOGETHER
    ),
    "pairs listed whatever their level": Mutant(
        "exploration/factors.py",
        "np.abs(correlations) > level",
        "np.abs(correlations) > 0.0",
        "tests/cli/test_explore_counts.py",
    ),
    "columns explained by cells that were seen": Mutant(
        "exploration/map_explained.py", "x[part[:, d] == number] = np.nan", "pass", MAP
    ),
    "features taken for nothing": Mutant(
        "exploration/evidence.py",
        "taken[order[-1]] = now[0][order[-1]]",
        "taken[order[-1]] = z[order[-1]]",
        "tests/test_evidence.py",
    ),
    "gaps that chance makes named": Mutant(
        "exploration/lines.py",
        "least = max(TOGETHER, FAR / np.sqrt(max(n_rows, 1)))",
        "least = -1.0",
        "tests/cli/test_explore.py",
    ),
    "rounded values taken for exact ones": Mutant(
        "diagnosis/check.py",
        "ends = values + np.where(halves <= STEP * float(np.std(x / 2)), halves, 0.0)",
        "ends = values",
        "tests/test_diagnosis.py",
    ),
    "uncertainty of twice its size": Mutant(
        "diagnosis/diagnose.py",
        "return 0.5 * np.diff(",
        "return np.diff(",
        "tests/test_diagnosis.py",
    ),
    "values between groups told as inside": Mutant(
        "exploration/map.py",
        "if 0 < after < at.size and value < at[after]:",
        "if False:",
        MAP,
    ),
    "columns told by themselves": Mutant(
        "exploration/lowrank.py",
        "precision = np.diag(1.0 / noise[own]) - scaled[own] @ middle @ scaled[own].T",
        "precision = np.diag(1.0 / noise[own])",
        "tests/test_exploration_lowrank.py",
    ),
    "components that no two draws share": Mutant(
        "exploration/lowrank.py",
        "return self.size > 2.0 * self.size_sd",
        "return self.size > 0.0",
        "tests/test_exploration_lowrank.py",
    ),
    "typical rows of the wrong rows": Mutant(
        "exploration/patterns.py",
        "scale.weighted(scale.encoded.x[rows], scale.counts(rows))",
        "scale.baseline()",
        "tests/test_exploration.py",
    ),
    "places that flee the prior": Mutant(
        "latent/clgp/bound.py",
        "- penalty * q.m",
        "+ penalty * q.m",
        "tests/clgp/test_clgp_ascent.py",
    ),
    "noise that goes down the slope": Mutant(
        "latent/clgp/bound.py",
        '"log_noise": local.cells.log_noise *',
        '"log_noise": -local.cells.log_noise *',
        PRIORS,
    ),
    "numbers without tails": Mutant(
        "latent/clgp/laws.py", "scales = noise_scales(mean.shape[1])", "pass", LAWS
    ),
    "maps of as many dimensions as columns": Mutant(
        "latent/clgp/model.py", "usual = ClgpConfig().sizes(n_columns)[0]", "usual = n_columns", MAP
    ),
    "maps of as many dimensions as completions": Mutant(
        "exploration/job.py", "few |= model.map_settings(n_columns)", "pass", MAP
    ),
    "maps by places where cells are known": Mutant(
        "exploration/frame.py", "x * scale if cells is None else cells", "x * scale", MAP
    ),
    "gaps that follow more than the bound is of": Mutant(
        "latent/iqgme/local.py",
        "A, rest + a * _dot(a, t)[:, :, None])",
        "A, t)",
        "tests/test_iqgme_levels.py",
    ),
    "tries of the rank as often in large matrices": Mutant(
        "latent/bsvd/births.py",
        "n_steps(state) * rng.random() < A_SWEEP",
        "rng.random() < A_SWEEP",
        "tests/test_births.py",
    ),
    "evidence of a birth over one spread": Mutant(
        "latent/bsvd/births.py",
        "before**2 / loose",
        "before**2 / spread",
        "tests/test_births.py",
    ),
    "deaths weighed as births": Mutant(
        "latent/bsvd/births.py",
        "            log_weight += self._log_ratio(low, high)\n            if low",
        "            log_weight -= self._log_ratio(low, high)\n            if low",
        "tests/test_births.py",
    ),
    "columns that read the residuals of rows": Mutant(
        "latent/bsvd/residuals.py", "(E, by_column(E)),", "(E, E),", "tests/test_births.py"
    ),
    "a direction of the first diagonal alone": Mutant(
        "latent/bsvd/residuals.py",
        "B[k, k + 1] = length",
        "B[k, k + 1] = 0.0",
        "tests/test_births.py",
    ),
    "a birth that is refused leaves residuals for means": Mutant(
        "latent/bsvd/sampler.py",
        "                else:\n                    moves.fill_means(state, each)\n",
        "",
        "tests/test_births.py",
    ),
    "births by sums of another component": Mutant(
        "latent/bsvd/births.py",
        "            move()\n        self._sum()",
        "            move()",
        "tests/test_births.py",
    ),
    "new rows learn from what follows": Mutant(
        "completion/new_rows.py",
        "xs = learnt_cells(new.columns)",
        "xs = tuple(one.cells for one in new.columns)",
        "tests/test_relations.py",
    ),
    "steps of thresholds down the slope": Mutant(
        "latent/clgp/likelihoods.py", "*= np.exp(shared.steps", "*= -np.exp(shared.steps", PRIORS
    ),
    "bits drawn in the order in which features came": Mutant(
        "latent/glfm/sampler.py", "        self._shuffle(state, streams.get(WEIGHTS))\n", "", SCAN
    ),
    "weights that stay where features were": Mutant(
        "latent/glfm/sampler.py", "state.B[named] = state.B[order]", "pass", SCAN
    ),
    "forecasts of trees not drawn to the mean": Mutant(
        "latent/forest/trees.py", "trees.slope[k] * (mean - middle)", "(mean - middle)", LEAVES
    ),
    "a slope by the noise of few trees": Mutant(
        "latent/forest/trees.py", "forecast**2 - spare / heard", "forecast**2", FOREST
    ),
    "variance between draws counted twice": Mutant(
        "latent/forest/trees.py",
        "spare * (1.0 / heard + share)",
        "spare * (1.0 / heard - share)",
        FOREST,
    ),
    "intervals held where they began": Mutant(
        "latent/forest/model.py",
        "z[d, at] = draw_inside(found, low, high, rng)",
        "pass",
        INTERVALS,
    ),
    "intervals forecast by their own cells": Mutant(
        "latent/forest/model.py",
        "found = law(z, at, at.astype(np.int32), ",
        "found = law(z, at, 0 * at.astype(np.int32) - 1, ",
        INTERVALS,
    ),
    "intervals of new rows held where they began": Mutant(
        "latent/forest/draw.py", "if d in ends:", "if False:", INTERVALS
    ),
    "intervals drawn between other ends": Mutant(
        "latent/forest/intervals.py", "(high - mean) / sd", "(high + mean) / sd", INTERVALS
    ),
    "intervals drawn from parts that have nothing in them": Mutant(
        "latent/forest/intervals.py", "if law.n_components == 1:", "if True:", SHAPES
    ),
    "parts as far from the mean as their members": Mutant(
        "latent/forest/shapes.py", "np.sqrt(share)[:, None] * away", "away", SHAPES
    ),
    "parts that are points": Mutant(
        "latent/forest/shapes.py", "(1.0 - SMOOTH) * var / np", "var / np", SHAPES
    ),
    "a law as wide as its members": Mutant(
        "latent/forest/shapes.py", "(var - share * own)", "(var - own)", SHAPES
    ),
    "middles of donors where these are hardly too wide": Mutant(
        "latent/forest/leaves.py", ">= TOO_WIDE * found.variance", ">= found.variance", DRAWS
    ),
    "as many middles as there is variance too much": Mutant(
        "latent/forest/leaves.py", "/ (1.0 - MEDIAN), 1.0)", ", 1.0)", DRAWS
    ),
    "donors whose variance is that between trees alone": Mutant(
        "latent/forest/leaves.py", "of_one - of_many + within)", "of_one - of_many)", DRAWS
    ),
    "chains that go on with any donor": Mutant(
        "latent/forest/model.py", "draw.lines.place >= 0, draw.middle",
        "draw.lines.place >= 0, 0.0", LEAVES
    ),
    "new rows that are given any donor": Mutant(
        "latent/forest/draw.py", "float(self.middle[d])", "0.0", DRAWS
    ),
    "leaves chosen by errors of few trees": Mutant(
        "latent/forest/leaves.py", "(total**2 - squares) / pairs", "squares / FORESTS", LEAVES
    ),
    "leaves that forecast worst": Mutant(
        "latent/forest/leaves.py", "least = min(sizes", "least = max(sizes", LEAVES
    ),
    "leaves chosen by cells that trees have seen": Mutant(
        "latent/forest/leaves.py",
        "targets(z, d, lines), np.nan), rows.astype(np.int32)",
        "targets(z, d, lines), np.nan), np.full(rows.size, -1, dtype=np.int32)",
        LEAVES,
    ),
    "ordered levels scored without their order": Mutant(
        "latent/forest/leaves.py", "else error.cumsum(axis=1)", "else error", LEAVES
    ),
    "leaves chosen while cells are those of the start": Mutant(
        "latent/forest/model.py", "if state.turn == SETTLED:", "if state.turn == 0:", LEAVES
    ),
    "cells of the start drawn from single donors": Mutant(
        "latent/forest/model.py", "else np.maximum(least, USUAL)", "else least", LEAVES
    ),
    "single members as wide as the column": Mutant(
        "latent/forest/trees.py", "x.size < FEWEST else 0.0", "x.size < FEWEST else 1.0", LEAVES
    ),
    "sizes of another column": Mutant(
        "latent/forest/trees.py",
        "fewest, T = int(least[d]), ",
        "fewest, T = int(least[-1 - d]), ",
        LEAVES,
    ),
    "lines whose errors know the row": Mutant(
        "latent/forest/lines.py", "np.maximum(1.0 - leverage, LEAST_FREE)", "1.0", LINES
    ),
    "leverages without the mean": Mutant(
        "latent/forest/lines.py", "1.0 / n + np.sum((u @ turn)", "np.sum((u @ turn)", LINES
    ),
    "evidence without its prior": Mutant(
        "latent/forest/lines.py",
        "np.log(weight / (size + weight))",
        "np.log(1.0 / (size + weight))",
        LINES,
    ),
    "an atom among the numbers": Mutant(
        "latent/forest/inputs.py", "np.where(x[p] == self.atom[p], 0.0, x[p])", "x[p]", LINES
    ),
    "donors forecast by a line that knows them": Mutant(
        "latent/forest/draw.py",
        "base[its] += without - lines.forecast(d, self.donors, donor)",
        "pass",
        LINES,
    ),
    "rows drawn anew forecast by their cells of before": Mutant(
        "latent/forest/draw.py",
        "without - lines.forecast(d, self.donors, donor)",
        "without - lines.forecast(d, self.z, rows[its])",
        LINES,
    ),
    "new cells drawn without the line": Mutant(
        "latent/forest/draw.py", "*cells, rng, base, ", "*cells, rng, None, ", LINES
    ),
    "trees of cells and lines of the rest": Mutant(
        "latent/forest/trees.py",
        "            continue\n        y = targets(z, d, lines)",
        "            continue\n        y = z[d]",
        LINES,
    ),
    "intervals drawn around no line": Mutant(
        "latent/forest/model.py",
        "base = z[d, at] - donors[at] if state.linear[d] else None",
        "base = None",
        INTERVALS,
    ),
    "twins drawn in turn": Mutant(
        "latent/forest/model.py", "if state.twins[d].size:", "if False:", TWINS
    ),
    "cells forecast by what was drawn of twins": Mutant(
        "latent/forest/draw.py", "if alone.size:", "if False:", TWINS
    ),
    "new rows whose twins are drawn in turn": Mutant(
        "latent/forest/draw.py", "if together.size:", "if False:", TWINS
    ),
    "widths by cells forecast by what was drawn of them": Mutant(
        "latent/forest/model.py",
        "told = np.array([s & ~alone.rows(d, seen) for d, s in enumerate(seen != 0)])",
        "told = seen != 0",
        TWINS,
    ),
    "lines that know twins where there are none": Mutant(
        "latent/forest/twins.py",
        "without = [twins[d] for d in straight]",
        "without = None",
        TWINS,
    ),
    "twins found by shifted rows": Mutant("latent/forest/twins.py", "- mean**2", "", TWINS),
    "levels that explain by being many": Mutant(
        "latent/forest/twins.py",
        "1.0 - left * (n[:, first] - 1.0) / np.maximum(n[:, first] - of.size, 1.0)",
        "1.0 - left",
        TWINS,
    ),
    "sums that leave as much as twins may": Mutant(
        "latent/forest/sums.py", "(1.0 - share) / CLOSER", "(1.0 - share) * CLOSER", SUMS
    ),
    "a covariance swept without its pivot": Mutant(
        "latent/forest/sums.py",
        "C -= np.outer(C[:, j], C[j]) / C[j, j]",
        "C -= np.outer(C[:, j], C[j])",
        SUMS,
    ),
    "a part of a sum that says itself": Mutant(
        "latent/forest/sums.py", "own[[i, *few]] = 0.0", "own[[*few]] = 0.0", SUMS
    ),
    "parts that any row lacks": Mutant(
        "latent/forest/sums.py",
        "few[lacking[:, int(np.argmax(n_rows))]]",
        "few[lacking.any(axis=1)]",
        SUMS,
    ),
    "parts that rows with the column lack": Mutant(
        "latent/forest/sums.py", "~seen[few][:, ~there]", "~seen[few][:, there]", SUMS
    ),
    "what is left of a sum in its unit": Mutant(
        "latent/forest/sums.py", "<= most_left * spread", "<= most_left", SUMS
    ),
    "parts that are not needed": Mutant(
        "latent/forest/sums.py",
        "if rest and _explain(x, known, i, rest, most_left):",
        "if False:",
        SUMS,
    ),
    "sums before twins": Mutant(
        "latent/forest/sums.py", "if twins[d].size or seen[d].all():", "if seen[d].all():", SUMS
    ),
    "correlations by squared scales": Mutant(
        "latent/forest/sums.py", "np.sqrt(np.maximum(square * square.T, 1e-300))", "square", SUMS
    ),
    "sums by few rows": Mutant(
        "latent/forest/sums.py", "if rows.sum() < FEWEST:", "if rows.sum() < 1:", SUMS
    ),
    "forecasts of twins scaled by cells with twins": Mutant(
        "latent/forest/model.py",
        "state.kinds, config.prior, lines, told)",
        "state.kinds, config.prior, lines)",
        TWINS,
    ),
    "flat dates seen by ranks": Mutant(
        "links/choice.py", "flat = not completed and ", "flat = ", MARGINS
    ),
    "Newton's steps that are not halved": Mutant(
        FAMILIES, "step = 0.5 * step", "break", ANALYSIS_LAWS
    ),
    "draws that correct forecasts left out of memory": Mutant(
        "completion/cost.py", "kept *= 2 if pace.per_chain else 1", "kept *= 1", LEARN_ROWS
    ),
    "twins drawn by each other": Mutant(
        "latent/forest/twins.py", "without=[group] * len(has)", "without=None", TWINS
    ),
    "what donors leave over added to their own lines": Mutant(
        "latent/forest/twins.py",
        "forecast(m, z, rows) + left",
        "forecast(m, z, donor) + left",
        TWINS,
    ),
    "scores permuted without their weights": Mutant(
        "exploration/goes_with.py",
        "own[rng.permutation(weight.size)].T",
        "np.column_stack([scores[rng.permutation(weight.size)], weight]).T",
        GOES_WITH,
    ),
    "the whole risk for each side": Mutant(
        "exploration/goes_with.py", "RISK / n_sides)", "RISK)", GOES_WITH
    ),
    "rounding taken for a fall": Mutant(
        "latent/cnpf/engine.py",
        "Progress(bound, settled or last, rounding=rounding)",
        "Progress(bound, settled or last)",
        "tests/cli/test_impute_counts.py",
    ),
    "pairs asked for by the table's numbers of ids": Mutant(
        "completion/matrix/new_units.py",
        "Pairs(places[0][row].astype(np.int64)",
        "Pairs(row.astype(np.int64)",
        KEPT_TRIPLETS,
    ),
    "labels' shares with the label itself": Mutant(
        "classification/label_mixing.py",
        "counts[code] - 1.0 + HALF",
        "counts[code] + HALF",
        "tests/test_label_mixing.py",
    ),
    "experts' power without that of their own": Mutant(
        "classification/label_mixing.py",
        "SPREAD * (at_z @ z) - own)",
        "SPREAD * (at_z @ z))",
        "tests/test_label_mixing.py",
    ),
    "cells far in a tail weighed by those that follow alone": Mutant(
        "inference/equations.py",
        "weight.ravel()[far] += own",
        "weight.ravel()[far] += 0.0 * own",
        "tests/test_equations_far.py",
    ),
    "cells too large for their equation, left": Mutant(
        "inference/equations.py",
        "cells[d][wrong & free[d]] *= 0.5",
        "cells[d][wrong & free[d]] *= 1.0",
        "tests/test_equations_far.py",
    ),
    "rounding of a result is added to its inputs": Mutant(
        "completion/rounded.py", "= -2.0 * step / (", "= 2.0 * step / (", "tests/test_rounded.py"
    ),
    "rows that obey their equation drawn anew beside others": Mutant(
        "inference/equations.py",
        "several &= True if held is None else held",
        "several &= True",
        "tests/test_equations.py",
    ),
    "a step beside one equal quantile more": Mutant(
        "inference/joint_draws.py",
        "under = (k >= STEP - 1) & (own[row, np.maximum(k - STEP + 1, 0)] == low)",
        "under = (k >= STEP) & (own[row, np.maximum(k - STEP, 0)] == low)",
        "tests/test_equations.py",
    ),
    "a cell's width told by the last of its equations": Mutant(
        "completion/rounded.py",
        "follow[d] &= ~known",
        "follow[d] &= known",
        "tests/test_rounded.py",
    ),
    "few new rows without the rounding of their fit": Mutant(
        "completion/rounded.py",
        "if known.sum() < FEWEST:",
        "if known.sum() < 1:",
        "tests/test_rounded.py",
    ),
    "small whole numbers that follow from large ones": Mutant(
        "inference/equations.py",
        "apart <= slack + HELD * np.abs(result)",
        "apart < np.inf",
        "tests/test_equations_whole.py",
    ),
    "draws that cannot follow, kept": Mutant(
        "completion/dependent.py",
        "range(TRIES if self.equations else 0)",
        "range(0)",
        "tests/test_relations.py",
    ),
    "drift with what is by chance": Mutant(
        "inference/precision.py",
        "float(sizes[0]) - by_chance, 0.0",
        "float(sizes[0]), 0.0",
        "tests/test_precision.py",
    ),
    "draws that are worth half": Mutant(
        "inference/precision.py",
        "2.0 * (0.6745 / self.typical) ** 2",
        "(0.6745 / self.typical) ** 2",
        "tests/test_precision.py",
    ),
    "halves of chains that overlap": Mutant(
        "inference/chain_means.py",
        "(a + b) // 2, b)",
        "(a + b + 1) // 2 + 1, b)",
        "tests/test_precision.py",
    ),
    "errors of levels in units of their variance": Mutant(
        "inference/predictive.py", "np.sqrt(p * (1 - p))", "p * (1 - p)", "tests/test_precision.py"
    ),
    "precision of the cells before": Mutant(
        "inference/precision.py",
        "found[d] = rows[here - start]",
        "found[d] = rows[here - start - 1]",
        "tests/test_precision.py",
    ),
    "levels as rare as in the last batch": Mutant(
        "completion/learning_rows.py",
        "_Stratum(self.size + other.size, key[first]",
        "_Stratum(other.size, key[first]",
        "tests/test_learn_rows.py",
    ),
    "precision of the last batch": Mutant(
        "completion/batches.py",
        "intervals=shown, precision=known)",
        "intervals=shown)",
        "tests/test_batches.py",
    ),
    "precision of a first batch without gaps": Mutant(
        "completion/batches.py", "known.cells == 0", "known.cells < 0", "tests/test_batches.py"
    ),
    "powers of levels whatever the width of their prior": Mutant(
        "inference/corrections.py",
        "np.exp(-0.5 * (at / sd) ** 2)",
        "np.ones(at.size)",
        "tests/test_corrections.py",
    ),
    "cells that nobody thought possible weigh candidates": Mutant(
        "inference/stacking.py",
        "log_p = log_p[np.isfinite(log_p.max(axis=1, initial=-np.inf))]",
        "pass",
        "tests/test_stacking_weights.py",
    ),
    "medians past a half": Mutant(
        "inference/predictive.py",
        "upto < one - ROUNDING",
        "upto <= one + ROUNDING",
        "tests/test_marginals.py",
    ),
    "levels that are numbers spread about their codes": Mutant(
        "inference/predictive.py",
        "away = numbers - mean[:, None]",
        "away = numbers - self.mean[:, None]",
        "tests/test_marginals.py",
    ),
    "cells between ends by half of the draws": Mutant(
        "inference/predictive.py",
        "(np.arange(SAMPLES) + 0.5) / SAMPLES)",
        "(np.arange(SAMPLES) + 0.5) / SAMPLES / 2.0)",
        "tests/test_marginals.py",
    ),
    "variances of cells between ends for their sds": Mutant(
        "inference/predictive.py",
        "x.mean(axis=0), x.std(axis=0)",
        "x.mean(axis=0), x.var(axis=0)",
        "tests/test_marginals.py",
    ),
    "steps of a forecast that begin a knot early": Mutant(
        "inference/joint_draws.py",
        "np.where(left > 0, ndtr(scores[np.minimum(left, last + 1)]), 0.0)",
        "np.where(left > 0, ndtr(scores[np.minimum(left - 1, last + 1)]), 0.0)",
        "tests/test_marginals.py",
    ),
    "heaps that never jump down": Mutant(
        "inference/joint_draws.py",
        "z >= 0.5 * (scores[k] + scores[k + 1])",
        "z >= scores[k]",
        "tests/test_marginals.py",
    ),
    "one of two cells in order drawn again": Mutant(
        "inference/one_draw.py",
        "x[chosen], y[chosen]",
        "x[chosen], found[second][high]",
        "tests/test_marginals.py",
    ),
    "two cells in order of different tries": Mutant(
        "inference/one_draw.py", "reshape(n, -1) for", "reshape(-1, n).T for",
        "tests/test_redraw.py"
    ),
    "two cells in order drawn too often": Mutant(
        "inference/one_draw.py", "tries, several = tries + n,", "tries, several = tries + 1,",
        "tests/test_redraw.py"
    ),
    "corrected densities inside bounds at places of all": Mutant(
        "inference/scoring.py",
        "log_factor(d, upto / within, under / within,",
        "log_factor(d, upto, under,",
        "tests/test_marginals.py",
    ),
    "corrected sds on a grid of the means": Mutant(
        "links/averages.py",
        "sd**2 + (mean - centre[:, None]) ** 2",
        "(mean - centre[:, None]) ** 2 + 1e-9",
        "tests/test_marginals.py",
    ),
    "second moments of codes for variances": Mutant(
        "links/averages.py", "p @ codes**2 - mean**2", "p @ codes**2", "tests/test_marginals.py"
    ),
    "parts drawn outside of what is known of them": Mutant(
        "inference/equations.py",
        "of.allowed(self.i, at, x, cells, ends) & of",
        "of",
        "tests/test_equations.py",
    ),
    "events at the end of a piece in the next": Mutant(
        "completion/analysis/survival.py",
        "np.searchsorted(self.cuts, np.abs(y))",
        "np.searchsorted(self.cuts, np.abs(y), 'right')",
        TIMES,
    ),
    "versions without a regressor's value": Mutant(
        "completion/analysis/walk.py",
        "out = np.where(unknown, 0.0, -np.inf)",
        "out = np.where(unknown, 0.0, 0.0)",
        BESIDE,
    ),
    "priors that follow what is drawn": Mutant(
        "completion/analysis/walk.py", "seen._replace(prior=self.prior)", "seen", BESIDE
    ),
    "counts seen with the noise of the first column": Mutant(
        "completion/analysis/walk.py",
        "link.augment(x, eta, float(noise[k])",
        "link.augment(x, eta, float(noise[0])",
        "tests/test_analysis_chains.py",
    ),
    "a prior that counts twice": Mutant(
        "completion/analysis/families.py",
        " - 0.5 * b @ prior @ b",
        " - b @ prior @ b",
        "tests/test_analysis_priors.py",
    ),
    "slopes of which nothing is seen near 0": Mutant(
        "completion/analysis/families.py",
        "prior = prior / WIDE_LINEAR**2\n        Q",
        "prior = prior / WIDE_LINEAR\n        Q",
        "tests/test_analysis_priors.py",
    ),
    "scales of intercepts' priors left behind": Mutant(
        "latent/row_effects.py",
        "self.c /= factor**2",
        "self.c /= factor",
        "tests/test_scale_moves.py",
    ),
    "half the squares of intercepts' scales": Mutant(
        "latent/row_effects.py",
        "self.m[at] ** 2 + 2.0 / self.c[at]",
        "self.m[at] ** 2 + 1.0 / self.c[at]",
        "tests/test_scale_moves.py",
    ),
    "a second scale moved by the first one's square": Mutant(
        "latent/bsvd/moves.py", "            u2 *= t * t\n", "", "tests/test_scale_moves.py"
    ),
    "covariances of one degree of freedom less": Mutant(
        "latent/row_laws.py",
        "rng.chisquare(degrees - np.arange(S))",
        "rng.chisquare(degrees - np.arange(S) - 1.0)",
        "tests/test_row_laws.py",
    ),
    "components around what covariates say without its square": Mutant(
        "latent/bsvd/moves.py",
        "linear**2 / spread - n_rows * m * m",
        "linear**2 / spread",
        "tests/test_side_information.py",
    ),
    "precisions of coefficients without their prior's half": Mutant(
        "latent/bsvd/prior_means.py",
        "rng.gamma(0.5 + 0.5 * n) / (rate + 0.5 * squares)",
        "rng.gamma(0.5 * n) / (rate + 0.5 * squares)",
        "tests/test_side_information.py",
    ),
    "new columns as wide as the root of a component": Mutant(
        "latent/bsvd/new_units.py",
        "of_columns = np.concatenate([J / draw.s**2, prior[0]])",
        "of_columns = np.concatenate([J / draw.s, prior[0]])",
        "tests/test_side_information.py",
    ),
    "a mean of intercepts without its prior": Mutant(
        "latent/bsvd/effects.py",
        "precision = state.tau[0] * g.size + prior",
        "precision = state.tau[0] * g.size",
        "tests/test_effects.py",
    ),
    "a step between both sides without the mean's prior": Mutant(
        "latent/bsvd/effects.py",
        "precision = state.tau[2] * of_rows.size + prior\n",
        "precision = state.tau[2] * of_rows.size\n",
        "tests/test_effects.py",
    ),
    "a variation as if its logarithm were flat": Mutant(
        "latent/bsvd/row_noise.py",
        "return log_variation + log_likelihood",
        "return log_likelihood",
        "tests/test_row_noise.py",
    ),
    "a noise variance with the density of its logarithm": Mutant(
        "latent/bsvd/row_noise.py",
        "prior = -config.noise_shape * log_noise",
        "prior = -(config.noise_shape + 1.0) * log_noise",
        "tests/test_row_noise.py",
    ),
    "places of components by the variance": Mutant(
        "latent/mixture/sampler.py",
        "rng.standard_normal((H, S))) / np.sqrt(",
        "rng.standard_normal((H, S))) / (",
        "tests/test_mixture.py",
    ),
    "scatter about the rows' mean alone": Mutant(
        "latent/mixture/sampler.py",
        "x.T @ x - (u0 + n[h]) * np.outer(m[h], m[h])",
        "x.T @ x - n[h] * np.outer(m[h], m[h])",
        "tests/test_mixture.py",
    ),
    "covariances of a prior of one degree": Mutant(
        "latent/mixture/sampler.py",
        "nu0 * config.component_variance * np.eye(S)",
        "config.component_variance * np.eye(S)",
        "tests/test_mixture.py",
    ),
    "degrees of freedom in the other order": Mutant(
        "latent/mixture/sampler.py",
        "rng.chisquare(nu[:, None] - at)",
        "rng.chisquare(nu[:, None] - at[::-1])",
        "tests/test_mixture.py",
    ),
    "a concentration of one stick more": Mutant(
        "latent/mixture/sampler.py",
        "config.alpha_shape + state.sticks.size",
        "config.alpha_shape + state.sticks.size + 1",
        "tests/test_mixture.py",
    ),
    "noise by cells that are missing": Mutant(
        "latent/mixture/sampler.py",
        "config.noise_shape + 0.5 * count[s]",
        "config.noise_shape + 0.5 * len(y)",
        "tests/test_mixture.py",
    ),
    "utilities without their noise": Mutant(
        "latent/mixture/sampler.py",
        "noise * np.eye(s)",
        "0.0 * noise * np.eye(s)",
        "tests/test_mixture.py",
    ),
    "sticks that are shares": Mutant(
        "latent/mixture/sampler.py",
        "np.clip(pi[:-1] / left,",
        "np.clip(pi[:-1],",
        "tests/test_mixture.py",
    ),
    "odds of features by a row too many": Mutant(
        "latent/glfm/sampler.py",
        "without = state.counts, len(y) + 1 - state.counts",
        "without = state.counts, len(y) - state.counts + 2",
        "tests/statistical/test_shared_odds.py",
    ),
    "missing cells with the variance for their sd": Mutant(
        "latent/glfm/sampler.py",
        "np.sqrt(noise[s]) * rng.standard_normal(s.size)",
        "noise[s] * rng.standard_normal(s.size)",
        "tests/test_linear_part.py",
    ),
    "rows of one degree of freedom less": Mutant(
        "latent/iqgme/experts.py",
        "df = self.nu + 1.0 - self.P\n",
        "df = self.nu - self.P\n",
        "tests/test_iqgme_laws.py",
    ),
    "few cells hidden often of short chains": Mutant(
        "inference/hiding.py",
        "FEWER if short or (problem.groups",
        "FEWER if (problem.groups",
        STACKED,
    ),
    "many draws of trees beside short chains": Mutant(
        "inference/hidden_cells.py",
        "rows.size == problem.n_rows and not short else 1",
        "rows.size == problem.n_rows else 1",
        STACKED,
    ),
    "a quick run that searches leaves": Mutant(
        "latent/forest/model.py",
        "visited=0.25, least=USUAL, linear",
        "visited=0.25, linear",
        STACKED,
    ),
    "a quick run that searches lines": Mutant(
        "latent/forest/model.py",
        ", least=USUAL, linear=\"never\")",
        ", least=USUAL)",
        STACKED,
    ),
    "an error in another unit than the sd": Mutant(
        "inference/chain_means.py",
        "np.ldexp(self.whole, -places)",
        "np.ldexp(self.whole, places)",
        STACKED,
    ),
    "codes of the file called guessed": Mutant(
        "guess/rules.py",
        "guessed & ~clear & ~missing_by_file(whole)",
        "guessed & ~clear",
        "tests/test_guess_surveys.py",
    ),
    "gaps that are told with the precision for its root": Mutant(
        "latent/iqgme/gibbs.py", "np.sqrt(block.noise)", "block.noise", "tests/test_iqgme_laws.py"
    ),
    "precisions of several utilities by one": Mutant(
        "latent/iqgme/gibbs.py",
        "rng.gamma(prior.a0 + 0.5 * len(w) * K",
        "rng.gamma(prior.a0 + 0.5 * len(w)",
        "tests/test_iqgme_laws.py",
    ),
    "gaps as sure as the mean of weights": Mutant(
        "latent/iqgme/gates.py",
        "own = own + placed.missing.traces(block, q.Sw[:, :P, :P])[:, :, None]",
        "own = own + 0.0",
        "tests/test_iqgme_laws.py",
    ),
    "new rows without their factor": Mutant(
        "latent/cnpf/prediction.py",
        "shared.w = shared.w * draw.tau",
        "pass",
        "tests/cnpf/test_cnpf_new_rows.py",
    ),
    "rates of topics for rows of size 1": Mutant(
        "latent/cnpf/prediction.py",
        "* draw.size[row]\n    return out",
        "\n    return out",
        "tests/cnpf/test_cnpf_new_rows.py",
    ),
    "restarts with equal weights in perplexity": Mutant(
        "latent/cnpf/calibration.py",
        "p = np.average(shares, axis=0, weights=self.weights)",
        "p = np.average(shares, axis=0)",
        "tests/cnpf/test_cnpf_new_rows.py",
    ),
    "an excess without its prior": Mutant(
        "latent/cnpf/excess.py",
        "excess.sum() - weight @",
        "- weight @",
        "tests/cnpf/test_cnpf_excess.py",
    ),
    "logits as wide as their variance": Mutant(
        "latent/clgp/laws.py",
        "expit(mean + sd * nodes)",
        "expit(mean + var * nodes)",
        "tests/clgp/test_clgp_levels.py",
    ),
    "rates that vary by chance": Mutant(
        "links/probit_normal.py",
        "2.0 * np.pi * np.exp(z * z)",
        "2.0 * np.pi * np.exp(0.5 * z * z)",
        EXTRA,
    ),
    "squares that follow as lengths do": Mutant(
        "links/categorical.py", "*= factor * factor", "*= factor", ORDINAL
    ),
    "thresholds moved as if of variance 1": Mutant(
        "links/ordinal.py",
        "float(free @ free) / self.config.threshold_variance, float(free.size)",
        "float(free @ free), float(free.size)",
        ORDINAL,
    ),
    "intervals of features at another mean": Mutant(
        "classification/evidence.py",
        "mean * (1.0 + precision) /",
        "mean * precision /",
        "tests/test_intervals.py",
    ),
    "ways of tasks weighed by labels that they know": Mutant(
        "classification/pooling.py",
        "np.where(fold == i, np.nan, code)",
        "code",
        "tests/test_pooling.py",
    ),
    "weights by logarithms of their mean": Mutant(
        "classification/stacking.py",
        "np.exp(digamma(a) - digamma(a.sum()))\n        a =",
        "a / a.sum()\n        a =",
        "tests/test_pooling.py",
    ),
    "areas above 1": Mutant(
        "classification/scores.py",
        "n_it * (n_it + 1) / 2",
        "n_it * (n_it - 1) / 2",
        "tests/test_classification_scores.py",
    ),
    "noise of a ridge regression as if it had no coefficients": Mutant(
        "classification/bayesian_ridge.py",
        "(y.size - used + 2.0 * VAGUE)",
        "(y.size + 2.0 * VAGUE)",
        "tests/test_classification_scores.py",
    ),
    "levels hidden three times as unevenly": Mutant(
        "evaluation/masks.py", "PULL_SD / STRENGTH * rng", "PULL_SD * rng", MASKS
    ),
    "evidence of rows that are not free": Mutant(
        "exploration/evidence.py",
        "max(len(part.p) - 1 - len(given), 0)",
        "max(len(part.p), 0)",
        "tests/test_exploration_scales.py",
    ),
    "features that nearly all rows have as evidence": Mutant(
        "exploration/evidence.py",
        "np.minimum(rare, 1 - rare)",
        "rare",
        "tests/test_exploration_scales.py",
    ),
    "turned features with the rows that lack them": Mutant(
        "exploration/stability.py",
        "total[:, a] += z if matches.phi[i, k] > 0 else 1 - z",
        "total[:, a] += z",
        "tests/test_exploration_scales.py",
    ),
    "features found again where they were found": Mutant(
        "exploration/stability.py",
        "elsewhere = self.chain != self.own",
        "elsewhere = self.chain == self.own",
        "tests/test_exploration_scales.py",
    ),
    "values at the end of a bin in the next": Mutant(
        "exploration/scales.py",
        'np.searchsorted(self.at, x, side="left")',
        'np.searchsorted(self.at, x, side="right")',
        "tests/test_exploration_scales.py",
    ),
    "scores about the mean of units without cells": Mutant(
        "exploration/goes_with.py",
        "score = score - weight @ score",
        "score = score - score.mean()",
        GOES_WITH,
    ),
    "covariates divided by their variance": Mutant(
        "exploration/goes_with.py",
        "X /= np.sqrt(np.maximum(weight @ X**2",
        "X /= (np.maximum(weight @ X**2",
        GOES_WITH,
    ),
    "cells left out by gain, not by gain for cost": Mutant(
        "acquisition/greedy.py",
        "if state.gain[best] / cost[best] < least:",
        "if state.gain[best] < least:",
        "tests/test_acquisition.py",
    ),
    "gaps that go together in rows, not in the population": Mutant(
        "exploration/missingness.py", "count @ missing / total, (missing.T * count)",
        "count @ missing / total, (missing.T)", "tests/test_weights.py"
    ),
    "cells rounded onto the atom": Mutant(
        "latent/forest/columns.py",
        "np.nextafter(y[y == kinds.atom[d]], np.float32(np.inf))",
        "kinds.atom[d]",
        LEAVES,
    ),
    "a few completed tables pooled as too few": Mutant(
        "completion/pooling.py", "(1 + 1 / m) * q.var", "(1 + 1 / (m - 1)) * q.var", RUBIN
    ),
    "degrees of freedom by the share, not its square": Mutant(
        "completion/pooling.py", "share**2 / (m - 1)", "share / (m - 1)", RUBIN
    ),
    "counts that vary as their rates do": Mutant(
        "links/poisson.py",
        "part.mean**2 * (1.0 + 1.0 / part.shape) + part.mean) / total",
        "part.mean**2 * (1.0 + 1.0 / part.shape)) / total",
        COUNT_CELLS,
    ),
    "quantiles of counts that are never 0": Mutant(
        "links/poisson.py", "np.full(mean.size, -1.0)", "np.zeros(mean.size)", COUNT_CELLS
    ),
    "steps of many counts twice as wide": Mutant(
        "links/count.py", "(1.0 / self.scale) ** 2 / 12.0", "(1.0 / self.scale) ** 2 / 6.0", MARGINS
    ),
    "the largest count has no room": Mutant(
        "links/count.py", "lower, upper + 1.0)\n        center", "lower, upper)\n        center",
        PREDICTIVE,
    ),
    "narrow laws that fall between common nodes": Mutant(
        "links/expectation.py", "SPAN = 1000.0", "SPAN = 1e9", MARGINS
    ),
    "scores of two levels as if eta were known": Mutant(
        "links/categorical.py",
        "log_ndtr(sign * part.mean[:, 0] / np.sqrt(1.0 + part.variances[:, 0]))",
        "log_ndtr(sign * part.mean[:, 0])",
        ORDINAL,
    ),
    "tries of thresholds judged from the first": Mutant(
        "links/ordinal.py", "                current = target", "                pass", ORDINAL
    ),
    "the curve of missing cells takes w too seriously": Mutant(
        "links/selection.py", "rng.gamma(0.5 * n)", "rng.gamma(0.5 * n - 0.5)",
        "tests/test_selection.py",
    ),
    "cells lost at random beside none that are seen": Mutant(
        "links/selection.py", "ALWAYS_SEEN + n)", "ALWAYS_SEEN)", "tests/test_selection.py"
    ),
    "what chains say, noted a draw early": Mutant(
        "links/averages.py",
        "            self.totals += moments[:, start:end].sum(axis=1)\n"
        "            self.marks.append(self.totals[:2].T.copy())",
        "            self.marks.append(self.totals[:2].T.copy())\n"
        "            self.totals += moments[:, start:end].sum(axis=1)",
        PRECISION,
    ),
    "means that corrections take out of the bounds": Mutant(
        "links/averages.py", "np.clip(moved, *self.link.value(y[[0, -1]]))", "moved", MARGINALS
    ),
    "chains that place new rows by the same numbers": Mutant(
        "inference/folding.py", "Streams(seed, first + index)", "Streams(seed, first)", SLIPS
    ),
    "cells hidden each time under the same draws": Mutant(
        "inference/hidden_cells.py", "chain[time % 2 :: 2] or chain", "chain[::2] or chain",
        RECALIBRATION,
    ),
    "parts that stay tell the date that is hidden": Mutant(
        "inference/hidden_cells.py", "        xs[d][np.isnan(xs[date])] = np.nan\n", "",
        "tests/test_calendar.py",
    ),
    "columns of few cells keep to equal weights": Mutant(
        "inference/stacking.py", "np.tile(whole, (", "np.tile(equal, (",
        "tests/test_stacking_weights.py",
    ),
    "scales of components move without the rows' covariates": Mutant(
        "latent/bsvd/moves.py", "(moved - 1) * log_t", "(n_rows - 1) * log_t", SLIPS
    ),
    "scales of factors move without the columns' covariates": Mutant(
        "latent/bsvd/moves.py", "(moved - n_columns - of_columns.p) * log_t",
        "(moved - n_columns) * log_t", SLIPS
    ),
    "angles of components twice as large": Mutant(
        "latent/bsvd/rotations.py", "t = 0.5 * rng.vonmises", "t = rng.vonmises",
        "tests/test_births.py",
    ),
    "brackets that grow too far on one side": Mutant(
        "latent/bsvd/effects.py", "up = MOST_STEPS - 1 - down", "up = MOST_STEPS",
        "tests/test_effects.py",
    ),
    "new columns by how many there are, not the fit's": Mutant(
        "latent/bsvd/new_units.py", "np.concatenate([J / draw.s**2,",
        "np.concatenate([n_columns / draw.s**2,", "tests/test_side_information.py"
    ),
    "variances of components as if there were a column less": Mutant(
        "latent/glfm/linear.py", "standard_gamma((1 + S) / 2, L)", "standard_gamma(S / 2, L)",
        "tests/test_linear_part.py",
    ),
    "sticks of resumed chains by what is left after the break": Mutant(
        "latent/mixture/sampler.py", "np.cumsum(pi[::-1])[::-1][:-1]",
        "np.cumsum(pi[::-1])[::-1][1:]", RESUMING
    ),
    "alpha by as many sticks as experts": Mutant(
        "latent/iqgme/gibbs.py", "prior.t1 + H - 1)", "prior.t1 + H)", EXPERTS
    ),
    "experts' scales as if they had one feature": Mutant(
        "latent/iqgme/gibbs.py", "prior.c0 + 0.5 * P * prior.nu0", "prior.c0 + 0.5 * prior.nu0",
        EXPERTS,
    ),
    "gaps scattered by squares of what is told": Mutant(
        "latent/iqgme/gibbs.py", "* np.sqrt(block.noise)", "* block.noise",
        "tests/test_iqgme_gibbs.py",
    ),
    "experts that join leave none behind": Mutant(
        "latent/iqgme/merges.py", "evidence(both) + evidence(none) - each",
        "evidence(both) - each", "tests/test_iqgme_moves.py"
    ),
    "weights of latent numbers damped by variances": Mutant(
        "latent/clgp/weights.py", "(1.0 - step) * np.exp(-2.0 * shared.log_c)",
        "(1.0 - step) * np.exp(2.0 * shared.log_c)", "tests/clgp/test_clgp_bound.py"
    ),
    "locations that step without their prior": Mutant(
        "latent/cnpf/locations.py", "gradient - locations / sl2", "gradient + 0.0 * locations",
        "tests/cnpf/test_cnpf_bound.py",
    ),
    "atoms in whatever layout they came to": Mutant(
        "latent/iqgme/usage.py", "np.ascontiguousarray(self.sigma)", "np.asarray(self.sigma)",
        "tests/test_iqgme_tasks.py::test_a_start_that_was_saved_goes_on_to_the_same_bits",
    ),
    "values of a fit do not tell of new rows": Mutant(
        "inference/lone_cells.py", "without[:n] &= by.without", "without[:n] |= by.without", LONE
    ),
    "cells are corrected as those of groups with values are, and the other way round": Mutant(
        "inference/lone_cells.py", "parts = replace(by, lone=None), by.lone",
        "parts = by.lone, replace(by, lone=None)", LONE,
    ),
    "half of the groups are never hidden": Mutant(
        "inference/hiding.py", "/ GROUPS) == time", "/ HIDDEN) == time", LONE
    ),
    "each cell of a hidden group counts": Mutant(
        "inference/hiding.py", "np.where(n_cells > 0, n_groups / np",
        "np.where(n_cells > 0, n_cells / np", LONE,
    ),
    "weights of cells of groups without values are drawn to equal ones": Mutant(
        "inference/hidden_cells.py", "counts, near.weights", "counts, None", LONE
    ),
    "few independent cells are worth more than the prior weights": Mutant(
        "inference/stacking.py", "SHRINK / counts[d] * prior[d]", "SHRINK * counts[d] * prior[d]",
        LONE,
    ),
    "rows of a series at the time before": Mutant(
        "latent/row_laws.py", "np.cumsum(first) - 1", "np.maximum(np.cumsum(first) - 2, 0)",
        ROW_EFFECTS,
    ),
}


def first_failure(mutant: Mutant, folder: Path) -> str | None:
    """Return the test that fails first with a mutant planted, None when none does."""
    path = folder / "glfm_cli" / mutant.file
    source = path.read_text(encoding="utf-8")
    if source.count(mutant.right) != 1:
        raise SystemExit(f"{mutant.file} has {mutant.right!r} {source.count(mutant.right)} times")
    path.write_text(source.replace(mutant.right, mutant.wrong), encoding="utf-8")
    try:
        tests = [
            test for test in mutant.tests.split() if (folder / test.partition("::")[0]).exists()
        ]
        command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider"]
        environment = {**os.environ, "PYTHONPATH": str(folder)}
        done = subprocess.run(
            [*command, *tests], cwd=folder, env=environment, capture_output=True, text=True
        )
    finally:
        path.write_text(source, encoding="utf-8")
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, flags=re.MULTILINE)
    if found is None and done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    return found and found[1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(MUTANTS))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = ["| mutant | killed by |", "| --- | --- |"]
    survived = 0
    print("\n".join(lines))
    with tempfile.TemporaryDirectory(prefix="glfm-mutants-") as name:
        folder = Path(name) / "copy"
        shutil.copytree(REPOSITORY, folder, ignore=LEFT_OUT)
        for title in options.names:
            by = first_failure(MUTANTS[title], folder)
            survived += by is None
            lines.append(f"| {title} | {f'`{by}`' if by else 'SURVIVED'} |")
            print(lines[-1], flush=True)
    if options.out:
        options.out.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main())
