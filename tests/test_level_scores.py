"""Columns of many levels as the mixture of experts sees them: by what levels say of the label."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import betabinom, norm

from glfm_cli.classification.classifier import fit_classifier
from glfm_cli.classification.features import LatentColumn
from glfm_cli.classification.fit import Fitting
from glfm_cli.classification.level_codes import BLUR
from glfm_cli.classification.level_scores import (
    FOLDS,
    LevelScores,
    level_scores,
    scores_of,
    strength,
)
from glfm_cli.classification.stratified import stratified_folds
from glfm_cli.encoding import EncodedColumn
from glfm_cli.latent.iqgme import IqgmeConfig
from glfm_cli.links import LinkConfig, of_levels
from glfm_cli.schema import Column, ColumnType, Role

Array = np.ndarray[Any, Any]

MANY = 30


def levels(x: Array, n_levels: int, name: str = "x") -> EncodedColumn:
    names, seen = tuple(f"L{r}" for r in range(n_levels)), ~np.isnan(x)
    column = Column(name, Role.FEATURE, ColumnType.CATEGORICAL)
    return EncodedColumn(column, 0, x, seen, ~seen, names)


def numbers(x: Array, name: str) -> EncodedColumn:
    seen = np.ones(x.size, dtype=bool)
    return EncodedColumn(Column(name, Role.FEATURE, ColumnType.REAL), 1, x, seen, ~seen, ())


def counts(rng: np.random.Generator, s: float, rows: int = 40) -> Array:
    """Return counts of two labels in levels whose shares are beta of strength s, mean 0.4."""
    p = rng.beta(0.4 * s, 0.6 * s, size=200)
    first = rng.binomial(rows, p)
    return np.column_stack([first, rows - first]).astype(np.float64)


@pytest.mark.parametrize("s", [1.0, 8.0])
def test_the_strength_is_the_likeliest(s: float, seed: int) -> None:
    """Against the beta-binomial law of SciPy on a grid."""
    count = counts(np.random.default_rng(seed), s)
    share = (count.sum(axis=0) + 0.5) / (count.sum() + 1.0)
    found = strength(count)
    grid = found * np.array([0.8, 1.0, 1.25])
    log_p = [betabinom.logpmf(count[:, 0], count.sum(axis=1), *(one * share)).sum() for one in grid]
    assert np.argmax(log_p) == 1
    assert found == pytest.approx(s, rel=0.5)


def test_levels_that_differ_by_chance_alone_say_nothing(seed: int) -> None:
    said = [
        strength(np.random.default_rng([seed, i]).multinomial(9, [0.6, 0.3, 0.1], 50) * 1.0)
        for i in range(60)
    ]
    assert np.mean(np.isinf(said)) > 0.85
    assert not scores_of(np.array([[5.0, 9.0], [9.0, 5.0]]), np.inf).any()


def test_scores_are_logits_of_shares_drawn_to_those_of_all() -> None:
    count = np.array([[6.0, 2.0, 1.0], [1.0, 7.0, 4.0]])
    share = (count.sum(axis=0) + 0.5) / 22.5
    p = np.array([(row + 3.0 * share) / (row.sum() + 3.0) for row in count])
    expected = np.log(p / p[:, :1]) - np.log(share / share[0])
    np.testing.assert_allclose(scores_of(count, 3.0), expected[:, 1:])


def planted(seed: int, n: int = 600, sd: float = 1.2) -> tuple[Array, Array, Array, Array]:
    """Return a number, a column of many levels, labels, and their true probabilities."""
    rng = np.random.default_rng(seed)
    effect = sd * rng.standard_normal(MANY)
    z, x = rng.standard_normal(n), rng.integers(0, MANY, n).astype(np.float64)
    p = 1.0 / (1.0 + np.exp(-z - effect[x.astype(int)]))
    return z, x, (rng.random(n) < p).astype(np.float64), p


def folds(code: Array) -> Array:
    return stratified_folds(code, FOLDS, np.random.default_rng(0))


def test_the_scores_of_a_row_do_not_know_its_label(seed: int) -> None:
    _, x, code, _ = planted(seed)
    x[:20] = np.nan
    fold = folds(code)
    found = level_scores(x, code, fold, MANY, 2)
    own = fold == 3
    flipped = np.where(own, 1.0 - code, code)  # of one fold, as many of each label as before
    flipped[np.flatnonzero(own)] = np.random.default_rng(1).permutation(code[own])
    again = level_scores(x, flipped, fold, MANY, 2)
    seen = own & ~np.isnan(x)
    np.testing.assert_allclose(found.rows[seen], again.rows[seen], rtol=0.2, atol=0.02)
    assert not np.allclose(found.levels, again.levels, rtol=0.01)
    assert not found.rows[:20].any()
    without = code.copy()
    without[own] = np.nan  # rows without a label have what all labels say
    there = level_scores(x, without, fold, MANY, 2)
    np.testing.assert_allclose(there.rows[seen], there.levels[x[seen].astype(int)])
    assert found.share == pytest.approx(np.bincount(x[20:].astype(int)) / 580)


def how(**settings: Any) -> Fitting:
    return Fitting(IqgmeConfig(**settings), LinkConfig(), chains=2)


def loss(columns: list[EncodedColumn], new: list[EncodedColumn], code: Array, p: Array) -> float:
    """Return how far forecasts of rows whose labels have the probabilities p are from them."""
    q = fit_classifier(columns, code, 2, how()).probabilities(new)[:, 1]
    best = p * np.log(p) + (1 - p) * np.log(1 - p)
    return float(np.mean(best - p * np.log(q) - (1 - p) * np.log(1 - q)))


def test_many_levels_help_where_they_tell_and_cost_nothing_where_they_do_not(seed: int) -> None:
    z, x, code, p = planted(seed, 1200)
    noise = np.random.default_rng([seed, 1]).integers(0, 58, (3, 1200)).astype(np.float64)
    old, new = np.arange(600), np.arange(600, 1200)

    def apart(*columns: EncodedColumn) -> float:
        rows = [[e.take(at) for e in columns] for at in (old, new)]
        return loss(*rows, code[old], p[new])

    alone = apart(numbers(z, "z"))
    assert apart(numbers(z, "z"), levels(x, MANY)) < alone - 0.02
    beside = [apart(numbers(z, "z"), levels(one, 58)) for one in noise]
    assert np.median(beside) < alone + 0.005  # one may seem to tell, by chance


def test_scored_features_have_variance_1_or_are_none(seed: int) -> None:
    _, x, code, _ = planted(seed)
    e = levels(x, MANY)
    feature, rows = LatentColumn.scored(
        e, LinkConfig(), level_scores(x, code, folds(code), MANY, 2)
    )
    own = feature.latent(x)
    assert own.mean() == pytest.approx(0.0, abs=1e-9)
    assert own.std() == pytest.approx(1.0)
    assert rows.shape == (600, 1)
    assert np.corrcoef(own[:, 0], rows[:, 0])[0, 1] > 0.9
    nothing = LevelScores(np.zeros((MANY, 1)), np.zeros((600, 1)), np.full(MANY, 1 / MANY))
    feature, rows = LatentColumn.scored(e, LinkConfig(), nothing)
    assert feature.n_latent == 0
    assert rows.shape == (600, 0)


def test_a_missing_level_is_as_probable_as_its_score_is_near(seed: int) -> None:
    """Against quadrature over the normal law of the score."""
    _, x, code, _ = planted(seed)
    found = level_scores(x, code, folds(code), MANY, 2)
    feature, _ = LatentColumn.scored(levels(x, MANY), LinkConfig(), found)
    weights, mean, var = np.array([[0.3, 0.7]]), np.array([[[-0.5], [1.0]]]), np.array([[0.2, 0.6]])
    law = feature.cells_law(weights, mean, var[..., None])
    p = of_levels(feature.link).probabilities(law, feature.params)[0]
    expected = []
    for share, (score,) in zip(feature.share, feature.codes, strict=True):
        total = 0.0
        for w, m, v in zip(weights[0], mean[0, :, 0], var[0], strict=True):
            law_at = quad(
                lambda f, m=m, v=v, a=score: (
                    norm.pdf(f, m, np.sqrt(v)) * norm.pdf(a, f, BLUR)
                ),
                *(m - 9.0, m + 9.0),
                points=[score],
                limit=200,
            )  # fmt: skip
            total += w * law_at[0]
        expected.append(share * total)
    np.testing.assert_allclose(p, np.array(expected) / np.sum(expected), atol=1e-6)
