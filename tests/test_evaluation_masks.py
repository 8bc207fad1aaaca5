"""Hidden cells: how many, which, and never a whole row or column."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from scipy import stats

from glfm_cli.encoding import Data, encode
from glfm_cli.errors import TableError, UsageError
from glfm_cli.evaluation.design import Design
from glfm_cli.evaluation.evaluate import prepare
from glfm_cli.evaluation.masks import (
    MECHANISMS,
    PULL_SD,
    STRENGTH,
    MaskedCells,
    _exposure,
    draw_mask,
)
from glfm_cli.evaluation.split import read_split
from glfm_cli.options import MatrixOptions, Sampling
from glfm_cli.schema import Schema

KINDS = ("real", "positive", "count", "categorical", "ordinal")


def encoded(x: np.ndarray, kinds: list[str] | None = None, **more: Any) -> Data:
    """Return an encoded table with columns c0, c1, ... of some types; NaN is a missing cell."""
    kinds = kinds or ["real"] * x.shape[1]
    names = [f"c{d}" for d in range(x.shape[1])]
    table = pa.table({n: pa.array(x[:, d], from_pandas=True) for d, n in enumerate(names)})
    columns = {n: more.get(n, kind) for n, kind in zip(names, kinds, strict=True)}
    return encode(table, Schema.from_dict({"columns": columns}))


def observed(data: Data) -> np.ndarray:
    return np.column_stack([e.observed for e in data.columns])


@st.composite
def tables(draw: st.DrawFn) -> Data:
    """Small tables of all types with missing cells, a cell observed in every column."""
    n_rows, n_columns = draw(st.integers(2, 12)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    kinds = [draw(st.sampled_from(KINDS)) for _ in range(n_columns)]
    x = rng.integers(0, 4, (n_rows, n_columns)).astype(float)
    x[rng.random(x.shape) < draw(st.sampled_from([0.0, 0.3, 0.7]))] = np.nan
    for d in range(n_columns):
        x[rng.integers(n_rows), d] = 1.0  # positive columns need one above 0
    return encoded(x, kinds)


@given(tables(), st.sampled_from(sorted(MECHANISMS)), st.floats(0.02, 0.98), st.integers(0, 2**31))
def test_masks_hide_as_many_cells_as_asked_and_leave_every_line_one(
    data: Data, mechanism: str, rate: float, seed: int
) -> None:
    try:
        mask = draw_mask(data, mechanism, rate, np.random.default_rng(seed))
    except UsageError:
        return  # that such errors are rare on sensible tables is the next test's business
    seen = observed(data)
    assert not (mask & ~seen).any()
    left = seen & ~mask
    assert (left.any(axis=1) == seen.any(axis=1)).all()
    assert left.any(axis=0).all()
    for d, e in enumerate(data.columns):
        if e.column.type == "positive":
            assert (e.x[left[:, d]] > 0).any()
    if mechanism in ("mcar", "mnar"):
        assert mask.sum() == round(rate * seen.sum())
    again = draw_mask(data, mechanism, rate, np.random.default_rng(seed))
    np.testing.assert_array_equal(mask, again)


@pytest.mark.parametrize("mechanism", sorted(MECHANISMS))
@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_every_mechanism_reaches_its_rate_on_an_ordinary_table(
    mechanism: str, rate: float, seed: int
) -> None:
    data = ordinary(seed)
    mask = draw_mask(data, mechanism, rate, np.random.default_rng(seed))
    can_be_hidden = observed(data)
    if mechanism in ("observed", "stretches"):
        can_be_hidden[:, 3:] = False
    if mechanism == "mar":
        can_be_hidden &= mask.any(axis=0)
        assert mask.any(axis=0).sum() == 4
    assert mask.sum() == round(rate * can_be_hidden.sum())


def ordinary(seed: int, n_rows: int = 400) -> Data:
    """Six related columns, gaps in three of them that come and go together."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n_rows, 6)) + 2.0 * rng.standard_normal((n_rows, 1))
    x[rng.random(n_rows) < 0.3, :2] = np.nan
    x[rng.random(n_rows) < 0.1, 2] = np.nan
    return encoded(x)


def test_cells_hidden_completely_at_random_are_no_special_cells(seed: int) -> None:
    data = ordinary(seed)
    counts = np.zeros((400, 6))
    for repeat in range(200):
        counts += draw_mask(data, "mcar", 0.3, np.random.default_rng([seed, repeat]))
    seen = observed(data)
    rate = counts[seen] / 200
    # Binomial counts: mean 0.3, variance 0.3 * 0.7 / 200; the total of each mask is fixed.
    assert abs(rate.mean() - 0.3) < 0.001
    assert rate.var() == pytest.approx(0.3 * 0.7 / 200, rel=0.15)
    assert stats.kruskal(*(counts[seen[:, d], d] for d in range(6))).pvalue > 1e-4


