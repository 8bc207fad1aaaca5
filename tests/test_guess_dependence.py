"""How much columns depend on one of few whole numbers, against least squares row by row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.guess.dependence import BENDS, CLEAR, _dependence, evidence_of
from glfm_cli.guess.profile import profile


def by_rows(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the two parts of one column, from polynomials fitted to all of its rows."""
    there = np.isfinite(x) & np.isfinite(y)
    n, y = there.sum(), y[there]
    code = np.unique(x[there], return_inverse=True)[1]
    levels = code.max() + 1 if n else 0
    if n < 20 or np.ptp(y) == 0 or levels < 2:
        return 0.0, 0.0

    def explained(degree: int) -> float:
        rest = y - np.polynomial.Polynomial.fit(code, y, degree)(code)
        return 1 - np.sum(rest**2) / np.sum((y - y.mean()) ** 2)

    degree = 2 if levels >= BENDS else 1
    curve, means = n * explained(degree), n * explained(levels - 1)
    if means < levels - 1 + CLEAR * np.sqrt(2 * (levels - 1)):
        return 0.0, 0.0
    return max(curve - degree, 0.0), max(means - curve - (levels - 1 - degree), 0.0)


@pytest.mark.parametrize("n_levels", [2, 4, 5, 7])
def test_parts_of_all_columns_add_up(n_levels: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for n in (19, 60, 300):
        x = rng.integers(0, n_levels, n) * 2.0 + 1.0
        noise = rng.normal(size=(n, 6)) * [0.1, 1, 3, 8, 8, 0]
        curve = x[:, None] * [1, 0, 1, 1, 0, 1] + (x == 3)[:, None] * [0, 3, 0, 2, 0, 0]
        y = np.round(5 * (noise + curve))
        y[:, :5][rng.random((n, 5)) < 0.2] = np.nan
        y[x == 3, 0] = np.nan
        y[:, 4] = 2.0
        x[rng.random(n) < 0.1] = np.nan
        expected = np.sum([by_rows(x, column) for column in y.T], axis=0)
        np.testing.assert_allclose(_dependence(x, y), expected, rtol=1e-9, atol=1e-7)


def test_order_is_told_from_codes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, 500)
    table = pa.table(
        {
            "stage": x,
            "centre": np.array([2, 0, 3, 1])[x],
            "size": x + rng.normal(size=500),
            "answer": np.where(rng.random(500) < 0.2, "yes", "no"),
        }
    )
    columns = [profile(name, table.column(name)) for name in table.column_names]
    assert evidence_of(table.drop(["centre"]), [columns[i] for i in (0, 2, 3)]) == {0: "order"}
    assert evidence_of(table.drop(["stage"]), columns[1:]) == {0: "codes"}


def test_a_column_alone_tells_nothing() -> None:
    table = pa.table({"x": [0, 1, 2, 3] * 20})
    assert evidence_of(table, [profile("x", table.column("x"))]) == {}
