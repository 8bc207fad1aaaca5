"""Outputs of fixed seeds that only a change of the samplers' law or streams may change.

The files beside this one were written once; who changes them says why in the same commit. Numbers
are compared with a small tolerance, for another processor may round differently.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from tests.cli.conftest import run_here

FOLDER = Path(__file__).parent
PLANS = {
    "airquality.glfm": ("--model", "glfm", "--warmup", "12", "--set", "known_features=0"),
    "airquality.bsvd": ("--model", "bsvd", "--warmup", "12"),
    "lung.glfm": ("--model", "glfm", "--warmup", "12", "--set", "known_features=0"),
    "lung.bsvd": ("--model", "bsvd", "--warmup", "12"),
    "cbpp": ("--warmup", "10"),
}


def cells_of(text: str) -> list[float | str]:
    """Return the cells of a table, row by row, as numbers where they are some."""

    def read(cell: str) -> float | str:
        try:
            return float(cell)
        except ValueError:
            return cell

    return [read(cell) for row in csv.reader(io.StringIO(text)) for cell in row]


@pytest.mark.parametrize("name", list(PLANS))
def test_outputs_of_a_fixed_seed_stay(name: str, sample_data: Path) -> None:
    data = sample_data / f"{name.partition('.')[0]}.csv"
    run = run_here(
        *("impute", data, "--types", data.with_suffix(".types.yaml"), *PLANS[name]),
        *("--chains", "2", "--draws", "4", "--thin", "2", "--seed", "3"),
    )
    expected = cells_of((FOLDER / f"{name}.csv").read_text(encoding="utf-8"))
    found = cells_of(run.stdout)
    assert [type(cell) for cell in found] == [type(cell) for cell in expected]
    for one, other in zip(found, expected, strict=True):
        assert one == (pytest.approx(other, rel=1e-4) if isinstance(other, float) else other)
