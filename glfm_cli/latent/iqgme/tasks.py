"""Fit of many tasks that share experts: starts, iterations, joining of experts.

Everything that belongs to a row is kept together with its expert, as for one task:

    q = prod_i q(z_i) q(x_i missing, t_i, y_i | c_{j, z_i})  prod_jh q(c_jh) q(V_jh)  q(alpha)
        q of the experts, whose sticks are the tasks' common ones

This contains the approximation of [iQGME section 4.3], where features do not depend on the expert.
Given the experts, tasks are independent of one another, and are worked on by threads.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.factors import FactorExperts
from glfm_cli.latent.iqgme.fit import CERTAIN, EMPTY, Stop, race, rise_of, start_clusters
from glfm_cli.latent.iqgme.forms import Form, form_of
from glfm_cli.latent.iqgme.local import Local, over
from glfm_cli.latent.iqgme.prior import IqgmeConfig
from glfm_cli.latent.iqgme.rows import Rows
from glfm_cli.latent.iqgme.rules import stick_evidence
from glfm_cli.latent.iqgme.usage import Chosen, Usage, choose, join_atoms

Array = NDArray[Any]

TRIALS = 4  # joins, one after another, that do not raise the bound before no more are tried


@dataclass(eq=False)
class TaskStart:
    """One start under way.

    locals : q of each task's rows; rho is of its atoms, t and y of the experts
    """

    experts: Any  # of the form's kind, as the sums
    usage: Usage
    locals: list[Local]
    sums: Any = None
    bounds: list[float] = field(default_factory=list)
    quiet: int = 0
    joined: bool = False  # whether joins have been tried since it last settled

    @property
    def converged(self) -> bool:
        """Return whether the bound has stopped rising and no two experts want to be one."""
        return self.quiet >= 2 and self.joined

    def run(
        self,
        tables: Sequence[Rows],
        form: Form,
        config: IqgmeConfig,
        iterations: int,
        pool: ThreadPoolExecutor | None = None,
        stop: Stop | None = None,
        watch: Callable[[int, float], None] | None = None,
    ) -> None:
        """Iterate until so many iterations are made in all, it has converged, or `stop` says so."""
        while not self.converged and len(self.bounds) < iterations:
            if stop is not None and self.bounds and stop():
                return
            if self.quiet >= 2:
                self._join(tables, form, config, pool)
            else:
                self._iterate(tables, form, config, pool)
            if watch is not None:
                watch(len(self.bounds), self.bounds[-1])

    def _iterate(
        self,
        tables: Sequence[Rows],
        form: Form,
        config: IqgmeConfig,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        if self.sums is not None:
            self._update(form, self.sums)
        bound = self._renew(tables, form, pool)
        rise = rise_of(self.bounds, bound)
        self.bounds.append(bound)
        self.quiet = self.quiet + 1 if rise < config.tolerance * abs(bound) else 0
        self.joined = self.joined and self.quiet > 0

    def _renew(self, tables: Sequence[Rows], form: Form, pool: ThreadPoolExecutor | None) -> float:
        """Renew q of the rows and atoms; return the bound."""
        self.sums, value = task_step(form, tables, self.experts, self.usage, self.locals, pool)
        return value + self.usage.bound(form.prior) + self.experts.bound(form.prior)

    def _update(self, form: Form, s: Any) -> None:
        """Update what rows share, in the order of sizes where that raises the bound."""
        self._order_atoms()
        n = self.usage.counts
        order = np.argsort(-n, kind="stable")
        better = stick_evidence(n[order], self.experts.alpha) > stick_evidence(
            n, self.experts.alpha
        )
        if better:
            s = self._keep(s, order)
        kept = int(np.max(np.flatnonzero(s.n > EMPTY), initial=0)) + 2
        if kept < s.n.size:
            s = self._keep(s, np.arange(kept))
        self.usage.update_sticks(form.prior, self._rows_of_atoms())
        self.experts.update(form.prior, s, self.usage.counts)

    def _rows_of_atoms(self) -> Array:
        """Return how many rows (J, H) every atom has."""
        return np.array([local.rho.sum(axis=1) for local in self.locals])

    def _order_atoms(self) -> None:
        """Put every task's atoms in the order of their rows where that raises the bound."""
        n, alpha = self._rows_of_atoms(), self.usage.alpha
        for j, local in enumerate(self.locals):
            order = np.argsort(-n[j], kind="stable")
            if stick_evidence(n[j, order], alpha) > stick_evidence(n[j], alpha):
                local.rho, self.usage.sigma[j] = local.rho[order], self.usage.sigma[j, order]
                n[j] = n[j, order]
        kept = int(np.max(np.nonzero(n > EMPTY)[1], initial=0)) + 2
        if kept < n.shape[1]:
            for local in self.locals:
                local.rho = local.rho[:kept]
            first, sigma = kept - 1, self.usage.sigma[:, :kept]
            v1, v2 = self.usage.v1[:, :first], self.usage.v2[:, :first]
            self.usage = replace(self.usage, v1=v1, v2=v2, sigma=sigma)

    def _keep(self, s: Any, order: Array) -> Any:
        """Keep some experts, in another order; return their sums."""
        self.experts = self.experts.ordered(order)
        self.usage = self.usage.with_experts(order)
        for local in self.locals:
            local.t, local.y = local.t[order], local.y[order]
        return s.ordered(order)

    def _join(
        self,
        tables: Sequence[Rows],
        form: Form,
        config: IqgmeConfig,
        pool: ThreadPoolExecutor | None,
    ) -> None:
        """Try to make pairs of experts one, and keep what raises the bound."""
        assert self.sums is not None
        self.joined = True
        for a, b in form.candidates(self.experts, self.sums, EMPTY)[:TRIALS]:
            trial = self._with_joined(a, b, form)
            bound = trial._renew(tables, form, pool)
            for _ in range(2):  # its rows settle before it is judged
                assert trial.sums is not None
                trial._update(form, trial.sums)
                bound = trial._renew(tables, form, pool)
            if bound > self.bounds[-1] + config.tolerance * abs(bound):
                self.experts, self.usage, self.locals = trial.experts, trial.usage, trial.locals
                self.sums, self.quiet, self.joined = trial.sums, 0, False
                self.bounds.append(bound)
                return

    def _with_joined(self, a: int, b: int, form: Form) -> TaskStart:
        """Return a copy in which expert b's atoms and rows are a's."""
        assert self.sums is not None
        trial = TaskStart(copy.copy(self.experts), copy.copy(self.usage), [], None)
        sigma = self.usage.sigma.copy()
        share = self.sums.n[[a, b]] / self.sums.n[[a, b]].sum()
        sigma[:, :, a] += sigma[:, :, b]
        sigma[:, :, b] = 0.0
        for j, local in enumerate(self.locals):
            rho, sigma[j] = join_atoms(local.rho, sigma[j])
            t, y = local.t.copy(), local.y.copy()
            t[a] = share[0] * t[a] + share[1] * t[b]
            y[a] = share[0] * y[a] + share[1] * y[b]
            trial.locals.append(Local(rho, t, y))
        s = self.sums.joined(a, b)
        trial.usage.sigma = sigma
        trial.usage.update_sticks(form.prior, trial._rows_of_atoms())
        order = np.append(np.delete(np.arange(s.n.size), b), b)
        s = trial._keep(s, order)
        trial.experts.update(form.prior, s, trial.usage.counts)
        return trial


