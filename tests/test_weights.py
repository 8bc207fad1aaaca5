"""Rows that stand for many count so in what is said of the population, and in no fit."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli import classify, explore, impute
from glfm_cli.errors import GlfmError
from glfm_cli.exploration.features import effects
from glfm_cli.guess import guess_schema

SHORT: dict[str, Any] = {"model": "glfm", "chains": 2, "warmup": 20, "draws": 4, "threads": 1}
N = 80
TYPES = {"w": "weight", "x": "real", "y": "categorical", "z": "real"}


def survey(seed: int) -> pa.Table:
    """Return a table with a third of two columns missing, and weights that go with one."""
    rng = np.random.default_rng(seed)
    w = rng.integers(0, 5, N)
    x, z = rng.normal(w, 1.0), rng.normal(size=N)
    y = np.where(x + rng.normal(size=N) > 2, "yes", "no")
    cells = {"x": pa.array(x, mask=rng.random(N) < 0.3), "y": pa.array(y, mask=rng.random(N) < 0.3)}
    return pa.table({"w": w} | cells | {"z": z})


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A completion of the survey, and the folder of its fit."""
    folder = tmp_path_factory.mktemp("kept") / "fit.glfm"
    return impute(survey(1), {"columns": TYPES}, seed=1, save=folder, **SHORT), folder


def test_cells_do_not_depend_on_weights(kept: Any) -> None:
    done, _ = kept
    without = impute(survey(1), {"columns": TYPES | {"w": "ignore"}}, seed=1, **SHORT)
    assert done.table.equals(without.table)
    assert not any("margin" in column for column in without.to_dict()["per_column"])


def test_margins_are_those_of_the_population(kept: Any) -> None:
    done, _ = kept
    w = done.table["w"].to_numpy()
    told = {column["column"]: column.get("margin") for column in done.to_dict()["per_column"]}
    parts = {part.encoded.column.name: part for part in done.columns}
    x = parts["x"].encoded.x.copy()
    x[parts["x"].marginal.rows] = parts["x"].marginal.mean
    assert told["x"]["mean"] == pytest.approx(w @ x / w.sum())
    assert told["x"]["weight"] == w.sum()
    part = parts["y"]
    yes = part.encoded.levels.index("yes")
    p = (part.encoded.x == yes).astype(float)
    p[part.marginal.rows] = part.marginal.probabilities[:, yes]
    assert told["y"]["levels"]["yes"] == pytest.approx(w @ p / w.sum())
    assert told["z"]["mean"] == pytest.approx(w @ done.table["z"].to_numpy() / w.sum())


def test_what_is_explored_is_as_of_rows_repeated(kept: Any) -> None:
    found = explore(kept[1])
    table = survey(1)
    w = table["w"].to_numpy()
    many = np.repeat(np.arange(N), w)
    scales = {scale.name: place for place, scale in enumerate(found.scales)}
    seen = table["y"].take(pa.array(many)).drop_null().to_pylist()
    levels = found.scales[scales["y"]].encoded.levels
    mass = found.baseline[scales["y"]].mass
    assert mass[levels.index("yes")] == pytest.approx(np.mean(np.array(seen) == "yes"))
    mean = np.nanmean(found.scales[scales["x"]].encoded.x[many])
    assert found.baseline[scales["x"]].mean == pytest.approx(mean)
    Z = found.shown.Z[many]
    for feature in found.features:
        assert feature.share == pytest.approx(Z[:, feature.index].mean())
    for pattern in found.patterns:
        assert pattern.share == pytest.approx(w[pattern.rows].sum() / w.sum())
    assert found.patterns[-1].cumulative == pytest.approx(1.0)
    gone = np.array([table[name].is_null().to_numpy() for name in scales])[:, many]
    np.testing.assert_allclose(found.missing.share, gone.mean(axis=1))
    both = gone[:, None] & gone
    np.testing.assert_allclose(found.missing.together, both.mean(axis=2))
    there = np.ix_(*[np.flatnonzero(gone.any(axis=1))] * 2)  # z is never missing
    phi = np.corrcoef(gone[gone.any(axis=1)])
    np.testing.assert_allclose(found.missing.phi[there], phi, atol=1e-12)
    assert not found.missing.phi[scales["z"]].any()
    assert found.missing.complete == pytest.approx(np.mean(~gone.any(axis=0)))


def test_effects_are_as_of_rows_repeated(kept: Any) -> None:
    scales = explore(kept[1]).scales
    rng = np.random.default_rng(4)
    w = survey(1)["w"].to_numpy()
    rows, many = np.arange(N), np.repeat(np.arange(N), w)
    p = rng.random((len(scales), N, 1))
    found = []
    for at, weight in ((rows, scales[0].weight), (many, None)):
        half = SimpleNamespace(known=[True], rows=at, probability=p[:, at])
        own = [replace(scale, weight=weight) for scale in scales]
        found.append(effects([half], 0, own, np.zeros(len(own)), np.ones(len(own), bool)))  # type: ignore[list-item]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one.on.mass, other.on.mass)
        np.testing.assert_allclose(one.off.mass, other.off.mass)


def test_a_weight_with_a_type_is_a_predictor_besides() -> None:
    typed = {"columns": TYPES | {"w": {"role": "weight", "type": "count"}}}
    done = impute(survey(2), typed, seed=1, **SHORT)
    assert "w" in [e.column.name for e in done.data.columns]
    assert done.table["w"].equals(survey(2)["w"])
    with pytest.raises(GlfmError, match="role weight is not used by a classifier"):
        classify(survey(2), {"columns": TYPES}, target="y")


def test_a_classifier_sees_the_time_of_rows_as_a_feature() -> None:
    together = survey(2).append_column("at", pa.array(np.arange(survey(2).num_rows) % 9))
    few: dict[str, Any] = {"target": "y", "cv": 2, "chains": 1, "settings": {"iterations": 3}}
    of_role, of_type = (
        classify(together, {"columns": TYPES | {"w": "ignore", "at": one}}, seed=1, **few)
        for one in ({"type": "count", "role": "time"}, "count")
    )
    assert of_role.predictions is not None
    assert of_type.predictions is not None
    assert np.array_equal(of_role.predictions.p, of_type.predictions.p)


def test_weights_are_guessed_by_names_that_mean_nothing_else() -> None:
    rng = np.random.default_rng(3)
    numbers = rng.gamma(3.0, 1.0, 60).round(3)
    names = ["pspwght", "Survey weight", "final_wt", "weight", "Hochrechnungsfaktor", "body weight"]
    schema = guess_schema(pa.table({n: rng.permutation(numbers) for n in names})).schema
    roles = [str(column.role) for column in schema.columns]
    assert roles == ["weight", "weight", "weight", "feature", "weight", "feature"]


def test_a_run_goes_on_with_its_own_weights_alone(kept: Any, tmp_path: Path) -> None:
    folder = shutil.copytree(kept[1], tmp_path / "fit.glfm")
    again = impute(survey(1), resume=folder, draws=5)
    assert again.posterior.n_draws == 10
    other = survey(1).set_column(0, "w", pa.array(np.ones(N)))
    with pytest.raises(GlfmError, match="made with another table"):
        impute(other, resume=folder, draws=6)