def test_values_that_decide_are_hidden_more_often(seed: int) -> None:
    data = ordinary(seed)
    x = MaskedCells.of(data).x
    mask = draw_mask(data, "mnar", 0.3, np.random.default_rng(seed))
    for d in range(6):
        seen = ~np.isnan(x[:, d])
        hidden, kept = x[seen & mask[:, d], d], x[seen & ~mask[:, d], d]
        assert stats.mannwhitneyu(hidden, kept, alternative="greater").pvalue < 1e-4


def test_masks_at_random_depend_on_columns_that_stay(seed: int) -> None:
    data = ordinary(seed)
    x = MaskedCells.of(data).x
    mask = draw_mask(data, "mar", 0.3, np.random.default_rng(seed))
    drivers = np.flatnonzero(~mask.any(axis=0))
    assert drivers.size == 2
    for d in np.flatnonzero(mask.any(axis=0)):
        score = np.nan_to_num(x[:, drivers]).sum(axis=1)
        seen = ~np.isnan(x[:, d])
        assert stats.mannwhitneyu(score[seen & mask[:, d]], score[seen & ~mask[:, d]]).pvalue < 1e-4


def test_imitated_gaps_come_together_as_the_table_s_own_do(seed: int) -> None:
    data = ordinary(seed)
    mask = draw_mask(data, "observed", 0.2, np.random.default_rng(seed))
    both = observed(data)[:, :2].all(axis=1)
    hidden = mask[both, :2]
    # c0 and c1 are missing in the same rows, so they are hidden in the same rows, but for the last.
    assert (hidden[:, 0] != hidden[:, 1]).sum() <= 1
    assert not mask[:, 3:].any()
    assert mask[:, 2].any()


def monitored(seed: int, order: np.ndarray | None = None) -> Data:
    """Sixty days at each of ten stations; two sensors fail together for twelve days, one alone."""
    rng = np.random.default_rng(seed)
    x = np.column_stack([rng.standard_normal((600, 3)), np.repeat(np.arange(10), 60)])
    x = np.column_stack([x, np.tile(np.arange(60.0), 10)])
    for start in (10, 130, 305, 588):
        x[start : start + 12, :2] = np.nan
    x[[50, 222, 400], 2] = np.nan
    groups = {"c3": {"role": "group"}, "c4": {"type": "real", "role": "time"}}
    return encoded(x if order is None else x[order], **groups)


def test_stretches_are_as_long_as_the_table_s_own_and_of_the_same_columns(seed: int) -> None:
    data = monitored(seed)
    seen, mask = observed(data), draw_mask(data, "stretches", 0.3, np.random.default_rng(seed))
    gone = (mask | ~seen).reshape(10, 60, -1)
    starts = np.diff(gone[..., 0], axis=1, prepend=False) & gone[..., 0]
    assert mask[:, 0].sum() > 150
    # Most stretches have twelve rows; those that meet are longer, those at an end or cut off less.
    assert 8 < gone[..., 0].sum() / starts.sum() < 30
    # Sensors that fail together are hidden together, also where few stretches are.
    few = draw_mask(data, "stretches", 0.03, np.random.default_rng(seed))
    for one in (mask, few):
        assert (one[:, 0] != one[:, 1]).sum() <= 1
    # Each is hidden as a whole before the next.
    assert few[:, 0].sum() > 20
    assert (few[1:, 0] & ~few[:-1, 0]).sum() <= 8
    assert not mask[:, 3:].any()
    # The single cells of the third column stay single, but for those that meet.
    assert mask[:, 2].sum() < 0.3 * mask[:, 0].sum()


def test_stretches_follow_time_within_groups_not_the_table_s_order(seed: int) -> None:
    rng = np.random.default_rng
    order = np.concatenate([60 * g + rng(g).permutation(60) for g in range(10)])
    mask = draw_mask(monitored(seed), "stretches", 0.2, rng(seed))
    shuffled = draw_mask(monitored(seed, order), "stretches", 0.2, rng(seed))
    np.testing.assert_array_equal(shuffled, mask[order])


