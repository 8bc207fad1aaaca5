"""GlfmClassifier: frames and matrices with missing cells in, labels of their own type out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from glfm_cli import GlfmClassifier, GlfmError

FAST: dict[str, Any] = {
    "chains": 2,
    "threads": 1,
    "settings": {"experts": 4, "short": 5, "iterations": 20},
}


def moons(n: int, seed: int, gaps: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Return points with missing cells, whose label flips from one cluster to the other."""
    rng = np.random.default_rng(seed)
    group = rng.integers(2, size=n)
    x = rng.standard_normal((n, 2)) + 5.0 * np.column_stack([group, np.zeros(n)])
    y = np.where((x[:, 1] > 0) == (group == 1), "up", "down")
    x[rng.random(x.shape) < gaps] = np.nan
    return x, y


@pytest.fixture(scope="module")
def fitted() -> GlfmClassifier:
    return GlfmClassifier(**FAST).fit(*moons(120, 1))


def test_a_matrix_with_gaps_is_learnt_and_predicted(fitted: GlfmClassifier) -> None:
    x, y = moons(200, 2, gaps=0.0)
    assert list(fitted.classes_) == ["down", "up"]
    p = fitted.predict_proba(x)
    assert p.shape == (200, 2)
    assert np.allclose(p.sum(axis=1), 1.0)
    assert set(fitted.predict(x)) <= {"down", "up"}
    assert np.array_equal(np.exp(fitted.predict_log_proba(x)), np.exp(np.log(p)))
    assert fitted.score(x, y) > 0.85


def test_classes_keep_their_type_and_order() -> None:
    x, y = moons(60, 1)
    model = GlfmClassifier(**FAST).fit(x, np.where(y == "up", 11, 2))
    assert model.classes_.tolist() == [2, 11]
    assert set(model.predict(x)) <= {2, 11}


def test_missing_labels_are_no_class(fitted: GlfmClassifier) -> None:
    x, y = moons(120, 1)
    some = y.astype(object)
    some[::5] = None
    model = GlfmClassifier(**FAST).fit(x, some)
    assert list(model.classes_) == ["down", "up"]
    assert model.classification_.n_labelled == 96


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize(
    "shaped",
    [
        lambda y: y,
        lambda y: y[:, None],
        lambda y: pd.DataFrame({"y": y}),
        lambda y: pd.Series(pd.array(y, dtype="Int64")),
        lambda y: y.astype(float),
        lambda y: y.astype(str),
    ],
    ids=["array", "column", "frame", "nullable", "floats", "texts"],
)
def test_the_score_is_of_labels_in_any_form(shaped: Any) -> None:
    x, y = moons(80, 1)
    code = (y == "up").astype(int)
    model = GlfmClassifier(**FAST).fit(x, code)
    assert model.score(x, shaped(code)) == np.mean(model.predict(x) == code)


@pytest.mark.parametrize(
    "missing",
    [
        lambda y, gone: np.where(gone, np.nan, y),
        lambda y, gone: np.where(gone, None, y),
        lambda y, gone: pd.Series(pd.array(y, dtype="Int64")).mask(gone),
        lambda y, gone: np.ma.array(y, mask=gone),
    ],
    ids=["NaN", "None", "NA", "mask"],
)
def test_rows_without_a_label_are_learnt_from_and_not_scored(missing: Any) -> None:
    x, y = moons(80, 1)
    code, gone = (y == "up").astype(int), np.arange(80) < 30
    labels = missing(code, gone)
    model = GlfmClassifier(**FAST).fit(x, labels)
    assert model.classes_.tolist() == [0, 1]
    assert model.score(x, labels) == model.score(x[30:], code[30:])


def test_a_score_needs_a_label_for_each_row_and_some_that_are_there(
    fitted: GlfmClassifier,
) -> None:
    x, y = moons(20, 1)
    with pytest.raises(GlfmError, match="found shape \\(19,\\), expected \\(20,\\)"):
        fitted.score(x, y[:19])
    with pytest.raises(GlfmError, match="every label of y is missing"):
        fitted.score(x, np.full(20, np.nan))
    with pytest.raises(GlfmError, match="every label of y is missing"):
        GlfmClassifier(**FAST).fit(x, np.full(20, np.nan))
    with pytest.raises(GlfmError, match="y mixes texts and numbers"):
        GlfmClassifier(**FAST).fit(x, np.array([1, "a"] * 10, dtype=object))


def test_a_frame_of_mixed_columns() -> None:
    x, y = moons(80, 3)
    frame = pd.DataFrame({"y": x[:, 0], "b": x[:, 1], "kind": np.where(x[:, 0] > 2, "far", "near")})
    types = {"columns": {"y": "real", "b": "real", "kind": "categorical"}}
    model = GlfmClassifier(types, **FAST).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["y", "b", "kind"]
    assert model.predict_proba(frame[["kind", "b", "y"]]).shape == (80, 2)
    guessed = (GlfmClassifier(given, **FAST).fit(frame, y) for given in (None, "auto"))
    assert np.array_equal(*(model.predict_proba(frame) for model in guessed))


