"""Forward simulation of the latent feature model: parameters, then a table.

Written from the model's definition with numpy and scipy alone, so that it shares no mistake with
the package:

    alpha ~ Gamma(a_alpha, rate b_alpha)        Z ~ Indian buffet process(alpha)
    var_B ~ InvGamma(a_B, b_B)                  sd2_d ~ InvGamma(beta1, beta2)
    b_ks ~ N(0, V),  V = sd2_d var_B or var_B   y_ns ~ N(z_n b_s, sd2_d)
    theta_d ~ order-restricted N(0, var_theta)  x_nd = f_d(y_n, theta_d)

sd2_d = 1 for categorical and ordinal columns. With a bias every row has feature 0, whose weights
have variance var_bias in place of var_B, and the first threshold is 0. A cap keeps only draws
with at most `max_features` features: (alpha, Z) are drawn again together, so alpha too has the
law it has given that event, which is what a sampler of p(alpha, Z | K <= cap) leaves invariant.

Glossary: N rows; D columns; S pseudo-columns (R - 1 for a categorical column of R levels with a
reference level, R without one, 1 for the others); K features; Kt = K + bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bits = NDArray[np.uint8]


# Columns: link constants are given, and y -> x is written out ------------------------------------


@dataclass(frozen=True)
class Real:
    """x = scale * (y + u) + shift,  u ~ N(0, var_u)."""

    scale: float = 1.0
    shift: float = 0.0
    var_u: float = 0.0
    n_latent = 1
    unit_noise = False


@dataclass(frozen=True)
class Positive:
    """x = unit * softplus(scale * (y + u) + shift),  u ~ N(0, var_u)."""

    unit: float = 1.0
    scale: float = 1.0
    shift: float = 0.0
    var_u: float = 0.0
    n_latent = 1
    unit_noise = False


@dataclass(frozen=True)
class Count:
    """x = smallest + floor(unit * softplus(scale * y + shift))."""

    unit: float = 1.0
    scale: float = 1.0
    shift: float = 0.0
    smallest: int = 0
    n_latent = 1
    unit_noise = False


@dataclass(frozen=True)
class Categorical:
    """x = the level with the largest y; the reference level has mean 0 and no pseudo-column.

    The pseudo-columns are those of the other levels, in order. Without a reference every level
    has one.
    """

    n_levels: int
    reference: int | None = None
    unit_noise = True

    @property
    def n_latent(self) -> int:
        """Number of pseudo-columns."""
        return self.n_levels - (self.reference is not None)


@dataclass(frozen=True)
class Ordinal:
    """x = number of thresholds below y."""

    n_levels: int
    n_latent = 1
    unit_noise = True


ColumnSpec = Real | Positive | Count | Categorical | Ordinal


@dataclass(frozen=True)
class Prior:
    """Hyperparameters; the letters of the module's docstring."""

    a_alpha: float = 1.0
    b_alpha: float = 1.0
    a_B: float = 2.0
    b_B: float = 2.0
    beta1: float = 2.0
    beta2: float = 0.5
    var_theta: float = 4.0
    var_bias: float | None = 10.0  # None: no bias feature
    noise_scaled: bool = True
    max_features: int | None = None
    components: int = 0  # of a linear part beside the features


@dataclass(frozen=True)
class Draw:
    """One draw of everything.

    Attributes
    ----------
    alpha, var_B : float
    Z : (N, K) uint8
        Without the bias; columns in random order.
    noise : (D,) float64
        Variances, 1 for categorical and ordinal columns.
    B : (Kt, S) float64
        Row 0 belongs to the bias when there is one.
    thresholds : tuple of (R_d - 1,) float64
        One a column, empty unless ordinal.
    y : (N, S) float64
    x : (N, D) float64
        Values in the column's own unit, or level codes 0..R_d - 1.
    U, V, omega : (N, L), (L, S), (L,) float64
        The linear part.
    """

    alpha: float
    var_B: float
    Z: Bits
    noise: Array
    B: Array
    thresholds: tuple[Array, ...]
    y: Array
    x: Array
    U: Array
    V: Array
    omega: Array


# Parameters --------------------------------------------------------------------------------------


def draw_buffet(n_rows: int, alpha: float, rng: np.random.Generator) -> Bits:
    """Draw Z from the Indian buffet process, columns in random order.

    Customer n = 1, 2, ... takes each dish already tried by m customers with probability m / n,
    and Poisson(alpha / n) new ones  [Griffiths and Ghahramani 2011, sect. 4.2].
    """
    dishes: list[list[int]] = []
    for n in range(1, n_rows + 1):
        for eaters in dishes:
            if rng.random() < len(eaters) / n:
                eaters.append(n - 1)
        dishes += [[n - 1] for _ in range(rng.poisson(alpha / n))]
    Z = np.zeros((n_rows, len(dishes)), np.uint8)
    for k, eaters in zip(rng.permutation(len(dishes)), dishes, strict=True):
        Z[eaters, k] = 1
    return Z


