"""Covariates that components go with: planted ones are told from those that chance gives."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from glfm_cli.exploration.goes_with import RISK, Amount, GoesWith, Support, by_chance, goes_with


def test_what_chance_gives_is_a_quantile_over_permutations_of_units() -> None:
    rng = np.random.default_rng(2)
    weight = np.array([0.5, 0.3, 0.1, 0.05, 0.03, 0.02])
    X = 5.0 + rng.exponential(size=(6, 2))
    z = rng.normal(size=(6, 3))
    z -= weight @ z
    z /= np.sqrt(weight @ z**2)
    largest = []
    for order in permutations(range(6)):
        w, own = weight[list(order)], z[list(order)]
        away = X - w @ X
        r = (w[:, None] * own).T @ away / np.sqrt(w @ away**2)
        largest.append(np.abs(r).max())
    for risk in (0.2, 0.5, 0.8):
        found = by_chance(weight, weight[:, None] * z, X, risk)
        assert np.mean(np.array(largest) > found) == pytest.approx(risk, abs=0.07)


@pytest.mark.parametrize("n", [25, 200])
def test_covariates_without_a_bearing_are_hardly_ever_sure_and_planted_ones_are(n: int) -> None:
    rng, noise, planted, told = np.random.default_rng(5), 0, 0, 0
    for _ in range(60):
        U, V = rng.normal(size=(40, 2)), rng.normal(size=(n, 2))
        # Draws differ little: their intervals alone take noise for findings.
        draws = [(U, V + 0.02 * rng.normal(size=V.shape)) for _ in range(10)]
        vectors = [(U[:, k] / np.linalg.norm(U[:, k]), V[:, k]) for k in range(2)]
        X = np.column_stack([rng.normal(size=(n, 5)), V[:, 0] + 0.4 * rng.normal(size=n)])
        rows = Support(np.ones(40), np.empty((40, 0)), ())
        columns = Support(rng.integers(1, 9, n), X, (*"abcde", "planted"))
        first, second = goes_with(draws, vectors, (rows, columns))
        noise += any(one.sure for one in (*first, *second) if one.name != "planted")
        planted += next(one for one in first if one.name == "planted").sure
        told += sum(one.correlation.lower * one.correlation.upper > 0.0 for one in second)
    assert noise <= 8  # 3 are expected
    assert planted == 60
    assert told > 200


def test_each_side_has_its_part_of_the_risk() -> None:
    rng = np.random.default_rng(1)
    U, V = rng.normal(size=(30, 1)), rng.normal(size=(12, 1))
    both = tuple(Support(np.ones(n), rng.normal(size=(n, 2)), ("a", "b")) for n in (30, 12))
    ((*found,),) = goes_with([(U, V)], [(U[:, 0], V[:, 0])], (both[0], both[1]))
    for side, score, known in zip(("row", "column"), (U, V), both, strict=True):
        z = (score - score.mean()) / score.std()
        weight = np.full(len(z), 1.0 / len(z))
        expected = by_chance(weight, z / len(z), known.covariates, RISK / 2)
        chances = [one.chance for one in found if one.side == side]
        assert chances == pytest.approx([expected] * 2)


def test_a_constant_covariate_has_no_correlation_by_chance() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(8, 1)) / 8
    assert by_chance(np.full(8, 0.125), scores, np.full((8, 1), 0.1), RISK) == 0.0


def test_sure_is_what_neither_draws_nor_chance_explain() -> None:
    def sure(mean: float, lower: float, upper: float) -> bool:
        return GoesWith("row", "a", Amount("a", mean, lower, upper), 0.4).sure

    assert sure(0.5, 0.3, 0.6)
    assert sure(-0.5, -0.6, -0.3)
    assert not sure(0.3, 0.2, 0.39)
    assert not sure(0.5, -0.1, 0.9)


def test_a_correlation_counts_units_by_their_cells() -> None:
    rng, cells = np.random.default_rng(0), np.array([1.0, 9.0, 3.0, 0.0, 5.0, 2.0])
    U, sV, X = rng.normal(size=(6, 2)), rng.normal(size=(4, 2)), rng.normal(2.0, 1.0, size=(6, 1))
    u, v = rng.normal(size=6), rng.normal(size=4)
    nothing = Support(np.ones(4), np.empty((4, 0)), ())
    ((found,),) = goes_with([(U, sV)], [(u, v)], (Support(cells, X, ("x",)), nothing))
    both = np.cov(np.stack([U @ (sV.T @ v), X[:, 0]]), aweights=cells)
    assert found.correlation.mean == pytest.approx(both[0, 1] / np.sqrt(both[0, 0] * both[1, 1]))
