"""Chains that go on from kept draws, on a table with fewer observed cells.

What all rows share (weights, noise variances, the number of features) was drawn with every observed
cell in view. Sweeps of a chain that does not see some of them draw it anew; since `fold_in` has
drawn the rows' own latent variables without these cells, few sweeps are enough.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.chain import Chain, empty_cells, spans_of
from glfm_cli.inference.executors import run_jobs
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.value_chain import ValueChain
from glfm_cli.latent.capabilities import Candidates, Regrows, Resumes
from glfm_cli.latent.model import Problem, Values, gaussian
from glfm_cli.streams import START, Streams, column_step, seed_of_batch


def resumed(
    posterior: Posterior,
    problem: Problem,
    *,
    seed: int,
    sweeps: int,
    draws: int,
    threads: int = 1,
    first: int = 0,
) -> Posterior:
    """Return draws of a problem with fewer observed cells, of chains that go on from one.

    posterior : draws of all rows of the problem, with more of the cells in view. The rows' latent
        variables are drawn anew from the last of each chain; draws of models that cannot go on
        from one have their rows folded in, and no more.
    sweeps : of a chain before the first of its `draws`; a tenth of them lies between two
    seed : the result depends on it, and not on `threads`
    first : number of the first chain, each of which has random numbers of its own

    Raises KeyboardInterrupt: at Ctrl-C; NumericalError: the model's numbers broke down.
    """
    stop = threading.Event()
    goes_on = [isinstance(_of_chain(problem, k).model, Resumes) for k in posterior.groups]
    starts = [c[-1:] if on else c for c, on in zip(posterior.chains, goes_on, strict=True)]
    again = replace(posterior, chains=tuple(starts))
    folded = fold_in(again, problem, seed=seed, threads=threads, first=first)
    after = _before_draws(sweeps, draws)

    def job(index: int) -> Callable[[], tuple[Draw, ...]]:
        if not goes_on[index]:
            return lambda: folded.chains[index]
        streams = Streams(seed_of_batch(seed, 1), first + index)
        return lambda: _resumed(folded, problem, index, streams, after, stop)

    jobs = [job(index) for index in range(len(folded.chains))]
    chains = run_jobs(jobs, threads=threads, on_interrupt=stop.set)
    if stop.is_set():
        raise KeyboardInterrupt
    return replace(folded, chains=tuple(chains))


def but_of_regrown(fitted: Posterior, problem: Problem) -> Posterior:
    """Return the draws of a fit, of chains that `regrown` makes anew one alone."""
    regrow = _regrow(fitted, problem)
    chains = (c[-1:] if again else c for c, again in zip(fitted.chains, regrow, strict=True))
    return replace(fitted, chains=tuple(chains))


def regrown(
    folded: Posterior,
    fitted: Posterior,
    problem: Problem,
    rows: Array,
    *,
    seed: int,
    sweeps: int,
    draws: int,
    threads: int = 1,
    first: int = 0,
) -> Posterior:
    """Return draws of some rows, in which models that look at other rows have forgotten cells.

    folded : draws of these rows, which those of other models stay
    fitted : draws of all rows, with more of the cells in view; chains go on from the last of each
    problem : all rows, with fewer observed cells;  rows : (n,) which of them are wanted

    The rest is as in `resumed`.
    """
    stop = threading.Event()
    regrow = _regrow(fitted, problem)
    starts = replace(fitted, chains=tuple(chain[-1:] for chain in fitted.chains))
    after = _before_draws(sweeps, draws)

    def job(index: int) -> Callable[[], tuple[Draw, ...]]:
        if not regrow[index]:
            return lambda: folded.chains[index]
        streams = Streams(seed_of_batch(seed, 1), first + index)
        return lambda: _resumed(starts, problem, index, streams, after, stop, rows)

    jobs = [job(index) for index in range(len(regrow))]
    chains = run_jobs(jobs, threads=threads, on_interrupt=stop.set)
    if stop.is_set():
        raise KeyboardInterrupt
    return replace(folded, chains=tuple(chains))


def _regrow(posterior: Posterior, problem: Problem) -> list[bool]:
    """Return which chains are of models that look at other rows."""
    return [isinstance(_of_chain(problem, k).model, Regrows) for k in posterior.groups]


def _before_draws(sweeps: int, draws: int) -> list[int]:
    """Return how many sweeps are made before each draw."""
    return [sweeps] + [max(sweeps // 10, 1)] * (draws - 1)


def _of_chain(problem: Problem, which: int) -> Problem:
    """Return the problem as the model of one chain has it."""
    model = problem.model
    return model.problem_of(problem, which) if isinstance(model, Candidates) else problem


def _resumed(
    folded: Posterior,
    problem: Problem,
    index: int,
    streams: Streams,
    after: Sequence[int],
    stop: threading.Event,
    rows: Array | None = None,
) -> tuple[Draw, ...]:
    """Return draws of a chain, each after so many sweeps more, or of some rows."""
    (draw,), which, model = folded.chains[index], folded.groups[index], problem.model
    candidates = model if isinstance(model, Candidates) else None
    own = draw if candidates is None else replace(draw, latent=candidates.own(draw.latent))
    chain = resume_chain(_of_chain(problem, which), own, streams)
    regrow, found = chain.model if isinstance(chain.model, Regrows) else None, list[Draw]()
    for sweeps in after:
        for _ in range(sweeps):
            if stop.is_set():
                return ()
            chain.sweep(adapt=False)
        latent = chain.model.draw(chain.state)
        if regrow is not None and rows is not None:
            latent = regrow.of_rows(latent, rows)
        if candidates is not None:
            latent = candidates.mark(latent, which)
        params = tuple({name: value.copy() for name, value in p.items()} for p in chain.params)
        found.append(Draw(latent, params, draw.trace))
    return tuple(found)


def resume_chain(problem: Problem, draw: Draw, streams: Streams) -> Chain | ValueChain:
    """Return a chain that goes on from a draw of the rows of a problem.

    Pseudo-observations, which a draw does not have, are drawn given it.
    """
    if isinstance(problem.model, Regrows):
        values = Values(problem, tuple(dict(p) for p in draw.params))
        state = problem.model.regrow(draw.latent, values, problem.config, streams)
        return ValueChain(problem, streams, values, state)
    model, links, xs = gaussian(problem.model), problem.links, problem.xs
    assert isinstance(model, Resumes)
    cells, spans = empty_cells(problem), spans_of(links)
    for d, (link, x) in enumerate(zip(links, xs, strict=True)):
        cells.y[:, slice(*spans[d])] = link.start(x)[1]
    state = model.resume(draw.latent, cells, problem.config, streams)
    params = tuple({name: value.copy() for name, value in p.items()} for p in draw.params)
    chain = Chain(problem, streams, cells, params, state, np.zeros_like(cells.y), spans)
    model.fill_eta(state, chain.eta)
    noise = model.noise(state)
    for d, (link, x) in enumerate(zip(links, xs, strict=True)):
        if link.n_latent and not cells.known[d]:
            y, rng = cells.y[:, slice(*spans[d])], streams.get(column_step(d))
            link.augment(x, chain.eta_of(d), float(noise[d]), params[d], rng, y)
    n, s = np.nonzero(cells.observed[:, cells.column] == 0)
    sd = np.sqrt(noise[cells.column[s]])
    cells.y[n, s] = chain.eta[n, s] + sd * streams.get(START).standard_normal(s.size)
    return chain
