"""Configuration of the mixture of experts, and its prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from glfm_cli.settings import require

Array = NDArray[Any]


@dataclass(frozen=True)
class IqgmeConfig:
    """Choices of the model and of its fit. Features are on a scale of mean 0 and variance 1.

    experts : H, the most experts there can be, or that one of several tasks can have; those that
        the table does not need stay empty
    shared_experts : S, the most experts of all tasks together
    alpha_shape, alpha_rate : gamma prior of the stick-breaking parameter; 0.05 each in the thesis
    expert_variance : prior variance of a feature within an expert, in the feature's own, times a
        scale of the expert's own
    scale_shape : how firmly that scale is believed to be 1: shape and rate of its gamma prior
    expert_degrees : degrees of freedom of the Wishart prior beyond the number of features
    center_precision : u0, how many rows the prior centre of an expert is worth
    weight_shape, weight_rate : gamma prior of the precisions of the experts' weights
    weight_center : g0, how many experts the prior centre of the weights is worth
    iterations : at most so many of one start
    short : iterations of every start before the better half goes on
    inference : variational, or by Gibbs sampling
    sweeps : of every chain of the sampler, of which the second half is kept from
    draws : kept of every chain
    tolerance : relative rise of the bound, twice running, at which the fit has converged
    """

    experts: int = 20
    shared_experts: int = 50
    alpha_shape: float = 1.0
    alpha_rate: float = 1.0
    expert_variance: float = 1.0
    scale_shape: float = 1.0
    expert_degrees: float = 2.0
    center_precision: float = 0.1
    weight_shape: float = 0.01
    weight_rate: float = 0.01
    weight_center: float = 0.1
    iterations: int = 1000
    short: int = 20
    tolerance: float = 1e-5
    inference: Literal["variational", "gibbs"] = "variational"
    sweeps: int = 400
    draws: int = 20

    def __post_init__(self) -> None:
        whole = {"experts": 1, "shared_experts": 1, "iterations": 1, "short": 1}
        whole |= {"sweeps": 2, "draws": 1}
        for name, least in whole.items():
            value = getattr(self, name)
            require(value >= least, name, value, f"a whole number from {least}")
        positive = (
            *("alpha_shape", "alpha_rate", "expert_variance", "scale_shape", "center_precision"),
            *("weight_shape", "weight_rate", "weight_center", "tolerance"),
        )
        for name in positive:
            require(getattr(self, name) > 0, name, getattr(self, name), "a number above 0")
        require(self.expert_degrees > 1, "expert_degrees", self.expert_degrees, "a number above 1")


@dataclass(frozen=True)
class Prior:
    """The prior in the symbols of the model's description.

    u0, nu0, m0 (P,), B0_inv (P, P) : normal-Wishart of an expert, Lam ~ W((r B0_inv)^-1, nu0)
    c0 : shape and rate of the gamma prior of r, the scale of each expert
    t1, t2 : of alpha;  a0, b0, g0 : of the weights
    """

    u0: float
    nu0: float
    m0: Array
    B0_inv: Array
    c0: float
    t1: float
    t2: float
    a0: float
    b0: float
    g0: float

    @classmethod
    def of(cls, config: IqgmeConfig, n_features: int) -> Prior:
        """Return the prior of a table of standardised features."""
        nu0 = n_features + config.expert_degrees
        return cls(
            u0=config.center_precision,
            nu0=nu0,
            m0=np.zeros(n_features),
            B0_inv=nu0 * config.expert_variance * np.eye(n_features),
            c0=config.scale_shape,
            t1=config.alpha_shape,
            t2=config.alpha_rate,
            a0=config.weight_shape,
            b0=config.weight_rate,
            g0=config.weight_center,
        )
