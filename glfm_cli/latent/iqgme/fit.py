"""Starts, iterations and convergence of the variational fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.ascent import EMPTY, CoordinateAscent, Stop
from glfm_cli.latent.iqgme.coefficients import stick_evidence
from glfm_cli.latent.iqgme.deviations import TaskDeviations
from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.factors import FactorExperts
from glfm_cli.latent.iqgme.forms import Form, Opening, forms_of, local_step
from glfm_cli.latent.iqgme.local import Local
from glfm_cli.latent.iqgme.prior import IqgmeConfig
from glfm_cli.latent.iqgme.rows import Rows

CERTAIN = 0.9  # responsibility of the expert of a row's cluster, at the start
APART = 3.0  # standard deviations of all features between the labels of clusters by label
# How often the number of experts is halved for that of clusters; whether labels keep rows apart;
# whether weights are free at first: where their prior is inferred from the beginning, it may take
# small first weights for a sign that those of all experts are alike, and keep them so.
# Few clusters that know nothing of labels win by the bound where features are many, and rank worst.
STARTS = (
    (0, False, False), (3, True, True), (1, True, True), (2, True, False),
    (1, False, False), (0, True, True), (2, False, True), (3, True, False),
)  # fmt: skip
LLOYD = 15  # iterations of k-means, which only starts the fit
ROUGH = 10.0  # times the tolerance, with which starts that are not the best may end
FREE, WEAK = 10, 0.1  # iterations of a free start, and the precision of weights in them

Watch = Callable[[int, int, float], None]  # start, iteration, bound


@dataclass(eq=False)
class Start(CoordinateAscent):
    """One start under way, of one table."""

    local: Local

    def _renew(self, data: Rows, form: Form, pool: ThreadPoolExecutor | None) -> float:
        self.sums = local_step(form, data, self.experts, self.local, pool)
        return float(self.sums.log_norm) + float(self.experts.bound(form.prior))

    def _update(self, form: Form, s: Any) -> None:
        """Update the experts, in the order of their sizes if that raises the bound."""
        alpha = self.experts.alpha
        order = np.argsort(-s.n, kind="stable")
        if stick_evidence(s.n[order], alpha) > stick_evidence(s.n, alpha):
            s = self._keep(s, order)
        # Empty experts but one cost time and, for the uncertainty of what they might be, bound.
        kept = int(np.max(np.flatnonzero(s.n > EMPTY), initial=0)) + 2
        if kept < s.n.size:
            s = self._keep(s, np.arange(kept))
        self.experts.update(form.prior, s, hold=len(self.bounds) < self.free)

    def _keep(self, s: Any, order: Array) -> Any:
        """Keep some experts, in another order; return their sums."""
        self.local, self.experts = self.local.ordered(order), self.experts.ordered(order)
        return s.ordered(order)

    def _shares(self) -> Array:
        return self.local.rho

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


@dataclass(frozen=True, eq=False)
class Member:
    """One of the fits that predict together.

    weight : of its predictions; those of all members add up to 1
    shares : (J, H) of the experts in each of J tasks, None for one task
    own : rules of the tasks' own, None where all have those of the experts
    """

    experts: Experts | FactorExperts
    weight: float
    shares: Array | None = None
    own: TaskDeviations | None = None

    def of_task(self, j: int | None) -> tuple[Experts | FactorExperts, Array]:
        """Return the experts as task j, None for an unknown one, has them, and their shares."""
        q, own = self.experts, self.own
        assert self.shares is not None
        if own is not None:
            q = q.with_rules(*own.seen(q.rules, j))
        return q, q.pi if j is None else self.shares[j]


@dataclass(frozen=True, eq=False)
class Fitted:
    """The best of several starts, and those that predict with it.

    members : the best first
    rho : (H, n) responsibilities of the best for the rows it was fitted to
    bounds : the bound after every iteration of the best start
    ends : the bound that each start reached; NaN where it was not made
    converged : whether the best met the tolerance
    """

    members: tuple[Member, ...]
    rho: Array
    bounds: Array
    ends: Array
    converged: bool

    @property
    def experts(self) -> Experts | FactorExperts:
        """Return q of the best start."""
        return self.members[0].experts


def fit_experts(
    rows: Rows,
    config: IqgmeConfig,
    streams: list[np.random.Generator],
    *,
    pool: ThreadPoolExecutor | None = None,
    stop: Stop | None = None,
    watch: Watch | None = None,
) -> Fitted:
    """Return the mixtures with the best bounds among starts, one from each random stream.

    Parameters
    ----------
    rows : Rows
    config : IqgmeConfig
    streams : list of Generator
    pool : ThreadPoolExecutor, optional
        Works on batches of rows; the result does not depend on it.
    stop : callable, optional
        Asked after every iteration whether to end early; the first start always makes one.
    watch : callable, optional
        Told start, iteration and bound after every iteration.

    Raises
    ------
    NumericalError
        The numbers broke down.
    """
    forms = forms_of(config, [rows])
    make = partial(begin, rows, config=config)
    run = partial(Start.run, data=rows, pool=pool)
    found, ends = successive_halving(make, run, forms, config, streams, stop, watch)
    weights = weights_of([start.bounds[-1] for start in found], forms, rows.n_label)
    members = tuple(Member(start.experts, w) for start, w in zip(found, weights, strict=True))
    best = found[0]
    return Fitted(members, best.local.rho, np.array(best.bounds), ends, best.converged)


def weights_of(bounds: Sequence[float], forms: Sequence[Form], n_label: int) -> list[float]:
    """Return the weights of fits of these bounds: exp(bound / number of numbers of an expert).

    What a bound leaves out of the log evidence grows with the numbers whose dependence q leaves
    out, so that differences no larger than their number say little of which fit is better.
    """
    slack = max(form.numbers(n_label) for form in forms)
    weight = np.exp((np.array(bounds) - max(bounds)) / slack)
    return [float(w) for w in weight / weight.sum()]


class Runs(Protocol):
    """A start under way."""

    bounds: list[float]
    quiet: int


OneStart = TypeVar("OneStart", bound=Runs)


def successive_halving(
    make: Callable[..., OneStart],
    run: Callable[..., None],
    forms: Sequence[Form],
    config: IqgmeConfig,
    streams: list[np.random.Generator],
    stop: Stop | None,
    watch: Watch | None,
    worth: Callable[..., float] | None = None,
) -> tuple[list[OneStart], Array]:
    """Return the starts run to their end, the best first, and the bounds that all reached.

    Every start makes `config.short` iterations. Of each form the better half goes on, most of the
    way, and the best of them until it has converged; or, where one is to predict alone, the better
    half of all goes on for twice as many iterations, and so on.

    Parameters
    ----------
    make : callable
        Given `form`, `rng` and its place `i`, returns a start.
    run : callable
        Given a start and `form`, `iterations`, `stop` and `watch`, lets it go on.
    forms : sequence of Form
        The first starts are of the first form, and so on.
    worth : callable, optional
        Given a start and `form`, by what starts are compared; the bound if left out.

    The bounds of starts that were not made are NaN.
    """
    n = len(streams)
    ends, values = np.full(n, np.nan), np.full(n, np.nan)
    alive: dict[int, OneStart] = {}

    def form_at(i: int) -> int:
        return i * len(forms) // n

    def go_on(i: int, iterations: int, config: IqgmeConfig = config) -> None:
        told = None if watch is None else partial(watch, i)
        most = min(iterations, config.iterations)
        run(alive[i], form=forms[form_at(i)], config=config, iterations=most, stop=stop, watch=told)
        ends[i] = alive[i].bounds[-1]
        values[i] = ends[i] if worth is None else worth(alive[i], form=forms[form_at(i)])

    def better(among: list[int]) -> list[int]:
        return sorted(among, key=lambda i: -values[i])[: (len(among) + 1) // 2]

    for i, rng in enumerate(streams):
        if alive and stop is not None and stop():
            break
        alive[i] = make(form=forms[form_at(i)], rng=rng, i=i)
        go_on(i, config.short)
    if config.average:
        of_form = [[i for i in alive if form_at(i) == f] for f in range(len(forms))]
        left = [i for among in of_form for i in better(among)]
    else:
        left, budget = list(alive), config.short
        while len(left) > 1:
            left, budget = better(left), 2 * budget
            for i in left if len(left) > 1 else []:
                go_on(i, budget)
    rough = replace(config, tolerance=ROUGH * config.tolerance)
    for i in left if len(left) > 1 else []:
        go_on(i, config.iterations, rough)
    best = max(left, key=lambda i: float(values[i]))
    alive[best].quiet = 0
    go_on(best, config.iterations)
    return [alive[i] for i in sorted(left, key=lambda i: -values[i])], ends


# ------------------------------------------------------------------------------------ starts


def begin(rows: Rows, form: Form, config: IqgmeConfig, rng: np.random.Generator, i: int) -> Start:
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
    tables: Sequence[Rows], x: Array, k: int, rng: np.random.Generator, by_label: bool
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
