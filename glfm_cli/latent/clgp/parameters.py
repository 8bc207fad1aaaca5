"""The parameters of the latent Gaussian process: what rows share, and where each row lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.table import Slots
from glfm_cli.latent.model import take

LEAST_NOISE = 1e-4  # variance, on a scale on which columns have variance 1
MOST_LOG = 50.0  # of the magnitude of logarithms that are read back
FARTHEST = 1e6  # that a row or a weight lies from the origin, which both have unit variance about


@dataclass
class Shared:
    """Everything that rows share; P = Q + M features, or Q, or M (`n_linear`).

    Z : (M, Q) inducing places;  log_ell : (Q,) log lengths;  log_rho : () log weight of the linear
        part of the kernel
    log_a, b : (S,) log amplitudes and intercepts
    log_noise : (D,) log noise variances, 0 where there is none to learn
    steps : first threshold of each ordered column, then the logs of the steps to the next ones
    mu : (P, S), V : (P, P), log_c : (S, P), of q(e_s) = N(mu_s, V diag(c_s^2) V'); log_c is (S, 0)
        where the weights are certain
    """

    Z: Array
    log_ell: Array
    log_rho: Array
    log_a: Array
    b: Array
    log_noise: Array
    steps: Array
    mu: Array
    log_c: Array
    V: Array

    @property
    def n_linear(self) -> int:
        """How many features are linear: Q or 0."""
        return int(self.mu.shape[0] - self.Z.shape[0])

    @property
    def certain(self) -> bool:
        """Whether the weights have no variance."""
        return not self.log_c.size

    def thresholds(self, slots: Slots, d: int) -> Array:
        """Return the increasing thresholds (R - 1,) of an ordered column."""
        steps = self.steps[slots.thresholds[d]]
        return np.concatenate([steps[:1], steps[:1] + np.cumsum(np.exp(steps[1:]))])

    def arrays(self) -> dict[str, Array]:
        """Return the arrays by name, on the same memory."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def copy(self) -> Self:
        """Return a copy that shares no memory."""
        return type(self)(**{name: value.copy() for name, value in self.arrays().items()})

    @classmethod
    def taken(cls, arrays: Mapping[str, Array], slots: Slots) -> Self:
        """Return the parameters among named arrays, checked; ValueError says what is wrong."""
        S, D = slots.n_latent, len(slots.kinds)
        Z = take(arrays, "Z", np.float64, (None, None))
        M, Q = Z.shape
        mu = take(arrays, "mu", np.float64, (None, S))
        P = mu.shape[0]
        if Q < 1 or P not in (M, M + Q) or P == 0:
            raise ValueError("'mu' does not fit 'Z'")
        found = cls(
            Z=Z,
            log_ell=take(arrays, "log_ell", np.float64, (Q,)),
            log_rho=take(arrays, "log_rho", np.float64, ()),
            log_a=take(arrays, "log_a", np.float64, (S,)),
            b=take(arrays, "b", np.float64, (S,)),
            log_noise=take(arrays, "log_noise", np.float64, (D,)),
            steps=take(arrays, "steps", np.float64, (slots.n_thresholds,)),
            mu=mu,
            log_c=take(arrays, "log_c", np.float64, (S, P)),
            V=take(arrays, "V", np.float64, (P, P)),
        )
        for name in ("log_ell", "log_rho", "log_a", "log_noise", "log_c", "steps"):
            if np.any(np.abs(getattr(found, name)) > MOST_LOG):
                raise ValueError(f"'{name}' has a number beyond -{MOST_LOG:g} to {MOST_LOG:g}")
        if np.any(np.abs(mu) > FARTHEST):
            raise ValueError(f"'mu' has a number beyond -{FARTHEST:g} to {FARTHEST:g}")
        if np.any(found.log_noise < np.log(LEAST_NOISE)):
            raise ValueError("'log_noise' has a number below its floor")
        if np.abs(found.V.T @ found.V - np.eye(P)).max() > 1e-6:
            raise ValueError("'V' is not orthogonal")
        return found


@dataclass
class Places:
    """q(x_n) = N(m_n, diag(exp(2 log_sd_n))) of some rows: m, log_sd (n, Q), log_sd <= 0."""

    m: Array
    log_sd: Array

    def of(self, rows: slice | Array) -> Places:
        """Return those of some rows."""
        return Places(self.m[rows], self.log_sd[rows])

    def sample(self, normals: Array) -> Array:
        """Return x = m + sd o normals (T n, Q) for normals (T, n, Q)."""
        x: Array = self.m + np.exp(self.log_sd) * normals
        return x.reshape(-1, self.m.shape[1])

    @classmethod
    def taken(cls, arrays: Mapping[str, Array], n_rows: int, n_dimensions: int) -> Self:
        """Return the places among named arrays, checked; ValueError says what is wrong."""
        shape = (n_rows, n_dimensions)
        m, log_sd = (take(arrays, name, np.float64, shape) for name in ("m", "log_sd"))
        if np.any(np.abs(m) > FARTHEST):
            raise ValueError(f"'m' has a number beyond -{FARTHEST:g} to {FARTHEST:g}")
        if np.any(log_sd > 0.0) or np.any(log_sd < -MOST_LOG):
            raise ValueError(f"'log_sd' has a number that is not from -{MOST_LOG:g} to 0")
        return cls(m, log_sd)
