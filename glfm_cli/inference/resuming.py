"""Chains that go on from kept draws, on a table with fewer observed cells.

What all rows share (weights, noise variances, the number of features) was drawn with every observed
cell in view. Sweeps of a chain that does not see some of them draw it anew; since `fold_in` has
drawn the rows' own latent variables without these cells, few sweeps are enough.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from glfm_cli.inference.chain import Chain, empty_cells, spans_of
from glfm_cli.inference.executors import run_jobs
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.latent.capabilities import Candidates, Resumes
from glfm_cli.latent.model import Problem, gaussian
from glfm_cli.streams import START, Streams, column_step, seed_of_batch


def resumed(
    folded: Posterior, problem: Problem, *, seed: int, sweeps: int, threads: int = 1
) -> Posterior:
    """Return draws that are so many sweeps of a chain on a problem away from those of `folded`.

    folded : draws of the rows of the problem, whose latent variables have seen its cells alone;
        those of models that cannot go on from a draw stay as they are
    seed : the result depends on it, and not on `threads`

    Raises KeyboardInterrupt: at Ctrl-C; NumericalError: the model's numbers broke down.
    """
    stop = threading.Event()

    def job(index: int) -> Callable[[], tuple[Draw, ...]]:
        return lambda: _resumed(folded, problem, index, seed, sweeps, stop)

    jobs = [job(index) for index in range(len(folded.chains))]
    chains = run_jobs(jobs, threads=threads, on_interrupt=stop.set)
    if stop.is_set():
        raise KeyboardInterrupt
    return replace(folded, chains=tuple(chains))


def _resumed(
    folded: Posterior, problem: Problem, index: int, seed: int, sweeps: int, stop: threading.Event
) -> tuple[Draw, ...]:
    draws, which = folded.chains[index], folded.groups[index]
    candidates = problem.model if isinstance(problem.model, Candidates) else None
    if candidates is not None:
        problem = candidates.problem_of(problem, which)
    if not isinstance(problem.model, Resumes):
        return draws
    found = []
    for number, draw in enumerate(draws):
        own = draw if candidates is None else replace(draw, latent=candidates.own(draw.latent))
        chain = resume_chain(problem, own, Streams(seed_of_batch(seed, number + 1), index))
        for _ in range(sweeps):
            if stop.is_set():
                return draws
            chain.sweep(adapt=False)
        latent = chain.model.draw(chain.state)
        if candidates is not None:
            latent = candidates.mark(latent, which)
        found.append(Draw(latent, chain.params, draw.trace))
    return tuple(found)


def resume_chain(problem: Problem, draw: Draw, streams: Streams) -> Chain:
    """Return a chain that goes on from a draw of the rows of a problem.

    Pseudo-observations, which a draw does not have, are drawn given it.
    """
    model, links, xs = gaussian(problem.model), problem.links, problem.xs
    assert isinstance(model, Resumes)
    cells, spans = empty_cells(problem), spans_of(links)
    for d, (link, x) in enumerate(zip(links, xs, strict=True)):
        cells.y[:, slice(*spans[d])] = link.start(x, streams.get(column_step(d)))[1]
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
