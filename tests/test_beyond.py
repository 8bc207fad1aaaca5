"""Warnings of observed numbers of new rows far beyond those that a fit was made from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from scipy import stats

from glfm_cli import impute
from glfm_cli.completion import Files
from glfm_cli.completion.beyond import reach_of
from glfm_cli.encoding import EncodedColumn
from glfm_cli.inference.folding import BATCH
from glfm_cli.schema import Column, ColumnType

SHORT: dict[str, Any] = {"chains": 1, "warmup": 10, "draws": 3, "thin": 1, "threads": 1}
TYPES = {"columns": {"age": "count", "income": "positive", "day": "date", "city": "categorical"}}


def make(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "age": np.append([39, 82], rng.integers(40, 82, n - 2)).astype(float),
        "income": np.exp(rng.normal(7.0, 1.5, n)),
        "day": np.datetime64("2024-01-01") + rng.integers(0, 60, n).astype("timedelta64[D]"),
        "city": rng.choice(["Oslo", "Rome"], n),
    }


@pytest.fixture(scope="module")
def fits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fits")
    for name, more in (("f.glfm", {}), ("without.glfm", {"with_data": False})):
        impute(pa.table(make(100, 1)), TYPES, save=folder / name, seed=1, **more, **SHORT)
    return folder


def test_numbers_far_beyond_the_fit_are_named_with_row_value_and_range(
    fits: Path, glfm: Any
) -> None:
    new = make(8, 2)
    new["age"][3:7] = [110, 200, 740, np.nan]
    new["income"][1] = 1e11
    new["day"][:] += 400  # time goes on
    new["city"] = np.where(np.arange(8) == 2, None, new["city"])
    columns = {name: pa.array(cells, from_pandas=True) for name, cells in new.items()}
    pc.write_csv(pa.table(columns), fits / "n.csv")
    said = glfm("impute", fits / "n.csv", "--fit", fits / "f.glfm", "-o", fits / "o.csv").stderr
    assert (
        "Warning: column 'age': 2 numbers lie far beyond the fitted values, 39 to 82 (rows 5, 6, "
        "the first 200): an error, or a row of another kind, to which the fit can only "
        "extrapolate\n"
    ) in said
    assert "column 'income': 1e+11 lies far beyond the fitted values" in said
    assert "(row 2): an error" in said
    assert "'day'" not in said
    assert "beyond" not in " ".join(impute(fits / "n.csv", fit=fits / "without.glfm").warnings)


def test_ordinary_rows_lie_within_the_reach_of_a_fit(fits: Path) -> None:
    new = pa.table(make(3000, 3))
    assert not impute(new, fit=fits / "f.glfm").warnings
    assert not impute(pa.table(make(100, 1)), fit=fits / "f.glfm").warnings


@pytest.mark.parametrize(
    ("draw", "slip"),
    [
        (lambda rng, n: rng.normal(50.0, 8.0, n), 5000.0),
        (lambda rng, n: rng.uniform(36.0, 41.0, n), 3.7),
        (lambda rng, n: rng.exponential(2.0, n), 20000.0),
        (lambda rng, n: np.exp(rng.normal(0.0, 1.5, n)), 1e7),
        (lambda rng, n: np.where(rng.random(n) < 0.7, 0.0, rng.gamma(2.0, 1.0, n)), 1000.0),
        (lambda rng, n: 1e300 * rng.standard_normal(n), 1.7e308),
    ],
)
def test_a_slip_is_beyond_and_what_comes_by_chance_is_not(draw: Any, slip: float) -> None:
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = draw(rng, 200)
        seen = np.ones(x.size, dtype=bool)
        reach = reach_of(EncodedColumn(Column("c", type=ColumnType.REAL), 0, x, seen, ~seen))
        assert reach is not None
        assert reach.is_beyond(np.array([slip, np.nan])).tolist() == [True, False]
        assert not reach.is_beyond(draw(rng, 2000)).any()


def test_a_margin_is_one_and_a_half_widths_to_either_side() -> None:
    x, seen = np.linspace(40.0, 80.0, 60), np.ones(60, dtype=bool)
    reach = reach_of(EncodedColumn(Column("c", type=ColumnType.COUNT), 0, x, seen, ~seen))
    assert reach is not None
    found = reach.is_beyond(np.array([-21.0, -19.0, 139.0, 141.0]))
    assert found.tolist() == [True, False, False, True]


def test_heavy_tails_reach_as_far_again_in_logarithms_of_distances() -> None:
    x = np.concatenate([-np.arange(1.0, 31.0), [0.0], np.arange(1.0, 30.0), [200.0]]) + 7.0
    seen = np.ones(x.size, dtype=bool)
    reach = reach_of(EncodedColumn(Column("c", type=ColumnType.REAL), 0, x, seen, ~seen))
    assert reach is not None
    assert (reach.middle, reach.spread) == (7.0, 15.5)  # of distances 1 to 30, and 200
    ends = np.log1p(200.0 / 15.5), -np.log1p(30.0 / 15.5)
    high, low = 15.5 * np.expm1(2 * ends[0] - ends[1]), -15.5 * np.expm1(ends[0] - 2 * ends[1])
    near = np.array([low - 0.1, low + 0.1, high - 0.1, high + 0.1]) + 7.0
    assert reach.is_beyond(near).tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("law", "heavy"),
    [
        (stats.gamma(16), False),  # skewness 0.5
        (stats.gamma(8), True),  # 0.7, and kurtosis 3.75
        (stats.logistic(), True),  # kurtosis 4.2
        (stats.norm(), False),
    ],
)
def test_tails_are_heavy_of_a_skewness_or_a_kurtosis(law: Any, heavy: bool) -> None:
    x = law.ppf((np.arange(20_000) + 0.5) / 20_000)
    seen = np.ones(x.size, dtype=bool)
    for side in (1.0, -1.0):
        made = EncodedColumn(Column("c", type=ColumnType.REAL), 0, side * x, seen, ~seen)
        reach = reach_of(made)
        assert reach is not None
        assert (reach.spread > 0.0) == heavy


def test_columns_of_few_or_equal_values_have_no_reach() -> None:
    for x in (np.arange(49.0), np.full(200, 3.0)):
        seen = np.ones(x.size, dtype=bool)
        column = Column("c", type=ColumnType.REAL)
        assert reach_of(EncodedColumn(column, 0, x, seen, ~seen)) is None


def test_notes_of_batches_join(fits: Path) -> None:
    new = make(BATCH + 50, 4)
    new["age"][[7, BATCH + 2, BATCH + 9]] = [400.0, 500.0, 600.0]
    pc.write_csv(pa.table(new), fits / "t.csv")
    files = Files(fits / "o.csv")
    done = impute(fits / "t.csv", fit=fits / "f.glfm", files=files, memory="1k", threads=1)
    shown = f"(rows 8, {BATCH + 3}, {BATCH + 10}, the first 400)"
    assert done.warnings[0].startswith("column 'age': 3 numbers lie far beyond the fitted values")
    assert shown in done.warnings[0]


def test_amounts_of_rows_far_beyond_the_fit_stay_near_the_largest(
    tmp_path: Path, glfm: Any
) -> None:
    rng = np.random.default_rng(1)

    def rows(n: int, more: float) -> pa.Table:
        z = rng.normal(size=n)
        columns = {f"x{i}": more + z + 0.3 * rng.normal(size=n) for i in range(4)}
        return pa.table(columns | {"amount": np.exp(5.0 + z + 0.3 * rng.normal(size=n))})

    known, new = rows(200, 0.0), rows(10, 5.0)
    unknown = new.set_column(4, "amount", pa.nulls(10, pa.float64()))
    for name, table in (("known", known), ("new", unknown)):
        pc.write_csv(table, tmp_path / f"{name}.csv")
    (tmp_path / "t.yaml").write_text("rest: real\ncolumns: {amount: positive}\n")
    at = {name: tmp_path / name for name in ("known.csv", "new.csv", "t.yaml", "f.glfm", "o.csv")}
    glfm("impute", at["known.csv"], "--types", at["t.yaml"], "--model", "glfm", "--save",
         at["f.glfm"], "-o", at["o.csv"], "--set", "components=3", "--chains", "1", "--warmup",
         "20", "--draws", "20")  # fmt: skip
    glfm("impute", at["new.csv"], "--fit", at["f.glfm"], "-o", at["o.csv"])
    found = pc.read_csv(at["o.csv"])["amount"].to_numpy()
    amounts = known["amount"].to_numpy()
    assert np.median(found) > amounts.max()
    assert found.max() <= amounts.max() * np.exp(np.log(amounts).std()) * 1.001
