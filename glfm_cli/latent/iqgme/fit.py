"""Starts, iterations and convergence of the variational fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from glfm_cli.errors import NumericalError
from glfm_cli.latent.iqgme.experts import Experts
from glfm_cli.latent.iqgme.factors import FactorExperts
from glfm_cli.latent.iqgme.forms import Form, form_of, local_step
from glfm_cli.latent.iqgme.local import Local
from glfm_cli.latent.iqgme.prior import IqgmeConfig
from glfm_cli.latent.iqgme.rows import Rows
from glfm_cli.latent.iqgme.rules import stick_evidence

Array = NDArray[Any]

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
EMPTY = 1e-4  # rows of an expert that has none
FREE, WEAK = 10, 0.1  # iterations of a free start, and the precision of weights in them
FALL = 1e-8  # relative fall of the bound that is more than rounding

Stop = Callable[[], bool]
Watch = Callable[[int, int, float], None]  # start, iteration, bound


@dataclass(eq=False)
class Start:
    """One start under way; q of the rows is always renewed for its experts.

    free : iterations in which (zeta, lam) stay as they were at the start
    """

    experts: Any  # of the form's kind, as the sums
    local: Local
    sums: Any = None
    bounds: list[float] = field(default_factory=list)
    quiet: int = 0  # iterations, twice running, that hardly raised the bound
    free: int = 0

    @property
    def converged(self) -> bool:
        """Return whether the bound has stopped rising."""
        return self.quiet >= 2

    def run(
        self,
        rows: Rows,
        form: Form,
        config: IqgmeConfig,
        iterations: int,
        pool: ThreadPoolExecutor | None = None,
        stop: Stop | None = None,
        watch: Callable[[int, float], None] | None = None,
    ) -> None:
        """Iterate until so many iterations are made in all, it has converged, or `stop` says so."""
        while not self.converged and len(self.bounds) < iterations:
            if self.sums is not None:
                if stop is not None and stop():
                    return
                self._update(form, self.sums)
            self.sums = local_step(form, rows, self.experts, self.local, pool)
            bound = self.sums.log_norm + self.experts.bound(form.prior)
            rise = rise_of(self.bounds, bound)
            self.bounds.append(bound)
            still = rise < config.tolerance * abs(bound) and len(self.bounds) > self.free
            self.quiet = self.quiet + 1 if still else 0
            if watch is not None:
                watch(len(self.bounds), bound)

    def _update(self, form: Form, s: Any) -> None:
        """Update the experts, in the order of their sizes if that raises the bound."""
        alpha = self.experts.alpha
        order = np.argsort(-s.n, kind="stable")
        if stick_evidence(s.n[order], alpha) > stick_evidence(s.n, alpha):
            s, self.local = s.ordered(order), self.local.ordered(order)
            self.experts = self.experts.ordered(order)
        # Empty experts but one cost time and, for the uncertainty of what they might be, bound.
        kept = int(np.max(np.flatnonzero(s.n > EMPTY), initial=0)) + 2
        if kept < s.n.size:
            first = np.arange(kept)
            s, self.local = s.ordered(first), self.local.ordered(first)
            self.experts = self.experts.ordered(first)
        self.experts.update(form.prior, s, hold=len(self.bounds) < self.free)


def rise_of(bounds: list[float], bound: float) -> float:
    """Return how much the bound rose; NumericalError when it is no number or it fell."""
    if not np.isfinite(bound):
        raise NumericalError("the bound of the mixture of experts is not a finite number")
    if not bounds:
        return np.inf
    rise = bound - bounds[-1]
    if rise < -FALL * abs(bound):
        raise NumericalError(
            f"the bound of the mixture of experts fell from {bounds[-1]:.10g} to {bound:.10g}"
        )
    return rise


@dataclass(frozen=True, eq=False)
class Fitted:
    """The best of several starts.

    experts : q of what rows share;  rho : (H, n) responsibilities of the rows it was fitted to
    bounds : the bound after every iteration of the best start
    ends : the bound that each start reached; NaN where it was not made
    converged : whether the best met the tolerance
    """

    experts: Experts | FactorExperts
    rho: Array
    bounds: Array
    ends: Array
    converged: bool


def fit_experts(
    rows: Rows,
    config: IqgmeConfig,
    streams: list[np.random.Generator],
    *,
    pool: ThreadPoolExecutor | None = None,
    stop: Stop | None = None,
    watch: Watch | None = None,
) -> Fitted:
    """Return the mixture with the best bound among starts, one from each random stream.

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
    form = form_of(config, [rows])
    make = partial(begin, rows, form, config)
    run = partial(Start.run, rows=rows, form=form, config=config, pool=pool)
    best, ends = race(make, run, config, streams, stop, watch)
    return Fitted(best.experts, best.local.rho, np.array(best.bounds), ends, best.converged)


class Runs(Protocol):
    """A start under way."""

    bounds: list[float]


OneStart = TypeVar("OneStart", bound=Runs)


def race(
    make: Callable[[np.random.Generator, int], OneStart],
    run: Callable[..., None],
    config: IqgmeConfig,
    streams: list[np.random.Generator],
    stop: Stop | None,
    watch: Watch | None,
) -> tuple[OneStart, Array]:
    """Return the start with the best bound, and the bounds that all reached (NaN: not made).

    Every start makes `config.short` iterations; the better half goes on for twice as many, and so
    on, and the last until it has converged.

    Parameters
    ----------
    make : callable
        Given a random stream and its place, returns a start.
    run : callable
        Given a start and `iterations`, `stop` and `watch`, lets it go on.
    """
    ends = np.full(len(streams), np.nan)
    alive: list[tuple[int, OneStart]] = []

    def go_on(i: int, start: OneStart, iterations: int) -> None:
        told = None if watch is None else partial(watch, i)
        run(start, iterations=min(iterations, config.iterations), stop=stop, watch=told)
        ends[i] = start.bounds[-1]

    for i, rng in enumerate(streams):
        if alive and stop is not None and stop():
            break
        alive.append((i, make(rng, i)))
        go_on(*alive[-1], config.short)
    budget = config.short
    while len(alive) > 1:
        alive = sorted(alive, key=lambda one: -one[1].bounds[-1])[: (len(alive) + 1) // 2]
        budget *= 2
        for i, start in alive[: len(alive) if len(alive) > 1 else 0]:
            go_on(i, start, budget)
    go_on(*alive[0], config.iterations)
    return alive[0][1], ends


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
    q, (local,) = form.begin([rows], [rho], weak=WEAK if free else None)
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
