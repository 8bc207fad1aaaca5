"""Whole numbers drawn given a formula that holds but for rounding."""

from __future__ import annotations

import numpy as np
import pytest

from tests.equation_draws import SEEN, N, check_distribution, redraw


@pytest.mark.parametrize("narrow", ["people", "per_head"])
def test_whole_numbers_given_their_product(narrow: str) -> None:
    """No two of them need multiply to a number that is rounded."""
    rng = np.random.default_rng(1)
    sd = {"people": 0.5, "per_head": 0.5} | {narrow: 0.05}
    seen = {
        "people": np.rint(np.exp(rng.normal(8.0, sd["people"], SEEN))),
        "per_head": np.rint(np.exp(rng.normal(10.0, sd["per_head"], SEEN))),
    }
    seen["product"] = np.round(seen["people"] * seen["per_head"] / 1e6, 2)
    count = {"type": "count", "transform": "log"}
    types = {"people": count, "per_head": count}
    types |= {"product": {"type": "positive", "formula": "people * per_head / 1e6"}}
    row = {"people": None, "per_head": None, "product": 80.07}
    found, log_p = redraw(seen, types, row, 0.8, 2)
    x, y = found["people"], found["per_head"]
    assert np.all(np.abs(x * y / 1e6 - 80.07) <= 0.500001 * np.minimum(x, y) / 1e6)
    grid = np.rint(np.linspace(500, 20_000, 4001))
    left = log_p["per_head"](80.07e6 / grid) - np.log(grid)
    check_distribution(x, grid, log_p["people"](grid) + left)


@pytest.mark.parametrize("seed", [3, 4, 5, 6])  # which of the two is moved last, chance says
def test_few_whole_numbers_given_their_quotient(seed: int) -> None:
    """A small number does not follow from a large one: rounding would break the formula."""
    rng = np.random.default_rng(2)
    cases, people = rng.poisson(4.0, SEEN), np.rint(np.exp(rng.normal(9.0, 0.4, SEEN)))
    seen = {"cases": cases, "people": people, "rate": np.round(cases / people * 1e5, 2)}
    types = {"cases": "count", "people": "count"}
    types |= {"rate": {"type": "positive", "formula": "cases / people * 1e5"}}
    found, _ = redraw(seen, types, {"cases": None, "people": None, "rate": 40.0}, 0.8, seed)
    assert np.all(np.rint(found["cases"] / 40.0 * 1e5) == found["people"])
    assert 2.0 < found["cases"].mean() < 6.0
    assert found["cases"].size == N
