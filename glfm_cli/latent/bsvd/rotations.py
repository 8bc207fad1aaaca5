"""Rotations of the low-rank model's components, which leave x as it is.

    (U_k, U_l) -> (U_k, U_l) Q,  (s_k V_k, s_l V_l) -> (s_k V_k, s_l V_l) Q,   Q a rotation by t

The prior of U does not change; that of W = s V does by A_kk(t) (1/s_l^2 - 1/s_k^2) / 2, where
A_kk(t), the squares of W_k, is a mean plus r cos(2 t - f). So 2 t is drawn from a von Mises law
[Liu and Sabatti 2000]. Without it a component that is not needed holds parts of those that are,
and cannot be switched off. Pairs that share no component turn at once:
O(K^3) for all pairs, and O((I + J) K^2) to turn the factors.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.bsvd.moves import BsvdState


def rotate_components(state: BsvdState, rng: np.random.Generator) -> None:
    """Draw the angle of every pair of components that are on: a tournament in random order."""
    k = state.active
    if k.size < 2:
        return
    s, means = state.s[k], state.of_columns
    b = s * means.factors[:, k]
    W = s * state.V[:, k] - means.X @ b
    A = state.matrix.shape[1] * (W.T @ W + means.precision[0] * (b.T @ b))
    Q = np.eye(k.size)
    for i, j in _rounds(rng.permutation(k.size)):
        half, cross = 0.5 * (A[i, i] - A[j, j]), A[i, j]
        # A_ii(t) = mean + half cos 2t + cross sin 2t
        pull = 0.5 * (s[j] ** -2.0 - s[i] ** -2.0)
        mode = np.arctan2(pull * cross, pull * half)
        t = 0.5 * rng.vonmises(mode, abs(pull) * np.hypot(half, cross))
        for M in (Q, A, A.T):
            M[:, i], M[:, j] = (
                M[:, i] * np.cos(t) + M[:, j] * np.sin(t),
                M[:, j] * np.cos(t) - M[:, i] * np.sin(t),
            )
    state.U[:, k] = state.U[:, k] @ Q
    state.of_rows.factors[:, k] = state.of_rows.factors[:, k] @ Q
    state.V[:, k] = (s * state.V[:, k]) @ Q / s
    means.factors[:, k] = b @ Q / s


def _rounds(order: Array) -> Iterator[tuple[Array, Array]]:
    """Yield pairs without a common member, every pair once in all: the circle method."""
    if order.size % 2:
        order = np.append(order, -1)  # who meets -1 sits out
    half = order.size // 2
    for _ in range(order.size - 1):
        i, j = order[:half], order[: half - 1 : -1]
        met = (i >= 0) & (j >= 0)
        yield i[met], j[met]
        order = np.concatenate((order[:1], order[-1:], order[1:-1]))
