"""A table as the mixture sees it, its rows grouped by what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.iqgme.level_data import LevelData

BLOCK = 1024  # rows that are worked on together
RUN = 256  # rows that are worked on together under factors
COVARIANCES = 2**16  # numbers in the covariances of a block's gaps, under one expert


@dataclass(frozen=True, eq=False)
class Half:
    """A feature of levels: they are of the columns `at`, plus unit noise.

    at : (A,) latent columns;  seen : (n,) bool, rows where it is observed
    """

    at: Array
    seen: Array
    what: LevelData


@dataclass(frozen=True, eq=False)
class Block:
    """Rows that are worked on together; those of one pattern follow one another.

    rows : (b,) which
    start, gap_start, cov_start : (G + 1,) where each pattern's rows, gaps and covariances begin
    gaps : (sum of c,) columns without a value
    noisy : (sum of c,) 1 at those whose noisy version is half known
    labelled : (G,) uint8, whether a pattern has a label
    with_label : (l,) places in the block of the rows with one
    noise : (b, P) `noisy` of every row, None where it is 0
    halves : for each discrete feature, the places of the rows where it is observed
    """

    rows: Array
    start: Array
    missing_start: Array
    missing: Array
    cov_start: Array
    noisy: Array
    labelled: Array
    with_label: Array
    noise: Array | None
    halves: tuple[Array, ...]

    @property
    def largest(self) -> int:
        """Return the most gaps that a row has."""
        return int(np.max(np.diff(self.missing_start), initial=0))


@dataclass(frozen=True, eq=False)
class RowRun:
    """Rows that are worked on together where gaps need no grouping.

    rows : (b,) which
    known : (b, P) float64, 1 where known;  x : (b, P), 0 where not
    half : (b, Q) 1 where one of the Q columns of discrete features is half known
    halves : for each discrete feature, the places of its rows, and its columns among the Q
    with_label : (l,) places of the rows with a label
    """

    rows: Array
    known: Array
    x: Array
    half: Array
    halves: tuple[tuple[Array, slice], ...]
    with_label: Array


@dataclass(frozen=True, eq=False)
class KnownRows:
    """What is known of n rows.

    x : (n, P) float64, standardised; where not known, what the fit starts from
    known : (n, P) bool
    halves : discrete features
    label : what is known of the label's K variables, None where there is no label at all
    labelled : (n,) bool
    """

    x: Array
    known: Array
    label: LevelData | None = None
    labelled: Array = field(default_factory=lambda: np.zeros(0, dtype=bool))
    halves: tuple[Half, ...] = ()

    def __post_init__(self) -> None:
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
    def half_at(self) -> Array:
        """Return the latent columns of discrete features."""
        return np.concatenate([np.empty(0, dtype=np.intp), *(half.at for half in self.halves)])

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

    def seen(self, block: Block) -> Array:
        """Return the known features (b, P) of a block, 0 where not known."""
        return np.where(self.known[block.rows], self.x[block.rows], 0.0)

    def without_label(self) -> KnownRows:
        """Return the same rows as if nothing were known of their labels."""
        return KnownRows(self.x, self.known, halves=self.halves)


def _blocks(rows: KnownRows) -> tuple[Block, ...]:
    """Return the blocks, rows with a label after those without one."""
    flags = np.column_stack([rows.labelled, rows.known, *(half.seen for half in rows.halves)])
    packed = np.packbits(flags, axis=1)
    _, first, of_row = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(of_row.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(of_row.ravel(), minlength=first.size))
    square = (~rows.known[first]).sum(axis=1) ** 2
    blocks: list[Block] = []
    members: list[Array] = []
    size = held = 0
    for pattern, end in enumerate(ends):
        at = int(ends[pattern - 1]) if pattern else 0
        while at < end:
            if members and (size >= BLOCK or held + square[pattern] > COVARIANCES):
                blocks.append(_block(rows, members))
                members, size, held = [], 0, 0
            members.append(order[at : min(at + BLOCK - size, end)])
            at += members[-1].size
            size += members[-1].size
            held += int(square[pattern])
    if members:
        blocks.append(_block(rows, members))
    return tuple(blocks)


def _run(rows: KnownRows, start: int) -> RowRun:
    """Return the rows from `start` on."""
    at = np.arange(start, min(start + RUN, len(rows.x)))
    half = np.zeros((at.size, rows.half_at.size))
    halves, first = [], 0
    for one in rows.halves:
        columns = slice(first, first + one.at.size)
        half[:, columns] = one.seen[at, None]
        halves.append((np.flatnonzero(one.seen[at]), columns))
        first += one.at.size
    known = rows.known[at].astype(np.float64)
    with_label = np.flatnonzero(rows.labelled[at])
    return RowRun(at, known, rows.x[at] * known, half, tuple(halves), with_label)


def _block(rows: KnownRows, members: list[Array]) -> Block:
    """Return a block of patterns, given the rows of each."""
    every = np.concatenate(members)
    missing = [np.flatnonzero(~rows.known[one[0]]) for one in members]
    noise = np.zeros((every.size, rows.n_features))
    seen = tuple(np.flatnonzero(half.seen[every]) for half in rows.halves)
    for half, places in zip(rows.halves, seen, strict=True):
        noise[places[:, None], half.at] = 1.0
    start = np.cumsum([0, *(one.size for one in members)])
    count = np.array([one.size for one in missing])
    return Block(
        rows=every,
        start=start,
        missing_start=np.append(0, np.cumsum(count)),
        missing=np.concatenate(missing),
        cov_start=np.append(0, np.cumsum(count**2)),
        noisy=np.concatenate([noise[i, at] for i, at in zip(start[:-1], missing, strict=True)]),
        labelled=rows.labelled[[one[0] for one in members]].astype(np.uint8),
        with_label=np.flatnonzero(rows.labelled[every]),
        noise=noise if rows.halves else None,
        halves=seen,
    )
