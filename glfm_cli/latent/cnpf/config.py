"""Settings of the Poisson factorization (`cnpf`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from glfm_cli.settings import require, require_each, require_whole

WHOLE = 20_000  # rows up to which a pass sees all of them at once
MINIBATCH = 1_000  # rows of a stochastic step on more
PASSES, EPOCHS = 100, 20
MOST_FULL = 15  # dimensions up to which the covariance of q(v) is full


@dataclass(frozen=True)
class CnpfConfig:
    """Settings of the Poisson factorization; `--set name=value` reaches each.

    components : T, the most components; those without counts shrink to nothing
    dimensions : D, of the locations that correlate components
    likelihood : "poisson", or "topics": a row's words given their number (DILN)
    inverse_link : from the Gaussian to the rate of x; "exp" or "softplus"
    scaled : give every row a size of its own; false: hierarchical gamma process
    correlated : give components locations; false: scaled hierarchical gamma process
    location_variance : sl2, prior variance of a location's coordinates, below 1 so that rates are
        finite
    size_variance : sm2, prior variance of the rows' log sizes
    concentration : alpha, fixed; few components are expected where it is small
    rate_shape, rate_rate : gamma prior of c, the rate of the weights
    column_shape : ah, gamma shape of a_ki, or the Dirichlet parameter of topics. Small values end
        near the unigram
    initial_weight : w of every component at the start; rows must begin sparse
    free_pass : the first pass that moves weights, once columns have taken shape; locations move
        from a third of the passes on
    passes : the most passes over all rows; None: 100, or 20 of minibatches
    minibatch : rows of a stochastic step; None: all rows at once up to 20,000, else 1,000
    forgetting, delay : the step of minibatch t is (delay + t)^-forgetting
    tolerance : relative rise of the bound over five passes below which it has converged
    tau : by which the weights of components are multiplied for new rows, which have fewer counts
        than those that were fitted
    merge_every : passes after which components alike are tried as one, which helps to count them
        but not to predict; 0: never. `glfm explore` takes 15
    """

    components: int = 50
    dimensions: int = 10
    likelihood: Literal["poisson", "topics"] = "poisson"
    inverse_link: Literal["exp", "softplus"] = "exp"
    scaled: bool = True
    correlated: bool = True
    location_variance: float = 0.1
    size_variance: float = 1.0
    concentration: float = 1.0
    rate_shape: float = 1.0
    rate_rate: float = 0.01
    column_shape: float = 0.5
    initial_weight: float = 0.3
    free_pass: int = 10
    passes: int | None = None
    minibatch: int | None = None
    forgetting: float = 0.9
    delay: float = 50.0
    tolerance: float = 1e-6
    tau: float = 1.0
    merge_every: int = 0

    def __post_init__(self) -> None:
        positive = "size_variance concentration rate_shape rate_rate initial_weight"
        require_each(self, positive, lambda x: 1e-6 <= x <= 1e6, "a number from 1e-6 to 1e6")
        for name, fits, expected in (
            # Below, exp(E log a) leaves the range of the kernel's tables.
            ("column_shape", 0.01 <= self.column_shape <= 1e6, "from 0.01 to 1e6"),
            ("location_variance", 1e-6 <= self.location_variance < 1.0, "from 1e-6 to below 1"),
            ("forgetting", 0.5 < self.forgetting <= 1.0, "above 0.5, at most 1"),
            ("delay", 1.0 <= self.delay <= 1e9, "from 1 to 1e9"),
            ("tau", 0.0 < self.tau <= 64.0, "above 0, at most 64"),
            ("tolerance", 0.0 <= self.tolerance <= 1.0, "from 0 to 1"),
        ):
            require(fits, name, getattr(self, name), f"a number {expected}")
        most = 1000
        require_whole(self, components=(1, most), dimensions=(1, most), free_pass=(0, most))
        require_whole(self, merge_every=(0, most))
        expected = "a whole number above 0"
        require_each(self, "passes minibatch", lambda n: n is None or 1 <= n <= 10**9, expected)

    @property
    def topics(self) -> bool:
        """Whether rows are modelled given their totals."""
        return self.likelihood == "topics"

    @property
    def n_locations(self) -> int:
        """The coordinates of v that components have locations in: D or 0."""
        free = self.correlated and (self.scaled or self.topics)
        return self.dimensions if free else 0

    @property
    def n_free(self) -> int:
        """F, the free coordinates of v: locations, and the row's size unless totals fix it."""
        return self.n_locations + int(self.scaled and not self.topics)

    @property
    def diagonal(self) -> bool:
        """Whether the covariance of q(v) is diagonal."""
        return self.dimensions > MOST_FULL

    def minibatch_of(self, n_rows: int) -> int:
        """Return how many rows a step sees: all, or a minibatch of them."""
        if self.minibatch is not None:
            return min(self.minibatch, n_rows)
        return n_rows if n_rows <= WHOLE else MINIBATCH

    def locations_pass(self, n_rows: int) -> int:
        """Return the first pass that moves locations: after a third, as components come first.

        Locations that move while components take shape hold them where the bound is lower.
        """
        third = self.passes_of(n_rows) // 3 if self.n_locations else 0
        return max(self.free_pass, third)

    def passes_of(self, n_rows: int) -> int:
        """Return the most passes over all rows."""
        if self.passes is not None:
            return self.passes
        return PASSES if self.minibatch_of(n_rows) == n_rows else EPOCHS
