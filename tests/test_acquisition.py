"""The choice of cells to ask for: greedy, against brute force; costs; which cells there are."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glfm_cli import GlfmError, Schema, impute, suggest
from glfm_cli.acquisition import greedy, variance
from glfm_cli.acquisition.cells import TableCells, gains_alone
from glfm_cli.acquisition.greedy import Group, Selection, choose, gains, in_order
from glfm_cli.acquisition.variance import choose_by_variance, lowering
from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.inference.sampling import sample
from glfm_cli.links import NormalMixture

FEW = {"chains": 2, "warmup": 5, "draws": 8, "threads": 1}


class Cells:
    """Random cells of one or two latent columns, and brute force for what a set of them tells."""

    def __init__(self, seed: int, n: int = 7, n_draws: int = 5) -> None:
        rng = np.random.default_rng(seed)
        width = rng.integers(1, 3, size=n)
        self.n = n
        self.F = [rng.normal(size=(w, n_draws)) * rng.gamma(1.0) for w in width]
        self.width = width
        self.most = np.full(n, np.inf)

    def features(self, index: Array) -> list[Group]:
        found = []
        for w in (1, 2):
            of = np.array([c for c in index if self.width[c] == w], dtype=np.int64)
            if of.size:
                found.append(Group(of, np.array([self.F[c] for c in of])))
        return found

    def gain(self, chosen: tuple[int, ...]) -> float:
        F = np.concatenate([self.F[c] for c in chosen])
        return 0.5 * float(np.linalg.slogdet(np.eye(F.shape[0]) + F @ F.T)[1])

    def added(self, chosen: tuple[int, ...], c: int) -> float:
        before = self.gain(chosen) if chosen else 0.0
        return min(self.gain((*chosen, c)) - before, self.most[c])

    def greedily(self, cost: Array, count: int) -> list[int]:
        chosen: tuple[int, ...] = ()
        for _ in range(count):
            left = [c for c in range(self.n) if c not in chosen]
            best = max(left, key=lambda c: self.added(chosen, c) / cost[c])
            chosen = (*chosen, best)
        return list(chosen)


@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_each_step_takes_what_brute_force_takes(seed: int, with_cost: bool, bounded: bool) -> None:
    cells = Cells(seed)
    cost = np.random.default_rng(seed).gamma(2.0, size=cells.n) if with_cost else np.ones(cells.n)
    if bounded:
        cells.most[:3] = np.log([2, 2.5, 3])
    alone = gains(cells.features(np.arange(cells.n)), cells.most)
    np.testing.assert_allclose(alone, [cells.added((), c) for c in range(cells.n)])
    found = choose(cells.features, alone, cells.most, cost, 4)
    chosen = found.index.tolist()
    assert chosen == cells.greedily(cost, 4)
    added = [cells.added(tuple(chosen[:i]), c) for i, c in enumerate(chosen)]
    np.testing.assert_allclose(found.gain, added, atol=1e-9)
    assert np.all(found.gain <= alone[found.index] + 1e-9)


@given(st.integers(0, 2**32 - 1))
def test_the_greedy_set_is_nearly_as_good_as_the_best(seed: int) -> None:
    cells = Cells(seed)
    alone = gains(cells.features(np.arange(cells.n)), cells.most)
    found = choose(cells.features, alone, cells.most, np.ones(cells.n), 3)
    best = max(cells.gain(chosen) for chosen in combinations(range(cells.n), 3))
    assert found.gain.sum() >= (1 - 1 / np.e) * best


@given(st.integers(0, 2**32 - 1))
def test_looking_at_few_cells_first_changes_nothing(seed: int) -> None:
    cells = Cells(seed, n=30)
    alone = gains(cells.features(np.arange(cells.n)), cells.most)
    cost = np.random.default_rng(seed).choice([3.0, 4.0, 9.0], cells.n)
    whole = choose(cells.features, alone, cells.most, cost, 6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(greedy, "FIRST", 1)
        patch.setattr(greedy, "FACTOR", 1)
        few = choose(cells.features, alone, cells.most, cost, 6)
    assert few.index.tolist() == whole.index.tolist()
    np.testing.assert_allclose(few.gain, whole.gain)


def test_gains_in_a_given_order_add_up(seed: int) -> None:
    cells = Cells(seed)
    order = np.array([4, 0, 6])
    found = in_order(cells.features, order, cells.most)
    assert found.gain.sum() == pytest.approx(cells.gain((4, 0, 6)))
    assert found.gain[0] == pytest.approx(cells.gain((4,)))


def test_a_copy_of_a_chosen_cell_comes_later_than_under_plain_uncertainty(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = np.linalg.qr(rng.normal(size=(50, 2)))[0].T
    F = np.array([3.0 * a, 2.9 * a, 2.0 * b])[:, None, :]

    def features(index: Array) -> list[Group]:
        return [Group(index, F[index])]

    most = np.full(3, np.inf)
    alone = gains(features(np.arange(3)), most)
    assert np.argsort(-alone).tolist() == [0, 1, 2]
    assert choose(features, alone, most, np.ones(3), 3).index.tolist() == [0, 2, 1]


# What a value lowers -------------------------------------------------------------------------


def conditioned(cov: Array, seen: Array) -> Array:
    """Return the covariance of all latent columns given some seen with noise 1."""
    cross = cov[:, seen]
    return cov - cross @ np.linalg.inv(np.eye(seen.size) + cov[np.ix_(seen, seen)]) @ cross.T


class Open(Cells):
    """Random cells in a few rows, and brute force for what the value of one lowers."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, n=9, n_draws=40)
        self.rows = np.random.default_rng(seed).integers(0, 3, size=self.n)
        self.owner = np.repeat(np.arange(self.n), self.width)
        self.draws = np.concatenate(self.F)
        self.times = 1.0 + np.arange(self.n) % 2  # cells that each stands for

    def lowered(self, cov: Array, first: Array, c: int) -> float:
        own = np.flatnonzero(self.owner == c)
        fall = np.diag(cov) - np.diag(conditioned(cov, own))
        known = np.linalg.inv(np.eye(own.size) + cov[np.ix_(own, own)]) @ cov[np.ix_(own, own)]
        chance = np.diag(cov) * np.trace(known) / self.draws.shape[1]
        fall = np.where(self.owner == c, fall, fall - chance)
        fall = np.where(self.rows[self.owner] == self.rows[c], fall, 0.0)
        share = (self.times / self.width)[self.owner]
        return float(np.sum(fall * share / (1.0 + np.diag(first))))

    def choice(self, count: int, cost: Array | None = None) -> tuple[Selection, Array]:
        every = self.features(np.arange(self.n))
        cost = np.ones(self.n) if cost is None else cost
        return lowering(every, (self.rows,), self.most, cost, count, self.times)


