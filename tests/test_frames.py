"""Data of other libraries: completed, and given back as the same kind."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import impute
from glfm_cli.errors import GlfmError
from glfm_cli.estimators import GlfmImputer
from glfm_cli.io.frames import table_like, table_of

SKIPPED = {"check_array_api_input"}  # NumPy's own arrays are what the model computes with
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


@pytest.mark.parametrize("kind", ["pandas", "batch", "polars", "duckdb"])
def test_impute_gives_back_what_it_was_given(kind: str) -> None:
    if kind in kinds():
        data = kinds()[kind](TABLE)
    else:
        data = getattr(pytest.importorskip(kind), "from_arrow")(TABLE)  # noqa: B009
    done = impute(data, TYPES, **SHORT)
    output = table_of(done.output)
    assert kind == "batch" or type(done.output) is type(data)
    for name in TABLE.column_names:
        pairs = zip(TABLE[name].to_pylist(), output[name].to_pylist(), strict=True)
        assert all(new is not None and old in (None, new) for old, new in pairs)


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
def test_the_imputer_passes_the_checks_of_scikit_learn() -> None:
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    done = checks.check_estimator(GlfmImputer(**SHORT), on_fail=None, on_skip=None)
    failed = [(one["check_name"], str(one["exception"])) for one in done if one["exception"]]
    assert [one for one in failed if one[0] not in SKIPPED] == []


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
