"""A table as the mixture sees it, its rows grouped by what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.level_data import LevelData

BLOCK = 1024  # rows that are worked on together
RUN = 256  # rows that are worked on together under factors
COVARIANCES = 2**16  # numbers in the covariances of a block's gaps, under one expert
PRODUCTS = 2**23  # products of pairs that may be kept of a table's rows without gaps


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that are worked on together; those of one pattern follow one another.

    rows : (b,) which
    start, gap_start, cov_start : (G + 1,) where each pattern's rows, gaps and covariances begin
    missing : (sum of c,) columns that are not known
    noisy : (sum of c,) precision of what is told of them, 0 where nothing is
    labelled : (G,) uint8, whether a pattern has a label
    with_label : (l,) places in the block of the rows with one
    x, known : (N, P) of all rows, values and whether they are known
    noise, told : (b, P) `noisy` of every row, and what is told with it, 0 where nothing is; None
        where nothing is of any
    whole : whether no row has a gap, and products of its cells are kept
    """

    rows: Array
    start: Array
    missing_start: Array
    missing: Array
    cov_start: Array
    noisy: Array
    labelled: Array
    with_label: Array
    x: Array
    known: Array
    noise: Array | None
    told: Array | None
    whole: bool

    @cached_property
    def seen(self) -> Array:
        """Return what is seen (b, P), 0 at gaps."""
        return np.where(self.known[self.rows], self.x[self.rows], 0.0)

    @cached_property
    def with_one(self) -> Array:
        """Return what is seen, then 1 (b, P + 1)."""
        return np.hstack([self.seen, np.ones((self.rows.size, 1))])

    @cached_property
    def products(self) -> Array:
        """Return the products of all pairs of that (b, .), in the order of upper triangles."""
        i, j = np.triu_indices(self.with_one.shape[1])
        return np.ascontiguousarray(self.with_one[:, i] * self.with_one[:, j])

    @cached_property
    def pairs(self) -> Array:
        """Return which number of a matrix (P, P) each of the patterns' covariances is about."""
        P, gaps = self.x.shape[1], np.split(self.missing, self.missing_start[1:-1])
        return np.concatenate([(m[:, None] * P + m).ravel() for m in gaps])

    @property
    def parts(self) -> list[tuple[slice, bool]]:
        """Return the rows without a label, which come first if no row has a gap, and those with."""
        first = self.rows.size - self.with_label.size
        every = [(slice(0, first), False), (slice(first, None), True)]
        return [(at, labelled) for at, labelled in every if self.rows[at].size]

    @property
    def largest(self) -> int:
        """Return the most gaps that a row has."""
        return int(np.max(np.diff(self.missing_start), initial=0))

    @cached_property
    def log_noise(self) -> Array:
        """Return the sum of the log precisions of what each row is told with noise (b,)."""
        if self.noise is None:
            return np.zeros(self.rows.size)
        return np.log(np.where(self.noise > 0.0, self.noise, 1.0)).sum(axis=1)

    @cached_property
    def n_told(self) -> Array:
        """Return of how many features each row says something (b,)."""
        known = self.known[self.rows]
        return (known if self.noise is None else known | (self.noise > 0.0)).sum(axis=1)

    @property
    def pull(self) -> Array | float:
        """Return what is told with noise, over its variance (b, P)."""
        return 0.0 if self.noise is None or self.told is None else self.told * self.noise

    def misfit(self, x: Array) -> Array | float:
        """Return the squares (H, b) of what is told, less x, over its variance."""
        if self.noise is None or self.told is None:
            return 0.0
        away = x - self.told
        return np.einsum("hbp,bp->hb", away * away, self.noise)


@dataclass(frozen=True, eq=False)
class RowRun:
    """Rows that are worked on together where gaps need no grouping.

    rows : (b,) which
    known : (b, P) float64, 1 where known;  x : (b, P), 0 where not
    with_label : (l,) places of the rows with a label
    """

    rows: Array
    known: Array
    x: Array
    with_label: Array


