"""Rows that are not independent: inputs of trees that say what others of them tell of a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from glfm_cli.arrays import Array, Groups
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.mates import GroupMates, unordered
from glfm_cli.latent.forest.neighbours import TimeNeighbours
from glfm_cli.latent.forest.series import RowsInTime
from glfm_cli.latent.forest.trees import Units
from glfm_cli.latent.model import take


class RelatedInputs(NamedTuple):
    """What is told of the cells of some rows: inputs (E, n), and which are far (D, n)."""

    inputs: Array
    far: Array


@dataclass(frozen=True, eq=False)
class RelatedRows:
    """The rows of a fit that belong together, by groups or in time, or in time within groups.

    two : (D,) bool, which columns have trees of their own for far cells: those with far neighbours
        in time, without time those of which nobody else of the group tells
    """

    mates: GroupMates | None
    neighbours: TimeNeighbours | None
    two: Array

    @classmethod
    def of(
        cls, groups: Groups, z: Array, seen: Array, kinds: Kinds, same: Sequence[int] = ()
    ) -> tuple[RelatedRows, RelatedInputs]:
        """Return those of cells z (D, N), and what they say of all of them.

        same : columns that are the same in all rows of a group
        An observed cell is never far.
        """
        mates, neighbours, inputs = None, None, list[Array]()
        far: Array = np.zeros(z.shape, dtype=bool)
        if groups.n:
            mates, told, far = GroupMates.of(groups.code, z, seen, kinds, same)
            inputs.append(told)
        if groups.time is not None:
            alone, gone = far, np.asarray(seen == 0)
            neighbours, told, far = TimeNeighbours.of(in_time(groups), z, seen, kinds)
            if mates is not None:
                some = gone & ~far, np.where(far.max(axis=1)[:, None], far, gone)
                inputs = [mates.borrowed(inputs[0], seen, part, alone) for part in some]
            inputs.append(told)
        found = RelatedInputs(np.concatenate(inputs), far)
        two = np.asarray(far.any(axis=1))
        return cls(mates, neighbours, two), found

    def of_new(
        self, donors: Array, seen: Array, z: Array, own: Array, groups: Groups, kinds: Kinds
    ) -> RelatedInputs:
        """Return what is told of new rows z (D, n), NaN where missing, by all other rows.

        donors, seen : (D, N) of the fit
        own : (n,) rows of the fit that new ones are, which may not tell of themselves, or -1
        """
        inputs, rest = list[Array](), (donors, seen, z, own)
        if self.mates is not None:
            told, far = self.mates.of_new(*rest, groups.code, kinds)
            inputs += [told] if self.neighbours is None else [told, told]
        if self.neighbours is not None:
            told, far = self.neighbours.of_new(*rest, in_time(groups), kinds)
            inputs.append(told)
        return RelatedInputs(np.concatenate(inputs), far & self.two[:, None])

    def kinds(self, kinds: Kinds) -> tuple[Kinds, Kinds]:
        """Return columns with inputs behind them, to trees of near cells and of far ones.

        First stands what groups say, in time to near cells and then to far ones, then what near
        neighbours do, then what far ones do.
        """
        columns, none = np.arange(kinds.n_columns), np.empty(0, dtype=np.int64)
        mates = none if self.mates is None else columns
        near, n = none, 1
        if self.neighbours is not None:
            near, n = np.repeat(columns, np.where(kinds.levels[columns] > 0, 2, 3)), 2
        nobody, no_mates = np.full(near.size, -1), np.full(mates.size, -1)
        by_level = unordered(kinds)[mates].astype(np.uint8)
        of_mates, near_twice = np.tile(kinds.levels[mates] * by_level, n), np.tile(near, 2)
        levels = np.append(of_mates, kinds.levels[near_twice])
        nominal = np.append(np.tile(by_level, n), kinds.nominal[near_twice])
        if self.neighbours is None:
            to_near, to_far = [mates], [np.where(self.two[mates], -1, mates)]
        else:
            to_near, to_far = [mates, no_mates], [no_mates, mates]
        return (
            kinds.beside(levels, nominal, np.concatenate([*to_near, near, nobody])),
            kinds.beside(levels, nominal, np.concatenate([*to_far, nobody, near])),
        )

    @property
    def units(self) -> Units | None:
        """Return which rows are left out together of trees for cells that no group tells of.

        Those of a group: trees that have seen other rows of it forecast its cells better than any
        can a cell of a group without values. Not in time, where far cells have other rows of their
        group, too.
        """
        if self.mates is None or self.neighbours is not None:
            return None
        return Units(self.mates.code.astype(np.int32), self.two)

    def pack(self) -> dict[str, Array]:
        """Return them as named arrays."""
        of = [part.pack() for part in (self.mates, self.neighbours) if part is not None]
        return {"two": self.two.astype(np.uint8), **{k: v for part in of for k, v in part.items()}}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], columns: int, rows: int) -> RelatedRows | None:
        """Return what `pack` gave, None where it is missing; ValueError when it is no such thing.
        """
        mates = GroupMates.unpack(arrays, columns, rows)
        code = None if mates is None else mates.code
        neighbours = TimeNeighbours.unpack(arrays, columns, rows, code)
        if mates is None and neighbours is None:
            return None
        two = take(arrays, "two", np.uint8, (columns,))
        if np.any(two > 1):
            raise ValueError("'two' is out of range")
        return cls(mates, neighbours, two != 0)


def in_time(groups: Groups) -> RowsInTime:
    """Return rows in time, within their groups."""
    assert groups.time is not None
    return RowsInTime(groups.time.astype(np.float64), groups.code if groups.n else None)
