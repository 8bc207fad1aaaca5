"""Cells of a sparse matrix by row or by column, and work on blocks of them in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array

BLOCK = 1 << 15  # cells that one job works on, about

HERE = np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class UnitCells:
    """The cells of every unit, a row or a column of the matrix.

    indptr : (n + 1,) int64, entries indptr[u] .. indptr[u + 1] - 1 belong to unit u
    index : (m,) int32, the other side's unit of each entry
    cell : (m,) int32, the entry's place in row order; empty where it is that
    cuts : ascending unit numbers, from 0 to n, between which the blocks lie
    """

    indptr: Array
    index: Array
    cell: Array
    cuts: tuple[int, ...]

    @classmethod
    def of(cls, unit: Array, index: Array, cell: Array, n: int) -> UnitCells:
        """Return the side of entries that are sorted by unit."""
        indptr = np.concatenate([[0], np.cumsum(np.bincount(unit, minlength=n))]).astype(np.int64)
        whole = np.arange(BLOCK, int(indptr[-1]), BLOCK)
        cuts = np.unique(np.concatenate([[0], np.searchsorted(indptr, whole), [n]]))
        index = index.astype(np.int32, copy=False)
        return cls(indptr, index, cell, tuple(int(cut) for cut in cuts))

    @property
    def n(self) -> int:
        """The number of units."""
        return int(self.indptr.size - 1)

    def blocks(self) -> Iterator[tuple[int, int]]:
        """Yield the first unit of every block and one past its last."""
        yield from zip(self.cuts[:-1], self.cuts[1:], strict=True)


Each = Callable[[UnitCells, Callable[[int, int], object]], None]


@contextmanager
def thread_pool(threads: int) -> Iterator[Each]:
    """Yield a function that calls `work(start, end)` for every block of a side.

    The calls run in up to `threads` threads and must not touch each other's units.
    """

    def one_by_one(side: UnitCells, work: Callable[[int, int], object]) -> None:
        for start, end in side.blocks():
            work(start, end)

    if threads <= 1:
        yield one_by_one
        return
    with ThreadPoolExecutor(threads) as pool:

        def together(side: UnitCells, work: Callable[[int, int], object]) -> None:
            if len(side.cuts) <= 2:
                one_by_one(side, work)
                return
            for done in [pool.submit(work, start, end) for start, end in side.blocks()]:
                done.result()

        yield together
