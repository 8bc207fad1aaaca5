"""E log p(cell | f) for f ~ N(mean, var), with derivatives, of all columns of some rows.

number     y ~ N(f, s2), a point: closed form; an interval of y: quadrature
ordered    thresholds around y ~ N(f, 1): quadrature
levels     two: a logit, quadrature; more: softmax, by draws that are handed in

Quadrature has 8 to 20 nodes, and 64 where f is wider than twice the noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glfm_cli._kernels import _clgp
from glfm_cli.arrays import Array
from glfm_cli.latent.clgp.parameters import Shared
from glfm_cli.latent.clgp.table import Slots


@dataclass(frozen=True)
class Expected:
    """Of n stacked rows: the sum over a row's cells, and derivatives by mean and var.

    value : (n,), and summed over rows instead, `columns` (D,)
    g1, g2, curvature : (n, S), 0 at missing cells
    log_noise : (D,), steps : as those of `Shared`; gradients summed over rows
    """

    value: Array
    columns: Array
    g1: Array
    g2: Array
    curvature: Array
    log_noise: Array
    steps: Array


def needs_normals(slots: Slots) -> list[int]:
    """Return the columns whose logits are integrated by draws: those of three levels or more."""
    return [d for d, kind in enumerate(slots.kinds) if kind.kind == "levels" and kind.n_latent > 1]


def expected(
    cells: tuple[Array, Array],
    mean: Array,
    var: Array,
    shared: Shared,
    slots: Slots,
    normals: dict[int, Array],
) -> Expected:
    """Return what the cells of nb rows say of mean and var (T nb, S), T samples a row.

    cells : lower and upper (D, nb)
    mean, var : (T nb, S) float64, all samples of the first kind before those of the next
    normals : column to (T nb, E / 2, K) float64, for those that `needs_normals` names
    """
    D, n = len(slots.kinds), mean.shape[0]
    g1, g2, curvature = (np.zeros(mean.shape) for _ in range(3))
    out = Expected(
        np.zeros(n), np.zeros(D), g1, g2, curvature, np.zeros(D), np.zeros(slots.n_thresholds)
    )
    for d, kind in enumerate(slots.kinds):
        lower, upper, s = cells[0][d], cells[1][d], slots.spans[d]
        value = np.zeros(n)
        if kind.n_latent == 0:
            continue
        of = mean[:, s.start], var[:, s.start]
        to = value, g1[:, s.start], g2[:, s.start], curvature[:, s.start]
        if kind.n_latent > 1:
            scratch = np.empty((3, kind.n_latent))
            to_all = value, g1[:, s], g2[:, s], curvature[:, s]
            _clgp.add_levels(lower, mean[:, s], var[:, s], normals[d], scratch, *to_all)
        elif kind.kind == "number":
            s2 = float(np.exp(shared.log_noise[d]))
            out.log_noise[d] = _clgp.add_numbers(lower, upper, *of, s2, *to)
        elif kind.kind == "ordered":
            theta = shared.thresholds(slots, d)
            d_theta = np.zeros(theta.size)
            _clgp.add_ordered(lower, theta, *of, *to, d_theta)
            # theta_j = steps_0 + exp(steps_1) + ... + exp(steps_j)
            own = slots.thresholds[d]
            out.steps[own] = np.cumsum(d_theta[::-1])[::-1]
            out.steps[own][1:] *= np.exp(shared.steps[own][1:])
        else:
            _clgp.add_binary(lower, *of, *to)
        out.columns[d] = value.sum()
        out.value[:] += value
    return out
