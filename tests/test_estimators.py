"""GlfmImputer: data frames in and out, and the ways of scikit-learn."""

from __future__ import annotations

import pickle
from dataclasses import fields
from inspect import unwrap
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from glfm_cli import GlfmError, GlfmImputer, impute
from glfm_cli.options import Sampling

SHORT: dict[str, Any] = {"chains": 2, "warmup": 20, "draws": 8, "thin": 1, "threads": 1}
TYPES = {
    "columns": {
        "height": "real",
        "visits": "count",
        "shoe": "count",
        "city": "categorical",
        "size": {"type": "ordinal", "levels": ["S", "M", "L"]},
        "member": "categorical",
        "word": "categorical",
        "when": "ignore",
    }
}


def make(n: int = 60, seed: int = 1) -> pd.DataFrame:
    """Return a frame with a dtype of every kind, gaps, and an index of its own."""
    rng = np.random.default_rng(seed)
    big = rng.random(n) < 0.5
    frame = pd.DataFrame(
        {
            "height": np.where(big, 1.9, 1.6) + 0.02 * rng.standard_normal(n),
            "visits": pd.array(np.where(big, 8, 2) + rng.integers(0, 2, n), dtype="Int16"),
            "shoe": np.where(big, 45.0, 37.0),
            "city": pd.Categorical(np.where(big, "Oslo", "Rome"), ["Rome", "Oslo", "Bonn"]),
            "size": pd.Categorical(np.where(big, "L", "S"), ["S", "M", "L"], ordered=True),
            "member": pd.array(big, dtype="boolean"),
            "word": np.where(big, "tall", "small").astype(object),
            "when": pd.date_range("2026-01-01", periods=n),
        },
        index=[f"row {i}" for i in range(n)],
    )
    for name in frame.columns[:-1]:
        frame.loc[frame.index[rng.random(n) < 0.15], name] = None
    return frame


def imputer(**options: Any) -> GlfmImputer:
    return GlfmImputer(**{"types": TYPES, **SHORT, **options})


@pytest.fixture(scope="module")
def fitted() -> GlfmImputer:
    return imputer().fit(make())


# Frames and tables ---------------------------------------------------------------------------


def same_where_observed(before: pd.DataFrame, after: pd.DataFrame) -> bool:
    return all(
        (before[name].isna() | (before[name].astype(object) == after[name].astype(object))).all()
        for name in before.columns
    )


def test_a_frame_keeps_dtypes_index_and_observed_cells() -> None:
    frame = make()
    copy = frame.copy(deep=True)
    done = imputer().fit_transform(frame)
    assert done.dtypes.equals(frame.dtypes)
    assert done.index.equals(frame.index)
    assert list(done.columns) == list(frame.columns)
    assert not done.isna().any(axis=None)
    assert same_where_observed(frame, done)
    pd.testing.assert_frame_equal(frame, copy)


def test_versions_of_a_frame_keep_them_too() -> None:
    frame = make()
    versions = list(impute(frame, TYPES, **SHORT).multiple(2).outputs())
    for done in versions:
        assert done.dtypes.equals(frame.dtypes)
        assert done.index.equals(frame.index)
        assert same_where_observed(frame, done)
        assert not done.isna().any(axis=None)
    assert not versions[0].equals(versions[1])


def test_new_rows_keep_them_too(fitted: GlfmImputer) -> None:
    frame = make(25, seed=2)
    done = fitted.transform(frame)
    assert done.dtypes.equals(frame.dtypes)
    assert done.index.equals(frame.index)
    assert not done.isna().any(axis=None)
    assert same_where_observed(frame, done)
    assert (done["word"] == np.where(done["height"] > 1.75, "tall", "small")).mean() > 0.9


def test_a_new_frame_may_know_nothing_of_a_column(fitted: GlfmImputer) -> None:
    frame = make(6, seed=3)
    frame["height"] = np.nan
    done = fitted.transform(frame)
    assert not done.isna().any(axis=None)
    assert done["height"].dtype == frame["height"].dtype


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA], ids=repr)
def test_a_single_row_may_know_one_cell_alone(fitted: GlfmImputer, nothing: Any) -> None:
    known = dict.fromkeys(TYPES["columns"], nothing) | {"height": 1.9}
    done = fitted.transform(pd.DataFrame([known])).drop(columns="when")
    typed = make(1)
    typed[["visits", "shoe", "city", "size", "member", "word"]], typed["height"] = None, 1.9
    like = fitted.transform(typed.astype(make(1).dtypes)).drop(columns="when")
    assert not done.isna().any(axis=None)
    assert (done.iloc[0] == like.iloc[0]).all()


