"""A table as the mixture sees it, its rows grouped by what is known of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm_cli.latent.iqgme.truncation import Truncation

Array = NDArray[Any]

CHUNK = 512  # rows of one group that are worked on together
BATCH = 4096  # rows whose statistics are summed before they join the others'


@dataclass(frozen=True, eq=False)
class Half:
    """A discrete feature: of the columns `at`, plus unit noise, `what` is known.

    at : (A,) latent columns;  seen : (n,) bool, rows where it is observed
    """

    at: Array
    seen: Array
    what: Truncation


@dataclass(frozen=True, eq=False)
class Group:
    """Rows of one pattern.

    rows : (b,) which;  known : (o,) columns with a value;  gaps : (c,) the other columns
    noisy : (c,) float64, 1 at gaps whose noisy version is half known
    halves : which discrete features are observed;  labelled : whether the label is
    """

    rows: Array
    known: Array
    gaps: Array
    noisy: Array
    halves: tuple[int, ...]
    labelled: bool


@dataclass(frozen=True, eq=False)
class Rows:
    """What is known of n rows.

    x : (n, P) float64, standardised, 0 where not known
    known : (n, P) bool
    halves : discrete features
    label : what is known of the label's K variables, None where there is no label at all
    labelled : (n,) bool
    batches : groups of rows that are worked on together, in a fixed order
    """

    x: Array
    known: Array
    label: Truncation | None = None
    labelled: Array = field(default_factory=lambda: np.zeros(0, dtype=bool))
    halves: tuple[Half, ...] = ()
    batches: tuple[tuple[Group, ...], ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.label is None:
            object.__setattr__(self, "labelled", np.zeros(len(self.x), dtype=bool))
        object.__setattr__(self, "batches", _batches(self))

    @property
    def n_features(self) -> int:
        """Return P."""
        return int(self.x.shape[1])

    @property
    def n_label(self) -> int:
        """Return K."""
        return 0 if self.label is None else self.label.n_latent

    def without_label(self) -> Rows:
        """Return the same rows as if nothing were known of their labels."""
        return Rows(self.x, self.known, halves=self.halves)


def _batches(rows: Rows) -> tuple[tuple[Group, ...], ...]:
    """Return the groups, at most about BATCH rows together."""
    flags = np.column_stack([rows.known, *(half.seen for half in rows.halves), rows.labelled])
    packed = np.packbits(flags, axis=1)
    _, first, of_row = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(of_row.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(of_row.ravel(), minlength=first.size))
    batches: list[tuple[Group, ...]] = []
    current: list[Group] = []
    size = 0
    for pattern, end in enumerate(ends):
        start = ends[pattern - 1] if pattern else 0
        members = order[start:end]
        for at in range(0, members.size, CHUNK):
            current.append(_group(rows, members[at : at + CHUNK], int(first[pattern])))
            size += current[-1].rows.size
            if size >= BATCH:
                batches.append(tuple(current))
                current, size = [], 0
    if current:
        batches.append(tuple(current))
    return tuple(batches)


def _group(rows: Rows, members: Array, example: int) -> Group:
    seen = [i for i, half in enumerate(rows.halves) if half.seen[example]]
    noisy = np.zeros(rows.n_features)
    for i in seen:
        noisy[rows.halves[i].at] = 1.0
    gaps = np.flatnonzero(~rows.known[example])
    known = np.flatnonzero(rows.known[example])
    labelled = bool(rows.labelled[example])
    return Group(members, known, gaps, noisy[gaps], tuple(seen), labelled)
