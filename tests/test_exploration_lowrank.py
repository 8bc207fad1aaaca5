"""The low-rank model explored: planted components are found, parts and shares are what they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import explore, impute
from glfm_cli.exploration.component_result import ComponentExploration
from glfm_cli.exploration.goes_with import Support
from glfm_cli.exploration.lowrank import (
    Component,
    components,
    effects,
    explained,
    variance,
)
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.latent.bsvd.draw import BsvdDraw, Parts
from glfm_cli.latent.bsvd.sampler import Bsvd

RATINGS = {"columns": {"u": "row", "i": "column", "r": {"type": "real", "role": "value"}}}
FEW = {"chains": 2, "warmup": 40, "draws": 15, "threads": 1}


def random_parts(rng: np.random.Generator, n_rows: int = 9, n_columns: int = 6) -> Parts:
    k = int(rng.integers(0, 4))
    return Parts(
        rng.normal(size=(n_rows, k)),
        rng.normal(size=(n_columns, k)),
        np.column_stack([np.ones(n_rows), rng.normal(size=n_rows)]),
        rng.normal(size=(n_columns, 2)),
        rng.normal(size=(n_rows, 2)),
        np.column_stack([np.ones(n_columns), rng.normal(size=n_columns)]),
        np.empty((n_rows, 0)),
        np.empty((n_columns, 0)),
    )


def posterior_of(
    draws: list[Parts], noise: Any, spans: tuple[tuple[int, int], ...] = ((0, 1),)
) -> Posterior:
    kept = []
    for part in draws:
        left = np.concatenate([part.U, part.R, part.G_C], axis=1)
        right = np.concatenate([part.sV, part.G_R, part.C], axis=1)
        latent = BsvdDraw(
            left, right, np.atleast_1d(noise), part.U.shape[1], part.R.shape[1], np.ones(4), 9
        )
        kept.append(Draw(latent, ({},), {}))
    return Posterior(Bsvd(), (), spans, (tuple(kept),))


def test_components_are_the_singular_vectors_of_the_mean_matrix(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draws = [random_parts(rng)[:2] for _ in range(12)]
    every = np.array([U @ sV.T for U, sV in draws])
    u, s, v = np.linalg.svd(every.mean(axis=0))
    root = np.sqrt(9 * 6)
    for c, found in enumerate(components(draws, 3)):
        assert found.size == pytest.approx(s[c] / root)
        assert found.share == pytest.approx(s[c] ** 2 / np.sum(s**2))
        assert abs(found.rows @ u[:, c]) / 3 == pytest.approx(1.0)
        assert abs(found.columns @ v[c]) / np.sqrt(6) == pytest.approx(1.0)
        assert found.columns[np.argmax(np.abs(found.columns))] > 0
        own, other = found.rows / 3, found.columns / np.sqrt(6)
        np.testing.assert_allclose(found.rows_sd, 3 * (every @ other / s[c]).std(axis=0))
        sizes = np.einsum("i,tij,j->t", own, every, other)
        assert found.size_sd == pytest.approx(sizes.std() / root)


def test_columns_on_a_scale_turned_around_are_turned_back(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draws = [random_parts(rng)[:2] for _ in range(4)]
    direction = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    (plain, *_), (turned, *_) = components(draws, 1), components(draws, 1, direction)
    sign = np.sign(plain.rows @ turned.rows)
    np.testing.assert_allclose(turned.columns, sign * direction * plain.columns)
    assert turned.columns[np.argmax(np.abs(turned.columns))] > 0


def test_covariates_go_with_scores_as_cells_weigh_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draws = [random_parts(rng)[:2] for _ in range(8)]
    cells, X = rng.integers(0, 5, size=6) + 1, rng.normal(size=(6, 2))
    rows = Support(np.ones(9), np.empty((9, 0)), ())
    (component,) = components(draws, 1, support=(rows, Support(cells, X, ("age", "size"))))
    u = component.rows / 3
    for one in component.goes_with:
        x = np.repeat(X[:, ("age", "size").index(one.name)], cells)
        drawn = [np.repeat(sV @ (U.T @ u), cells) for U, sV in draws if U.shape[1]]
        expected = [np.corrcoef(score, x)[0, 1] for score in drawn]
        expected += [0.0] * (len(draws) - len(drawn))
        assert one.correlation.mean == pytest.approx(np.mean(expected))
        assert one.correlation.upper == pytest.approx(np.quantile(expected, 0.975))
    ends = [max(one.correlation.lower, -one.correlation.upper) for one in component.goes_with]
    assert ends == sorted(ends, reverse=True)


def test_those_that_lead_surely_come_first() -> None:
    score, sd = np.array([3.0, 2.0, -2.5, 0.1]), np.array([1.4, 0.1, 0.2, 0.0])
    component = Component("C1", 1.0, 0.0, 1.0, score, sd, score, sd)
    names = pa.table({"i": ["few", "many", "most", "no"], "cells": [1, 90, 50, 9]})
    found = object.__new__(ComponentExploration)
    for name, value in {"data": None, "rows": names, "columns": names, "top": 4}.items():
        object.__setattr__(found, name, value)
    leading = [name for name, *_ in found.leading(component, "column")]
    assert leading == ["most", "many", "few", "no"]


def test_variance_is_shared_out_by_the_mean_squares_of_the_parts(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draws = [random_parts(rng) for _ in range(5)]
    found = {part.name: part.mean for part in variance(posterior_of(draws, 0.3), draws, bias=True)}
    assert sum(found.values()) == pytest.approx(1.0)
    shares = []
    for part in draws:
        pieces = {
            "components": np.mean((part.U @ part.sV.T) ** 2),
            "features of rows": np.mean(np.outer(part.R[:, 1], part.G_R[:, 1]) ** 2),
            "features of columns": np.mean(np.outer(part.G_C[:, 1], part.C[:, 1]) ** 2),
            "intercepts of columns": np.var(part.G_R[:, 0]),
            "intercepts of rows": np.var(part.G_C[:, 0]),
            "noise": 0.3,
        }
        shares.append({name: value / sum(pieces.values()) for name, value in pieces.items()})
    for name, value in found.items():
        assert value == pytest.approx(np.mean([one[name] for one in shares])), name


def test_effects_are_those_of_the_covariates_behind_the_intercept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draws = [random_parts(rng) for _ in range(6)]
    row, column = effects(draws, (("age",), ("year",)), bias=True)
    assert (row.side, row.name, column.side, column.name) == ("row", "age", "column", "year")
    assert row.mean.mean == pytest.approx(np.mean([part.G_R[:, 1].mean() for part in draws]))
    assert column.spread.mean == pytest.approx(np.mean([part.G_C[:, 1].std() for part in draws]))


def test_a_column_is_explained_as_far_as_other_columns_tell_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    draws = [random_parts(rng, n_columns=5) for _ in range(5)]
    noise = np.array([0.5, 0.5, 2.0, 1.0])  # of columns, the first with two latent ones
    posterior = posterior_of(draws, noise, ((0, 2), (2, 3), (3, 4), (4, 5)))
    told = np.zeros((5, 5))
    for t, part in enumerate(draws):
        cov = np.cov(part.U @ part.sV.T, rowvar=False, bias=True) + np.diag(noise[[0, 0, 1, 2, 3]])
        for j, others in enumerate(([2, 3, 4],) * 2 + ([0, 1, 3, 4], [0, 1, 2, 4], [0, 1, 2, 3])):
            c = cov[j, others]
            told[t, j] = c @ np.linalg.solve(cov[np.ix_(others, others)], c) / cov[j, j]
    found = np.array(explained(posterior, draws))
    assert found[:, 0] == pytest.approx(told.mean(axis=0))
    assert np.all(found[:, 1] <= found[:, 0])
    assert np.all(found[:, 0] <= found[:, 2])


def test_columns_that_go_with_no_other_are_not_explained(seed: int) -> None:
    rng = np.random.default_rng(seed)
    u = rng.normal(size=300)
    alone = {f"alone{i}": rng.normal(size=300) for i in range(3)}
    together = {f"with{i}": u + rng.normal(size=300) for i in range(4)}
    table = pa.table(together | alone)
    types = {"columns": dict.fromkeys(table.column_names, "real")}
    found: Any = explore(table, types, model="bsvd", seed=seed, **FEW)
    told = [share for share, _, _ in found.explained]
    assert np.allclose(told[:4], 3 / 8, atol=0.12)  # u given three: 3 / 4 of half the variance
    assert max(told[4:]) < 0.15
    assert [c.name for c in found.components][:1] == ["C1"]


def test_a_matrix_of_noise_has_no_component(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row, column = np.nonzero(rng.random((60, 20)) < 0.5)
    table = pa.table({"u": row, "i": column, "r": rng.normal(size=row.size)})
    found: Any = explore(table, RATINGS, seed=seed, **FEW)
    assert all(component.sure for component in found.components)
    assert len(found.components) <= 1


def test_a_planted_component_and_covariate_are_found(seed: int) -> None:
    rng = np.random.default_rng(seed)
    u, v = np.repeat([-1.0, 1.0], 20), np.repeat([1.0, -1.0], 12)
    age = rng.normal(size=40)
    X = 1.5 * np.outer(u, v) + 0.8 * age[:, None]
    row, column = np.nonzero(rng.random(X.shape) < 0.6)
    values = X[row, column] + 0.4 * rng.normal(size=row.size)
    table = pa.table({"u": row, "i": column, "r": values})
    people = pa.table({"id": np.arange(40), "age": age})
    types = {"columns": {"id": "id", "age": {"type": "real", "transform": "none"}}}
    plain = {"slopes": False}  # a component of its own could be told as slopes as well
    found: Any = explore(
        table, RATINGS, row_features=(people, types), top=3, settings=plain, **FEW
    )
    first = found.components[0]
    assert first.share > 0.8
    assert abs(np.corrcoef(first.rows, u)[0, 1]) > 0.95
    places = {int(i): j for j, i in enumerate(found.columns["i"].to_pylist())}
    order = [places[j] for j in range(24)]
    assert abs(np.corrcoef(first.columns[order], v)[0, 1]) > 0.95
    (effect,) = found.effects
    assert effect.mean.lower > 0
    said = found.to_dict()
    assert said["rank"]["lower"] <= said["rank"]["mean"] <= said["rank"]["upper"] + 1
    tables = found.tables()
    assert tables["rank"]["probability"].to_numpy().sum() == pytest.approx(1.0)
    assert tables["rank_trace"].num_rows == 30
    assert tables["rows"].num_rows == 40 * len(found.components)


TYPES = {
    "columns": {
        "id": "id",
        "a": "real",
        "b": {"type": "positive", "transform": "log", "reflect": 50},
        "c": {"type": "categorical", "levels": ["x", "y", "z"]},
    }
}


def mixed(seed: int, n: int = 60) -> pa.Table:
    rng = np.random.default_rng(seed)
    u = rng.normal(size=n)
    return pa.table(
        {
            "id": [f"r{i}" for i in range(n)],
            "a": u + 0.2 * rng.normal(size=n),
            "b": 50 - np.exp(1.0 + 0.5 * u + 0.1 * rng.normal(size=n)),
            "c": np.where(u > 0.3, "y", np.where(u < -0.3, "x", "z")),
        }
    )


def test_columns_that_fall_together_have_opposite_scores(seed: int) -> None:
    found: Any = explore(mixed(seed), TYPES, model="bsvd", **FEW)
    assert found.rows.column_names == ["id", "row"]
    columns = found.columns.to_pylist()
    assert [row["column"] for row in columns] == ["a", "b", "c", "c"]
    score = found.components[0].columns
    assert score[0] * score[1] < 0  # b falls where a rises
    assert len(found.explained) == 4
    assert found.explained[0][0] > 0.5


def test_a_saved_fit_gives_the_same_as_its_table(seed: int, tmp_path: object) -> None:
    few = {**FEW, "warmup": 5}
    impute(mixed(seed), TYPES, model="bsvd", save=tmp_path / "fit.glfm", **few)
    kept: Any = explore(tmp_path / "fit.glfm")
    fresh: Any = explore(mixed(seed), TYPES, model="bsvd", **few)
    for one, other in zip(kept.components, fresh.components, strict=True):
        np.testing.assert_array_equal(one.rows, other.rows)
    assert kept.rank_table().equals(fresh.rank_table())
