"""Sizes of leaves: by what and when they are chosen; thresholds between cells that differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import impute
from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.inference import chains
from glfm_cli.latent.forest import ForestConfig
from glfm_cli.latent.forest.columns import Kinds, cells_of
from glfm_cli.latent.forest.leaves import SETTLED, SIZES, USUAL, best_way, errors_of_many
from glfm_cli.latent.forest.lines import Lines
from glfm_cli.latent.forest.trees import Trees, Whole, grow, law, moments, scaled
from glfm_cli.links.law import NormalMixture, Probabilities
from glfm_cli.streams import Streams
from tests.normals import whole_of

pytestmark = pytest.mark.kernels
N = 400


def kinds_of(levels: int, *, nominal: bool) -> Kinds:
    """Return column 0 of levels, or of numbers, and three of numbers."""
    others = np.zeros(3)
    return Kinds(
        np.array([levels, 0, 0, 0], dtype=np.int32),
        np.array([nominal, 0, 0, 0], dtype=np.uint8),
        np.full(4, np.nan),
        np.append(0.0, others),
    )


def columns(how: str, noise: float, seed: int = 0, n: int = N) -> tuple[Array, Array, Kinds]:
    """Return cells of a column that is a smooth function of two others, and noise."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2.0, 2.0, (3, n))
    y = np.sin(x[0]) + 0.5 * x[1] + noise * rng.standard_normal(n)
    levels = 0 if how == "numbers" else 4
    y = y if not levels else np.digitize(y, [-1.0, 0.0, 1.0]).astype(np.float64)
    z = np.vstack([y, x]).astype(np.float32).astype(np.float64)
    return z, np.ones((4, n), dtype=np.uint8), kinds_of(levels, nominal=how == "categories")


HOW = ("numbers", "levels", "categories")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("least", [1, 10])
def test_the_mean_product_of_two_forests_errors_is_the_error_of_many(how: str, least: int) -> None:
    """That of one of them is a fifth and more above it."""
    z, seen, kinds = columns(how, 0.3)
    rows, rng, config = np.arange(N), np.random.default_rng(1), ForestConfig()
    once = (z, seen, kinds, 0, rows, least, Lines.none(kinds, N), config, rng)
    found = [errors_of_many(*once).error for _ in range(20)]
    errors, K = [], 200
    for _ in range(K):
        trees = grow(z, seen, kinds, [0], 4, 1, np.full(4, least), config, rng)
        one = law(z, rows, rows.astype(np.int32), z[0], kinds, 0, trees, 0, config.prior)
        if isinstance(one, Probabilities):
            p = one.p - (z[0][:, None] == np.arange(4))
            errors.append(p if how == "categories" else p.cumsum(axis=1))
        else:
            assert isinstance(one, NormalMixture)
            errors.append(one.means[:, 0] - z[0][:, None])
    e = np.array(errors)
    of_all = np.mean(np.sum(e.mean(axis=0) ** 2 - e.var(axis=0, ddof=1) / K, axis=1))
    of_one = np.mean(np.sum(e**2, axis=2))
    deviation = np.std(found) / np.sqrt(len(found))
    assert abs(np.mean(found) - of_all) < 4.0 * deviation
    assert deviation < 0.02 * of_all
    assert of_one > 1.2 * of_all


def test_smooth_columns_get_small_leaves_and_noise_large_ones() -> None:
    for how in HOW:
        for noise, best, other in ((0.0, 1, 10), (0.3, 10, 1)):
            chosen = []
            for seed in range(4):
                once = columns(how, noise, seed, n=1500)
                rng = np.random.default_rng(seed)
                chosen.append(best_way(*once, 0, ForestConfig(), rng).least)
            assert best in chosen, (how, chosen)
            assert other not in chosen, (how, chosen)


def test_of_few_cells_leaves_have_the_usual_size() -> None:
    z, seen, kinds = columns("numbers", 0.0)
    seen[0, 19:] = 0
    found = best_way(z, seen, kinds, 0, ForestConfig(), np.random.default_rng(0))
    assert found == (USUAL, False, 0.0)


TYPES = {"columns": {"y": "real", "x": "real", "e": "real"}}


def table_of(n: int = 300) -> pa.Table:
    """Return a column that is another's square, and noise, a fifth of all missing."""
    rng = np.random.default_rng(0)
    x, e = rng.uniform(0.0, 2.0, n), rng.standard_normal(n)
    cells = {"y": x**2, "x": x, "e": e}
    return pa.table({k: pa.array(v, mask=rng.random(n) < 0.2) for k, v in cells.items()})


