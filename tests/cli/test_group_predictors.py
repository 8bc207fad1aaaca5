"""Predictors that never change within a group: which these are, and what they say over time."""

from __future__ import annotations

import csv
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.arrays import Array, Groups
from glfm_cli.completion import prepare
from glfm_cli.latent.given import GroupPredictors, given_of
from glfm_cli.latent.model import Sizes
from glfm_cli.latent.row_effects import RowEffects
from tests.cli.conftest import Desk, Said

CODE = np.array([0, 0, 1, 1, 2, 2, 3])
NAN = np.nan
TYPES = """columns:
  who: group
  visit: {type: real, role: time}
  arm: {type: categorical, role: predictor}
  stage: {type: ordinal, levels: [low, mid, high], role: predictor}
  sex: categorical
  y: real
"""


def test_predictors_of_groups_are_known_of_each_and_never_change() -> None:
    given = np.array(
        [  # in part not seen; changes; of one group not known; the same everywhere; far out
            [1.0, 1.0, 1.0, 2.0, 0.0],
            [NAN, 1.5, 1.0, 2.0, 0.0],
            [3.0, 2.0, 4.0, 2.0, 1.0],
            [3.0, 2.0, 4.0, 2.0, 1.0],
            [NAN, 3.0, NAN, 2.0, 2.0],
            [5.0, 3.0, NAN, 2.0, 2.0],
            [7.0, 5.0, 5.0, 2.0, 2.0],
        ]
    )
    found = GroupPredictors.of(given, CODE, 4)
    assert list(found.at) == [0, 4]
    assert found.scale == pytest.approx(np.array([[4.0, 1.25], [np.sqrt(5.0), np.sqrt(0.6875)]]))
    assert found.x[:, 0] == pytest.approx(np.array([-3.0, -1.0, 1.0, 3.0]) / np.sqrt(5.0))
    # Of groups that are new: on the fit's scale, three sds at most, 0 where nothing is known.
    new, rows = np.array([5, 4, 4, 0]), np.full((4, 5), NAN)
    rows[:, 0] = [NAN, 5.0, NAN, 99.0]
    rows[:, 4] = [-99.0, 1.25, 1.25, 99.0]
    joined = found.joined(rows, new, 6)
    assert np.array_equal(joined[:4], found.x)
    assert joined[4:] == pytest.approx(np.array([[1.0 / np.sqrt(5.0), 0.0], [0.0, -3.0]]))


