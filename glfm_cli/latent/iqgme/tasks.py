"""Fit of many tasks that share experts: starts, iterations, joining of experts.

Everything that belongs to a row is kept together with its expert, as for one task:

    q = prod_i q(z_i) q(x_i missing, t_i, y_i | c_{j, z_i})  prod_jh q(c_jh) q(V_jh)  q(alpha)
        q of the experts, whose sticks are the tasks' common ones  prod_j q(v_j)

where v_j is what the rules of task j are off by, see `own`.

This contains the approximation of [iQGME section 4.3], where features do not depend on the expert.
Given the experts, tasks are independent of one another, and are worked on by threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.ascent import EMPTY, TINY, CoordinateAscent
from glfm_cli.latent.iqgme.deviation_scale import choose_omega
from glfm_cli.latent.iqgme.deviations import OwnSums, TaskDeviations
from glfm_cli.latent.iqgme.fit import (
    CERTAIN,
    FREE,
    WEAK,
    start_clusters,
)
from glfm_cli.latent.iqgme.forms import Form, Opening
from glfm_cli.latent.iqgme.local import Local, over
from glfm_cli.latent.iqgme.prior import MOST_BOTH, IqgmeConfig
from glfm_cli.latent.iqgme.rows import KnownRows
from glfm_cli.latent.iqgme.sticks import by_size
from glfm_cli.latent.iqgme.usage import AtomChoice, Usage, choose, join_atoms


@dataclass(eq=False)
class TaskStart(CoordinateAscent):
    """One start under way, of many tasks.

    locals : q of each task's rows; rho is of its atoms, t and y of the experts
    own : rules of the tasks' own, None where all have those of the experts
    own_sums : over each task's labelled rows, as its rules need them
    """

    usage: Usage
    locals: list[Local]
    own: TaskDeviations | None = None
    own_sums: OwnSums | None = None

    def _renew(
        self, data: Sequence[KnownRows], form: Form, pool: ThreadPoolExecutor | None
    ) -> float:
        """Renew q of the rows and atoms; return the bound."""
        found = task_step(form, data, self.experts, self.usage, self.locals, self.own, pool)
        self.sums, self.own_sums, value = found
        if self.own is not None:
            value += self.own.bound(form.prior.rules)
        return value + self.usage.sticks_bound(form.prior.rules) + self.experts.bound(form.prior)

    def _update(self, form: Form, s: Any) -> None:
        self._order_atoms()
        super()._update(form, s)

    def _sizes(self) -> Array:
        return self.usage.counts

    def _update_shared(self, form: Form, s: Any) -> None:
        """Update sticks, experts and rules."""
        self.usage.update_sticks(form.prior.rules, self._rows_of_atoms())
        hold = len(self.bounds) < self.free
        self.experts.update(form.prior, self._condensed(s), self.usage.counts, hold=hold)
        if self.own is not None and self.own_sums is not None:
            rules = self.experts.rules
            self.own = self.own.updated(form.prior.rules, rules, self.own_sums, s)

    def _condensed(self, s: Any) -> Any:
        """Return the sums with what is left of the scores for the shared rules."""
        if self.own is None or self.own_sums is None:
            return s
        return replace(s, tx=self.own.rest(self.own_sums))

    def _judged(self) -> Any:
        return self._condensed(self.sums)

    def _rows_of_atoms(self) -> Array:
        """Return how many rows (J, H) every atom has."""
        return np.array([local.rho.sum(axis=1) for local in self.locals])

    def _order_atoms(self) -> None:
        """Put every task's atoms in the order of their rows where that raises the bound."""
        n, alpha = self._rows_of_atoms(), self.usage.alpha
        for j, local in enumerate(self.locals):
            order = by_size(n[j], alpha)
            if order is not None:
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
        self.experts = self.experts.ordered(order)
        self.usage = self.usage.with_experts(order)
        if self.own_sums is not None:
            self.own_sums = self.own_sums.ordered(order)
        for local in self.locals:
            local.t = local.t[order]
        return s.ordered(order)

    def _shares(self) -> list[Array]:
        every = zip(self.usage.sigma, self.locals, strict=True)
        return [sigma.T @ local.rho for sigma, local in every]

    def _with_joined(self, a: int, b: int, form: Form) -> TaskStart:
        n, sigma = self.sums.n, self.usage.sigma.copy()
        sigma[:, :, a] += sigma[:, :, b]
        sigma[:, :, b] = 0.0
        kept = []
        for j, local in enumerate(self.locals):
            rho, sigma[j] = join_atoms(local.rho, sigma[j])
            kept.append(replace(local.joined(a, b, n), rho=rho))
        order = np.append(np.delete(np.arange(n.size), b), b)
        own_sums = None if self.own_sums is None else self.own_sums.joined(a, b)
        return self._with(self.sums.joined(a, b), own_sums, kept, sigma, order, form)

    def _without(self, a: int, form: Form) -> TaskStart:
        sigma = self.usage.sigma + TINY  # atoms that were surely this expert may be any
        kept = [replace(local) for local in self.locals]
        order = np.delete(np.arange(self.sums.n.size), a)
        return self._with(self.sums, self.own_sums, kept, sigma, order, form)

    def _with(
        self, s: Any, own_sums: OwnSums | None, kept: list[Local], sigma: Array, order: Array,
        form: Form,
    ) -> TaskStart:  # fmt: skip
        """Return a copy with some experts, updated for these sums."""
        usage = replace(self.usage, sigma=sigma)
        trial = TaskStart(self.experts, usage, kept, self.own, own_sums)
        trial._update_shared(form, trial._keep(s, order))
        return trial

    def _become(self, trial: TaskStart) -> None:
        self.experts, self.usage, self.locals = trial.experts, trial.usage, trial.locals
        self.own, self.own_sums = trial.own, trial.own_sums


