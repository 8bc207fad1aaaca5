"""Chained extra trees: their laws against plain Python, honest forecasts, planted rules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.special import ndtr

from glfm_cli import impute
from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.errors import GlfmError
from glfm_cli.inference import chains
from glfm_cli.inference.hidden_cells import without_cells
from glfm_cli.inference.one_draw import draw_jointly
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import sample
from glfm_cli.latent.forest import ForestDraw
from glfm_cli.latent.forest.draw import ForestLaw
from glfm_cli.latent.model import Problem
from glfm_cli.links.law import Probabilities
from tests.normals import whole_of

pytestmark = pytest.mark.kernels
TYPES = {"columns": {"x": "real", "c": "categorical", "o": "ordinal", "k": "count", "r": "real"}}


T, PRIOR = 6, 2.0
SETTINGS = {"trees": T, "least": 3, "left_out": 2, "prior": PRIOR, "together": 1.0}


def table_of(n: int = 90, seed: int = 0) -> pa.Table:
    """Five columns of which the last is mostly 0, a fifth of the cells missing."""
    rng = np.random.default_rng(seed)
    t = rng.standard_normal(n)
    columns = {
        "x": t + 0.3 * rng.standard_normal(n),
        "c": np.array(["a", "b", "c"])[np.digitize(t + 0.3 * rng.standard_normal(n), [-0.5, 0.5])],
        "o": np.digitize(t, [-1.0, 0.3, 1.0]),
        "k": rng.poisson(np.exp(1.0 + t)),
        "r": np.where(t > 0.2, np.exp(t), 0.0),
    }
    return pa.table({name: pa.array(x, mask=rng.random(n) < 0.2) for name, x in columns.items()})


@pytest.fixture(scope="module")
def problem() -> Problem:
    return prepare(table_of(), TYPES, model="forest", settings=SETTINGS)[0]


@pytest.fixture(scope="module")
def draw(problem: Problem) -> ForestDraw:
    chain = chains.start(problem, 3, 0)
    for _ in range(3):
        chain.sweep(adapt=True)
    found: ForestDraw = chain.keep().latent
    return found


def sees(seed: int, row: int, t: int, trees: int, left_out: int) -> bool:
    """Return whether a tree sees a row, by the hash in Python's own integers."""
    whole = 2**64
    x = (seed + (int(row) + 1) * 0x9E3779B97F4A7C15) % whole
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 % whole
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB % whole
    return ((x ^ (x >> 31)) + t) % whole % trees >= left_out


def goes_left(draw: ForestDraw, node: int, row: int) -> bool:
    f, t = draw.trees.feature[node], draw.trees.threshold[node]
    x = draw.z[f, row]
    return bool(x == t if draw.kinds.nominal[f] else x <= t)


def leaf_of(draw: ForestDraw, d: int, t: int, row: int) -> list[int]:
    """Return the donors that are in a row's leaf of tree t of column d: asked one by one."""
    trees, node, N = draw.trees, int(draw.trees.root[d, t]), draw.own.size
    seed = int(trees.seed[d])
    rows = [n for n in range(N) if draw.seen[d, n] and sees(seed, n, t, T, trees.left_out)]
    while trees.feature[node] >= 0:
        left = goes_left(draw, node, row)
        rows = [n for n in rows if goes_left(draw, node, n) == left]
        node = int(trees.child[node]) + (0 if left else 1)
    return rows


def heard(draw: ForestDraw, d: int, n: int) -> list[int]:
    """Return the trees that a cell's law is of."""
    seed, out = int(draw.trees.seed[d]), draw.trees.left_out
    return [t for t in range(T) if not draw.seen[d, n] or not sees(seed, n, t, T, out)]


def numbers(draw: ForestDraw, d: int, n: int) -> tuple[float, float, float, float]:
    """Return mean, variance within leaves, between trees, and share of the atom, one by one."""
    y, known, atom = draw.donors[d], draw.seen[d] != 0, draw.kinds.atom[d]
    rest, within = y[known & (y != atom)], draw.trees.within[d]
    means, variances, shares = [], [], []
    for t in heard(draw, d, n):
        leaf = y[leaf_of(draw, d, t, n)]
        x = leaf[leaf != atom]
        means.append(x.mean() if x.size else rest.mean())
        square = ((x - x.mean()) ** 2).sum() if x.size else 0.0
        variances.append((square + PRIOR * within) / (x.size + PRIOR))
        at = np.mean(y[known] == atom)
        shares.append((np.sum(leaf == atom) + PRIOR * at) / (leaf.size + PRIOR))
    return (*map(float, (np.mean(means), np.mean(variances), np.var(means), np.mean(shares))),)


