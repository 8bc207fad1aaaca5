"""How much forecasts of labels count: those of experts, of trees, and the labels' own shares.

    p(y) = w_1 p_experts(y)^s / c + w_2 p_trees(y) + w_3 p_labels(y)

Labels that none of them has seen tell this (`stacking`). Some rows have a label that no feature
tells: for these there is p_labels, the shares of the others, without which experts have to be less
sure of all rows. With probability 1/2 there are none, w_3 = 0, and experts have the powers of
their own (`temperature`); else w ~ Dirichlet(1, 1, 1) and log s ~ N(0, SPREAD^2), s by quadrature.
Both are averaged by their evidence, as far as `stacked` bounds it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit, softmax

from glfm_cli.arrays import Array, log_sum
from glfm_cli.classification.stacking import stacked
from glfm_cli.latent.iqgme import Member
from glfm_cli.latent.iqgme.temperature import LARGEST_POWER, SPREAD, tempered
from glfm_cli.latent.model import take

FARTHEST, NODES = 3.0, 13  # standard deviations, and places, at which log s is looked at
HALF = 0.5  # of a label more of each level


@dataclass(frozen=True, eq=False)
class LabelMixing:
    """How forecasts of labels of R levels mix.

    weights : (3,) of experts, trees and shares;  shares : (R,)
    power : to which forecasts of experts, with the powers of their own, are raised
    """

    weights: Array
    shares: Array
    power: float

    @classmethod
    def of(cls, members: Sequence[Member], trees: Array, code: Array) -> Self:
        """Return how forecasts mix by n labels.

        members : the fits that predict together, whose `left_out` are of these labels
        trees : (n,) log probability that trees give to each label, were it not known
        code : (n,) which level each label is
        """
        first = members[0].left_out
        assert first is not None
        n, R = first.shape
        counts = np.bincount(code, minlength=R)
        others = np.log((counts[code] - 1.0 + HALF) / (n - 1.0 + HALF * R))
        plain, log_plain = stacked(np.column_stack([_experts(members, code), trees]))
        z = np.linspace(-FARTHEST, FARTHEST, NODES)
        log_prior = -0.5 * z**2 - log_sum(-0.5 * z**2)
        experts = [_experts(members, code, s) for s in np.exp(SPREAD * z)]
        each = [stacked(np.column_stack([own, trees, others])) for own in experts]
        log_p = log_prior + [bound for _, bound in each]
        at_z, shared = softmax(log_p), float(expit(log_sum(log_p) - log_plain))
        weights = shared * (at_z @ [w for w, _ in each]) + (1.0 - shared) * np.append(plain, 0.0)
        own = sum(member.weight * np.log(member.power) for member in members)
        power = np.exp(shared * (SPREAD * (at_z @ z) - own))
        return cls(weights, (counts + HALF) / (n + HALF * R), float(power))

    def mixed(self, p: Array, trees: Array) -> Array:
        """Return the mixture (n, R) of forecasts of experts and of trees (n, R)."""
        if self.power != 1.0:
            p = np.maximum(p, 0.0) ** self.power
            p = p / p.sum(axis=1, keepdims=True)
        of_experts, of_trees, of_shares = self.weights
        return np.asarray(of_experts * p + of_trees * trees + of_shares * self.shares)

    def pack(self) -> dict[str, Array]:
        """Return it as named arrays."""
        return {"weights": self.weights, "shares": self.shares, "power": np.array(self.power)}

    @classmethod
    def unpack(cls, arrays: Mapping[str, Array], n_levels: int) -> Self:
        """Return what `pack` gave; ValueError, with a phrase, when it is no such thing."""
        weights = take(arrays, "weights", np.float64, (3,))
        shares = take(arrays, "shares", np.float64, (n_levels,))
        for name, one in (("weights", weights), ("shares", shares)):
            if not (np.all(one >= 0.0) and abs(one.sum() - 1.0) < 1e-9):
                raise ValueError(f"'{name}' do not add up to 1")
        power = float(take(arrays, "power", np.float64, ()))
        if not 0.0 < power <= LARGEST_POWER**2:
            raise ValueError("'power' is out of range")
        return cls(weights, shares, power)


def _experts(members: Sequence[Member], code: Array, s: float | None = None) -> Array:
    """Return the log probabilities (n,) of labels left out, to the power s or those of members."""
    each = []
    for member in members:
        assert member.left_out is not None
        log_p = tempered(member.left_out, member.power if s is None else s)
        each.append(np.log(member.weight) + log_p[np.arange(code.size), code])
    return log_sum(np.array(each), axis=0)
