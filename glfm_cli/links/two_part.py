"""Semi-continuous columns: one value has a probability of its own, the others a density.

    x = at          when y_1 > 0                          y_1 ~ N(eta_1, 1)
    x = g^-1(y_2 / t)   otherwise                         y_2 ~ N(eta_2, 1)

the two-part model [Duan et al., Journal of Business and Economic Statistics 1 (1983)] with a probit
for the first part: rainfall, income from capital, costs. `at` is mostly 0. Both parts have unit
noise; t, the inverse of the second part's noise on the margin's scale, is a parameter, t ~ half
normal. At cells with x = at nothing is known of y_2.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.random import Generator
from scipy.special import log_ndtr, ndtr, ndtri

from glfm_cli._kernels._variates import fill_truncated_normal
from glfm_cli.arrays import Array
from glfm_cli.links.averages import NumberAverage
from glfm_cli.links.constants import SCALAR, number, take
from glfm_cli.links.correlated import split
from glfm_cli.links.law import CellLaw, Normal, NormalMixture, of_latent, one_number
from glfm_cli.links.margins import Margin, standard_moment
from glfm_cli.links.observation import Params, Summary
from glfm_cli.links.plain import PlainLink
from glfm_cli.links.real import RealLink
from glfm_cli.schema import Column

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn
    from glfm_cli.links.config import LinkConfig

INVERSE_SD_VARIANCE = 100.0  # prior variance of t
PEAKED = 4.0  # kurtosis, of which the central half of a normal law holds 55 % and more
ALWAYS = -1.0  # skewness beyond which values are seen by their ranks
PART = "part."
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class TwoPartLink(PlainLink):
    """Two latent columns of unit noise: whether a cell is at the atom, and its value otherwise.

    at : the value with a probability of its own
    part : the link of the other values, whose y are t times smaller
    """

    name: str
    at: float
    part: RealLink

    n_latent = 2
    unit_noise = True
    known = False
    discrete = False
    ordered = True
    integral = False

    @classmethod
    def around(
        cls, at: float, encoded: EncodedColumn, config: LinkConfig, part: type[RealLink]
    ) -> Self:
        """Return the link of a column, the margin of its values but `at` calibrated by `part`."""
        x = np.where(encoded.x == at, np.nan, encoded.x)
        rest = dataclasses.replace(encoded, x=x, observed=~np.isnan(x))
        calm = dataclasses.replace(config, link_noise=0.0)
        if standard_moment(x[rest.observed], 4) > PEAKED:  # nothing corrects forecasts later
            calm = dataclasses.replace(calm, rank_skewness=ALWAYS)
        return cls(encoded.column.name, at, part.calibrate(rest, calm))

    def constants(self) -> dict[str, Array]:
        """Return the atom, and the constants of the other part."""
        own = {PART + name: value for name, value in self.part.constants().items()}
        return {"at": number(self.at), **own}

    @classmethod
    def with_part(
        cls,
        column: Column,
        n_levels: int,
        constants: Mapping[str, Array],
        config: LinkConfig,
        part: type[RealLink],
    ) -> Self:
        """Return the link whose `constants` these are; ValueError says why they are not such."""
        at = float(take(constants, "at", SCALAR))
        own = {n.removeprefix(PART): v for n, v in constants.items() if n.startswith(PART)}
        link = part.from_constants(column, n_levels, own, config)
        if not link.known:
            raise ValueError("the part beside the atom has zeros or noise of its own")
        return cls(column.name, at, link)

    def check_params(self, params: Params) -> None:
        if not take(params, "inverse_sd", 1)[0] > 0.0:
            raise ValueError("'inverse_sd' is not above 0")
        super().check_params({n: value for n, value in params.items() if n != "inverse_sd"})

    def check_cells(self, x: Array) -> None:
        """Raise ValueError unless all are at the atom, or values of the other part."""
        self.part.check_cells(x[x != self.at])

    def typical(self) -> Array:
        """Return values of both parts."""
        return np.append(self.part.typical(), self.at)

    def latent_levels(self) -> tuple[str | None, ...]:
        """Return the atom, which the first latent column is of; the second is of the values."""
        return (f"{self.at:g}", None)

    # What belongs to the scale of the values is the other part's.

    @property
    def margin(self) -> Margin:
        """Return that of the other part."""
        return self.part.margin

    @property
    def latent_bounds(self) -> tuple[float, float]:
        """Return those of the other part."""
        return self.part.latent_bounds

    @property
    def center(self) -> float:
        return self.part.center

    @property
    def scale(self) -> float:
        return self.part.scale

    @property
    def lower(self) -> float:
        return min(self.part.lower, self.at)

    @property
    def upper(self) -> float:
        return max(self.part.upper, self.at)

    def standard(self, x: Array) -> Array:
        """Return x in standard units."""
        return self.part.standard(x)

    def value(self, y: Array) -> Array:
        """Return the values beside the atom of given y_2 / t."""
        return self.part.value(y)

    def upper_end(self, at: Array) -> Array:
        """Return the end of the y_2 / t whose x are at most `at`."""
        return self.part.upper_end(at)

    def without_bounds(self) -> Self:
        """Return the link whose other values are cut off nowhere but at the ends of the support."""
        return dataclasses.replace(self, part=self.part.without_bounds())

    # Sampling

    def start(self, x: Array) -> tuple[Params, Array]:
        """Return t = 1, and y one deviation from the probit of the atom's share; g(x)."""
        is_at = x == self.at
        share = (is_at.sum() + 0.5) / (np.sum(~np.isnan(x)) + 1.0)
        first = ndtri(share) + np.where(is_at, 1.0, -1.0)
        first = np.where(is_at, np.maximum(first, 0.1), np.minimum(first, -0.1))
        second = np.where(is_at, 0.0, self.margin.to_latent(x))
        y = np.where(np.isnan(x)[:, None], 0.0, np.column_stack([first, second]))
        return {"inverse_sd": np.ones(1)}, y

    def update_params(
        self, x: Array, eta: Array, params: Params, rng: Generator, adapt: bool
    ) -> None:
        """Draw t given eta: its density is t^n exp(c t - a t^2 / 2) on t > 0.

        a = sum g(x)^2 + 1 / prior variance, c = sum g(x) eta_2, over the n cells beside the atom.
        Drawn by rejection from the normal of precision a at the mode, which covers it.
        """
        rows = np.flatnonzero(~np.isnan(x) & (x != self.at))
        g, n = self.margin.to_latent(x[rows]), rows.size
        a, c = float(g @ g) + 1.0 / INVERSE_SD_VARIANCE, float(g @ eta[rows, 1])
        mode = (c + np.sqrt(c * c + 4.0 * a * n)) / (2.0 * a)
        while True:
            t = mode + rng.standard_normal() / np.sqrt(a)
            if t <= 0.0:
                continue
            log_ratio = n * (np.log(t / mode) - (t / mode - 1.0)) if n else 0.0
            if -rng.standard_exponential() < log_ratio:
                break
        params["inverse_sd"][:] = t

    def bound(
        self, x: Array, params: Params, y: Array, rng: Generator, lower: Array, upper: Array
    ) -> None:
        """Bound y_1 by 0; make y_2 a point, or at the atom leave it free."""
        is_at = x == self.at
        y[:, 1] = np.where(is_at, y[:, 1], self._second(x, params))
        lower[:, 0], upper[:, 0] = np.where(is_at, 0.0, -np.inf), np.where(is_at, np.inf, 0.0)
        lower[:, 1], upper[:, 1] = np.where(is_at, [[-np.inf], [np.inf]], y[:, 1])

    def _second(self, x: Array, params: Params) -> Array:
        """Return y_2 of cells beside the atom, 0 of the others."""
        beside = ~np.isnan(x) & (x != self.at)
        g = np.zeros(x.shape)
        g[beside] = self.margin.to_latent(x[beside])
        return g * params["inverse_sd"][0]

    def augment(
        self, x: Array, eta: Array, var: float, params: Params, rng: Generator, y: Array
    ) -> None:
        """Draw y_1 on its side of 0, and at the atom y_2, of which nothing is known."""
        rows = np.flatnonzero(~np.isnan(x))
        is_at = x[rows] == self.at
        drawn, mean = np.empty(rows.size), np.ascontiguousarray(eta[rows, 0])
        lower, upper = np.where(is_at, 0.0, -np.inf), np.where(is_at, np.inf, 0.0)
        fill_truncated_normal(mean, 1.0, lower, upper, rng, drawn)
        y[rows, 0] = drawn
        free = eta[rows, 1] + rng.standard_normal(rows.size)
        y[rows, 1] = np.where(is_at, free, self._second(x[rows], params))

    def scale_group(self, params: Params) -> tuple[float, float]:
        """Return t^2 in prior variances, and 1: multiplying y and t by a factor leaves x."""
        return float(params["inverse_sd"][0] ** 2) / INVERSE_SD_VARIANCE, 1.0

    def rescale(self, params: Params, factor: float) -> None:
        """Multiply t."""
        params["inverse_sd"] *= factor

    # What a law says

    def _components(self, law: CellLaw, params: Params) -> Iterator[tuple[Array, Array, Normal]]:
        """Yield weights (n,), probits of the atom (n,), and laws of y_2 / t, independent of y_1."""
        t = params["inverse_sd"][0]
        for weight, normal in of_latent(law, 2).components():
            for share, mean, variances in split(normal):
                z = mean[:, 0] / np.sqrt(variances[:, 0])
                second = Normal(mean[:, 1:] / t, variances[:, 1:] / t**2, None)
                yield np.broadcast_to(share * weight, z.shape), z, second

    def split_law(self, law: CellLaw, params: Params) -> tuple[Array, Array, NormalMixture]:
        """Return P(atom) and P(another value) (n,), and the law of y_2 / t given the latter."""
        parts = list(self._components(law, params))
        atom = np.sum([weight * ndtr(z) for weight, z, _ in parts], axis=0)
        # Where no other value is possible, its law does not matter.
        weights = np.stack([weight * np.maximum(ndtr(-z), TINY) for weight, z, _ in parts], axis=1)
        rest = weights.sum(axis=1)
        means = np.stack([second.mean for _, _, second in parts], axis=1)
        variances = np.stack([second.variances for _, _, second in parts], axis=1)
        return atom, rest, NormalMixture(weights / rest[:, None], means, variances)

    def bounded_law(
        self, law: CellLaw, params: Params
    ) -> tuple[Array, Array, NormalMixture, Array | float]:
        """Return what `split_law` does, P(another value) over P(its bounds allow it), and the last.

        So bounds cut off the other part alone, and leave the atom its probability.
        """
        atom, rest, second = self.split_law(law, params)
        allowed: Array | float = 1.0
        if np.isfinite(self.latent_bounds).any():
            anywhere = np.full(atom.size, self.center)
            allowed = np.maximum(self.part.forecast(anywhere, second, {})[:, 1], TINY)
        return atom, rest / allowed, second, allowed

    def log_density(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return the log probability of the atom, at other values that of both parts."""
        is_at = x == self.at
        inside = np.where(is_at, self.value(np.zeros(1)), x)
        total = np.full(x.size, -np.inf)
        log_density = self.part.log_density_at(inside, {})
        for weight, z, second in self._components(law, params):
            beside = log_ndtr(-z) + log_density(*one_number(second))
            with np.errstate(divide="ignore"):
                own = np.log(weight) + np.where(is_at, log_ndtr(z), beside)
            total = np.logaddexp(total, own)
        return total - np.where(is_at, 0.0, np.log(self.bounded_law(law, params)[3]))

    def sample(self, law: CellLaw, params: Params, rng: Generator) -> Array:
        """Return draws of x, inside the bounds."""
        atom, rest, second, _ = self.bounded_law(law, params)
        beside = self.part.sample(second, {}, rng)
        within = rest * self.part.forecast(beside, second, {})[:, 1]
        is_at = rng.random(atom.size) * (atom + within) < atom
        return np.where(is_at, self.at, beside)

    def sample_between(self, law: CellLaw, params: Params, rng: Generator, ends: Array) -> Array:
        atom, rest, second, _ = self.bounded_law(law, params)
        beside = self.part.sample_between(second, {}, rng, ends)
        low, high = (self.part.forecast(end, second, {})[:, 0] for end in ends.T)
        atom = np.where((ends[:, 0] <= self.at) & (self.at <= ends[:, 1]), atom, 0.0)
        is_at = rng.random(atom.size) * (atom + rest * (high - low)) < atom
        return np.where(is_at, self.at, beside)

    def forecast(self, x: Array, law: CellLaw, params: Params) -> Array:
        """Return P(X <= x) and 1, for bounds cut off but the other part, (n, 2)."""
        atom, rest, second, _ = self.bounded_law(law, params)
        below = np.column_stack([np.where(x >= self.at, atom, 0.0), atom])
        return below + rest[:, None] * self.part.forecast(x, second, {})[:, :2]

    def masses(self, at: Array, law: CellLaw, params: Params) -> Array:
        """Return the probabilities (n, G) of bins that end at `at` (G - 1,), before truncation."""
        atom, rest, second = self.split_law(law, params)
        bins = rest[:, None] * self.part.masses(at, second, {})
        bins[:, np.searchsorted(at, self.at)] += atom
        return bins

    def expected(self, law: CellLaw, params: Params) -> Array:
        """Return the mean, given that bounds allow the value."""
        average = self.average(of_latent(law, 2).size, 1)
        average.add(law, params, 1.0, quantiles=False)
        average.mark()
        return average.estimate(average.marked()[0])

    def pooled_mean(self, law: CellLaw, params: Params) -> float:
        return float(self.expected(law, params).mean())

    def correctable(self, x: Array) -> bool:
        """Return False: no power or tilt is both of a probability and of a density."""
        return False

    def average(self, n: int, n_draws: int) -> TwoPartAverage:
        return TwoPartAverage(self, n, n_draws)


class TwoPartAverage:
    """Averages the probability of the atom in n cells, and the law of the other values."""

    def __init__(self, link: TwoPartLink, n: int, n_draws: int) -> None:
        self.link = link
        self.atom = np.zeros(n)
        self.marks: list[Array] = []
        self.rest = NumberAverage(link.part, n, n_draws)

    def add(self, law: CellLaw, params: Params, share: float, *, quantiles: bool) -> None:
        atom, rest, second, _ = self.link.bounded_law(law, params)
        self.atom += share * atom
        self.rest.add(second, {}, share * rest, quantiles=quantiles)

    def mark(self) -> None:
        """Note the sums of the atom's probability, and of the other part."""
        self.marks.append(self.atom.copy())
        self.rest.mark()

    def marked(self) -> list[Array]:
        """Return what was noted."""
        parts = zip(self.marks, self.rest.marked(), strict=True)
        return [np.column_stack(part) for part in parts]

    def estimate(self, sums: Array) -> Array:
        """Return the mean."""
        link = self.link
        first = sums[:, 0] * float(link.standard(np.array(link.at))) + sums[:, 2]
        return link.center + link.scale * first / (sums[:, 0] + sums[:, 1])

    def sd(self) -> Array:
        return self.result((), lambda p: p).sd

    def result(self, at: tuple[float, ...], correct: Callable[[Array], Array]) -> Summary:
        """Return moments; quantiles of the other part where these leave the atom aside."""
        mean, sd = self.rest.moments()
        p = self.atom / (self.atom + self.rest.totals[0])
        below = (1.0 - p) * self.rest.below(float(self.link.upper_end(np.array(self.link.at))))
        wanted = np.array(at) - np.zeros((p.size, 1))
        aside = wanted - np.clip(wanted - below[:, None], 0.0, p[:, None])
        inside = (wanted > below[:, None]) & (wanted <= (below + p)[:, None])
        with np.errstate(invalid="ignore", divide="ignore"):
            rest = np.nan_to_num(aside / (1.0 - p)[:, None], nan=0.5)
        found = self.rest.quantiles(np.where(inside, np.nan, rest))
        total = p * self.link.at + (1.0 - p) * mean
        spread = p * (self.link.at - total) ** 2 + (1.0 - p) * (sd**2 + (mean - total) ** 2)
        return Summary(total, np.sqrt(spread), np.where(inside, self.link.at, found), None)
