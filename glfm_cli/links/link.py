"""What a link is, and which link a column gets.

A link turns the cells of one column into Gaussian pseudo-observations and back:

    x     a cell, in the column's own unit, or its level code
    y     its pseudo-observations, one per latent column: y = eta + noise
    eta   (n,) when the link has one latent column, else (n, n_latent)
    var   the total variance of y around eta, a float or (n,)
    g     the column's margin, y = g(x)  (margins.py)

Constants (calibrated margins, levels) are frozen in the link; what is sampled (thresholds) lives in
`Params`, a dict of arrays that `update_params` changes in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import SchemaError, TableError
from glfm_cli.links.categorical import CategoricalLink
from glfm_cli.links.count import CountLink
from glfm_cli.links.ordinal import OrdinalLink
from glfm_cli.links.positive import PositiveLink
from glfm_cli.links.real import RealLink
from glfm_cli.schema import ColumnType

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn

Params = dict[str, Array]


@dataclass(frozen=True)
class LinkConfig:
    """Choices that all links share.

    link : "scaled" or "paper"; the scale constant of positive and count columns is calibrated, or 1
        as in the original GLFM article, where the model then changes with the unit of a column
    link_noise : variance of the noise added inside the link of real and positive columns, >= 0
    threshold_variance : prior variance of the thresholds of ordinal columns, > 0
    rank_skewness : numeric columns without a `transform` and with a larger absolute skewness are
        mapped to normal scores
    recalibrate : True corrects the forecasts of missing cells by those of observed ones, each made
        without the cell
    first_threshold_fixed : True holds the first threshold at 0, right for models with a bias
    """

    link: str = "scaled"
    link_noise: float = 0.0
    threshold_variance: float = 4.0
    rank_skewness: float = 1.0
    first_threshold_fixed: bool = True
    recalibrate: bool = True

    def __post_init__(self) -> None:
        if self.link not in ("scaled", "paper"):
            raise SchemaError("--set link", value=self.link, expected="scaled or paper")
        for field, lowest_allowed in (("link_noise", True), ("threshold_variance", False)):
            value = getattr(self, field)
            if not (np.isfinite(value) and (value >= 0 if lowest_allowed else value > 0)):
                expected = "a number of 0 or more" if lowest_allowed else "a number above 0"
                raise SchemaError(f"--set {field}", value=value, expected=expected)
        if np.isnan(self.rank_skewness):
            raise SchemaError("--set rank_skewness", value="nan", expected="a number")


@runtime_checkable
class Link(Protocol):
    """One column seen through Gaussian pseudo-observations."""

    @property
    def name(self) -> str:
        """Return the column's name."""

    @property
    def n_latent(self) -> int:
        """Return the number of latent columns."""

    @property
    def unit_noise(self) -> bool:
        """True when the noise variance is 1 and never sampled."""

    @property
    def known(self) -> bool:
        """True when y = g(x) at every observed cell: nothing to draw."""

    @property
    def spread(self) -> float:
        """Return the sd of what `bound` bounds, in units of the noise's."""

    @property
    def discrete(self) -> bool:
        """True for levels, False for numbers."""

    def start(self, x: Array, rng: np.random.Generator) -> tuple[Params, Array]:
        """Return initial parameters and y (n, n_latent), 0 at missing cells (x is NaN there)."""

    def update_params(
        self, x: Array, eta: Array, params: Params, rng: np.random.Generator, adapt: bool
    ) -> None:
        """Draw the parameters with y integrated out; tune the proposal only when `adapt`."""

    def augment(
        self, x: Array, eta: Array, var: float, params: Params, rng: np.random.Generator, y: Array
    ) -> None:
        """Draw y (n, n_latent) at observed cells, in place, for noise variance `var`."""

    def bound(
        self,
        x: Array,
        params: Params,
        y: Array,
        rng: np.random.Generator,
        lower: Array,
        upper: Array,
    ) -> None:
        """Fill what x and the parameters say of y: lower <= y <= upper (n, n_latent), in place.

        Equal ends make a point, held at its present value; an interval may be integrated over,
        for y is drawn anew before it is used. What is bounded has `spread` times the noise's sd.
        """

    def scale_group(self, params: Params) -> tuple[float, float]:
        """Return sum of squares (in prior sd) and number of what shares the scale of y.

        Unit-noise links only: multiplying y, and what is counted here, by one positive factor
        leaves x as it is. A model may use that to move along the scale.
        """

    def rescale(self, params: Params, factor: float) -> None:
        """Follow a change of scale of y."""

    def log_density(self, x: Array, eta: Array, var: float | Array, params: Params) -> Array:
        """Return (n,) log densities of observed values, log probabilities of discrete ones."""

    def sample(
        self, eta: Array, var: float | Array, params: Params, rng: np.random.Generator
    ) -> Array:
        """Return (n,) draws of the cells: values inside the bounds, or level codes."""