@pytest.mark.parametrize(
    ("mechanism", "columns", "rate", "match"),
    [
        ("mcar", 1, 0.5, r"rate of 0\.5 cannot be reached: at most 0 %"),
        ("mcar", 2, 0.6, r"rate of 0\.6 cannot be reached: at most 50 %"),
        ("mar", 1, 0.5, "at least two modelled columns"),
        ("observed", 3, 0.5, "the table has none"),
        ("stretches", 3, 0.5, "imitates the table's gaps"),
        ("mcar", 3, 0.001, "hides no cell"),
    ],
)
def test_a_mask_that_cannot_be_drawn_is_an_error(
    mechanism: str, columns: int, rate: float, match: str
) -> None:
    data = encoded(np.random.default_rng(0).standard_normal((20, columns)))
    with pytest.raises(UsageError, match=match):
        draw_mask(data, mechanism, rate, np.random.default_rng(0))


def test_predictors_are_never_hidden() -> None:
    x = np.random.default_rng(0).standard_normal((30, 3))
    data = encoded(x, c1={"type": "real", "role": "predictor"})
    for mechanism in ("mcar", "mnar"):
        assert not draw_mask(data, mechanism, 0.5, np.random.default_rng(0))[:, 1].any()


# One seed, whatever the methods ---------------------------------------------------------------


def bench(methods: list[str], seed: int = 3, rates: tuple[float, ...] = (0.2, 0.4)) -> Any:
    x = np.random.default_rng(0).standard_normal((30, 4))
    table = pa.table({f"c{d}": x[:, d] for d in range(4)})
    design = Design(methods, rates=rates, repeats=2, jobs=1)
    schema = Schema.from_dict({"rest": "real"})
    sampling = Sampling(seed=seed, threads=1)
    return prepare(table, schema, sampling, MatrixOptions(), design).bench


def test_masks_depend_on_seed_rate_and_repeat_alone() -> None:
    def hidden(bench: Any, repeat: int) -> list[list[bool]]:
        columns = bench.task(0.4, repeat, seed=0, threads=1).data.columns
        return [column.observed.tolist() for column in columns]

    one, other = bench(["mean"]), bench(["draw", "mean"], rates=(0.4,))
    assert hidden(one, 1) == hidden(other, 1)
    assert hidden(one, 1) != hidden(one, 0)
    assert hidden(one, 1) != hidden(bench(["mean"], seed=4), 1)


# A split column -------------------------------------------------------------------------------


def split_of(words: list[str], **roles: str) -> Any:
    x = np.arange(1.0, len(words) + 1)
    table = pa.table({"a": x, "b": x, "part": words})
    columns = {name: {"type": "real", "role": roles.get(name, "feature")} for name in "ab"}
    schema = Schema.from_dict({"columns": {**columns, "part": "split"}})
    return read_split(table, schema, encode(table, schema), None)


def test_a_split_names_cells() -> None:
    split = split_of(["", "a", "train", " b ;", "0"])
    assert split.rows is None
    assert split.cells.tolist() == [
        [False, False], [True, False], [False, False], [False, True], [False, False]
    ]  # fmt: skip


def test_a_split_of_rows_hides_the_target() -> None:
    split = split_of(["train", "Test", "1", "false"], b="target")
    assert split.cells.tolist() == [[False, False], [False, True], [False, True], [False, False]]


def test_a_split_of_rows_without_a_target_limits_the_mask() -> None:
    split = split_of(["train", "test", "test", "train"])
    assert split.cells is None
    assert split.rows.tolist() == [False, True, True, False]
    data = encoded(np.random.default_rng(0).standard_normal((4, 2)))
    mask = draw_mask(data, "mcar", 0.5, np.random.default_rng(0), within=split.rows)
    assert mask.any(axis=1).tolist() == split.rows.tolist()


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (["train", "fold 3"], "found 'fold 3', expected train, test, or names"),
        (["train", "train"], "marks no observed cell"),
        (["a;b", "train"], r"row 1: the split hides all observed cells"),
        (["a", "a"], "column 'a': the split leaves no cell"),
        (["test", "a"], "marks whole rows as test and names cells"),
    ],
)
def test_a_split_that_cannot_be_used_is_an_error(words: list[str], match: str) -> None:
    with pytest.raises((UsageError, TableError), match=match):
        split_of(words)


def test_logs_of_the_chances_of_levels_have_their_sd() -> None:
    """A level's cells share a pull, times the strength in the key's logarithm; no cell, no pull."""
    x = np.append(np.arange(400.0).repeat(2), np.nan)[:, None]
    one = np.ones(x.shape, bool)
    cells = MaskedCells(x, ~one, one, np.array([True]), np.arange(len(x)))
    score = _exposure(cells, 0, np.random.default_rng(0))
    assert score[-1] == 0.0
    np.testing.assert_array_equal(score[:-1:2], score[1:-1:2])
    assert np.std(STRENGTH * score[:-1]) == pytest.approx(PULL_SD, rel=0.12)
