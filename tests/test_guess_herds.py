"""What `glfm types` sees in tables of journeys, food and herds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml

from glfm_cli.guess import guess_schema
from glfm_cli.schema import Schema
from tests.cli.conftest import run_here

N = 200
SHORT = ("--model", "glfm", "--chains", "1", "--warmup", "2", "--draws", "2")


def clock(minutes: np.ndarray) -> list[str]:
    return [f"{one // 60:02d}:{one % 60:02d}" for one in minutes]


def test_the_time_between_two_times_of_day_is_found_and_then_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    start = rng.integers(300, 1200, N)
    took = rng.integers(3, 90, N)
    cells = np.array([clock(start), clock(start + took), took.astype(str)]).T
    full = [",".join(row) for row in cells]
    gone = np.flatnonzero(rng.random(N) < 0.4)
    cells[gone, rng.integers(0, 3, gone.size)] = ""
    rows = "\n".join(",".join(row) for row in cells)
    (tmp_path / "t.csv").write_text(f"dep,arr,min\n{rows}\n")
    done = run_here("types", "t.csv", "-o", "t.yaml")
    assert done.status == 0, done.stderr
    said = (tmp_path / "t.yaml").read_text()
    assert "formula: arr - dep\n" in said
    assert "less_than: arr\n" in said
    types = yaml.safe_load(said)
    types["columns"]["min"] = {"type": "count", "formula": "arr - dep"}
    (tmp_path / "t.yaml").write_text(Schema.from_dict(types).to_yaml())
    done = run_here("impute", "t.csv", "--types", "t.yaml", "-o", "o.csv", *SHORT)
    assert done.status == 0, done.stderr
    assert (tmp_path / "o.csv").read_text().splitlines()[1:] == full


@pytest.mark.parametrize(
    ("factor", "formula"), [(1.0, "b - a"), (60.0, "(b - a) * 60"), (1 / 60, "(b - a) / 60")]
)
def test_times_between_times_of_day_are_in_any_unit(factor: float, formula: str) -> None:
    rng = np.random.default_rng(3)
    start, took = rng.integers(300, 1000, N), rng.integers(3, 200, N)
    table = {"a": clock(start), "b": clock(start + took), "c": took * factor}
    (hint, *_) = guess_schema(pa.table(table)).hints["c"]
    assert hint.startswith(f"{formula} in all ")
    day = np.datetime64("2024-03-01") + rng.integers(0, 90, N)
    mixed = {"day": day, "a": clock(start), "c": day.astype(int) - start}
    assert not any("formula" in one for one in guess_schema(pa.table(mixed)).hints["c"])


def lines(*cells: str, name: str = "x") -> pa.Table:
    """Return a table of cells that go round, beside numbers."""
    return pa.table({name: [cells[i % len(cells)] for i in range(N)], "y": np.arange(N) % 7.0})


@pytest.mark.parametrize(
    ("steps", "code", "found"),
    [
        (("<1500", "1500-2599", "2600-3599", "5000+"), "99", True),
        (("18-24", "25-34", "35-64", "65+"), "99", True),
        (("1", "2", "3", "4+"), "9", True),
        (("0-98", "100-150", "151+"), "99", False),  # a step of its own
        (("<500", "500-1000", "1000+"), "150", False),
    ],
)
def test_a_code_inside_a_range_of_the_others_is_no_step(
    steps: tuple[str, ...], code: str, *, found: bool
) -> None:
    guess = guess_schema(lines(*steps, code))
    column = guess.schema.columns[0]
    assert column.levels == (steps if found else tuple(sorted((*steps, code), key=ends)))
    assert [one.text for one in column.missing] == [code] * found
    assert ("inside one of the ranges" in guess.reasons["x"]) is found


def ends(text: str) -> tuple[float, bool]:
    """Return where a range of a scale begins."""
    return (-1.0, True) if text.startswith("<") else (float(text.strip("+").split("-")[0]), True)


def test_whole_numbers_beside_traces_are_no_categories() -> None:
    rng = np.random.default_rng(2)
    cells = np.where(rng.random(N) < 0.5, "tr", rng.integers(1, 90, N).astype(str))
    guess = guess_schema(pa.table({"vitamin C (mg)": cells, "y": np.arange(N) % 7.0}))
    assert guess.schema.columns[0].role == "ignore"
    assert guess.reasons["vitamin C (mg)"].startswith("ignored: numbers, beside tr in ")
    assert "write the limit, <0.05" in guess.reasons["vitamin C (mg)"]
    coded = guess_schema(pa.table({"type": cells, "y": np.arange(N) % 7.0}))
    assert coded.schema.columns[0].type == "categorical"
    few = guess_schema(lines(*map(str, range(12)), *["K"] * 12))
    assert few.schema.columns[0].type == "categorical"


def test_nines_that_many_cells_share_above_few_others_are_a_code() -> None:
    rng = np.random.default_rng(2)
    cells = np.exp(rng.normal(5.0, 1.2, 2000)).round()
    cells = np.where(cells > 9000, 9000, cells)
    cells[:3] = 8300.0, 7000.0, 6200.0
    coded = np.where(rng.random(2000) < 0.1, 9999, cells).astype(int)
    column = guess_schema(pa.table({"SCC": coded})).schema.columns[0]
    assert (column.type, [one.text for one in column.missing]) == ("count", ["9999"])
    # A ceiling has cells below it, a few of the largest may be nines, and other numbers are none.
    ceiling = np.minimum(np.exp(rng.normal(8.5, 1.2, 2000)), 9999).astype(int)
    once = np.where(np.arange(2000) < 9, 9999, cells).astype(int)
    for other in (ceiling, once, np.where(coded == 9999, 9950, coded)):
        assert not guess_schema(pa.table({"SCC": other})).schema.columns[0].missing


@pytest.mark.parametrize("n_columns", [2, 3])
def test_words_among_numbers_are_no_levels_beside_several_such_columns(
    n_columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(2)
    gone = rng.random((N, n_columns + 2)) < 0.1
    cells = [np.round(rng.normal(5.0, 1.0, N), 2).astype(str) for _ in range(n_columns)]
    cells += [rng.choice(["yes", "no"], N), rng.choice(["low", "mid", "high"], N)]
    table = {f"c{i}": np.where(gone[:, i], "n.d.", x) for i, x in enumerate(cells)}
    rows = "\n".join(",".join(row) for row in zip(*table.values(), strict=True))
    (tmp_path / "t.csv").write_text(f"{','.join(table)}\n{rows}\n")
    assert run_here("types", "t.csv", "-o", "t.yaml").status == 0
    columns = yaml.safe_load((tmp_path / "t.yaml").read_text())["columns"]
    spoiled, smell = columns[f"c{n_columns}"], columns[f"c{n_columns + 1}"]
    assert ("n.d." in spoiled["levels"]) is (n_columns == 2)
    assert smell["type"] == ("categorical" if n_columns == 2 else "ordinal")
    if n_columns == 3:
        assert spoiled["missing"] == [{"value": "n.d.", "impute": False}]
        done = run_here("impute", "t.csv", "--types", "t.yaml", "-o", "o.csv", *SHORT)
        assert done.status == 0, done.stderr
        assert (tmp_path / "o.csv").read_text() == (tmp_path / "t.csv").read_text()


def panel(codes: list[int], effect: np.ndarray, seed: int = 4) -> dict[str, object]:
    """Return what ten assessors say of samples, each of which they taste twice."""
    rng = np.random.default_rng(seed)
    sample = np.tile(np.arange(len(codes)), 20)
    said = effect[sample] + rng.normal(0.0, 0.7, (2, sample.size))
    return {
        "sample": np.array(codes)[sample],
        "sweet": np.round(said[0], 1),
        "sour": np.round(2.0 - said[1], 1),
    }


def test_codes_of_samples_are_categories_and_doses_are_none() -> None:
    codes = [119, 187, 242, 303, 456, 512, 534, 644, 741, 799, 866, 992]
    effect = np.random.default_rng(4).permutation(12) / 2.0

    def guess(table: dict[str, object]) -> tuple[str, str]:
        found = guess_schema(pa.table(table))
        return found.schema.columns[0].type, found.reasons["sample"]

    kind, reason = guess(panel(codes, effect))
    assert kind == "categorical", reason
    assert "other columns do not rise or fall with them" in reason
    assert guess(panel(codes, np.sort(effect)))[0] == "count"  # doses
    assert guess(panel(codes, np.zeros(12)))[0] == "count"
    assert guess(panel([10 * (i + 1) for i in range(12)], effect))[0] == "count"  # even steps
    table = panel(codes, effect)
    odd = np.arange(240) % 12 != 3
    odd[:100] = True  # not as many rows of each
    assert guess({name: np.asarray(x)[odd] for name, x in table.items()})[0] == "count"


@pytest.mark.parametrize(("rows", "told"), [([20] * 5, False), ([20, 20, 20, 20, 9], True)])
def test_a_value_of_each_group_is_no_code_though_it_is_far(
    rows: list[int], told: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    people = np.repeat([810, 1205, 1460, 2230, 37798], rows)
    lines = "\n".join(f"{x},{'' if i == 3 else i % 9}" for i, x in enumerate(people))
    (tmp_path / "t.csv").write_text(f"people,trips\n{lines}\n")
    (tmp_path / "t.yaml").write_text("columns: {people: count, trips: count}\n")
    done = run_here("impute", "t.csv", "--types", "t.yaml", "-o", "o.csv", *SHORT)
    assert done.status == 0, done.stderr
    assert ("cells are 37798, far from all others" in done.stderr) is told


def reasons(name: str, cells: np.ndarray) -> tuple[str, str]:
    guess = guess_schema(pa.table({name: cells, "y": np.arange(len(cells)) % 7.0}))
    return guess.schema.columns[0].type, guess.reasons[name]


def test_zeros_far_below_all_others_may_be_missing_cells() -> None:
    rng = np.random.default_rng(2)
    zero = rng.random(N) < 0.15
    kind, reason = reasons("fat", np.where(zero, 0.0, np.round(rng.normal(4.0, 0.6, N), 2)))
    assert kind == "positive"
    assert reason.endswith('far below all others: if it stands for a missing cell, missing: ["0"]')
    rain = np.round(np.exp(rng.normal(0.0, 1.0, N)), 2)
    _, reason = reasons("rain", np.where(zero, 0.0, rain))
    assert reason.endswith("with a probability of its own")


@pytest.mark.parametrize(
    ("name", "ordinal"), [("Odour (1-9)", True), ("pain [0 to 10]", True), ("Odour (1-5)", False)]
)
def test_the_ends_of_a_scale_in_its_name_make_it_one(name: str, *, ordinal: bool) -> None:
    rng = np.random.default_rng(2)
    cells = np.clip(np.round(rng.normal(6.5, 1.0, N)), 4, 9).astype(int)
    kind, reason = reasons(name, cells)
    assert (kind == "ordinal") is ordinal, reason
    assert reasons("Odour", cells)[0] == "count"


@pytest.mark.parametrize("cross", ["HFxFV", "HF x FV", "HF/FV", "HF+FV"])
def test_a_cross_of_two_levels_is_none_of_them(cross: str) -> None:
    guess = guess_schema(lines("HF", "FV", "JE", cross))
    assert guess.hints.get("x", []) == []
    (hint,) = guess_schema(lines("HF", "FV", "JE", "HFriesian")).hints["x"]
    assert hint.startswith("HFriesian and HF may be one level")


def test_rows_of_totals_among_others_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pairs = [(a, b) for a in "ABCDEF" for b in (*"ABCDEF", "TOTAL")]
    rows = "\n".join(f"{a},{b},{7 * i % 31}" for i, (a, b) in enumerate(pairs))
    (tmp_path / "t.csv").write_text(f"from,to,trips\n{rows}\n")
    told = "# 6 rows seem to sum up others (to is TOTAL): leave them out if so.\n"
    assert told in run_here("types", "t.csv").stdout
    (tmp_path / "t.csv").write_text(f"from,to,trips\n{rows}\n".replace("TOTAL", "G"))
    assert "sum up" not in run_here("types", "t.csv").stdout
    half = "\n".join(f"{('total', 'male')[i % 2]},{i % 9}" for i in range(60))
    (tmp_path / "t.csv").write_text(f"sex,n\n{half}\n")
    assert "sum up" not in run_here("types", "t.csv").stdout
