"""`glfm explore` of counts: components, their leading columns, and which of them go together."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glfm_cli import explore, load_fit
from glfm_cli.exploration import FactorExploration
from glfm_cli.latent.capabilities import HasFactors
from tests.cli.conftest import run_here

TYPES = "columns:\n  u: row\n  i: column\n  n: {type: count, role: value, absent: zero}\n"
SMALL = ("--set", "components=8", "--set", "dimensions=2", "--set", "passes=60", "--chains", "2")


def together(rho: float, seed: int, n_rows: int = 250) -> str:
    """Return counts of four components w, x, y, z: w and x correlated by rho, y and z by -rho."""
    rng, covariance = np.random.default_rng(seed), np.eye(4)
    covariance[[0, 1], [1, 0]], covariance[[2, 3], [3, 2]] = rho, -rho
    weights = 10.0 * np.exp(rng.multivariate_normal(np.zeros(4), covariance, n_rows))
    lines = ["u,i,n"]
    for k, name in enumerate("wxyz"):
        y = rng.poisson(weights[:, [k]] * rng.dirichlet(np.full(10, 2.0)))
        lines += [f"r{r},{name}{c},{y[r, c]}" for r, c in zip(*np.nonzero(y), strict=True)]
    return "\n".join(lines) + "\n"


@pytest.fixture
def counts(desk: Any) -> Any:
    desk.put("n.csv", together(0.8, 7, n_rows=80))
    desk.put("n.yaml", TYPES)
    return desk


def test_shares_weights_and_lifts_are_those_of_the_rates(counts: Any) -> None:
    done = run_here(
        "impute", "n.csv", "--types", "n.yaml", *SMALL, "--save", "f.glfm", "-o", "o.csv"
    )
    assert done.status == 0, done.stderr
    found: Any = explore("f.glfm", top=3)
    assert isinstance(found, FactorExploration)
    fit = load_fit("f.glfm")
    model = fit.posterior.model
    assert isinstance(model, HasFactors)
    best = model.factors(fit.posterior.chains[0][0].latent)
    counted = np.einsum("uk,ik->uik", best.rows, best.columns)  # brute force, a small case
    share = np.sort(counted.sum(axis=(0, 1)))[::-1] / counted.sum()
    np.testing.assert_allclose([c.share for c in found.components], share[share > 1e-3])
    order = np.argsort(-counted.sum(axis=(0, 1)))
    for c, k in zip(found.components, order, strict=False):
        of_columns = counted[:, :, k].sum(axis=0)
        np.testing.assert_allclose(c.weight, of_columns / of_columns.sum())
        lift = c.weight / (counted.sum(axis=(0, 2)) / counted.sum())
        there = of_columns >= 2.0
        np.testing.assert_allclose(c.lift[there], lift[there])
        assert not c.lift[~there].any()
        np.testing.assert_allclose(c.row_share, counted[:, :, k].sum(axis=1) / counted.sum((1, 2)))
        assert found.leading(c)[0] == f"{found.columns[int(np.argmax(of_columns))]}"
    rho = best.correlations[np.ix_(order, order)]
    for pair in found.pairs:
        assert pair.correlation == pytest.approx(rho[pair.first, pair.second])
    by_pair = [pair.correlation for pair in found.pairs]
    assert by_pair == sorted(by_pair, reverse=True)


def test_everything_is_printed_drawn_and_written(counts: Any) -> None:
    figures = ("--plot", "f.png", "--html", "f.html", "--record", "f.json", "-o", "found")
    said = run_here("explore", "n.csv", "--types", "n.yaml", *SMALL, "--top", "4", *figures)
    assert said.status == 0, said.stderr
    for title in ("Components", "Come together", "Exclude each other"):
        assert title in said.stdout
    written = {path.name for path in Path("found").iterdir()}
    tables = {f"{name}.csv" for name in ("components", "pairs", "columns", "rows")}
    assert written == {*tables, "exploration.json", "overview.png", "report.html"}
    rows = list(csv.DictReader(Path("found/rows.csv").read_text().splitlines()))
    sums: dict[str, float] = {}
    for row in rows:
        sums[row["row"]] = sums.get(row["row"], 0.0) + float(row["share"])
    assert len(sums) == 80
    assert all(total == pytest.approx(1.0, abs=5e-3) for total in sums.values())
    assert Path("f.png").read_bytes().startswith(b"\x89PNG")
    assert "Correlations" in Path("f.html").read_text()
    record = json.loads(Path("f.json").read_text())
    assert record["model"] == "cnpf"
    assert record["settings"]["merge_every"] == 15  # components are counted


def pairs_of(said: Any) -> dict[str, float]:
    """Return the listed pairs of planted components and their correlations."""
    found = json.loads(said.stdout)
    of = {c["component"]: c["by_weight"][0] for c in found["components"] if c["share"] > 0.05}
    assert sorted(of.values()) == ["w", "x", "y", "z"]
    return {
        "".join(sorted(of[p["component"]] + of[p["other"]])): p["correlation"]
        for p in found["pairs"]
    }


def test_pairs_are_listed_that_are_more_correlated_than_independent_ones(desk: Any) -> None:
    desk.put("n.csv", together(0.8, 3))
    desk.put("n.yaml", TYPES)
    said = run_here("explore", "n.csv", "--types", "n.yaml", *SMALL, "--json")
    found = pairs_of(said)
    assert found.keys() == {"wx", "yz"}
    assert 0.5 < found["wx"] < 0.95
    assert -0.95 < found["yz"] < -0.4


def test_of_independent_components_no_pair_is_listed(desk: Any) -> None:
    desk.put("n.csv", together(0.0, 4))
    desk.put("n.yaml", TYPES)
    said = run_here("explore", "n.csv", "--types", "n.yaml", *SMALL, "--json")
    assert pairs_of(said) == {}
    said = run_here("explore", "n.csv", "--types", "n.yaml", *SMALL)
    assert "Come together" not in said.stdout
    assert "Exclude each other" not in said.stdout
    assert "No two components are more correlated than independent ones." in said.stdout


def test_without_correlations_no_pair_is_shown(counts: Any) -> None:
    said = run_here("explore", "n.csv", "--types", "n.yaml", *SMALL, "--set", "correlated=false")
    assert said.status == 0, said.stderr
    assert "Come together" not in said.stdout


def test_what_is_about_features_is_refused(counts: Any) -> None:
    said = run_here("explore", "n.csv", "--types", "n.yaml", *SMALL, "--dependence")
    assert said.status == 2
    (line,) = said.lines("Error")
    assert "--dependence" in line