@pytest.mark.parametrize(("visited", "sweeps"), [(1.0, 1), (0.3, 2)])
def test_sizes_are_found_after_some_turns_and_kept_from_then_on(
    visited: float, sweeps: int
) -> None:
    """Of a smooth function of columns without a gap, and of noise."""
    z, rng = columns("numbers", 0.0, n=2000)[0], np.random.default_rng(0)
    cells = {"y": z[0], "e": rng.standard_normal(2000), "x": z[1], "u": z[2]}
    gone = {name: rng.random(2000) < (0.2 if name in "ye" else 0.0) for name in cells}
    table = pa.table({name: pa.array(x, mask=gone[name]) for name, x in cells.items()})
    types = {"columns": {name: {"type": "real", "transform": "none"} for name in cells}}
    problem = prepare(table, types, model="forest", settings={"visited": visited})[0]
    chain = chains.start(problem, 1, 0)
    for _ in range(SETTLED * sweeps):
        assert chain.state.least.tolist() == [USUAL] * 4
        chain.sweep(adapt=True)
    for _ in range(sweeps):
        chain.sweep(adapt=True)
    found = chain.state.least.tolist()
    assert found == [1, 10, USUAL, USUAL]
    for _ in range(2 * sweeps):
        chain.sweep(adapt=True)
    assert chain.state.least.tolist() == found
    trees = chain.keep().latent.trees
    usual = problem.config.trees
    assert trees.count.tolist() == [2 * usual, usual, usual, usual]
    packed = trees.pack() | {"root": np.roll(trees.root, 1, axis=1)}
    with pytest.raises(ValueError, match="'root' has gaps"):
        Trees.unpack(packed, 4, 2000)
    ends = np.append(trees.root[:, 0], trees.feature.size)
    for d, least in enumerate(found):
        nodes = slice(ends[d], ends[d + 1])
        assert trees.size[nodes][trees.feature[nodes] < 0].min() == least
    draw = chain.keep().latent  # chains that go on from it look for no others
    again = problem.model.regrow(draw, chain.values, problem.config, Streams(2, 0))
    assert again.least.tolist() == found
    assert again.linear.tolist() == chain.state.linear.tolist()
    assert again.middle.tolist() == chain.state.middle.tolist()
    np.testing.assert_array_equal(again.z, draw.z)


def test_how_wide_laws_of_a_column_are_is_no_matter_of_the_trees_of_others() -> None:
    z, seen, kinds = columns("numbers", 0.3)
    config, rng = ForestConfig(), np.random.default_rng(0)
    trees = grow(z, seen, kinds, range(4), np.array([16, 8, 8, 8]), 2, np.full(4, 3), config, rng)
    fewer = trees.root.copy()
    fewer[0, 8:] = -1
    one, other = (scaled(t, z, seen, kinds, 1.0) for t in (trees, replace(trees, root=fewer)))
    assert one.scale[0] != other.scale[0]
    np.testing.assert_array_equal(one.scale[1:], other.scale[1:])


def test_a_size_that_is_set_holds_in_every_column() -> None:
    chain = chains.start(prepare(table_of(), TYPES, model="forest", settings={"least": 5})[0], 1, 0)
    for _ in range(3):
        chain.sweep(adapt=True)
    assert chain.state.least.tolist() == [5, 5, 5]


def test_rows_do_not_hold_each_other_to_wrong_cells() -> None:
    """Drawn by leaves of one member, y of a row and x of another stay what the start made them:
    each is the other's only donor. Then the error is 0.4."""
    table = table_of()
    gone = np.asarray(table["y"].is_null()) & ~np.asarray(table["x"].is_null())
    truth = np.asarray(table["x"].to_numpy(zero_copy_only=False))[gone] ** 2
    done = impute(table, TYPES, model="forest", chains=2, settings={"least": 1})
    off = np.asarray(done.to_table()["y"])[gone] - truth
    assert np.sqrt(np.mean(off**2)) < 0.1


