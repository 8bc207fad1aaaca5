"""Columns that nearly say the same, drawn together where a row has neither.

Drawn in turn, two such cells hold each other where they are, each forecast by what was forecast by
it: a chain would hardly leave its start. So before a column is visited, its missing cells in rows
that have none of its twins are drawn without these, and the twins with them: a donor, from a leaf
of trees that ask nothing of either, gives the row its cells of all of them, or what lines on the
other columns leave over of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.config import ForestConfig
from glfm_cli.latent.forest.lines import STEP_ROWS, Lines
from glfm_cli.latent.forest.trees import Trees, Units, draw_cells, grow, scaled
from glfm_cli.latent.model import take

NOBODY = np.empty(0, dtype=np.intp)
ROWS = 4_000  # by which twins are found, at most,
LEAST = 10  # members of a leaf at least, of trees that know no twins: these told most of a cell
FEWEST = 20  # and at least so many that have both


def twins_of(z: Array, seen: Array, kinds: Kinds, share: float) -> list[Array]:
    """Return the twins of every column: others of which one alone explains so much of it.

    z, seen : (D, N) cells, of which those that were observed count
    share : of the variance of a number, or of the indicators of levels

    Of a column of levels what they explain is corrected for how many there are.
    """
    D, inputs = len(z), kinds.inputs
    if kinds.too_many:
        return [NOBODY] * D
    rows = np.arange(0, z.shape[1], -(-z.shape[1] // ROWS))
    there = seen[:, rows][inputs.column].T.astype(np.float64)
    x = np.where(there > 0.0, inputs.see(z[:, rows]), 0.0)
    middle = x.sum(axis=0) / np.maximum(there.sum(axis=0), 1.0)
    x = (x - middle) * there
    n = there.T @ there
    some = np.maximum(n, 1.0)
    mean, product = x.T @ there / some, x.T @ x / some  # (p, q): where both inputs were observed
    variance = (x**2).T @ there / some - mean**2
    of_both = np.maximum(variance * variance.T, 1e-300)
    square = np.where(variance * variance.T > 1e-18, (product - mean * mean.T) ** 2 / of_both, 0.0)
    explained = np.zeros((D, D))
    for e in np.unique(inputs.column):
        of = np.flatnonzero(inputs.column == e)
        first = of[0]
        if kinds.nominal[e] and of.size > 1:  # indicators of which one is 1
            left = 1.0 - np.minimum(square[:, of] @ (1.0 - middle[of]), 1.0)
            by = 1.0 - left * (n[:, first] - 1.0) / np.maximum(n[:, first] - of.size, 1.0)
        else:
            by = square[:, of].max(axis=1)
        by = np.where(n[:, first] >= FEWEST, by, 0.0)
        weight = np.bincount(inputs.column, variance[:, first], D)
        total = np.bincount(inputs.column, variance[:, first] * by, D)
        explained[:, e] = total / np.maximum(weight, 1e-300)
    np.fill_diagonal(explained, 0.0)
    return [np.flatnonzero(row > share) for row in explained]


@dataclass(frozen=True, eq=False)
class Alone:
    """Trees and lines of columns that have twins, which know nothing of these.

    They forecast the cells of rows that have none of a column's twins: those that were drawn there
    tell nothing, but were drawn with the cell.

    twins : by column
    trees, lines : of all columns, none of those without twins; lines of some of the others
    """

    twins: Sequence[Array]
    trees: Trees
    lines: Lines

    @classmethod
    def grow(
        cls,
        twins: Sequence[Array],
        z: Array,
        seen: Array,
        kinds: Kinds,
        linear: Array,
        n_trees: Array,
        left_out: int,
        least: Array,
        config: ForestConfig,
        rng: np.random.Generator,
        units: Units | None = None,
    ) -> Alone:
        """Return those of cells z (D, N), linear and least being as `ForestState` has them.

        units : rows that are left out together, as `grow` has it
        """
        D = len(twins)
        has = [d for d in range(D) if twins[d].size]
        if not has:
            return cls.none(kinds)
        straight = [d for d in has if linear[d]]
        without = [twins[d] for d in straight]
        lines = Lines.fit(z, seen, kinds, straight, rng, without=without)
        there = np.where(np.isin(np.arange(D), has)[:, None], seen, 0).astype(np.uint8)
        least = np.maximum(least, LEAST)
        size = n_trees, left_out
        trees = grow(z, there, kinds, range(D), *size, least, config, rng, lines, twins, units)
        return cls(twins, scaled(trees, z, there, kinds, config.prior, lines), lines)

    @classmethod
    def none(cls, kinds: Kinds) -> Alone:
        """Return those of no column."""
        D = kinds.n_columns
        root, seed = np.full((D, 1), -1, dtype=np.int32), np.zeros(D, dtype=np.uint64)
        nodes = (np.empty(0, dtype=kind) for kind in (np.int32, np.float32, np.int32, np.int32))
        trees = Trees(1, root, seed, *(np.ones(D) for _ in range(3)), *nodes)
        return cls([NOBODY] * D, trees, Lines.none(kinds, 0))

    def rows(self, d: int, known: Array) -> Array:
        """Return which rows (n,) have none of the twins of column d; none if it has no twins."""
        if not self.twins[d].size:
            return np.zeros(known.shape[1], dtype=bool)
        return np.asarray(known[self.twins[d]].any(axis=0) == 0)

    def pack(self) -> dict[str, Array]:
        """Return them as named arrays; none where no column has twins."""
        pairs = [(d, e) for d, twins in enumerate(self.twins) for e in twins]
        if not pairs:
            return {}
        parts = {**self.trees.pack(), **self.lines.pack()}
        found = {f"alone_{name}": part for name, part in parts.items()}
        return {"twins": np.array(pairs, dtype=np.int32), **found}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], kinds: Kinds, rows: int) -> Alone:
        """Return what `pack` gave; ValueError, with a phrase, when it is no such thing."""
        own = {name[6:]: part for name, part in arrays.items() if name.startswith("alone_")}
        if "twins" not in arrays and not own:
            return cls.none(kinds)
        D = kinds.n_columns
        pairs = take(arrays, "twins", np.int32, (None, 2))
        if np.any(pairs < 0) or np.any(pairs >= D) or np.any(pairs[:, 0] == pairs[:, 1]):
            raise ValueError("'twins' are no columns")
        twins = [pairs[pairs[:, 0] == d, 1].astype(np.intp) for d in range(D)]
        trees = Trees.unpack(own, D, rows, features=kinds.levels.size)
        return cls(twins, trees, Lines.unpack(own, kinds, rows))


def draw_together(
    z: Array,
    seen: Array,
    kinds: Kinds,
    d: int,
    twins: Array,
    linear: Array,
    least: Array,
    config: ForestConfig,
    rng: np.random.Generator,
) -> None:
    """Draw column d and its twins in rows that have none of them, in place, by trees grown for it.

    linear : (D,) uint8, which columns are forecast by lines
    least : (D,) int64, members of a leaf, at least
    """
    group = np.append(d, twins)
    rows = np.flatnonzero(~seen[group].any(axis=0))
    if not rows.size or not seen[d].any():
        return
    has = group[linear[group] != 0].tolist()
    lines = Lines.fit(z, seen, kinds, has, rng, without=[group] * len(has), most=STEP_ROWS)
    least = np.maximum(least, LEAST)
    trees = grow(z, seen, kinds, [d], config.moving, 0, least, config, rng, lines, [twins])
    draw_group(z, kinds, d, group, rows, z, trees, 0, lines, rng)


def draw_group(
    z: Array,
    kinds: Kinds,
    d: int,
    group: Array,
    rows: Array,
    donors: Array,
    trees: Trees,
    k: int,
    lines: Lines,
    rng: np.random.Generator,
) -> None:
    """Draw a group of columns of some rows of z (D, n_rows) from one donor for each row, in place.

    donors : (D, N) the rows of the fit
    trees : those number k forecast column d
    lines : of columns of the group, of which a donor gives what they leave over of its cells
    """
    nobody, number = np.full(rows.size, -1, dtype=np.int32), np.arange(donors.shape[1], dtype=float)
    before = z[d, rows]
    draw_cells(z, kinds, d, rows, nobody, number, trees, k, rng)
    donor, z[d, rows] = z[d, rows].astype(np.intp), before
    drawn = {}
    for m in group:
        if lines.place[m] < 0:
            drawn[m] = donors[m, donor]
            continue
        left = lines.left_of(m, donor)
        rest = donors[m, donor] - lines.forecast(m, donors, donor)  # of those not observed
        left = np.where(np.isnan(left), rest, left)
        drawn[m] = (lines.forecast(m, z, rows) + left).astype(np.float32)
    for m, cells in drawn.items():
        z[m, rows] = cells
