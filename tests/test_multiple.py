"""Several completed versions of a table: which draws they are made of, and what is stacked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glfm_cli import impute, write_table
from glfm_cli.completion.files import Files
from glfm_cli.completion.impute import plan_imputation
from glfm_cli.completion.multiple import spread
from glfm_cli.errors import UsageError
from glfm_cli.io import write_parts
from glfm_cli.options import MatrixOptions, Sampling, Saving, Scaling

TYPES = {"columns": {"id": "id", "a": "real", "n": "count", "city": "categorical", "k": "ordinal"}}
SHORT = {"chains": 2, "warmup": 5, "draws": 6, "threads": 1}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """A table with a missing cell of every kind, of Arrow types; one column is a dictionary."""
    n = 24
    city = pa.array([None if i % 6 == 2 else "xyz"[i % 3] for i in range(n)]).dictionary_encode()
    return pa.table(
        {
            "id": [f"P{i}" for i in range(n)],
            "a": [None if i % 5 == 0 else i / 7 for i in range(n)],
            "n": pa.array([None if i % 7 == 1 else i % 4 for i in range(n)], pa.int16()),
            "city": city,
            "k": pa.array([None if i % 8 == 3 else i % 3 + 1 for i in range(n)], pa.int8()),
        }
    )


@pytest.fixture(scope="module")
def completion(table: pa.Table) -> Any:
    return impute(table, TYPES, model="glfm", **SHORT)


# Which model ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("multiple", "options", "expected"),
    [
        (4, {}, (10, 10.0, 0)),
        (4, {"settings": {"components": 0, "alpha_rate": 2.0}}, (0, 2.0, 0)),
        (None, {"model": "glfm"}, (0, 1.0, 20)),
    ],
)
def test_several_versions_have_a_linear_part_unless_settings_say_otherwise(
    table: pa.Table, multiple: int | None, options: Any, expected: tuple[object, ...]
) -> None:
    groups = (Sampling(**SHORT, **options), Saving(), MatrixOptions(), Scaling())
    planned = plan_imputation(table, TYPES, groups, Files(None, multiple=multiple))
    config = planned.task.problem.config
    assert (config.components, config.alpha_rate, config.initial_features) == expected


def test_models_without_such_a_part_are_as_they_are(table: pa.Table) -> None:
    groups = (Sampling(**SHORT, model="mixture"), Saving(), MatrixOptions(), Scaling())
    planned = plan_imputation(table, TYPES, groups, Files(None, multiple=4))
    assert planned.task.problem.config == type(planned.task.problem.config)()


# Which draws ---------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 60))
def test_versions_spread_over_chains_and_along_them(lengths: list[int], n: int) -> None:
    places = spread(lengths, n)
    assert len(places) == n
    assert all(0 <= t < lengths[c] for c, t in places)
    if n <= sum(lengths):
        assert len(set(places)) == n
    for c, length in enumerate(lengths):
        mine = [t for chain, t in places if chain == c]
        assert mine == sorted(mine)
        if mine:
            assert mine[-1] == length - 1
            gaps = np.diff([-1, *mine])
            assert gaps.max() - gaps.min() <= 1  # evenly spaced
    # Equal chains take turns.
    if len(set(lengths)) == 1:
        counts = np.bincount([c for c, _ in places], minlength=len(lengths))
        assert counts.max() - counts.min() <= 1


def test_the_first_versions_come_from_different_chains() -> None:
    assert [c for c, _ in spread([10, 10, 10], 7)] == [0, 1, 2, 0, 1, 2, 0]


# What is stacked -----------------------------------------------------------------------------


def test_the_stack_begins_with_the_gaps_and_keeps_observed_cells(
    table: pa.Table, completion: Any
) -> None:
    stacked = completion.multiple(4).to_table()
    assert stacked.column_names == [".imp", ".id", *table.column_names]
    assert stacked[".imp"].to_pylist() == sorted(list(range(5)) * 24)
    assert stacked[".id"].to_pylist() == list(range(1, 25)) * 5
    assert stacked.schema.field(".imp").type == pa.int32()
    original = stacked.filter(pc.equal(stacked[".imp"], 0)).drop_columns([".imp", ".id"])
    assert original.to_pydict() == table.to_pydict()
    assert original.schema.types == table.schema.types
    for name in table.column_names:
        before = table[name].to_pylist()
        for m in range(1, 5):
            now = stacked.filter(pc.equal(stacked[".imp"], m))[name].to_pylist()
            assert None not in now
            assert all(x is None or x == y for x, y in zip(before, now, strict=True))


def test_versions_differ_where_there_were_gaps(completion: Any) -> None:
    columns = [part["a"].to_pylist() for part in completion.multiple(5).tables()]
    assert len({column[0] for column in columns}) == 5


def test_a_version_does_not_depend_on_how_it_is_asked_for(completion: Any) -> None:
    one, two = completion.multiple(6), completion.multiple(6)
    assert one.to_table().equals(two.to_table())
    assert one.chosen == two.chosen


def test_versions_come_from_the_draws_they_name(completion: Any) -> None:
    """Given its draw, a completed level has that draw's probabilities."""
    posterior = completion.posterior
    (d,) = [i for i, e in enumerate(completion.data.columns) if e.column.name == "city"]
    rows = np.flatnonzero(completion.data.columns[d].requested)
    versions = completion.multiple(12)
    assert sorted(versions.chosen) == [(c, t) for c in range(2) for t in range(6)]
    expected, hits, variance = 0.0, 0.0, 0.0
    for (c, t), table in zip(versions.chosen, versions.tables(), strict=True):
        draw = posterior.chains[c][t]
        law = posterior.cells_law(draw, rows).column(d)
        p = posterior.links[d].probabilities(law, draw.params[d])[:, 0]
        level = completion.data.columns[d].levels[0]
        hits += sum(table["city"][int(row)].as_py() == level for row in rows)
        expected += p.sum()
        variance += (p * (1 - p)).sum()
    assert abs(hits - expected) < 4 * np.sqrt(variance) + 1e-9