def test_a_polars_row_may_know_one_cell_alone(fitted: GlfmImputer) -> None:
    pl = pytest.importorskip("polars")
    known = dict.fromkeys(TYPES["columns"], None) | {"height": 1.9}
    row = pl.DataFrame([known]).with_columns(pl.col("word").cast(pl.Float64))
    done = fitted.transform(row)
    assert isinstance(done, pl.DataFrame)
    assert done.drop("when").null_count().sum_horizontal().item() == 0
    assert done["word"].item() in ("tall", "small")


def test_an_arrow_table_comes_back_as_one() -> None:
    table = pa.Table.from_pandas(make(), preserve_index=False)
    one = imputer()
    done = one.fit_transform(table)
    assert isinstance(done, pa.Table)
    assert done.schema.types == table.schema.types
    assert done.equals(impute(table, TYPES, **SHORT).table)
    pandas = one.set_output(transform="pandas").transform(table)
    assert isinstance(pandas, pd.DataFrame)


def test_the_fitted_table_is_completed_alike_by_fit_transform_and_transform() -> None:
    frame = make()
    one = imputer()
    pd.testing.assert_frame_equal(one.fit_transform(frame), one.transform(frame))


def test_types_are_guessed_where_none_are_given() -> None:
    frame = make().drop(columns="when")
    one = GlfmImputer(**SHORT)
    done = one.fit_transform(frame)
    assert not done.isna().any(axis=None)
    assert len(one.schema_.columns) == 7
    assert GlfmImputer("auto", **SHORT).fit(frame).schema_ == one.schema_


@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_a_generator_gives_the_seed_and_moves_on(source: Any) -> None:
    frame, rng = make()[["height", "city"]], source(5)
    first, second = (
        imputer(types="auto", random_state=rng).fit_transform(frame) for _ in range(2)
    )
    assert not first.equals(second)
    assert first.equals(imputer(types="auto", random_state=source(5)).fit_transform(frame))


def test_what_is_no_source_of_seeds_is_refused() -> None:
    with pytest.raises(GlfmError, match="random_state, found abc, expected a whole number"):
        imputer(random_state="abc").fit(make())


def test_a_column_that_counts_the_rows_is_completed_with() -> None:
    n, noise = 60, np.random.default_rng(1).normal(size=60)
    frame = pd.DataFrame({"day": np.arange(n), "v": 2.0 * np.arange(n) + noise})
    frame.loc[::5, "v"] = np.nan
    one = GlfmImputer(**SHORT)
    done = one.fit_transform(frame)
    assert np.corrcoef(done["v"][::5], np.arange(n)[::5])[0, 1] > 0.8
    assert [column.modelled for column in one.schema_.columns] == [True, True]


@pytest.mark.parametrize("nothing", [np.nan, None], ids=repr)
def test_a_column_without_a_value_stays_and_is_warned_of(nothing: Any) -> None:
    frame = make()[["height", "visits"]].assign(empty=nothing)
    with pytest.warns(UserWarning, match="no row has a value in 'empty'"):
        done = GlfmImputer(**SHORT).fit_transform(frame)
    assert done["empty"].isna().all()
    assert not done.drop(columns="empty").isna().any(axis=None)
    with pytest.warns(UserWarning, match="no row has a value in 'x1'"):
        GlfmImputer(**SHORT).fit(np.column_stack([np.arange(9.0), np.full(9, np.nan)]))


