"""Counts as triplets whose absent pairs are zeros: `--model cnpf`."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from glfm_cli import load_fit
from glfm_cli.latent.capabilities import HasFactors
from glfm_cli.latent.model import Pairs
from glfm_cli.links.law import GammaPoisson
from glfm_cli.links.poisson import CountAverage, PoissonCount
from tests.cli.conftest import Said, run_here

TYPES = "columns:\n  u: row\n  i: column\n  n: {type: count, role: value, absent: zero}\n"
SMALL = ("--set", "components=4", "--set", "dimensions=2", "--set", "passes=25")


def matrix() -> np.ndarray:
    rng = np.random.default_rng(7)
    a = rng.gamma(0.3, 1.0, (3, 12))
    return rng.poisson(rng.gamma(0.5, 2.0, (30, 3)) @ a)


def lines(y: np.ndarray, first: int = 0) -> str:
    row, column = np.nonzero(y)
    cells = zip(row, column, y[row, column], strict=True)
    return "u,i,n\n" + "".join(f"r{first + r},c{c},{n}\n" for r, c, n in cells)


@pytest.fixture
def counts(desk: Any) -> Any:
    desk.put("n.csv", lines(matrix()))
    desk.put("n.yaml", TYPES)
    return desk


def impute(*options: str, table: str = "n.csv") -> Said:
    return run_here("impute", table, *options)


def rows_of(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(Path(name).read_text().splitlines()))


def test_listed_pairs_get_rates_intervals_and_the_chance_of_one(counts: Any) -> None:
    counts.put("p.csv", "u,i\nr1,c1\nr2,c5\nr1,c7\n")
    said = impute(
        "--types", "n.yaml", *SMALL, "--pairs", "p.csv", "--save", "f.glfm", "-o", "o.csv"
    )
    assert said.status == 0, said.stderr
    rows = rows_of("o.csv")
    assert [(row["u"], row["i"]) for row in rows] == [("r1", "c1"), ("r2", "c5"), ("r1", "c7")]
    fit = load_fit("f.glfm")
    model, chains = fit.posterior.model, fit.posterior.chains
    assert isinstance(model, HasFactors)
    weight = fit.posterior.weights
    assert weight is not None
    for row in rows:
        u = list(fit.matrix.rows.keys).index(row["u"])  # type: ignore[union-attr]
        i = list(fit.matrix.columns.keys).index(row["i"])  # type: ignore[union-attr]
        pair = Pairs(np.array([u]), np.array([i]))
        rate = none = 0.0
        for share, (draw,) in zip(weight, chains, strict=True):
            factors = model.factors(draw.latent)
            rate += share * float(factors.rows[u] @ factors.columns[i])
            law: Any = model.cells_law(draw.latent, pair).column(0)  # type: ignore[attr-defined]
            p = law.shape[0] / (law.shape[0] + law.mean[0])
            none += share * float(stats.nbinom.pmf(0, law.shape[0], p))
        assert float(row["mean"]) == pytest.approx(rate)
        assert float(row["p_any"]) == pytest.approx(1.0 - none)
        assert float(row["lower"]) <= float(row["upper"])


def test_new_rows_resumed_and_killed_fits_say_the_same(counts: Any) -> None:
    done = impute("--types", "n.yaml", *SMALL, "--save", "f.glfm", "-o", "o.csv")
    assert done.status == 0, done.stderr
    again = impute("--resume", "f.glfm", "-o", "again.csv")
    assert again.status == 0, again.stderr
    counts.put("new.csv", lines(matrix()[:3], first=100))
    counts.put("p.csv", "u,i\nr100,c1\nr101,c1\nr1,c1\n")
    for name in ("one.csv", "two.csv"):
        said = impute("--fit", "f.glfm", "--pairs", "p.csv", "-o", name, table="new.csv")
        assert said.status == 0, said.stderr
    assert Path("one.csv").read_bytes() == Path("two.csv").read_bytes()
    assert len(rows_of("one.csv")) == 3


def test_a_run_cut_short_goes_on_to_the_same_rates(counts: Any) -> None:
    counts.put("p.csv", "u,i\nr1,c1\nr2,c5\n")
    given = ("--types", "n.yaml", *SMALL, "--pairs", "p.csv")
    cut = impute(*given, "--time-limit", "0.000001", "--save", "a.glfm", "-o", "a.csv")
    assert cut.status == 0
    assert "time limit" in cut.stderr
    assert rows_of("a.csv")
    impute("--resume", "a.glfm", "--pairs", "p.csv", "-o", "b.csv")
    impute(*given, "--threads", "2", "--save", "c.glfm", "-o", "c.csv")
    assert Path("b.csv").read_bytes() == Path("c.csv").read_bytes()


def test_recommended_columns_have_no_count_and_are_the_likeliest(counts: Any) -> None:
    said = impute(
        "--types", "n.yaml", *SMALL, "--recommend", "3", "--save", "f.glfm", "-o", "o.csv"
    )
    assert said.status == 0, said.stderr
    rows, y = rows_of("o.csv"), matrix()
    fit = load_fit("f.glfm")
    assert fit.matrix is not None
    keys = [int(key[1:]) for key in fit.matrix.columns.keys]
    by_row: dict[str, list[tuple[int, float]]] = {}
    for row in rows:
        by_row.setdefault(row["u"], []).append((int(row["i"][1:]), float(row["p_any"])))
    for name, found in by_row.items():
        free = [c for c in keys if y[int(name[1:]), c] == 0]
        assert len(found) == min(3, len(free))
        assert {c for c, _ in found} <= set(free)
        assert (np.diff([p for _, p in found]) <= 1e-12).all()
    counts.put("all.csv", "u,i\n" + "".join(f"r1,c{c}\n" for c in keys))
    impute("--fit", "f.glfm", "--pairs", "all.csv", "-o", "every.csv")
    every = [(float(r["p_any"]), r["i"]) for r in rows_of("every.csv") if not y[1, int(r["i"][1:])]]
    assert [f"c{c}" for c, _ in by_row["r1"]] == [name for _, name in sorted(every)[::-1][:3]]


def test_recommendations_are_of_the_rows_that_are_listed(counts: Any) -> None:
    given = ("--types", "n.yaml", *SMALL, "--recommend", "3", "--save", "f.glfm", "-o", "all.csv")
    assert impute(*given).status == 0
    counts.put("some.csv", "u\nr7\nr2\nr7\n")
    said = impute("--fit", "f.glfm", "--recommend", "3", "--rows", "some.csv", "-o", "some.out.csv")
    assert said.status == 0, said.stderr
    every = [row for row in rows_of("all.csv") if row["u"] in ("r2", "r7")]
    assert rows_of("some.out.csv") == every
    assert {row["u"] for row in every} == {"r2", "r7"}


def test_listed_pairs_with_values_are_scored(counts: Any) -> None:
    """Of the fit's own pairs, of zeros, and of pairs whose count is not given."""
    counts.put("p.csv", "u,i,n\nr1,c1,2\nr2,c5,0\nr1,c7,\n")
    given = ("--types", "n.yaml", *SMALL, "--chains", "1", "--pairs", "p.csv")
    said = impute(*given, "--save", "f.glfm", "-o", "o.csv")
    assert said.status == 0, said.stderr
    rows = rows_of("o.csv")
    assert not rows[2]["log_score"]
    assert float(rows[1]["log_score"]) == pytest.approx(np.log1p(-float(rows[1]["p_any"])))
    mean, sd = float(rows[0]["mean"]), float(rows[0]["sd"])
    shape = mean**2 / (sd**2 - mean)
    score = stats.nbinom.logpmf(2, shape, shape / (shape + mean))
    assert float(rows[0]["log_score"]) == pytest.approx(score, rel=1e-6)
    counts.put("p.csv", "u,i,n\nr1,c1,-2\n")
    said = impute("--fit", "f.glfm", "--pairs", "p.csv")
    assert said.status == 2
    assert "p.csv, column 'n', row 1: found '-2'" in said.lines("Error")[0]


