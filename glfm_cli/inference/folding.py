"""New rows under the draws of a fit: their latent variables drawn, everything shared held fixed.

For each kept draw of the fit a few inner sweeps alternate between the model (`fold_in`) and the
links (pseudo-observations of the observed cells), as the driver of sampling does for all rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import empty_cells
from glfm_cli.inference.executors import run_jobs
from glfm_cli.inference.lone_cells import of_rows
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.row_scores import DrawScores, RowScores
from glfm_cli.latent.capabilities import Candidates, HasReach, JoinsRows, StartsNear
from glfm_cli.latent.model import DENSE, Cells, Problem, Refill, Values, gaussian, sees_values
from glfm_cli.links.told import told
from glfm_cli.streams import FOLD, Streams, seed_of_batch

SWEEPS = 5  # inner ones, for each draw, where neither the model nor anybody says
BATCH = 8192  # rows that are folded in together, from random numbers of their own


def fold_in(
    posterior: Posterior,
    problem: Problem,
    *,
    seed: int,
    threads: int = 1,
    sweeps: int | None = None,
    first: int = 0,
) -> Posterior:
    """Return the posterior of new rows under every draw of a fit.

    posterior : of the fit; only what its rows share is used, and how many had each feature
    problem : the fit's model, configuration and links, and the columns of the new rows
    seed : the result depends on it, and not on `threads`
    threads : chains that are worked on at the same time
    sweeps : inner sweeps for each draw, each of which leaves the rows' exact conditional
        invariant; None for as many as the model needs
    first : number of the first chain, each of which has random numbers of its own

    Returns: as many chains and draws. O(n S) memory for each thread, n K bits for each draw.
    Raises KeyboardInterrupt: at Ctrl-C.
    """
    model, together = problem.model, problem.layout != DENSE or problem.groups is not None
    if problem.n_rows <= BATCH or together or not isinstance(model, JoinsRows):
        return _fold_batch(posterior, problem, seed, threads, sweeps, first)
    parts = []
    for number, start in enumerate(range(0, problem.n_rows, BATCH)):
        own = problem.take(np.arange(start, min(start + BATCH, problem.n_rows)))
        of_batch = seed_of_batch(seed, number)
        parts.append(_fold_batch(posterior, own, of_batch, threads, sweeps, first))
    chains = tuple(
        tuple(
            replace(same[0], latent=model.join_rows([draw.latent for draw in same]))
            for same in zip(*chain, strict=True)
        )
        for chain in zip(*(part.chains for part in parts), strict=True)
    )
    return replace(posterior, chains=chains)


def that_reach(posterior: Posterior, problem: Problem) -> Posterior:
    """Return the posterior of a fit for new rows: of several models those that know such rows.

    Of the same draws, where no model or every model does.
    """
    model, left = posterior.model, []
    if not isinstance(model, Candidates):
        return posterior
    for index in range(len(posterior.chains)):
        ours, own = _of_chain(posterior, problem, index)
        draw = ours.chains[index][0].latent
        if not isinstance(own.model, HasReach) or own.model.reaches(draw, own):
            left.append(posterior.chains[index])
    return replace(posterior, chains=tuple(left or posterior.chains))


def _fold_batch(
    posterior: Posterior,
    problem: Problem,
    seed: int,
    threads: int,
    sweeps: int | None,
    first: int,
) -> Posterior:
    stop = threading.Event()
    parts = [_of_chain(posterior, problem, index) for index in range(len(posterior.chains))]
    values = [sees_values(own.model) for _, own in parts]
    starts = [] if all(values) else _starting_points(problem)
    scores = cache(lambda: RowScores(problem, starts))  # most models ask for none

    def job(index: int) -> Callable[[], tuple[Draw, ...]]:
        ours, own = parts[index]
        usual = own.model.inner_sweeps if isinstance(own.model, StartsNear) else SWEEPS
        n_sweeps = usual if sweeps is None else sweeps
        streams = Streams(seed, first + index)
        if values[index]:
            return lambda: _fold_values(ours, own, index, streams, n_sweeps, stop)
        return lambda: _fold_chain(ours, own, index, starts, scores, streams, n_sweeps, stop)

    jobs = [job(index) for index in range(len(posterior.chains))]
    chains = run_jobs(jobs, threads=threads, on_interrupt=stop.set)
    if stop.is_set():
        raise KeyboardInterrupt
    model = posterior.model
    if isinstance(model, Candidates):
        pairs = zip(posterior.groups, chains, strict=True)
        chains = [
            tuple(replace(draw, latent=model.mark(draw.latent, which)) for draw in chain)
            for which, chain in pairs
        ]
    return of_rows(replace(posterior, chains=tuple(chains)), problem.groups, problem.seen)


def _of_chain(posterior: Posterior, problem: Problem, index: int) -> tuple[Posterior, Problem]:
    """Return posterior and problem as the model of one chain has them."""
    model = problem.model
    if not isinstance(model, Candidates):
        return posterior, problem
    own = model.problem_of(problem, posterior.groups[index])
    chains = list(posterior.chains)
    chains[index] = tuple(replace(one, latent=model.own(one.latent)) for one in chains[index])
    return replace(posterior, model=own.model, chains=tuple(chains)), own


def _starting_points(problem: Problem) -> list[Array]:
    """Return per column the y (n, S_d) that known links keep; 0 at missing cells."""
    return [link.start(x)[1] for link, x in zip(problem.links, problem.xs, strict=True)]


def _fold_values(
    posterior: Posterior,
    problem: Problem,
    index: int,
    streams: Streams,
    sweeps: int,
    stop: threading.Event,
) -> tuple[Draw, ...]:
    model = problem.model
    assert sees_values(model)
    drawn = []
    for number, draw in enumerate(posterior.chains[index]):
        if stop.is_set():
            break
        values = Values(problem, draw.params)
        latent = model.fold_in(draw.latent, values, sweeps, streams.get(FOLD, number))
        drawn.append(replace(draw, latent=latent))
    return tuple(drawn)


def _fold_chain(
    posterior: Posterior,
    problem: Problem,
    index: int,
    starts: list[Array],
    scores: Callable[[], RowScores],
    streams: Streams,
    sweeps: int,
    stop: threading.Event,
) -> tuple[Draw, ...]:
    model = gaussian(posterior.model)
    cells = empty_cells(problem, block=problem.n_rows)
    drawn = []
    for number, draw in enumerate(posterior.chains[index]):
        if stop.is_set():
            break
        rng = streams.get(FOLD, number)
        for (start, end), y in zip(posterior.spans, starts, strict=True):
            cells.y[:, start:end] = y
        refill = _refill_under(posterior, problem, draw, cells, rng)
        score = DrawScores(scores, draw.params)
        latent = model.fold_in(draw.latent, problem.config, cells, refill, score, sweeps, rng)
        drawn.append(Draw(latent, draw.params, draw.trace))
    return tuple(drawn)


def _refill_under(
    posterior: Posterior, problem: Problem, draw: Draw, cells: Cells, rng: np.random.Generator
) -> Refill:
    """Return what draws the observed y of `cells` under one draw given eta, and bounds them.

    A model that draws its latent structure with y integrated out may ask for the bounds alone:
    then only the columns are visited whose bounds move.
    """
    model = gaussian(posterior.model)
    noise, refines = model.noise(draw.latent), model.refines
    params = [dict(p) for p in draw.params]  # augmenting leaves notes of a sweep in them
    links = [told(link, x) for link, x in zip(problem.links, problem.xs, strict=True)]

    bounded = False

    def refill(eta: Array, *, bounds_alone: bool = False) -> None:
        nonlocal bounded
        for d, (link, x) in enumerate(zip(problem.links, problem.xs, strict=True)):
            if link.n_latent == 0:
                continue
            start, end = posterior.spans[d]
            y = cells.y[:, start:end]
            if cells.known[d] or (bounds_alone and bounded and link.fixed_bounds):
                continue
            mean = eta[:, start] if link.n_latent == 1 else eta[:, start:end]
            links[d].augment(x, mean, float(noise[d]), params[d], rng, y)
            if refines:
                lower, upper = cells.lower[:, start:end], cells.upper[:, start:end]
                links[d].bound(x, params[d], y, rng, lower, upper)
        bounded = refines

    return refill
