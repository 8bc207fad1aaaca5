"""Restarts of an ascent: they compete in rounds, and those that are left predict together.

Each restart is a chain. It ends when it has converged, or at a largest number of steps; its last
state is the one draw that is kept, weighted by how it compares with the others.
Rounds are those of successive halving [Jamieson and Talwalkar 2016], where the model says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from scipy.special import softmax

from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.executors import run_jobs
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.run import ChainLog, Keeper, Observer, Plan, Run, Stop
from glfm_cli.inference.value_chain import ValueChain, load_values, start_values
from glfm_cli.latent.capabilities import Restarts, Round, Scored, Weighted
from glfm_cli.latent.model import Problem
from glfm_cli.streams import Streams


@dataclass(eq=False)
class _Competition:
    """The restarts of one run.

    logs, chains : of every restart; None before it has begun
    scores : of each that has begun, when it was compared last
    turns : rounds that each has been through
    left : those that have not been left behind
    """

    problem: Problem
    plan: Plan
    stop: Stop
    observer: Observer
    threads: int
    logs: Sequence[ChainLog]
    chains: list[ValueChain | None]
    scores: dict[int, float] = field(default_factory=dict)
    turns: dict[int, int] = field(default_factory=dict)
    left: list[int] = field(default_factory=list)

    def run(self) -> None:
        """Make every round, or those that there is time for."""
        self.left = list(range(self.plan.chains))
        for number, one in enumerate(self._rounds()):
            if one.halve:
                self._halve()
            if number and len(self.left) == 1 and not one.best_alone:
                continue
            chosen = [max(self.left, key=self.scores.__getitem__)] if one.best_alone else self.left
            inside = max(1, self.threads // len(chosen))
            jobs = [self._job(index, one, inside) for index in chosen]
            run_jobs(jobs, threads=self.threads, on_interrupt=self.stop.interrupt)
            self.left = [index for index in self.left if index in self.scores]
            if self.stop.reason is not None:
                return

    def _rounds(self) -> Sequence[Round]:
        model, plan = self.problem.model, self.plan
        if isinstance(model, Restarts):
            return model.rounds(self.problem, plan.chains)
        return [Round(plan.sweeps)]

    def _halve(self) -> None:
        model = self.problem.model
        groups: dict[int, list[int]] = {}
        for index in self.left:
            group = 0
            if isinstance(model, Restarts):
                group = model.group(self.problem, index)
            groups.setdefault(group, []).append(index)
        best = [
            sorted(among, key=lambda i: -self.scores[i])[: (len(among) + 1) // 2]
            for among in groups.values()
        ]
        self.left = [index for among in best for index in among]

    def _job(self, index: int, one: Round, threads: int) -> Callable[[], None]:
        return lambda: self._advance(index, one, threads)

    def _advance(self, index: int, one: Round, threads: int) -> None:
        """Let a restart go through a round, or what is left of it."""
        chain, log = self.chains[index], self.logs[index]
        if chain is None:
            if index > 0 and self.stop.now():  # the first always begins: there must be an answer
                return
            streams = Streams(self.plan.seed, index)
            chain = self.chains[index] = start_values(self.problem, streams, index)
        ascent, model = chain.ascent, chain.model
        turn = self.turns[index] = self.turns.get(index, -1) + 1
        if turn < len(ascent.scores):  # in an earlier sitting
            self.scores[index] = ascent.scores[turn]
            return
        if ascent.entered <= turn:
            if turn and isinstance(model, Restarts):
                ascent.done = model.enter(chain.state, one.best_alone)
            ascent.entered = turn + 1
        chain.values.tolerance, chain.values.threads = one.tolerance, threads
        most = min(one.steps, self.plan.sweeps)
        while chain.done < most and not ascent.done and not (chain.done > 0 and self.stop.now()):
            chain.sweep(adapt=False)
            self.observer.swept(index, chain.done, {"bound": ascent.bounds[-1]})
            if log.due():
                log.save(chain.save())
        self.scores[index] = score = self._score(chain)
        if ascent.done or chain.done >= most:
            ascent.scores.append(score)
        log.save(chain.save())

    def _score(self, chain: ValueChain) -> float:
        model, bound = chain.model, chain.ascent.bounds[-1]
        if isinstance(model, Scored):
            return model.score(chain.state, chain.values, bound)
        return bound

    def ended(self) -> Run:
        """Keep the last states of those that are left, weighted, as the draws."""
        model, links = self.problem.model, self.problem.links
        scores = {index: self.scores[index] for index in self.left}
        if isinstance(model, Weighted):
            weights = model.weights(self.problem, scores)
        else:
            weights = softmax(list(scores.values())).tolist()
        draws = []
        for index, weight in zip(self.left, weights, strict=True):
            chain, log = self._begun(index), self.logs[index]
            draw = chain.keep()
            told = {"score": scores[index], "weight": weight}
            ended = {"converged": float(chain.ascent.done)}  # the model may know better
            log.append(replace(draw, trace={**ended, **draw.trace, **told}))
            log.save(chain.save())
            draws.append(log.draws())
        posterior = Posterior.of_restarts(model, links, spans_of(links), draws)
        best = self._begun(max(self.left, key=scores.__getitem__))
        warnings = dict.fromkeys(
            text for index in self.left for text in model.warnings(self._begun(index).state)
        )
        notes = list(warnings)
        if self.stop.reason is None and not best.ascent.done:
            notes.append(f"the fit has not converged after {best.done} steps")
        bounds = tuple(() if c is None else tuple(c.ascent.bounds) for c in self.chains)
        return Run(posterior, self.stop.reason, 0.0, tuple(notes), bounds)

    def _begun(self, index: int) -> ValueChain:
        chain = self.chains[index]
        assert chain is not None
        return chain


def ascend(
    problem: Problem, plan: Plan, stop: Stop, observer: Observer, keeper: Keeper, threads: int
) -> Run:
    """Run the restarts of an ascent, and return the last states of those that predict.

    Arguments are those of `glfm_cli.inference.sampling.sample`; `plan.sweeps` is the largest number
    of steps of a restart.
    """
    with ExitStack() as stack:
        logs = [stack.enter_context(keeper.chain(index)) for index in range(plan.chains)]
        chains = [_resumed(log, problem) for log in logs]
        competition = _Competition(problem, plan, stop, observer, threads, logs, chains)
        competition.run()
        return competition.ended()


def _resumed(log: ChainLog, problem: Problem) -> ValueChain | None:
    """Return a restart where it stood, its draw forgotten: others may be left with it now."""
    chain = log.resume(partial(load_values, problem))
    if chain is None:
        return None
    assert isinstance(chain, ValueChain)
    log.forget(chain.save())
    return chain