LARGE = "u,i,n\na,x,{}\na,y,2\nb,x,3\nc,y,5\nd,z,1\nd,x,\n"


def test_counts_up_to_the_largest_are_fitted(counts: Any) -> None:
    counts.put("n.csv", LARGE.format(2**31 - 1))
    said = impute("--types", "n.yaml", *SMALL, "--pairs", "n.csv", "-o", "o.csv")
    assert said.status == 0, said.stderr
    assert float(rows_of("o.csv")[0]["mean"]) == pytest.approx(2**31, rel=0.1)


def test_larger_counts_are_refused_by_their_place(counts: Any) -> None:
    counts.put("n.csv", LARGE.format(2**31))
    counts.put("wide.csv", f"a,b\n1,2\n3,{2**31}\n4,\n")
    counts.put("wide.yaml", "rest: count\n")
    said = impute("--types", "n.yaml", *SMALL)
    wide = impute("--types", "wide.yaml", *SMALL, "--model", "cnpf", table="wide.csv")
    expected = "found '2147483648', expected at most 2147483647, the largest count"
    assert f"n.csv, column 'n', row 1: {expected}" in said.stderr
    assert "column 'b', row 2: " + expected.replace("'", "") in wide.stderr
    assert said.status == wide.status == 2


def test_rows_and_columns_without_counts_are_kept(counts: Any) -> None:
    y = matrix()
    zeros = "".join(f"new,c{i},0\n" for i in range(12)) + "r1,none,0\nr2,none,0\n"
    counts.put("n.csv", lines(y) + zeros)
    counts.put("p.csv", "u,i\nnew,c1\nr1,none\nnew,none\n")
    said = impute("--types", "n.yaml", *SMALL, "--pairs", "p.csv", "-o", "o.csv")
    assert said.status == 0, said.stderr
    rates = [float(row["mean"]) for row in rows_of("o.csv")]
    assert all(0.0 < rate < y.mean() for rate in rates)


