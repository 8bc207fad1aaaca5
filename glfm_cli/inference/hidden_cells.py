"""How far off are forecasts? Observed cells tell, forecast as if they had been missing.

Some rows are taken once more with an eighth of their observed cells hidden, and again, up to four
times in all (of short chains twice, lest this take longer than they do), with other eighths: more
at once would leave rows less complete than they are. Under a few draws of every chain their latent
variables are drawn anew from the cells that are left (folding.py), so that a forecast of a hidden
cell owes nothing to the cell but its part in what all rows share. Of R rows that is about K / R for
K weights a column: where all rows are taken, what they share is drawn anew, too, by a few sweeps of
the chain without the hidden cells (resuming.py). So are trees, always: the few of a draw that have
not seen a cell forecast it worse than all would. Weighting draws that had seen the cell by 1 /
p(cell | draw) would be cheaper, and wrong: in most tables the tails of such weights have no mean
[Vehtari et al. 2024], since few columns let a cell determine its row's features.
Which cells are hidden says hiding.py; those of groups without any value of a column have
corrections of their own (lone_cells.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import Problem
from glfm_cli.inference.corrections import fit_powers, fit_tilts
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.hiding import SEED, TIMES, chosen_cells, times_hidden, worth_of_cells
from glfm_cli.inference.lone_cells import groups_without, lone_columns, of_rows
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.recalibration import KNOTS, LEAST, Recalibration, sd_of
from glfm_cli.inference.resuming import but_of_regrown, regrown, resumed
from glfm_cli.inference.scoring import forecasts, scores_and_forecasts
from glfm_cli.inference.stacking import stacked
from glfm_cli.latent.capabilities import Candidates, HoldsLevels
from glfm_cli.latent.model import LatentModel

SHORT = 6  # draws, below which chains are short, too, for more times
DRAWS = 64  # of all chains and times together, each time at least one of each chain,
OF_CANDIDATES = 3  # or so many, where models are compared by them
FEWEST_DRAWS = 16
# Sweeps that forget a cell in what rows share, and of fewer rows, where it counts more: up to so
# many, so many rows together; draws of each chain after them.
SWEEPS, MOST_SWEEPS, ROW_SWEEPS, OF_RESUMED = 10, 20, 3000, 7
OF_SHORT = 4  # draws of a short chain, after half of the sweeps
OF_REGROWN = 2  # of trees, whose draws take longer than sweeps; one of many rows or short chains

Hidden = dict[int, tuple[Array, Array]]  # by column: places among the rows, true values
Chains = tuple[tuple[Draw, ...], ...]
Folded = dict[int, tuple[Chains, Chains]]  # by time: draws, and those given fewer cells


def recalibrate(
    posterior: Posterior,
    problem: Problem,
    *,
    threads: int = 1,
    folded: Folded | None = None,
    told: Callable[[int, int], None] = lambda sets, of: None,
) -> Posterior:
    """Return the posterior with its forecasts recalibrated by those of observed cells.

    posterior : draws given the cells of `problem`
    problem : the cells; `link_config.recalibrate` False leaves the posterior as it is
    threads : chains that are worked on at the same time; the result does not depend on it
    folded : in-out; what was found of these chains before there were as many, which saves time
    told : hears how many sets of hidden cells are forecast, and of how many

    Returns: the same draws. Columns of numbers and of levels have a correction each; those where
        one value takes most cells have none. O(ROWS DRAWS) times the cost of
        folding in a row, for each chain; where all rows are taken, a few DRAWS sweeps.
    """
    few = posterior.weights is not None or posterior.n_draws < FEWEST_DRAWS
    if few or not problem.link_config.recalibrate:
        return posterior
    short = is_short(max(map(len, posterior.chains)))
    times, lone = times_hidden(problem, short), lone_columns(problem)
    steps, columns = times * (1 + (lone.size > 0)), np.arange(len(problem.links))

    def without(lone: bool) -> list[tuple[Posterior, Hidden]]:
        parts = []
        for time in range(times):
            told(times * lone + time, steps)
            part = without_cells(
                posterior, problem, time, lone=lone, short=short, threads=threads, done=folded
            )
            parts.append(part)
        return parts

    by = _learnt(posterior, problem, without(False))
    if lone.size:
        assert problem.groups is not None
        by = replace(
            by,
            lone=_learnt(posterior, problem, without(True), near=by),
            without=groups_without(problem.groups, problem.seen) & np.isin(columns, lone),
        )
    told(steps, steps)
    return of_rows(replace(posterior, recalibration=by), problem.groups, problem.seen)


def _learnt(
    posterior: Posterior,
    problem: Problem,
    parts: Sequence[tuple[Posterior, Hidden]],
    near: Recalibration | None = None,
) -> Recalibration:
    """Return what forecasts of hidden cells call for.

    near : of lone cells, what those of other cells do; weights are drawn to theirs
    """
    truth = {d: np.concatenate([hidden[d][1] for _, hidden in parts]) for d in parts[0][1]}
    truth = {d: x for d, x in truth.items() if x.size}
    weights, counts = None, worth_of_cells(problem, len(parts), near is not None)
    if isinstance(posterior.model, Candidates):
        each, prior = np.ones(counts.size), None
        if near is not None:
            each, prior = counts, near.weights
        n = len(posterior.model.candidates)
        forecast, weights = stacked_forecasts(parts, truth, n, each, prior)
    else:
        averages = [_averages(part[0], forecasts(*part)) for part in parts]
        forecast = _below(averages, truth)
    n_columns = len(problem.links)
    exponents, tilts = np.ones((n_columns, 2)), np.zeros((n_columns, KNOTS, 4))
    log_sds = np.zeros((n_columns, 2))
    places, sds, rng = {}, {}, np.random.default_rng(SEED)
    for d, x in truth.items():
        if problem.links[d].discrete:
            p = forecast[d] / forecast[d].sum(axis=1, keepdims=True)
            exponents[d] = fit_powers(p, x.astype(np.intp), counts[d])
        else:
            below, within, under, first, second = forecast[d].T
            u, v = below / np.maximum(within, LEAST), under / np.maximum(within, LEAST)
            places[d], sds[d] = v + rng.random(u.size) * (u - v), sd_of(first, second)
    for d, (tilt, ends) in fit_tilts(places, sds, counts).items():
        tilts[d], log_sds[d] = tilt, ends
    return Recalibration(exponents, tilts, log_sds, weights)


def is_short(n_draws: int) -> bool:
    """Return whether a chain of so many draws is short."""
    return n_draws < SHORT


def draws_once(model: LatentModel, n_chains: int) -> int:
    """Return of how many draws of each chain, at most, cells are hidden at a time."""
    least = OF_CANDIDATES if isinstance(model, Candidates) else 1
    return max(DRAWS // TIMES // n_chains, least)


def _averages(posterior: Posterior, sums: Mapping[int, Array]) -> dict[int, Array]:
    """Return forecasts, given their weighted sums over draws."""
    return {d: total / posterior.n_draws for d, total in sums.items()}


def _below(parts: Sequence[Mapping[int, Array]], columns: Collection[int]) -> dict[int, Array]:
    """Return what each part says of the hidden cells of columns, below each other."""
    return {d: np.concatenate([part[d] for part in parts if d in part]) for d in columns}


def stacked_forecasts(
    parts: Sequence[tuple[Posterior, Hidden]],
    truth: Mapping[int, Array],
    n_candidates: int,
    counts: Array,
    prior: Array | None = None,
) -> tuple[dict[int, Array], Array]:
    """Return stacked forecasts of the hidden cells, and the weights (D, M) of the candidates.

    truth : the true values, by column;  counts, prior : those of `stacked`
    """
    first = parts[0][0]
    there = np.isin(np.arange(n_candidates), first.groups)
    scores = {d: np.full((x.size, n_candidates), -np.inf) for d, x in truth.items()}
    averages = {}
    for which in np.flatnonzero(there).tolist():
        logs, means = [], []
        for folded, hidden in parts:
            own = folded.of_candidate(which)
            log_p, sums = scores_and_forecasts(own, hidden, truth)
            logs.append(log_p)
            means.append(_averages(own, sums))
        averages[which] = _below(means, truth)
        for d, column in _below(logs, truth).items():
            scores[d][:, which] = column
    weights = stacked(scores, there, counts, prior)
    pooled = {
        d: sum(weights[d, which] * mean[d] for which, mean in averages.items()) for d in truth
    }
    return pooled, weights


def without_cells(
    posterior: Posterior,
    problem: Problem,
    time: int = 0,
    *,
    lone: bool = False,
    short: bool = False,
    threads: int = 1,
    done: Folded | None = None,
) -> tuple[Posterior, Hidden]:
    """Return draws of some rows given but a part of their observed cells, and the hidden ones.

    Of the columns whose forecasts may be corrected. `time`, below `TIMES`, says which part. Of few
    rows nothing else in the draws has seen those, either. `lone` says whether they are those of
    whole groups, `short` whether chains are; `done` is that of `recalibrate`.
    """
    rows, chosen = chosen_cells(problem, time, lone)
    groups, seed = problem.groups, time + TIMES * lone
    if groups is not None:
        groups = groups.take(rows).as_new()  # what they share has seen the hidden cells
    xs, hidden, model = [], {}, posterior.model
    if isinstance(model, HoldsLevels):
        chosen[:, model.held_columns(posterior.chains[0][0].latent)] = False
    for d, (link, column) in enumerate(zip(problem.links, problem.xs, strict=True)):
        x, at = column[rows], np.flatnonzero(chosen[:, d])
        # What an interval hides is not known, and numbers beside some are not as they would be.
        if column.ndim == 1 and link.correctable(column[~np.isnan(column)]):
            one = at
            if groups is not None and d in problem.group_level:
                one = at[np.sort(np.unique(groups.code[at], return_index=True)[1])]
            hidden[d] = one, x[one]
        x[at] = np.nan
        xs.append(x)
    for d, date in problem.beside:  # which says a part of the date that is hidden
        xs[d][np.isnan(xs[date])] = np.nan
        hidden.pop(d, None)
    for columns in problem.equations:
        gone = np.sum([np.isnan(xs[d] if xs[d].ndim == 1 else xs[d][:, 0]) for d in columns], 0)
        for d in hidden.keys() & set(columns):  # one alone would follow: it is no missing cell
            at, x = hidden[d]
            hidden[d] = at[gone[at] > 1], x[gone[at] > 1]
    chains = tuple(chain[time % 2 :: 2] or chain for chain in posterior.chains)
    each = draws_once(posterior.model, len(chains))
    thinned = replace(posterior, chains=chains).thinned(each * len(chains))
    again = replace(problem, xs=tuple(xs), groups=groups, of_fit=rows)
    sweeps = int(np.clip(ROW_SWEEPS // max(problem.n_rows, 1), SWEEPS, MOST_SWEEPS))
    before = () if done is None else _known(done.get(seed, ((), ())), thinned.chains)
    new = replace(thinned, chains=thinned.chains[len(before) :])
    folded = but_of_regrown(new, problem)
    how = {"seed": seed, "threads": threads, "first": len(before)}
    length = {"sweeps": sweeps, "draws": OF_RESUMED}
    if short:
        length = {"sweeps": sweeps // 2, "draws": OF_SHORT}
    if groups is None and rows.size == problem.n_rows:
        folded = resumed(folded, again, **length, **how)
    else:
        folded = fold_in(folded, again, **how)
    whole = tuple(_with(x, rows, part) for x, part in zip(problem.xs, xs, strict=True))
    length["draws"] = OF_REGROWN if rows.size == problem.n_rows and not short else 1
    folded = regrown(folded, new, replace(problem, xs=whole), rows, **length, **how)
    folded = replace(folded, chains=before + folded.chains)
    if done is not None:
        done[seed] = thinned.chains, folded.chains
    return folded, hidden


def _known(found: tuple[Chains, Chains], chains: Chains) -> Chains:
    """Return what was found of the first of some chains, where they are the same draws."""
    same = [
        len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))
        for one, other in zip(found[0], chains, strict=False)
    ]
    return found[1] if all(same) and len(same) == len(found[0]) else ()


def _with(x: Array, rows: Array, part: Array) -> Array:
    """Return a column with other cells in some rows."""
    x = x.copy()
    x[rows] = part
    return x
