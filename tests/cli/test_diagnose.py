"""`glfm diagnose` as a user runs it."""

from __future__ import annotations

import inspect
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from glfm_cli.cli import app
from glfm_cli.cli import diagnose as command
from glfm_cli.diagnosis import UNCERTAIN_CELLS, diagnose_fit
from glfm_cli.diagnosis.check import REPLICATES

Here = Callable[..., Any]


@pytest.fixture(scope="module")
def fit(here: Here, sample_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fit")
    data = sample_data / "airquality.csv"
    plan = ("--model", "glfm", "--chains", "2", "--warmup", "10", "--draws", "12", "--threads", "1")
    types = data.with_suffix(".types.yaml")
    for name, options in (("fit", ()), ("bare", ("--no-data",))):
        out = ("-o", folder / "out.csv", "--save", folder / f"{name}.glfm")
        said = here("impute", data, "--types", types, *plan, *out, *options)
        assert said.status == 0, said.stderr
    return folder / "fit.glfm"


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_report_has_every_part_and_changes_nothing(here: Here, fit: Path) -> None:
    before = files_of(fit)
    said = here("diagnose", fit)
    assert (said.status, said.stderr) == (0, "")
    parts = ["2 chains, 24 draws", "ESS bulk", "Traces, one line for each chain"]
    parts += ["Predictive check of columns", "The least certain cells", "What to do:\n  - "]
    at = [said.stdout.index(part) for part in parts]
    assert at == sorted(at)
    assert said.stdout.isascii()
    assert files_of(fit) == before
    assert here("diagnose", fit).stdout == said.stdout


def test_a_terminal_is_shown_blocks(fit: Path) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    assert app.run(["diagnose", str(fit)], app.Console(terminal, io.StringIO())) == 0
    traces = re.findall(r"^    [▁▂▃▄▅▆▇█]{12}$", terminal.getvalue(), flags=re.MULTILINE)
    assert len(traces) == 2 * command.MOST_TRACES


def test_all_lists_every_quantity(here: Here, fit: Path) -> None:
    few, every = (here("diagnose", fit, *options).stdout for options in ((), ("--all",)))
    assert "(--all shows them)" in few
    assert "(--all shows them)" not in every
    n_quantities = len(diagnose_fit(fit).diagnostics.quantities)
    assert len(every.splitlines()) - len(few.splitlines()) == n_quantities - 13


def test_cells_says_how_many_are_listed(here: Here, fit: Path) -> None:
    listed = json.loads(here("diagnose", fit, "--json", "--cells", "4").stdout)
    assert len(listed["uncertain_cells"]) == 4
    assert "least certain" not in here("diagnose", fit, "--cells", "0").stdout.split("What to")[0]


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in ("quantities", "labels"):
                yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def test_json_is_one_object_whose_keys_are_documented(
    here: Here, fit: Path, repository: Path
) -> None:
    said = here("diagnose", fit, "--json")
    content = json.loads(said.stdout)
    assert content == diagnose_fit(fit).to_dict()
    document = (repository / "docs" / "reference" / "json.md").read_text(encoding="utf-8")
    section = document.partition("\n## `glfm diagnose`")[2].partition("\n## ")[0]
    assert [key for key in sorted(set(keys_of(content))) if f"`{key}`" not in section] == []


def test_defaults_are_those_of_python() -> None:
    defaults = {name: p.default for name, p in inspect.signature(command.run).parameters.items()}
    assert (defaults["cells"], defaults["replicates"]) == (UNCERTAIN_CELLS, REPLICATES)


def test_without_data_one_line_says_what_is_left_out(here: Here, fit: Path) -> None:
    said = here("diagnose", fit.with_name("bare.glfm"))
    assert said.status == 0
    assert said.stderr.splitlines() == [
        "Warning: the fit was saved without its table, so columns are not compared with it and no "
        "cells are listed"
    ]
    assert "Traces" in said.stdout
    assert "Predictive check" not in said.stdout


def test_the_figure_is_the_same_twice(here: Here, fit: Path, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.svg" for name in "ab"]
    for path in paths:
        assert here("diagnose", fit, "--plot", path, "-q").status == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_a_figure_is_drawn_without_data_too(
    here: Here, fit: Path, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"figure.{suffix}"
    assert here("diagnose", fit.with_name("bare.glfm"), "--plot", path, "-q").status == 0
    assert path.stat().st_size > 1000


def test_a_figure_of_an_unknown_format_is_an_error_before_the_work(here: Here, fit: Path) -> None:
    said = here("diagnose", fit, "--plot", "figure.docx")
    assert said.status == 2
    assert said.stdout == ""
    assert len(said.lines("Error")) == 1


def test_strict_ends_with_3(here: Here, fit: Path) -> None:
    said = here("diagnose", fit, "--strict")
    assert said.status == 3
    assert said.lines("Warning")[-1].startswith("Warning: --strict: Not precise enough: ")


@pytest.mark.parametrize("name", ["none.glfm", "out.csv"])
def test_what_is_no_fit_is_an_error(here: Here, fit: Path, name: str) -> None:
    said = here("diagnose", fit.with_name(name))
    assert said.status == 2
    assert (len(said.lines("Error")), len(said.lines("Hint"))) == (1, 1)


def test_a_run_that_was_cut_short_says_so(
    here: Here, sample_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = sample_data / "airquality.csv"
    types = data.with_suffix(".types.yaml")
    plan = ("--chains", "1", "--warmup", "2", "--draws", "100000", "--time-limit", "0.3")
    here("impute", data, "--types", types, *plan, "-o", "out.csv")
    said = here("diagnose", "out.csv.glfm.partial")
    assert said.status == 0
    assert "the run was cut short after " in said.lines("Warning")[0]


def test_chains_of_several_models_are_judged_each_beside_its_likes(
    here: Here, sample_data: Path, tmp_path: Path
) -> None:
    data, fit = sample_data / "airquality.csv", tmp_path / "auto.glfm"
    plan = ("--model", "auto", "--chains", "6", "--warmup", "10", "--draws", "12", "-q")
    types, out = data.with_suffix(".types.yaml"), tmp_path / "out.csv"
    said = here("impute", data, "--types", types, *plan, "-o", out, "--save", fit)
    assert said.status == 0, said.stderr
    found = json.loads(here("diagnose", fit, "--json").stdout)
    models = found["models"]
    assert len(models) == 6
    assert len(set(models)) > 1
    quantities = found["diagnostics"]["quantities"]
    likelihoods = [f"log_likelihood of {model}" for model in dict.fromkeys(models)]
    assert set(likelihoods) <= set(quantities)
    means = [quantities[name]["mean"] for name in likelihoods]
    assert min(abs(a - b) for i, a in enumerate(means) for b in means[:i]) > 1.0
    text = here("diagnose", fit, "--plot", tmp_path / "d.png").stdout
    for model in dict.fromkeys(models):
        assert f"{models.count(model)} of {model}" in text
        assert f"log likelihood of the observed cells ({model})" in text
    whole = diagnose_fit(fit)
    for model, name in zip(dict.fromkeys(models), likelihoods, strict=True):
        assert len(whole.traces[name]) == models.count(model)


def test_restarts_of_counts_are_shown_as_they_ended(here: Here, desk: Any) -> None:
    desk.put("n.csv", "u,i,n\na,x,1\na,y,2\nb,x,3\nc,y,5\nd,z,1\nd,x,\n")
    desk.put("n.yaml", "columns: {u: row, i: column, n: {type: count, role: value, absent: zero}}")
    plan = ("--set", "components=2", "--set", "passes=25", "-o", "o.csv", "--save", "n.glfm")
    said = here("impute", "n.csv", "--types", "n.yaml", *plan)
    assert said.status == 0, said.stderr
    said = here("diagnose", "n.glfm")
    assert (said.status, said.stderr) == (0, "")
    shown = said.stdout.partition("The restarts, with their weights in predictions:\n")[2]
    head, *rows = shown.split("\n")
    assert {"restart", "bound", "weight"} <= set(head.split())
    assert [row.split()[0] for row in rows if row] == ["1", "2", "3"]
    traces = diagnose_fit("n.glfm").traces
    place = head.split().index("bound")
    assert [float(row.split()[place]) for row in rows if row] == pytest.approx(
        traces["bound"][:, 0].tolist(), rel=1e-4
    )
    assert "R-hat" not in said.stdout