def test_a_pair_without_a_value_is_missing_and_no_zero(counts: Any) -> None:
    y = matrix()
    u, i = next((u, i) for u, i in zip(*np.nonzero(y), strict=True) if y[u, i] > 1)
    text = lines(y)
    counts.put("gap.csv", text.replace(f"r{u},c{i},{y[u, i]}\n", f"r{u},c{i},\n"))
    counts.put("zero.csv", text.replace(f"r{u},c{i},{y[u, i]}\n", f"r{u},c{i},0\n"))
    counts.put("p.csv", f"u,i\nr{u},c{i}\n")
    rates = {}
    for name in ("gap", "zero"):
        given = ("--types", "n.yaml", *SMALL, "--pairs", "p.csv", "-o", f"{name}.out.csv")
        said = impute(*given, table=f"{name}.csv")
        assert said.status == 0, said.stderr
        rates[name] = float(rows_of(f"{name}.out.csv")[0]["mean"])
    assert rates["gap"] > rates["zero"]
    impute("--types", "n.yaml", *SMALL, "-o", "gaps.csv", table="gap.csv")
    assert [(row["u"], row["i"]) for row in rows_of("gaps.csv")] == [(f"r{u}", f"c{i}")]


@pytest.mark.parametrize(
    ("table", "types", "options", "error"),
    [
        ("u,i,n\na,x,-1\n", TYPES, (), "found '-1', expected"),
        ("u,i,n\na,x,1.5\n", TYPES, (), "found '1.5', expected"),
        ("u,i,n\na,x,1\na,x,2\n", TYPES, (), "the pair u 'a', i 'x' was in row 1 already"),
        ("u,i,n\na,x,0\n", TYPES, (), "no cell of it is observed"),
        ("u,i,n\na,x,1\n", TYPES.replace("count", "ordinal"), (), "`absent: zero` is only"),
        ("u,i,n\na,x,1\n", TYPES.replace(", absent: zero", ""), ("--model", "cnpf"),
         "--model cnpf does not take triplets"),
        ("u,i,n\na,x,1\n", TYPES, ("--model", "bsvd"),
         "--model bsvd does not take triplets whose absent pairs are zeros"),
        ("u,i,n\na,x,1\n", TYPES, ("--recommend", "2", "--pairs", "n.csv"), "--recommend and"),
        ("u,i,n\na,x,1\n", TYPES, ("--rows", "n.csv"), "--rows needs --recommend"),
        ("u,i,n\na,x,1\n", TYPES, ("--recommend", "1", "--rows", "n.yaml"), "name ending in"),
        ("u,i,n\na,x,4000000000\n", TYPES, (), "found '4000000000'"),
        ("u,i,n\na,x,1\n,y,2\n", TYPES, (), "expected an id"),
        ("u,i,n\na,x,4.5\nb,x,3\n", TYPES.replace("count", "positive"), (), "`absent: zero` is"),
        ("u,i,n\na,x,p\nb,x,q\nb,y,p\n", TYPES.replace("count", "categorical")
         .replace(", absent: zero", ""), ("--recommend", "2"), "and these have no order"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(
    desk: Any, table: str, types: str, options: tuple[str, ...], error: str
) -> None:
    desk.put("n.csv", table)
    desk.put("n.yaml", types)
    said = impute("--types", "n.yaml", *options)
    assert said.status == 2, said.stderr
    (line,) = said.lines("Error")
    assert error in line


def test_a_column_that_the_fit_does_not_know_is_refused(counts: Any) -> None:
    impute("--types", "n.yaml", *SMALL, "--save", "f.glfm", "-o", "o.csv")
    counts.put("new.csv", "u,i,n\nz,c1,1\nz,other,2\n")
    said = impute("--fit", "f.glfm", table="new.csv")
    assert said.status == 2
    (line,) = said.lines("Error")
    assert "column 'i': the fit does not know this column of counts, found 'other'" in line


def test_a_summary_is_printed_as_json(counts: Any) -> None:
    said = impute("--types", "n.yaml", *SMALL, "-o", "o.csv", "--json")
    found = json.loads(said.stdout)
    assert (found["model"], found["columns"]) == ("cnpf", 11)


# The law of a count --------------------------------------------------------------------------


def test_counts_have_the_negative_binomial_law_and_at_last_poissons(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape, mean = rng.gamma(1.0, 2.0, 40) + 0.01, rng.gamma(1.0, 3.0, 40)
    x = rng.integers(0, 12, 40).astype(float)
    law = GammaPoisson(shape, mean)
    other = stats.nbinom(shape, shape / (shape + mean))
    np.testing.assert_allclose(law.log_pmf(x), other.logpmf(x), rtol=1e-8)
    np.testing.assert_allclose(law.cdf(x), other.cdf(x), rtol=1e-8)
    sure = GammaPoisson(np.full(40, 1e15), mean)
    np.testing.assert_allclose(sure.log_pmf(x), stats.poisson.logpmf(x, mean), rtol=1e-9)
    np.testing.assert_allclose(sure.cdf(x), stats.poisson.cdf(x, mean), rtol=1e-9)


def test_averages_of_counts_are_those_of_their_mixture(seed: int) -> None:
    rng = np.random.default_rng(seed)
    link, shares = PoissonCount("n"), (0.5, 1.5)
    laws = [GammaPoisson(rng.gamma(1.0, 2.0, 6) + 0.1, rng.gamma(1.0, 9.0, 6)) for _ in shares]
    average = CountAverage()
    for share, law in zip(shares, laws, strict=True):
        average.add(law, {}, share, quantiles=True)
    found = average.result((0.025, 0.5, 0.975), lambda p: p)
    k = np.arange(4000.0)
    pmf = sum(
        share / 2.0 * np.exp([[float(law.take(np.array([i])).log_pmf(np.array([v]))[0]) for v in k]
                              for i in range(6)])
        for share, law in zip(shares, laws, strict=True)
    )  # fmt: skip
    np.testing.assert_allclose(found.mean, pmf @ k, rtol=1e-6)
    np.testing.assert_allclose(found.sd, np.sqrt(pmf @ k**2 - (pmf @ k) ** 2), rtol=1e-5)
    cdf = np.cumsum(pmf, axis=1)
    for j, p in enumerate((0.025, 0.5, 0.975)):
        np.testing.assert_array_equal(found.quantiles[:, j], np.argmax(cdf >= p - 1e-12, axis=1))
    drawn = link.sample(laws[0].take(np.repeat(np.arange(6), 4000)), {}, rng).reshape(6, -1)
    sd = np.sqrt(laws[0].mean + laws[0].mean ** 2 / laws[0].shape)
    assert np.all(np.abs(drawn.mean(axis=1) - laws[0].mean) < 5.0 * sd / np.sqrt(4000))
