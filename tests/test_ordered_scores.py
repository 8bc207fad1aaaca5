"""Levels in an order: a number for rules to act on, unless labels say that no line fits them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import multinomial, norm

from glfm_cli import classify
from glfm_cli.classification.classifier import fit_classifier
from glfm_cli.classification.fit import Fitting
from glfm_cli.classification.level_scores import (
    FOLDS,
    SLOPES,
    level_scores,
    line_shares,
    places_of,
    scores_of,
    shares,
    strength,
    wants_scores,
)
from glfm_cli.classification.stratified import stratified_folds
from glfm_cli.encoding import EncodedColumn
from glfm_cli.latent.iqgme import IqgmeConfig
from glfm_cli.links import LinkConfig
from glfm_cli.schema import Column, ColumnType, Role

Array = np.ndarray[Any, Any]

LINE, BENT = np.array([-1.0, -0.4, 0.2, 0.8]), np.array([1.2, -0.6, -0.7, -0.5])


def graded(x: Array) -> EncodedColumn:
    seen = ~np.isnan(x)
    column = Column("x", Role.FEATURE, ColumnType.ORDINAL)
    return EncodedColumn(column, 0, x, seen, ~seen, ("a", "b", "c", "d"))


def planted(effect: Array, seed: int, n: int = 600) -> tuple[EncodedColumn, Array, Array]:
    """Return a column of four levels, labels, and the probabilities of the second of them."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 4, n).astype(np.float64)
    p = 1.0 / (1.0 + np.exp(-effect[x.astype(int)]))
    return graded(x), (rng.random(n) < p).astype(np.float64), p


def test_the_line_is_where_its_posterior_is_highest(seed: int) -> None:
    """Against a grid around it, by the laws of SciPy."""
    rng = np.random.default_rng(seed)
    count = rng.multinomial(12, [0.5, 0.3, 0.2], 5).astype(np.float64)
    count[0] = [12.0, 0.0, 0.0]
    places = np.array([-1.5, -0.5, 0.1, 0.7, 1.4])
    q = line_shares(count, places)
    logits = np.log(q[:, 1:] / q[:, :1])
    slopes, starts = np.polyfit(places, logits, 1)
    np.testing.assert_allclose(logits, places[:, None] * slopes + starts, atol=1e-9)

    def log_p(a: Array, b: Array) -> float:
        p = np.column_stack([np.ones(5), np.exp(a + places[:, None] * b)])
        p /= p.sum(axis=1, keepdims=True)
        of_rows = multinomial.logpmf(count, 12, p).sum()
        return float(of_rows + norm.logpdf(b, 0.0, np.sqrt(SLOPES)).sum())

    best = log_p(starts, slopes)
    for d in range(2):
        step = 0.01 * (np.arange(2) == d)
        for sign in (-1.0, 1.0):
            assert log_p(starts + sign * step, slopes) < best
            assert log_p(starts, slopes + sign * step) < best


def test_levels_off_their_line_are_drawn_to_it() -> None:
    count = np.array([[30.0, 10.0], [8.0, 20.0], [12.0, 19.0], [9.0, 30.0]])
    places = np.array([-1.2, -0.3, 0.4, 1.2])
    q, share = line_shares(count, places), shares(count)
    p = (count + 5.0 * q) / (count.sum(axis=1, keepdims=True) + 5.0)
    expected = np.log(p[:, 1] / p[:, 0]) - np.log(share[1] / share[0])
    np.testing.assert_allclose(scores_of(count, 5.0, places)[:, 0], expected)
    assert not scores_of(count, np.inf, places).any()


@pytest.mark.parametrize("effect", [LINE, BENT], ids=["line", "bent"])
def test_levels_on_a_line_stay_numbers(effect: Array, seed: int) -> None:
    found = []
    for i in range(30):
        e, code, _ = planted(effect, seed + i)
        count = np.zeros((4, 2))
        np.add.at(count, (e.x.astype(int), code.astype(int)), 1.0)
        found.append(np.isfinite(strength(count, places_of(e))))
    assert np.mean(found) > 0.9 if effect is BENT else np.mean(found) < 0.1


def test_the_scores_of_a_row_do_not_know_its_label(seed: int) -> None:
    e, code, _ = planted(BENT, seed)
    fold = stratified_folds(code, FOLDS, np.random.default_rng(0))
    found = level_scores(e.x, code, fold, 4, 2, places_of(e))
    own, there = fold == 3, e.x.astype(int)
    count = np.zeros((4, 2))
    np.add.at(count, (there, code.astype(int)), 1.0)
    s = strength(count, places_of(e))
    np.testing.assert_allclose(found.levels, scores_of(count, s, places_of(e)))
    np.add.at(count, (there[own], code[own].astype(int)), -1.0)
    expected = scores_of(count, s, places_of(e))
    np.testing.assert_allclose(found.rows[own], expected[there[own]])


def test_a_column_off_its_line_is_one_feature_that_tells_more(seed: int) -> None:
    e, code, p = planted(BENT, seed, 1200)
    old, new = np.arange(600), np.arange(600, 1200)
    how = Fitting(IqgmeConfig(stack=False), LinkConfig(), chains=2)
    made = fit_classifier([e.take(old)], code[old], 2, how)
    (feature,) = made.seen.features
    assert feature.n_latent == 1
    assert feature.codes[0, 0] * BENT[0] > 0.0 > feature.codes[1:, 0].max() * BENT[0]
    q = made.probabilities([e.take(new)])[:, 1]
    assert np.abs(q - p[new]).max() < 0.12  # of a line 0.25
    line, labels, _ = planted(LINE, seed)
    (number,) = fit_classifier([line], labels, 2, how).seen.features
    assert not number.share.size


def test_levels_have_scores_only_where_these_are_fewer() -> None:
    e = graded(np.arange(4.0))
    assert [wants_scores(e, n) for n in (2, 3, 4)] == [True, True, False]
    assert places_of(e) == pytest.approx([-1.37, -0.35, 0.35, 1.37], abs=0.01)


def test_missing_cells_of_such_a_column_are_completed(seed: int) -> None:
    e, code, _ = planted(BENT, seed)
    hidden = np.random.default_rng(seed).random(600) < 0.2
    names = np.array(["a", "b", "c", "d"])[e.x.astype(int)]
    label = np.where(code == 1.0, "yes", "no")
    table = pa.table({"x": pa.array(names, mask=hidden), "label": label})
    types = {"columns": {"x": {"type": "ordinal", "levels": list("abcd")}, "label": "categorical"}}
    found = classify(table, types, target="label", complete=True, chains=1, seed=0).completed
    assert found is not None
    assert set(found["x"].to_pylist()) <= set("abcd")
    np.testing.assert_array_equal(found["x"].to_numpy()[~hidden], names[~hidden])
