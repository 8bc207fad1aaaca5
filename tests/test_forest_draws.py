"""Cells drawn by trees: any tree, and any member of its leaf, as probably as another.

In columns of little noise some cells are given the median of three such donors.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.inference import chains
from glfm_cli.latent.forest import ForestConfig
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.leaves import (
    MEDIAN,
    SETTLED,
    TOO_WIDE,
    Errors,
    best_way,
    errors_of_many,
    middles,
)
from glfm_cli.latent.forest.lines import Lines
from glfm_cli.latent.forest.trees import Trees, draw_cells, grow

pytestmark = pytest.mark.kernels

N, NEW, T = 24, 30_000, 4
KINDS = Kinds(np.zeros(2, np.int32), np.zeros(2, np.uint8), np.full(2, np.nan), np.zeros(2))


def grown(seed: int, least: int) -> tuple[Trees, Array]:
    """Return trees of a column on another one, and the donors: cells 0 to 23."""
    rng = np.random.default_rng(seed)
    z = np.stack([rng.normal(size=N), np.arange(N, dtype=float)])
    size = np.full(2, least, dtype=np.int64)
    seen = np.ones((2, N), dtype=np.uint8)
    return grow(z, seen, KINDS, [1], T, 0, size, ForestConfig(), rng), z[1]


def counts(
    trees: Trees, donors: Array, seed: int, middle: float = 0.0, atom: float = np.nan
) -> Array:
    """Return how often each donor is drawn for rows that are alike."""
    z, nobody = np.zeros((2, NEW)), np.full(NEW, -1, dtype=np.int32)
    rng, kinds = np.random.default_rng(seed), replace(KINDS, atom=np.full(2, atom))
    draw_cells(z, kinds, 1, np.arange(NEW), nobody, donors, trees, 0, rng, None, middle)
    return np.bincount(z[1].astype(int), minlength=N)


def test_every_member_of_a_leaf_is_drawn_as_often(seed: int) -> None:
    found = counts(*grown(seed, N), seed)  # one leaf has all
    assert np.sum((found - NEW / N) ** 2 / (NEW / N)) < 60.0  # chi-square of 23 degrees


def test_every_tree_is_drawn_from_as_often(seed: int) -> None:
    trees, donors = grown(seed, 3)
    each = [counts(replace(trees, root=trees.root[:, [t]]), donors, seed) for t in range(T)]
    assert len({tuple(np.flatnonzero(one)) for one in each}) > 1
    expected = np.mean(each, axis=0)
    found = counts(trees, donors, seed + 1)
    some = expected > 0
    assert not found[~some].any()
    assert np.sum((found - expected)[some] ** 2 / expected[some]) < 60.0


@pytest.mark.parametrize("has_atom", [False, True])
@pytest.mark.parametrize("middle", [1.0, 0.4])
def test_the_middle_of_three_donors_is_of_three_trees(
    seed: int, middle: float, has_atom: bool
) -> None:
    """Enumerated: any three trees that follow one another, any member of the leaf of each."""
    trees, donors = grown(seed, 3)
    atom = float(np.argmax(counts(trees, donors, seed))) if has_atom else np.nan
    each = [counts(replace(trees, root=trees.root[:, [t]]), donors, seed) for t in range(T)]
    leaves = [np.flatnonzero(one) for one in each]
    expected = (1.0 - middle) * np.mean([one / one.sum() for one in each], axis=0)
    for t in range(T):
        three = [leaves[(t + k) % T] for k in range(3)]
        for members in product(*three):
            is_middle = atom not in members
            which = int(sorted(members)[1]) if is_middle else int(members[0])
            expected[which] += middle / T / np.prod([one.size for one in three])
    found, expected = counts(trees, donors, seed + 1, middle, atom), NEW * expected
    some = expected > 0
    assert not found[~some].any()
    assert np.sum((found - expected)[some] ** 2 / expected[some]) < 60.0


def test_a_donor_gets_the_middle_of_trees_that_have_not_seen_it() -> None:
    """Of two of the four: the third donor is of the first tree again."""
    rng = np.random.default_rng(0)
    z = np.stack([rng.normal(size=N), np.arange(N, dtype=float)])
    size, seen = np.full(2, 1, dtype=np.int64), np.ones((2, N), dtype=np.uint8)
    trees = grow(z, seen, KINDS, [1], T, 2, size, ForestConfig(), rng)
    rows = np.zeros(500, dtype=np.intp)
    new = np.repeat(z[:, :1], 500, axis=1)
    draw_cells(new, KINDS, 1, np.arange(500), rows.astype(np.int32), z[1], trees, 0, rng, None, 1.0)
    assert not np.any(new[1] == z[1, 0])
    assert np.unique(new[1]).size <= 2


def smooth(noise: float, n: int = 600) -> tuple[Array, Array, Kinds]:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2.0, 2.0, (3, n))
    y = np.sin(2.0 * x[0]) * x[1] + noise * rng.standard_normal(n)
    z = np.vstack([y, x]).astype(np.float32).astype(np.float64)
    kinds = Kinds(np.zeros(4, np.int32), np.zeros(4, np.uint8), np.full(4, np.nan), np.zeros(4))
    return z, np.ones((4, n), dtype=np.uint8), kinds


@pytest.mark.parametrize("least", [1, 3])
def test_the_variance_of_donors_is_that_around_their_mean(least: int) -> None:
    z, seen, kinds = smooth(0.1)
    rng, config, rows = np.random.default_rng(1), ForestConfig(), np.arange(600)
    once = z, seen, kinds, 0, rows, least, Lines.none(kinds, 600), config, rng
    found = np.mean([errors_of_many(*once) for _ in range(40)], axis=0)
    drawn = []
    for _ in range(400):
        trees = grow(z, seen, kinds, [0], 4, 1, np.full(4, least), config, rng)
        new = z.copy()
        draw_cells(new, kinds, 0, rows, rows.astype(np.int32), z[0], trees, 0, rng)
        drawn.append(new[0])
    right = np.mean(np.var(drawn, axis=0, ddof=1))
    assert found[1] == pytest.approx(right, rel=0.1)
    assert found[0] == pytest.approx(np.mean((np.mean(drawn, axis=0) - z[0]) ** 2), rel=0.12)


def test_what_is_drawn_varies_as_much_as_forecasts_are_off() -> None:
    """Of normals, whose median of three varies less; where they are hardly wider, not at all."""
    rng = np.random.default_rng(0)
    three = rng.standard_normal((200_000, 3))
    assert np.var(np.median(three, axis=1)) == pytest.approx(MEDIAN, rel=0.01)
    for ratio in (0.5, 0.6, 0.75):
        share = middles(Errors(2.0 * ratio, 2.0))
        mixed = np.where(rng.random(200_000) < share, np.median(three, axis=1), three[:, 0])
        assert np.var(mixed) == pytest.approx(ratio, rel=0.02)
    assert middles(Errors(0.1, 1.0)) == 1.0
    assert middles(Errors(TOO_WIDE, 1.0)) == middles(Errors(1.5, 1.0)) == 0.0
    assert middles(Errors(0.0, 0.0)) == 0.0  # of a column of one value


def test_cells_of_smooth_columns_are_drawn_nearer_to_their_forecasts() -> None:
    """Of noise and of levels they are not; nor where the settings leave nothing to be found."""
    z, seen, kinds = smooth(0.0)
    rng = np.random.default_rng(0)
    config = ForestConfig(linear="never")
    assert best_way(z, seen, kinds, 0, config, rng).middle > 0.3
    noise = np.vstack([rng.standard_normal(600), z[1:]])
    assert best_way(noise, seen, kinds, 0, config, rng).middle == 0.0
    assert best_way(z, seen, kinds, 0, ForestConfig(linear="never", least=1), rng).middle == 0.0
    levels = np.vstack([z[0] > 0.0, z[1:]])
    two = replace(kinds, levels=np.array([2, 0, 0, 0], np.int32))
    way = best_way(levels, seen, two, 0, config, rng)
    once = levels, seen, two, 0, np.arange(600), way.least, Lines.none(two, 600), config, rng
    found = errors_of_many(*once)
    assert middles(found) > 0.0  # which would be taken of numbers
    assert way.middle == 0.0


def test_a_chain_draws_by_what_it_has_found() -> None:
    """Cells are off by less; new rows and chains that go on from a draw do so, too."""
    z = smooth(0.0)[0]
    gone = np.random.default_rng(1).random(600) < 0.3
    table = pa.table({"y": pa.array(z[0], mask=gone), "a": z[1], "b": z[2]})
    types = {"columns": {name: {"type": "real", "transform": "none"} for name in "yab"}}
    off = {}
    for name, more in {"found": {}, "set": {"least": 1}}.items():
        settings = {"linear": "never", **more}
        problem = prepare(table, types, model="forest", settings=settings)[0]
        chain, drawn = chains.start(problem, 1, 0), []
        for _ in range(SETTLED + 1):
            chain.sweep(adapt=True)
        for _ in range(30):
            chain.sweep(adapt=True)
            drawn.append(chain.state.z[0, gone])
        truth = problem.links[0].margin.to_latent(z[0, gone])
        off[name] = float(np.mean((np.array(drawn) - truth) ** 2))
        draw, rng = chain.keep().latent, np.random.default_rng(0)
        assert draw.middle.tolist() == chain.state.middle.tolist()
        new = draw.z[:, gone].copy()
        new[0] = np.nan
        nobody = np.full(int(gone.sum()), -1, dtype=np.int32)
        folded = [draw.folded(new, nobody, {}, 1, rng).z[0] for _ in range(20)]
        off["new rows, " + name] = float(np.mean((np.array(folded) - truth) ** 2))
    assert off["found"] < 0.6 * off["set"]
    assert off["new rows, found"] < 0.6 * off["new rows, set"]


def test_a_chain_that_goes_on_draws_as_before() -> None:
    z = smooth(0.0)[0]
    gone = np.random.default_rng(1).random(600) < 0.3
    table = pa.table({"y": pa.array(z[0], mask=gone), "a": z[1], "b": z[2]})
    types = {"columns": dict.fromkeys("yab", "real")}
    problem = prepare(table, types, model="forest", settings={"linear": "never"})[0]
    chain = chains.start(problem, 1, 0)
    for _ in range(SETTLED + 1):
        chain.sweep(adapt=True)
    assert chain.state.middle[0] > 0.0
    arrays = problem.model.save(chain.state)
    again = problem.model.load(arrays, chain.values, problem.config)
    assert again.middle.tolist() == chain.state.middle.tolist()
    for wrong in (-0.1, 1.1):
        with pytest.raises(ValueError, match="'middle' is out of range"):
            problem.model.load(
                arrays | {"middle": np.full(3, wrong)}, chain.values, problem.config
            )


def test_levels_are_not_timed_as_numbers_are() -> None:
    """Columns that copy how others are forecast have no middle, if they have no numbers."""
    z = smooth(0.0)[0]
    rng = np.random.default_rng(1)
    cells = {f"y{k}": z[0] * (1.0 + k) for k in range(30)}
    cells |= {f"c{k}": (z[0] > 0.1 * k).astype(float) for k in range(10)}
    table = pa.table({k: pa.array(x, mask=rng.random(600) < 0.1) for k, x in cells.items()})
    table = table.append_column("a", pa.array(z[1])).append_column("b", pa.array(z[2]))
    types = {"columns": dict.fromkeys([*cells, "a", "b"], "real")}
    types["columns"] |= {f"c{k}": {"type": "ordinal", "levels": [0, 1]} for k in range(10)}
    problem = prepare(
        table, types, model="forest", settings={"linear": "never", "together": 1.0}
    )[0]
    chain = chains.start(problem, 1, 0)
    chains.settle(chain)
    assert (chain.state.middle[:30] > 0.0).sum() >= 10
    assert not chain.state.middle[30:40].any()
