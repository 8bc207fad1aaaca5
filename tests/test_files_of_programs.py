"""Files as other programs write them are completed and written back (benchmarks/files.py)."""

from __future__ import annotations

import importlib.util
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from glfm_cli import guess_schema
from glfm_cli.schema import ColumnType

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "files.py"


@pytest.fixture(scope="module")
def files() -> Any:
    """Return the script as a module."""
    for name in ("duckdb", "openpyxl", "pandas", "polars", "pyreadstat"):
        pytest.importorskip(name)
    spec = importlib.util.spec_from_file_location("files_of_programs", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore")
def test_numbers_and_dates_of_four_locales_are_completed_and_kept(
    files: Any, tmp_path: Path
) -> None:
    for made in islice(files.of_text(files.survey(), tmp_path), 0, 12, 3):
        completed, left = files.judge(made, tmp_path)
        assert (completed, left) == (29, 0), made


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "maker",
    [
        *("of_text", "of_pandas", "of_polars", "of_arrow", "of_databases"),
        *("of_statistics", "of_workbooks"),
    ],
)
def test_files_of_programs_are_completed_and_kept(files: Any, tmp_path: Path, maker: str) -> None:
    for made in getattr(files, maker)(files.survey(), tmp_path):
        completed, left = files.judge(made, tmp_path)
        assert completed > 0, made
        assert left == 0, made


def test_text_views_beside_numbers_of_a_scale_are_guessed() -> None:
    words = pa.array(["a", "b", "c", "d"] * 20, pa.string_view())
    table = pa.table({"x": [1, 2, 3, 4] * 20, "y": words})
    assert guess_schema(table).schema.columns[1].type == ColumnType.CATEGORICAL
