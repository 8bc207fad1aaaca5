"""A link of numbers told once which of its cells are intervals, for sweeps that ask in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from numpy.random import Generator

from glfm_cli.arrays import Array
from glfm_cli.links.link import Link
from glfm_cli.links.numeric import NumericLink, values_of
from glfm_cli.links.observation import Params


@dataclass(frozen=True, eq=False)
class IntervalCells:
    """Observed cells (n, 2) of a column, some known only to lie between two numbers.

    values : (n,) the cells that are numbers, NaN elsewhere
    rows, low, high : of the others, and the ends of their y
    """

    link: NumericLink
    values: Array
    rows: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, link: NumericLink, x: Array) -> Self:
        """Return what a link is asked about cells x (n, 2)."""
        return cls(link, values_of(x), *link.between(x))

    def bound(
        self, x: Array, params: Params, y: Array, rng: Generator, lower: Array, upper: Array
    ) -> None:
        """Fill the ends of y; with link noise a cell is a point, held where it is."""
        self.link.bound_values(self.values, y, lower, upper)
        if self.link.noise == 0.0:
            lower[self.rows, 0], upper[self.rows, 0] = self.low, self.high

    def augment(
        self, x: Array, eta: Array, var: float, params: Params, rng: Generator, y: Array
    ) -> None:
        """Draw y given what is known of it: y + u = g(x), or its interval."""
        self.link.augment_values(self.values, eta, var, rng, y)
        self.link.draw_between(self.rows, self.low, self.high, eta, var, rng, y)


def told(link: Link, x: Array) -> Link | IntervalCells:
    """Return what draws and bounds the y of cells x as the link does, in less time of intervals."""
    if isinstance(link, NumericLink) and x.ndim == 2 and not link.selects:
        return IntervalCells.of(link, x)
    return link
