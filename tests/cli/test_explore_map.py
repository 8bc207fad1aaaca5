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
from glfm_cli.exploration.embedding import divergence_slope, neighbour_probabilities
from glfm_cli.exploration.frame import agreement, frame_of, shared_neighbours, weighted
from glfm_cli.latent.clgp import Clgp
from glfm_cli.report import write_map
from glfm_cli.schema import Schema

Here = Callable[..., Any]
SETTINGS = {"iterations": 60, "inducing": 12}
SHORT = {"chains": 2, "settings": SETTINGS | {"dimensions": 8}, "threads": 1}
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
    equal = np.ones(2)
    one = frame_of(x, equal, scores)
    other = frame_of(x @ turn + 3.0, equal, scores)
    shown = one.shown(x)
    assert np.allclose(shown, other.shown(x @ turn + 3.0))
    assert np.var(shown[:, 0]) >= np.var(shown[:, 1])
    assert np.corrcoef(shown[:, 0], scores[0])[0, 1] > 0.9
    assert np.allclose(one.places(shown), x)


def test_one_row_alone_has_a_map() -> None:
    table = pa.table({"a": [1.0], "b": [2.0]})
    said: Any = explore(table, Schema.from_yaml("columns: {a: real, b: real}"), model="clgp")
    assert said.map.position.shape == (1, 2)
    assert {one["neighbours"] for one in said.to_dict()["restarts"]} == {None}
    assert "nan" not in said.stability_line()
    assert set(said.tables()["restarts"]["neighbours"].to_pylist()) == {None}


def test_a_saved_map_explains_as_much_of_what_stands_beside_dates(tmp_path: Path) -> None:
    days = np.random.default_rng(0).integers(0, 1400, 60)
    warm = np.cos(days / 365.0 * 2.0 * np.pi) + 0.1 * np.arange(60) % 3
    moments = pa.array(days.astype("datetime64[D]"))
    table = pa.table({"day": moments, "warm": warm, "cold": -warm})
    types = "columns: {day: {type: date, as: [days, month]}, warm: real, cold: real}"
    save = tmp_path / "map.glfm"
    said: Any = explore(table, Schema.from_yaml(types), model="clgp", save=save, **SHORT)
    again: Any = explore(save)
    first, second = ([one.explained for one in found.map.columns] for found in (said, again))
    assert first == second


def test_a_frame_turns_covariances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, C = rng.normal(size=(40, 2)), rng.normal(size=(40, 2, 2))
    frame = frame_of(x, np.ones(2), [x[:, 1]])
    draws = frame.shown(x[:1] + rng.normal(size=(200_000, 2)) @ C[0].T)
    covariance = frame.covariance(x, C @ C.transpose(0, 2, 1))[0]
    assert np.allclose(np.cov(draws.T), covariance, atol=0.02 * covariance.max())


