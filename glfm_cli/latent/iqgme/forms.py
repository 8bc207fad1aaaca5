"""The two forms that experts come in, as starts and iterations see them.

`Full` has a covariance of all features in every expert, `Factored` one of low rank plus a diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from glfm_cli.arrays import Array, log_sum
from glfm_cli.latent.iqgme.experts import Experts, Statistics
from glfm_cli.latent.iqgme.factor_rows import FactorRows, FactorTerms, place_run, sum_run
from glfm_cli.latent.iqgme.factors import FactorExperts, FactorSums
from glfm_cli.latent.iqgme.gaps import Gaps
from glfm_cli.latent.iqgme.loadings import one_expert, split, used
from glfm_cli.latent.iqgme.local import (
    Completed,
    Local,
    Terms,
    complete_block,
    over,
    sum_block,
)
from glfm_cli.latent.iqgme.merges import candidates
from glfm_cli.latent.iqgme.prior import FactorPrior, IqgmeConfig, Prior, forms_for
from glfm_cli.latent.iqgme.rows import Block, KnownRows, RowRun
from glfm_cli.latent.iqgme.whole_rows import SeenRows, place_seen, sum_seen

ROWS_EACH = 10  # of a cluster of rows with many features, at the start
ROUNDS = 40  # in which the one expert settles
TRIM = 10  # rounds after which factors without use are dropped


@dataclass(frozen=True, eq=False)
class Opening:
    """What a start begins with.

    shares : responsibilities (H, n) of each table's rows
    counts : (H,) what experts' sticks count, if not rows
    weak : precision of the weights' prior, if not the form's own
    """

    shares: Sequence[Array]
    counts: Array | None = None
    weak: float | None = None


class Form(Protocol):
    """What starts and iterations need; experts, sums and blocks are of the form's own kinds.

    prior : of what rows share
    """

    prior: Any

    def clusters(self, experts: int, n: int, halvings: int) -> int:
        """Return how many clusters n rows are split into at a start, of at most `experts`."""

    def view(self, x: Array) -> Array:
        """Return what (n, .) the completed rows are clustered by."""

    def begin(self, tables: Sequence[KnownRows], opening: Opening) -> tuple[Any, list[Local]]:
        """Return experts, and q of each table's rows."""

    def blocks(self, rows: KnownRows) -> Sequence[Any]:
        """Return rows that are worked on together."""

    def terms(self, q: Any, narrow: bool = False) -> Any:
        """Return what rows need of the experts, with `constant` (H,) terms of log rho.

        narrow : where it saves time, rows keep to the experts that they have a share of
        """

    def with_rules(self, q: Any, terms: Any, mw: Array, Sw: Array) -> tuple[Any, Any]:
        """Return experts and what rows need of them with other rules, those of a task."""

    def zero(self, q: Any) -> Any:
        """Return sums over no rows."""

    def place(self, rows: KnownRows, block: Any, q: Any, terms: Any, local: Local) -> Any:
        """Return q of a block's rows, with `log_rho` (H, b), renewing what `local` keeps."""

    def inputs(self, placed: Any) -> Array:
        """Return what rules act on (H, b, F): features, or the factors behind them."""

    def add(self, s: Any, q: Any, block: Any, placed: Any, rho: Array, local: Local) -> None:
        """Add a block's rows to sums; rho (H, b)."""

    def numbers(self, n_label: int) -> int:
        """Return how many numbers describe an expert of labels of so many variables."""

    def candidates(
        self, q: Any, s: Any, shares: Sequence[Array], least: float
    ) -> list[tuple[int, int]]:
        """Return pairs of experts that could be one, the best first; see `merges`."""


