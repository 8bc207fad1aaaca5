"""One draw of a feature model as an explanation of the table.

    Z     (N, K) which row has which feature
    B     (K, S) what a feature adds to each latent column
    bias  (S,)   where a row without any feature stands

A feature that is on where another is off, with the opposite weights and its own added to the bias,
gives the same eta. So with a bias every feature is turned to be on in at most half of the rows:
"nothing on" is then the common case, and two draws can be compared.   [GLFM, section 5.2.1]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import UsageError
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.latent.capabilities import RowsTogether
from glfm_cli.latent.model import LatentModel, gaussian
from glfm_cli.links import Params


@runtime_checkable
class FeatureModel(Protocol):
    """A latent model whose rows have binary features: eta = Z B."""

    def features(self, draw: Any, rows: slice | Array) -> Array:
        """Return Z (n, K) uint8, the bias column first when there is one."""

    def weights(self, draw: Any) -> Array:
        """Return B (K, S), the bias row first when there is one."""


@dataclass(frozen=True)
class Explanation:
    """A draw, its features turned: Z (N, K) uint8, B (K, S), bias (S,), noise (D,).

    chain, draw : which it is, counted from 0
    shift : (N, S) what rows share by groups and in time, 0 without
    """

    chain: int
    draw: int
    Z: Array
    B: Array
    bias: Array
    noise: Array
    params: tuple[Params, ...]
    log_likelihood: float
    shift: Array

    @property
    def eta(self) -> Array:
        """Return bias + Z B + shift, (N, S)."""
        return self.eta_of(slice(None))

    def eta_of(self, rows: slice | Array, features: slice | Array = slice(None)) -> Array:
        """Return eta (n, S) of some rows, by some features."""
        own = self.Z[rows][:, features].astype(np.float64) @ self.B[features]
        return self.bias + own + self.shift[rows]


def feature_model(model: LatentModel) -> FeatureModel:
    """Return the model as one with features.

    Raises UsageError: it has none.
    """
    if not isinstance(model, FeatureModel):
        raise UsageError(
            f"the model '{model.name}' has no features to explore",
            hint="Use a model with binary features: --model glfm.",
        )
    return cast(FeatureModel, model)


def numbered(posterior: Posterior) -> Iterator[tuple[int, int, Draw]]:
    """Yield every draw with its chain and its number there."""
    for c, chain in enumerate(posterior.chains):
        for t, draw in enumerate(chain):
            yield c, t, draw


def explain(posterior: Posterior, chain: int, draw: int, *, bias: bool) -> Explanation:
    """Return one draw as an explanation."""
    model = feature_model(posterior.model)
    kept = posterior.chains[chain][draw]
    Z = model.features(kept.latent, slice(None))
    B = model.weights(kept.latent)
    base = np.zeros(B.shape[1])
    if bias:
        Z, base, B = Z[:, 1:], B[0].copy(), B[1:].copy()
        turn = Z.mean(axis=0) > 0.5 if Z.shape[1] else np.zeros(0, dtype=bool)
        Z = np.where(turn, 1 - Z, Z).astype(np.uint8)
        base += B[turn].sum(axis=0)
        B[turn] *= -1.0
    used = Z.any(axis=0)
    return Explanation(
        chain=chain,
        draw=draw,
        Z=Z[:, used],
        B=B[used],
        bias=base,
        noise=gaussian(posterior.model).noise(kept.latent),
        params=kept.params,
        log_likelihood=kept.trace["log_likelihood"],
        shift=_shift(posterior.model, kept, (len(Z), base.size)),
    )


def _shift(model: LatentModel, draw: Draw, shape: tuple[int, int]) -> Array:
    """Return what rows share (N, S)."""
    if not isinstance(model, RowsTogether):
        return np.broadcast_to(0.0, shape)
    parts, found = model.row_parts(draw.latent), np.zeros(shape)
    found[:, parts.at] = parts.g @ parts.loading + parts.own + parts.groups
    return found


def memberships(posterior: Posterior, draw: Draw, rows: slice | Array, *, bias: bool) -> Array:
    """Return Z (n, K) uint8 of some rows of a draw, the bias left out, nothing turned."""
    return feature_model(posterior.model).features(draw.latent, rows)[:, int(bias) :]
