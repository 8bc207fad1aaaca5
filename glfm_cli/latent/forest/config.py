"""The settings of chained extra trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.settings import require, require_each, require_whole


@dataclass(frozen=True)
class ForestConfig:
    """How trees are grown, and how long a step is.

    trees : of each column, grown for every kept draw; twice as many where leaves have one member
    moving : of each column, grown anew in every step, by which missing cells are drawn
    questions : at random, each of another column, of which a node asks the best
    thresholds : of each of these columns, at random, of which it asks the best
    least : members of a leaf, at least; 0: of each column what forecasts it best (see `leaves`)
    linear : whether trees of numbers are grown on what a ridge regression leaves over; auto: of
        each column what forecasts it best (see `leaves`)
    together : share of a column that another alone explains, from which both are drawn together in
        rows that have neither
    left_out : trees of a kept draw that do not see a row, by which its observed cells are forecast
    prior : members of a leaf that the column as a whole is worth
    rows : observed cells of a column, drawn at random, on which its trees are grown at most
    visited : share of the columns that are drawn anew in a step
    """

    trees: int = 8
    moving: int = 1
    questions: int = 30
    thresholds: int = 1
    least: int = 0
    linear: Literal["auto", "always", "never"] = "auto"
    together: float = 0.8
    left_out: int = 2
    prior: float = 1.0
    rows: int = 10_000
    visited: float = 1.0

    def __post_init__(self) -> None:
        require_whole(
            self,
            trees=(3, 1000),
            moving=(1, 1000),
            questions=(1, 1_000_000),
            thresholds=(1, 1000),
            least=(0, 1_000_000),
            rows=(1, 1 << 24),
        )
        most = self.trees - 1
        # Of one tree alone the variance of its forecast cannot be told.
        expected = f"a whole number from 2 to {most}, one less than there are trees"
        require(2 <= self.left_out <= most, "left_out", self.left_out, expected)
        expected = "a number above 0, at most 1"
        require_each(self, "visited together", lambda x: 0.0 < x <= 1.0, expected)
        require(0.0 < self.prior <= 1e6, "prior", self.prior, "a number above 0, at most 1e6")

    def trees_moving(self, middle: float) -> int:
        """Return how many trees a column has in a step: three donors are of three trees."""
        return max(self.moving, 3) if middle > 0.0 else self.moving

    def trees_of(self, least: Array) -> Array:
        """Return how many trees each column has in a kept draw, given its leaves' least size.

        A tree does not see the rows that are left out of it. Leaves of one member, which forecast
        columns of little noise, feel that; and of more trees each sees more.
        """
        return np.where(least == 1, 2, 1) * self.trees
