"""What is known of the cells of columns that depend on columns, by joint draws that obey this."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

import glfm_cli.inference.chains as chains
from glfm_cli.arrays import Array
from glfm_cli.encoding import (
    Data,
    Relations,
    bounds_of,
    broken_rows,
    first_of_group,
    levels_of,
    settle,
)
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.equations import Equations
from glfm_cli.inference.joint_draws import JointDraws
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.predictive import Marginal, predict
from glfm_cli.latent.model import Problem

SAMPLES = 200
TRIES = 20  # of rows that break an equation


class TableDraws:
    """Joint draws of all missing cells of a table that obey what the types file says of them.

    needed : the columns whose draws are to be as forecast; all if left out
    """

    def __init__(
        self, posterior: Posterior, data: Data, needed: Collection[int] | None = None
    ) -> None:
        self.data = data
        relations = Relations.of(data.columns)
        self.equations = bool(relations.equations)
        equations = Equations(data.columns, posterior.links)
        given = bounds_of(data), relations.less, equations, needed
        self.joint = JointDraws(posterior, data.missing, *given)
        self.levels = _laws_of_levels(posterior, data)

    @one_blas_thread()
    def draw(self, rng: np.random.Generator, draw: Draw | None = None) -> dict[int, Array]:
        """Return one value or level code a cell, NaN where it is to have none.

        Rows in which cells that follow from others are no numbers of their columns, as a share
        below 0, are drawn anew, whole: so the others are drawn given that they are.
        """
        choose = self.joint.posterior.choose
        draw = draw or choose(rng)
        cells = self._once(rng, draw)
        for number in range(TRIES if self.equations else 0):
            if not (wrong := broken_rows(self.data, cells)).any():
                break
            # A draw under which a row can hardly obey is as improbable itself.
            again = self._once(rng, draw if number < TRIES // 2 else choose(rng), wrong)
            for d, rows in self.data.missing.items():
                if not self.data.columns[d].column.group_level:  # whose value other rows have, too
                    cells[d] = np.where(wrong[rows], again[d], cells[d])
        return cells

    def _once(
        self, rng: np.random.Generator, draw: Draw, rows: Array | None = None
    ) -> dict[int, Array]:
        cells = self.joint.draw(rng, draw, rows)
        for d, (at, p) in self.levels.items():
            codes = cells[d][at].astype(np.intp)
            again = p[np.arange(at.size), codes] == 0.0
            u = rng.random((int(again.sum()), 1))
            cells[d][at[again]] = np.sum(np.cumsum(p[again], axis=1) < u, axis=1)
        return settle(self.data, cells)


def _laws_of_levels(posterior: Posterior, data: Data) -> dict[int, tuple[Array, Array]]:
    """Return by column the cells (m,) that may not have all levels, and their law (m, R).

    It is that of each cell by itself, from which a level that may not be is drawn again.
    """
    found = {}
    for d, possible in levels_of(data).items():
        at = np.flatnonzero(~possible.all(axis=1))
        marginal = predict(posterior, {d: data.missing[d][at]})[d].among(possible[at], ())
        assert marginal.probabilities is not None
        found[d] = at, marginal.probabilities
    return found


def group_marginals(data: Data, marginals: Mapping[int, Marginal]) -> dict[int, Marginal]:
    """Return the marginals of columns of groups: certain beside a known cell, else one a group."""
    found = {}
    for d, like in first_of_group(data).items():
        x = data.columns[d].x[data.columns[d].requested]
        known, there = ~np.isnan(x), marginals[d].take(like)
        p = there.probabilities
        if p is not None:
            p = np.where(known[:, None], np.arange(p.shape[1]) == x[:, None], p)
        ordered = known & ~np.isnan(there.mean)
        found[d] = Marginal(
            marginals[d].rows,
            np.where(ordered, x, there.mean),
            np.where(ordered, 0.0, there.sd),
            np.where(ordered[:, None], x[:, None], there.quantiles),
            p,
            np.where(known, 0.0, there.relative_error),
        )
    return found


def settled_marginals(
    posterior: Posterior, data: Data, marginals: Mapping[int, Marginal], at: Sequence[float]
) -> dict[int, Marginal]:
    """Return the marginals of the columns of formulas, from draws in which these hold.

    data : with what follows from known cells
    marginals : of all missing cells, each column by itself
    at : probabilities of the first quantiles
    """
    of = _that_follow(data)
    if not of:
        return {}
    rng = np.random.default_rng(0)
    table = TableDraws(posterior, data, _that_tell(data))
    of_chain = {id(draw): c for c, chain in enumerate(posterior.chains) for draw in chain}
    draws, chains = [], np.empty(SAMPLES, dtype=np.intp)
    for number in range(SAMPLES):
        draw = posterior.choose(rng)
        chains[number] = of_chain[id(draw)]
        cells = table.draw(rng, draw)
        draws.append({d: cells[d] for d in of})
    found = {}
    for d in of:
        x = np.array([draw[d] for draw in draws])
        quantiles = marginals[d].quantiles.copy()
        with np.errstate(invalid="ignore"):
            # By ranks over n + 1, between which another draw lies with the probability they say.
            found_at = np.nanquantile(x, np.array(at), axis=0, method="weibull")
            quantiles[:, : len(at)] = found_at.T
            mean, sd = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
        # Of chains with few of the draws little is known: what they say apart is not all.
        apart = _relative_error(x, sd, chains, np.array(posterior.groups))
        error = np.maximum(apart, np.sqrt(marginals[d].relative_error ** 2 + 1.0 / SAMPLES))
        found[d] = replace(
            marginals[d], mean=mean, sd=sd, quantiles=quantiles, relative_error=error
        )
    return found


def _that_follow(data: Data) -> list[int]:
    """Return the columns of formulas that have missing cells."""
    return [d for d in sorted(Relations.of(data.columns).numbers) if d in data.missing]


def _that_tell(data: Data) -> frozenset[int]:
    """Return the columns that draws of columns of formulas rest on: these, those of conditions."""
    relations = Relations.of(data.columns)
    return relations.numbers.union(*((one.d, *one.of) for one in relations.conditions))


def settling_seconds(problem: Problem, data: Data, seed: int) -> float:
    """Return how long `settled_marginals` takes, by a draw of a first state, measured now."""
    if not _that_follow(data):
        return 0.0
    chain, rng = chains.start(problem, seed, 0), np.random.default_rng(0)
    chain.sweep(adapt=True)
    draw = chain.keep()
    posterior = Posterior(problem.model, problem.links, spans_of(problem.links), ((draw,),))
    table = TableDraws(posterior, data, _that_tell(data))
    table.draw(rng, draw)  # which finds what others share
    began = time.monotonic()
    table.draw(rng, draw)
    return SAMPLES * (time.monotonic() - began)


def _relative_error(x: Array, sd: Array, chains: Array, groups: Array) -> Array:
    """Return the standard error (n,) of the mean of draws x (T, n), in units of their sd.

    By how far the means m_c of chains are apart, which is both chance and where chains are. With
    T_c of the draws from chain c, the variance is the sum over each group of C chains of
    (T_c / T)^2 (m_c - mean of the group)^2 C / (C - 1).

    chains : (T,) the chain of each draw;  groups : of each chain, those of one model
    """
    drawn = np.unique(chains)
    seen = ~np.isnan(x)
    counts = np.array([seen[chains == c].sum(axis=0) for c in drawn], dtype=np.float64)
    sums = np.array([np.nansum(x[chains == c], axis=0) for c in drawn])
    total = np.maximum(counts.sum(axis=0), 1.0)
    var = np.zeros(x.shape[1])
    for group in np.unique(groups[drawn]):
        own = groups[drawn] == group
        n, size = counts[own], max(int(own.sum()), 1)
        mean = sums[own] / np.maximum(n, 1.0)
        centre = sums[own].sum(axis=0) / np.maximum(n.sum(axis=0), 1.0)
        away = np.where(n > 0.0, n / total * (mean - centre), 0.0)
        var += (away**2).sum(axis=0) * size / max(size - 1, 1)
    return np.sqrt(var) / np.where(sd > 0.0, sd, 1.0)
