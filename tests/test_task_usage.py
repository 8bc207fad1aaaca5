"""How alike tasks are, by their shares of experts, and how near, by where the experts lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glfm_cli.classification import FitUsage, TaskUsage
from glfm_cli.classification.tasks import blurred
from tests.iqgme_problems import Array

SHARES = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
OTHERS = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
NAMES = ("a", "b", "c")
SEEDS = st.integers(0, 2**32 - 1)


def usage_of(*fits: tuple[float, Array, Array]) -> TaskUsage:
    return TaskUsage("task", NAMES, tuple(FitUsage(*fit) for fit in fits))


def random_usage(seed: int, S: int = 4, P: int = 3) -> tuple[Array, Array]:
    """Return shares of three tasks, some of them 0, and centres."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(S, 0.3), size=3)
    return shares, 2.0 * rng.standard_normal((S, P))


def test_the_same_shares_are_alike_and_none_in_common_are_not() -> None:
    alike = usage_of((1.0, SHARES, np.zeros((3, 2)))).similarity()
    assert np.allclose(alike, alike.T)
    assert np.allclose(np.diag(alike), 1.0)
    assert alike[0, 1] == pytest.approx(1.0)
    assert alike[0, 2] < 0.02


def test_several_fits_are_averaged_by_their_weights() -> None:
    fits = ((0.75, SHARES, np.eye(3)), (0.25, OTHERS, np.eye(2)))
    each = [usage_of((1.0, shares, centers)) for _, shares, centers in fits]
    found = usage_of(*fits)
    for name in ("similarity", "nearness"):
        one, two = (getattr(usage, name)() for usage in each)
        assert np.allclose(getattr(found, name)(), 0.75 * one + 0.25 * two)
    assert found.similarity()[0, 1] == pytest.approx(0.75, abs=0.01)
    assert np.allclose(np.diag(found.similarity()), 1.0)


@given(seed=SEEDS)
def test_nearness_is_a_similarity_that_only_looks_at_distances(seed: int) -> None:
    shares, centers = random_usage(seed)
    near = usage_of((1.0, shares, centers)).nearness()
    assert np.allclose(near, near.T)
    assert np.allclose(np.diag(near), 1.0)
    assert np.all((near >= 0.0) & (near <= 1.0 + 1e-12))
    rng = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    order = rng.permutation(4)
    moved = (centers[order] + rng.standard_normal(3)) @ turn
    assert np.allclose(usage_of((1.0, shares[:, order], moved)).nearness(), near)


@given(seed=SEEDS)
def test_experts_far_apart_are_near_only_where_they_are_shared(seed: int) -> None:
    shares, centers = random_usage(seed)
    apart = usage_of((1.0, shares, centers + 1e3 * np.arange(4.0)[:, None]))
    assert np.allclose(apart.nearness(), apart.similarity())
    assert np.allclose(blurred(shares, np.zeros_like(centers)), shares.mean(axis=0))


@given(seed=SEEDS, part=st.floats(0.0, 1.0))
def test_an_expert_split_in_two_at_its_place_changes_nothing(seed: int, part: float) -> None:
    shares, centers = random_usage(seed)
    own = np.array([part, 1.0 - part, 0.5])[:, None]  # tasks may take different halves
    halves = np.hstack([shares[:, :1] * own, shares[:, :1] * (1.0 - own), shares[:, 1:]])
    split = usage_of((1.0, halves, np.vstack([centers[:1], centers])))
    whole = usage_of((1.0, shares, centers))
    assert np.allclose(split.nearness(), whole.nearness(), atol=1e-10)


def test_tasks_with_experts_of_their_own_at_the_same_place_are_near() -> None:
    centers = np.array([[0.0, 0.0], [0.2, 0.0], [4.0, 0.0]])
    usage = usage_of((1.0, np.eye(3), centers))
    assert usage.similarity()[0, 1] < 0.05
    assert usage.nearness()[0, 1] > 0.95
    assert usage.nearness()[0, 2] < 0.05
