"""Intervals of a matrix's means cover: on matrices of low rank, for every link.

Each matrix is x = a row's and a column's intercept + two components, half of its cells are seen,
and the 95 % intervals of x are asked for at the others: from the draws of x, on the latent scale.
`python -m pytest -m slow -rP tests/statistical/test_matrix_coverage.py` shows the shares.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.encoding import encode_triplets
from glfm_cli.latent.bsvd import Bsvd
from glfm_cli.latent.latent import Array
from glfm_cli.links.categorical import CategoricalLink
from glfm_cli.matrices import Pairs, plan_matrix, predict_pairs
from glfm_cli.schema import Schema

SHAPE, RANK, SEEN = (40, 30), 2, 0.5
VALUES: dict[str, Any] = {
    "real": {"type": "real", "transform": "none"},
    "ordinal": {"type": "ordinal", "levels": ["0", "1", "2", "3"]},
    "categorical": {"type": "categorical", "levels": ["no", "yes"]},
    "binomial": {"type": "binomial", "trials": "n"},
}
PLAN = {"chains": 2, "warmup": 150, "draws": 100, "thin": 2}


def truth(rng: np.random.Generator) -> Array:
    """Return means x of all cells, whose standard deviation is about 1."""
    U, V = (rng.normal(size=(n, RANK)) for n in SHAPE)
    x: Array = 0.7 * U @ V.T / np.sqrt(RANK)
    return x + 0.5 * rng.normal(size=(SHAPE[0], 1)) + 0.5 * rng.normal(size=SHAPE[1])


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


def coverage(kind: str, seed: int) -> dict[str, float]:
    """Return the share of hidden cells whose mean, and whose value, lies in its interval."""
    rng = np.random.default_rng([seed, sorted(VALUES).index(kind)])
    x = truth(rng)
    values, trials = observed(kind, x, rng)
    i, j = np.nonzero(rng.random(SHAPE) < SEEN)
    columns = {"i": "row", "j": "column", "n": "ignore", "v": VALUES[kind] | {"role": "value"}}
    table = {"i": i, "j": j, "n": trials[i, j], "v": values[i, j]}
    if kind != "binomial":
        del table["n"], columns["n"]
    triplets = encode_triplets(pa.table(table), Schema.from_dict({"columns": columns}))
    task = plan_matrix(triplets, seed=seed, **PLAN)
    posterior = task.sample().posterior
    unseen = np.ones(SHAPE, dtype=bool)
    unseen[i, j] = False
    unseen &= np.isin(np.arange(SHAPE[0]), i)[:, None] & np.isin(np.arange(SHAPE[1]), j)
    i, j = np.nonzero(unseen)
    places = [ids.places([str(k) for k in index]) for ids, index in
              ((task.rows, i), (task.columns, j))]  # fmt: skip
    model, (link,) = posterior.model, posterior.links
    assert isinstance(model, Bsvd)
    drawn = np.array([model.eta_at(d.latent, *places) for d in posterior.draws()])
    expected = x[i, j]
    if kind == "real":
        expected = link.start(5.0 + 2.0 * expected, rng)[1][:, 0]
    if isinstance(link, CategoricalLink) and link.reference == 1:
        expected = -expected
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    found = {"mean": float(np.mean((low <= expected) & (expected <= high)))}
    if kind == "real":
        ends = predict_pairs(posterior, Pairs(*places), [0.025, 0.975]).quantiles
        held = values[i, j]
        found["value"] = float(np.mean((ends[:, 0] <= held) & (held <= ends[:, 1])))
    return found


@pytest.mark.parametrize("kind", VALUES)
def test_intervals_cover_in_short(kind: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("chains", 1), ("warmup", 80), ("draws", 50), ("thin", 1)):
        monkeypatch.setitem(PLAN, name, value)
    for what, share in coverage(kind, seed).items():
        assert 0.7 < share <= 1.0, what  # one set, whose cells err together


@pytest.mark.slow
@pytest.mark.parametrize("kind", VALUES)
def test_intervals_cover(kind: str, seed: int) -> None:
    found = [coverage(kind, seed + k) for k in range(20)]
    for what in found[0]:
        shares = np.array([one[what] for one in found])
        print(f"{kind}: {what} in {shares.mean():.4f} (sets from {shares.min():.3f})")
        assert 0.92 <= shares.mean() <= 0.98
