"""Estimates of several completed tables as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from glfm_cli import GlfmError, pool


def test_three_estimates_by_hand() -> None:
    """Of 1, 2, 3 with variances 1: B = 1, T = 1 + 4/3, lambda = 4/7."""
    found = pool([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 10)
    df = 1 / (1 / (2 / (4 / 7) ** 2) + 1 / (3 / 7 * 10 * 11 / 13))
    assert (found.estimate, found.se, found.missing) == pytest.approx((2, (7 / 3) ** 0.5, 4 / 7))
    assert found.df == pytest.approx(df)
    assert found.p == pytest.approx(2 * stats.t.sf(2 / (7 / 3) ** 0.5, df))
    half = stats.t.ppf(0.95, df) * (7 / 3) ** 0.5
    narrow = pool([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 10, interval=0.9)
    assert (narrow.lower, narrow.upper) == pytest.approx((2 - half, 2 + half))


@given(st.integers(2, 30), st.floats(1, 1e6), st.integers(0, 99))
def test_tables_that_are_alike_have_the_error_of_one(m: int, df: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    one, variance = rng.normal(size=3), rng.gamma(2.0, size=3) + 0.01
    found = pool([one] * m, [variance] * m, df)
    assert found.estimate == pytest.approx(one)
    assert found.se == pytest.approx(np.sqrt(variance))
    assert found.missing == pytest.approx(0, abs=1e-12)
    assert found.df == pytest.approx(df * (df + 1) / (df + 3))  # [Barnard and Rubin 1999]


def test_many_degrees_of_freedom_are_the_limit() -> None:
    estimates, variances = [[0.1, 3.0], [0.2, 3.0], [0.4, 3.0]], [[0.5, 0.2]] * 3
    found, nearly = pool(estimates, variances), pool(estimates, variances, 1e12)
    assert np.isinf(found.df[1])
    for name in ("se", "p", "lower", "upper"):
        assert getattr(found, name) == pytest.approx(getattr(nearly, name), rel=1e-6)


def test_the_terms_of_statsmodels_are_named() -> None:
    smf = pytest.importorskip("statsmodels.formula.api")
    rng = np.random.default_rng(3)
    tables = [pd.DataFrame(rng.normal(size=(20, 2)), columns=["y", "x"]) for _ in range(4)]
    fits = [smf.ols("y ~ x", data=table).fit() for table in tables]
    found = pool([fit.params for fit in fits], [fit.bse**2 for fit in fits], fits[0].df_resid)
    assert found.to_table()["term"].to_pylist() == ["Intercept", "x"]
    head, *rows = repr(found).splitlines()
    assert head.split() == ["term", "estimate", "se", "df", "p", "lower", "upper", "missing"]
    assert [row.split()[0] for row in rows] == ["Intercept", "x"]
    assert len({len(row) for row in (head, *rows)}) == 1
    assert float(rows[1].split()[1]) == pytest.approx(found.estimate[1], rel=1e-3)


def test_a_frame_has_a_row_for_each_table() -> None:
    estimates = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.1, 0.2, 0.2]}, index=["p", "q", "r"])
    found = pool(estimates, estimates**2)
    rows = [row for _, row in estimates.iterrows()]
    assert repr(found) == repr(pool(rows, [row**2 for row in rows]))
    assert found.terms == ("a", "b")
    one = pool(estimates["a"], estimates["a"] ** 2)
    assert one.se == pool([1.0, 2.0, 4.0], [1.0, 4.0, 16.0]).se
    assert one.se == pool(iter([1.0, 2.0, 4.0]), iter([1.0, 4.0, 16.0])).se


SERIES = [pd.Series([1.0, 2.0], ["a", "b"]), pd.Series([1.0, 2.0], ["a", "c"])]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.0], [1.0]), "estimates and variances, found shapes"),
        (([1.0, 2.0], [[1.0], [1.0]]), "estimates and variances, found shapes"),
        (([1.0, np.nan], [1.0, 1.0]), "estimates of table 2, found nan, expected finite numbers"),
        (([[1.0], [1.0, 2.0]], [[1.0], [1.0]]), "estimates, expected as many numbers"),
        (([1.0, 2.0], [1.0, 0.0]), "variances, found 0.0, expected squared standard errors"),
        (([1.0, 2.0], [1.0, 1.0], 0), "df, found 0.0, expected degrees of freedom"),
        ((SERIES, SERIES), "estimates: table 2 has other terms than the first, found ['b', 'c']"),
        (([SERIES[0], SERIES[0][::-1]], SERIES), "found another order"),
        ((SERIES[:1] * 2, SERIES[1:] * 2), "variances, found ['a', 'c'], expected the terms of"),
        ((SERIES[:1] * 2, [SERIES[0][::-1]] * 2), "variances, found ['b', 'a'], expected the"),
        (([[1.0, 2.0]] * 2, [[1.0, 2.0]] * 2, [3, 4, 5]), "df, found 3 of them, expected one"),
        ((1.0, 1.0), "estimates, found 1.0, expected those of two tables or more"),
    ],
)
def test_what_cannot_be_pooled_is_one_clear_line(arguments: Any, message: str) -> None:
    with pytest.raises(GlfmError) as caught:
        pool(*arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
