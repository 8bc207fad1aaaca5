"""Rows of which some numbers are written in thousands are named; tables without such are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

from glfm_cli.arrays import Array
from glfm_cli.encoding import encode
from glfm_cli.schema import Schema

N = 300
TYPES = {"columns": {"before": "positive", "now": "count", "costs": "positive", "score": "real"}}
OFF = [4, 64, 185]  # rows, from 0


def survey(seed: int = 1) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    before = np.exp(rng.normal(9.0, 1.5, N))
    now = np.rint(before * np.exp(rng.normal(0.0, 0.2, N)))
    costs = np.where(rng.random(N) < 0.2, np.nan, now * rng.uniform(0.4, 1.0, N))
    return {"before": before, "now": now, "costs": costs, "score": rng.normal(0.0, 1.0, N)}


def told(cells: dict[str, Array]) -> list[str]:
    table = pa.table({name: pa.array(x, from_pandas=True) for name, x in cells.items()})
    notes = encode(table, Schema.from_dict(TYPES)).notes
    return [note for note in notes if "another unit" in note]


def test_numbers_in_another_unit_are_named_with_their_rows() -> None:
    cells = survey()
    for name in ("now", "costs"):
        cells[name][OFF] *= 1000.0
    rest = "in 3 rows (5, 65, 186) the first is about 1,000 times what it is"
    (note,) = told(cells)
    assert note.startswith(f"columns 'now' and 'before': {rest}")


def test_numbers_that_are_too_small_stand_second() -> None:
    cells = survey()
    cells["before"][OFF[0]] /= 1000.0
    assert told(cells)[0].startswith("columns 'now' and 'before': in row 5 the first is about")


def slip(x: Array) -> None:
    x[OFF] *= 30.0


def tail(x: Array) -> None:
    x[: N // 10] *= 10.0 ** np.linspace(0.5, 4.0, N // 10)


def half(x: Array) -> None:
    x[::2] *= 1000.0


@pytest.mark.parametrize("change", [lambda x: None, slip, tail, half])
def test_long_tails_and_two_kinds_of_rows_are_not(change: Callable[[Array], Any]) -> None:
    cells = survey()
    change(cells["before"])
    assert not told(cells)


def test_impute_warns_of_them(glfm: Any, tmp_path: Path) -> None:
    cells = survey()
    cells["before"][OFF] *= 1000.0
    table = {name: pa.array(x, from_pandas=True) for name, x in cells.items()}
    csv.write_csv(pa.table(table), tmp_path / "survey.csv")
    short = ["--effort", "quick", "--model", "mixture", "--warmup", "5", "--draws", "5"]
    done = glfm("impute", tmp_path / "survey.csv", "--types", "auto", *short)
    assert done.returncode == 0
    assert "is one of them written in another unit?" in done.stderr


def test_cells_that_are_known_between_the_rows_looked_at_tell_nothing() -> None:
    cells = {name: np.tile(x, 700) for name, x in survey().items()}
    cells["before"][::2] = cells["before"][::3] = np.nan
    assert not told(cells)