class NumericLink(Link, Protocol):
    """A link of numbers: x is an increasing function of one y, except for link noise."""

    @property
    def integral(self) -> bool:
        """True when the values are integers."""

    @property
    def noise(self) -> float:
        """Return the variance of the link noise."""

    @property
    def latent_bounds(self) -> tuple[float, float]:
        """Return the y that support and bounds allow; predictions are truncated to it."""

    @property
    def center(self) -> float:
        """Return the zero of the standard units of `standard_moments`."""

    @property
    def scale(self) -> float:
        """Return the unit of `standard_moments`, in the column's own unit."""

    def standard(self, x: Array) -> Array:
        """Return u = (x - center) / scale, cut off where its square would overflow."""

    def value(self, y: Array) -> Array:
        """Return the x of given y, inside support and bounds."""

    def upper_end(self, at: Array) -> Array:
        """Return the y below which x <= at."""

    def cdf(self, at: Array, eta: Array, var: float | Array, params: Params) -> Array:
        """Return P(x <= at) before truncation to the bounds."""

    def standard_moments(
        self, eta: Array, var: float | Array, params: Params
    ) -> tuple[Array, Array, Array]:
        """Return P(in), E[u; in], E[u^2; in], u = (x - center) / scale, in: y in latent_bounds."""

    def moments(self, eta: Array, var: float | Array, params: Params) -> tuple[Array, Array, Array]:
        """Return the same for x itself, cut off at the largest double."""


class LevelLink(Link, Protocol):
    """A link of levels."""

    @property
    def n_levels(self) -> int:
        """Return the number of levels R."""

    @property
    def ordered(self) -> bool:
        """True when the levels have an order."""

    def probabilities(self, eta: Array, var: float | Array, params: Params) -> Array:
        """Return (n, R) probabilities of the levels."""


def of_levels(link: Link) -> LevelLink:
    """Return a link of which `discrete` is true, as what it is."""
    return cast(LevelLink, link)


def of_numbers(link: Link) -> NumericLink:
    """Return a link of which `discrete` is false, as what it is."""
    return cast(NumericLink, link)


def make_link(encoded: EncodedColumn, config: LinkConfig) -> Link:
    """Return the link of a column, its constants calibrated on the observed cells.

    Raises
    ------
    SchemaError
        The column's type has no link, or its transform does not fit the type.
    TableError
        A value lies outside the domain of the transform or too far out for a finite latent
        value, or no level is known.
    """
    column = encoded.column
    match column.type:
        case ColumnType.REAL:
            return RealLink.calibrate(column, encoded.x, config)
        case ColumnType.POSITIVE:
            return PositiveLink.calibrate(column, encoded.x, config)
        case ColumnType.COUNT:
            return CountLink.calibrate(column, encoded.x, config)
        case ColumnType.CATEGORICAL | ColumnType.ORDINAL if not encoded.levels:
            raise TableError(
                "no level is known: every cell is missing",
                column=column.name,
                hint=f"Give `levels` for '{column.name}', or ignore the column.",
            )
        case ColumnType.CATEGORICAL:
            return CategoricalLink.calibrate(column, encoded.x, len(encoded.levels))
        case ColumnType.ORDINAL:
            return OrdinalLink(column.name, len(encoded.levels), config)
        case _:
            raise SchemaError(
                f"type {column.type} is not available in this model",
                column=column.name,
                hint="Take one of real, positive, count, categorical, ordinal.",
            )
