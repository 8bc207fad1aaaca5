"""Cells of very many characters: read, guessed and completed in time, and not quoted whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from killing import Command

Here = Callable[..., Any]
DIGITS = "9" * 5000  # more than Python makes a number of
SHORT = ("--model", "bsvd", "--chains", "1", "--warmup", "2", "--draws", "2", "-o", "out.csv")


@pytest.fixture(autouse=True)
def of_the_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Be in the folder in which `glfm` runs."""
    monkeypatch.chdir(tmp_path)


def write(*long: str, gap: str = "") -> None:
    cells = [*long, *(f"{i}.5" for i in range(20)), gap]
    rows = "".join(f'"{cell}",{i % 7}.25\n' for i, cell in enumerate(cells))
    Path("table.csv").write_text(f"a,b\n{rows}")


@pytest.mark.parametrize("part", ["1:", "1'", "2020-01-01", "1/", "1e", "5' ", "1 to "])
def test_types_are_guessed_in_time_beside_a_cell_as_long_as_a_book(
    tmp_path: Path, part: str
) -> None:
    write(part * (10**6 // len(part)))
    command = Command(tmp_path, "types", "table.csv", "-o", "types.yaml")
    assert command.end(20) == 0, command.stderr
    assert "a: " in Path("types.yaml").read_text()


def test_digits_of_which_python_makes_no_number_are_levels(here: Here) -> None:
    levels = sorted([DIGITS, DIGITS[:-1] + "8", "x10", "x9", "10", "9"])
    rows = "".join(f"{(levels * 4)[i]},{i % 7}.25\n" for i in range(24))
    Path("table.csv").write_text(f"a,b\n{rows},1\n")
    guessed = here("types", "table.csv", "-o", "types.yaml")
    assert guessed.status == 0, guessed.stderr
    Path("types.yaml").write_text("columns: {a: categorical, b: real}")
    done = here("impute", "table.csv", "--types", "types.yaml", *SHORT, "--probabilities", "p.csv")
    assert done.status == 0, done.stderr
    listed = [line.split(",")[-2] for line in Path("p.csv").read_text().splitlines()[1:]]
    assert listed[:2] == ["9", "10"]
    assert listed.index("x9") < listed.index("x10")
    assert {*listed} == {*levels}


def test_a_message_does_not_quote_all_of_a_long_cell(here: Here) -> None:
    write("-" * 10**6)
    Path("types.yaml").write_text("columns: {a: real, b: real}")
    done = here("impute", "table.csv", "--types", "types.yaml", *SHORT)
    assert done.status == 2
    assert "row 1: found '-----" in done.stderr
    assert "If the column holds names, give it type categorical." in done.stderr
    assert len(done.stderr) < 9000