def test_laws_are_those_of_the_members_of_leaves_that_have_not_seen_the_cell(
    problem: Problem, draw: ForestDraw
) -> None:
    law = problem.model.cells_law(draw, slice(None))
    for d in range(5):
        y, known, found = draw.donors[d], draw.seen[d] != 0, law.column(d)
        for n in range(0, 90, 7):
            if isinstance(found, Probabilities):
                R = found.p.shape[1]
                whole = (np.bincount(y[known].astype(int), minlength=R) + 1 / R) / (known.sum() + 1)
                leaves = [y[leaf_of(draw, d, t, n)].astype(int) for t in heard(draw, d, n)]
                p = [
                    (np.bincount(x, minlength=R) + PRIOR * whole) / (x.size + PRIOR) for x in leaves
                ]
                np.testing.assert_allclose(found.p[n], np.mean(p, axis=0))
                continue
            own, wide = (part[n] for part in whole_of(found))
            mean, within, between, share = numbers(draw, d, n)
            middle = y[known & (y != draw.kinds.atom[d])].mean()
            mean = middle + draw.trees.slope[d] * (mean - middle)
            assert own[-1] == pytest.approx(mean)
            var = draw.trees.scale[d] * (within + between)
            assert wide[-1] == pytest.approx(max(var, 1e-3))
            if own.size == 2:
                assert ndtr(own[0]) == pytest.approx(np.clip(share, 1e-3, 1 - 1e-3))
                assert wide[0] == pytest.approx(1.0)


def test_slope_and_width_are_those_of_forecasts_of_observed_cells(draw: ForestDraw) -> None:
    """By each cell's trees that have not seen it; of the pool of many draws, cell by cell."""
    y, known = draw.donors[0], np.flatnonzero(draw.seen[0])
    middle = y[known].mean()
    cells = [(y[n] - middle, len(heard(draw, 0, n)), *numbers(draw, 0, n)[:3]) for n in known]
    cells = [(v, k, m - middle, w, b * k / (k - 1)) for v, k, m, w, b in cells]
    prior = np.mean([(v - m) ** 2 for v, _, m, _, _ in cells]) / 0.5**2
    signal = sum(m**2 - one / k for _, k, m, _, one in cells)
    slope = (sum(v * m for v, _, m, _, _ in cells) + prior) / (signal + prior)
    assert 0.0 < slope < 1.25
    assert draw.trees.slope[0] == pytest.approx(slope)
    off, total = 0.0, 0.0
    for v, k, m, within, one in cells:
        off += (v - slope * m) ** 2 - slope**2 * one * (1 / k + 1 / T)
        total += within + one * (1 - 1 / T)
    assert draw.trees.scale[0] == pytest.approx(off / total)


def test_what_a_link_adds_to_a_law_is_taken_off_it(problem: Problem, draw: ForestDraw) -> None:
    noisy = replace(draw, kinds=replace(draw.kinds, noise=np.full(5, 0.002)))
    laws = [problem.model.cells_law(one, slice(None)).column(0) for one in (draw, noisy)]
    var, less = (whole_of(law)[1][:, 0] for law in laws)
    np.testing.assert_allclose(less, np.maximum(var - 0.002, 1e-3))


def test_every_row_is_left_out_of_as_many_trees(draw: ForestDraw) -> None:
    for d in range(5):
        rows = np.flatnonzero(draw.seen[d])
        assert {len(heard(draw, d, n)) for n in rows} == {draw.trees.left_out}