def draw_features(n_rows: int, prior: Prior, rng: np.random.Generator) -> tuple[float, Bits]:
    """Draw (alpha, Z) given that Z has at most `prior.max_features` features."""
    while True:
        alpha = rng.gamma(prior.a_alpha) / prior.b_alpha
        Z = draw_buffet(n_rows, alpha, rng)
        if prior.max_features is None or Z.shape[1] <= prior.max_features:
            return alpha, Z


def draw_inverse_gamma(shape: float, scale: float, rng: np.random.Generator) -> float:
    """Draw from the density proportional to v^(-shape - 1) exp(-scale / v)."""
    return scale / rng.gamma(shape)


def draw_noise(columns: Sequence[ColumnSpec], prior: Prior, rng: np.random.Generator) -> Array:
    """Draw the noise variance of each column."""
    return np.array(
        [
            1.0 if c.unit_noise else draw_inverse_gamma(prior.beta1, prior.beta2, rng)
            for c in columns
        ]
    )


def owners(columns: Sequence[ColumnSpec]) -> NDArray[np.intp]:
    """Return (S,): the column that owns each pseudo-column."""
    return np.repeat(np.arange(len(columns)), [c.n_latent for c in columns])


def draw_weights(
    n_features: int, var_B: float, noise: Array, prior: Prior, rng: np.random.Generator
) -> Array:
    """Draw B, (Kt, S), given the noise variance (S,) of each pseudo-column."""
    var = np.full(n_features, var_B)
    if prior.var_bias is not None:
        var = np.append(prior.var_bias, var)
    unit = noise if prior.noise_scaled else np.ones_like(noise)
    return rng.normal(size=(len(var), len(noise))) * np.sqrt(np.outer(var, unit))


def draw_thresholds(n_levels: int, prior: Prior, rng: np.random.Generator) -> Array:
    """Draw theta, (n_levels - 1,) ascending, density proportional to prod_r N(theta_r; 0, var).

    Sorting independent draws gives the order-restricted law, because the unrestricted one does
    not change under permutation; with the first at 0 the others are positive, so their
    magnitudes are sorted.
    """
    sd = np.sqrt(prior.var_theta)
    if prior.var_bias is None:
        return np.sort(rng.normal(0.0, sd, n_levels - 1))
    return np.append(0.0, np.sort(np.abs(rng.normal(0.0, sd, n_levels - 2))))


# The table ---------------------------------------------------------------------------------------


def softplus(v: Array) -> Array:
    """Return log(1 + e^v)."""
    return np.logaddexp(0.0, v)


def observe(column: ColumnSpec, y: Array, theta: Array, rng: np.random.Generator) -> Array:
    """Return x, (N,), of one column given its pseudo-observations y, (N, n_latent)."""
    match column:
        case Real(scale, shift, var_u):
            return scale * (y[:, 0] + rng.normal(0.0, np.sqrt(var_u), len(y))) + shift
        case Positive(unit, scale, shift, var_u):
            noisy = y[:, 0] + rng.normal(0.0, np.sqrt(var_u), len(y))
            return unit * softplus(scale * noisy + shift)
        case Count(unit, scale, shift, smallest):
            return smallest + np.floor(unit * softplus(scale * y[:, 0] + shift))
        case Categorical(_, reference):
            if reference is not None:
                y = np.insert(y, reference, rng.normal(size=len(y)), axis=1)
            return y.argmax(axis=1).astype(np.float64)
        case Ordinal():
            return (theta < y).sum(axis=1).astype(np.float64)


def draw_table(
    Z: Bits,
    B: Array,
    noise: Array,
    thresholds: Sequence[Array],
    linear: Array,
    columns: Sequence[ColumnSpec],
    prior: Prior,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Draw (y, x) given all parameters; the data step of a joint-distribution test.

    linear : (N, S) U V
    """
    design = Z.astype(np.float64)
    if prior.var_bias is not None:
        design = np.column_stack((np.ones(len(Z)), design))
    owner = owners(columns)
    y = design @ B + linear + rng.normal(size=(len(Z), len(owner))) * np.sqrt(noise[owner])
    x = [observe(column, y[:, owner == d], thresholds[d], rng) for d, column in enumerate(columns)]
    return y, np.column_stack(x)


def simulate(
    n_rows: int, columns: Sequence[ColumnSpec], prior: Prior, rng: np.random.Generator
) -> Draw:
    """Draw parameters and a complete table from the model."""
    alpha, Z = draw_features(n_rows, prior, rng)
    var_B = draw_inverse_gamma(prior.a_B, prior.b_B, rng)
    noise = draw_noise(columns, prior, rng)
    B = draw_weights(Z.shape[1], var_B, noise[owners(columns)], prior, rng)
    thresholds = tuple(
        draw_thresholds(c.n_levels, prior, rng) if isinstance(c, Ordinal) else np.empty(0)
        for c in columns
    )
    # sqrt(omega_l) half-Cauchy
    omega = rng.standard_cauchy(prior.components) ** 2
    U = rng.normal(size=(n_rows, omega.size))
    V = np.sqrt(omega)[:, None] * rng.normal(size=(omega.size, B.shape[1]))
    y, x = draw_table(Z, B, noise, thresholds, U @ V, columns, prior, rng)
    return Draw(alpha, var_B, Z, noise, B, thresholds, y, x, U, V, omega)
