"""Rows in blocks: the normals that an evaluation of the bound is made with, and who works on them.

A block's normals are frozen before anything is evaluated, so that value and gradient are those of
one function. Sums over blocks are made in the order of blocks, whoever worked on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.likelihoods import needs_normals
from glfm_cli.latent.clgp.table import ObservedTable

BLOCK = 512  # rows

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class RowBlock:
    """Some rows of a table, and T samples of what is integrated by sampling.

    rows : (nb,) int;  cells : lower and upper (D, nb)
    places : (T, nb, Q) normals, in antithetic pairs unless T = 1
    logits : column to (T nb, E / 2, K) normals
    """

    rows: Array
    cells: tuple[Array, Array]
    places: Array
    logits: dict[int, Array]

    @classmethod
    def drawn(
        cls,
        table: ObservedTable,
        rows: Array,
        samples: int,
        category_samples: int,
        n_dimensions: int,
        rng: np.random.Generator,
    ) -> RowBlock:
        """Return a block with normals from a random stream."""
        half = rng.standard_normal(((samples + 1) // 2, rows.size, n_dimensions))
        places = np.concatenate([half, -half])[:samples]
        slots = table.slots
        logits = {
            d: rng.standard_normal(
                (samples * rows.size, category_samples // 2, slots.kinds[d].n_latent)
            )
            for d in needs_normals(slots)
        }
        return cls(rows, table.rows(rows), places, logits)

    @property
    def samples(self) -> int:
        """T."""
        return int(self.places.shape[0])


def cut(rows: Array) -> list[Array]:
    """Return the rows in blocks."""
    return [rows[start : start + BLOCK] for start in range(0, rows.size, BLOCK)]


def each(
    pool: ThreadPoolExecutor | None, work: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """Yield work(item) of all items in their order, done in the pool where there is one."""
    return map(work, items) if pool is None else pool.map(work, items)


def total(parts: Sequence[dict[str, Array]]) -> dict[str, Array]:
    """Return the sums by name, added up in order."""
    sums = {name: value.copy() for name, value in parts[0].items()}
    for part in parts[1:]:
        for name, value in part.items():
            sums[name] += value
    return sums