def task_step(
    form: Form,
    tables: Sequence[Rows],
    q: Any,
    usage: Usage,
    kept: list[Local],
    pool: ThreadPoolExecutor | None = None,
) -> tuple[Any, float]:
    """Update q of all rows and of which expert each atom is, in place.

    Returns the sums that the experts' updates need, and what rows and atoms add to the bound.
    """
    terms, log_pi, log_eta = form.terms(q), usage.log_pi, q.log_pi
    terms = replace(terms, constant=terms.constant - log_eta)  # atoms have them, not rows

    def work(j: int) -> tuple[Any, float]:
        rows, local = tables[j], kept[j]
        blocks = form.blocks(rows)
        placed = [form.place(rows, block, q, terms, local) for block in blocks]
        log_p = np.empty((q.H, len(rows.x)))
        for block, one in zip(blocks, placed, strict=True):
            log_p[:, block.rows] = one.log_rho
        chosen: Chosen = choose(log_pi[j], log_eta, log_p, local.rho)
        local.rho, usage.sigma[j] = chosen.rho, chosen.sigma
        s = form.zero(q)
        for block, one in zip(blocks, placed, strict=True):
            form.add(s, q, block, one, chosen.share[:, block.rows], local)
        return s, chosen.value

    total, value = form.zero(q), 0.0
    for part, own in over(pool, work, range(len(tables))):
        total.add(part)
        value += own
    return total, value


