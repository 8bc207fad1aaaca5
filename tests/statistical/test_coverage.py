"""On tables drawn from the model itself, its intervals cover and its log score wins.

Columns of every type are drawn from a latent feature model with known weights; cells are hidden
completely at random and completed by `evaluate`. Columns are left on their own scale, so that links
calibrated on a column and the law that made it are the same up to what a sample tells.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import Evaluation, evaluate

TYPES: dict[str, Any] = {
    **{f"r{i}": {"type": "real", "transform": "none"} for i in range(6)},
    **{f"p{i}": {"type": "positive", "transform": "log"} for i in range(3)},
    **{f"n{i}": {"type": "count", "transform": "log1p"} for i in range(2)},
    **{f"o{i}": "ordinal" for i in range(3)},
    **{f"c{i}": "categorical" for i in range(2)},
}


def simulated(seed: int, n_rows: int) -> pa.Table:
    """Return a table whose cells are links of Z B + noise, four binary features and a bias."""
    rng = np.random.default_rng(seed)
    Z = np.column_stack([np.ones(n_rows), rng.random((n_rows, 4)) < [0.5, 0.4, 0.3, 0.25]])

    def latent(noise: float) -> np.ndarray:
        B = rng.standard_normal(5)
        return Z @ B + noise * rng.standard_normal(n_rows)

    columns: dict[str, np.ndarray] = {}
    for name, spec in TYPES.items():
        kind = spec if isinstance(spec, str) else spec["type"]
        if kind == "real":
            columns[name] = 10 + 3 * latent(0.6)
        elif kind == "positive":
            columns[name] = np.exp(1 + 0.6 * latent(0.6))
        elif kind == "count":
            columns[name] = np.floor(np.exp(1.5 + 0.5 * latent(0.6)))
        elif kind == "ordinal":
            columns[name] = np.digitize(latent(1.0), [-1.0, 0.0, 1.0]).astype(str)
        else:
            utilities = np.column_stack([latent(1.0) for _ in range(3)])
            columns[name] = np.array(["a", "b", "c"])[np.argmax(utilities, axis=1)]
    return pa.table(columns)


def evaluations(seeds: range, n_rows: int, **options: Any) -> list[Evaluation]:
    return [
        evaluate(
            simulated(seed, n_rows), {"columns": TYPES}, rates=[0.3], repeats=1,
            methods=["glfm", "sibp", "marginal", "draw"], seed=seed, **options,
        )
        for seed in seeds
    ]  # fmt: skip


def values(done: list[Evaluation], method: str, score: str, kinds: tuple[str, ...]) -> np.ndarray:
    """Return (tables, columns): a score of the columns of some types, or of all together."""
    return np.array(
        [
            [
                s.value
                for fit in one.fits
                if fit.id.method == method
                for s in fit.scores
                if s.score == score and (s.scope == "column" if kinds else s.scope == "all")
                if not kinds or s.type in kinds
            ]
            for one in done
        ]
    )


def check_coverage(done: list[Evaluation], slack: float) -> None:
    """Compare coverage of real and positive columns with nominal.

    Cells of a table share its draw of the features, so the Monte Carlo error is that of
    the means of tables, which are independent of each other.
    """
    for level in (50, 80, 95):
        by_table = values(done, "glfm", f"coverage_{level}", ("real", "positive")).mean(axis=1)
        error = by_table.std(ddof=1) / np.sqrt(by_table.size)
        assert by_table.mean() == pytest.approx(level / 100, abs=4 * error + slack), level
        # Whole numbers cannot end an interval inside a step: these hold at least as much.
        discrete = values(done, "glfm", f"coverage_{level}", ("count", "ordinal"))
        assert discrete.mean() > level / 100 - 0.01, level


def check_log_scores(done: list[Evaluation]) -> None:
    """Check that the model's log score is above each baseline's on every table."""
    own = values(done, "glfm", "log_score", ())[:, 0]
    for baseline in ("sibp", "marginal"):
        gain = own - values(done, baseline, "log_score", ())[:, 0]
        assert (gain > 0).all(), baseline
    for kind in ("categorical", "ordinal"):  # where a random observed level has a log score too
        gain = values(done, "glfm", "log_score", (kind,)) - values(
            done, "draw", "log_score", (kind,)
        )
        assert gain.mean() > 0.05


def test_intervals_cover_and_the_log_score_wins() -> None:
    """A brief form of the next test: few tables, short chains."""
    done = evaluations(range(2), 120, jobs=1, chains=4, warmup=30, draws=10, thin=1)
    check_coverage(done, slack=0.03)
    check_log_scores(done)


@pytest.mark.slow
def test_intervals_cover_and_the_log_score_wins_at_length() -> None:
    done = evaluations(range(20), 300, jobs=1, chains=4, warmup=100, draws=20, thin=2)
    check_coverage(done, slack=0.01)
    check_log_scores(done)
