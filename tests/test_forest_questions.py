"""What a node of a tree asks: the best question, ties, thresholds tried anew, columns by chance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from glfm_cli._kernels import _forest
from glfm_cli.arrays import Array

pytestmark = pytest.mark.kernels

MANY = 100  # columns, more than have a lane each


class Roots(NamedTuple):
    """Of T trees the question of the first node, -1 without, and which donors say yes."""

    feature: Array
    threshold: Array
    yes: list[Array]


def roots(
    z: Array, y: Array, levels: int = 0, nominal: Array | None = None, donors: Array | None = None,
    *, trees: int = 1, tries: int = 1000, each: int = 1, least: int = 1, seed: int = 0,
) -> Roots:  # fmt: skip
    """Return those of trees of y (N,), whose levels have no order, on the columns of z (P, N)."""
    P, N = z.shape
    nominal = np.zeros(P, dtype=np.uint8) if nominal is None else nominal
    donors = np.arange(N, dtype=np.int32) if donors is None else donors
    most = trees * (2 * (donors.size // least) + 3)
    root, feature = np.empty(trees, dtype=np.int32), np.empty(most, dtype=np.int32)
    child, members = np.empty_like(feature), np.empty(trees * donors.size, dtype=np.int32)
    threshold = np.empty(most, dtype=np.float32)
    _forest.grow(
        *(z.astype(np.float32).astype(float), nominal, levels),
        *(y[donors].astype(float), donors, 1, 0, tries, each, least),
        *(np.random.Generator(np.random.SFC64(seed)), root, feature, threshold, child, members),
        *(np.arange(P, dtype=np.int32), np.empty(0, dtype=np.int32)),
    )

    def of(node: int) -> Array:
        if feature[node] < 0:
            return np.sort(members[child[node] : child[node] + int(threshold[node])])
        return np.sort(np.append(of(child[node]), of(child[node] + 1)))

    yes = [of(child[r]) if feature[r] >= 0 else np.empty(0, dtype=int) for r in root]
    return Roots(feature[root], threshold[root], yes)


def gain(y: Array, yes: Array, levels: int) -> float:
    """Return by what a question lowers the sum of squares, of levels those of indicators."""
    parts = y[:, None] == np.arange(levels) if levels else y[:, None]
    rest = sum(part.shape[0] * part.var(axis=0).sum() for part in (parts[yes], parts[~yes]))
    return float(parts.shape[0] * parts.var(axis=0).sum() - rest)


@pytest.mark.parametrize("columns", [3, 40, MANY])
@pytest.mark.parametrize("levels", [0, 2, 3, 12])
def test_the_best_question_of_all_columns_is_asked(columns: int, levels: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        z = (rng.random((columns, 60)) < rng.uniform(0.05, 0.95, (columns, 1))).astype(float)
        z[:, :2] = [0.0, 1.0]
        y = rng.integers(0, levels, 60) if levels else rng.normal(size=60)
        nominal = rng.integers(0, 2, columns).astype(np.uint8)
        donors = np.sort(rng.choice(60, 45, replace=False)).astype(np.int32)
        sides = np.array([min(np.sum(x[donors] > 0.0), np.sum(x[donors] == 0.0)) for x in z])
        gains = np.full(columns, -1.0)
        for k in np.flatnonzero(sides >= 4):
            gains[k] = gain(y[donors], z[k, donors] > 0.0, levels)
        found = roots(z, y, levels, nominal, donors, least=4, seed=seed)
        best = gains.max()
        if best < 0.0:
            assert found.feature[0] == -1
            continue
        assert gains[found.feature[0]] == pytest.approx(best, abs=1e-9)
        x, t = z[found.feature[0], donors], found.threshold[0]
        yes = x == t if nominal[found.feature[0]] else x <= t
        assert t in ((0.0, 1.0) if nominal[found.feature[0]] else (0.5,))
        assert found.yes[0].tolist() == donors[yes].tolist()


@pytest.mark.parametrize("columns", [4, MANY])
def test_one_of_the_best_questions_is_asked_at_random(columns: int) -> None:
    z = np.tile(np.arange(12.0) % 2, (columns, 1))
    z[4:, :] = np.arange(12.0) // 6  # of no use: y is the same on both sides
    found = roots(z, np.arange(12.0) % 2, trees=2000)
    count = np.bincount(found.feature, minlength=columns)
    assert count.sum() == count[:4].sum()
    assert np.all(np.abs(count[:4] - 500) < 4.0 * np.sqrt(2000 * 0.25 * 0.75))


@pytest.mark.parametrize("columns", [10, MANY])
def test_a_node_asks_about_so_many_columns_that_have_a_question(columns: int) -> None:
    z = np.tile(np.arange(20.0) // 10, (columns, 1))
    z[0] = y = np.arange(20.0) % 2  # the best, if it is asked about
    z[6:] = 1.0  # no question; in one more, none that leaves enough on each side
    z[5] = np.arange(20.0) == 7.0
    found = roots(z, y, trees=4000, tries=2, least=2)
    share = 2 / 5
    assert np.all(np.isin(found.feature, range(5)))
    assert abs(np.mean(found.feature == 0) - share) < 4.0 * np.sqrt(share * (1 - share) / 4000)


@pytest.mark.parametrize("columns", [1, MANY])
@pytest.mark.parametrize("levels", [0, 3])
@pytest.mark.parametrize(("nominal", "each"), [(0, 1), (1, 1), (0, 10)])
def test_eight_thresholds_are_tried_until_one_is_fit(
    columns: int, levels: int, nominal: int, each: int
) -> None:
    z = np.tile(np.arange(40.0), (columns, 1))
    z[:, 20:] = 100.0 if nominal else np.arange(20, 40)
    z[1:] = 0.0
    least = 19 if nominal else 17
    once = 0.5 if nominal else between(np.arange(40), least)  # a threshold is fit
    found = roots(z, np.arange(40.0) % 3, levels, np.full(columns, nominal, np.uint8),
                  trees=4000, each=each, least=least)  # fmt: skip
    share = 1.0 - (1.0 - once) ** 8
    assert abs(np.mean(found.feature == 0) - share) < 4.0 * np.sqrt(share * (1 - share) / 4000)


def between(x: Array, least: int) -> float:
    """Return how often the middle of two that differ leaves so many on each side."""
    one, other = np.meshgrid(x, x)
    middle = 0.5 * (one + other)[one != other]
    left = np.searchsorted(x, middle, "right")
    return float(np.mean((left >= least) & (x.size - left >= least)))


@pytest.mark.parametrize("levels", [0, 2, 3])
@pytest.mark.parametrize("columns", [1, MANY])
def test_the_best_of_many_thresholds_is_asked(levels: int, columns: int) -> None:
    """With y a step, the more thresholds are tried the nearer to it they come."""
    z = np.tile(np.arange(200.0), (columns, 1))
    z[1:] = 0.0
    y = (np.arange(200) >= 100).astype(int) + 1 * (levels == 3)
    away = []
    for each in (1, 5, 40):
        found = roots(z, y, levels, trees=2000, each=each)
        away.append(np.mean(np.abs(found.threshold - 99.5)))
    rng = np.random.default_rng(0)
    one, other = rng.integers(0, 200, (2, 2000, 40))
    middle = np.abs(0.5 * (one + other) - 99.5)
    expected = [middle[:, :1], middle[:, :5], middle]
    for mean, of in zip(away, expected, strict=True):
        assert mean == pytest.approx(np.mean(of.min(axis=1)), rel=0.1)
