"""Starts of the variational fit of one table, and what is left of one at its end."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.acceleration import Acceleration
from glfm_cli.latent.iqgme.ascent import CoordinateAscent
from glfm_cli.latent.iqgme.deviations import TaskDeviations
from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.factors import FactorExperts
from glfm_cli.latent.iqgme.forms import Form, Opening, local_step
from glfm_cli.latent.iqgme.local import Local
from glfm_cli.latent.iqgme.prior import IqgmeConfig
from glfm_cli.latent.iqgme.rows import KnownRows

CERTAIN = 0.9  # responsibility of the expert of a row's cluster, at the start
APART = 3.0  # standard deviations of all features between the labels of clusters by label
# How often the number of experts is halved for that of clusters; whether labels keep rows apart;
# whether weights are free at first: where their prior is inferred from the beginning, it may take
# small first weights for a sign that those of all experts are alike, and keep them so.
# Few clusters that know nothing of labels win by the bound where features are many, and rank worst.
ONE = 99  # halvings that leave one expert, which costs little and is a regression
STARTS = (
    (ONE, False, False), (0, False, False), (1, True, True), (3, True, True),
    (2, True, False), (1, False, False), (0, True, True), (2, False, True),
)  # fmt: skip
LLOYD = 15  # iterations of k-means, which only starts the fit
ROUGH = 10.0  # times the tolerance, with which starts that are not the best may end
EVERY = 6  # iterations, of which the first two let rows look at all experts
FREE, WEAK = 10, 0.1  # iterations of a free start, and the precision of weights in them


@dataclass(eq=False)
class Start(CoordinateAscent):
    """One start under way, of one table.

    past : by which coefficients go ahead of their updates
    safe : coefficients as updated, where those of the experts are ahead of them
    """

    local: Local
    past: Acceleration = field(default_factory=Acceleration, kw_only=True)
    safe: Array | None = field(default=None, kw_only=True)

    def _renew(self, data: KnownRows, form: Form, pool: ThreadPoolExecutor | None) -> float:
        kept, safe, self.safe = self.local, self.safe, None
        self.local = Local(kept.rho.copy(), kept.t.copy())
        # What rows do without is less than a bound rises by while it is not quiet.
        narrow = not self.quiet and len(self.bounds) % EVERY > 1
        bound = self._bound(data, form, pool, narrow)
        if safe is not None and not bound >= self.bounds[-1]:
            self.experts.rules.mw, self.local = safe, kept
            self.past.forget()
            bound = self._bound(data, form, pool, narrow)
        if narrow and not bound >= self.bounds[-1]:
            bound = self._bound(data, form, pool)
        return bound

    def _bound(
        self, data: KnownRows, form: Form, pool: ThreadPoolExecutor | None, narrow: bool = False
    ) -> float:
        self.sums = local_step(form, data, self.experts, self.local, pool, narrow=narrow)
        return float(self.sums.log_norm) + float(self.experts.bound(form.prior))

    def _update_shared(self, form: Form, s: Any) -> None:
        rules = self.experts.rules
        before = rules.mw
        self.experts.update(form.prior, s, hold=len(self.bounds) < self.free)
        ahead = self.past.ahead(before, rules.mw) if self.bounds else None
        if ahead is not None:
            self.safe, rules.mw = rules.mw, ahead

    def _keep(self, s: Any, order: Array) -> Any:
        self.past.forget()
        self.local, self.experts = self.local.ordered(order), self.experts.ordered(order)
        return s.ordered(order)

    def _shares(self) -> list[Array]:
        return [self.local.rho]

    def _with_joined(self, a: int, b: int, form: Form) -> Start:
        rho = self.local.rho.copy()
        rho[a], rho[b] = rho[a] + rho[b], 0.0
        local = replace(self.local.joined(a, b, self.sums.n), rho=rho)
        return self._with(self.sums.joined(a, b), local, np.append(self._others(b), b), form)

    def _without(self, a: int, form: Form) -> Start:
        return self._with(self.sums, self.local, self._others(a), form)

    def _others(self, a: int) -> Array:
        return np.delete(np.arange(self.sums.n.size), a)

    def _with(self, s: Any, local: Local, order: Array, form: Form) -> Start:
        """Return a copy with some experts, updated for these sums."""
        trial = Start(self.experts, local)
        s = trial._keep(s, order)
        trial.experts.update(form.prior, s)
        return trial

    def _become(self, trial: Start) -> None:
        self.experts, self.local = trial.experts, trial.local
        self.past.forget()


@dataclass(frozen=True, eq=False)
class Member:
    """One of the fits that predict together.

    weight : of its predictions; those of all members add up to 1
    shares : (J, H) of the experts in each of J tasks, None for one task
    own : rules of the tasks' own, None where all have those of the experts
    power : to which forecasts are raised; the inverse of a temperature
    left_out : (l, R) log probabilities of each label of the fit, were it not known, before they are
        raised; None of tasks
    """

    experts: Experts | FactorExperts
    weight: float
    shares: Array | None = None
    own: TaskDeviations | None = None
    power: float = 1.0
    left_out: Array | None = None

    def of_task(self, j: int | None) -> tuple[Experts | FactorExperts, Array]:
        """Return the experts as task j, None for an unknown one, has them, and their shares."""
        q, own = self.experts, self.own
        assert self.shares is not None
        if own is not None:
            q = q.with_rules(*own.seen(q.rules, j))
        return q, q.pi if j is None else self.shares[j]


def weights_of(bounds: Sequence[float], forms: Sequence[Form], n_label: int) -> list[float]:
    """Return the weights of fits of these bounds: exp(bound / number of numbers of an expert).

    What a bound leaves out of the log evidence grows with the numbers whose dependence q leaves
    out, so that differences no larger than their number say little of which fit is better.
    """
    slack = max(form.numbers(n_label) for form in forms)
    weight = np.exp((np.array(bounds) - max(bounds)) / slack)
    return [float(w) for w in weight / weight.sum()]


# ------------------------------------------------------------------------------------ starts


def begin(
    rows: KnownRows, form: Form, config: IqgmeConfig, rng: np.random.Generator, i: int
) -> Start:
    """Return start number `i`: experts on clusters of the rows, gaps at the mean.

    Starts differ in their random centres, in the number of clusters, and in whether a cluster's
    rows have one label, as `STARTS` says in turn.
    """
    n = len(rows.x)
    halved, by_label, free = STARTS[i % len(STARTS)]
    k = max(form.clusters(config.experts, n, halved), rows.n_label + 1 if by_label else 1)
    k = min(k, config.experts, n)
    H = min(k + 1, config.experts)  # one that may stay empty
    cluster = start_clusters([rows], form.view(rows.x), k, rng, by_label)
    rho = np.full((H, n), (1.0 - CERTAIN) / H)
    rho[cluster, np.arange(n)] += CERTAIN
    q, (local,) = form.begin([rows], Opening([rho], weak=WEAK if free else None))
    return Start(q, local, free=FREE if free else 0)


def start_clusters(
    tables: Sequence[KnownRows], x: Array, k: int, rng: np.random.Generator, by_label: bool
) -> Array:
    """Return one of up to k clusters for each row of all tables together.

    Features outnumber labels, so that experts found by features alone may each have rows of all
    labels, and q stay there; `by_label` keeps rows apart whose labels differ. Rows without a label
    go to the nearest centre.  x : (n, .) what rows are clustered by
    """
    at = np.flatnonzero(np.concatenate([rows.labelled for rows in tables]))
    if not by_label or not at.size:
        return k_means(x, k, rng)
    t = np.vstack([rows.first_scores[rows.labelled] for rows in tables])
    apart = APART * np.sqrt(x.shape[1])
    own = k_means(np.hstack([x[at], apart * t]), min(k, at.size), rng)
    count = np.bincount(own)
    centers = np.zeros((count.size, x.shape[1]))
    np.add.at(centers, own, x[at])
    centers = centers[count > 0] / count[count > 0, None]
    cluster = nearest_center(x, centers)
    cluster[at] = (np.cumsum(count > 0) - 1)[own]
    return cluster


def nearest_center(x: Array, centers: Array) -> Array:
    """Return the place (n,) of the centre that each row is nearest to."""
    distance = (centers**2).sum(axis=1) - 2.0 * x @ centers.T
    return np.asarray(distance.argmin(axis=1))


def k_means(x: Array, k: int, rng: np.random.Generator) -> Array:
    """Return a cluster (n,) for each row, from far-apart random centres; O(n k P) a round."""
    n = len(x)
    centers = x[[int(rng.integers(n))]]
    nearest = ((x - centers[0]) ** 2).sum(axis=1)
    for _ in range(1, k):
        total = float(nearest.sum())
        p = nearest / total if total > 0 else None
        centers = np.vstack([centers, x[int(rng.choice(n, p=p))]])
        nearest = np.minimum(nearest, ((x - centers[-1]) ** 2).sum(axis=1))
    cluster = np.zeros(n, dtype=np.intp)
    for _ in range(LLOYD):
        new = nearest_center(x, centers)
        if np.array_equal(new, cluster):
            break
        cluster = new
        count = np.bincount(cluster, minlength=k)
        sums = np.zeros_like(centers)
        np.add.at(sums, cluster, x)
        centers = np.where(count[:, None] > 0, sums / np.maximum(count, 1)[:, None], centers)
    return cluster
