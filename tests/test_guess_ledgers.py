"""What `glfm types` sees in tables of customers, of loans and accounts, and of sports."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.guess import guess_schema
from glfm_cli.schema import ColumnType, MissingCode, Role
from tests.test_guess import ROWS, guessed, repeat


@pytest.mark.parametrize(
    "steps",
    [
        ("D", "CC", "CCC", "B", "BB", "BBB", "A", "AA", "AAA"),
        ("BB-", "BB", "BB+", "BBB-", "A+"),
        ("Caa1", "B3", "Ba2", "Baa1", "A2", "Aaa"),
    ],
)
def test_ratings_of_debt_are_in_order(steps: tuple[str, ...]) -> None:
    column, reason = guessed("rating", repeat(*steps[::-1], "NR"))
    assert (column.type, column.levels) == (ColumnType.ORDINAL, steps), reason
    assert column.missing == (MissingCode("NR", impute=False),)


def test_sizes_of_batteries_are_no_ratings() -> None:
    assert guessed("size", repeat("AA", "AAA", "C", "D"))[0].type is ColumnType.CATEGORICAL


@pytest.mark.parametrize(
    "seasons", [("2016/17", "2017/18", "2019/20"), ("1999-2000", "2000-2001", "2001-2002")]
)
def test_seasons_are_in_order(seasons: tuple[str, ...]) -> None:
    column, reason = guessed("Season", repeat(*seasons[::-1]))
    assert (column.type, column.levels) == (ColumnType.ORDINAL, seasons), reason


def test_months_are_no_seasons() -> None:
    column, _ = guessed("month", repeat("2016/03", "2016/04", "2016/05", "2017/01"))
    assert column.type is not ColumnType.ORDINAL


def test_years_of_service_with_open_ends_are_in_order() -> None:
    steps = ("< 1 year", "1 year", "2 years", "5 years", "10+ years")
    column, reason = guessed("emp_length", repeat(*steps[::-1]))
    assert (column.type, column.levels) == (ColumnType.ORDINAL, steps), reason


def test_numbers_between_a_currency_and_a_unit_are_named() -> None:
    values = [f"€{0.5 + 0.01 * i:.2f}m" for i in range(ROWS)]
    column, reason = guessed("value", values)
    assert column.role is Role.IGNORE
    assert 'between a currency and a unit, such as "€0.50m"; write the number alone' in reason


def test_orders_that_other_columns_rise_with_are_counts() -> None:
    rng = np.random.default_rng(3)
    orders = np.where(rng.random(1000) < 0.5, 0, 1 + rng.poisson(2.0, 1000)).clip(max=8)
    spent = {f"spent on {k}": orders + rng.normal(0.0, 0.3, 1000) for k in ("food", "wine")}
    table = pa.table({"orders_12m": orders, **spent})
    schema = guess_schema(table).schema
    assert schema.columns[0].type is ColumnType.COUNT


def test_no_amount_without_an_order_is_told_of_written_amounts() -> None:
    orders = [i % 4 for i in range(ROWS)]
    spent = [f"${37.5 * n + 0.25 * (n > 0) * (i % 9):,.2f}" for i, n in enumerate(orders)]
    table = pa.table({"orders_12m": orders, "spent": spent})
    hints = guess_schema(table).hints["spent"]
    assert any(hint.endswith('only_if: "orders_12m > 0", otherwise: "0.00"') for hint in hints)


def test_equity_is_what_debts_leave_of_assets_that_are_a_sum() -> None:
    cash, stock, plant, share = np.random.default_rng(5).gamma(2.0, 10.0, (4, ROWS)).round(1)
    assets = (cash + stock + plant).round(1)
    debts = (assets * share / (share + 20.0)).round(1)
    columns = {"cash": cash, "stock": stock, "plant": plant, "assets": assets}
    table = pa.table({**columns, "debts": debts, "equity": (assets - debts).round(1)})
    hints = guess_schema(table).hints
    assert hints["assets"][0].endswith("formula: cash + stock + plant")
    assert hints["equity"][0].endswith("formula: assets - debts")


def test_a_subtotal_is_told_of_without_a_circle() -> None:
    cash, stock, plant = np.random.default_rng(5).gamma(2.0, 10.0, (3, ROWS)).round(1)
    current = (cash + stock).round(1)
    total = (current + plant).round(1)
    columns = {"cash": cash, "stock": stock, "plant": plant, "current": current, "total": total}
    hints = guess_schema(pa.table(columns)).hints
    said = {name: hints[name][0].rpartition(" formula: ")[2] for name in hints if hints[name]}
    assert said == {"current": "cash + stock", "total": "cash + stock + plant"}


def test_what_web_analytics_does_not_know_may_be_missing() -> None:
    table = pa.table({"source": repeat("google", "bing", "mail", "(not set)")})
    (hint,) = guess_schema(table).hints["source"]
    assert hint.startswith('"(not set)" may stand for a missing cell')
