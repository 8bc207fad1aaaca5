"""Tables all of whose columns are counts: `--model cnpf` completes, explores and evaluates them."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glfm_cli import load_fit
from glfm_cli.latent.capabilities import HasFactors
from tests.cli.conftest import Said, run_here

TYPES = "columns:\n  plot: id\n  '*': count\n"
SMALL = ("--model", "cnpf", "--set", "components=4", "--set", "dimensions=2")
N, J = 160, 14


def cells() -> tuple[np.ndarray, np.ndarray]:
    """Return counts, and which of them are missing."""
    rng = np.random.default_rng(5)
    a = rng.gamma(0.7, 1.0, (3, J))
    y = rng.poisson(rng.gamma(0.5, 4.0, (N, 3)) @ a)
    return y, rng.random(y.shape) < 0.1


@pytest.fixture
def plots(desk: Any) -> Any:
    y, lost = cells()
    lines = ["plot," + ",".join(f"s{i}" for i in range(J))]
    for u in range(N):
        lines.append(f"p{u}," + ",".join("" if lost[u, i] else str(y[u, i]) for i in range(J)))
    desk.put("plots.csv", "\n".join(lines) + "\n")
    desk.put("plots.yaml", TYPES)
    return desk


def glfm(command: str, *options: str, table: str = "plots.csv") -> Said:
    said = run_here(command, table, *options)
    assert said.status == 0, said.stderr
    return said


def rows_of(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(name).read_text().splitlines()))


def test_missing_counts_are_completed_from_the_rates(plots: Any) -> None:
    y, lost = cells()
    given = ("--types", "plots.yaml", *SMALL, "--save", "f.glfm")
    glfm("impute", *given, "-o", "o.csv", "--cells", "c.csv")
    done = np.array([[int(row[f"s{i}"]) for i in range(J)] for row in rows_of("o.csv")])
    np.testing.assert_array_equal(done[~lost], y[~lost])
    fit = load_fit("f.glfm")
    model = fit.posterior.model
    assert isinstance(model, HasFactors)
    weights, chains = fit.posterior.weights, fit.posterior.chains
    assert weights is not None
    assert min(weights) > 0.01  # restarts predict together
    rates = np.zeros(y.shape)
    for share, (draw,) in zip(weights, chains, strict=True):
        factors = model.factors(draw.latent)
        rates += share * (factors.rows @ factors.columns.T)
    for row in rows_of("c.csv"):
        cell = int(row["row"]) - 1, int(row["column"][1:])
        assert lost[cell]
        assert float(row["mean"]) == pytest.approx(rates[cell])
        assert float(row["lower"]) <= float(row["estimate"]) <= float(row["upper"])
    error, mean = y[lost] - rates[lost], y.mean(axis=0)
    assert np.mean(error**2) < 0.8 * np.mean((y - mean)[lost] ** 2)


def test_saved_fits_are_resumed_and_complete_new_rows(plots: Any) -> None:
    given = ("--types", "plots.yaml", *SMALL)
    glfm("impute", *given, "-o", "a.csv", "--threads", "2")
    glfm("impute", *given, "--time-limit", "0.000001", "--save", "f.glfm", "-o", "cut.csv")
    glfm("impute", "--resume", "f.glfm", "-o", "b.csv")
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()
    lines = Path("plots.csv").read_text().splitlines()
    plots.put("new.csv", "\n".join([lines[0], *lines[-5:]]).replace("p15", "q15") + "\n")
    glfm("impute", "--fit", "f.glfm", "-o", "n.csv", table="new.csv")
    assert [row["plot"] for row in rows_of("n.csv")] == [f"q15{i}" for i in range(5, 10)]
    assert all(cell for row in rows_of("n.csv") for cell in row.values())
    tables = rows_of_text(glfm("impute", "--fit", "f.glfm", "--multiple", "2").stdout)
    assert tables[N : 2 * N] != tables[2 * N :]


def rows_of_text(text: str) -> list[list[str]]:
    return [row[1:] for row in csv.reader(text.splitlines())][1:]


def test_components_of_a_table_name_its_columns_and_rows(plots: Any) -> None:
    found = json.loads(glfm("explore", "--types", "plots.yaml", *SMALL, "--json").stdout)
    assert (found["rows"], found["columns"]) == (N, J)
    names = found["components"][0]["by_weight"].split(", ")
    assert set(names) <= {f"s{i}" for i in range(J)}
    glfm("explore", "--types", "plots.yaml", *SMALL, "-o", "found")
    assert rows_of("found/rows.csv")[0]["row"] == "p0"


def test_models_are_compared_on_hidden_cells(plots: Any) -> None:
    once = ("--rates", "0.2", "--repeats", "1", "--jobs", "1", "--chains", "1", *SMALL[2:])
    said = glfm("evaluate", "--types", "plots.yaml", "--methods", "cnpf,mean", *once, "--json")
    rows = json.loads(said.stdout)["summary"]
    error = {row["method"]: row["mean"] for row in rows if row["score"] == "error"}
    assert error["cnpf"] < error["mean"]


@pytest.mark.parametrize(
    ("types", "table", "error"),
    [
        (TYPES.replace("'*'", "s1: real\n  '*'"), None,
         "column 's1': --model cnpf takes tables of count columns, found real"),
        (TYPES, "plot,s0,s1\na,1,-2\nb,2,3\n", "column 's1', row 1: found '-2'"),
        (TYPES, "plot,s0,s1\na,1,2\nb,2.5,3\n", "column 's0', row 2: found '2.5'"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(plots: Any, types: str, table: str | None, error: str) -> None:
    plots.put("t.yaml", types)
    if table is not None:
        plots.put("plots.csv", table)
    said = run_here("impute", "plots.csv", "--types", "t.yaml", *SMALL)
    assert said.status == 2, said.stderr
    (line,) = said.lines("Error")
    assert error in line