def test_effort_says_how_many_starts_there_are() -> None:
    x, y = moons(80, 3)
    plain = {"threads": 1, "settings": FAST["settings"]}
    quick = GlfmClassifier(effort="quick", **plain).fit(x, y)
    assert np.array_equal(quick.predict_proba(x), GlfmClassifier(**FAST).fit(x, y).predict_proba(x))


@pytest.mark.parametrize("nothing", [None, np.nan, pd.NA], ids=repr)
def test_a_single_row_may_know_one_cell_alone(nothing: Any) -> None:
    x, y = moons(80, 3, gaps=0.0)
    kind = np.where(x[:, 0] > 2, "far", "near")
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "kind": kind})
    model = GlfmClassifier(**FAST).fit(frame, y)
    row = pd.DataFrame([{"a": 5.0, "b": nothing, "kind": nothing}])
    empty = frame.head(1).assign(a=5.0, b=np.nan, kind=pd.Series([None], dtype=object))
    assert np.array_equal(model.predict_proba(row), model.predict_proba(empty))


@pytest.mark.parametrize("as_matrix", [False, True], ids=["frame", "matrix"])
def test_a_feature_that_counts_the_rows_is_a_feature(as_matrix: bool) -> None:
    frame = pd.DataFrame({"dose": np.arange(60), "v": np.random.default_rng(1).normal(size=60)})
    y = np.where(frame["dose"] > 30, "up", "down")
    X = frame.to_numpy() if as_matrix else frame
    assert GlfmClassifier(**FAST).fit(X, y).score(X, y) > 0.9
    alone = frame.assign(v=1.0)
    X = alone.to_numpy() if as_matrix else alone
    assert GlfmClassifier(**FAST).fit(X, y).score(X, y) > 0.9


def test_a_column_named_like_an_id_is_none() -> None:
    frame = pd.DataFrame({"id": np.arange(60), "v": np.random.default_rng(1).normal(size=60)})
    y = np.where(frame["v"] > 0, "up", "down")
    assert GlfmClassifier(**FAST).fit(frame, y).classification_.n_features == 1


@pytest.mark.parametrize(
    ("kind", "shift", "numbers", "like"),
    [
        ("count", 0, [71.5, 8.4, -3.0], [72, 8, 0]),
        ("positive", 1, [0.0, -1.0], [1, 1]),
        ({"type": "real", "bounds": [0, 80]}, 0, [-0.5, 90.0], [0, 80]),
    ],
    ids=["count", "positive", "bounds"],
)
def test_a_number_that_its_column_cannot_hold_is_the_nearest_that_it_can(
    kind: Any, shift: int, numbers: list[float], like: list[int]
) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": shift + np.arange(80.0), "v": rng.normal(size=80)})
    types = {"columns": {"age": kind, "v": "real"}}
    y = np.where(frame["age"] > 40, "up", "down")
    model = GlfmClassifier(types, **FAST).fit(frame, y)
    p, expected = (
        model.predict_proba(pd.DataFrame({"age": np.array(ages, dtype=float), "v": 0.0}))
        for ages in (numbers, like)
    )
    assert np.array_equal(p, expected)
    with pytest.raises(GlfmError, match="column 'age', row 1"):
        model.set_params(unseen="error").predict(frame.head(1).assign(age=numbers[0] - 99.25))


def test_a_text_among_numbers_of_new_rows_is_missing() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"age": np.arange(80.0).astype(str), "v": rng.normal(size=80)})
    model = GlfmClassifier({"columns": {"age": "real", "v": "real"}}, **FAST)
    model.fit(frame, np.where(np.arange(80) > 40, "up", "down"))
    texts, gaps = (frame.head(3).assign(age=["70", one, "2"]) for one in ("ND", None))
    assert np.array_equal(model.predict_proba(texts), model.predict_proba(gaps))


def test_the_ways_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    from sklearn.base import clone, is_classifier
    from sklearn.model_selection import cross_val_score

    model = GlfmClassifier(**FAST)
    assert is_classifier(model)
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(model, *moons(60, 1), cv=2).shape == (2,)


def test_what_is_wrong_is_said(fitted: GlfmClassifier) -> None:
    x, y = moons(30, 1)
    with pytest.raises(GlfmError, match="not fitted yet"):
        GlfmClassifier().predict(x)
    with pytest.raises(GlfmError, match="y has one class only"):
        GlfmClassifier(**FAST).fit(x, np.full(30, "up"))
    with pytest.raises(GlfmError, match="expected \\(30,\\)"):
        GlfmClassifier(**FAST).fit(x, y[:20])
    with pytest.raises(GlfmError, match="no parameter 'depth'"):
        GlfmClassifier().set_params(depth=3)
