"""The map of the rows: its frame, how alike two maps are, what it says of rows and columns."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

from glfm_cli import explore
from glfm_cli.exploration import MapExploration
from glfm_cli.exploration.frame import agreement, frame_of, shared_neighbours
from glfm_cli.report import write_map
from glfm_cli.schema import Schema

Here = Callable[..., Any]
SHORT = {"chains": 2, "settings": {"iterations": 60, "inducing": 12}, "threads": 1}
ODD_ROW = 17
TYPES = """columns:
  name: id
  a: real
  b: real
  c: {type: ordinal, levels: [low, mid, high]}
  d: {type: categorical, levels: [left, right]}
"""


def planted(seed: int, n: int = 80) -> tuple[pa.Table, Any]:
    """Return a table along a half circle, one of whose cells does not fit, and the angles."""
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0.0, np.pi, n))
    a, b = np.cos(angle) + 0.05 * rng.normal(size=n), np.sin(angle) + 0.05 * rng.normal(size=n)
    b[ODD_ROW] += 2.5
    columns = {
        "name": [f"n{i}" for i in range(n)],
        "a": [None if i % 9 == 4 else x for i, x in enumerate(a)],
        "b": b,
        "c": np.array(["low", "mid", "high"])[np.digitize(angle, [1.0, 2.0])],
        "d": [None if i % 7 == 3 else "left" if x < 0 else "right" for i, x in enumerate(a)],
    }
    return pa.table(columns), angle


@pytest.fixture(scope="module")
def found() -> tuple[MapExploration, Any]:
    """The planted table explored, and its angles."""
    table, angle = planted(3)
    said: Any = explore(table, Schema.from_yaml(TYPES), model="clgp", seed=1, **SHORT)
    return said, angle


def test_turning_mirroring_and_shifting_places_leaves_the_map_as_it_is(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(50, 2)) * [2.0, 1.0]
    scores = [x[:, 0] + 0.1 * rng.normal(size=50), -x[:, 1]]
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0] * [1.0, -1.0]
    equal = np.array([0.5, 0.5])
    one = frame_of(x, equal, scores)
    other = frame_of(x @ turn + 3.0, equal, scores)
    shown = one.shown(x)
    assert np.allclose(shown, other.shown(x @ turn + 3.0))
    assert np.var(shown[:, 0]) >= np.var(shown[:, 1])
    assert np.corrcoef(shown[:, 0], scores[0])[0, 1] > 0.9
    assert np.allclose(one.places(shown), x)


def test_a_frame_takes_the_most_relevant_dimensions_and_turns_covariances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(40, 4))
    frame = frame_of(x, np.array([0.1, 0.5, 0.05, 0.35]), [x[:, 1]])
    assert frame.dimensions.tolist() == [1, 3]
    C = rng.normal(size=(40, 4, 4))
    draws = frame.shown(x[:1] + rng.normal(size=(200_000, 4)) @ C[0].T)
    covariance = frame.covariance(C @ C.transpose(0, 2, 1))[0]
    assert np.allclose(np.cov(draws.T), covariance, atol=0.02 * covariance.max())


def test_agreement_is_one_for_a_turned_map_and_small_for_another(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, turn = rng.normal(size=(300, 2)), np.linalg.qr(rng.normal(size=(2, 2)))[0]
    assert agreement(a, 1.0 + 0.3 * a @ turn) == pytest.approx(1.0)
    assert agreement(a, rng.normal(size=(300, 2))) < 0.2
    same, other = 5.0 + a @ turn, rng.normal(size=(300, 2))
    assert shared_neighbours(a, same, a, same).min() == 1.0
    assert shared_neighbours(a, other, a, other).mean() < 0.15


def test_neighbours_of_new_rows_are_those_of_the_map() -> None:
    line = np.stack([np.arange(40.0), np.zeros(40)], axis=1)
    moved = line + np.array([0.25, 0.0])
    assert shared_neighbours(line, line.copy(), moved, moved).min() == 1.0
    assert shared_neighbours(line, line[::-1].copy(), moved, moved).mean() < 0.5


def test_a_planted_curve_is_laid_out_in_order_with_what_columns_do(
    found: tuple[MapExploration, Any],
) -> None:
    said, angle = found
    shown = said.map
    near = np.abs(np.argsort(np.argsort(angle))[:, None] - np.argsort(np.argsort(angle)))
    d = np.linalg.norm(shown.position[:, None] - shown.position, axis=2)
    np.fill_diagonal(d, np.inf)
    others = np.delete(np.arange(angle.size), ODD_ROW)
    assert np.median(near[others, d[others].argmin(axis=1)]) <= 6
    explained = {one.name: one.explained for one in shown.columns}
    assert list(explained.values()) == sorted(explained.values(), reverse=True)
    assert min(explained["a"], explained["c"]) > 0.5
    assert all(np.isclose(one.along.sum(), 1.0) for one in shown.columns)
    assert {"higher", "lower"} & set(shown.columns[0].towards)
    assert all(one.towards[0] in ("left", "right") for one in shown.columns if one.name == "d")


def test_unusual_cells_and_completed_values_are_told(found: tuple[MapExploration, Any]) -> None:
    said, _ = found
    assert said.most_unusual()[0] == ODD_ROW
    assert (said.unusual(ODD_ROW) or "").startswith("b ")
    assert said.label(ODD_ROW) == f"n{ODD_ROW}"
    assert not np.isnan(np.concatenate(said.map.values)).any()
    assert said.map.completed[0].sum() == sum(i % 9 == 4 for i in range(80))
    rows = said.to_table()
    assert rows.num_rows == 80
    assert min(rows["x1_sd"].to_pylist()) > 0.0
    json.dumps(said.to_dict(), allow_nan=False)
    p = next(one.probabilities for one in said.map.surfaces if one.probabilities is not None)
    assert np.allclose(p.sum(axis=2), 1.0)


def test_the_page_loads_nothing_and_runs_its_own_script_alone(
    found: tuple[MapExploration, Any], tmp_path: Path
) -> None:
    write_map(found[0], tmp_path / "map.html")
    text = (tmp_path / "map.html").read_text()
    assert not re.search(r"(src|href)=\"(?!data:|#)|@import|https?://|fetch\(|import\(", text)
    (script,) = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    content = json.loads(html.unescape(re.findall(r'data-map="([^"]*)"', text)[0]))
    assert len(content["x"]) == len(content["label"]) == len(content["odd"]) == 80
    for column in content["columns"]:
        colours = content["ramp" if column["ramp"] else "levels"]
        assert max(column["shade"]) < len(colours)
        assert len(column["text"]) == len(column["given"]) == 80


def test_new_rows_are_put_where_the_same_rows_lie(here: Here, desk: Any) -> None:
    table, _ = planted(4)
    pc.write_csv(table, "table.csv")
    pc.write_csv(table.slice(0, 12), "new.csv")
    desk.put("types.yaml", TYPES)
    options = ["--model", "clgp", "--chains", "1", "--set", "iterations=80", "--threads", "1"]
    fitted = here(
        "explore", "table.csv", "--types", "types.yaml", *options, "-o", "map", "--color", "d",
        "--save", "kept.glfm", "--plot", "map.svg", "--html", "map.html",
    )  # fmt: skip
    assert fitted.status == 0, fitted.stderr
    for name in ("rows", "columns", "surfaces", "dimensions", "restarts"):
        assert Path(f"map/{name}.csv").exists()
    assert "Colour" in Path("map.html").read_text()
    placed = here("explore", "new.csv", "--fit", "kept.glfm", "-o", "new", "--json")
    assert placed.status == 0, placed.stderr
    assert json.loads(placed.stdout)["new_rows"]
    old, new = pc.read_csv("map/rows.csv").slice(0, 12), pc.read_csv("new/rows.csv")
    for axis in ("x1", "x2"):
        far = np.abs(old[axis].to_numpy() - new[axis].to_numpy())
        sd = old[f"{axis}_sd"].to_numpy()
        assert np.mean(far < 2.0 * sd) > 0.8
    again = here("explore", "kept.glfm", "--json")
    assert (
        json.loads(again.stdout)["explained"]
        == json.loads(here("explore", "kept.glfm", "--json").stdout)["explained"]
    )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--model", "clgp", "--similar", "3"], "--similar is not available"),
        (["--model", "clgp", "--color", "z"], "--color names no modelled column"),
        (["--model", "clgp", "--set", "dimensions=1"], "a map needs two dimensions"),
        (["--color", "a"], "--color is about a map"),
    ],
)
def test_what_a_map_has_not_is_said_before_the_work(
    here: Here, desk: Any, options: list[str], error: str
) -> None:
    pc.write_csv(planted(5)[0], "table.csv")
    desk.put("types.yaml", TYPES)
    said = here("explore", "table.csv", "--types", "types.yaml", *options)
    assert said.status == 2
    assert said.stderr.startswith(f"Error: {error}")
