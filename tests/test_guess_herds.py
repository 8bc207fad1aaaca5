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
