"""What `glfm types` sees in tables of trials: dates known in part, and numbers of sites."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.guess import guess_schema
from glfm_cli.schema import ColumnType, MissingCode

N = 120
DAYS = [dt.date(2020, 1, 1) + dt.timedelta(days=7 * i % 300) for i in range(N)]


def dates(form: str, parts: tuple[str, ...], every: int) -> pa.Table:
    """Return dates, of which one in `every` is known in part."""
    cells = [day.strftime(form).upper() for day in DAYS]
    cells[::every] = [parts[i % len(parts)] for i in range(len(cells[::every]))]
    return pa.table({"AESTDT": cells, "x": [str(i % 7) for i in range(N)]})


@pytest.mark.parametrize(
    ("form", "parts"),
    [
        ("%d%b%Y", ("UNMAR2020", "UNUNK2020", "MAR2020")),
        ("%Y-%m-%d", ("2020-03", "2020", "2020---", "2020-UN-UN")),
        ("%d/%m/%Y", ("UN/03/2020", "UN/UNK/2020", "--/--/2020")),
        ("%d-%b-%Y", ("UN-MAR-2020", "UNK-2020")),
    ],
)
def test_a_date_known_in_part_stays_among_dates(form: str, parts: tuple[str, ...]) -> None:
    guess = guess_schema(dates(form, parts, 9))
    column = guess.schema.columns[0]
    assert column.moment == "date"
    assert column.format == (None if form == "%Y-%m-%d" else form)
    assert set(column.missing) == {MissingCode(text, impute=False) for text in parts}
    assert "known in part, left as it is" in guess.reasons["AESTDT"]


@pytest.mark.parametrize(
    ("parts", "every"), [(("2020-03",), 2), (("2020-03", "later"), 9), (("2020-03",), 1)]
)
def test_months_are_no_days_known_in_part(parts: tuple[str, ...], every: int) -> None:
    """Where they are many, where words stand among them, and where there is nothing else."""
    column = guess_schema(dates("%Y-%m-%d", parts, every)).schema.columns[0]
    assert not column.missing


def test_quarters_of_years_are_numbers() -> None:
    cells = [f"{1956 + i // 4}{('', '.25', '.5', '.75')[i % 4]}" for i in range(N)]
    column = guess_schema(pa.table({"time": cells})).schema.columns[0]
    assert (column.type, column.moment) == (ColumnType.POSITIVE, None)


def test_of_many_codes_the_reason_names_some() -> None:
    parts = tuple(f"20{k:02d}" for k in range(10, 18))
    reason = guess_schema(dates("%Y-%m-%d", parts, 9)).reasons["AESTDT"]
    assert '"2014" and 3 more known in part' in reason


@pytest.mark.parametrize("name", ["SITEID", "CentreID", "INVID"])
def test_numbers_of_sites_are_codes(name: str) -> None:
    sites = [str(701 + k) for k in np.random.default_rng(0).integers(0, 12, N)]
    (column,) = guess_schema(pa.table({name: sites})).schema.columns
    assert column.type is ColumnType.CATEGORICAL


@pytest.mark.parametrize(("rows", "code"), [(10, False), (4, True)])
def test_an_arm_without_a_dose_is_one(rows: int, code: bool) -> None:
    arms = [f"{50 * 2 ** (i % 3)} mg" for i in range(N)]
    arms[:rows] = ["Placebo"] * rows
    (column,) = guess_schema(pa.table({"Arm": arms})).schema.columns
    assert column.type is ColumnType.CATEGORICAL
    assert ("Placebo" in column.levels) is not code
    assert (MissingCode("Placebo", impute=False) in column.missing) is code


@pytest.mark.parametrize(("word", "below"), [("<LLOQ", True), ("BLQ", True), (".A", False)])
def test_of_words_below_a_limit_the_reason_says_what_to_write(word: str, below: bool) -> None:
    cells = [word if i % 9 == 0 else f"{i % 40 + i / 200}" for i in range(N)]
    guess = guess_schema(pa.table({"CRP": cells, "x": [str(i % 7) for i in range(N)]}))
    assert guess.schema.columns[0].missing == (MissingCode(word, impute=False),)
    assert ("limit of detection, write the limit, <0.05" in guess.reasons["CRP"]) is below