def test_leaves_have_members_enough_and_within_is_their_variance(draw: ForestDraw) -> None:
    trees = draw.trees
    leaf = trees.feature < 0
    assert trees.size[leaf].min() >= 3
    ends = np.append(trees.root[:, 0], trees.feature.size)
    nodes = slice(ends[0], ends[1])
    squares, freedom = 0.0, 0
    for first, n in zip(trees.child[nodes], trees.size[nodes], strict=True):
        x = draw.donors[0][trees.members[first : first + n]]
        squares += ((x - x.mean()) ** 2).sum() if n else 0.0
        freedom += max(n - 1, 0)
    assert trees.within[0] == pytest.approx(squares / freedom)


def test_a_node_asks_the_best_of_all_its_questions_when_there_are_many() -> None:
    """Of one column that says all and three of noise."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((4, 400))
    for how in ("real", "categorical"):
        number = np.sign(x[2]) + 0.1 * rng.standard_normal(400)
        y = number if how == "real" else np.where(x[2] > 0, "a", "b")
        table = pa.table({"y": y, **{f"x{i}": x[i] for i in range(4)}})
        types = {"columns": {"y": how, **{f"x{i}": "real" for i in range(4)}}}
        problem = prepare(table, types, model="forest", settings={"questions": 4, "trees": 60})[0]
        trees = chains.start(problem, 1, 0).keep().latent.trees
        first = trees.feature[trees.root[0]] - 1
        assert np.mean(first == 2) > 0.8, how


def test_a_node_weighs_how_many_go_where() -> None:
    """A tenth of the rows by two units of y, against a half of them by one."""
    rng, n = np.random.default_rng(3), 600
    a, b = rng.random(n) < 0.5, rng.random(n) < 0.1
    y = a + 2.0 * b + 0.1 * rng.standard_normal(n)
    table = pa.table({"y": y, "a": np.where(a, "1", "0"), "b": np.where(b, "1", "0")})
    real = {"type": "real", "transform": "none"}
    types = {"columns": {"y": real, "a": "categorical", "b": "categorical"}}
    trees = chains.start(prepare(table, types, model="forest")[0], 1, 0).keep().latent.trees
    assert (trees.feature[trees.root[0]] == 2).all()


def test_a_node_of_members_that_differ_is_split() -> None:
    """However few of them do, and wherever among them a question begins to look."""
    y = np.random.default_rng(4).standard_normal(60)
    c = np.where(np.arange(60) % 12 == 5, "b", "a")
    problem = prepare(
        pa.table({"c": c, "y": y}),
        {"columns": {"c": "categorical", "y": "real"}},
        model="forest",
        settings={"least": 1, "trees": 60},
    )[0]
    draw = chains.start(problem, 1, 0).keep().latent
    trees = draw.trees
    for node in range(trees.root[1, 0], trees.feature.size):
        first, n = trees.child[node], trees.size[node]
        if trees.feature[node] < 0:
            assert np.unique(draw.z[0][trees.members[first : first + n]]).size == 1


def noise(n: int = 500) -> Problem:
    rng = np.random.default_rng(1)
    columns = {f"x{i}": rng.standard_normal(n) for i in range(6)}
    types = {"columns": {name: {"type": "real", "transform": "none"} for name in columns}}
    settings = {"trees": 6, "questions": 5}
    table = pa.table({k: pa.array(x, mask=rng.random(n) < 0.1) for k, x in columns.items()})
    return prepare(table, types, model="forest", warmup=2, draws=8, chains=1, settings=settings)[0]


def test_a_cell_says_nothing_of_itself() -> None:
    """Of columns that say nothing of each other, no forecast of an observed cell follows it."""
    problem = noise()
    chain = chains.start(problem, 1, 0)
    chain.sweep(adapt=True)
    draws = []
    for _ in range(6):
        chain.sweep(adapt=False)
        draws.append(chain.keep())
    spans = tuple((d, d + 1) for d in range(6))
    posterior = Posterior(problem.model, problem.links, spans, (tuple(draws),))
    following, drawn = [], []
    for folded, hidden in (without_cells(posterior, problem, time) for time in (0, 1)):
        for d, (at, true) in hidden.items():
            drawn += [np.corrcoef(draw.latent.z[d, at], true)[0, 1] for draw in folded.draws()]
            laws = [folded.cells_law(draw, at).column(d) for draw in folded.draws()]
            mean = np.mean([law.moments()[0][:, 0] for law in laws], axis=0)
            following.append(np.corrcoef(mean, true)[0, 1])
    assert abs(np.mean(following)) < 0.1, "with its own trees it is 0.5"
    assert abs(np.mean(drawn)) < 0.08


def test_steps_visit_the_columns_in_turn_and_draws_have_trees_of_their_own() -> None:
    settings = {"visited": 0.2, "together": 1.0}
    problem = prepare(table_of(), TYPES, model="forest", settings=settings)[0]
    chain, kept = chains.start(problem, 3, 0), []
    for step in range(7):
        before = chain.state.z.copy()
        chain.sweep(adapt=False)
        changed = (chain.state.z != before).any(axis=1)
        assert np.flatnonzero(changed).tolist() == [step % 5]
        kept.append(chain.keep().latent)
        np.testing.assert_array_equal(kept[-1].z, chain.state.z)
    assert len({int(one.trees.seed[0]) for one in kept}) == 7


def test_trees_of_a_long_column_see_some_of_its_rows_each_draw_others() -> None:
    settings = {"rows": 40, "trees": 4}
    problem = prepare(table_of(), TYPES, model="forest", settings=settings)[0]
    chain, seen = chains.start(problem, 3, 0), []
    for _ in range(2):
        chain.sweep(adapt=False)
        draw = chain.keep().latent
        ends = np.append(draw.trees.root[:, 0], draw.trees.feature.size)
        for d in range(5):
            nodes = slice(ends[d], ends[d + 1])
            leaves = zip(draw.trees.child[nodes], draw.trees.size[nodes], strict=True)
            rows = np.concatenate([draw.trees.members[first : first + n] for first, n in leaves])
            assert draw.seen[d][rows].all()
            assert np.unique(rows).size == 40
            assert rows.size == 4 * 40 * (4 - 2) / 4
            seen.append(set(rows.tolist()))
    assert all(one != other for one, other in zip(seen[:5], seen[5:], strict=True))


def test_new_rows_are_drawn_until_their_cells_fit_each_other() -> None:
    """Of three columns that are nearly one, two are missing."""
    t = np.random.default_rng(0).standard_normal(300)
    table = pa.table({"x": t, "y": t, "z": t})
    types = {"columns": {name: {"type": "real", "transform": "none"} for name in "xyz"}}
    problem = prepare(table, types, model="forest")[0]
    draw = chains.start(problem, 1, 0).keep().latent
    new = np.full((3, 60), np.nan)
    new[0] = t[:60]
    rng, nobody = np.random.default_rng(1), np.full(60, -1, dtype=np.int32)
    folded = draw.folded(new, nobody, {}, 5, rng).z
    assert np.corrcoef(folded)[np.triu_indices(3, 1)].min() > 0.8


def test_joint_draws_of_one_table_differ_and_keep_what_is_known(
    problem: Problem, draw: ForestDraw
) -> None:
    link, cells = problem.links, {d: np.flatnonzero(np.isnan(x)) for d, x in enumerate(problem.xs)}
    kept = replace(chains.start(problem, 3, 0).keep(), latent=draw)
    posterior = Posterior(problem.model, link, ((0, 1), (1, 3), (3, 4), (4, 5), (5, 7)), ((kept,),))
    rng = np.random.default_rng(0)
    drawn, other = (draw_jointly(posterior, cells, rng, kept) for _ in range(2))
    for d in cells:
        assert np.mean(drawn[d] != other[d]) > 0.1
    again = draw.again(np.arange(draw.own.size), rng)
    np.testing.assert_array_equal(again.z[draw.known != 0], draw.z[draw.known != 0])


@pytest.mark.parametrize("d", range(5))
def test_a_cell_is_drawn_anew_by_its_law(draw: ForestDraw, d: int) -> None:
    """Of rows in which one cell is missing, of numbers, levels and one beside an atom."""
    alone = np.flatnonzero((draw.known[d] == 0) & (draw.known.sum(axis=0) == len(draw.known) - 1))
    law, atom = ForestLaw(draw, alone).column(d), draw.kinds.atom[d]
    rng, n = np.random.default_rng(0), 4000
    z = np.array([draw.again(alone, rng).z[d] for _ in range(n)])
    assert alone.size > 3
    if isinstance(law, Probabilities):
        shares = np.mean(z[:, :, None] == np.arange(law.p.shape[1]), axis=0)
        np.testing.assert_allclose(shares, law.p, atol=0.04)
        return
    there = np.mean(z == atom, axis=0)
    if not np.isnan(atom):
        np.testing.assert_allclose(there, ndtr(whole_of(law)[0][:, 0]), atol=0.04)
    mean, var = (part[:, -1] for part in whole_of(law))
    beside = np.ma.masked_equal(z, atom)
    error = np.sqrt(var / (n * (1.0 - there)))
    assert np.all(np.abs(beside.mean(axis=0) - mean) < 5.0 * error)
    np.testing.assert_allclose(beside.var(axis=0) / var, 1.0, atol=0.35 if there.any() else 0.15)


def test_cells_of_a_row_are_drawn_one_after_the_other() -> None:
    """Two columns that are one, both missing: what is drawn of one, the other sees."""
    t = np.random.default_rng(0).standard_normal(300)
    gone = np.arange(300) < 60
    table = pa.table({"x": t, "y": pa.array(t, mask=gone), "z": pa.array(t, mask=gone)})
    types = {"columns": {name: {"type": "real", "transform": "none"} for name in "yz"}}
    types["columns"]["x"] = "ignore"
    chain = chains.start(prepare(table, types, model="forest")[0], 1, 0)
    for _ in range(5):
        chain.sweep(adapt=True)
    draw, rng = chain.keep().latent, np.random.default_rng(1)
    draw.z[:, :60] = rng.permuted(draw.z[:, 60:120], axis=1)  # the two say nothing of each other
    z = draw.again(np.arange(300), rng).z[:, :60]
    assert np.corrcoef(z)[0, 1] > 0.8


RULES = {"columns": {"a": "categorical", "b": "categorical", "x": "real", "y": "real"}}


def rules(n: int = 500) -> tuple[pa.Table, Array, Array]:
    """y is x where a and b agree, else -x: no sum of columns says anything of it."""
    rng = np.random.default_rng(2)
    a, b = rng.integers(2, size=(2, n))
    x = rng.standard_normal(n)
    y = np.where(a == b, x, -x) + 0.05 * rng.standard_normal(n)
    gone = rng.random(n) < 0.3
    text = {"a": [f"a{i}" for i in a], "b": [f"b{i}" for i in b]}
    return pa.table({**text, "x": x, "y": pa.array(y, mask=gone)}), y, gone


def test_a_rule_is_found() -> None:
    table, y, gone = rules()
    settings = {"questions": 3}
    done = impute(table, RULES, model="forest", chains=2, settings=settings)
    error = np.asarray(done.to_table()["y"])[gone] - y[gone]
    assert np.sqrt(np.mean(error**2)) < 0.35 * y.std()


def test_chains_leave_their_start() -> None:
    """Two columns that are nearly one, each missing in other rows."""
    rng = np.random.default_rng(5)
    t, n = rng.standard_normal(300), 300
    half = np.arange(n) < 150
    columns = {"x": pa.array(t, mask=half & (t > 9)), "y": pa.array(t, mask=half)}
    types = {"columns": {"x": "real", "y": "real"}}
    table = pa.table(columns)
    problem, _, plan = prepare(table, types, model="forest", chains=1, warmup=1, draws=4, thin=1)
    posterior = sample(problem, plan).posterior
    for draw in posterior.draws():
        assert np.corrcoef(draw.latent.z[1][half], draw.latent.z[0][half])[0, 1] > 0.95


def test_what_it_does_not_take_is_an_error() -> None:
    table = pa.table({"h": ["1", "2"], "n": ["3", "4"], "x": [1.0, None]})
    types = {"columns": {"h": {"type": "binomial", "trials": "n"}, "n": "ignore", "x": "real"}}
    with pytest.raises(GlfmError, match='model="forest" takes no binomial columns'):
        impute(table, types, model="forest")
    one, types = table.drop(["h", "n"]), {"columns": {"x": "real"}}
    with pytest.raises(GlfmError, match=r'settings\["left_out"\], found 8, expected a whole'):
        impute(one, types, model="forest", settings={"left_out": 8})
