"""Data of other libraries: completed, and given back as the same kind."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import glfm_cli
from glfm_cli import compare_tables, impute
from glfm_cli.errors import GlfmError, TableError
from glfm_cli.estimators import GlfmClassifier, GlfmImputer
from glfm_cli.io.frames import table_like, table_of

# What scikit-learn skips unless an environment variable is set; nothing is expected to fail.
SKIPPED = {"check_array_api_input"}
SHORT = {"chains": 1, "warmup": 3, "draws": 4, "threads": 1}
TYPES = {"columns": {"x": "real", "town": "categorical"}}
TABLE = pa.table(
    {
        "x": [None if i % 5 == 0 else i / 4 for i in range(40)],
        "town": [None if i % 7 == 0 else ("Oslo", "Rom")[i % 2] for i in range(40)],
    }
)


def kinds() -> dict[str, Any]:
    """Return what makes data of another library from a table, by its name."""
    return {"pandas": pa.Table.to_pandas, "batch": lambda t: t.to_batches()[0]}


@pytest.mark.parametrize("types", [TYPES, "auto"], ids=["stated", "guessed"])
def test_frames_are_compared_as_files_are(types: Any) -> None:
    truth = TABLE.to_pandas().assign(town="Oslo", x=np.arange(40) / 4.0)
    truth.loc[::2, "town"] = "Rom"
    far = truth.assign(x=truth["x"] + 1.0)
    found = compare_tables({"same": truth, "far": far}, truth, types, masked=TABLE.to_pandas())
    errors = {x.method: x.mean for x in found.lines if x.what[:3] == ("mae", "column", "x")}
    assert errors == {"same": 0.0, "far": 1.0}


@pytest.mark.parametrize("kind", ["pandas", "batch", "polars", "duckdb"])
def test_impute_gives_back_what_it_was_given(kind: str) -> None:
    if kind in kinds():
        data = kinds()[kind](TABLE)
    else:
        data = getattr(pytest.importorskip(kind), "from_arrow")(TABLE)  # noqa: B009
    done = impute(data, TYPES, **SHORT)
    versions = [table_of(one) for one in done.multiple(2).outputs()]
    assert not versions[0].equals(versions[1])
    for made in (done.output, *done.multiple(2).outputs()):
        assert kind == "batch" or type(made) is type(data)
        for name in TABLE.column_names:
            pairs = zip(TABLE[name].to_pylist(), table_of(made)[name].to_pylist(), strict=True)
            assert all(new is not None and old in (None, new) for old, new in pairs)


@pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb"])
@pytest.mark.parametrize("task", ["explore", "evaluate", "suggest", "classify"])
def test_every_task_answers_with_what_it_was_given(kind: str, task: str) -> None:
    if kind in kinds():
        data = kinds()[kind](TABLE)
    else:
        data = getattr(pytest.importorskip(kind), "from_arrow")(TABLE)  # noqa: B009
    options: dict[str, Any] = SHORT | {
        "evaluate": {"rates": [0.2], "repeats": 1, "methods": ["glfm"]},
    }.get(task, {})
    if task == "classify":
        options = {"target": "town", "chains": 1, "settings": {"iterations": 3}}
    found = getattr(glfm_cli, task)(data, TYPES, **options)
    assert type(found.output) is type(data)
    assert table_of(found.output).column_names == found.to_table().column_names
    assert repr(found) == f"<{type(found).__name__}: to_table() has its rows>"


@pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb"])
def test_types_are_guessed_of_every_kind_of_data_and_written(kind: str, tmp_path: Path) -> None:
    if kind in kinds():
        data = kinds()[kind](TABLE)
    else:
        data = getattr(pytest.importorskip(kind), "from_arrow")(TABLE)  # noqa: B009
    guess = glfm_cli.guess_schema(data)
    kept = glfm_cli.guess_schema(TABLE)
    glfm_cli.write_table(data, tmp_path / "t.parquet")
    assert glfm_cli.read_table(tmp_path / "t.parquet").to_pydict() == TABLE.to_pydict()
    assert [c.type for c in guess.schema.columns] == [c.type for c in kept.schema.columns]


@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "unordered"])
def test_intervals_of_pandas_are_levels_and_come_back_as_intervals(ordered: bool) -> None:
    pd = pytest.importorskip("pandas")
    x = np.random.default_rng(1).normal(size=60)
    full = pd.cut(pd.Series(x), [-9.0, 0.0, 9.0])
    full = full if ordered else full.cat.as_unordered()
    frame = pd.DataFrame({"x": x, "cut": full.mask(np.arange(60) % 7 == 0)})
    cut = glfm_cli.guess_schema(frame).schema.columns[1]
    assert (cut.levels, cut.ordinal) == (("(-9.0, 0.0]", "(0.0, 9.0]"), ordered)
    done = GlfmImputer(**SHORT).fit_transform(frame)
    assert done["cut"].dtype == full.dtype
    assert not done["cut"].isna().any()
    assert (done["cut"] == full)[frame["cut"].notna()].all()


def test_intervals_of_pandas_in_an_arrow_table_pass_through() -> None:
    pd = pytest.importorskip("pandas")
    x = np.random.default_rng(1).normal(size=60)
    table = pa.Table.from_pandas(pd.DataFrame({"x": x, "cut": pd.cut(x, 4)}))
    done = GlfmImputer(**SHORT).fit_transform(table)
    assert done["cut"].equals(table["cut"])
    with pytest.raises(GlfmError, match="column 'cut': has type ordinal"):
        impute(table, {"columns": {"x": "real", "cut": "ordinal"}}, **SHORT)


def test_missing_types_are_said_in_the_words_of_python() -> None:
    with pytest.raises(GlfmError, match="the types of the columns are missing") as caught:
        impute(TABLE)
    assert "--" not in f"{caught.value} {caught.value.hint}"


def test_a_guess_and_a_schema_show_themselves_as_types_files() -> None:
    guess = glfm_cli.guess_schema(TABLE)
    assert repr(guess) == guess.to_yaml()
    assert repr(guess.schema) == guess.schema.to_yaml()


@pytest.mark.parametrize(
    ("name", "value"), [("methods", "mean"), ("methods", "glfm,mean"), ("rates", 0.2)]
)
def test_one_value_for_a_list_is_refused_in_a_line(name: str, value: Any) -> None:
    with pytest.raises(GlfmError, match=f"^{name}, found {value}, expected a list, such as"):
        glfm_cli.evaluate(TABLE, TYPES, **{name: value})


@pytest.mark.parametrize("kind", [GlfmImputer, GlfmClassifier])
@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("threads", -1, "threads, found -1, expected a whole number from 1"),
        ("chains", 0, "chains, found 0, expected a whole number from 1"),
        ("settings", {"foo": 1}, 'settings["foo"]: no such setting. Settings: '),
        ("settings", "foo=1", 'settings, found foo=1, expected such as {"alpha": 2}'),
    ],
)
def test_errors_of_estimators_name_their_arguments(
    kind: Any, name: str, value: Any, error: str
) -> None:
    with pytest.raises(GlfmError) as caught:
        kind(**{name: value}).fit(np.arange(40.0).reshape(20, 2), [0, 1] * 10)
    assert str(caught.value).startswith(error)
    assert "--" not in str(caught.value)


def test_errors_of_new_rows_name_the_argument_that_mends_them() -> None:
    one = GlfmImputer(TYPES, unseen="error", **SHORT).fit(TABLE)
    new = pa.table({"x": [1.0], "town": ["Bonn"]})
    with pytest.raises(GlfmError, match="found 'Bonn'") as caught:
        one.transform(new)
    assert 'Treat such cells as missing with `unseen="missing"`' in str(caught.value)


def test_a_matrix_is_completed_as_a_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.normal(size=(40, 3)).astype(np.float32)
    matrix[:, 2] = 1.0
    full = matrix.copy()
    matrix[rng.random(matrix.shape) < 0.2] = np.nan
    done = GlfmImputer(random_state=3, **SHORT).fit_transform(matrix)
    assert (done.shape, done.dtype) == (matrix.shape, matrix.dtype)
    assert np.array_equal(done[~np.isnan(matrix)], full[~np.isnan(matrix)])
    assert np.isfinite(done).all()


def test_rows_of_text_and_numbers_keep_their_cells() -> None:
    rows = np.array([[1.5, "a"], [None, "b"], [2.5, None]], dtype=object)
    table = table_of(rows)
    assert table.to_pydict() == {"x0": [1.5, None, 2.5], "x1": ["a", "b", None]}
    assert table_like(table, rows, ["x0"]).tolist() == rows.tolist()


@pytest.mark.parametrize("data", [5, [1.0, 2.0], np.zeros((2, 2, 2)), {"a": [1]}])
def test_what_is_no_table_is_one_clear_error(data: object) -> None:
    with pytest.raises(GlfmError, match="expected a"):
        impute(data, TYPES)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_column_alone_is_no_table(kind: str) -> None:
    column = TABLE["x"]
    if kind != "pyarrow":
        pytest.importorskip(kind)
        column = TABLE.to_pandas()["x"] if kind == "pandas" else _polars(TABLE)["x"]
    with pytest.raises(GlfmError, match=f"found a {kind}.*expected a table of") as caught:
        impute(column, TYPES, **SHORT)
    assert "give a frame, as `data.to_frame()` is" in str(caught.value.hint)


def test_what_becomes_a_table_is_told_how() -> None:
    for named in ({"x": [1.0, None]}, [{"x": 1.0}, {"x": None}], np.zeros(2, [("x", "f8")])):
        with pytest.raises(GlfmError) as caught:
            impute(named, TYPES)
        assert "pandas.DataFrame(data)" in str(caught.value.hint)
    with pytest.raises(GlfmError) as caught:
        impute(_polars(TABLE).lazy(), TYPES)
    assert "data.collect()" in str(caught.value.hint)


def _polars(table: pa.Table) -> Any:
    return getattr(pytest.importorskip("polars"), "from_arrow")(table)  # noqa: B009


def test_cells_under_a_mask_are_missing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    full = rng.normal(size=(40, 2))
    mask = rng.random(full.shape) < 0.2
    data = np.ma.masked_array(np.where(mask, 1e9, full), mask=mask)
    types = {"columns": {"x0": "real", "x1": {"role": "ignore"}}}
    done = impute(data, types, **SHORT)
    assert done.n_completed == mask[:, 0].sum()
    output = done.output
    assert isinstance(output, np.ma.MaskedArray)
    assert np.array_equal(np.ma.getmaskarray(output), mask & [False, True])
    assert np.array_equal(output.data[~mask], full[~mask])
    assert np.abs(output.compressed()).max() < 100
    assert np.array_equal(data.mask, mask)
    filled = GlfmImputer(random_state=3, **SHORT).fit_transform(data)
    assert not np.ma.is_masked(filled)
    assert np.abs(filled).max() < 100


@pytest.mark.parametrize("kind", ["int64", "uint64", "masked", "list", "list with floats"])
def test_whole_numbers_that_no_double_holds_are_refused(kind: str) -> None:
    """A matrix of numbers is completed as doubles, which would change them."""
    rows: list[list[Any]] = [[3, 2**53], [5, 2**60], [7, -(2**53) - 1]]
    if kind == "uint64":
        rows[2][1] = 2**64 - 1
    if kind == "list with floats":
        rows[0][0] = np.nan
    data: Any = rows if "list" in kind else np.array(rows, "uint64" if kind == "uint64" else None)
    if kind == "masked":
        data = np.ma.masked_array(data, mask=[[1, 0], [0, 0], [0, 0]])
    with pytest.raises(TableError, match=f"'x1', row 3: found {rows[2][1]}, expected") as caught:
        table_of(data)
    assert "data frame" in str(caught.value.hint)
    exact = data[:2]
    assert table_of(exact)["x1"].to_pylist() == [float(2**53), float(2**60)]
    if kind == "masked":
        data[2, 1] = np.ma.masked
        assert table_of(data)["x1"].null_count == 1


def test_words_under_a_mask_are_missing() -> None:
    words = np.array([["a", 1], ["b", 2], ["a", 3]], dtype=object)
    data = np.ma.masked_array(words, mask=[[0, 0], [1, 0], [0, 1]])
    assert table_of(data).to_pydict() == {"x0": ["a", None, "a"], "x1": [1, 2, None]}


def test_rows_in_a_list_keep_their_numbers() -> None:
    rows = [["x", 1.5, 3], [np.nan, 2, None], ["y", np.nan, 4]]
    expected = {"x0": ["x", None, "y"], "x1": [1.5, 2.0, None], "x2": [3, None, 4]}
    assert table_of(rows).to_pydict() == expected
    two = [row[:2] for row in rows]
    assert table_of(two).to_pydict() == {name: expected[name] for name in ("x0", "x1")}
    filled = GlfmImputer(random_state=3, **SHORT).fit_transform(two * 9)
    assert set(filled[:, 0]) == {"x", "y"}
    assert [row[1] for row in filled[:2]] == [1.5, 2.0]


def test_na_of_pandas_in_a_matrix_is_missing() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"n": [1, None, 3], "t": ["a", "b", None]}).convert_dtypes()
    found = table_of(frame.to_numpy(dtype=object))
    assert found.to_pydict() == {"x0": [1, None, 3], "x1": ["a", "b", None]}


@pytest.mark.parametrize(
    ("cell", "what"), [(2**70, "64 bits"), ("a\ud800", "half a letter")], ids=["number", "text"]
)
def test_what_no_table_holds_is_an_error_with_its_column(cell: Any, what: str) -> None:
    with pytest.raises(TableError, match=f"column 'x1': .*{what}"):
        table_of(np.array([[1, cell], [2, cell]], dtype=object))


def test_large_whole_numbers_of_a_frame_stay_objects() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": [2**70, 1] * 10, "x": [1.0, None] * 10})
    done = impute(frame, {"columns": {"id": {"role": "ignore"}, "x": "real"}}, **SHORT)
    assert done.output["id"].tolist() == frame["id"].tolist()


@pytest.mark.parametrize("unit", ["ns", "us", "s"])
def test_times_in_a_matrix_are_times(unit: str) -> None:
    for name, kind in (("datetime64", pa.timestamp), ("timedelta64", pa.duration)):
        data = np.array([[1, 2], [3, 4], [5, 6]]).astype(f"{name}[{unit}]")
        gone = data.copy()
        gone[1, 1] = "NaT"
        mask = np.ma.masked_array(data, mask=np.isnat(gone))
        for table in (table_of(gone), table_of(mask)):
            assert set(table.schema.types) == {kind("ns" if unit == "ns" else "us")}
            assert [column.null_count for column in table.columns] == [0, 1]
            seen = table["x0"].to_numpy().astype(data.dtype)
            assert np.array_equal(seen, data[:, 0])


def test_a_sparse_column_is_completed_as_one(seed: int) -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.5, 40).astype(float)
    counts[::5] = np.nan
    frame = pandas.DataFrame({"n": pandas.arrays.SparseArray(counts), "x": rng.normal(size=40)})
    done = impute(frame, {"columns": {"n": "count", "x": "real"}}, **SHORT)
    assert done.output.dtypes.equals(frame.dtypes)
    kept = ~np.isnan(counts)
    assert np.array_equal(done.output["n"].to_numpy()[kept], counts[kept])
    assert not done.output["n"].isna().any()


# Scikit-learn --------------------------------------------------------------------------------


def test_errors_are_those_that_scikit_learn_expects() -> None:
    exceptions = pytest.importorskip("sklearn.exceptions")
    with pytest.raises(exceptions.NotFittedError, match="not fitted yet"):
        GlfmImputer().transform(TABLE)
    fitted = GlfmImputer(**SHORT).fit(np.random.default_rng(0).normal(size=(30, 2)))
    for bad in (np.zeros((3, 3)), np.zeros(3), np.zeros((0, 2)), np.full((3, 2), np.inf)):
        with pytest.raises(ValueError):
            fitted.transform(bad)


@pytest.mark.filterwarnings("ignore")  # of scikit-learn, of what it is not derived from
@pytest.mark.parametrize(
    "estimator",
    [
        GlfmImputer(**SHORT),
        GlfmClassifier(chains=1, threads=1, settings={"iterations": 5}),
    ],
    ids=["imputer", "classifier"],
)
def test_the_checks_of_scikit_learn_are_passed(estimator: Any) -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    done = checks.check_estimator(estimator, on_fail=None, on_skip=None)
    others = [(d["check_name"], str(d["exception"])) for d in done if d["status"] != "passed"]
    assert [one for one in others if one[0] not in SKIPPED] == []


@pytest.fixture
def air(sample_data: Path) -> Any:
    """Columns and temperature of airquality, whose rows are sorted by month."""
    return pytest.importorskip("pandas").read_csv(sample_data / "airquality.csv")


def test_gaps_are_marked_in_columns_of_their_own(air: Any) -> None:
    imputer = GlfmImputer(add_indicator=True, **SHORT).fit(air)
    done = imputer.transform(air)
    marked = ["missingindicator_Ozone", "missingindicator_Solar.R"]
    assert list(done.columns) == [*air.columns, *marked] == list(imputer.get_feature_names_out())
    for name in ("Ozone", "Solar.R"):
        assert (done[f"missingindicator_{name}"] == air[name].isna()).all()
    matrix = imputer.fit_transform(air.to_numpy())
    assert matrix.shape == (153, 8)
    assert np.array_equal(matrix[:, 6], air["Ozone"].isna())


def test_columns_that_nothing_completes_have_indicators_too() -> None:
    x = np.random.default_rng(0).normal(size=(30, 3))
    x[:, 1], x[4, 2] = np.nan, np.nan
    imputer = GlfmImputer(add_indicator=True, **SHORT)
    with pytest.warns(UserWarning, match="no row has a value in 'x1'"):
        imputer.fit(x)
    added = imputer.get_feature_names_out()[3:].tolist()
    assert added == ["missingindicator_x1", "missingindicator_x2"]
    done = imputer.transform(np.array([[0.0, np.nan, np.nan], [0.0, 1.0, 0.0]]))
    assert done[:, 3:].tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_output_is_a_frame_of_the_library_that_is_chosen(air: Any) -> None:
    polars = pytest.importorskip("polars")
    imputer = GlfmImputer(**SHORT).fit(air)
    assert isinstance(imputer.set_output(transform="polars").transform(air), polars.DataFrame)
    as_pandas = imputer.set_output(transform="pandas").transform(air.to_numpy())
    assert as_pandas.isna().sum().sum() == 0
    assert isinstance(imputer.set_output(transform=None).transform(air), type(air))
    with pytest.raises(GlfmError, match="default or pandas or polars"):
        imputer.set_output(transform="arrow")


def test_output_chosen_for_all_of_scikit_learn_or_before_cloning_is_that_of_a_clone(
    air: Any,
) -> None:
    sklearn = pytest.importorskip("sklearn")
    imputer, matrix = GlfmImputer(**SHORT), air.to_numpy()
    with sklearn.config_context(transform_output="pandas"):
        assert list(imputer.fit_transform(matrix).columns) == [f"x{i}" for i in range(6)]
        imputer.set_output(transform="default")
        assert isinstance(imputer.transform(matrix), np.ndarray)
    chosen = sklearn.clone(imputer.set_output(transform="pandas"))
    assert isinstance(chosen.fit_transform(matrix), type(air))


def test_a_grid_is_searched_without_an_empty_score(air: Any) -> None:
    sklearn = pytest.importorskip("sklearn.model_selection")
    linear = pytest.importorskip("sklearn.linear_model")
    pipeline = pytest.importorskip("sklearn.pipeline")
    target = air.pop("Temp")
    steps = pipeline.make_pipeline(GlfmImputer(**SHORT), linear.Ridge())
    grid = {"glfmimputer__estimate": ["mean", "draw"], "ridge__alpha": [0.1, 10.0]}
    search = sklearn.GridSearchCV(steps, grid, cv=3, error_score="raise").fit(air, target)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert np.isfinite(search.predict(air)).all()


def press_ctrl_c_once_chains_run() -> None:
    while not any(one.name.startswith("ThreadPool") for one in threading.enumerate()):
        time.sleep(0.01)
    time.sleep(0.5)  # the chains are beyond their warm-up
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    "endless",
    [
        GlfmImputer(model="bsvd", chains=1, warmup=1, draws=10_000_000),
        GlfmClassifier(chains=10_000),
    ],
    ids=["imputer", "classifier"],
)
def test_ctrl_c_ends_fit_and_what_is_around_it_but_keeps_the_draws(air: Any, endless: Any) -> None:
    warm = air.pop("Temp") > 78
    threading.Thread(target=press_ctrl_c_once_chains_run, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        endless.fit(air, warm)
    rows = air.to_numpy(float)
    found = (endless.transform if hasattr(endless, "transform") else endless.predict_proba)(rows)
    assert len(found) == len(air)
    assert np.isfinite(found).all()


def test_a_column_transformer_may_hand_over_some_columns(air: Any) -> None:
    compose = pytest.importorskip("sklearn.compose")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    sklearn = pytest.importorskip("sklearn.model_selection")
    linear = pytest.importorskip("sklearn.linear_model")
    pipeline = pytest.importorskip("sklearn.pipeline")
    target = air.pop("Temp")
    numbers = ["Ozone", "Solar.R", "Wind"]
    scaled = pipeline.make_pipeline(
        preprocessing.StandardScaler(), GlfmImputer(add_indicator=True, **SHORT)
    )
    months = preprocessing.OneHotEncoder(handle_unknown="ignore")
    columns = compose.ColumnTransformer(
        [("numbers", scaled, numbers), ("month", months, ["Month"])]
    )
    steps = pipeline.make_pipeline(columns, linear.Ridge())
    scores = sklearn.cross_val_score(steps, air, target, cv=5, error_score="raise")
    assert np.isfinite(scores).all()
    assert "numbers__missingindicator_Ozone" in columns.fit(air).get_feature_names_out()


def test_levels_of_one_fold_alone_leave_no_score_empty(sample_data) -> None:
    pandas = pytest.importorskip("pandas")
    sklearn = pytest.importorskip("sklearn.model_selection")
    linear = pytest.importorskip("sklearn.linear_model")
    pipeline = pytest.importorskip("sklearn.pipeline")
    frame = pandas.read_csv(sample_data / "airquality.csv")  # sorted by month
    target = frame.pop("Temp")
    steps = pipeline.make_pipeline(GlfmImputer(**SHORT), linear.LinearRegression())
    scores = sklearn.cross_val_score(steps, frame, target, cv=5, error_score="raise")
    assert np.isfinite(scores).all()


def test_categories_lists_and_structures_of_polars_come_back() -> None:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(
        {
            "s": ["a", "b", None, "a"] * 10,
            "e": ["u", None, "v", "u"] * 10,
            "x": [1.0, 2.0, None, 1.1] * 10,
            "many": [["q"], None, ["r", "s"], []] * 10,
            "both": [{"p": "a"}, {"p": None}, None, {"p": "b"}] * 10,
        }
    ).with_columns(
        polars.col("s").cast(polars.Categorical), polars.col("e").cast(polars.Enum(["u", "v"]))
    )
    types = {"s": "categorical", "e": "categorical", "x": "real"}
    types |= {"many": "ignore", "both": "ignore"}
    done = impute(frame, {"columns": types}, chains=1, warmup=3, draws=2, threads=1).output
    assert done.schema == frame.schema
    assert done["s"].null_count() == done["e"].null_count() == done["x"].null_count() == 0
    assert done["many"].to_list() == frame["many"].to_list()
    assert done["both"].to_list() == frame["both"].to_list()
    seen = frame["s"].is_not_null()
    assert done["s"].filter(seen).to_list() == frame["s"].filter(seen).to_list()


def test_objects_of_several_types_pass_through() -> None:
    pandas = pytest.importorskip("pandas")
    frame = TABLE.to_pandas().assign(mix=[1, "x", None, {"k": 1}] * 10, when=pandas.NaT)
    frame["when"] = [pandas.Timestamp("2020-01-01"), 2.5] * 20
    assert "mix: ignore" in glfm_cli.guess_schema(frame).to_yaml()
    done = impute(frame, {"rest": "ignore", **TYPES}, **SHORT)
    assert done.output["mix"].tolist() == frame["mix"].tolist()
    assert done.output["when"].tolist() == frame["when"].tolist()
    for kind in ("categorical", "real"):
        with pytest.raises(GlfmError, match="column 'mix': the column holds values of several"):
            impute(frame, {"rest": "ignore", "columns": {"x": "real", "mix": kind}}, **SHORT)
