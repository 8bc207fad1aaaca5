"""How far do cells below a limit of detection mislead a regression, and what mends it?

    python benchmarks/censored.py [--model NAME] [--tables 100] [--rows 200] [--below 0.2 0.5]

Simulated tables: log-normal exposure e, covariate w, outcome z = 1 + 0.5 log e + 0.5 w + noise, a
tenth of w missing, and 20 or 50 % of e below a limit and written as `<limit`. Both slopes are
estimated by least squares on completed versions (`impute: censored`), combined by Rubin's rules,
on the table with half the limit in place of `<limit`, and on that with no limit and no gap. Shown
are the share of 95 % intervals that hold the true slope, and the root mean square error.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

from glfm_cli import impute, pool

VERSIONS = 10
TRUE = np.array([0.5, 0.5])
TYPES = {
    "columns": {
        "e": {"type": "positive", "transform": "log", "impute": "censored"},
        "w": "real",
        "z": "real",
    }
}


def simulate(
    rows: int, share: float, rng: np.random.Generator
) -> tuple[pa.Table, float, tuple[np.ndarray, ...]]:
    """Return a table, the limit below which that share of its first column lies, and the truth."""
    w = rng.normal(size=rows)
    log_e = 0.5 * w + rng.normal(size=rows)
    z = 1.0 + 0.5 * log_e + 0.5 * w + 0.7 * rng.normal(size=rows)
    limit = float(f"{np.exp(np.quantile(log_e, share)):.3f}")
    e = [f"<{limit}" if value < limit else f"{value:.5f}" for value in np.exp(log_e)]
    gone = rng.random(rows) < 0.1
    return pa.table({"e": e, "w": pa.array(w, mask=gone), "z": z}), limit, (log_e, w, z)


def slopes(log_e: np.ndarray, w: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the least squares slopes of log e and w, their variances and degrees of freedom."""
    design = np.column_stack([np.ones(z.size), log_e, w])
    inverse = np.linalg.inv(design.T @ design)
    found = inverse @ design.T @ z
    free = z.size - 3
    variance = np.sum((z - design @ found) ** 2) / free * np.diag(inverse)
    return found[1:], variance[1:], free


def pooled(parts: list[tuple[np.ndarray, np.ndarray, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return estimates and half widths of their 95 % intervals, by Rubin's rules."""
    found, variances, free = zip(*parts, strict=True)
    if len(parts) == 1:
        return found[0], stats.t.ppf(0.975, free[0]) * np.sqrt(variances[0])
    rubin = pool(found, variances, free[0])
    return rubin.estimate, rubin.upper - rubin.estimate


def one_table(
    rows: int, share: float, seed: int, **options: Any
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return slopes of completed versions, of half the limit put in, and of the whole truth."""
    table, limit, true = simulate(rows, share, np.random.default_rng(seed))
    done = impute(table, TYPES, seed=seed, threads=1, **options)
    z = table["z"].to_numpy()
    parts = []
    for version in done.multiple(VERSIONS).tables():
        e = np.array([float(text) for text in version["e"].to_pylist()])
        parts.append(slopes(np.log(e), version["w"].to_numpy(), z))
    e = np.array([limit / 2 if t[0] == "<" else float(t) for t in table["e"].to_pylist()])
    w = table["w"].to_numpy()
    known = ~np.isnan(w)
    half = slopes(np.log(e[known]), w[known], z[known])
    return [pooled(parts), pooled([half]), pooled([slopes(*true)])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="bsvd")
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--below", type=float, nargs="*", default=[0.2, 0.5])
    given = parser.parse_args()
    print("below   method        inside (e, w)    error (e, w)")
    for share in given.below:
        found = [
            one_table(given.rows, share, seed, model=given.model, chains=4, warmup=100, draws=50)
            for seed in range(given.tables)
        ]
        for name, which in (("completed", 0), ("half", 1), ("none", 2)):
            estimate, half = (np.array([one[which][k] for one in found]) for k in (0, 1))
            inside = np.mean(np.abs(estimate - TRUE) <= half, axis=0)
            error = np.sqrt(np.mean((estimate - TRUE) ** 2, axis=0))
            print(
                f"{share:4.0%}    {name:12}  {inside[0]:6.1%} {inside[1]:6.1%}    "
                f"{error[0]:.4f} {error[1]:.4f}"
            )


if __name__ == "__main__":
    main()
