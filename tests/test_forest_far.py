"""Cells of groups without any value: trees that forecast them are judged by groups, not by rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from glfm_cli import impute
from glfm_cli.arrays import Array
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.config import ForestConfig
from glfm_cli.latent.forest.trees import Trees, Units, grow, scaled

G, EACH = 60, 8
CODE = np.repeat(np.arange(G, dtype=np.int32), EACH)
UNITS = Units(CODE, np.ones(2, dtype=bool))
KINDS = Kinds(np.zeros(2, np.int32), np.zeros(2, np.uint8), np.full(2, np.nan), np.zeros(2))


def firms(seed: int) -> Array:
    """Return two columns (2, N) by which firms are known, and that say nothing of one another."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(2, G))[:, CODE] + 0.05 * rng.normal(size=(2, CODE.size))
    return z.astype(np.float32).astype(np.float64)


def heard(trees: Trees, k: int) -> Array:
    """Return which trees number k have seen which rows (T, N)."""
    ends = np.append(trees.root.ravel(), trees.feature.size)[8 * k :]
    found = np.zeros((8, CODE.size), dtype=bool)
    for t in range(8):
        nodes = np.arange(ends[t], ends[t + 1])
        for leaf in nodes[trees.feature[nodes] < 0]:
            first = trees.child[leaf]
            found[t, trees.members[first : first + trees.size[leaf]]] = True
    return found


def test_rows_of_a_group_are_left_out_of_the_same_trees(seed: int) -> None:
    z, seen, least = firms(seed), np.ones((2, CODE.size), np.uint8), np.full(2, 3)
    once = z, seen, KINDS, [0, 1], 8, 2, least, ForestConfig(), np.random.default_rng(seed)
    trees = grow(*once, units=Units(CODE, np.array([False, True])))
    alone, together = (heard(trees, k).reshape(8, G, EACH) for k in range(2))
    for own in (alone, together):
        assert (own.sum(axis=0) == 6).all()
    assert (together == together[:, :, :1]).all()
    assert (alone != alone[:, :, :1]).any(axis=(0, 2)).all()  # of columns that have no such cells
    assert len(np.unique(together[:, :, 0], axis=1).T) == 8  # of every group others


def test_what_tells_firms_is_no_forecast_of_a_firm(seed: int) -> None:
    z, seen = firms(seed), np.ones((2, CODE.size), np.uint8)

    def slope(units: Units | None) -> float:
        rng, least = np.random.default_rng(seed), np.full(2, 3)
        once = z, seen, KINDS, range(2), 8, 2, least, ForestConfig(), rng
        return float(scaled(grow(*once, units=units), z, seen, KINDS, 1.0).slope.mean())

    assert slope(None) > slope(UNITS) + 0.3  # rows of a firm tell of each other


def held_by_intervals(columns: dict[str, Array], gone: Array, seed: int) -> float:
    """Return the share of numbers that were hidden in some rows, of columns but x, in intervals."""
    hidden = {n: x if n == "x" else pa.array(x, mask=gone) for n, x in columns.items()}
    types = {"columns": {"firm": {"role": "group"}, **dict.fromkeys(columns, "real")}}
    table = pa.table({"firm": [f"f{g}" for g in CODE], **hidden})
    found = impute(table, types=types, model="forest", seed=seed, chains=2, draws=4).cells()
    low, high = (np.array(found[name].to_pylist(), float) for name in ("lower", "upper"))
    pairs = zip(found["column"].to_pylist(), found["row"].to_pylist(), strict=True)
    truth = np.array([columns[name][row - 1] for name, row in pairs])
    return float(np.mean((low <= truth) & (truth <= high)))


def test_intervals_of_groups_without_any_value_hold_what_they_promise() -> None:
    held, together = [], []
    for seed in range(3):
        (x, y), rng = firms(seed), np.random.default_rng(seed)
        gone = np.isin(CODE, rng.choice(G, 15, replace=False))
        held.append(held_by_intervals({"x": x, "y": y}, gone, seed))
        twin = y + 0.15 * rng.normal(size=CODE.size)  # missing where its column is
        together.append(held_by_intervals({"x": x, "y": y, "twin": twin}, gone, seed))
    assert np.mean(held) > 0.8
    assert np.mean(together) > 0.8