def test_names_that_stacking_needs_are_refused(table: pa.Table) -> None:
    clash = table.rename_columns([".id", "a", "n", "city", "k"])
    done = impute(clash, {"columns": {".id": "id", **dict(list(TYPES["columns"].items())[1:])}},
                  **SHORT)  # fmt: skip
    with pytest.raises(UsageError, match=r"'\.id'"):
        done.multiple(2)
    for wrong in (0, -1, 2.5, "2"):
        with pytest.raises(UsageError, match=f"^multiple, found '?{wrong}'?, expected a whole num"):
            done.multiple(wrong)
    with pytest.raises(UsageError, match=r"^analysis, found 5, expected a regression such as"):
        done.multiple(2, 5)


# Is the run long enough ----------------------------------------------------------------------


def test_a_warning_says_when_there_are_more_versions_than_independent_draws(
    table: pa.Table, completion: Any
) -> None:
    assert completion.multiple(2).warnings == ()  # each from a chain of its own
    vague = replace(completion.precision, typical=0.5)
    (said,) = replace(completion, precision=vague).multiple(8).warnings
    assert "8 tables" in said
    assert "run more --chains" in said
    (said,) = completion.multiple(13).warnings
    assert "12 draws" in said


# Files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "tsv", "parquet", "arrow"])
def test_a_table_in_parts_is_written_as_the_whole_would_be(
    completion: Any, tmp_path: Any, suffix: str
) -> None:
    versions = completion.multiple(3)
    write_parts(versions.parts(), tmp_path / f"parts.{suffix}")
    write_table(versions.to_table(), tmp_path / f"whole.{suffix}")
    if suffix == "parquet":
        parts, whole = (pq.read_table(tmp_path / f"{n}.parquet") for n in ("parts", "whole"))
        assert parts.to_pydict() == whole.to_pydict()
        assert parts.schema == whole.schema
        assert pq.ParquetFile(tmp_path / "parts.parquet").num_row_groups == 4
        return
    assert (tmp_path / f"parts.{suffix}").read_bytes() == (
        tmp_path / f"whole.{suffix}"
    ).read_bytes()


# Draws and traces ----------------------------------------------------------------------------


def test_draws_have_a_row_a_draw_and_cell(completion: Any) -> None:
    draws = pa.concat_tables(completion.draws())
    assert draws.num_rows == 12 * completion.n_completed
    assert set(draws["chain"].to_pylist()) == {1, 2}
    assert set(draws["draw"].to_pylist()) == set(range(1, 7))
    cells = {(c["row"], c["column"]) for c in completion.cells().to_pylist()}
    one = draws.filter(pc.and_(pc.equal(draws["chain"], 2), pc.equal(draws["draw"], 3)))
    found = list(zip(one["row"].to_pylist(), one["column"].to_pylist(), strict=True))
    assert set(found) == cells
    assert len(found) == len(cells)
    for row in one.to_pylist():
        levelled = row["column"] in ("city", "k")
        assert (row["value"] is None) == levelled
        assert (row["level"] is None) != levelled
        if row["column"] == "n":
            assert row["value"] == int(row["value"])


def test_draws_come_in_parts_of_bounded_size(completion: Any, monkeypatch: Any) -> None:
    whole = pa.concat_tables(completion.draws()).combine_chunks()
    monkeypatch.setattr("glfm_cli.completion.draws.PART_ROWS", 2 * completion.n_completed)
    parts = list(completion.draws())
    assert [part.num_rows for part in parts] == [2 * completion.n_completed] * 6
    assert pa.concat_tables(parts).combine_chunks().equals(whole)


def test_the_mean_of_the_draws_is_the_mean_of_the_cell(table: pa.Table) -> None:
    done = impute(table, TYPES, **{**SHORT, "draws": 400})
    draws = pa.concat_tables(done.draws())
    for cell in done.cells().to_pylist():
        if cell["column"] == "a":
            here = pc.and_(pc.equal(draws["row"], cell["row"]), pc.equal(draws["column"], "a"))
            values = draws.filter(here)["value"].to_numpy()
            assert abs(values.mean() - cell["mean"]) < 5 * cell["sd"] / np.sqrt(values.size)


def test_draws_of_a_table_without_gaps_are_an_empty_table(table: pa.Table) -> None:
    done = impute(table.drop_null(), TYPES, **SHORT)
    (part,) = done.draws()
    assert part.num_rows == 0
    assert part.column_names == ["chain", "draw", "row", "column", "value", "level"]