def grouped(seed: int, n: int = 90) -> tuple[Any, Any]:
    """Return places in five dimensions about the corners of a simplex, and their groups."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 6
    return np.vstack([3.0 * np.eye(5), np.zeros(5)])[group] + 0.1 * rng.normal(size=(n, 5)), group


def test_groups_that_no_plane_parts_are_laid_out_apart(seed: int) -> None:
    x, group = grouped(seed)
    x = np.column_stack([x, 50.0 * np.random.default_rng(seed).normal(size=len(x))])
    scale = np.array([1.0] * 5 + [0.0])  # what does nothing has no part in the layout
    frame = frame_of(x, scale, [x[:, 0]])
    u = frame.shown(x)
    far = np.linalg.norm(u[:, None] - u, axis=2) + 1e9 * np.eye(len(u))
    assert np.mean(group[np.argsort(far, axis=1)[:, :5]] == group[:, None]) > 0.9
    assert np.mean(u**2) == pytest.approx(1.0)
    assert np.var(u[:, 0]) >= np.var(u[:, 1])
    # What is shown about a row's place is about the row; a place between rows lies between them.
    away = np.linalg.norm((frame.places(u) - x) * scale, axis=1)
    assert np.quantile(away, 0.9) < 0.5  # a row may be laid out astray of its group
    assert (
        min(
            np.corrcoef(np.argsort(np.argsort(v)), np.argsort(np.argsort(x[:, 0])))[0, 1]
            for v in u.T
        )
        > 0.0
    )
    assert np.linalg.norm(frame.shown(x + 1e-4) - u, axis=1).max() < 0.2


def test_rows_are_laid_out_by_their_completed_cells(seed: int) -> None:
    cells, group = grouped(seed)
    x = np.random.default_rng(seed).normal(size=(len(cells), 3))  # say nothing of the groups
    u = frame_of(x, np.ones(3), [x[:, 0]], cells).shown(x)
    far = np.linalg.norm(u[:, None] - u, axis=2) + 1e9 * np.eye(len(u))
    assert np.mean(group[np.argsort(far, axis=1)[:, :5]] == group[:, None]) > 0.9


def test_completed_cells_have_one_scale_and_keep_what_is_observed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[Any] = []

    def kept(*args: Any) -> Any:
        given.append(args[3])
        return frame_of(*args)

    monkeypatch.setattr("glfm_cli.exploration.map.frame_of", kept)
    table, _ = planted(3)
    explore(table, Schema.from_yaml(TYPES), model="clgp", seed=1, **SHORT)
    (cells,) = given
    assert cells.shape == (80, 5)  # a, b, c and the levels of d
    assert np.allclose(cells.mean(axis=0), 0.0)
    assert np.allclose(np.add.reduceat(cells.var(axis=0), [0, 1, 2, 3]), 1.0)
    a = table["a"].to_numpy()
    seen = ~np.isnan(a)
    assert np.array_equal(np.argsort(cells[seen, 0]), np.argsort(a[seen]))
    near = np.interp(np.flatnonzero(~seen), np.flatnonzero(seen), cells[seen, 0])
    assert np.abs(cells[~seen, 0] - near).mean() < 0.5  # rows are in the order of their places


def test_a_laid_out_place_has_the_spread_of_its_draws(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(150, 3))
    frame = frame_of(x, np.ones(3), [x[:, 0]])
    moved = np.stack([frame.shown(x + 0.5 * rng.normal(size=x.shape)) for _ in range(40)])
    cov = np.repeat(0.25 * np.eye(3)[None], len(x), axis=0)
    spread = np.trace(frame.covariance(x, cov), axis1=1, axis2=2).mean()
    assert spread == pytest.approx(moved.var(axis=0).sum(axis=1).mean(), rel=0.25)
    assert frame.covariance(x, 1e-6 * cov).max() < 1e-3


def test_the_slope_of_an_embedding_is_that_of_central_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p, u = neighbour_probabilities(rng.normal(size=(12, 4))), rng.normal(size=(12, 2))
    assert p.sum() == pytest.approx(1.0)
    assert np.allclose(p, p.T)

    def divergence() -> float:
        near = 1.0 / (1.0 + np.sum((u[:, None] - u) ** 2, axis=2)) - np.eye(12)
        return float(-np.sum(p * np.log(near / near.sum() + np.eye(12))))

    found, expected = divergence_slope(u, p), np.zeros(u.shape)
    for at in np.ndindex(u.shape):
        kept = u[at]
        sides = []
        for step in (1e-5, -1e-5):
            u[at] = kept + step
            sides.append(divergence())
        u[at], expected[at] = kept, (sides[0] - sides[1]) / 2e-5
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7 * np.abs(expected).max())


def test_rows_have_the_neighbours_that_are_asked_for(seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(200, 3))
    p = neighbour_probabilities(x) * 400.0  # about twice each row's own
    size = np.exp(
        -np.sum(
            p / p.sum(1, keepdims=True) * np.log(np.maximum(p / p.sum(1, keepdims=True), 1e-300)),
            axis=1,
        )
    )
    assert 25.0 < np.median(size) < 60.0


def test_dimensions_are_as_wide_as_what_they_do(seed: int) -> None:
    x = np.random.default_rng(seed).normal(size=(500, 3)) * [1.0, 2.0, 0.1]
    cov = np.repeat(np.diag([0.0, 0.0, 3.99])[None], 500, axis=0)
    relevances = np.array([0.5, 0.4, 0.1])
    size = np.mean(x**2, axis=0) + np.diag(cov[0])
    assert np.allclose(weighted(x, cov, relevances) ** 2 * size, relevances)


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
    first = next(one for one in shown.columns if one.name == "a")
    axis = int(np.argmax(first.along))
    rises = np.corrcoef(shown.position[:, axis], shown.values[first.d])[0, 1] > 0.0
    assert first.towards[axis] == ("higher" if rises else "lower")


def test_columns_that_go_with_no_other_are_not_explained(here: Here, desk: Any) -> None:
    table, _ = planted(3, 100)
    rng = np.random.default_rng(3)
    permuted = {name: table[name].take(rng.permutation(100)) for name in table.column_names}
    desk.put("types.yaml", TYPES)
    options = ["--types", "types.yaml", "--model", "clgp", "--chains", "1", "--threads", "1"]
    explained = []
    for name, one in (("apart", pa.table(permuted)), ("together", table)):
        pc.write_csv(one, f"{name}.csv")
        said = here("explore", f"{name}.csv", *options, "--set", "iterations=60", "--json")
        assert said.status == 0, said.stderr
        explained.append([c["explained"] for c in json.loads(said.stdout)["explained"]])
    assert max(explained[0]) < 0.15
    assert sorted(explained[1])[1] > 0.4  # but for b, whose odd cell none explains


def test_a_map_has_half_as_many_dimensions_as_columns_from_three_to_eight() -> None:
    options: dict[str, Any] = SHORT | {"settings": SETTINGS}
    narrow = planted(3)[0].select(["a", "b"])  # a completion would have one
    types = Schema.from_yaml("columns:\n  a: real\n  b: real\n")
    said: Any = explore(narrow, types, model="clgp", **options)
    assert said.map.relevances.size == 2
    sizes = [Clgp().map_settings(n)["dimensions"] for n in (1, 2, 4, 7, 13, 40)]
    assert sizes == [2, 2, 3, 4, 7, 8]


def test_a_value_between_two_groups_is_told_with_what_lies_on_either_side() -> None:
    rng = np.random.default_rng(0)
    cells = np.repeat([-4.0, 4.0], 30)[:, None] + 0.5 * rng.normal(size=(60, 4))
    cells[0] = [0.0, 0.3, -0.2, 0.0]
    table = pa.table({name: cells[:, i] for i, name in enumerate("abcd")})
    types = {"columns": dict.fromkeys("abcd", "real")}
    said: Any = explore(table, types, model="clgp", **(SHORT | {"settings": SETTINGS}))
    assert said.most_unusual()[0] == 0
    first = re.search(r"a 0 \(expected (\S+) to (\S+) or (\S+) to (\S+)\)", said.unusual(0) or "")
    assert first, said.unusual(0)
    ends = [float(text) for text in first.groups()]
    assert ends == sorted(ends)
    assert ends[1] < 0.0 < ends[2]
    assert ends[0] > -6.0
    assert ends[3] < 6.0


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
    options = ["--model", "clgp", "--chains", "1", "--set", "iterations=25", "--threads", "1"]
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


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (["--model", "clgp", "--similar", "3"], "--similar is not available"),
        (["--model", "clgp", "--color", "z"], "--color names no modelled column"),
        (["--model", "clgp", "--set", "dimensions=1"], "a map needs two dimensions"),
        (["--color", "a"], "--color is for maps"),
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
