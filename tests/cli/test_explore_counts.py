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
from tests.cnpf.cnpf_fits import planted

TYPES = "columns:\n  u: row\n  i: column\n  n: {type: count, role: value, absent: zero}\n"
SMALL = ("--set", "components=4", "--set", "dimensions=2", "--set", "passes=40", "--chains", "2")


@pytest.fixture
def counts(desk: Any) -> Any:
    y, _, _ = planted(np.random.default_rng(5), 80, 20, 4, 60.0)
    row, column = np.nonzero(y)
    cells = zip(row, column, y[row, column], strict=True)
    desk.put("n.csv", "u,i,n\n" + "".join(f"r{r},c{c},{n}\n" for r, c, n in cells))
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


def test_without_correlations_no_pair_is_shown(counts: Any) -> None:
    said = run_here("explore", "n.csv", "--types", "n.yaml", *SMALL, "--set", "correlated=false")
    assert said.status == 0, said.stderr
    assert "Come together" not in said.stdout


def test_what_is_about_features_is_refused(counts: Any) -> None:
    said = run_here("explore", "n.csv", "--types", "n.yaml", *SMALL, "--dependence")
    assert said.status == 2
    (line,) = said.lines("Error")
    assert "--dependence" in line
