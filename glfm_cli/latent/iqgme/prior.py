"""Configuration of the mixture of experts, and its prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.settings import require, require_each, require_whole

FACTORS = 15  # where the table decides
FEWEST = 12  # features that are modelled by factors unless asked for
MOST_BOTH = 100  # features that half of the starts give full covariances, whatever the table
ROWS_EACH = 20  # rows for each feature from which full covariances alone will do


@dataclass(frozen=True)
class IqgmeConfig:
    """Choices of the model and of its fit. Features are on a scale of mean 0 and variance 1.

    experts : H, the most experts there can be, or that one of several tasks can have; those that
        the table does not need stay empty
    shared_experts : S, the most experts of all tasks together
    factors : L, on which the features of every expert depend, at most; 0 gives experts full
        covariances, None decides by the table
    alpha_shape, alpha_rate : gamma prior of the stick-breaking parameter; 0.05 each in the thesis
    expert_variance : prior variance of a feature within an expert, in the feature's own, times a
        scale of the expert's own
    scale_shape : how firmly that scale is believed to be 1: shape and rate of its gamma prior
    expert_degrees : degrees of freedom of the Wishart prior beyond the number of features
    center_precision : u0, how many rows the prior centre of an expert is worth
    weight_shape, weight_rate : gamma prior of the precisions of the experts' weights; the rate is
        that of the intercept's, and the prior mean of one that the features have in common
    rate_shape : of the gamma prior of that one
    weight_center : g0, how many experts the prior centre of the weights is worth
    slips : share of labels that are any level, whatever the features; forecasts say so
    indicators : whether it is a feature that a cell is missing; for who makes features
    own_rules : whether each of several tasks has rules of its own, about those that they share
    own_precision : of what these are off by; None chooses it by labels that are foretold
    own_shape, own_rate : gamma prior of that of the intercepts
    stack : whether something predicts together with the experts, weighed by labels that are left
        out: trees; of several tasks fits to all as one, and, where features are many, to each
        alone; for who fits classifiers
    iterations : at most so many of one start
    short : iterations of every start before the better half goes on
    inference : variational, or by Gibbs sampling
    sweeps : of every chain of the sampler, of which the second half is kept from
    draws : kept of every chain
    tolerance : rise of the bound, twice running, at which the fit has converged, relative to it or
        to the number of cells
    average : whether the better half of the starts predict together, or the best alone
    """

    experts: int = 20
    shared_experts: int = 50
    factors: int | None = None
    alpha_shape: float = 1.0
    alpha_rate: float = 1.0
    expert_variance: float = 1.0
    scale_shape: float = 1.0
    expert_degrees: float = 2.0
    center_precision: float = 0.1
    weight_shape: float = 0.5
    weight_rate: float = 0.1
    rate_shape: float = 0.1
    weight_center: float = 0.1
    slips: float = 0.01
    indicators: bool = False
    own_rules: bool = True
    own_precision: float | None = None
    own_shape: float = 1.0
    own_rate: float = 0.01
    stack: bool = True
    iterations: int = 1000
    short: int = 10
    tolerance: float = 1e-4
    average: bool = True
    inference: Literal["variational", "gibbs"] = "variational"
    sweeps: int = 400
    draws: int = 20

    def __post_init__(self) -> None:
        from_1 = (1, None)
        require_whole(self, experts=from_1, shared_experts=from_1, iterations=from_1, short=from_1)
        require_whole(self, sweeps=(2, None), draws=from_1)
        positive = "alpha_shape alpha_rate expert_variance scale_shape center_precision"
        positive += " weight_shape weight_rate rate_shape weight_center tolerance"
        require_each(self, f"{positive} own_shape own_rate", lambda x: x > 0, "a number above 0")
        require(0.0 <= self.slips < 1.0, "slips", self.slips, "a share from 0 to below 1")
        own = self.own_precision
        require(own is None or own > 0, "own_precision", own, "auto, or a number above 0")
        factors = self.factors
        require(factors is None or factors >= 0, "factors", factors, "auto, or a number from 0")
        require(self.expert_degrees > 1, "expert_degrees", self.expert_degrees, "a number above 1")


def factors_for(config: IqgmeConfig, n_rows: int, n_features: int) -> int:
    """Return how many factors a table's experts have, 0 for full covariances.

    Unless the configuration says, factors are for tables with more features than a fifth of the
    rows, if not only because there are hardly any of both.
    """
    if config.factors is not None:
        return min(config.factors, n_features)
    if 5 * n_features <= n_rows or n_features < FEWEST:
        return 0
    return _most_factors(n_rows, n_features)


def _most_factors(n_rows: int, n_features: int) -> int:
    return max(1, min(FACTORS, n_features // 2, n_rows // 4))


def forms_for(
    config: IqgmeConfig, n_rows: int, n_features: int, n_labelled: int
) -> tuple[int, ...]:
    """Return how many factors experts have in each form that starts come in, 0 for none.

    Unless the configuration says, starts that predict together come in both where features are
    many, but not so many that full covariances take too long, nor labels so many that rules of all
    features can be learnt from them: which form is better differs from table to table, and so does
    it whether the bound knows.
    """
    factors = factors_for(config, n_rows, n_features)
    if config.factors is not None or not config.average:
        return (factors,)
    if FEWEST <= n_features <= MOST_BOTH and n_labelled <= ROWS_EACH * n_features:
        return (factors, 0) if factors else (0, _most_factors(n_rows, n_features))
    return (factors,)


def what_forms(
    config: IqgmeConfig, n_rows: int, n_features: int, n_labelled: int, starts: int
) -> str | None:
    """Return what is to be said where the table decided that features depend on factors."""
    if config.factors is not None:
        return None
    forms = forms_for(config, n_rows, n_features, n_labelled)[:starts]
    factors = max(forms)
    if not factors:
        return None
    rows = f"{n_rows} rows" if n_labelled == n_rows else f"{n_labelled} labelled rows"
    why = f"more than one for {ROWS_EACH} of the {rows}"
    if 5 * n_features > n_rows:
        why = f"more than a fifth of the {n_rows} rows"
    who = "half of the starts describe" if 0 in forms else "experts describe"
    return (
        f"{n_features} features are {why}: {who} them by {factors} factors at most "
        "(--set factors=0 for none)"
    )


@dataclass(frozen=True)
class Prior:
    """The prior in the symbols of the model's description.

    t1, t2 : of alpha;  a0, b0, g0 : of the weights;  o1, o2 : of tasks' deviations
    s0 : shape of the prior of the rate that features have in common, of mean b0
    u0, nu0, m0 (P,), B0_inv (P, P) : normal-Wishart of an expert, Lam ~ W((r B0_inv)^-1, nu0)
    c0 : shape and rate of the gamma prior of r, the scale of each expert
    """

    t1: float
    t2: float
    a0: float
    b0: float
    g0: float
    s0: float
    o1: float
    o2: float
    u0: float
    nu0: float
    m0: Array
    B0_inv: Array
    c0: float

    @property
    def rules(self) -> Prior:
        """Return the prior of the rules."""
        return self

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
            s0=config.rate_shape,
            o1=config.own_shape,
            o2=config.own_rate,
        )


@dataclass(frozen=True)
class FactorPrior:
    """The prior of experts whose features depend on factors; features have variance 1.

    core : of the experts in the space of L factors
    P : features
    log_odds : of an expert to use a factor
    c0, d0 : gamma prior of the precisions of the factors' scales
    psi0, psi1 : of the experts' noise precisions;  rel0 : of the features' relative ones, mean 1
    u1, u2 : of the precision of the features' centre
    """

    core: Prior
    P: int
    log_odds: float = 0.0
    c0: float = 0.1
    d0: float = 0.1
    psi0: float = 1.0
    psi1: float = 1.0
    rel0: float = 1.0
    u1: float = 1.0
    u2: float = 1.0

    @property
    def L(self) -> int:
        """Return the number of factors."""
        return int(self.core.m0.size)

    @property
    def rules(self) -> Prior:
        """Return the prior of the rules."""
        return self.core

    @classmethod
    def of(cls, config: IqgmeConfig, n_features: int, factors: int) -> FactorPrior:
        """Return the prior of a table of standardised features."""
        return cls(Prior.of(config, factors), n_features)
