"""From a table's columns to the cells that trees see, one number each.

A number is y of its link, of which trees see the order alone; a level is its code. A value with a
probability of its own, of a column in two parts, is the number `atom`. All are rounded to single
precision, so that a threshold of four bytes lies between any two that differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import SchemaError
from glfm_cli.latent.forest.inputs import Inputs
from glfm_cli.links.link import Link
from glfm_cli.links.observation import Counting, of_levels
from glfm_cli.links.two_part import TwoPartLink

MOST = 200  # inputs of regressions; of more there are none
FAR = 6.0  # from the mean, in deviations of y, that an atom may be


@dataclass(frozen=True, eq=False)
class Kinds:
    """What the columns are to trees, and inputs of trees behind them (see `related`).

    levels : (D,) int32, their number; 0 of numbers
    nominal : (D,) uint8, 1 of levels without an order
    atom : (D,) float64, NaN where there is none
    noise : (D,) float64, variance that the link adds to a law
    about : (E,) int64, of inputs that are no columns, of which column alone trees ask them, -1 for
        none. All other attributes have E numbers more where there are some
    """

    levels: Array
    nominal: Array
    atom: Array
    noise: Array
    about: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @classmethod
    def of(cls, links: Sequence[Link]) -> Kinds:
        """Return those of some columns.

        Raises SchemaError: one is of successes among trials.
        """
        for link in links:
            if isinstance(link, Counting):
                raise SchemaError("--model forest takes no binomial columns", column=link.name)
        levels = [of_levels(link).n_levels if link.discrete else 0 for link in links]
        nominal = [link.discrete and not link.ordered for link in links]
        atom = [_atom(link) if isinstance(link, TwoPartLink) else np.nan for link in links]
        noise = [float(getattr(link, "noise", 0.0)) for link in links]
        return cls(
            np.array(levels, dtype=np.int32),
            np.array(nominal, dtype=np.uint8),
            np.array(atom),
            np.array(noise),
        )

    @property
    def n_columns(self) -> int:
        """Return how many columns there are."""
        return int(self.levels.size - self.about.size)

    def not_of(self, d: int) -> Array:
        """Return the inputs of which trees of column d do not ask."""
        found: Array = self.n_columns + np.flatnonzero(self.about != d)
        return found

    def beside(self, levels: Array, nominal: Array, about: Array) -> Kinds:
        """Return the same with inputs (E,) behind the columns."""
        return Kinds(
            np.append(self.levels, levels),
            np.append(self.nominal, nominal),
            np.append(self.atom, np.full(about.size, np.nan)),
            np.append(self.noise, np.zeros(about.size)),
            about,
        )

    @property
    def too_many(self) -> bool:
        """Return whether regressions on the columns would cost more than trees."""
        return int(np.sum(self.inputs.column < self.n_columns)) > MOST

    @cached_property
    def inputs(self) -> Inputs:
        """What regressions see of the columns."""
        return Inputs.of(self.levels, self.nominal, self.atom)

    def take(self, columns: Array) -> Kinds:
        """Return those of some of the columns."""
        every = self.levels, self.nominal, self.atom, self.noise
        return Kinds(*(kind[columns] for kind in every))


def _atom(link: TwoPartLink) -> float:
    """Return a number by y of the atom that no other value has."""
    with np.errstate(divide="ignore", invalid="ignore"):
        y = float(link.margin.to_latent(np.array([link.at]))[0])
    near = np.float32(np.clip(np.nan_to_num(y, nan=-FAR), -FAR, FAR))
    return float(np.nextafter(near, np.float32(np.inf)))


def cells_of(links: Sequence[Link], xs: Sequence[Array], kinds: Kinds) -> Array:
    """Return the cells (D, N), NaN where they are missing."""
    z = np.empty((len(links), len(xs[0])))
    for d, (link, x) in enumerate(zip(links, xs, strict=True)):
        if link.discrete:
            z[d] = x
            continue
        y = link.start(x)[1]
        y = y[:, -1].astype(np.float32)
        z[d] = np.where(np.isnan(x if x.ndim == 1 else x[:, 0]), np.nan, y)
        if not np.isnan(kinds.atom[d]):
            z[d, y == kinds.atom[d]] = np.nextafter(y[y == kinds.atom[d]], np.float32(np.inf))
            assert isinstance(link, TwoPartLink)
            z[d, x == link.at] = kinds.atom[d]
    return z