@dataclass(frozen=True, eq=False)
class FittedTasks:
    """The best of several starts; as `Fitted`, with what tasks use.

    usage : Usage
    """

    experts: Experts | FactorExperts
    usage: Usage
    bounds: Array
    ends: Array
    converged: bool


def fit_tasks(
    tables: Sequence[Rows],
    config: IqgmeConfig,
    streams: list[np.random.Generator],
    *,
    pool: ThreadPoolExecutor | None = None,
    stop: Stop | None = None,
    watch: Callable[[int, int, float], None] | None = None,
) -> FittedTasks:
    """Return the experts of several tasks, one table of rows each; as `fit_experts`."""
    form = form_of(config, tables)
    make = partial(begin_tasks, tables, form, config)
    best, ends = race(
        make, partial(TaskStart.run, tables=tables, form=form, config=config, pool=pool),
        config, streams, stop, watch,
    )  # fmt: skip
    return FittedTasks(best.experts, best.usage, np.array(best.bounds), ends, best.converged)


def begin_tasks(
    tables: Sequence[Rows], form: Form, config: IqgmeConfig, rng: np.random.Generator, i: int
) -> TaskStart:
    """Return start number `i`: atoms on clusters of rows, of all tasks or of each.

    Even starts have clusters of all rows, which tasks share from the beginning; odd ones clusters
    of each task's rows, experts of its own that are joined later. Of every four, two keep rows
    apart whose labels differ; later starts have fewer clusters.
    """
    J, most = len(tables), config.shared_experts
    by_label, fewer = i // 2 % 2 == 1, i // 4 % 3
    sizes = [len(rows.x) for rows in tables]
    ends = np.cumsum([0, *sizes])
    x = form.view(np.vstack([rows.x for rows in tables]))
    if i % 2 == 0 or most < 2 * J:
        k = max(1, min(most >> fewer, sum(sizes)))
        cluster = start_clusters(tables, x, k, rng, by_label)
    else:
        each, parts, k = max(1, min(config.experts, most // J) >> fewer), [], 0
        for j, rows in enumerate(tables):
            own, size = x[ends[j] : ends[j + 1]], min(each, sizes[j])
            parts.append(k + start_clusters([rows], own, size, rng, by_label))
            k += size
        cluster = np.concatenate(parts)
    S = min(k + 1, max(most, k))
    H = min(config.experts, k)
    sigma = np.full((J, H, S), 1e-3 / S)
    rhos = []
    for j in range(J):
        own = cluster[ends[j] : ends[j + 1]]
        count = np.bincount(own, minlength=S)
        atoms = np.argsort(-count, kind="stable")[:H]
        sigma[j, np.arange(H), atoms] += 1.0
        place = np.full(S, 0)
        place[atoms] = np.arange(H)
        rho = np.full((H, own.size), (1.0 - CERTAIN) / H)
        rho[place[own], np.arange(own.size)] += CERTAIN
        sigma[j] /= sigma[j].sum(axis=1, keepdims=True)
        rhos.append(rho)
    prior = form.prior
    share = prior.t1 / prior.t2
    usage = Usage(np.ones((J, H - 1)), np.full((J, H - 1), share), prior.t1, prior.t2, sigma)
    usage.update_sticks(prior, np.array([rho.sum(axis=1) for rho in rhos]))
    shares = [sigma[j].T @ rho for j, rho in enumerate(rhos)]
    q, kept = form.begin(tables, shares, usage.counts)
    kept = [replace(local, rho=rho) for local, rho in zip(kept, rhos, strict=True)]
    return TaskStart(q, usage, kept)