@dataclass(frozen=True, eq=False)
class KnownRows:
    """What is known of n rows.

    x : (n, P) float64, standardised; where not known, what the fit starts from
    known : (n, P) bool
    noise : (P,) variance with which a feature is seen: of levels, which experts would otherwise
        settle on with a density without end; 0 of numbers
    told, precision : (n, P) what is told, with which precision, of cells that are not known; 0
        where nothing is. None where nothing is of any
    label : what is known of the label's K variables, None where there is no label at all
    labelled : (n,) bool
    """

    x: Array
    known: Array
    label: LevelData | None = None
    labelled: Array = field(default_factory=lambda: np.zeros(0, dtype=bool))
    noise: Array = field(default_factory=lambda: np.zeros(0))
    told: Array | None = None
    precision: Array | None = None

    def __post_init__(self) -> None:
        if self.noise.size != self.x.shape[1]:
            object.__setattr__(self, "noise", np.zeros(self.x.shape[1]))
        if self.label is None:
            object.__setattr__(self, "labelled", np.zeros(len(self.x), dtype=bool))

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Return rows that are worked on together, those of a pattern side by side."""
        return _blocks(self)

    @cached_property
    def runs(self) -> tuple[RowRun, ...]:
        """Return rows that are worked on together, in their own order, whatever their gaps."""
        return tuple(_run(self, at) for at in range(0, len(self.x), RUN))

    @cached_property
    def first_scores(self) -> Array:
        """Return the label's variables (n, K) given the labels alone, 0 where these are missing."""
        t = np.zeros((len(self.x), self.n_label))
        at = np.flatnonzero(self.labelled)
        if self.label is not None and at.size:
            t[at] = self.label.expect(at, np.zeros((1, at.size, self.n_label)))[0][0]
        return t

    @property
    def n_features(self) -> int:
        """Return P."""
        return int(self.x.shape[1])

    @property
    def n_label(self) -> int:
        """Return K."""
        return 0 if self.label is None else self.label.n_latent

    def take(self, at: Array) -> KnownRows:
        """Return some rows as if nothing were known of their labels."""
        told, precision = (None if one is None else one[at] for one in (self.told, self.precision))
        return KnownRows(
            self.x[at], self.known[at], noise=self.noise, told=told, precision=precision
        )

    def without_label(self) -> KnownRows:
        """Return the same rows as if nothing were known of their labels."""
        return replace(self, label=None, labelled=np.zeros(0, dtype=bool))


def _blocks(rows: KnownRows) -> tuple[Block, ...]:
    """Return the blocks, rows without gaps last, with a label after those without one."""
    flags = np.column_stack([rows.labelled, rows.known])
    packed = np.packbits(flags, axis=1)
    if rows.precision is not None:  # rows of a pattern have one covariance
        packed = np.hstack([packed, rows.precision.view(np.uint8)])
    _, first, of_row = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(of_row.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(of_row.ravel(), minlength=first.size))
    square = (~rows.known[first]).sum(axis=1) ** 2
    no_gap = np.asarray(rows.known[first].all(axis=1))
    F = rows.x.shape[1] + 1
    keeps = int(rows.known.all(axis=1).sum()) * F * (F + 1) // 2 <= PRODUCTS
    blocks: list[Block] = []
    members: list[Array] = []
    size = held = 0
    was_whole = False
    for pattern in np.argsort(no_gap, kind="stable"):
        at, end = int(ends[pattern - 1]) if pattern else 0, ends[pattern]
        whole = bool(no_gap[pattern]) and keeps
        while at < end:
            full = size >= BLOCK or held + square[pattern] > COVARIANCES
            if members and (full or whole != was_whole):
                blocks.append(_block(rows, members, was_whole))
                members, size, held = [], 0, 0
            was_whole = whole
            members.append(order[at : min(at + BLOCK - size, end)])
            at += members[-1].size
            size += members[-1].size
            held += int(square[pattern])
    if members:
        blocks.append(_block(rows, members, was_whole))
    return tuple(blocks)


def _run(rows: KnownRows, start: int) -> RowRun:
    """Return the rows from `start` on."""
    at = np.arange(start, min(start + RUN, len(rows.x)))
    known = rows.known[at].astype(np.float64)
    with_label = np.flatnonzero(rows.labelled[at])
    return RowRun(at, known, rows.x[at] * known, with_label)


def _block(rows: KnownRows, members: list[Array], whole: bool) -> Block:
    """Return a block of patterns, given the rows of each."""
    every, first = np.concatenate(members), np.array([one[0] for one in members])
    pattern, missing = np.nonzero(~rows.known[first])
    noise = None if rows.precision is None else rows.precision[every]
    told = None if rows.told is None else rows.told[every]
    start = np.cumsum([0, *(one.size for one in members)])
    count = np.bincount(pattern, minlength=first.size)
    return Block(
        rows=every,
        start=start,
        missing_start=np.append(0, np.cumsum(count)),
        missing=np.ascontiguousarray(missing),
        cov_start=np.append(0, np.cumsum(count**2)),
        noisy=np.zeros(missing.size) if noise is None else noise[start[pattern], missing],
        labelled=rows.labelled[first].astype(np.uint8),
        with_label=np.flatnonzero(rows.labelled[every]),
        x=rows.x,
        known=rows.known,
        noise=noise,
        told=told,
        whole=whole,
    )