def test_missing_cells_of_columns_that_are_left_out_are_warned_of() -> None:
    frame = make()[["height", "visits"]].assign(always="EUR", whole="kg")
    frame["name"] = [f"name {i} of a row" for i in range(len(frame))]
    frame["dose"] = [str(i / 4) if i > 3 else "ND" for i in range(len(frame))]
    frame["lag"] = pd.to_timedelta(np.arange(len(frame)) - 5.0, unit="h")
    frame.loc[frame.index[:3], ["always", "name", "lag"]] = None
    said = (
        r"3 in 'always' \(always EUR, .*\), 3 in 'name' \(text that is different in each of its 57 "
        r"cells\), "
        r"3 in 'lag' \(durations, some below zero; .*\)\. Drop these columns, or say by `types`"
    )
    with pytest.warns(UserWarning, match=said) as warned:
        done = GlfmImputer(**SHORT).fit_transform(frame)
    assert len(warned) == 1
    assert not any(name in str(warned[0].message) for name in ("whole", "dose"))
    assert done.isna().sum().tolist() == [0, 0, 3, 0, 3, 0, 3]


def test_a_word_for_unseen_that_is_none_is_refused_by_fit() -> None:
    with pytest.raises(GlfmError, match="expected error or missing"):
        imputer(unseen="ignore").fit(make())


def test_levels_that_are_new_are_an_error_or_stay(fitted: GlfmImputer) -> None:
    frame = make(5, seed=4)
    frame["word"] = ["tall", "giant", "small", None, "tall"]
    assert fitted.transform(frame)["word"].iloc[1] == "giant"
    with pytest.raises(GlfmError, match="giant"):
        imputer(unseen="error").fit(make()).transform(frame)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (np.zeros(3), "expected a 2D array"),
        ({"a": [1]}, "expected a table of pyarrow, pandas"),
        (pd.DataFrame({"a": ["x", 1]}), "values of several types"),
    ],
)
def test_what_is_no_table_is_refused(data: Any, match: str) -> None:
    with pytest.raises(GlfmError, match=match):
        GlfmImputer(**SHORT).fit(data)


# The ways of scikit-learn --------------------------------------------------------------------


def test_parameters_can_be_read_and_set_and_nothing_else() -> None:
    one = GlfmImputer(TYPES, seed=4)
    assert one.get_params()["types"] is TYPES
    assert one.set_params(seed=5, draws=3).get_params()["draws"] == 3
    assert "seed=5" in repr(one)
    with pytest.raises(GlfmError, match="no parameter 'burnin'"):
        one.set_params(burnin=3)


def test_every_argument_of_the_imputer_is_one_of_impute() -> None:
    known = set(impute.__annotations__) | {field.name for field in fields(Sampling)}
    of_scikit_learn = {"random_state", "add_indicator"}
    assert set(GlfmImputer().get_params()) - of_scikit_learn <= known
    assert GlfmImputer().get_params()["estimate"] == unwrap(impute).__kwdefaults__["estimate"]


def test_before_fit_there_is_nothing_to_transform() -> None:
    for ask in (lambda: imputer().transform(make(3)), lambda: imputer().get_feature_names_out()):
        with pytest.raises(GlfmError, match="not fitted"):
            ask()


def test_it_can_be_pickled(fitted: GlfmImputer) -> None:
    again = pickle.loads(pickle.dumps(fitted))
    frame = make(8, seed=5)
    pd.testing.assert_frame_equal(fitted.transform(frame), again.transform(frame))


def test_clone_gives_an_unfitted_twin() -> None:
    base = pytest.importorskip("sklearn.base")
    one = imputer(seed=3, settings={"max_features": 5}).fit(make(20))
    twin = base.clone(one)
    assert twin.get_params() == one.get_params()
    assert not hasattr(twin, "completion_")


def test_it_takes_part_in_a_pipeline() -> None:
    pytest.importorskip("sklearn")
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.utils.validation import check_is_fitted

    frame = make(80)
    target = (frame.pop("shoe").fillna(45.0) > 40).to_numpy()
    types = {"columns": {k: v for k, v in TYPES["columns"].items() if k != "shoe"}}
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["city", "size", "word"]),
        (StandardScaler(), ["height", "visits"]),
    )
    steps = [("impute", GlfmImputer(types, **SHORT)), ("encode", encoder),
             ("classify", LogisticRegression())]  # fmt: skip
    pipeline = Pipeline(steps).set_params(impute__seed=2)
    pipeline.fit(frame.iloc[:60], target[:60])
    assert pipeline.score(frame.iloc[60:], target[60:]) > 0.8
    check_is_fitted(pipeline["impute"])
    names = pipeline["impute"].get_feature_names_out()
    assert list(names) == list(frame.columns)
    assert repr(pipeline)
