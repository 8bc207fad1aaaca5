"""Cells drawn given an equation whose result is far from what their columns usually give."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.equation_draws import LOG, SEEN, N, Row, check_counts, check_distribution, redraw


def test_shares_that_are_both_too_large_at_first() -> None:
    rng = np.random.default_rng(7)
    seen = {name: np.exp(rng.normal(1, 0.7, SEEN)) for name in "ab"}
    seen["left"] = 30.0 - seen["a"] - seen["b"]
    types: dict[str, Any] = dict.fromkeys("ab", "positive")
    types |= {"left": {"type": "real", "formula": "30 - a - b"}}
    found, _ = redraw(seen, types, {"a": None, "b": None, "left": 29.0}, 1.0, 8)
    np.testing.assert_allclose(found["a"] + found["b"], 1.0, rtol=1e-9)


def test_shares_of_what_is_far_less_than_they_usually_are() -> None:
    """No share alone can be so small that the others leave it something."""
    rng = np.random.default_rng(7)
    seen = {name: np.exp(rng.normal(1, 0.4, SEEN)) for name in "abc"}
    seen["left"] = 30.0 - seen["a"] - seen["b"] - seen["c"]
    types: dict[str, Any] = dict(zip("abc", (LOG,) * 3, strict=True))
    types |= {"left": {"type": "real", "formula": "30 - a - b - c"}}
    found, log_p = redraw(seen, types, dict.fromkeys("abc") | {"left": 29.0}, 1.0, 8)
    np.testing.assert_allclose(found["a"] + found["b"] + found["c"], 1.0, rtol=1e-9)
    grid = np.linspace(0.0, 1.0, 402)[1:-1]
    p = {name: np.exp(log_p[name](grid) - log_p[name](grid).max()) for name in "abc"}
    rest = [np.dot(p["b"][:k], p["c"][:k][::-1]) for k in range(grid.size - 1, -1, -1)]
    with np.errstate(divide="ignore"):
        check_distribution(found["a"], grid, np.log(p["a"]) + np.log(rest))


def test_whole_numbers_of_what_is_far_less_than_they_usually_are() -> None:
    rng = np.random.default_rng(9)
    seen = {"a": rng.poisson(20.0, SEEN), "b": np.exp(rng.normal(0.8, 0.4, SEEN))}
    seen["left"] = 60.0 - seen["a"] - seen["b"]
    types: dict[str, Any] = {"a": "count", "b": LOG}
    types |= {"left": {"type": "real", "formula": "60 - a - b"}}
    found, log_p = redraw(seen, types, {"a": None, "b": None, "left": 52.2}, 1.0, 10)
    c = np.arange(8.0)
    p = np.exp(log_p["a"](c) + log_p["b"](7.8 - c))
    times = np.array([np.sum(found["a"] == k) for k in c])
    assert times.sum() == N
    check_counts(times, N * p / p.sum())
    # Where nothing can obey, cells are as they were drawn.
    found, _ = redraw(seen, types, {"a": None, "b": None, "left": 70.0}, 1.0, 10)
    assert np.median(found["a"]) > 15.0


def test_a_rest_is_less_than_any_seen_where_no_more_is_left() -> None:
    rng = np.random.default_rng(11)
    seen = {name: np.exp(rng.normal(3.2, 0.4, SEEN)) for name in ("sand", "clay")}
    seen["silt"] = 100.0 - seen["sand"] - seen["clay"]
    seen = {name: x[seen["silt"] > 5.0] for name, x in seen.items()}
    seen = {name: np.resize(x, SEEN) for name, x in seen.items()}
    types: dict[str, Any] = {"sand": LOG, "clay": LOG}
    types |= {"silt": {"type": "positive", "formula": "100 - sand - clay"}}
    row: Row = {"sand": None, "clay": 99.0, "silt": None}
    found, log_p = redraw(seen, types, row, 1.0, 12)
    np.testing.assert_allclose(found["sand"] + found["silt"], 1.0, rtol=1e-9)
    assert np.all(found["silt"] > 0.0)
    grid = np.linspace(0.0, 1.0, 4001)[1:]
    check_distribution(found["sand"], grid, log_p["sand"](grid))


def test_a_trace_beside_a_large_part_stays_one() -> None:
    """Where the large part follows: the trace, as the rest of it, would never come back."""
    rng = np.random.default_rng(13)
    seen = {"K2O": np.exp(rng.normal(3.0, 0.1, SEEN)), "SO3": np.exp(rng.normal(-3.4, 0.3, SEEN))}
    seen["rest"] = 100.0 - seen["K2O"] - seen["SO3"]
    types: dict[str, Any] = {"K2O": LOG, "SO3": LOG}
    types |= {"rest": {"type": "positive", "formula": "100 - SO3 - K2O"}}
    row: Row = {"K2O": None, "SO3": None, "rest": 70.0}
    found, log_p = redraw(seen, types, row, 0.6, 14)
    np.testing.assert_allclose(found["K2O"] + found["SO3"], 30.0, rtol=1e-9)
    grid = np.linspace(0.001, 1.0, 8001)
    check_distribution(found["SO3"], grid, log_p["SO3"](grid) + log_p["K2O"](30.0 - grid))
