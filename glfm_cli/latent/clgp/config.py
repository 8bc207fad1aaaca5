"""Settings of the latent Gaussian process (`clgp`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from glfm_cli.settings import require, require_each, require_whole

WIDE_TABLE = 30  # columns from which on a table starts with more dimensions


@dataclass(frozen=True)
class ClgpConfig:
    """Settings of the latent Gaussian process; `--set name=value` reaches each.

    dimensions : Q of the latent space; None: half the columns, at most 10, or 16 where these are
        more than 30, and half of that in the fourth restart
    inducing : M inducing points; None: a fifth of the rows, from 20 to 100
    kernel : `both`, linear plus squared exponential; `rbf`, the latter alone [CLGP section 3];
        `linear`, the latent Gaussian model of [CLGP section 5]
    samples : T of every row's place in an iteration, in antithetic pairs
    category_samples : E of the logits of a column with three levels or more, antithetic
    iterations : of the ascent, and the least of them for a tall table
    passes : over a table that is taken in batches
    batch : rows of an iteration; a table with more is taken in batches
    learning_rate : of Adam, the largest on its way
    first_penalty : by which every second restart multiplies the penalty of places away from the
        prior at first, so that rows can part; it grows to 1
    warm_up : share of the iterations over which it does
    """

    dimensions: int | None = None
    inducing: int | None = None
    kernel: Literal["both", "rbf", "linear"] = "both"
    samples: int = 2
    category_samples: int = 8
    iterations: int = 300
    passes: int = 20
    batch: int = 4096
    learning_rate: float = 0.03
    first_penalty: float = 0.1
    warm_up: float = 0.4

    def __post_init__(self) -> None:
        require_whole(
            self,
            dimensions=(1, 1000),
            inducing=(1, 10_000),
            iterations=(1, 1_000_000),
            passes=(1, 100_000),
            batch=(1, 1_000_000),
        )
        expected = "an even number from 2 to 1000"
        require_each(
            self, "samples category_samples", lambda n: 2 <= n <= 1000 and n % 2 == 0, expected
        )
        shares, expected = "learning_rate first_penalty warm_up", "a number above 0, at most 1"
        require_each(self, shares, lambda x: 0.0 < x <= 1.0, expected)
        kernels = ("both", "rbf", "linear")
        require(self.kernel in kernels, "kernel", self.kernel, "both, rbf or linear")

    def sizes(self, n_columns: int) -> tuple[int, ...]:
        """Return the numbers of dimensions Q that restarts have for D columns, the usual first."""
        if self.dimensions is not None:
            return (self.dimensions,)
        usual = 16 if n_columns > WIDE_TABLE else max(1, min(10, (n_columns + 1) // 2))
        return usual, max(1, usual // 2)

    def n_inducing(self, n_rows: int) -> int:
        """Return M for a table of N rows."""
        if self.kernel == "linear":
            return 0
        wanted = max(20, min(100, n_rows // 5)) if self.inducing is None else self.inducing
        return min(wanted, n_rows)
