"""How alike tasks are, by their shares of experts."""

from __future__ import annotations

import numpy as np
import pytest

from glfm_cli.classification.tasks import TaskUsage

SHARES = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
OTHERS = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
NAMES = ("a", "b", "c")


def test_the_same_shares_are_alike_and_none_in_common_are_not() -> None:
    alike = TaskUsage("task", NAMES, SHARES).similarity()
    assert np.allclose(alike, alike.T)
    assert np.allclose(np.diag(alike), 1.0)
    assert alike[0, 1] == pytest.approx(1.0)
    assert alike[0, 2] < 0.02


def test_several_fits_are_averaged_by_their_weights() -> None:
    fits = ((0.75, SHARES), (0.25, OTHERS))
    each = [TaskUsage("task", NAMES, shares).similarity() for _, shares in fits]
    found = TaskUsage("task", NAMES, SHARES, fits).similarity()
    assert np.allclose(found, 0.75 * each[0] + 0.25 * each[1])
    assert found[0, 1] == pytest.approx(0.75, abs=0.01)
    assert np.allclose(np.diag(found), 1.0)
