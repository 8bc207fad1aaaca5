"""Links of numbers told once which of their cells are intervals, and what is said of these."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.completion import prepare
from glfm_cli.encoding import encode
from glfm_cli.inference.chains import start
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.links.told import IntervalCells, told
from glfm_cli.schema import Schema

CELLS = ["3", "<2", "4-6", "", "5", ">7", "2", "8-9", "4", "0", "<1", "5"]


@pytest.mark.parametrize("kind", ["real", "positive", "count"])
@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_a_link_told_of_its_intervals_draws_and_bounds_the_same(
    kind: str, noise: float, seed: int
) -> None:
    schema = Schema.from_dict({"columns": {"y": kind}})
    encoded = encode(pa.table({"y": CELLS}), schema).columns[0]
    link = make_link(encoded, LinkConfig(link_noise=noise, atoms=False))
    x, eta = encoded.cells, np.linspace(-1.0, 1.0, len(CELLS))
    found = []
    for one in (link, told(link, x)):
        rng = np.random.default_rng(seed)
        params, y = link.start(x)
        lower, upper = np.full_like(y, 7.0), np.full_like(y, 7.0)
        one.bound(x, params, y, rng, lower, upper)
        before = y.copy()
        one.augment(x, eta, 0.5, params, rng, y)
        points = (x[:, 0] == x[:, 1]) & (x[:, 0] > 0.0)
        assert np.all((y != before)[points] == (noise > 0.0 or kind == "count"))
        found.append(np.hstack([lower, upper, y]))
    assert np.array_equal(*found)
    assert isinstance(told(link, x), IntervalCells)


def test_blocks_of_rows_have_intervals_of_their_own(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glfm_cli.inference.chain.BLOCK", 4)
    table = pa.table({"y": CELLS, "x": [float(i) for i in range(len(CELLS))]})
    types = {"columns": {"y": "positive", "x": "real"}}
    problem, _, plan = prepare(table, types, model="glfm", seed=seed)
    chain = start(problem, plan.seed, 0)
    for _ in range(3):
        chain.sweep(adapt=True)
    rows, low, high = problem.links[0].between(problem.xs[0])
    assert rows.tolist() == [1, 2, 5, 7, 10]
    y = chain.cells.y[rows, 0]
    assert np.all((low < y) & (y < high))


def test_one_note_tells_of_the_intervals_of_all_columns() -> None:
    table = pa.table({f"m{j}": ["<1", "2", "3.5", "<1", "4", "5"] for j in range(5)})
    notes = encode(table, Schema.from_dict({"rest": "positive"})).notes
    said = [note for note in notes if "interval" in note]
    assert [note.partition(" known")[0] for note in said] == [
        "columns 'm0', 'm1', 'm2' and 2 more: 10 cells are"
    ]