@given(st.integers(0, 2**32 - 1))
def test_what_a_value_lowers_is_what_conditioning_says(seed: int) -> None:
    cells = Open(seed)
    cov = first = cells.draws @ cells.draws.T
    found, alone = cells.choice(3)
    np.testing.assert_allclose(alone, [cells.lowered(cov, first, c) for c in range(cells.n)])
    for c, gain in zip(found.index, found.gain, strict=True):
        assert gain == pytest.approx(cells.lowered(cov, first, c))
        own = np.flatnonzero(cells.owner == c)
        near = cells.rows[cells.owner] == cells.rows[c]
        after = conditioned(cov, own)
        # Draws of cells of other rows stay, so covariances with these are not asked about.
        cov = np.where(np.outer(near, near), after, np.where(np.outer(~near, ~near), cov, 0.0))
    assert found.index[0] == np.argmax(alone)
    assert len(set(found.index.tolist())) == 3


def test_levels_settle_no_more_than_they_can_tell(seed: int) -> None:
    cells = Open(seed)
    c = int(np.argmax(cells.width == 1))
    variance = float(cells.F[c][0] @ cells.F[c][0])
    _, free = cells.choice(1)
    cells.most[c] = 0.25 * np.log1p(variance)  # half of what a number tells
    _, bounded = cells.choice(1)
    share = (1.0 - (1.0 + variance) ** -0.5) / (1.0 - 1.0 / (1.0 + variance))
    assert bounded[c] == pytest.approx(share * free[c])
    others = np.arange(cells.n) != c
    np.testing.assert_allclose(bounded[others], free[others])


