"""Cells that follow from rounded ones are as uncertain as rounding makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import impute

SHORT: dict[str, Any] = {"model": "bsvd", "chains": 2, "warmup": 10, "draws": 10, "threads": 1}
N = 400


def followed(
    places: int, kind: str, slips: int = 0, *, cut: bool = False
) -> dict[str, tuple[np.ndarray, ...]]:
    """Return truth, lower and upper ends and sd of cells that follow, by column of a density."""
    rng = np.random.default_rng(3)
    people = np.rint(np.exp(rng.normal(7.0, 0.6, N)))
    area = np.rint(np.exp(rng.normal(5.0, 0.6, N)))
    density = np.floor(10.0**places * people / area) / 10.0**places
    true = {"people": people, "area": area, "density": density}  # as the table would show it
    if not cut:
        true["density"] = np.round(people / area, places)
    shown = {name: x.copy() for name, x in true.items()}
    shown["density"][:slips] *= 1e3
    gap = rng.integers(0, 6, N)  # of half of the rows one cell is missing
    gap[:slips] = 5
    cells = {
        name: [None if g == k else float(x) for g, x in zip(gap, shown[name], strict=True)]
        for k, name in enumerate(shown)
    }
    types = {"people": kind, "area": kind}
    types |= {"density": {"type": "positive", "formula": "people / area"}}  # type: ignore[dict-item]
    done = impute(pa.table(cells), {"columns": types}, seed=1, **SHORT)
    found = {}
    for part in done.columns:
        name, one = part.encoded.column.name, part.marginal
        found[name] = true[name][one.rows], *one.quantiles.T[[0, 2]], one.sd
    return found


@pytest.mark.parametrize("kind", ["count", "positive"])
@pytest.mark.parametrize("slips", [0, 4])
@pytest.mark.parametrize("cut", [False, True])  # digits that are cut off are all below the truth
def test_intervals_hold_what_rounding_took_away(kind: str, slips: int, *, cut: bool) -> None:
    for name, (true, low, high, sd) in followed(1, kind, slips, cut=cut).items():
        assert true.size > 40
        inside = (low - 1e-9 * true <= true) & (true <= high + 1e-9 * true)
        assert inside.mean() > 0.85, name
        assert np.median((high - low) / true) < 0.05
        if not cut:  # of a uniform law
            assert sd.mean() == pytest.approx((high - low).mean() / 3.3, rel=0.25)


@pytest.mark.parametrize("kind", ["count", "positive"])
def test_what_is_not_rounded_is_certain(kind: str) -> None:
    for true, low, high, sd in followed(14, kind).values():
        np.testing.assert_allclose(low, true, rtol=1e-9)
        np.testing.assert_allclose(high, true, rtol=1e-9)
        assert np.all(sd <= 1e-9 * true)
