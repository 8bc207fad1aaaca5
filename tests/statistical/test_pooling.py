"""Rubin's rules on the tables that `--multiple` writes: intervals cover, and R reads them.

The truth is a linear regression, not our model: a response, and a real, a count and a categorical
covariate that depend on each other. Gaps are missing at random: their chance follows the response.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy import stats

from glfm_cli import impute, pool, read_table

TRUTH = np.array([1.0, 0.8, 0.3, 0.7, -0.5])  # intercept, x, count, group b, group c
NAMES = ("intercept", "x", "count", "group b", "group c")
TYPES = {"columns": {"y": "real", "x": "real", "count": "count", "group": "categorical"}}
N_ROWS = 250
VERSIONS = 20
RATE = 0.3


def simulate(rng: np.random.Generator) -> tuple[pa.Table, pa.Table]:
    """Return a table, and the same with 30 % of each covariate missing at random."""
    x = rng.standard_normal(N_ROWS)
    count = rng.poisson(np.exp(0.6 + 0.3 * x))
    utility = np.column_stack([np.zeros(N_ROWS), 0.6 * x, 0.2 * count - 0.5])
    group = np.argmax(utility + rng.gumbel(size=utility.shape), axis=1)
    y = design(x, count, group) @ TRUTH + rng.standard_normal(N_ROWS)
    score = (y - y.mean()) / y.std()
    columns = {"x": x, "count": count, "group": np.array(["a", "b", "c"])[group]}
    gappy = {"y": y}
    for name, values in columns.items():
        # A logit with slope 1/2; the intercept makes 30 %.
        missing = rng.random(N_ROWS) < 1.0 / (1.0 + np.exp(0.9 - 0.5 * score))
        gappy[name] = pa.array(values, mask=missing)
    return pa.table({"y": y, **columns}), pa.table(gappy)


def design(x: np.ndarray, count: np.ndarray, group: np.ndarray) -> np.ndarray:
    return np.column_stack([np.ones(len(x)), x, count, group == 1, group == 2]).astype(float)


def regress(table: pa.Table) -> tuple[np.ndarray, np.ndarray, int]:
    """Return least squares coefficients, their variances and the residual degrees of freedom."""
    group = pc.index_in(table["group"], pa.array(["a", "b", "c"])).to_numpy()
    X = design(table["x"].to_numpy(), table["count"].to_numpy(), group)
    y = table["y"].to_numpy()
    inverse = np.linalg.inv(X.T @ X)
    b = inverse @ X.T @ y
    df = len(y) - X.shape[1]
    return b, np.diag(inverse) * float(np.sum((y - X @ b) ** 2)) / df, df


def interval(b: np.ndarray, variance: np.ndarray, df: np.ndarray | int) -> np.ndarray:
    half = stats.t.ppf(0.975, df) * np.sqrt(variance)
    return np.column_stack([b - half, b + half])


def pooled(tables: list[pa.Table]) -> np.ndarray:
    """Return the pooled 95 % intervals of several completed tables."""
    b, variances, df = zip(*(regress(table) for table in tables), strict=True)
    found = pool(b, variances, df[0])
    return np.column_stack([found.lower, found.upper])


def intervals(seed: int) -> dict[str, np.ndarray]:
    """Return the intervals of one data set: all cells, complete rows, pooled. (5, 2) each."""
    whole, gappy = simulate(np.random.default_rng([seed, 11]))
    done = impute(
        gappy, TYPES, model="glfm", seed=seed, chains=10, warmup=60, draws=2, thin=20, threads=1
    )  # two tables a chain, 20 sweeps apart
    return {
        "all cells": interval(*regress(whole)),
        "complete rows": interval(*regress(gappy.drop_null())),
        "pooled": pooled(list(done.multiple(VERSIONS).tables())),
    }


def test_pooled_intervals_of_a_few_data_sets_are_narrower_than_those_of_complete_rows() -> None:
    found = [intervals(seed) for seed in range(2)]
    width = {k: np.mean([np.diff(one[k])[:, 0] for one in found], axis=0) for k in found[0]}
    assert np.mean(width["pooled"] / width["complete rows"]) < 1.0
    assert np.all(width["pooled"] > 0.9 * width["all cells"])


def offs(ends: np.ndarray) -> np.ndarray:
    """Return how far the centres of intervals (n, 5, 2) are from the truth, in half widths."""
    return (ends.mean(axis=2) - TRUTH) / (np.diff(ends)[..., 0] / 2)


def true_coverage(ends: np.ndarray, control: np.ndarray) -> np.ndarray:
    """Estimate the coverage of intervals (n, 5, 2), more precisely than by counting.

    Distances from the truth are taken as normal. Those of the intervals of all cells, `control`,
    have a known law, that of t; by how much it was missed in these data sets, by chance, is taken
    off by regression (control variates).
    """
    z, known = offs(ends), offs(control)
    df = N_ROWS - len(TRUTH)
    excess = known.var(axis=0, ddof=1) - df / (df - 2) / stats.t.ppf(0.975, df) ** 2
    moment = np.mean((z - z.mean(axis=0)) * (known - known.mean(axis=0)), axis=0)
    slope = moment / known.var(axis=0)
    mean = z.mean(axis=0) - slope * known.mean(axis=0)
    sd = np.sqrt(z.var(axis=0, ddof=1) - slope**2 * excess)
    return stats.norm.cdf((1 - mean) / sd) - stats.norm.cdf((-1 - mean) / sd)


def test_the_estimate_of_coverage_is_right_for_intervals_of_known_coverage() -> None:
    rng = np.random.default_rng(1)
    z = rng.standard_normal((40_000, len(TRUTH), 2))
    known, wide = 1.97 * np.ones(len(TRUTH)), np.array([1.0, 1.645, 1.96, 2.3, 3.0])

    def ends(q: np.ndarray, half: np.ndarray) -> np.ndarray:
        return np.stack([TRUTH + q - half, TRUTH + q + half], axis=2)

    mixed = 0.8 * z[..., 0] + 0.6 * z[..., 1]
    found = true_coverage(ends(mixed, wide), ends(z[..., 0], known))
    assert np.allclose(found, 2 * stats.norm.cdf(wide) - 1, atol=0.01)


@pytest.mark.slow
def test_pooled_intervals_cover_the_truth_of_a_regression(seed: int) -> None:
    n_sets = int(os.environ.get("GLFM_TEST_SETS", "300"))
    found = [intervals(seed + i) for i in range(n_sets)]
    print(f"\n{'':27}" + "".join(f"{name:>12}" for name in NAMES))
    cover, width, better = {}, {}, {}
    for kind in found[0]:
        ends = np.array([one[kind] for one in found])
        control = np.array([one["all cells"] for one in found])
        cover[kind] = np.mean(np.abs(offs(ends)) <= 1, axis=0)
        width[kind] = np.mean(np.diff(ends)[..., 0], axis=0)
        better[kind] = true_coverage(ends, control)
        rows = {
            "cover": cover[kind],
            "chance off": better[kind],
            "width": width[kind],
            "bias": np.mean(ends.mean(axis=2) - TRUTH, axis=0),
        }
        for label, values in rows.items():
            print(f"{kind:14}{label:13}" + "".join(f"{value:12.3f}" for value in values))
    # A count of 300 has a standard error of 1 %: it must not speak against the band (1 % level),
    # and the better estimate must lie in it.
    hits = np.round(cover["pooled"] * n_sets)
    assert np.all(stats.binom.cdf(hits, n_sets, 0.91) > 0.01)
    assert np.all(stats.binom.sf(hits - 1, n_sets, 0.98) > 0.01)
    assert 0.91 <= np.mean(cover["pooled"]) <= 0.98
    assert np.all((better["pooled"] >= 0.91) & (better["pooled"] <= 0.98))
    assert np.all(width["pooled"] < width["complete rows"])


@pytest.mark.slow
def test_mice_reads_the_stacked_table_and_pools_it(tmp_path: Path) -> None:
    script = shutil.which("Rscript")
    if (
        script is None
        or subprocess.run(
            [script, "-e", "library(mice)"], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("needs R with its package mice")
    _, gappy = simulate(np.random.default_rng(3))
    from glfm_cli import write_table
    from glfm_cli.io import write_parts

    write_table(gappy, tmp_path / "gappy.csv")
    table = read_table(tmp_path / "gappy.csv")
    versions = impute(table, TYPES, model="glfm", chains=5, warmup=30, draws=2, threads=1)
    versions = versions.multiple(10)
    write_parts(versions.parts(), tmp_path / "stacked.csv")
    code = """
        suppressMessages(library(mice))
        long <- read.csv("stacked.csv", na.strings = "", stringsAsFactors = TRUE)
        imputed <- as.mids(long)
        stopifnot(is.mids(imputed), imputed$m == 10)
        stopifnot(identical(complete(imputed, 3)$count, long$count[long$.imp == 3]))
        shown <- summary(pool(with(imputed, lm(y ~ x + count + group))), conf.int = TRUE)
        write.csv(shown[, c("2.5 %", "97.5 %")], "pooled.csv", row.names = FALSE)
    """
    subprocess.run([script, "-e", code], cwd=tmp_path, check=True, capture_output=True)
    ends = np.loadtxt(tmp_path / "pooled.csv", delimiter=",", skiprows=1)
    # The tables that R has read are text with 7 digits.
    assert np.allclose(ends, pooled(list(_numbers(versions))), rtol=1e-4, atol=1e-6)


def _numbers(versions) -> list[pa.Table]:
    kinds = {"y": pa.float64(), "x": pa.float64(), "count": pa.int64()}
    return [
        pa.table({name: t[name].cast(kinds.get(name, pa.string())) for name in t.column_names})
        for t in versions.tables()
    ]
