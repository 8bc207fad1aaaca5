"""Two cells of which one is less than the other, drawn anew until they are."""

from __future__ import annotations

import numpy as np

from glfm_cli.inference.one_draw import TRIES, _redraw

P = np.array([[0.25, 0.25, 0.5], [0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])  # of 1, 2, 3
Q = np.array([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4], [0.1, 0.2, 0.7]])


def test_two_cells_are_drawn_given_their_order_in_few_calls() -> None:
    rng = np.random.default_rng(0)
    n = 30_000
    rows = {0: np.arange(n + 1), 1: np.arange(n + 1)}
    calls: list[int] = []
    cells = [0, 0]

    def sample(d: int, at: np.ndarray, times: int = 1) -> np.ndarray:
        calls.append(d)
        cells[d] += times * int(np.sum(at == n))
        at = np.tile(at, times)
        upto = np.cumsum((P, Q)[d], axis=1)[at % 3]
        x = 1.0 + np.sum(rng.random(at.size)[:, None] > upto, axis=1)
        return np.where(at == n, 2.0 - d, x)  # the last row: 2 and 1, never in order

    found = {d: sample(d, np.arange(n + 1)) for d in (0, 1)}
    _redraw((0, 1), rows, found, sample)
    for kind in range(3):
        p = np.triu(np.outer(P[kind], Q[kind]), 1)
        at = np.arange(kind, n, 3)
        x, y = (found[d][at].astype(int) - 1 for d in (0, 1))
        share = np.bincount(3 * x + y, minlength=9).reshape(3, 3) / at.size
        p /= p.sum()
        assert np.all(np.abs(share - p) <= 4.5 * np.sqrt(p * (1.0 - p) / at.size))
    assert (found[0][n], found[1][n]) == (1.0, 1.0)
    assert cells == [TRIES + 1, TRIES + 1]
    assert len(calls) <= 60