def task_step(
    form: Form,
    tables: Sequence[KnownRows],
    q: Any,
    usage: Usage,
    kept: list[Local],
    own: TaskDeviations | None = None,
    pool: ThreadPoolExecutor | None = None,
) -> tuple[Any, OwnSums | None, float]:
    """Update q of all rows and of which expert each atom is, in place.

    Returns the sums that the experts' updates need, those that the tasks' own rules need, if they
    have some, and what rows and atoms add to the bound.
    """
    terms, log_pi, log_eta = form.terms(q), usage.log_shares, q.log_pi
    terms = replace(terms, constant=terms.constant - log_eta)  # atoms have them, not rows

    def work(j: int) -> tuple[Any, float]:
        rows, local = tables[j], kept[j]
        blocks, mine, said = form.blocks(rows), q, terms
        if own is not None:
            mine, said = form.with_rules(q, terms, *own.seen(q.rules, j))
        placed = [form.place(rows, block, mine, said, local) for block in blocks]
        log_p = np.empty((q.H, len(rows.x)))
        for block, one in zip(blocks, placed, strict=True):
            log_p[:, block.rows] = one.log_rho
        chosen: AtomChoice = choose(log_pi[j], log_eta, log_p, local.rho)
        local.rho, usage.sigma[j] = chosen.rho, chosen.sigma
        s = form.zero(q)
        for block, one in zip(blocks, placed, strict=True):
            form.add(s, q, block, one, chosen.share[:, block.rows], local)
        return s, chosen.value

    total, value, rules = form.zero(q), 0.0, q.rules
    own_sums = None if own is None else OwnSums.zero(len(tables), q.H, rules.K, rules.F)
    for j, (part, gain) in enumerate(over(pool, work, range(len(tables)))):
        total.add(part)
        value += gain
        if own_sums is not None:
            own_sums.put(j, part)
    return total, own_sums, value


def told_by_labels(tables: Sequence[KnownRows]) -> bool:
    """Return whether starts are compared by labels left out, since the bound is about features."""
    labelled = any(rows.labelled.any() for rows in tables)
    return tables[0].n_features > MOST_BOTH and labelled


def omega_for(
    tables: Sequence[KnownRows],
    form: Form,
    config: IqgmeConfig,
    stop: Callable[[], bool] | None = None,
) -> float | None:
    """Return the precision of the tasks' own rules, None where they have none."""
    if not config.own_rules or not tables[0].n_label:
        return None
    chosen = config.own_precision
    return choose_omega(tables, form, stop) if chosen is None else chosen


def begin_tasks(
    tables: Sequence[KnownRows],
    form: Form,
    config: IqgmeConfig,
    rng: np.random.Generator,
    i: int,
    omega: float | None = None,
) -> TaskStart:
    """Return start number `i`: atoms on clusters of rows, of all tasks or of each.

    Even starts have clusters of all rows, which tasks share from the beginning; odd ones clusters
    of each task's rows, experts of its own that are joined later. Of every four, two keep rows
    apart whose labels differ; later starts have fewer clusters. Where features are many, starts
    have 1, 2, 4 and 8 clusters of all rows, then again so many that keep labels apart.

    omega : precision of the tasks' own rules; None where all have those of the experts
    """
    J, most = len(tables), config.shared_experts
    by_label, fewer = i // 2 % 2 == 1, i // 4 % 3
    sizes = [len(rows.x) for rows in tables]
    ends = np.cumsum([0, *sizes])
    x = form.view(np.vstack([rows.x for rows in tables]))
    if tables[0].n_features > MOST_BOTH:
        k = min(most, 2 ** (i % 4), sum(sizes))
        cluster = start_clusters(tables, x, k, rng, i // 4 % 2 == 1)
    elif i % 2 == 0 or most < 2 * J:
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
    prior = form.prior.rules
    share = prior.t1 / prior.t2
    usage = Usage(np.ones((J, H - 1)), np.full((J, H - 1), share), prior.t1, prior.t2, sigma)
    usage.update_sticks(prior, np.array([rho.sum(axis=1) for rho in rhos]))
    shares = [sigma[j].T @ rho for j, rho in enumerate(rhos)]
    weak = None if omega is None else WEAK
    q, kept = form.begin(tables, Opening(shares, usage.counts, weak=weak))
    kept = [replace(local, rho=rho) for local, rho in zip(kept, rhos, strict=True)]
    if omega is None:
        return TaskStart(q, usage, kept)
    rules = TaskDeviations.unknown(prior, J, q.K, q.rules.F, omega)
    return TaskStart(q, usage, kept, rules, free=FREE)
