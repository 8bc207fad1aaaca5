"""Triplets to the cells of a matrix and back to long form, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from glfm_cli import GlfmError, impute
from glfm_cli.completion.matrix import missingness
from glfm_cli.completion.matrix.missingness import missingness_features
from glfm_cli.completion.matrix.pairs import unobserved
from glfm_cli.encoding import encode_triplets, pack_trials, successes_of
from glfm_cli.latent.model import Entries
from glfm_cli.links.binomial import BinomialLink
from glfm_cli.links.law import normal
from glfm_cli.schema import Schema

RATINGS = Schema.from_dict(
    {"columns": {"u": "row", "i": "column", "r": {"type": "real", "role": "value"}}}
)
TRIALS = Schema.from_dict(
    {
        "columns": {
            "u": "row",
            "i": "column",
            "h": {"type": "binomial", "trials": "n", "role": "value"},
            "n": "ignore",
        }
    }
)
FEW = {"chains": 2, "warmup": 20, "draws": 20, "threads": 1}


def ratings(**columns: list) -> pa.Table:
    return pa.table({"u": ["a", "b", "a"], "i": [1, 1, 2], "r": [1.0, 2.0, 4.0], **columns})


# Encoding ------------------------------------------------------------------------------------


@given(st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1), st.randoms())
def test_encoding_lists_every_cell_once_in_order(cells: set, random: object) -> None:
    listed = sorted(cells)
    random.shuffle(listed)
    table = pa.table(
        {
            "u": [f"u{i}" for i, _ in listed],
            "i": [j for _, j in listed],
            "r": [10.0 * i + j for i, j in listed],
        }
    )
    found = encode_triplets(table, RATINGS)
    assert np.all(np.diff(found.row.astype(int) * 100 + found.column) > 0)
    back = {
        (found.rows.keys[i], int(found.columns.keys[j]), x)
        for i, j, x in zip(found.row, found.column, found.value.x, strict=True)
    }
    assert back == {(f"u{i}", j, 10.0 * i + j) for i, j in cells}
    empty = {
        (int(i), int(j))
        for part in unobserved(found, every=False)
        for i, j in zip(part.row, part.column, strict=True)
    }
    seen = set(zip(found.row.tolist(), found.column.tolist(), strict=True))
    every = {(i, j) for i in range(len(found.rows)) for j in range(len(found.columns))}
    assert empty == every - seen


def test_repeated_trials_are_summed_and_none_is_no_cell() -> None:
    table = pa.table({"u": [1, 1, 2], "i": [5, 5, 5], "h": [1, 2, 0], "n": [2, 4, 0]})
    found = encode_triplets(table, TRIALS)
    assert found.trials is not None
    assert (successes_of(found.value.x).tolist(), found.trials.tolist()) == ([3.0], [6.0])
    assert found.rows.keys == ("1", "2")


@pytest.mark.parametrize(
    ("table", "schema", "message"),
    [
        (
            ratings(u=["a", "b", "a"], i=[1, 1, 1]),
            RATINGS,
            "row 3: the pair u 'a', i '1' was in row 1 already, expected one value for each pair",
        ),
        (
            pa.table({"u": ["1", "1.0"], "i": ["x", "y"], "r": [1.0, 2.0]}),
            RATINGS,
            "column 'u', row 2: found '1.0', expected one way to write the id '1'",
        ),
        (
            ratings(u=["a", None, "b"]),
            RATINGS,
            "column 'u', row 2: found 'None', expected an id",
        ),
        (
            pa.table({"u": [1, 2], "i": [1, 1], "h": [1, 5], "n": [1, 4]}),
            TRIALS,
            "column 'h', row 2: found 5 successes, expected at most the 4 trials in 'n'",
        ),
        (
            pa.table({"u": [1, 2], "i": [1, 1], "h": [1, 0], "n": [1, -4]}),
            TRIALS,
            "column 'n', row 2: found -4",
        ),
        (
            pa.table({"u": [1, 2], "i": [1, 1], "h": [1, 0], "n": [1.0, 2.5]}),
            TRIALS,
            "column 'n', row 2: found 2.5",
        ),
        (
            pa.table({"u": [1, 2], "i": [1, 1], "h": [0.5, 0.0], "n": [1, 2]}),
            TRIALS,
            "column 'h', row 1: found 0.5",
        ),
        (
            pa.table({"u": [1, 2], "i": [1, 1], "h": [1, 0], "n": [None, 2]}),
            TRIALS,
            "column 'h', row 1: found 1 successes, expected the number of trials where there are "
            "successes",
        ),
        (
            pa.table({"u": [1], "i": [1], "r": pa.array([None], pa.float64())}),
            RATINGS,
            "column 'r': no cell of it is observed",
        ),
        (
            pa.table({"u": ["1", "2"], "i": ["1", "1"], "r": ["4", "<3"]}),
            RATINGS,
            "column 'r', row 2: found '<3', expected a number, as values of pairs can be no "
            "intervals. List the text under the column's `missing:`",
        ),
    ],
)
def test_bad_triplets_are_refused_in_one_line(
    table: pa.Table, schema: Schema, message: str
) -> None:
    with pytest.raises(GlfmError) as error:
        encode_triplets(table, schema)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


# The binomial link ---------------------------------------------------------------------------


def test_hits_among_trials_have_the_binomial_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    trials = rng.integers(1, 30, size=50).astype(float)
    hits = np.floor(rng.random(50) * (trials + 1))
    link, x = BinomialLink.of("h"), pack_trials(hits, trials)
    eta = rng.normal(size=50)
    expected = stats.binom.logpmf(hits, trials, stats.norm.cdf(eta))
    found = link.log_density(x, normal(eta, 1e-12), {})
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.array_equal(link.own_variances(x), 1.0 / trials)


def test_pseudo_observations_have_the_mean_of_their_trials(seed: int) -> None:
    n = 40_000
    link, x = BinomialLink.of("h"), pack_trials(np.full(n, 2.0), np.full(n, 5.0))
    y = np.zeros((n, 1))
    link.augment(x, np.full(n, 0.7), 0.0, {}, np.random.default_rng(seed), y)
    above = stats.truncnorm(-0.7, np.inf, loc=0.7)
    below = stats.truncnorm(-np.inf, -0.7, loc=0.7)
    mean = (2 * above.mean() + 3 * below.mean()) / 5
    var = (2 * above.var() + 3 * below.var()) / 25
    assert abs(y.mean() - mean) < 4 * np.sqrt(var / n)
    assert abs(y.var() / var - 1) < 0.04


# Predictions ---------------------------------------------------------------------------------


def planted(seed: int) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Return ratings of a planted matrix of rank 2, its means, and which cells are seen."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 30)) + rng.normal(size=(40, 1)) + 3.0
    seen = rng.random(X.shape) < 0.5
    row, column = np.nonzero(seen)
    values = X[seen] + 0.3 * rng.normal(size=row.size)
    return pa.table({"u": row, "i": column, "r": values}), X, seen


def test_unobserved_cells_of_a_planted_matrix_are_predicted(seed: int) -> None:
    table, X, seen = planted(seed)
    completion: Any = impute(table, RATINGS, **{**FEW, "warmup": 60}, interval=0.9)
    found = completion.to_table()
    row, column = found["u"].to_numpy(), found["i"].to_numpy()
    assert found.num_rows == (~seen).sum()
    assert not seen[row, column].any()
    truth = X[row, column]
    error = np.sqrt(np.mean((found["estimate"].to_numpy() - truth) ** 2))
    assert error < 0.5 * truth.std()
    y = truth + 0.3 * np.random.default_rng(seed + 1).normal(size=truth.size)
    inside = (found["lower"].to_numpy() <= y) & (y <= found["upper"].to_numpy())
    assert 0.8 < inside.mean() < 0.97
    assert completion.to_dict()["observed"] == seen.sum()


def test_features_alone_complete_a_row_that_has_no_cell(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = rng.normal(size=60)
    seen = rng.random((60, 12)) < 0.5
    seen[50:] = False  # ids that only the table of features has
    row, column = np.nonzero(seen)
    slope = np.linspace(-2.0, 2.0, 12)
    values = size[row] * slope[column] + 0.2 * rng.normal(size=row.size)
    table = pa.table({"u": row, "i": column, "r": values})
    features = pa.table({"id": np.arange(60), "size": size})
    types = Schema.from_dict({"columns": {"id": "id", "size": "real"}})
    requested = pa.table({"u": np.repeat(np.arange(50, 60), 12), "i": np.tile(np.arange(12), 10)})
    options = {"pairs": requested, "row_features": (features, types)}
    found = impute(table, RATINGS, **options, **FEW).to_table()
    truth = size[requested["u"].to_numpy()] * slope[requested["i"].to_numpy()]
    assert np.corrcoef(found["mean"].to_numpy(), truth)[0, 1] > 0.9
    assert found["u"].to_pylist() == requested["u"].to_pylist()


def test_predictions_come_as_what_was_given() -> None:
    pandas = pytest.importorskip("pandas")
    done = impute(ratings().to_pandas(), RATINGS, **FEW)
    assert isinstance(done.output, pandas.DataFrame)
    assert list(done.output.columns) == done.to_table().column_names
    assert isinstance(impute(ratings(), RATINGS, **FEW).output, pa.Table)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_options_take_the_frames_that_tables_may_be(kind: str) -> None:
    library = pytest.importorskip(kind)

    def frame(**columns: list) -> Any:
        return library.DataFrame(columns)

    ages, types = {"u": ["a", "b"], "age": [30.0, 40.0]}, {"columns": {"u": "id", "age": "real"}}
    given = {"pairs": pa.table({"u": ["b"], "i": [2]}), "row_features": (pa.table(ages), types)}
    frames = {"pairs": frame(u=["b"], i=[2]), "row_features": (frame(**ages), types)}
    expected = impute(ratings(), RATINGS, **FEW, **given).to_table()
    assert impute(ratings(), RATINGS, **FEW, **frames).to_table() == expected
    best = impute(ratings(), RATINGS, **FEW, recommend=1, rows=frame(u=["b"])).to_table()
    assert best["u"].to_pylist() == ["b"]


def test_levels_come_with_probabilities_and_numbers_with_their_own_mean(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row, column = np.nonzero(rng.random((20, 15)) < 0.5)
    levels = ["0.5", "1", "1.5"]
    values = rng.integers(0, 3, size=row.size)
    table = pa.table({"u": row, "i": column, "r": [levels[v] for v in values]})
    value = {"type": "ordinal", "levels": levels, "role": "value"}
    schema = {"columns": {"u": "row", "i": "column", "r": value}}
    found = impute(table, schema, **FEW).to_table()
    p = np.column_stack([found[f"p_{level}"].to_numpy() for level in levels])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(found["mean"].to_numpy(), p @ [0.5, 1.0, 1.5])
    assert set(found["estimate"].to_pylist()) <= set(levels)


def test_means_of_levels_in_words_are_positions_from_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row, column = np.nonzero(rng.random((12, 9)) < 0.5)
    levels = ["no", "maybe", "yes"]
    table = pa.table({"u": row, "i": column, "r": [levels[v] for v in (row + column) % 3]})
    value = {"type": "ordinal", "levels": levels, "role": "value"}
    schema = {"columns": {"u": "row", "i": "column", "r": value}}
    found = impute(table, schema, **FEW).to_table()
    p = np.column_stack([found[f"p_{level}"].to_numpy() for level in levels])
    np.testing.assert_allclose(found["mean"].to_numpy(), p @ [1.0, 2.0, 3.0])


def test_a_seed_fixes_the_predictions_whatever_the_threads(seed: int) -> None:
    table = planted(seed)[0]
    few = {**FEW, "warmup": 3, "draws": 3, "seed": 5}
    one = impute(table, RATINGS, **few).to_table()
    two = impute(table, RATINGS, **{**few, "threads": 2}).to_table()
    assert one.equals(two)


# The pattern of observed cells ---------------------------------------------------------------


@given(st.integers(2, 9), st.integers(2, 7), st.integers(0, 2**32 - 1))
def test_missingness_features_span_the_leading_singular_vectors(
    n_rows: int, n_columns: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    mask = rng.random((n_rows, n_columns)) < 0.5
    mask[0, 0] = True
    row, column = np.nonzero(mask)
    entries = Entries(row.astype(np.int32), column.astype(np.int32), mask.shape)
    requested = min(3, n_rows, n_columns)
    found = missingness_features(entries, requested)
    left, size, right = np.linalg.svd(mask.astype(float), full_matrices=False)
    n = int(np.sum(size[:requested] > 1e-6 * size[0]))
    for features, vectors in zip(found, (left[:, :n], right[:n].T), strict=True):
        assert features.shape[1] <= requested
        np.testing.assert_allclose(features.mean(axis=0), 0.0, atol=1e-9)
        np.testing.assert_allclose(features.std(axis=0), 1.0)
        if n == size.size or size[n - 1] - size[n] > 1e-6 * size[0]:  # else not unique
            centred = vectors - vectors.mean(axis=0)
            rank = np.linalg.matrix_rank(centred, tol=1e-6)
            both = np.concatenate([features, centred], axis=1)
            assert np.linalg.matrix_rank(both, tol=1e-5) == rank


def test_long_matrices_get_the_same_missingness_features_as_short_ones(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    mask = np.random.default_rng(seed).random((60, 40)) < np.linspace(0.05, 0.9, 40)
    row, column = np.nonzero(mask)
    entries = Entries(row.astype(np.int32), column.astype(np.int32), mask.shape)
    whole = missingness_features(entries, 2)
    monkeypatch.setattr(missingness, "DENSE", 1)
    for one, other in zip(whole, missingness_features(entries, 2), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_covariates_tell_who_is_observed_with_whom(seed: int) -> None:
    rng = np.random.default_rng(seed)
    alike = np.repeat([0, 1], 30)[:, None] == np.repeat([0, 1], 15)[None, :]
    row, column = np.nonzero(rng.random(alike.shape) < np.where(alike, 0.45, 0.1))
    values = alike[row, column] + 0.5 * rng.normal(size=row.size)
    table = pa.table({"u": row, "i": column, "r": values})
    completion: Any = impute(table, RATINGS, missingness_features=2, **FEW)
    found = completion.to_table()
    kind = np.repeat([-1.0, 1.0], 30)
    features = completion.data.covariates[0]
    assert features.shape == (60, 2)
    assert np.max(np.abs(features.T @ kind)) / 60 > 0.8
    assert found.num_rows == alike.size - row.size


def test_more_missingness_features_than_there_can_be_are_refused() -> None:
    with pytest.raises(GlfmError, match="missingness_features, found 3, expected a whole number"):
        impute(ratings(), RATINGS, missingness_features=3)
