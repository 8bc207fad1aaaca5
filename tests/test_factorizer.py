"""GlfmFactorizer: matrices of counts in, components and predictions out."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.stats import nbinom
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from glfm_cli import GlfmError, GlfmFactorizer
from glfm_cli.arrays import Array
from glfm_cli.estimators.count_matrix import counts_of
from glfm_cli.latent.cnpf import CnpfConfig
from glfm_cli.latent.cnpf.calibration import fit_factors
from glfm_cli.latent.cnpf.prediction import rates

QUICK: dict[str, Any] = {"components": 6, "restarts": 1, "threads": 1}
QUICK["settings"] = {"passes": 25, "dimensions": 2}
KINDS = ("csr_array", "csc_array", "coo_array", "csr_matrix", "lil_array")


def planted(seed: int, n_rows: int = 120, n_columns: int = 40) -> tuple[Array, Array, Array]:
    """Return counts of four components on columns of their own; of rows of two opposed kinds."""
    rng = np.random.default_rng(seed)
    columns = np.zeros((4, n_columns))
    for k in range(4):
        columns[k, k * 10 : k * 10 + 10] = rng.gamma(2.0, 1.0, 10)
    columns /= columns.sum(axis=1, keepdims=True)
    kind = rng.random(n_rows) < 0.5
    weights = rng.gamma(1.0, 15.0, (n_rows, 4))
    weights[kind, :2] *= 0.03
    weights[~kind, 2:] *= 0.03
    return rng.poisson(weights @ columns), columns, weights


@pytest.fixture(scope="module")
def X() -> Array:
    return planted(7)[0]


@pytest.fixture(scope="module")
def fitted(X: Array) -> GlfmFactorizer:
    return GlfmFactorizer(**QUICK).fit(X)


# What is found -------------------------------------------------------------------------------


def test_planted_components_and_the_signs_of_their_correlations_are_found() -> None:
    y, columns, weights = planted(3, n_rows=300)
    settings = {"passes": 60, "dimensions": 3, "merge_every": 15}
    model = GlfmFactorizer(components=8, restarts=2, tau=1.0, threads=1, settings=settings)
    theta = model.fit_transform(y)
    unit = model.components_ / np.linalg.norm(model.components_, axis=1, keepdims=True)
    cosine = (columns / np.linalg.norm(columns, axis=1, keepdims=True)) @ unit.T
    match = cosine.argmax(axis=1)
    assert (cosine.max(axis=1) > 0.95).all()
    rho = model.correlations_[np.ix_(match, match)]
    assert rho[0, 1] > 0.0
    assert rho[2, 3] > 0.0
    assert (rho[:2, 2:] < 0.0).all()
    truth = weights / weights.sum(axis=1, keepdims=True)
    assert np.corrcoef(theta[:, match].ravel(), truth.ravel())[0, 1] > 0.94


def test_components_are_ordered_shares_of_columns(fitted: GlfmFactorizer) -> None:
    np.testing.assert_allclose(fitted.components_.sum(axis=1), 1.0)
    assert (np.diff(fitted.shares_) <= 0.0).all()
    assert fitted.shares_.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(np.diag(fitted.correlations_), 1.0)


@pytest.mark.parametrize("model", ["cnpf", "scaled", "hgp", "diln"])
def test_new_rows_are_predicted_better_than_by_the_columns_shares(model: Any) -> None:
    y, _, _ = planted(4, n_rows=300)
    train, new = y[:240], y[240:]
    one = GlfmFactorizer(model, **QUICK).fit(train)
    share = train.sum(axis=0) / train.sum()
    unigram = np.exp(-(new * np.log(share)).sum() / new.sum())
    assert one.perplexity(new, 0.5) < 0.9 * unigram
    assert one.score(new) == pytest.approx(-np.log(one.perplexity(new, one.observed)))
    np.testing.assert_allclose(one.rates(new).sum(axis=1), new.sum(axis=1), rtol=0.25, atol=3.0)


def test_unseen_cells_are_not_zeros(fitted: GlfmFactorizer, X: Array) -> None:
    seen = np.ones(X.shape, dtype=bool)
    seen[:, :6] = False
    known, as_zeros = fitted.rates(X, seen), fitted.rates(np.where(seen, X, 0))
    errors = [np.abs((rates - X)[:, :6].sum(axis=1)).mean() for rates in (known, as_zeros)]
    assert errors[0] < 0.8 * errors[1]


def test_recommended_columns_have_no_count_and_are_the_likeliest(
    fitted: GlfmFactorizer, X: Array
) -> None:
    column, p = fitted.recommend(sparse.csr_array(X), 5)
    assert (np.take_along_axis(X, column, axis=1) == 0).all()
    assert (np.diff(p, axis=1) <= 0.0).all()
    folded = fitted._fitted.fold_in(counts_of(X), fitted._fit_config)
    u, i = np.indices(X.shape).reshape(2, -1)
    likely = np.zeros(X.size)
    for weight, draw in zip(folded.weights, folded.draws, strict=True):
        law = rates(draw, u, i)
        shape = law.mean**2 / law.var
        likely += weight * nbinom.sf(0, shape, shape / (shape + law.mean))
    likely = np.where(X > 0, -1.0, likely.reshape(X.shape))
    np.testing.assert_allclose(p, -np.sort(-likely, axis=1)[:, :5], rtol=1e-9)
    full = np.ones((1, X.shape[1]), dtype=int)
    full[0, 3] = 0
    column, p = fitted.recommend(full, 2)
    assert column.tolist() == [[3, -1]]
    assert np.isnan(p[0, 1])


def test_restarts_predict_together_the_one_of_the_largest_bound_first(X: Array) -> None:
    config = CnpfConfig(components=4, dimensions=2, passes=14)
    found = fit_factors(counts_of(X), config, 0, restarts=3)
    assert len(set(found.bounds)) == 3
    assert list(found.bounds) == sorted(found.bounds)[::-1]
    assert list(found.weights) == sorted(found.weights)[::-1]
    each = [replace(found, draws=(draw,), weights=(1.0,)) for draw in found.draws]
    average = np.average([one.rates(slice(9)) for one in each], axis=0, weights=found.weights)
    np.testing.assert_allclose(found.rates(slice(9)), average)
    average = np.average([one.p_any(slice(9)) for one in each], axis=0, weights=found.weights)
    np.testing.assert_allclose(found.p_any(slice(9)), average)


def test_weights_are_expected_counts(fitted: GlfmFactorizer, X: Array) -> None:
    weights = clone(fitted).set_params(output="weights", tau=fitted.tau_).fit_transform(X)
    theta = fitted.transform(X)
    np.testing.assert_allclose(theta, weights / weights.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(weights.sum(axis=1), fitted.rates(X).sum(axis=1))


# What the result must not depend on ----------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_of_a_matrix_gives_the_same(fitted: GlfmFactorizer, X: Array, kind: str) -> None:
    given = getattr(sparse, kind)(X.astype(np.float32))
    assert fitted.transform(given).tobytes() == fitted.transform(X).tobytes()


def test_threads_and_pickling_change_nothing(fitted: GlfmFactorizer, X: Array) -> None:
    other = clone(fitted).set_params(threads=2).fit(sparse.coo_array(X))
    assert other.components_.tobytes() == fitted.components_.tobytes()
    back = pickle.loads(pickle.dumps(fitted))
    assert back.transform(X).tobytes() == fitted.transform(X).tobytes()


def test_a_row_alone_is_the_row_among_others(fitted: GlfmFactorizer, X: Array) -> None:
    np.testing.assert_allclose(fitted.transform(X[5:6]), fitted.transform(X)[5:6])


def test_rows_and_columns_without_counts_stay() -> None:
    y, _, _ = planted(5)
    y[3], y[:, 11] = 0, 0
    model = GlfmFactorizer(**QUICK)
    theta = model.fit_transform(sparse.csr_array(y))
    assert theta.shape == (y.shape[0], 6)
    np.testing.assert_allclose(theta.sum(axis=1), 1.0)
    assert model.components_[:, 11].max() < model.components_.max() / 10
    rates = model.rates(y)
    assert np.isfinite(rates).all()
    assert rates[3].sum() < rates.sum(axis=1).mean() / 5


def test_a_few_rows_and_one_column_are_enough() -> None:
    for y in (np.array([[3], [0]]), np.array([[2, 0, 1]])):
        theta = GlfmFactorizer(**QUICK).fit_transform(y)
        np.testing.assert_allclose(theta.sum(axis=1), 1.0)


def test_minibatches_have_no_bound_and_one_start(X: Array) -> None:
    settings = {"minibatch": 40, "passes": 4, "dimensions": 2}
    model = GlfmFactorizer(components=4, restarts=3, tau=2.0, settings=settings).fit(X)
    assert len(model.bounds_) == 1
    assert np.isnan(model.bound_)


# Scikit-learn's conventions ------------------------------------------------------------------


def test_it_works_in_pipelines_and_searches(X: Array) -> None:
    steps = make_pipeline(GlfmFactorizer(**QUICK), StandardScaler())
    assert steps.fit_transform(sparse.csr_array(X)).shape == (X.shape[0], 6)
    searched = GridSearchCV(GlfmFactorizer(**QUICK, tau=2.0), {"components": [1, 4]}, cv=2).fit(X)
    assert searched.best_params_ == {"components": 4}


def test_names_of_a_data_frame_are_kept(X: Array) -> None:
    frame = pd.DataFrame(X, columns=[f"word{i}" for i in range(X.shape[1])])
    model = GlfmFactorizer(**QUICK, tau=1.0).fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.get_feature_names_out()[0] == "component0"
    assert model.n_features_in_ == X.shape[1]
    # New rows have their columns by these names, as the other estimators take them.
    turned = frame[frame.columns[::-1]]
    np.testing.assert_array_equal(model.transform(turned), model.transform(frame))
    np.testing.assert_array_equal(model.recommend(turned, 2)[0], model.recommend(X, 2)[0])
    with pytest.raises(GlfmError, match="'word0': the frame lacks a column"):
        model.transform(frame.rename(columns={"word0": "other"}))
    with pytest.raises(GlfmError, match="'more': the fitted matrix had no such column"):
        model.transform(frame.assign(more=1))


# Bad input -----------------------------------------------------------------------------------

GOOD = [[1, 0], [2, 3]]
TWICE = sparse.coo_array(([1, 2], ([0, 0], [1, 1])), shape=(2, 2))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([[1, 0], [2, -3]], r"pair \(2, 2\), found -3.0, expected a whole number from 0 on"),
        ([[1, 0.5], [2, 3]], r"pair \(1, 2\), found 0.5"),
        ([[1, np.nan], [2, 3]], r"pair \(1, 2\), found nan"),
        (sparse.csr_array([[1, np.inf], [2, 3]]), r"pair \(1, 2\), found inf"),
        (TWICE, r"pair \(1, 2\), expected one count for every pair"),
        (np.array([["a", "b"]]), "values of type <U1, expected counts"),
        (np.array([["a", 2]], dtype=object), "no numbers, expected counts"),
        ([[1j, 2]], "complex"),
        ([1, 2, 3], "1 dimension"),
        (np.zeros((0, 3)), "0 x 3"),
        (np.zeros((2, 3)), "no count above 0"),
    ],
)
def test_bad_matrices_are_one_clear_line(given: Any, said: str) -> None:
    with pytest.raises(GlfmError, match=said) as caught:
        GlfmFactorizer(**QUICK).fit(given)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"model": "lda"}, "one of cnpf, scaled, hgp, diln"),
        ({"restarts": 0}, "restarts, found 0"),
        ({"restarts": 1.5}, "restarts, found 1.5, expected a whole number from 1"),
        ({"seed": "1"}, "seed, found 1, expected a whole number from 0"),
        ({"observed": "0.1"}, "observed, found 0.1, expected a share"),
        ({"tau": "1"}, "tau, found 1, expected a number above 0"),
        ({"components": 0}, "components, found 0"),
        ({"observed": 1.0}, "observed, found 1.0"),
        ({"tau": 0.0}, "tau, found 0.0"),
        ({"output": "both"}, "proportions or weights"),
        ({"settings": {"components": 3}}, "an argument of its own"),
        ({"settings": {"inverse_link": "logit"}}, "exp or softplus"),
        ({"settings": {"dimension": 3}}, "no such setting"),
        ({"seed": -1}, "seed, found -1"),
        ({"threads": 0}, "threads, found 0"),
    ],
)
def test_bad_parameters_are_one_clear_line(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(GlfmError, match=said):
        GlfmFactorizer(**wrong).fit(GOOD)


def test_other_columns_and_missing_fits_are_errors(fitted: GlfmFactorizer, X: Array) -> None:
    with pytest.raises(GlfmError, match="39 columns, expected 40"):
        fitted.transform(X[:, 1:])
    with pytest.raises(GlfmError, match="found 41, expected a whole number from 1 to 40"):
        fitted.recommend(X, 41)
    with pytest.raises(GlfmError, match="booleans of 120 x 40"):
        fitted.rates(X, X)
    with pytest.raises(GlfmError, match="not fitted yet"):
        GlfmFactorizer().transform(X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_components_come_as_the_frame_that_is_chosen(X: Array, library: str) -> None:
    frames = pytest.importorskip(library)
    rows = pd.DataFrame(X[:9], index=list("abcdefghi"))
    model = GlfmFactorizer(**QUICK).fit(X)
    usual = model.transform(rows)
    found = model.set_output(transform=library).transform(rows)
    assert isinstance(found, frames.DataFrame)
    assert list(found.columns) == list(model.get_feature_names_out())
    assert np.array_equal(found.to_numpy(), usual)
    assert library == "polars" or found.index.equals(rows.index)
    assert isinstance(model.set_output(transform="default").transform(rows), np.ndarray)
