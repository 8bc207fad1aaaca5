"""Cells drawn by trees: any tree, and any member of its leaf, as probably as another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from glfm_cli.arrays import Array
from glfm_cli.latent.forest import ForestConfig
from glfm_cli.latent.forest.columns import Kinds
from glfm_cli.latent.forest.trees import Trees, draw_cells, grow

pytestmark = pytest.mark.kernels

N, NEW, T = 24, 30_000, 4
KINDS = Kinds(np.zeros(2, np.int32), np.zeros(2, np.uint8), np.full(2, np.nan), np.zeros(2))


def grown(seed: int, least: int) -> tuple[Trees, Array]:
    """Return trees of a column on another one, and the donors: cells 0 to 23."""
    rng = np.random.default_rng(seed)
    z = np.stack([rng.normal(size=N), np.arange(N, dtype=float)])
    size = np.full(2, least, dtype=np.int64)
    seen = np.ones((2, N), dtype=np.uint8)
    return grow(z, seen, KINDS, [1], T, 0, size, ForestConfig(), rng), z[1]


def counts(trees: Trees, donors: Array, seed: int) -> Array:
    """Return how often each donor is drawn for rows that are alike."""
    z, nobody = np.zeros((2, NEW)), np.full(NEW, -1, dtype=np.int32)
    rng = np.random.default_rng(seed)
    draw_cells(z, KINDS, 1, np.arange(NEW), nobody, donors, trees, 0, rng)
    return np.bincount(z[1].astype(int), minlength=N)


def test_every_member_of_a_leaf_is_drawn_as_often(seed: int) -> None:
    found = counts(*grown(seed, N), seed)  # one leaf has all
    assert np.sum((found - NEW / N) ** 2 / (NEW / N)) < 60.0  # chi-square of 23 degrees


def test_every_tree_is_drawn_from_as_often(seed: int) -> None:
    trees, donors = grown(seed, 3)
    each = [counts(replace(trees, root=trees.root[:, [t]]), donors, seed) for t in range(T)]
    assert len({tuple(np.flatnonzero(one)) for one in each}) > 1
    expected = np.mean(each, axis=0)
    found = counts(trees, donors, seed + 1)
    some = expected > 0
    assert not found[~some].any()
    assert np.sum((found - expected)[some] ** 2 / expected[some]) < 60.0
