"""Every model and every type of column, the toys among them, through every command."""

from __future__ import annotations

import ast
import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from glfm_cli.exploration.explanation import FeatureModel
from glfm_cli.latent.capabilities import Candidates, Components, Map, SharedLaw
from glfm_cli.links import LINKS
from tests.cli.conftest import Said, run_here
from tests.contract.parts import (
    DENSE,
    EVERY_MODEL,
    EVERY_TYPE,
    FEW,
    N_TRIALS,
    SPARSE,
    entry_of,
    types_of,
    values_of,
)
from tests.contract.toys import MODEL_LINES, TYPE_LINES

pytestmark = pytest.mark.usefixtures("toys")

ONCE = ("--rates", "0.2", "--repeats", "1")
N = 40


def few(model: str) -> list[str]:
    """Return options that make a run of a model short."""
    return [f"--set={name}={value}" for name, value in FEW.get(model, {}).items()]


def options(model: str, draws: int = 3) -> tuple[str, ...]:
    """Return a short run of a model."""
    short = ("--model", model, "--chains", "2", "--threads", "1", *few(model))
    sampled = EVERY_MODEL[model].kind == "gibbs"
    return (*short, "--warmup", "4", "--draws", str(draws)) if sampled else short


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table of all types, some new rows of it, and triplets of every type."""
    folder, rng = tmp_path_factory.mktemp("contract"), np.random.default_rng(5)
    z = rng.normal(size=N)
    columns = {kind: values_of(kind, z, rng) for kind in EVERY_TYPE}
    lines = [",".join(["id", "n", *columns])]
    for n in range(N):
        cells = ["" if rng.random() < 0.15 else column[n] for column in columns.values()]
        lines.append(",".join([f"r{n}", str(N_TRIALS), *cells]))
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    (folder / "new.csv").write_text("\n".join([lines[0], *lines[-8:]]) + "\n")
    for model in DENSE:  # a type that it does not take is one of counts
        known = types_of(model)
        entries = {kind: entry_of(kind if kind in known else "count") for kind in EVERY_TYPE}
        types = {"id": "id", "n": "ignore", **entries}
        (folder / f"{model}.yaml").write_text(json.dumps({"columns": types}))
    i, j = (part.ravel() for part in np.indices((9, 7)))
    seen = rng.random(i.size) < 0.7
    for kind in EVERY_TYPE:
        values = values_of(kind, (i - 4) / 4 + (j - 3) / 6, rng)
        rows = [f"u{i[k]},v{j[k]},{N_TRIALS},{values[k]}" for k in np.flatnonzero(seen)]
        (folder / f"of {kind}.csv").write_text("\n".join(["u,v,n,x", *rows]) + "\n")
        types = {"u": "row", "v": "column", "n": "ignore", "x": {**entry_of(kind), "role": "value"}}
        (folder / f"of {kind}.yaml").write_text(json.dumps({"columns": types}))
    return folder


def run(*arguments: str | Path) -> Said:
    """Run a command line, which must succeed."""
    said = run_here(*arguments)
    assert said.status == 0, said.stderr
    return said


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.fixture(scope="module", params=DENSE)
def kept(
    request: Any, folder: Path, toys: None, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, bytes]:
    """A model, a saved fit of it to the table, and the completed table."""
    fit = tmp_path_factory.mktemp("fit") / "fit.glfm"
    types = folder / f"{request.param}.yaml"
    given = (folder / "table.csv", "--types", types, *options(request.param))
    return request.param, fit, run("impute", *given, "--save", fit).output


def test_a_completed_table_has_every_cell(folder: Path, kept: tuple[str, Path, bytes]) -> None:
    before, after = rows_of((folder / "table.csv").read_text()), rows_of(kept[2].decode())
    for was, now in zip(before, after, strict=True):
        assert all(now[name] == was[name] or not was[name] for name in was)
        assert all(now.values())
        assert 0.0 < float(now["proportion"]) < 1.0
        assert float(now["grades"]) in (0.0, 1.0, 2.0, 3.0)


def test_a_fit_is_the_same_with_more_threads(folder: Path, kept: tuple[str, Path, bytes]) -> None:
    model, _, output = kept
    given = (folder / "table.csv", "--types", folder / f"{model}.yaml", *options(model))
    assert run("impute", *given, "--threads", "2").output == output


def test_a_run_that_is_resumed_gives_the_same_bytes(
    folder: Path, kept: tuple[str, Path, bytes], tmp_path: Path
) -> None:
    model, _, output = kept
    given = (folder / "table.csv", "--types", folder / f"{model}.yaml", *options(model))
    cut = run("impute", *given, "--save", tmp_path / "cut.glfm", "--time-limit", "0.001")
    assert "time limit" in cut.stderr
    assert run("impute", folder / "table.csv", "--resume", tmp_path / "cut.glfm").output == output
    if EVERY_MODEL[model].kind == "gibbs":
        more = (folder / "table.csv", "--resume", tmp_path / "cut.glfm", "--draws", "5")
        given = (*given[:3], *options(model, draws=5))
        assert run("impute", *more).output == run("impute", *given).output


def test_a_saved_fit_completes_its_table_and_new_rows(
    folder: Path, kept: tuple[str, Path, bytes]
) -> None:
    _, fit, output = kept
    assert run("impute", folder / "table.csv", "--fit", fit).output == output
    one, two = (run("impute", folder / "new.csv", "--fit", fit, "--threads", n) for n in "12")
    assert one.output == two.output
    assert all(all(row.values()) for row in rows_of(one.stdout))


def test_several_versions_of_a_table_differ(folder: Path, kept: tuple[str, Path, bytes]) -> None:
    rows = rows_of(run("impute", folder / "table.csv", "--fit", kept[1], "--multiple", "2").stdout)
    first, second = ([list(row.values())[1:] for row in rows[N * k : N * (k + 1)]] for k in (1, 2))
    assert first != second


def test_a_saved_fit_is_diagnosed(kept: tuple[str, Path, bytes]) -> None:
    said = run("diagnose", kept[1], "--json")
    checks = {check["column"] for check in json.loads(said.stdout)["predictive_check"]}
    assert checks == set(EVERY_TYPE)


def test_cells_are_suggested(kept: tuple[str, Path, bytes]) -> None:
    model, fit, _ = kept
    said = run_here("suggest", fit, "--count", "3")
    if EVERY_MODEL[model].kind == "gibbs" or isinstance(EVERY_MODEL[model], SharedLaw):
        assert said.status == 0, said.stderr
        assert len(rows_of(said.stdout)) == 3
    else:
        (error,) = said.lines("Error")
        assert "cells are chosen by how far draws disagree" in error


def test_explore_takes_models_with_features_or_components_and_candidates_that_have_them(
    kept: tuple[str, Path, bytes],
) -> None:
    model, fit, _ = kept
    said = run_here("explore", fit)
    if isinstance(EVERY_MODEL[model], FeatureModel | Components | Map | Candidates):
        assert said.status == 0, said.stderr
    else:
        expected = f"Error: the model '{model}' has no features to explore"
        assert (said.status, said.lines("Error")) == (2, [expected])


def test_evaluate_scores_the_model(folder: Path, kept: tuple[str, Path, bytes]) -> None:
    model = kept[0]
    short = [*few(model), "--chains", "1"]
    short += ["--warmup", "3", "--draws", "3"] if EVERY_MODEL[model].kind == "gibbs" else []
    given = (folder / "table.csv", "--types", folder / f"{model}.yaml")
    said = run("evaluate", *given, "--methods", f"{model},mean", *ONCE, "--jobs", "1", *short)
    assert model in said.stdout


@pytest.mark.parametrize("kind", [kind for kind in EVERY_TYPE if kind != "categorical"])
@pytest.mark.parametrize("model", SPARSE)
def test_a_matrix_of_every_type(folder: Path, tmp_path: Path, model: str, kind: str) -> None:
    given = (folder / f"of {kind}.csv", "--types", folder / f"of {kind}.yaml")
    fit = tmp_path / "m.glfm"
    first = run("impute", *given, *options(model), "--save", fit)
    rows = rows_of(first.stdout)
    assert all(row["estimate"] for row in rows)
    assert run("impute", *given, *options(model), "--threads", "2").output == first.output
    assert run("impute", given[0], "--fit", fit).output == first.output
    more = run("impute", given[0], "--resume", fit, "--draws", "5").output
    assert more == run("impute", *given, *options(model, draws=5)).output
    new = tmp_path / "new.csv"
    new.write_text("".join(given[0].read_text().splitlines(keepends=True)[:4]).replace("u0", "w0"))
    assert {row["u"] for row in rows_of(run("impute", new, "--fit", fit).stdout)} >= {"w0"}
    assert run("diagnose", fit).status == 0
    assert len(rows_of(run("suggest", fit, "--count", "3").stdout)) == 3
    short = ("--chains", "1", "--warmup", "3", "--draws", "3")
    said = run("evaluate", *given, "--methods", f"{model},mean", *ONCE, "--jobs", "1", *short)
    assert model in said.stdout


def test_toy_types_are_features_of_a_classifier(folder: Path, tmp_path: Path) -> None:
    types = json.loads((folder / "glfm.yaml").read_text())
    types["columns"]["ordinal"]["role"] = "target"
    (tmp_path / "types.yaml").write_text(json.dumps(types))
    run("classify", folder / "table.csv", "--types", tmp_path / "types.yaml", "--chains", "2",
        "--threads", "1", "-o", tmp_path / "labels.csv")  # fmt: skip
    given = {row["id"]: row for row in rows_of((folder / "table.csv").read_text())}
    predicted = rows_of((tmp_path / "labels.csv").read_text())
    assert {row["id"] for row in predicted} == {i for i in given if given[i]["ordinal"] == ""}
    levels = {f"{float(row['ordinal']):g}" for row in given.values() if row["ordinal"]}
    for row in predicted:
        assert row["predicted"] in levels
        shares = [float(row[f"p_{level}"]) for level in levels]
        assert sum(shares) == pytest.approx(1.0)


# A file each, and one line ----------------------------------------------------------------------


@pytest.mark.parametrize("name", [*MODEL_LINES, *TYPE_LINES])
def test_a_toy_needs_its_own_file_and_one_line(name: str, repository: Path) -> None:
    folder = repository / "tests" / "contract" / "toys"
    part = MODEL_LINES[name] if name in MODEL_LINES else LINKS[name]
    module = (part if isinstance(part, type) else type(part)).__module__
    path = folder / f"{module.rpartition('.')[2]}.py"
    tree = ast.parse(path.read_text())
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [one for one in imported if str(one).startswith("tests")] == []
    product = [*(repository / "glfm_cli").rglob("*.py"), *(repository / "glfm_cli").rglob("*.pyx")]
    assert [one for one in product if f'"{name}"' in one.read_text()] == []
    lines = (folder / "__init__.py").read_text().splitlines()
    assert sum(f'"{name}": ' in line for line in lines) == 1