def test_a_row_with_many_open_cells_is_asked_first_and_not_twice_for_the_same(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = np.linalg.qr(rng.normal(size=(200, 2)))[0].T
    F = np.array([a, b, b, b])[:, None, :]
    rows, ones = np.array([0, 1, 1, 1]), np.ones(4)
    most = np.full(4, np.inf)
    found, _ = lowering([Group(np.arange(4), F)], (rows,), most, ones, 2, ones)
    assert found.index[0] in (1, 2, 3)
    assert found.gain[1] < 0.5 * found.gain[0]
    dear = np.where(rows == 1, 10.0, 1.0)
    found, _ = lowering([Group(np.arange(4), F)], (rows,), most, dear, 1, ones)
    assert found.index.tolist() == [0]


@given(st.integers(0, 2**32 - 1))
def test_cells_that_share_no_row_come_by_what_they_lower_for_their_cost(seed: int) -> None:
    cells = Open(seed)
    cells.rows = np.arange(cells.n)
    cost = np.random.default_rng(seed).gamma(2.0, size=cells.n)
    found, alone = cells.choice(5, cost)
    assert found.index.tolist() == np.argsort(-alone / cost)[:5].tolist()
    np.testing.assert_allclose(found.gain, alone[found.index])


def test_a_level_that_tells_little_leaves_more_to_its_copies(seed: int) -> None:
    f = np.random.default_rng(seed).normal(size=200) / 10
    copies, ones = Group(np.arange(2), np.array([f, f])[:, None, :]), np.ones(2)
    left = []
    for nats in (0.05, np.inf):
        found, _ = lowering([copies], (np.zeros(2),), np.full(2, nats), ones, 2, ones)
        left.append(found.gain[1] / found.gain[0])
    assert left[0] > 0.7
    assert left[1] < 0.4


def test_a_part_of_many_neighbours_stands_for_all(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(60, 1, 400)) / 20 + rng.normal(size=400) / 20
    one_row, most, ones = (np.zeros(60, dtype=np.int64),), np.full(60, np.inf), np.ones(60)
    _, whole = lowering([Group(np.arange(60), F)], one_row, most, ones, 1, ones)
    monkeypatch.setattr(variance, "MOST_NEIGHBOURS", 20)
    _, part = lowering([Group(np.arange(60), F)], one_row, most, ones, 1, ones)
    assert part.mean() == pytest.approx(whole.mean(), rel=0.1)
    monkeypatch.setattr(variance, "MOST_NEIGHBOURS", 256)
    monkeypatch.setattr(variance, "MOST_CELLS", 20)
    _, some = choose_by_variance(
        lambda index: [Group(index, F[index])], one_row, ones, most, ones, 1
    )
    assert some[some > 0].size == 40
    assert some[some > 0].mean() == pytest.approx(whole.mean(), rel=0.1)


def test_pairs_to_choose_from_may_come_with_a_saved_fit(seed: int, tmp_path: Path) -> None:
    table, folder = ratings(seed), tmp_path / "fit.glfm"
    impute(table, RATINGS, save=folder, **FEW)
    first = suggest(folder, count=3).cells.select(["u", "i"])
    assert suggest(folder, pairs=first.slice(1), count=3).n_candidates == 2


# Tables --------------------------------------------------------------------------------------

TYPES = Schema.from_dict(
    {
        "columns": {
            "id": "id",
            "a": "real",
            "b": {"type": "ordinal", "levels": ["1", "2", "3"]},
            "c": {"type": "categorical", "levels": ["x", "y", "z"]},
        }
    }
)


def mixed(seed: int, n: int = 25) -> pa.Table:
    """Return a table with missing cells in every column."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=n)
    gap = rng.random((n, 3)) < 0.25
    b = np.digitize(u, [-0.5, 0.5]) + 1
    return pa.table(
        {
            "id": [f"r{i}" for i in range(n)],
            "a": [None if g else float(v) for v, g in zip(u, gap[:, 0], strict=True)],
            "b": [None if g else str(v) for v, g in zip(b, gap[:, 1], strict=True)],
            "c": [None if g else "xyz"[v - 1] for v, g in zip(b, gap[:, 2], strict=True)],
        }
    )


@pytest.mark.parametrize("model", ["glfm", "bsvd"])
def test_draws_of_cells_are_those_of_their_means_in_units_of_noise(model: str, seed: int) -> None:
    table = mixed(seed)
    options = {"model": model, "chains": 2, "warmup": 3, "draws": 6}
    problem, data, plan = prepare(table, TYPES, **options)
    posterior = sample(problem, plan).posterior
    cells = TableCells.of(data, table.select(["id"]), None)
    assert cells.size == sum(table[name].null_count for name in "abc")
    draws = list(posterior.draws())
    laws = [posterior.cells_law(draw, slice(None)) for draw in draws]
    noise = np.mean([posterior.model.noise(draw.latent) for draw in draws], axis=0)
    for group in cells.features(posterior, np.arange(cells.size)):
        for c, F in zip(group.index, group.F, strict=True):
            d = cells.column[c]
            own = np.array([law.column(d).means[cells.row[c], 0] for law in laws])
            cov = np.atleast_2d(np.cov(own.T)) / noise[d]
            np.testing.assert_allclose(F @ F.T, cov, atol=1e-10)
    every = np.arange(cells.size)
    alone, most = gains_alone(cells, posterior)
    np.testing.assert_allclose(alone, gains(cells.features(posterior, every), most))
    number = cells.column == 0
    assert np.all(np.isinf(most[number]))
    assert np.all(most[~number] <= np.log(3) + 1e-12)
    assert np.all(alone <= most)


@pytest.mark.parametrize("model", ["glfm", "bsvd"])
def test_suggested_cells_are_gaps_of_the_columns_asked_for(model: str, seed: int) -> None:
    table = mixed(seed)
    found = suggest(table, TYPES, model=model, count=4, columns=["a", "c"], **FEW)
    rows = found.to_table().to_pylist()
    assert [row["number"] for row in rows] == [1, 2, 3, 4]
    assert all(table[row["column"]][row["row"] - 1].as_py() is None for row in rows)
    assert {row["column"] for row in rows} <= {"a", "c"}
    assert all(row["id"] == f"r{row['row'] - 1}" for row in rows)
    gain, alone = (np.array([row[name] for row in rows]) for name in ("gain", "alone"))
    assert np.all(gain <= alone + 1e-9)
    assert np.all(np.diff(gain) <= 1e-9)


@pytest.mark.parametrize("rule", ["variance", "joint", "uncertainty"])
@pytest.mark.parametrize("others", [{}, {"b": [1.0, 2.0, None, 3.0]}])
def test_a_column_of_one_level_tells_nothing(rule: str, others: dict[str, Any]) -> None:
    table = pa.table({"a": ["x", None, "x", "x"], **others})
    types = {"columns": {"a": "categorical", **dict.fromkeys(others, "real")}}
    last = suggest(table, types, model="glfm", rule=rule, **FEW).to_table().to_pylist()[-1]
    assert (last["row"], last["column"]) == (2, "a")
    assert (str(last["gain"]), str(last["alone"])) == ("0.0", "0.0")


def test_a_law_of_rows_and_weights_is_asked_by_samples_of_both(seed: int) -> None:
    table = mixed(seed, n=40)
    few = {"iterations": 20, "inducing": 10, "dimensions": 1}
    ask = partial(suggest, table, TYPES, model="clgp", count=8, chains=2, settings=few)
    rows = ask().to_table().to_pylist()
    assert all(table[row["column"]][row["row"] - 1].as_py() is None for row in rows)
    assert [row["gain"] for row in rows] == [row["gain"] for row in ask().to_table().to_pylist()]
    problem, data, plan = prepare(table, TYPES, model="clgp", chains=1, settings=few)
    posterior = sample(problem, plan).posterior
    cells = TableCells.of(data, table.select(["id"]), ["a"])
    (group,) = cells.features(posterior, np.arange(cells.size))
    draw = posterior.chains[0][0].latent
    sd = np.linalg.norm(group.F[:, 0], axis=1) * np.sqrt(draw.noise[0])
    assert np.all(sd < 2.0)
    x = np.random.default_rng(seed).normal(size=(4000, 1)) * draw.spread[0]
    of_row = draw.moments_at(draw.m[:1] + x)[0][:, 0].std()
    first = TableCells(np.array([0]), np.array([0]), table.select(["id"]), ("a", "b", "c"))
    (one,) = first.features(posterior, np.arange(1))
    assert np.linalg.norm(one.F) * np.sqrt(draw.noise[0]) > 0.8 * of_row


def test_uncertainty_ranks_by_what_each_cell_tells_alone(seed: int) -> None:
    found = suggest(mixed(seed), TYPES, model="bsvd", count=6, rule="uncertainty", **FEW)
    alone = found.to_table()["alone"].to_numpy()
    assert np.all(np.diff(alone) <= 0)
    joint = suggest(mixed(seed), TYPES, model="bsvd", count=6, rule="joint", **FEW)
    assert joint.to_dict()["gain"] >= found.to_dict()["gain"] - 1e-9


def test_a_saved_fit_suggests_the_same_as_its_table(seed: int, tmp_path: object) -> None:
    table, folder = mixed(seed), tmp_path / "fit.glfm"
    impute(table, TYPES, model="bsvd", save=folder, **FEW)
    kept = suggest(folder, count=5).to_table()
    fresh = suggest(table, TYPES, model="bsvd", count=5, **FEW).to_table()
    assert kept.equals(fresh.select(kept.column_names))


@pytest.mark.parametrize(("draws", "rule", "warned"), [(3, "joint", True), (4, "joint", False),
                                                       (3, "uncertainty", False)])  # fmt: skip
def test_a_batch_of_as_many_cells_as_draws_is_warned_of(
    draws: int, rule: str, warned: bool, seed: int
) -> None:
    found = suggest(mixed(seed), TYPES, count=6, rule=rule, **{**FEW, "draws": draws})
    text = "6 draws can tell 5 cells apart, but 6 are to be chosen"
    assert any(note.startswith(text) for note in found.notes) == warned


def test_dear_columns_come_last(seed: int) -> None:
    cost = pa.table({"column": ["a", "b", "c"], "cost": [1.0, 1e6, 1e6]})
    table = mixed(seed)
    n = table["a"].null_count
    found = suggest(table, TYPES, count=n + 1, cost=cost, **FEW).to_table()
    assert found["column"].to_pylist()[:n] == ["a"] * n
    assert found["cost"].to_pylist() == [1.0] * n + [1e6]


def test_the_choice_does_not_depend_on_threads(seed: int) -> None:
    table = mixed(seed)
    one, two = (
        suggest(table, TYPES, model="bsvd", **{**FEW, "threads": n}).to_table() for n in (1, 2)
    )
    assert one.equals(two)


# Matrices ------------------------------------------------------------------------------------

RATINGS = Schema.from_dict(
    {"columns": {"u": "row", "i": "column", "r": {"type": "real", "role": "value"}}}
)


def ratings(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2)) @ rng.normal(size=(2, 9))
    row, column = np.nonzero(rng.random(X.shape) < 0.5)
    return pa.table({"u": [f"u{i}" for i in row], "i": column, "r": X[row, column]})


def test_suggested_pairs_are_unobserved_and_least_known_first(seed: int) -> None:
    table = ratings(seed)
    lonely = pa.table({"u": ["new"], "i": [0], "r": pa.array([None], pa.float64())})
    found = suggest(pa.concat_tables([table, lonely]), RATINGS, count=5, **FEW)
    seen = set(zip(table["u"].to_pylist(), table["i"].to_pylist(), strict=True))
    pairs = list(zip(found.cells["u"].to_pylist(), found.cells["i"].to_pylist(), strict=True))
    assert len(set(pairs)) == 5
    assert not seen & set(pairs)
    assert "new" in {u for u, _ in pairs}


def test_listed_pairs_are_those_to_choose_from(seed: int) -> None:
    table = ratings(seed)
    seen = set(zip(table["u"].to_pylist(), table["i"].to_pylist(), strict=True))
    known = sorted({u for u, _ in seen})
    free = [(u, i) for u in known for i in range(9) if (u, i) not in seen and i in
            set(table["i"].to_pylist())][:4]  # fmt: skip
    pool = pa.table({"u": [u for u, _ in free], "i": [i for _, i in free]})
    found = suggest(table, RATINGS, count=9, pairs=pool, **FEW)
    assert found.n_candidates == 4
    assert len(found.notes) == 1
    assert set(zip(found.cells["u"].to_pylist(), found.cells["i"].to_pylist(), strict=True)) == set(
        free
    )


@pytest.mark.parametrize(
    ("cost", "error"),
    [
        ({"u": ["u0"], "price": [1]}, "column 'cost': the table has no such column"),
        ({"x": ["u0"], "cost": [1]}, "column 'u': the table has no such column, expected column"),
        ({"u": ["u0"], "cost": [0.0]}, "column 'cost', row 1: found 0.0, expected a cost above 0"),
        ({"u": ["u0"], "cost": [1.0]}, "has no cost for u '"),
        ({"u": ["u0", "u0"], "cost": [1, 2]}, "row 2: this cost is given twice"),
        ({"u": ["zz"], "cost": [1]}, "column 'u', row 1: found 'zz', expected an id of the"),
    ],
)
def test_wrong_costs_of_pairs_are_refused(cost: dict, error: str, seed: int) -> None:
    with pytest.raises(GlfmError) as found:
        suggest(ratings(seed), RATINGS, cost=pa.table(cost), **FEW)
    assert error in str(found.value)


def test_costs_are_by_row_by_column_or_by_pair(seed: int) -> None:
    table = ratings(seed)
    users = sorted(set(table["u"].to_pylist()))
    cheap = users[0]
    by_row = pa.table({"u": users, "cost": [1e-6 if u == cheap else 1.0 for u in users]})
    found = suggest(table, RATINGS, count=1, cost=by_row, **FEW)
    assert found.cells["u"].to_pylist() == [cheap]
    items = sorted(set(table["i"].to_pylist()))
    both = pa.table(
        {
            "u": [u for u in users for _ in items],
            "i": [i for _ in users for i in items],
            "cost": [float(1 + i) if u == cheap else 1e6 for u in users for i in items],
        }
    )
    found = suggest(table, RATINGS, count=2, cost=both, **FEW)
    assert found.cells["u"].to_pylist() == [cheap, cheap]
    assert found.cells["cost"].to_pylist() == [1.0 + i for i in found.cells["i"].to_pylist()]


def test_a_pair_with_a_value_is_refused(seed: int) -> None:
    table = ratings(seed)
    with pytest.raises(GlfmError, match="row 1: this pair has a value already"):
        suggest(table, RATINGS, pairs=table.slice(0, 2), **FEW)


def test_a_complete_table_has_nothing_to_choose_from() -> None:
    table = pa.table({"a": [1.0, 2.0, 3.5], "b": [2.0, 1.0, 0.5]})
    types = {"columns": {"a": "real", "b": "real"}}
    with pytest.raises(GlfmError, match="has no missing cell to choose from"):
        suggest(table, types, **FEW)


def test_law_of_eta_with_several_components_counts_by_its_mean(seed: int) -> None:
    table = mixed(seed)
    problem, data, plan = prepare(table, TYPES, chains=1, warmup=2, draws=4)
    posterior = sample(problem, plan).posterior
    cells = TableCells.of(data, table.select(["id"]), None)
    plain = cells.features(posterior, np.arange(5))

    class Twice:
        """A model whose law of eta has two components of equal weight, apart by 2."""

        @staticmethod
        def cells_law(draw: Any, rows: Array) -> Any:
            of_rows = posterior.model.cells_law(draw, rows)

            def column(d: int, at: Any) -> NormalMixture:
                law = of_rows.column(d, at)
                both = np.concatenate([law.means - 1.0, law.means + 1.0], axis=1)
                return law._replace(weights=np.full((1, 2), 0.5), means=both)

            return SimpleNamespace(column=column)

    doubled = cells.features(replace(posterior, model=Twice()), np.arange(5))
    for one, other in zip(plain, doubled, strict=True):
        np.testing.assert_allclose(one.F, other.F, atol=1e-12)


@pytest.mark.parametrize("rule", ["variance", "joint", "uncertainty"])
def test_of_several_models_the_one_that_counts_most_suggests(rule: str, seed: int) -> None:
    """Their latent numbers, of which levels have one more under trees, are not pooled."""
    few = {**FEW, "chains": 5, "model": "auto", "settings": {"glfm": 2, "forest": 3, "linear": 0}}
    found = suggest(mixed(seed), TYPES, count=6, rule=rule, **few)
    posterior = found.posterior
    assert len(set(posterior.groups)) == 2
    heaviest = max(set(posterior.groups), key=posterior.weight_of)
    own = posterior.of_heaviest
    assert set(own.groups) == {heaviest}
    assert own.n_draws < posterior.n_draws
    assert found.cells.num_rows == 6
    assert all(gain > 0.0 for gain in found.cells["gain"].to_pylist())


def test_ids_may_be_called_as_what_is_predicted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    code = rng.choice(60, 40, replace=False)
    rows, columns = [f"r{c // 10}" for c in code], [f"c{c % 10}" for c in code]
    table = pa.table({"mean": rows, "sd": columns, "v": rng.normal(size=40)})
    types = {"columns": {"mean": "row", "sd": "column", "v": {"role": "value", "type": "real"}}}
    short: dict[str, Any] = {"chains": 1, "warmup": 2, "draws": 4}
    found = suggest(table, types, count=2, **short)
    assert found.cells.column_names == ["number", "mean", "sd", "gain", "alone"]
    with pytest.raises(GlfmError, match="'mean': the predictions have a column of this name"):
        impute(table, types, **short)
