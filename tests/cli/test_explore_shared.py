"""`glfm explore` of rows that belong together or follow one another: what they share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest

from glfm_cli import explore
from glfm_cli.arrays import Array
from glfm_cli.exploration import ExplorationFiles
from glfm_cli.exploration.shared import STABLE, SeriesOfDraw, of_draw, series_of
from glfm_cli.latent.capabilities import RowParts
from glfm_cli.plots import plot_exploration
from glfm_cli.report import write_exploration
from glfm_cli.store import load_fit
from tests.cli.conftest import SHORT, run_here

N, NAMES = 160, "abcdef"
LOADINGS = np.array([[0.9, 0.8, 0.7, -0.6, 0.0, 0.0], [0.0, 0.0, 0.3, 0.5, 0.8, 0.0]])
NOISE = 0.1
FIRST = date(2024, 1, 1)


def autoregressions(slopes: Sequence[float], rng: np.random.Generator) -> Array:
    """Return (N, n), uncorrelated with one another, of mean 0 and variance 1."""
    x = rng.standard_normal((N, len(slopes)))
    for t in range(1, N):
        x[t] = np.array(slopes) * x[t - 1] + np.sqrt(1.0 - np.square(slopes)) * x[t]
    return np.asarray(np.linalg.qr(x - x.mean(axis=0))[0] * np.sqrt(N))


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Array, Array, Path]:
    """Two series that columns share, what they do to these, and the folder of an exploration.

    Column f shares nothing. (N, 6) values, (N, 6) of them by the series.
    """
    rng = np.random.default_rng(3)
    series = autoregressions([0.95, 0.8, *[0.6] * 6], rng)
    shared = series[:, :2] @ LOADINGS
    own = np.sqrt(1.0 - NOISE - np.sum(LOADINGS**2, axis=0)) * series[:, 2:]
    x = shared + own + np.sqrt(NOISE) * rng.standard_normal((N, 6))
    folder = tmp_path_factory.mktemp("shared")
    cells = np.where(rng.random(x.shape) < 0.03, "", x.round(4).astype(str))
    days = [str(FIRST + timedelta(t)) for t in range(N)]
    rows = [",".join([day, *row]) for day, row in zip(days, cells, strict=True)]
    (folder / "t.csv").write_text("\n".join([f"day,{','.join(NAMES)}", *rows]) + "\n")
    (folder / "t.yaml").write_text("rest: real\ncolumns: {day: {type: date, role: time}}\n")
    how = "--chains", "2", "--warmup", "40", "--draws", "10", "--threads", "1"
    files = "--types", folder / "t.yaml", "--save", folder / "f.glfm"
    said = run_here("explore", folder / "t.csv", *files, *how)
    assert said.status == 0, said.stderr
    (folder / "said.txt").write_text(said.stdout)
    explore(folder / "f.glfm", files=ExplorationFiles(folder / "o"))
    return x, shared, folder


def parts_of(folder: Path) -> dict[str, dict[str, float]]:
    """Return the shares of parts, by part and column."""
    found: dict[str, dict[str, float]] = {}
    for row in pc.read_csv(folder / "o" / "variance_parts.csv").to_pylist():
        found.setdefault(row["part"], {})[row["column"]] = row["share"]
    return found


def test_shares_are_those_that_were_planted(planted: Any) -> None:
    _, _, folder = planted
    found = parts_of(folder)
    whole = LOADINGS.T @ LOADINGS + np.diag(1.0 - np.sum(LOADINGS**2, axis=0))
    told = 1.0 - 1.0 / np.diagonal(np.linalg.inv(whole))  # by all others
    assert list(found["explained by others"].values()) == pytest.approx(list(told), abs=0.12)
    assert list(found["in time"].values()) == pytest.approx([1.0 - NOISE] * 6, abs=0.25)
    assert found["shared series"]["a"] == pytest.approx(0.81, abs=0.15)
    for name in NAMES:
        series = found["shared series"][name] + found["own series"][name]
        assert found["in time"][name] == pytest.approx(series)
        assert series + found["features"][name] + found["noise"][name] == pytest.approx(1.0)


def test_series_are_the_principal_components_of_what_columns_share(planted: Any) -> None:
    _, shared, folder = planted
    u, d, v = np.linalg.svd(shared, full_matrices=False)
    summary = json.loads((folder / "o" / "exploration.json").read_text())
    first, second = summary["series"][:2]
    for c, one in enumerate((first, second)):
        assert one["share"] == pytest.approx(d[c] ** 2 / np.sum(d**2), abs=0.15)
        loadings = np.array([part["loading"] for part in one["loadings"]])
        assert loadings[np.argmax(np.abs(loadings))] > 0.0
        truth = d[c] * v[c] / np.sqrt(N)
        assert np.abs(loadings) == pytest.approx(np.abs(truth), abs=0.2)
        table = pc.read_csv(folder / "o" / "series_in_time.csv").to_pylist()
        rows = [row for row in table if row["series"] == one["series"]]
        assert [row["time"] for row in rows] == [FIRST + timedelta(t) for t in range(N)]
        value, truth = np.array([row["value"] for row in rows]), u[:, c] * np.sqrt(N)
        truth *= np.sign(truth @ value)
        assert np.corrcoef(value, truth)[0, 1] > (0.93, 0.8)[c]
        assert np.mean(value**2) == pytest.approx(1.0, abs=1e-9)
        for bounds, least, most in (("95", 0.6, 1.0), ("50", 0.2, 0.75)):
            ends = f"lower_{bounds}", f"upper_{bounds}"
            low, high = (np.array([row[end] for row in rows]) for end in ends)
            assert least < np.mean((low <= truth) & (truth <= high)) <= most
    assert first["stability"] > STABLE
    assert summary["series_together"][0]["correlation"] > 0.4
    due = LOADINGS.T @ LOADINGS
    for row in pc.read_csv(folder / "o" / "series_together.csv").to_pylist():
        i, j = (NAMES.index(row[name]) for name in ("column", "other"))
        assert row["correlation"] == pytest.approx(due[i, j], abs=0.2)


def test_series_are_printed_and_on_the_page(planted: Any) -> None:
    _, _, folder = planted
    lines = (folder / "said.txt").read_text().splitlines()
    at = lines.index("Parts of the variance of each column, on the scale of its link")
    header = ["in time", "explained by others", "features", "noise"]
    assert [part.strip() for part in lines[at + 1].split("  ") if part] == header
    assert [line[0] for line in lines[at + 3 : at + 9]] == list(NAMES)
    series = next(i for i, line in enumerate(lines) if line.startswith("Time series that"))
    first = next(line for line in lines[series:] if line.startswith("S1 "))
    assert "a +0." in first
    assert "d −0." in first


def test_series_are_drawn_against_dates(planted: Any) -> None:
    _, _, folder = planted
    short: dict[str, Any] = {"chains": 1, "warmup": 15, "draws": 5, "threads": 1, "model": "bsvd"}
    found = explore(folder / "t.csv", folder / "t.yaml", **short)
    panels = {axes.get_title(loc="left"): axes for axes in plot_exploration(found).axes}
    axes = panels["S1: a series that columns share"]
    axes.figure.canvas.draw()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert "2024" in labels or "Apr" in labels
    wide, narrow = (band.get_paths()[0].vertices[:, 1] for band in axes.collections)
    assert wide.min() < narrow.min() < narrow.max() < wide.max()
    parts = found.tables()["variance_parts"]["part"].to_pylist()
    assert {"in time", "explained by others", "components"} < set(parts)
    write_exploration(found, folder / "x.html", name="t")
    page = (folder / "x.html").read_text()
    for text in ("Groups and time", "explained by others", "All loadings"):
        assert text in page


def test_groups_have_the_share_that_was_planted(desk: Any) -> None:
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(40), 5)
    high = rng.normal(size=(40, 3))[group] * [1.5, 0.7, 0.0]
    x = (high + rng.normal(size=high.shape)).round(3)
    rows = [f"g{g}," + ",".join(map(str, row)) for g, row in zip(group, x, strict=True)]
    desk.put("t.csv", "\n".join(["school,x,y,z", *rows]) + "\n")
    desk.put("t.yaml", "rest: real\ncolumns: {school: group}\n")
    how = "--chains", "1", "--warmup", "30", "--draws", "10", "--threads", "1"
    said = run_here("explore", "t.csv", "--types", "t.yaml", *how, "--json")
    assert said.status == 0, said.stderr
    summary = json.loads(said.stdout)
    assert "series" not in summary
    groups = {r["column"]: r["share"] for r in summary["variance_parts"] if r["part"] == "groups"}
    assert list(groups.values()) == pytest.approx([2.25 / 3.25, 0.49 / 1.49, 0.05], abs=0.15)
    assert {row["part"] for row in summary["variance_parts"]} == {"groups", "features", "noise"}
    said = run_here("explore", "t.csv", "--types", "t.yaml", *SHORT, "--html", "x.html")
    for shown in (said.stdout, (desk.folder / "x.html").read_text()):
        assert "Parts of the variance of each column" in shown
        assert "explained by others" not in shown


def test_cells_are_surprising_for_their_time(desk: Any) -> None:
    """What is usual in the table and not in its season is named, not what the season brings."""
    rng = np.random.default_rng(6)
    season = 3.0 * np.sin(np.arange(120) / 10.0)
    x = season[:, None] + 0.2 * rng.standard_normal((120, 3))
    x[16, 1] = -1.5  # near the season's peak
    rows = [f"{t}," + ",".join(map(str, row)) for t, row in enumerate(x.round(3))]
    desk.put("t.csv", "\n".join(["t,a,b,c", *rows]) + "\n")
    desk.put("t.yaml", "rest: real\ncolumns: {t: {type: real, role: time}}\n")
    how = "--chains", "2", "--warmup", "30", "--draws", "10", "--threads", "1", "--surprising", "1"
    said = run_here("explore", "t.csv", "--types", "t.yaml", *how, "--json")
    assert said.status == 0, said.stderr
    (cell,) = json.loads(said.stdout)["surprising_cells"]
    assert (cell["row"], cell["column"]) == (17, "b")


def test_traces_tell_how_far_series_move_columns(planted: Any) -> None:
    for draw in load_fit(planted[2] / "f.glfm").posterior.draws():
        loading = draw.latent.effects.factors.loading
        sds = np.sqrt(np.sum(loading**2, axis=0))
        assert draw.trace["shared_sd"] == pytest.approx(np.mean(sds))


# What is taken from draws -------------------------------------------------------------------


@pytest.mark.parametrize("model", ["glfm", "bsvd"])
def test_where_the_time_is_the_only_column_rows_share_nothing(model: Any) -> None:
    table = pa.table({"who": list("aabb"), "when": [1.0, 2.0, 1.0, 2.0]})
    types = {"columns": {"who": {"role": "group"}, "when": {"type": "real", "role": "time"}}}
    found: Any = explore(table, types, model=model, chains=1, warmup=3, draws=3, threads=1)
    assert found.shared is None


def test_a_draw_against_dense_laws(seed: int) -> None:
    """Of two columns, the first of two latent columns, beside another that is not meant."""
    rng = np.random.default_rng(seed)
    g, loading = 2.0 + rng.standard_normal((50, 2)), rng.standard_normal((2, 3))
    own, groups, rest = rng.standard_normal((3, 50, 3))
    parts = RowParts(np.arange(3), g, loading, own, groups, rest, np.array([9.0, 0.4, 0.7]))
    noise = np.array([0.4, 0.4, 0.7])
    found = of_draw(parts, np.array([1, 1, 2]), [(0, 2), (2, 3)])
    variance = np.array([*(np.var(x, axis=0) for x in (g @ loading, own, groups, rest)), noise])
    whole = np.column_stack([variance[:, 0] + variance[:, 1], variance[:, 2]])
    assert found.share == pytest.approx((whole / whole.sum(axis=0)).T)
    sd = np.sqrt(variance.sum(axis=0))
    assert found.series.g @ found.series.L == pytest.approx((g - g.mean(axis=0)) @ loading / sd)
    law = np.cov((g @ loading / sd).T, bias=True)
    np.fill_diagonal(law, 1.0)
    left = law[:2, :2] - np.outer(law[:2, 2], law[:2, 2])
    last = law[2, :2] @ np.linalg.solve(law[:2, :2], law[:2, 2])
    assert found.told == pytest.approx([1.0 - np.trace(left) / 2.0, last])


def some_draws(rng: np.random.Generator, turned: bool = True, n: int = 6) -> list[SeriesOfDraw]:
    """Return draws of two series of four columns, each turned in another way."""
    g = np.linalg.qr(rng.standard_normal((30, 2)))[0] * np.sqrt(30)
    L = np.array([[0.9, 0.6, -0.5, 0.1], [0.1, -0.2, 0.3, 0.6]])
    found = []
    for _ in range(n):
        near = g + 0.05 * rng.standard_normal(g.shape), L + 0.02 * rng.standard_normal(L.shape)
        turn = np.linalg.qr(rng.standard_normal((2, 2)))[0] if turned else np.eye(2)
        found.append(SeriesOfDraw(near[0] @ turn, turn.T @ near[1]))
    return found


def test_turns_of_draws_change_nothing(seed: int) -> None:
    ones, rows = np.ones(4), np.arange(30)
    a, b = (
        series_of(some_draws(np.random.default_rng(seed), turned), [3, 3], ones, ones, rows)
        for turned in (True, False)
    )
    found = {one.name: [one.loading, one.loading_sd, one.mean, one.bands] for one in a}
    assert list(found) == ["S1", "S2"]
    assert [one.stable for one in a] == [True, True]
    for one, other in zip(a, b, strict=True):
        for name in ("share", "share_sd", "stability"):
            assert 0.0 <= getattr(one, name) <= 1.0
        assert one.mean @ other.mean > 0.9 * 30


def test_series_against_dense_sums(seed: int) -> None:
    draws = some_draws(np.random.default_rng(seed))
    every = np.array([x.g @ x.L for x in draws])
    u, d, v = np.linalg.svd(every.mean(axis=0), full_matrices=False)
    found = series_of(draws, [3, 3], np.ones(4), np.ones(4), np.arange(4, 30))
    assert len(found) == 2
    for c, one in enumerate(found):
        loadings = u[:, c] @ every / np.sqrt(30)
        sign = np.sign(loadings.mean(axis=0)[np.argmax(np.abs(loadings.mean(axis=0)))])
        assert one.loading == pytest.approx(sign * loadings.mean(axis=0))
        assert one.loading_sd == pytest.approx(loadings.std(axis=0))
        values = sign * every[:, 4:] @ v[c] * np.sqrt(30) / d[c]
        assert one.mean == pytest.approx(values.mean(axis=0))
        assert one.bands == pytest.approx(np.quantile(values, [0.025, 0.25, 0.75, 0.975], axis=0))
        share = (u[:, c] @ every @ v[c]) ** 2 / np.sum(every**2, axis=(1, 2))
        assert [one.share, one.share_sd] == pytest.approx([share.mean(), share.std()])


def test_what_draws_do_not_share_is_no_series(seed: int) -> None:
    rng, draws = np.random.default_rng(seed), []
    for one in some_draws(rng, turned=False, n=20):
        draws.append(SeriesOfDraw(one.g, one.L * np.array([[1.0], [rng.choice([-1.0, 1.0])]])))
    found = series_of(draws, [10, 10], np.ones(4), np.ones(4), np.arange(30))
    assert [one.name for one in found] == ["S1"]
    nothing = [SeriesOfDraw(one.g, 0.0 * one.L) for one in draws]
    assert series_of(nothing, [10, 10], np.ones(4), np.ones(4), np.arange(30)) == ()


def test_chains_may_find_a_series_with_another_sign(seed: int) -> None:
    for number in range(20):
        rng = np.random.default_rng(seed + number)
        u = np.linalg.qr(rng.standard_normal((40, 2)))[0] * np.sqrt(40)
        L = np.linalg.qr(rng.standard_normal((4, 2)))[0].T * [[1.0], [0.5]]
        draws = [SeriesOfDraw(u, L + 0.1 * rng.standard_normal(L.shape)) for _ in range(4)]
        found = series_of(draws, [1, 1, 1, 1], np.ones(4), np.ones(4), np.arange(40))
        assert found
        assert all(one.stability > 0.8 for one in found)


def test_series_of_about_one_size_are_said_to_turn() -> None:
    rng = np.random.default_rng(0)
    u = np.linalg.qr(rng.standard_normal((40, 2)))[0] * np.sqrt(40)
    v, half = np.linalg.qr(rng.standard_normal((4, 2)))[0].T, np.sqrt(0.5)
    size = np.diag([1.1, 1.0])
    turn = np.array([[half, half], [-half, half]])  # by 45 degrees between chains
    chains = (u, size @ v), (u @ turn, size @ turn.T @ v)
    draws = [SeriesOfDraw(*chain) for chain in chains for _ in range(3)]
    one, *_ = series_of(draws, [3, 3], np.ones(4), np.ones(4), np.arange(40))
    assert one.stability == pytest.approx(half, abs=0.02)
    assert not one.stable
    assert np.isnan(series_of(draws, [6], np.ones(4), np.ones(4), np.arange(40))[0].stability)


def test_latent_columns_of_one_column_count_as_one(seed: int) -> None:
    """And a column whose latent numbers run against its values is pointed the other way."""
    draws, rows = some_draws(np.random.default_rng(seed)), np.arange(30)
    one = series_of(draws, [3, 3], np.ones(4), np.ones(4), rows)
    assert len(one) == 2
    twice = [SeriesOfDraw(x.g, x.L[:, [0, 0, 1, 2, 3]]) for x in draws]
    weight = np.array([np.sqrt(0.5), np.sqrt(0.5), 1.0, 1.0, 1.0])
    two = series_of(twice, [3, 3], weight, np.ones(5), rows)
    against = series_of(draws, [3, 3], np.ones(4), np.array([-1.0, 1.0, 1.0, 1.0]), rows)
    for a, b, c in zip(one, two, against, strict=True):
        assert b.share == pytest.approx(a.share)
        assert b.loading == pytest.approx(a.loading[[0, 0, 1, 2, 3]])
        assert b.bands == pytest.approx(a.bands)
        lead = np.argmax(np.abs(c.loading))
        assert c.loading[lead] > 0.0
        sign = -1.0 if lead == 0 else 1.0
        assert c.loading * [-1.0, 1.0, 1.0, 1.0] == pytest.approx(sign * a.loading)
        assert c.mean == pytest.approx(sign * a.mean)


def test_a_saved_fit_of_several_models_shows_what_rows_share(desk: Any) -> None:
    rows = [f"{t},{np.sin(t / 3):.3f},{np.sin(t / 3) + t % 2:.3f}" for t in range(40)]
    desk.put("t.csv", "\n".join(["t,a,b", *rows[:-1], "39,,1"]) + "\n")
    desk.put("t.yaml", "rest: real\ncolumns: {t: {type: real, role: time}}\n")
    how = "--types", "t.yaml", "--chains", "2", "--warmup", "5", "--draws", "5", "--threads", "1"
    said = run_here("impute", "t.csv", *how, "-o", "o.csv", "--save", "fit.glfm")
    assert said.status == 0, said.stderr
    said = run_here("explore", "fit.glfm")
    assert said.status == 0, said.stderr
    assert "explained by others" in said.stdout
