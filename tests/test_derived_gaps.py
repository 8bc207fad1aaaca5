"""Scores are hidden where one of their items is, as they are missing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from glfm_cli.completion import prepare
from glfm_cli.inference.derived_gaps import derived_gaps
from glfm_cli.inference.hiding import TIMES, chosen_cells
from glfm_cli.schema import Schema

N = 400


def gaps(seed: int, n_items: int = 4) -> np.ndarray:
    """Return which items (N, n_items) are missing."""
    return np.random.default_rng(seed).random((N, n_items)) < 0.08


def test_a_column_without_a_value_where_one_of_others_has_none_is_found(seed: int) -> None:
    items = gaps(seed)
    other = np.random.default_rng(seed + 1).random(N) < 0.2
    found = derived_gaps(~np.column_stack([other, items, items.any(axis=1)]))
    assert list(found) == [5]
    np.testing.assert_array_equal(found[5], [1, 2, 3, 4])
    few = derived_gaps(~np.column_stack([items, items.any(axis=1) | other]))
    assert few == {}  # mostly missing for other reasons


def test_blocks_and_those_who_left_are_no_scores(seed: int) -> None:
    rng = np.random.default_rng(seed)
    block = np.repeat(rng.random((N, 1)) < 0.2, 4, axis=1)
    assert derived_gaps(~block) == {}
    left = rng.integers(1, 12, N)[:, None] <= np.arange(5)  # each wave lacks more than the last
    assert derived_gaps(~left) == {}
    assert derived_gaps(np.ones((N, 3), dtype=bool)) == {}


def test_scores_are_hidden_where_one_of_their_items_is() -> None:
    rng, items = np.random.default_rng(3), gaps(3)
    x = rng.normal(size=(N, 4))
    score = pa.array(x.sum(axis=1), mask=items.any(axis=1))
    columns = {f"q{i}": pa.array(x[:, i], mask=items[:, i]) for i in range(4)}
    table = pa.table({**columns, "score": score, "age": rng.normal(size=N)})
    schema = Schema.from_dict({"rest": "real", "columns": {}})
    problem, *_ = prepare(table, schema, model="bsvd", settings={})
    for time in range(TIMES):
        rows, hidden = chosen_cells(problem, time)
        expected = hidden[:, :4].any(axis=1) & problem.seen[rows, 4]
        np.testing.assert_array_equal(hidden[:, 4], expected)
        assert hidden[:, 4].mean() > 0.25
    assert hidden[:, 5].mean() < 0.2
