"""Which model is taken where none is named, by what is asked; said by --dry-run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from glfm_cli import explore, suggest
from glfm_cli.io import write_table

Here = Callable[..., Any]
SHORT = ("--chains", "2", "--warmup", "1", "--draws", "1")
TYPES = "columns: {x: real, h: KIND, n: ROLE, g: categorical, t: ordinal}"
PLAIN = TYPES.replace("KIND", "count").replace("ROLE", "count")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    columns = {"x": [1.0, None, 2.0, 0.5], "h": [1, 2, 0, 1], "n": [3, 3, 2, 4]}
    columns |= {"g": ["a", "b", "a", "b"], "t": [1, 2, 3, 2]}
    write_table(pa.table(columns), tmp_path / "data.csv")
    return tmp_path / "data.csv"


def model_of(here: Here, table: Path, types: str, *options: str) -> str:
    """Return the model that a dry run names."""
    path = table.with_name("types.yaml")
    path.write_text(types)
    said = here("impute", table, "--types", path, "--dry-run", "--json", *SHORT, *options)
    name: str = json.loads(said.stdout)["model"]
    return name


@pytest.mark.parametrize(
    ("types", "options"),
    [
        (PLAIN, "--set max_features=3"),
        (PLAIN, "--set max_features=3 --set atoms=false"),
        (PLAIN, "--multiple 2 -o out.csv"),
        (TYPES.replace("KIND", "{type: binomial, trials: n}").replace("ROLE", "ignore"), ""),
    ],
)
def test_what_one_model_alone_does_is_done_by_it(
    here: Here, table: Path, types: str, options: str
) -> None:
    assert model_of(here, table, types, *options.split()) == "glfm"


@pytest.mark.parametrize("role", ["group", "time"])
def test_rows_that_belong_together_are_completed_by_several_models(
    here: Here, table: Path, role: str
) -> None:
    assert model_of(here, table, PLAIN.replace("t: ordinal", f"t: {{role: {role}}}")) == "auto"


@pytest.mark.parametrize(
    ("options", "model"),
    [
        ("", "auto"),
        ("--set forest=2", "auto"),
        ("--model bsvd", "bsvd"),
        ("--model auto --multiple 2 -o out.csv", "auto"),
    ],
)
def test_several_are_taken_where_they_can_be_else_what_is_named(
    here: Here, table: Path, options: str, model: str
) -> None:
    assert model_of(here, table, PLAIN, *options.split()) == model


def test_a_setting_of_no_model_is_told_with_those_that_are_near(here: Here, table: Path) -> None:
    path = table.with_name("types.yaml")
    path.write_text(PLAIN)
    said = here("impute", table, "--types", path, "--set", "max_featurs=3")
    assert said.status == 2
    assert "Did you mean 'max_features'?" in said.stderr


def test_tasks_that_ask_for_features_and_draws_take_one_model(table: Path) -> None:
    columns = {"x": "real", "h": "count", "n": "count", "g": "categorical", "t": "ordinal"}
    options = {"chains": 2, "warmup": 1, "draws": 2, "threads": 1}
    assert suggest(table, {"columns": columns}, count=1, **options).posterior.model.name == "glfm"
    assert explore(table, {"columns": columns}, **options).posterior.model.name == "glfm"