class Full:
    """Experts with covariances of all features."""

    def __init__(self, config: IqgmeConfig, n_features: int) -> None:
        self.prior = Prior.of(config, n_features)

    def clusters(self, experts: int, n: int, halvings: int) -> int:
        """Return as many as there may be experts, halved."""
        return max(1, min(experts >> halvings, n))

    def view(self, x: Array) -> Array:
        """Return the rows as they are."""
        return x

    def begin(self, tables: Sequence[KnownRows], opening: Opening) -> tuple[Experts, list[Local]]:
        """Return experts of completed rows, gaps at the mean."""
        K, H = tables[0].n_label, len(opening.shares[0])
        q, kept = Experts.from_prior(self.prior, H, K), []
        total = self.zero(q)
        for rows, rho in zip(tables, opening.shares, strict=True):
            local, sums = first_q(rows, H, rho)
            kept.append(local)
            total.add(sums)
        if opening.weak is not None:
            q.b[:] = q.a / opening.weak
        q.update(self.prior, total, opening.counts, hold=opening.weak is not None)
        return q, kept

    def blocks(self, rows: KnownRows) -> Sequence[Block]:
        """Return rows grouped by their gaps."""
        return rows.blocks

    def terms(self, q: Experts, narrow: bool = False) -> Terms:
        """Return what rows need of the experts."""
        return Terms.of(q, narrow)

    def with_rules(self, q: Experts, terms: Terms, mw: Array, Sw: Array) -> tuple[Experts, Terms]:
        """Return experts and what rows need of them with other rules."""
        q = q.with_rules(mw, Sw)
        return q, replace(terms, WW=q.WW)

    def zero(self, q: Experts) -> Statistics:
        """Return sums over no rows."""
        return Statistics.zero(q.H, q.P, q.K)

    def place(
        self, rows: KnownRows, block: Block, q: Experts, terms: Terms, local: Local
    ) -> Completed | SeenRows:
        """Return q of a block's rows."""
        work = place_seen if block.whole else complete_block
        return work(rows, block, q, terms, local)

    def inputs(self, placed: Completed | SeenRows) -> Array:
        """Return what rules act on (H, b, P)."""
        return placed.x

    def add(
        self, s: Statistics, q: Experts, block: Block, placed: Any, rho: Array, local: Local
    ) -> None:
        """Add a block's rows to sums."""
        work = sum_seen if block.whole else sum_block
        work(s, block, placed, rho, local.t[:, block.rows])

    def numbers(self, n_label: int) -> int:
        """Return how many numbers describe a centre, a covariance and a rule."""
        P = self.prior.m0.size
        return int(P * (P + 3) // 2 + n_label * (P + 1))

    def candidates(
        self, q: Experts, s: Statistics, shares: Sequence[Array], least: float
    ) -> list[tuple[int, int]]:
        """Return pairs of experts that could be one."""
        return candidates(q, self.prior, s, shares, least)


class Factored:
    """Experts whose features depend on `factors` factors at most.

    All starts begin with the factors that one expert of all rows settles on, without those that it
    does not use, and look for clusters among its rows' factors.
    """

    def __init__(self, config: IqgmeConfig, tables: Sequence[KnownRows], factors: int) -> None:
        P = tables[0].n_features
        self.prior = FactorPrior.of(config, P, factors)
        q = one_expert(self.prior, np.vstack([rows.x for rows in tables]), tables[0].n_label)
        every = [np.ones((1, len(rows.x))) for rows in tables]
        kept = [self._local(rows, rho) for rows, rho in zip(tables, every, strict=True)]
        for i in range(ROUNDS):
            total = self.zero(q)
            for rows, local in zip(tables, kept, strict=True):
                total.add(local_step(self, rows, q, local))
            q.update(self.prior, total)
            if i % TRIM == TRIM - 1 and used(q).size < q.L:
                q = q.of_factors(used(q))
                self.prior = FactorPrior.of(config, P, q.L)
        self._one, terms = q, self.terms(q)
        self._s = np.vstack([
            self.place(rows, run, q, terms, local).s[0]
            for rows, local in zip(tables, kept, strict=True)
            for run in rows.runs
        ])  # fmt: skip

    def clusters(self, experts: int, n: int, halvings: int) -> int:
        """Return so few, halved, that a cluster's covariance of factors is told from its noise."""
        return max(1, min(experts, n // ROWS_EACH) >> halvings)

    def view(self, x: Array) -> Array:
        """Return the rows' factors, each of variance 1."""
        return np.asarray(self._s / self._s.std(axis=0))

    def begin(
        self, tables: Sequence[KnownRows], opening: Opening
    ) -> tuple[FactorExperts, list[Local]]:
        """Return experts with the factors of one, at clusters of the rows."""
        rho = np.hstack(list(opening.shares))
        q = split(self.prior, self._one, self._s, rho)
        if opening.weak is not None:
            q.core.b = np.full(q.L + 1, q.core.a / opening.weak)
        counts = rho.sum(axis=1) if opening.counts is None else opening.counts
        q.core.update_sticks(self.prior.core, counts)
        q.core.refresh()
        every = zip(tables, opening.shares, strict=True)
        return q, [self._local(rows, share) for rows, share in every]

    def _local(self, rows: KnownRows, rho: Array) -> Local:
        return Local(rho, np.tile(rows.first_scores, (len(rho), 1, 1)))

    def blocks(self, rows: KnownRows) -> Sequence[RowRun]:
        """Return rows in their own order."""
        return rows.runs

    def terms(self, q: FactorExperts, narrow: bool = False) -> FactorTerms:
        """Return what rows need of the experts, every one."""
        return FactorTerms.of(q)

    def with_rules(
        self, q: FactorExperts, terms: FactorTerms, mw: Array, Sw: Array
    ) -> tuple[FactorExperts, FactorTerms]:
        """Return experts and what rows need of them with other rules."""
        q = q.with_rules(mw, Sw)
        return q, replace(terms, core=replace(terms.core, WW=q.core.WW))

    def zero(self, q: FactorExperts) -> FactorSums:
        """Return sums over no rows."""
        return FactorSums.zero(q.H, q.P, q.L, q.K)

    def place(
        self, rows: KnownRows, block: RowRun, q: FactorExperts, terms: FactorTerms, local: Local
    ) -> FactorRows:
        """Return q of a run's rows."""
        return place_run(rows, block, q, terms, local)

    def inputs(self, placed: FactorRows) -> Array:
        """Return the factors (H, b, L)."""
        return placed.s

    def add(
        self,
        s: FactorSums,
        q: FactorExperts,
        block: RowRun,
        placed: FactorRows,
        rho: Array,
        local: Local,
    ) -> None:
        """Add a run's rows to sums."""
        sum_run(s, block, placed, rho, local.t[:, block.rows])

    def numbers(self, n_label: int) -> int:
        """Return how many describe a centre, a covariance of rank L plus a diagonal, and a rule."""
        P, L = self.prior.P, self.prior.L
        return P * (L + 2) + n_label * (L + 1)

    def candidates(
        self, q: FactorExperts, s: FactorSums, shares: Sequence[Array], least: float
    ) -> list[tuple[int, int]]:
        """Return pairs of experts that could be one."""
        return candidates(q.core, self.prior.core, s.core, shares, least)


def labelled_in(tables: Sequence[KnownRows]) -> int:
    """Return how many rows have labels, or how many there are where none has one."""
    return sum(int(one.labelled.sum()) for one in tables) or sum(len(one.x) for one in tables)


def forms_of(config: IqgmeConfig, tables: Sequence[KnownRows]) -> list[Form]:
    """Return the forms that a configuration asks for, or those that suit the tables."""
    P = tables[0].n_features
    every = forms_for(config, sum(len(one.x) for one in tables), P, labelled_in(tables))
    return [Factored(config, tables, L) if L else Full(config, P) for L in every]


def local_step(
    form: Form,
    rows: KnownRows,
    q: Any,
    local: Local,
    pool: ThreadPoolExecutor | None = None,
    *,
    narrow: bool = False,
) -> Any:
    """Update q of all rows in place and return the sums that the experts' updates need.

    Blocks of rows are worked on by the pool's threads and summed in their order, so that the
    result does not depend on their number.
    """
    terms = form.terms(q, narrow)

    def work(block: Any) -> Any:
        s = form.zero(q)
        placed = form.place(rows, block, q, terms, local)
        norm = log_sum(placed.log_rho, axis=0)
        rho = np.exp(placed.log_rho - norm)
        local.rho[:, block.rows] = rho
        form.add(s, q, block, placed, rho, local)
        s.log_norm += float(norm.sum())
        return s

    total = form.zero(q)
    for part in over(pool, work, form.blocks(rows)):
        total.add(part)
    return total


def first_q(rows: KnownRows, H: int, rho: Array) -> tuple[Local, Statistics]:
    """Return q of rows given their responsibilities (H, n), gaps at the mean, and its sums."""
    P, K = rows.n_features, rows.n_label
    local = Local(rho, np.tile(rows.first_scores, (H, 1, 1)))
    total = Statistics.zero(H, P, K)
    unit, nothing = np.tile(np.eye(P), (H, 1, 1)), np.zeros((H, P, P))
    for block in rows.blocks:
        x = np.broadcast_to(rows.x[block.rows], (H, block.rows.size, P))
        none = np.zeros_like(block.labelled)
        missing = Gaps.of(block, unit, nothing, none)
        done = Completed(x, missing, np.empty(0))
        sum_block(total, block, done, rho[:, block.rows], local.t[:, block.rows])
    return local, total
