"""`glfm explore` and bad input: the same lines as `glfm impute`, and no file touched."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_rejected import OPTIONS, TABLE, TABLES, TYPES, TYPES_FILES

from glfm_cli import explore
from glfm_cli.errors import UsageError

SHORT = ("--chains", "2", "--warmup", "5", "--draws", "3", "--threads", "1")
OF_IMPUTE = ("--estimate", "--interval")
Run = Callable[..., Any]


@pytest.fixture
def explored(desk: Any, here: Run) -> Run:
    """Run `glfm explore` on a small table, with a few sweeps."""
    desk.put("table.csv", TABLE)
    desk.put("types.yaml", TYPES)
    return partial(here, "explore", "table.csv", "--types", "types.yaml", *SHORT)


@pytest.mark.parametrize(("table", "error"), TABLES.values(), ids=TABLES)
def test_a_bad_table_is_rejected(desk: Any, explored: Run, table: str | bytes, error: str) -> None:
    desk.put("table.csv", table)
    desk.check_rejected(error, explored, "-o", "out")


@pytest.mark.parametrize(("types", "error"), TYPES_FILES.values(), ids=TYPES_FILES)
def test_a_bad_types_file_is_rejected(
    desk: Any, explored: Run, types: str | bytes, error: str
) -> None:
    desk.put("types.yaml", types)
    desk.check_rejected(error, explored, "-o", "out")


@pytest.mark.parametrize("options", [one for one in OPTIONS if not one.startswith(OF_IMPUTE)])
def test_a_bad_option_is_rejected(desk: Any, explored: Run, options: str) -> None:
    desk.check_rejected(OPTIONS[options], explored, "-o", "out", *options.split())


def test_tables_do_not_go_where_the_fit_goes(desk: Any, explored: Run) -> None:
    desk.check_rejected("x: --save and --output name", explored, "-o", "x", "--save", "x")


def test_triplets_have_no_features(desk: Any) -> None:
    desk.put("table.csv", "who,what,stars\na,x,1\nb,x,2\na,y,3\n")
    types = {"who": "row", "what": "column", "stars": {"role": "value", "type": "real"}}
    with pytest.raises(UsageError, match="features"):
        explore("table.csv", {"columns": types}, surprising=2)


# Folders -------------------------------------------------------------------------------------


@pytest.fixture
def kept(explored: Run) -> Path:
    """The folder of a kept run."""
    said = explored("--save", "run.glfm")
    assert said.status == 0, said.stderr
    return Path("run.glfm")


def test_a_folder_that_is_no_fit_is_rejected(desk: Any, here: Run) -> None:
    Path("folder").mkdir()
    desk.put("folder/notes.txt", "nothing")
    desk.check_rejected("folder: ", here, "explore", "folder")


def test_a_fit_whose_types_were_changed_is_rejected(desk: Any, kept: Path, here: Run) -> None:
    file = kept / "types.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("real", "count"), encoding="utf-8")
    desk.check_rejected("run.glfm", here, "explore", kept)


def test_a_fit_of_other_types_is_not_gone_on_with(desk: Any, kept: Path, here: Run) -> None:
    desk.put("other.yaml", "columns: {a: positive, b: categorical}\n")
    error = "run.glfm: was made with other types than those given now"
    options = ("--types", "other.yaml", "--resume", kept)
    desk.check_rejected(error, here, "explore", "table.csv", *options)


def test_a_fit_of_a_model_without_features_is_not_gone_on_with(
    desk: Any, explored: Run, here: Run
) -> None:
    done = here(
        "impute", "table.csv", "--types", "types.yaml", *SHORT,
        "--model", "mixture", "-o", "x.csv", "--save", "low.glfm",
    )  # fmt: skip
    assert done.status == 0, done.stderr
    error = "the model 'mixture' has no features to explore"
    desk.check_rejected(error, here, "explore", "table.csv", "--resume", "low.glfm")


def test_a_fit_with_a_chain_missing_is_rejected(desk: Any, kept: Path, here: Run) -> None:
    (kept / "run.json").unlink()
    desk.check_rejected("run.glfm", here, "explore", kept)
    shutil.rmtree(kept)
    desk.check_rejected("run.glfm", here, "explore", kept)


# Odd, but good -------------------------------------------------------------------------------

ALL = ("--dependence", "--surprising", "2", "--similar", "1")


def check_explored(said: Any) -> str:
    """Return the text of an exploration that went well, and fits 100 columns."""
    assert said.status == 0, said.stderr
    assert "Error" not in said.stderr
    assert max(map(len, said.stdout.splitlines())) <= 100
    return str(said.stdout)


@pytest.mark.parametrize("kind", ["real", "positive", "count", "categorical", "ordinal"])
def test_a_table_with_one_column_is_explored(
    desk: Any, explored: Run, seed: int, kind: str
) -> None:
    x = np.random.default_rng(seed).integers(1, 5, 40)
    desk.put("table.csv", "a\n" + "\n".join(map(str, x)) + "\n")
    desk.put("types.yaml", f"columns: {{a: {kind}}}\n")
    said = explored(*ALL, "-o", "out")
    text = check_explored(said)
    assert text.startswith("40 rows, 1 column, ")
    assert Path("out/report.html").exists()
    assert "most mutual information" not in text  # nothing but a title
    assert not Path("out/dependence.png").exists()
    assert "features describe its shape, not relations of columns" in said.stderr
    assert "to be completed" not in said.stderr


def test_a_table_with_one_row_is_explored(desk: Any, explored: Run) -> None:
    desk.put("table.csv", "a,b\n1,x\n")
    assert check_explored(explored(*ALL)).startswith("1 row, 2 columns, ")


def test_no_features_at_all_are_explored(explored: Run) -> None:
    text = check_explored(explored(*ALL, "--set", "max_features=0", "-o", "out"))
    assert "No feature: nothing in this table binds columns together by more than chance." in text


def test_what_columns_share_in_time_is_no_feature(desk: Any, explored: Run) -> None:
    desk.put("table.csv", "t,a,b\n" + "".join(f"{i},{i % 5},{i % 3}\n" for i in range(20)))
    desk.put("types.yaml", "columns: {t: {type: real, role: time}, a: real, b: real}\n")
    text = check_explored(explored(*ALL, "--set", "max_features=0"))
    assert "No feature: apart from shared time series, nothing binds columns together" in text


def test_forty_columns_with_fifty_levels_are_explored(desk: Any, explored: Run, seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"a_rather_long_name_of_column_{d}" for d in range(40)]
    rows = [",".join(f"level_{v}" for v in rng.integers(50, size=40)) for _ in range(60)]
    desk.put("table.csv", "\n".join([",".join(names), *rows]) + "\n")
    desk.put("types.yaml", "rest: categorical\n")
    text = check_explored(explored(*ALL, "--warmup", "1", "--plot", "page.svg"))
    assert text.startswith("60 rows, 40 columns, ")