def trial(seed: int, persons: int = 40) -> tuple[list[dict[str, Any]], Array]:
    """Return visits of a trial whose arms part by 2 a visit, and y of all; many leave it early."""
    rng, rows, whole = np.random.default_rng(seed), [], []
    for g in range(persons):
        level, slope, leaves = rng.normal(0.0, 2.0), 2.0 * (g % 2), rng.choice([2, 3, 5])
        for visit in range(5):
            whole.append(50.0 + level - slope * visit + rng.normal())
            row = {"who": f"p{g}", "visit": visit, "arm": "AB"[g % 2], "sex": "fm"[g // 2 % 2]}
            row |= {"stage": ["low", "mid", "high"][g // 4 % 3], "y": f"{whole[-1]:.3f}"}
            rows.append(row | ({"y": ""} if visit >= leaves else {}))
    return rows, np.array(whole)


def text(rows: list[dict[str, Any]]) -> str:
    """Return rows as a table in a file."""
    return "\n".join([",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows), ""])


def read(text: str) -> Array:
    """Return the completed y of a table."""
    return np.array([float(row["y"]) for row in csv.DictReader(text.splitlines())])


def effect(rows: list[dict[str, Any]], y: Array) -> float:
    """Return the difference between arms at the last visit."""
    last = np.array([int(row["visit"]) == 4 for row in rows])
    arm = np.array([row["arm"] for row in rows])
    return float(y[last & (arm == "B")].mean() - y[last & (arm == "A")].mean())


def test_what_is_given_is_what_links_see_of_predictors() -> None:
    rows, _ = trial(0, 12)
    rows[3]["stage"] = None
    table = pa.table({name: [row[name] or None for row in rows] for name in rows[0]})
    table = table.set_column(1, "visit", pa.array([float(row["visit"]) for row in rows]))
    predictor = {"type": "categorical", "role": "predictor"}
    types = {
        "who": "group",
        "visit": {"type": "real", "role": "time"},
        "arm": predictor,
        "stage": {"type": "ordinal", "levels": ["low", "mid", "high"], "role": "predictor"},
        "sex": "categorical",
        "y": "real",
    }
    problem, data, _ = prepare(table, {"columns": types}, model="glfm", chains=1)
    assert data.groups is not None
    names = [encoded.column.name for encoded in data.columns]
    assert [names[d] for d in data.groups.given] == ["arm", "stage"]
    given = given_of(problem)
    assert given is not None
    stage = [["low", "mid", "high"].index(row["stage"] or "low") for row in rows]
    expected = np.where(np.arange(len(rows)) == 3, NAN, stage)
    at = np.flatnonzero(~np.isnan(given).all(axis=0))
    assert at.size == 2
    assert np.array_equal(given[:, at[1]], expected, equal_nan=True)
    assert np.unique(given[:, at[0]]).size == 2


def test_arms_of_a_trial_part_over_time_as_they_did(desk: Desk, here: Callable[..., Said]) -> None:
    rows, whole = trial(10)
    desk.put("t.csv", text(rows))
    desk.put("t.yaml", TYPES)
    told = ["impute", "t.csv", "--types", "t.yaml", "--model", "glfm", "--seed", "3", "-q"]
    told += ["--chains", "1", "--warmup", "60", "--save", "fit"]
    assert here(*told, "--draws", "5").status == 0
    done = here(*told[:2], "--types", "t.yaml", "--resume", "fit", "--draws", "16", "-q")
    assert done.status == 0, done.stderr
    assert effect(rows, read(done.stdout)) == pytest.approx(effect(rows, whole), abs=1.2)  # of -8
    told[-1] = "whole"
    assert here(*told, "--draws", "16", "--threads", "2").stdout == done.stdout
    # Two new persons without a value, who differ by their arms.
    desk.put("new.csv", text([dict(rows[n], who=f"new {n // 5}", y="") for n in range(10)]))
    new = here("impute", "new.csv", "--fit", "fit", "-q")
    assert new.status == 0, new.stderr
    y = read(new.stdout)
    assert y[9] - y[4] == pytest.approx(-8.0, abs=2.5)
    assert abs(y[5] - y[0]) < 3.0


def test_a_column_that_could_be_a_predictor_of_groups_is_named(
    desk: Desk, here: Callable[..., Said]
) -> None:
    desk.put("t.csv", text(trial(0, 6)[0]))
    told = ["impute", "t.csv", "--types", "t.yaml", "--dry-run"]
    desk.put("t.yaml", TYPES)
    said = here(*told)
    assert said.lines("Warning") == [
        "Warning: 'sex': constant within each group; differences over time between its values "
        "may be shrunk towards zero unless it has role predictor"
    ]
    desk.put("t.yaml", TYPES.replace("visit: {type: real, role: time}", "visit: real"))
    assert here(*told).lines("Warning") == []
    predictor = "sex: {type: categorical, role: predictor}"
    desk.put("t.yaml", TYPES.replace("sex: categorical", predictor))
    assert here(*told).lines("Warning") == []


def test_effects_without_predictors_are_kept_as_before_there_were_any() -> None:
    groups, spans = Groups(CODE, tuple("abcd"), np.arange(7.0)), ((0, 1), (1, 2))
    arrays = RowEffects.start(groups, spans).pack()
    before = [*"amcuvbqdfp", "at", "code", "time", "omega", "length", "step"]
    assert sorted(arrays) == sorted(f"effects.{name}" for name in before)
    again = RowEffects.unpack(arrays, Sizes(7, 2, spans))
    assert again.h.shape == (0, 7, 2)
    assert sorted(again.pack()) == sorted(arrays)
    assert again.shift() == pytest.approx(np.zeros((7, 2)))
    del arrays["effects.d"]  # fits of before slopes went with intercepts
    assert not RowEffects.unpack(arrays, Sizes(7, 2, spans)).d.any()