@pytest.mark.parametrize("least", [1, 3])
@pytest.mark.parametrize("noise", [0.05, 1.0, 30.0])
def test_pooled_laws_are_as_wide_as_their_means_are_off(noise: float, least: int) -> None:
    """Of smooth columns and of noise: leaves without variance make no law wide, draws that differ
    none wider; and what trees say of noise is drawn to the mean."""
    z, seen, kinds = columns("numbers", noise, n=1000)
    new = columns("numbers", noise, seed=1, n=1000)[0]
    rows, nobody = np.arange(1000), np.full(1000, -1, dtype=np.int32)
    means, variances, slopes = [], [], []
    for seed in range(15):
        fewest = np.full(4, least)
        once = (z, seen, kinds, range(4), 8, 2, fewest, ForestConfig(), np.random.default_rng(seed))
        trees = scaled(grow(*once), z, seen, kinds, 1.0)
        one = law(new, rows, nobody, z[0], kinds, 0, trees, 0, 1.0)
        mean, var = (part[:, 0] for part in whole_of(one))
        means.append(mean)
        variances.append(var)
        slopes.append(trees.slope[0])
    off = (np.mean(means, axis=0) - new[0]) ** 2
    width = np.mean(variances) + np.mean(np.var(means, axis=0))
    assert off.mean() / width == pytest.approx(1.0, abs=0.12)
    if noise == 30.0:
        assert off.mean() < 1.02 * new[0].var()
    else:
        assert np.mean(slopes) > 0.6


@pytest.mark.parametrize("levels", [0, 3])
def test_a_column_is_asked_at_so_many_thresholds(levels: int) -> None:
    """Of very many the best is the best of all there are, of one it is any."""
    rng = np.random.default_rng(levels)
    x = rng.standard_normal(60).astype(np.float32).astype(np.float64)
    y = np.digitize(x + 0.5 * rng.standard_normal(60), [-0.3, 0.5]).astype(float)
    z, kinds = np.vstack([y, x, np.zeros((2, 60))]), kinds_of(levels, nominal=levels > 0)
    order = np.argsort(x)

    def spread(part: Array) -> float:
        if levels:
            return part.size - float(np.sum(np.bincount(part.astype(int)) ** 2)) / part.size
        return float(np.sum((part - part.mean()) ** 2))

    left = [spread(y[order[:i]]) + spread(y[order[i:]]) for i in range(1, 60)]
    ends = np.sort(x)[np.argmin(left) :][:2]

    def first(thresholds: int) -> float:
        seen, least = np.ones(z.shape, dtype=np.uint8), np.ones(4, dtype=np.int64)
        config, rng = ForestConfig(thresholds=thresholds), np.random.default_rng(0)
        trees = grow(z, seen, kinds, [0], 1, 0, least, config, rng)
        return float(trees.threshold[trees.root[0, 0]])

    assert ends[0] <= first(1000) < ends[1]
    assert not ends[0] <= first(1) < ends[1]


@pytest.mark.parametrize("nominal", [False, True])
@pytest.mark.parametrize("levels", [2, 8, 9, 14])
def test_the_best_question_is_that_of_counts_on_both_sides(levels: int, nominal: bool) -> None:
    """Of few levels and of many, with hundreds of cells of one on a side."""
    rng = np.random.default_rng(levels)
    x = rng.integers(12, size=2000).astype(np.float64)
    pull = 3.0 * (x == 4.0) + (x > 8.0) if nominal else 2.0 * (x > 9.0)
    y = np.floor(rng.beta(1.0 + pull, 1.0, 2000) * levels).astype(np.intp)
    z = np.vstack([y, x, np.zeros((2, 2000))])
    kinds = replace(kinds_of(levels, nominal=True), nominal=np.array([1, nominal, 0, 0], np.uint8))

    def purity(side: Array) -> float:
        counts = [np.bincount(y[part]).astype(float) for part in (side, ~side)]
        return sum(float(count @ count) / count.sum() for count in counts)

    best = int(np.argmax([purity(x == k if nominal else x <= k) for k in range(11 + nominal)]))
    seen, least = np.ones(z.shape, dtype=np.uint8), np.ones(4, dtype=np.int64)
    config = ForestConfig(thresholds=300)
    trees = grow(z, seen, kinds, [0], 1, 0, least, config, np.random.default_rng(0))
    found = trees.threshold[trees.root[0, 0]]
    assert found == best if nominal else best <= found < best + 1


