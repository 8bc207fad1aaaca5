"""The value that stands for a distribution, and the tables a completion gives."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from glfm_cli import Files, Schema, guess_schema, impute
from glfm_cli.completion.estimates import MODE_GRID, point
from glfm_cli.encoding import EncodedColumn
from glfm_cli.errors import UsageError
from glfm_cli.inference.predictive import Marginal
from glfm_cli.links import LinkConfig, make_link
from glfm_cli.schema import COLUMN_TYPES, Column

AT = np.array([0.025, 0.5, 0.975])


def link_of(kind: str, n_levels: int = 0) -> Any:
    x = np.arange(1.0, 9.0) if n_levels == 0 else np.arange(9.0) % n_levels
    observed = np.ones(x.size, dtype=bool)
    column = Column("c", type=COLUMN_TYPES[kind])
    levels = tuple(str(r) for r in range(n_levels))
    return make_link(EncodedColumn(column, 0, x, observed, ~observed, levels), LinkConfig())


def marginal_of(law: Any) -> Marginal:
    """Return the marginal of one cell with a scipy distribution."""
    quantiles = law.ppf(np.concatenate([AT, MODE_GRID]))[None]
    mean, sd = np.array([law.mean()]), np.array([law.std()])
    return Marginal(np.array([0]), mean, sd, quantiles, None)


def estimate(kind: str, law: Any, name: Any) -> float:
    return float(point(link_of(kind), marginal_of(law), name)[0])


# Estimates -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["auto", "mean", "median", "mode"])
def test_all_estimates_of_a_symmetric_number_agree(name: str) -> None:
    assert estimate("real", stats.norm(3.0, 2.0), name) == pytest.approx(3.0, abs=0.02)


def test_estimates_of_a_skewed_number_differ() -> None:
    law = stats.gamma(3.0, scale=2.0)
    assert estimate("positive", law, "auto") == pytest.approx(6.0)
    assert estimate("positive", law, "median") == pytest.approx(law.median())
    # The narrowest tenth of a distribution lies around its mode, here 4.
    assert estimate("positive", law, "mode") == pytest.approx(4.0, abs=0.1)


def test_estimates_of_a_count_are_whole_numbers() -> None:
    law = stats.poisson(2.6)
    assert estimate("count", law, "auto") == 3.0
    assert estimate("count", stats.poisson(2.5), "mean") == 3.0  # halves are rounded up
    assert estimate("count", law, "median") == law.median()
    assert estimate("count", law, "mode") == 2.0


def test_the_mode_of_a_widely_spread_count_is_not_its_smallest_value() -> None:
    mode = estimate("count", stats.poisson(1e6), "mode")
    assert mode == pytest.approx(1e6, abs=1000)
    assert mode == np.floor(mode)


def test_the_mode_near_the_largest_double_is_finite() -> None:
    for quantiles in (np.linspace(1.6e308, 1.7e308, 202), 1.7e308 * np.linspace(-1.0, 1.0, 202)):
        marginal = Marginal(np.array([0]), np.zeros(1), np.zeros(1), quantiles[None], None)
        assert np.isfinite(point(link_of("real"), marginal, "mode")[0])


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        ("categorical", "auto", 2),
        ("categorical", "mean", 2),
        ("categorical", "median", 2),
        ("ordinal", "auto", 1),
        ("ordinal", "median", 1),
        ("ordinal", "mean", 1),
        ("ordinal", "mode", 2),
    ],
)
def test_estimates_of_a_level(kind: str, name: Any, code: int) -> None:
    p = np.array([[0.3, 0.25, 0.45]])
    mean = np.array([p[0] @ np.arange(3)])
    marginal = Marginal(np.array([0]), mean, mean, np.array([[0.0, 1.0, 2.0]]), p)
    assert point(link_of(kind, 3), marginal, name).tolist() == [code]


# A completion --------------------------------------------------------------------------------

TYPES = {"columns": {"id": "id", "a": "real", "n": "count", "city": "categorical", "k": "ordinal"}}


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """A table with a missing cell of every kind, of Arrow types."""
    n = 24
    return pa.table(
        {
            "id": [f"P{i}" for i in range(n)],
            "a": [None if i % 5 == 0 else i / 7 for i in range(n)],
            "n": pa.array([None if i % 7 == 1 else i % 4 for i in range(n)], pa.int16()),
            "city": [None if i % 6 == 2 else "xyz"[i % 3] for i in range(n)],
            "k": pa.array([None if i % 8 == 3 else i % 3 + 1 for i in range(n)], pa.int8()),
        }
    )


def complete(table: pa.Table, **options: Any) -> Any:
    return impute(table, TYPES, **{"chains": 2, "warmup": 5, "draws": 5, "threads": 1, **options})


def test_cells_describe_each_completed_cell_and_nothing_else(table: pa.Table) -> None:
    completion = complete(table)
    cells = completion.cells()
    names = "row id column type estimate mean sd lower upper probability mcse"
    assert cells.column_names == names.split()
    gaps = {
        (i + 1, name)
        for name in ("a", "n", "city", "k")
        for i, v in enumerate(table[name].to_pylist())
        if v is None
    }
    found = list(zip(cells["row"].to_pylist(), cells["column"].to_pylist(), strict=True))
    assert set(found) == gaps
    assert len(found) == len(gaps) == completion.n_completed
    assert [row for row, _ in found] == sorted(row for row, _ in found)
    for cell in cells.to_pylist():
        assert cell["id"] == f"P{cell['row'] - 1}"
        now = completion.table[cell["column"]][cell["row"] - 1].as_py()
        if cell["type"] in ("categorical", "ordinal"):
            assert cell["estimate"] == str(now)
            assert 0 < cell["probability"] <= 1
        else:
            assert float(cell["estimate"]) == pytest.approx(now, rel=1e-6)
            assert cell["probability"] is None
            assert float(cell["lower"]) <= float(cell["upper"])
            assert cell["sd"] > 0
        assert cell["mcse"] is None or 0 <= cell["mcse"] < 10 * (cell["sd"] or 1)
        assert (cell["mean"] is None) == (cell["type"] == "categorical")
        assert (cell["lower"] is None) == (cell["type"] == "categorical")
    ordinal = [cell for cell in cells.to_pylist() if cell["type"] == "ordinal"]
    assert all(cell["lower"] <= cell["upper"] for cell in ordinal)


def test_an_estimate_is_the_number_that_stands_in_the_table(table: pa.Table) -> None:
    whole = table.set_column(1, "a", table["a"].cast(pa.float32()))
    for source in (table, whole):
        completion = complete(source, estimate="draw")
        for cell in completion.cells().to_pylist():
            if cell["column"] == "a":
                now = completion.table["a"][cell["row"] - 1].as_py()
                assert np.float32(cell["estimate"]) == np.float32(now)


def test_probabilities_of_each_cell_sum_to_one(table: pa.Table) -> None:
    completion = complete(table)
    by_cell: dict[tuple[int, str], float] = {}
    for one in completion.probabilities().to_pylist():
        key = (one["row"], one["column"])
        by_cell[key] = by_cell.get(key, 0.0) + one["probability"]
    assert list(by_cell.values()) == pytest.approx([1.0] * len(by_cell))
    assert {column for _, column in by_cell} == {"city", "k"}
    best = {
        (cell["row"], cell["column"]): cell["probability"]
        for cell in completion.cells().to_pylist()
        if cell["type"] == "categorical"
    }
    for one in completion.probabilities().to_pylist():
        if one["column"] == "city":
            assert one["probability"] <= best[one["row"], "city"] + 1e-12


def test_a_wider_interval_contains_a_narrower_one(table: pa.Table) -> None:
    wide, narrow = (complete(table, interval=p).cells().to_pylist() for p in (0.95, 0.5))
    for outer, inner in zip(wide, narrow, strict=True):
        if outer["type"] in ("real", "count"):
            assert float(outer["lower"]) <= float(inner["lower"])
            assert float(outer["upper"]) >= float(inner["upper"])
            assert outer["estimate"] == inner["estimate"]


def test_the_summary_is_json_and_counts_what_was_done(table: pa.Table) -> None:
    completion = complete(table)
    said = json.loads(json.dumps(completion.to_dict(), allow_nan=False))
    assert (said["rows"], said["columns"]) == (24, 5)
    assert said["cells_completed"] == sum(table[name].null_count for name in table.column_names)
    assert [part["column"] for part in said["per_column"]] == ["a", "n", "city", "k"]
    assert [part["completed"] for part in said["per_column"]] == [5, 4, 4, 3]
    assert sum(said["per_column"][2]["levels"].values()) == 4
    assert said["per_column"][0]["mean_sd"] > 0
    assert (said["chains"], said["draws"], said["stopped"]) == (2, 7, None)


def test_types_may_be_a_schema_a_mapping_or_a_path(table: pa.Table, tmp_path: Any) -> None:
    schema = Schema.from_dict(TYPES)
    path = tmp_path / "types.yaml"
    path.write_text(schema.to_yaml())
    options: dict[str, Any] = {"chains": 1, "warmup": 2, "draws": 2}
    answers = [impute(table, types, **options).table for types in (TYPES, schema, path, str(path))]
    assert all(answer.equals(answers[0]) for answer in answers)


def test_types_may_be_what_was_guessed_and_nothing_else(table: pa.Table) -> None:
    options: dict[str, Any] = {"chains": 1, "warmup": 2, "draws": 2}
    guessed = impute(table, guess_schema(table), **options).table
    assert guessed.equals(impute(table, "auto", **options).table)
    with pytest.raises(UsageError, match="types, found list, expected a types file"):
        impute(table, ["real"], **options)  # type: ignore[arg-type]


def test_an_observer_of_the_library_hears_every_sweep(table: pa.Table) -> None:
    heard, plans = [], []

    class Listener:
        def begun(self, session: Any) -> None:
            assert not heard
            plans.append(session.plan)

        def swept(self, chain: int, sweep: int, trace: dict[str, float] | None) -> None:
            heard.append((chain, sweep))

    complete(table, thin=1, observer=Listener())
    assert sorted(heard) == [(chain, sweep) for chain in range(2) for sweep in range(1, 11)]
    assert [plan.chains * plan.sweeps for plan in plans] == [len(heard)]


def test_an_observer_hears_how_many_sets_of_observed_cells_are_forecast(table: pa.Table) -> None:
    heard, chains = [], 0

    class Listener:
        def swept(self, chain: int, sweep: int, trace: dict[str, float] | None) -> None:
            nonlocal chains
            chains = max(chains, chain + 1)

        def forecast(self, sets: int, of: int) -> None:
            assert chains == 5, "after the chains"
            heard.append((sets, of))

    impute(table, "auto", effort="quick", observer=Listener())
    assert heard == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"chains": 0}, "chains, found 0, expected a whole number from 1"),
        ({"draws": 2.5}, "draws, found 2.5, expected a whole number from 1"),
        ({"warmup": -1}, "warmup, found -1, expected a whole number from 0"),
        ({"seed": -1}, "seed, found -1, expected a whole number from 0"),
        ({"thin": 0}, "thin, found 0, expected a whole number from 1"),
        ({"threads": 0}, "threads, found 0, expected a whole number from 1"),
        ({"estimate": "best"}, "estimate, found best, expected auto or mean"),
        ({"time_limit": "10s"}, "time_limit, found 10s, expected seconds above 0"),
        ({"interval": "95"}, "interval, found 95, expected a number between 0 and 1"),
        ({"checkpoint": "5"}, "checkpoint, found 5, expected seconds from 0"),
        ({"save": 5}, "save, found 5, expected the name of a folder"),
        ({"files": Files(multiple=0)}, "multiple, found 0, expected a whole number from 1"),
        ({"files": Files(multiple="3")}, "multiple, found 3, expected a whole number from 1"),
        ({"fit": 5}, "fit, found int, expected a folder NAME.glfm"),
        ({"interval": 1.0}, "interval, found 1.0, expected a number between 0 and 1"),
        ({"model": "lda"}, "model, found lda, expected auto or glfm"),
        ({"settings": {"alhpa": 1}}, 'settings["alhpa"]: no such setting'),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_wrong_options_of_the_library_are_errors(
    table: pa.Table, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        complete(table, **options)


def test_a_table_without_a_gap_is_not_fitted() -> None:
    table = pa.table({"x": [1.0, 2.0, 2.5, 3.0] * 5, "y": ["a", "b", "a", "b"] * 5})
    done = impute(table, "auto")
    assert done.output.equals(table)
    assert done.posterior.n_draws == 0
    assert done.cells().num_rows == 0
    assert done.traces() == {}
    assert [one.equals(table) for one in done.multiple(2).tables()] == [True, True]
    assert done.warnings[0].startswith("no cell is to be completed")


def test_a_completion_is_shown_in_a_line() -> None:
    table = pa.table({"x": [1.0, 2.0, None, 3.0] * 5, "y": ["a", "b", "a", None] * 5})
    types = {"columns": {"x": "real", "y": "categorical"}}
    done = impute(table, types, chains=1, warmup=3, draws=2, threads=1)
    assert repr(done).startswith("<Completion: 10 cells completed in 20 rows")
    assert len(repr(done)) < 200
    assert len(repr(done.posterior)) < 200
    assert repr(done.multiple(2)) == "<Multiple: 2 versions of 20 rows, by outputs() or tables()>"
    left = pa.table({"x": [1.0, 2.5, None, 3.0] * 5, "none": pa.nulls(20)})
    shown = repr(impute(left, "auto", chains=1, warmup=3, draws=2, threads=1, time_limit=1e-9))
    assert shown.startswith("<Completion: 5 cells completed in 20 rows")
    assert ". 20 cells not completed: 20 in 'none' (ignored: holds no value). " in shown
    assert shown.endswith(" Ended early (time limit)>")


@pytest.mark.parametrize(
    ("levels", "numbers"),
    [
        (["1", "2", "3", "4"], [1, 2, 3, 4]),
        (["0", "0.5", "10", "2.5e2"], [0, 0.5, 10, 250]),
        (["bad", "so so", "good", "3"], [1, 2, 3, 4]),
    ],
)
def test_means_of_ordered_levels_are_those_of_their_numbers(
    levels: list[str], numbers: list[float]
) -> None:
    cells = [None if i % 5 == 0 else levels[i * i % 4] for i in range(40)]
    types = {"columns": {"k": {"type": "ordinal", "levels": levels}, "x": "real"}}
    table = pa.table({"k": cells, "x": [float(i % 7) for i in range(40)]})
    done = impute(table, types, model="glfm", chains=2, warmup=5, draws=6, threads=1)
    found = done.cells().to_pydict()
    p = done.probabilities()["probability"].to_numpy().reshape(-1, 4)
    mean = p @ numbers
    sd = np.sqrt(np.sum(p * (np.array(numbers) - mean[:, None]) ** 2, axis=1))
    np.testing.assert_allclose(found["mean"], mean)
    np.testing.assert_allclose(found["sd"], sd)
    (part,) = (one for one in done.columns if one.encoded.levels)
    np.testing.assert_allclose(found["mcse"], part.marginal.relative_error * sd)
