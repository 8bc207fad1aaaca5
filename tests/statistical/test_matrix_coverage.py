"""Intervals of a matrix's means cover, for every link.

Each matrix is x = a row's and a column's intercept + components, half of its cells are seen, and
the 95 % intervals of x are asked for at the others: from the draws of x, on the latent scale.

x is identified for every link, so that it can be compared with the truth: real values have the
unit of their own, which the link's constants give; binary, binomial and ordinal ones have unit
noise, which sets the scale, and a first threshold of 0, which sets the origin (free thresholds
would leave x open up to a shift).

What an interval promises is coverage on average over matrices that the prior gives; that is the
first design. Components whose size stands out from the noise are covered whatever the prior says
of their number: the second. Of faint ones the prior says that most are not there, and a matrix
that always has two of them is covered less often: the third (see docs/measured/bsvd.md).

`python -m pytest -m slow -rP tests/statistical/test_matrix_coverage.py` shows the shares.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.arrays import Array
from glfm_cli.completion.matrix import Pairs, predict_pairs, prepare_matrix
from glfm_cli.encoding import encode_triplets
from glfm_cli.inference.sampling import sample
from glfm_cli.latent.bsvd.config import BsvdConfig
from glfm_cli.links.categorical import CategoricalLink
from glfm_cli.schema import Schema

SHAPE, SEEN = (40, 30), 0.5
VALUES: dict[str, Any] = {
    "real": {"type": "real", "transform": "none"},
    "ordinal": {"type": "ordinal", "levels": ["0", "1", "2", "3"]},
    "categorical": {"type": "categorical", "levels": ["no", "yes"]},
    "binomial": {"type": "binomial", "trials": "n"},
}
PLAN = {"chains": 2, "warmup": 150, "draws": 100, "thin": 2}
# A single chain of few draws: the ends of its intervals are those of 150 draws that hang together.
SHORT = {"chains": 1, "warmup": 80, "draws": 150, "thin": 1}


def of_prior(rng: np.random.Generator) -> Array:
    """Return means from the model's own prior, of a spread that cells of unit noise can show."""
    config = BsvdConfig()
    K = min(config.max_components, *SHAPE)
    p0 = config.on_mass / (config.on_mass + config.off_mass * (K - 1))
    while True:
        alpha = rng.gamma(config.scale_shape) / config.scale_rate
        sizes = np.abs(rng.normal(size=K)) / np.sqrt(alpha) * (rng.random(K) < p0)
        x = summed(sizes, config.intercept_scale * np.abs(rng.standard_cauchy(2)), rng)
        if 0.5 < x.std() < 2.0:
            return x


def summed(sizes: Array, sd: Array, rng: np.random.Generator) -> Array:
    """Return components of some sizes, and intercepts of rows and columns of some sd."""
    U, V = (rng.normal(size=(n, sizes.size)) for n in SHAPE)
    x: Array = (sizes * U) @ V.T + sd[0] * rng.normal(size=(SHAPE[0], 1))
    return x + sd[1] * rng.normal(size=SHAPE[1])


def of_two(size: float) -> Callable[[np.random.Generator], Array]:
    """Return what draws means with two components of one size."""
    return lambda rng: summed(np.full(2, size), np.full(2, 0.5), rng)


# How means are drawn, and the least share of them that intervals should cover.
DESIGNS = {"prior": (of_prior, 0.92), "clear": (of_two(1.0), 0.92), "faint": (of_two(0.5), 0.75)}


def observed(kind: str, x: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return values and trials of all cells."""
    y, trials = x + rng.normal(size=x.shape), rng.integers(1, 12, size=x.shape)
    if kind == "real":
        return 5.0 + 2.0 * (x + 0.5 * rng.normal(size=x.shape)), trials
    if kind == "ordinal":
        return np.digitize(y, [0.0, 0.8, 1.5]).astype(str), trials
    if kind == "categorical":
        return np.where(y > 0.0, "yes", "no"), trials
    draws = x[..., None] + rng.normal(size=(*x.shape, 12)) > 0.0
    return np.sum(draws & (np.arange(12) < trials[..., None]), axis=2), trials


def coverage(kind: str, design: str, plan: dict[str, int], seed: int) -> dict[str, float]:
    """Return the share of hidden cells whose mean, and whose value, lies in its interval."""
    rng = np.random.default_rng([seed, sorted(VALUES).index(kind)])
    x = DESIGNS[design][0](rng)
    values, trials = observed(kind, x, rng)
    i, j = np.nonzero(rng.random(SHAPE) < SEEN)
    columns = {"i": "row", "j": "column", "n": "ignore", "v": VALUES[kind] | {"role": "value"}}
    table = {"i": i, "j": j, "n": trials[i, j], "v": values[i, j]}
    if kind != "binomial":
        del table["n"], columns["n"]
    triplets = encode_triplets(pa.table(table), Schema.from_dict({"columns": columns}))
    problem, data, steps = prepare_matrix(triplets, seed=seed, **plan)
    posterior = sample(problem, steps).posterior
    unseen = np.ones(SHAPE, dtype=bool)
    unseen[i, j] = False
    unseen &= np.isin(np.arange(SHAPE[0]), i)[:, None] & np.isin(np.arange(SHAPE[1]), j)
    i, j = np.nonzero(unseen)
    places = [ids.places([str(k) for k in index]) for ids, index in
              ((data.rows, i), (data.others, j))]  # fmt: skip
    (link,) = posterior.links
    drawn = np.array([d.latent.means_at(*places) for d in posterior.draws()])
    expected = x[i, j]
    if kind == "real":
        expected = link.start(5.0 + 2.0 * expected)[1][:, 0]
    if isinstance(link, CategoricalLink) and link.reference == 1:
        expected = -expected
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    found = {"mean": float(np.mean((low <= expected) & (expected <= high)))}
    if kind == "real":
        ends = predict_pairs(posterior, Pairs(*places), [0.025, 0.975]).quantiles
        held = values[i, j]
        found["value"] = float(np.mean((ends[:, 0] <= held) & (held <= ends[:, 1])))
    return found


@pytest.mark.parametrize("kind", ["real", "ordinal"])
def test_intervals_cover_in_short(kind: str, seed: int) -> None:
    found = [coverage(kind, "clear", SHORT, seed + k) for k in range(2)]
    for what in found[0]:
        share = np.mean([one[what] for one in found])  # cells of a set err together: sd 0.03
        assert 0.8 < share <= 1.0, what


@pytest.mark.slow
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("kind", VALUES)
def test_intervals_cover(kind: str, design: str, seed: int) -> None:
    found = [coverage(kind, design, PLAN, seed + k) for k in range(20)]
    for what in found[0]:
        shares = np.array([one[what] for one in found])
        print(f"{kind}, {design}: {what} in {shares.mean():.4f} (sets from {shares.min():.3f})")
        # Two levels tell so little that means which are not of the prior are drawn to it.
        least = DESIGNS[design][1] - (0.05 if (kind, design) == ("categorical", "clear") else 0.0)
        assert least <= shares.mean() <= 0.98