@pytest.mark.parametrize("nominal", [False, True])
def test_hundreds_of_cells_of_one_level_that_follow_one_another_are_counted(nominal: bool) -> None:
    """The first 700 rows are all of level 0; of the others half are, and x tells which a little."""
    rng = np.random.default_rng(5)
    x = np.where(np.arange(1000) < 700, 0.0, rng.integers(1, 4, 1000))
    y = np.where(x == 0.0, 0.0, rng.random(1000) < 0.3 + 0.1 * x).astype(float)
    z = np.vstack([y, x, np.zeros((2, 1000))])
    kinds = replace(kinds_of(3, nominal=True), nominal=np.array([1, nominal, 0, 0], np.uint8))
    seen, least = np.ones(z.shape, dtype=np.uint8), np.ones(4, dtype=np.int64)
    config = ForestConfig(thresholds=300)
    trees = grow(z, seen, kinds, [0], 1, 0, least, config, np.random.default_rng(0))
    assert 0.0 <= trees.threshold[trees.root[0, 0]] < 1.0


@pytest.mark.parametrize("how", ["categories", "numbers"])
def test_the_only_cell_of_a_column_tells_nothing_of_itself(how: str) -> None:
    """Trees that have not seen it have no other member than that; other rows are told by it."""
    z, _, kinds = columns(how, 0.3, n=40)
    seen = np.zeros(z.shape, dtype=np.uint8)
    seen[1:], seen[0, 7] = 1, 1
    least, rng = np.ones(4, dtype=np.int64), np.random.default_rng(0)
    trees = grow(z, seen, kinds, [0], 8, 2, least, ForestConfig(), rng)
    donors = np.where(seen[0] != 0, z[0], np.nan)
    rows, own = np.array([7, 8]), np.array([7, -1], dtype=np.int32)
    if how == "numbers":
        whole = Whole.of(donors, kinds, 0)
        found = moments(z, rows, own, donors, kinds, 0, trees, 0, 4.0, whole)
        assert found[1, 1] == pytest.approx(found[0, 1] * 4.0 / (4.0 + 1.0))
        return
    one = law(z, rows, own, donors, kinds, 0, trees, 0, 4.0)
    assert isinstance(one, Probabilities)
    share = (np.arange(4) == z[0, 7]) + 0.25
    np.testing.assert_allclose(one.p[0], share / share.sum())
    assert one.p[1, int(z[0, 7])] > one.p[0, int(z[0, 7])]


def test_two_cells_that_differ_have_a_threshold_between_them() -> None:
    """However near they are: cells are of single precision, as thresholds are."""
    x = np.float32(1.0)
    near = np.array([x, np.nextafter(x, np.float32(2.0))], dtype=np.float64)
    z = np.vstack([np.tile([0.0, 1.0], 20), np.tile(near, 20)])
    z = np.vstack([z, np.zeros((2, 40))])
    seen, kinds = np.ones((4, 40), dtype=np.uint8), kinds_of(0, nominal=False)
    trees = grow(
        *(z, seen, kinds, [0], 4, 1, np.ones(4, dtype=np.int64), ForestConfig()),
        np.random.default_rng(0),
    )
    assert (trees.feature[trees.root[0]] == 1).all()
    assert near[0] <= trees.threshold[trees.root[0]].max() < near[1]


def test_numbers_are_rounded_and_none_is_taken_for_an_atom() -> None:
    problem = prepare(
        pa.table({"r": [0.0] * 60 + [0.1 + 0.01 * i for i in range(40)], "x": list(range(100))}),
        {"columns": {"r": "real", "x": "real"}},
        model="forest",
    )[0]
    kinds = Kinds.of(problem.links)
    assert not np.isnan(kinds.atom[0])
    z = cells_of(problem.links, problem.xs, kinds)
    np.testing.assert_array_equal(z, z.astype(np.float32))
    assert np.sum(z[0] == kinds.atom[0]) == 60
    beside = replace(kinds, atom=np.array([z[0, 70], np.nan]))
    again = cells_of(problem.links, problem.xs, beside)
    assert np.sum(again[0] == beside.atom[0]) == 60


@pytest.mark.parametrize("least", [[USUAL, 2, 1], [0, *SIZES[1:]]])
def test_a_state_with_other_sizes_is_refused(least: list[int]) -> None:
    problem = prepare(table_of(), TYPES, model="forest")[0]
    chain = chains.start(problem, 1, 0)
    state = dict(chain.model.save(chain.state))
    state["way"] = np.array([least, [0] * 3])
    with pytest.raises(ValueError, match="'least' is out of range"):
        chain.model.load(state, chain.values, problem.config)
