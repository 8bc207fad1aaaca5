"""How much candidates count in a column, by the log scores that they gave to hidden cells."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from glfm_cli.inference.stacking import SHRINK, best_weights, stacked


@pytest.mark.parametrize("prior", [(10.0, 10.0), (3.0, 1.0)])
def test_weights_have_the_most_log_score(prior: tuple[float, float]) -> None:
    log_p = np.random.default_rng(0).normal(0.0, [1.0, 0.6], (60, 2))
    log_p[:5, 0] = -np.inf

    def loss(w: float) -> float:
        fits = np.log(w * np.exp(log_p[:, 0]) + (1 - w) * np.exp(log_p[:, 1])).sum()
        return -float(fits + prior[0] * np.log(w) + prior[1] * np.log(1 - w))

    best = minimize_scalar(loss, bounds=(1e-6, 1 - 1e-6), method="bounded", options={"xatol": 1e-9})
    found = best_weights(log_p, np.array(prior))
    assert found == pytest.approx([best.x, 1 - best.x], abs=1e-4)


def test_a_cell_that_nobody_thought_possible_says_nothing() -> None:
    log_p, prior = np.log(np.random.default_rng(0).random((30, 2))), np.array([2.0, 1.0])
    nobody = np.full((1, 2), -np.inf)
    with_it = best_weights(np.concatenate([log_p, nobody]), prior)
    np.testing.assert_array_equal(with_it, best_weights(log_p, prior))


def test_a_column_of_many_cells_goes_its_own_way_and_one_of_few_keeps_to_the_others() -> None:
    """Cells that one candidate alone can have made count as whole ones."""
    good, bad = np.zeros(2000), np.full(2000, -60.0)
    scores = {
        0: np.column_stack([good, bad, np.full(2000, -np.inf)]),
        1: np.column_stack([bad[:1500], good[:1500], np.full(1500, -np.inf)]),
        2: np.column_stack([bad[:2], good[:2], np.full(2, -np.inf)]),
    }
    found = stacked(scores, np.array([True, True, False]), np.ones(4))
    whole = (2000 + SHRINK / 2) / (3502 + SHRINK)
    expected = [2000 + SHRINK * whole, SHRINK * whole, SHRINK * whole, SHRINK * whole]
    expected = np.array(expected) / (np.array([2000, 1500, 2, 0]) + SHRINK)
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-6)
    np.testing.assert_allclose(found[:, 1], 1 - expected, atol=1e-6)
    assert not found[:, 2].any(), "the third made no chain"
    assert stacked({}, np.ones(2, bool), np.ones(2)).tolist() == [[0.5, 0.5]] * 2
