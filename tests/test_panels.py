"""Columns of a panel that move together are completed from the years of the same firm."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import impute
from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.inference.chain import start_chain
from glfm_cli.streams import Streams


def firms(seed: int) -> tuple[pa.Table, Array, Array]:
    """Return 40 firms in 6 years, whole rows of which are missing, these rows, and log turnover."""
    rng, (G, T) = np.random.default_rng(seed), (40, 6)
    size = np.repeat(rng.standard_normal(G), T)
    around = [0.06, 0.3, 0.35, 0.4]  # of turnover, wages, assets and debts
    x = size[:, None] + np.array(around) * rng.standard_normal((G * T, 4))
    wave = rng.random(G * T) < 0.25
    names = ("turnover", "wages", "assets", "debts")
    columns = {"firm": np.repeat(range(G), T), "year": np.tile(range(T), G)}
    cells = {name: pa.array(x[:, d], mask=wave) for d, name in enumerate(names)}
    return pa.table(columns | cells), wave, x[:, 0]


def types_of(table: pa.Table) -> dict[str, object]:
    """Return types with both roles, the other columns real."""
    roles = {"firm": "group", "year": {"type": "real", "role": "time"}}
    return {"columns": roles | dict.fromkeys(table.column_names[2:], "real")}


@pytest.mark.parametrize("model", ["glfm", "bsvd"])
def test_a_missing_year_is_told_by_the_others_of_its_firm(model: str) -> None:
    table, wave, turnover = firms(2)
    settings = {"components": 10, "alpha_rate": 10, "initial_features": 0, "noise_rate": 0.05}
    found = impute(
        table,
        types_of(table),
        model=model,
        chains=2,
        warmup=40,
        draws=5,
        seed=1,
        settings=settings if model == "glfm" else {},
    ).multiple(4)
    away = [draw["turnover"].to_numpy()[wave] - turnover[wave] for draw in found.tables()]
    assert np.sqrt(np.mean(np.square(away))) < 0.2  # 0.09 if all but noise were known; 1 of noise


def test_a_chain_starts_from_what_first_intercepts_leave() -> None:
    table, wave, _ = firms(3)
    problem, _, _ = prepare(table, types_of(table), model="glfm", chains=1)
    chain = start_chain(problem, Streams(0, 0))
    y, w = chain.cells.y[:, 1:], chain.state.effects.shift()[:, 1:]
    np.testing.assert_allclose(np.std(y[~wave], axis=0), 1.0, rtol=1e-3)
    assert np.all(np.std((y - w)[~wave], axis=0) < 0.6)
    np.testing.assert_allclose(y[wave], w[wave])  # missing cells, of which the model sees y - w
