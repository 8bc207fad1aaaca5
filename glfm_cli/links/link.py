"""What a link is: an observation that can be seen as Gaussian pseudo-observations, and back.

    x     a cell, in the column's own unit, or its level code
    y     its pseudo-observations, one per latent column: y = eta + noise
    eta   (n,) when the link has one latent column, else (n, n_latent)
    var   the variance of the noise, y around eta
    g     the column's margin, y = g(x)  (margins.py)

`update_params` changes the parameters, a dict of arrays, in place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

from numpy.random import Generator

from glfm_cli.arrays import Array
from glfm_cli.links.observation import Observation, Params

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn
    from glfm_cli.links.config import LinkConfig


@runtime_checkable
class Link(Observation, Protocol):
    """One column seen through Gaussian pseudo-observations."""

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
    def fixed_bounds(self) -> bool:
        """True when what `bound` says follows from x and the parameters, whatever y is."""

    @classmethod
    def calibrate(cls, encoded: EncodedColumn, config: LinkConfig) -> Self:
        """Return the link of a column, its constants calibrated on the observed cells.

        Raises TableError: a value lies outside the domain of the transform or too far out for a
            finite latent value, or no level is known.
        """

    def own_variances(self, x: Array) -> Array | None:
        """Return the variances (n,) that y has beside the noise's, None for 0s."""

    def start(self, x: Array) -> tuple[Params, Array]:
        """Return initial parameters and y (n, n_latent), 0 at missing cells (x is NaN there)."""

    def update_params(
        self, x: Array, eta: Array, params: Params, rng: Generator, adapt: bool
    ) -> None:
        """Draw the parameters with y integrated out; tune the proposal only when `adapt`."""

    def augment(
        self, x: Array, eta: Array, var: float, params: Params, rng: Generator, y: Array
    ) -> None:
        """Draw y (n, n_latent) at observed cells, in place, for noise variance `var`.

        An array that it puts into `params` is a sum over rows: those of their blocks are added up.
        """

    def bound(
        self, x: Array, params: Params, y: Array, rng: Generator, lower: Array, upper: Array
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


@runtime_checkable
class Expecting(Link, Protocol):
    """A link of several latent columns of unit noise, for fits that average over y.

    Of one latent column whose y has an interval, `bound` says all (`intervals.interval_moments`).
    """

    def expect(self, x: Array, eta: Array, params: Params) -> tuple[Array, Array]:
        """Return E[y | x] (..., n, n_latent) and log P(x) (..., n).

        x : (n,), all observed;  eta : (..., n, n_latent) means before x is known
        """


@runtime_checkable
class Cut(Observation, Protocol):
    """Ordered levels between thresholds around one latent column, which a fit may place itself."""

    def set_thresholds(self, params: Params, theta: Array) -> None:
        """Put thresholds (R - 1,), increasing, in place of those in `params`."""
