"""`glfm impute --multiple`, `--draws-to` and `--traces-to` as a user runs them."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

Run = Callable[..., Any]
GLFM = ("--model", "glfm")
SHORT = ["--chains", "2", "--warmup", "4", "--draws", "4", "--threads", "1"]


@pytest.fixture
def run(here: Run, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `glfm impute` briefly on a sample table, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run_short(name: str, *arguments: str) -> Any:
        data = sample_data / f"{name}.csv"
        return here("impute", data, "--types", data.with_suffix(".types.yaml"), *SHORT, *arguments)

    return run_short


def test_stacked_tables_keep_the_text_of_observed_cells(run: Run, sample_data: Path) -> None:
    said = run("pbc", "--multiple", "3")
    assert said.status == 0
    before = list(csv.reader((sample_data / "pbc.csv").read_text().splitlines()))
    stacked = list(csv.reader(io.StringIO(said.stdout)))
    assert stacked[0] == [".imp", ".id", *before[0]]
    n = len(before) - 1
    assert [row[:2] for row in stacked[1:]] == [
        [str(m), str(i)] for m in range(4) for i in range(1, n + 1)
    ]
    for i, was in enumerate(before[1:]):
        first, *versions = (stacked[1 + i + m * n][2:] for m in range(4))
        for name, x, gap, *ys in zip(before[0], was, first, *versions, strict=True):
            if x == "NA" and name != "trt":
                assert gap == ""
                assert not {"", "NA"} & set(ys)
            else:
                assert {gap, *ys} == {x}


def test_tables_are_judged_as_draws_but_estimates_beside_them_as_such(run: Run) -> None:
    several = "airquality", "--model", "glfm", "--chains", "3", "--draws", "1", "--strict"
    alone = run(*several, "--multiple", "3", "-o", "o.csv")
    assert (alone.status, "each of the 3 tables has a draw" in alone.stderr) == (0, True)
    beside = run(*several, "--multiple", "3", "-o", "o.csv", "--cells", "c.csv")
    assert (beside.status, "Not precise enough" in beside.stderr) == (3, True)
    short = "--chains", "2", "--draws", "20", "--thin", "1"
    alike = run(*several[:3], *short, "--multiple", "40", "--strict", "-o", "o.csv")
    assert (alike.status, "Not precise enough" in alike.stderr) == (3, True)


def test_a_seed_fixes_every_table_whatever_the_threads(run: Run) -> None:
    files = ["-o", "o.csv", "--draws-to", "d.parquet", "--traces-to", "t.nc"]
    answers = []
    for threads in ("1", "2"):
        assert run("airquality", "--multiple", "3", "--threads", threads, *files).status == 0
        answers.append([Path(name).read_bytes() for name in files[1::2]])
    assert answers[0] == answers[1]


def test_versions_for_an_analysis_do_not_depend_on_threads_and_keep_what_is_observed(
    run: Run, sample_data: Path
) -> None:
    answers = []
    for threads in ("1", "2"):
        formula = ["--analysis", "Ozone ~ Solar.R * Wind + I(Temp^2)"]
        asked = ["--multiple", "2", *formula, "--threads", threads, "--json", "-o", "o.csv"]
        said = run("airquality", *asked)
        assert json.loads(said.stdout)["multiple"]["analysis"] == formula[1]
        answers.append(Path("o.csv").read_bytes())
    assert answers[0] == answers[1]
    before = list(csv.DictReader((sample_data / "airquality.csv").read_text().splitlines()))
    versions = list(csv.DictReader(io.StringIO(answers[0].decode())))
    for row in versions[len(before) :]:
        was = before[int(row[".id"]) - 1]
        assert all(row[name] == x for name, x in was.items() if x not in ("", "NA"))
        assert not {"", "NA"} & {row[name] for name in was}
        assert float(row["Ozone"]) > 0.0


def test_stacked_parquet_has_numbers_and_nulls(run: Run) -> None:
    assert run("airquality", "--multiple", "2", "--flags", "-o", "o.parquet").status == 0
    table = pq.read_table("o.parquet")
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds[".imp"] == "int32"
    assert kinds["Ozone"] == "double"
    assert kinds["Ozone_imp"] == "int8"
    assert table["Ozone"].null_count == 37
    assert sum(table["Ozone_imp"].to_pylist()) == 3 * 37


def test_the_summary_names_the_draws(run: Run) -> None:
    said = run("airquality", "--multiple", "2", "--json", "-o", "o.csv")
    summary = json.loads(said.stdout)
    assert summary["multiple"]["drawn_from"] == [{"chain": 1, "draw": 4}, {"chain": 2, "draw": 4}]


def test_too_short_a_run_for_so_many_tables_is_warned_of(run: Run) -> None:
    features = ("--set", "components=0", "--set", "alpha_rate=1", "--set", "initial_features=20")
    many = ("--draws", "50", "--multiple", "100", *features)  # which mix slowly
    said = run("airquality", *many, "-o", "o.csv")
    assert any("100 tables were asked for" in line for line in said.lines("Warning"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--multiple", "9"], "needs a draw for each table, but 8 will be kept"),
        (["--multiple", "2", "--estimate", "median"], "--estimate median cannot be used together"),
        (["--multiple", "2", "--estimate", "draw"], "--estimate draw cannot be used together"),
        (["--multiple", "0"], "Invalid value for '--multiple'"),
        (["--analysis", "Ozone ~ Wind"], "--analysis needs --multiple M"),
        (["--multiple", "2", "--analysis", "Ozone ~ Sun"], "'Sun' is not a modelled column"),
        (["--draws-to", "draws.pdf"], "does not tell the table's format"),
        (["--traces-to", "traces.csv"], "a name ending in .nc"),
        (["--draws-to", "-"], "both go to standard output"),
        (["-o", "d.csv", "--draws-to", "d.csv"], "name the same file"),
        (["-o", "d.glfm", "--save", "d.glfm"], "name the same file"),
    ],
)
def test_what_cannot_be_done_is_said_before_the_work(
    run: Run, options: list[str], expected: str
) -> None:
    said = run("airquality", *options)
    assert said.status == 2
    assert said.output == b""
    assert expected in said.stderr.replace("\n", " ")
    assert len(said.lines("Error")) == 1
    assert list(Path().iterdir()) == []


def test_a_column_named_as_stacking_needs_is_refused(here: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(".id,x\n1,2\n2,\n3,4\n")
    (tmp_path / "t.yaml").write_text('columns: {".id": id, x: real}\n')
    said = here("impute", tmp_path / "t.csv", "--types", tmp_path / "t.yaml", "--multiple", "2")
    assert said.status == 2
    assert "column '.id'" in said.stderr


def test_draws_are_long_parquet(run: Run) -> None:
    assert run("airquality", *GLFM, "--draws-to", "d.parquet", "-o", "o.csv").status == 0
    draws = pq.read_table("d.parquet")
    assert draws.num_rows == 8 * 44
    assert draws.schema.names == ["chain", "draw", "row", "column", "value", "level"]


def test_traces_open_as_a_posterior_of_arviz(run: Run) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    assert run("airquality", *GLFM, "--traces-to", "t.nc", "-o", "o.csv").status == 0
    with xarray.open_dataset("t.nc", group="posterior", engine="h5netcdf") as posterior:
        assert dict(posterior.sizes) == {"chain": 2, "draw": 4}
        assert posterior["log_likelihood"].dims == ("chain", "draw")
        assert posterior["noise_0"].attrs["column"] == "Ozone"
        cell = next(v for name, v in posterior.items() if str(name).startswith("cell_"))
        assert cell.attrs["column"] in ("Ozone", "Solar.R")
        assert 1 <= cell.attrs["row"] <= 153


def test_without_the_packages_for_netcdf_a_line_says_what_to_install(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("xarray", "h5netcdf"):
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not there
    said = run("airquality", "--traces-to", "t.nc", "-o", "o.csv")
    assert said.status == 2
    assert "xarray and h5netcdf" in said.stderr
    assert "glfm-cli[arviz]" in said.stderr
