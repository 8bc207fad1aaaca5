"""What is written about the package agrees with what is in it."""

from __future__ import annotations

import ast
import csv
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest
from setuptools import find_packages

import glfm_cli
from glfm_cli.schema import read_schema

REPOSITORY = Path(__file__).resolve().parent.parent
PYPROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))
DOCUMENTS = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for pattern in ("*.md", "sample_data/*.md", "benchmarks/*.md")
    for path in REPOSITORY.glob(pattern)
)
SAMPLES = sorted(path.stem for path in (REPOSITORY / "sample_data").glob("*.csv"))
SETUPTOOLS = PYPROJECT["tool"]["setuptools"]


def text_of(path: str) -> str:
    return (REPOSITORY / path).read_text(encoding="utf-8")


def distributions(requirements: list[str]) -> set[str]:
    """Return the names in a list of requirements, without their versions."""
    return {re.split(r"[^\w.-]", text)[0] for text in requirements}


def table_rows(markdown: str) -> list[list[str]]:
    """Return the cells of all table rows of a Markdown text."""
    lines = (line.strip() for line in markdown.splitlines())
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]


# Metadata ------------------------------------------------------------------------------------


def test_the_changelog_begins_with_the_version() -> None:
    newest = re.search(r"^## \[([^]]+)\]", text_of("CHANGELOG.md"), flags=re.MULTILINE)
    assert newest is not None
    assert newest[1] == glfm_cli.__version__


def test_every_named_file_of_the_metadata_exists() -> None:
    project = PYPROJECT["project"]
    named = [project["readme"], *project["license-files"]]
    named += [source for module in SETUPTOOLS["ext-modules"] for source in module["sources"]]
    assert [name for name in named if not (REPOSITORY / name).is_file()] == []


def test_the_licence_is_the_one_that_is_declared() -> None:
    assert PYPROJECT["project"]["license"] == "MIT"
    assert text_of("LICENSE").startswith("MIT License")


def test_every_package_folder_is_installed() -> None:
    folders = {path.parent for path in (REPOSITORY / "glfm_cli").rglob("__init__.py")}
    found = {".".join(path.relative_to(REPOSITORY).parts) for path in folders}
    assert (
        set(find_packages(str(REPOSITORY), include=SETUPTOOLS["packages"]["find"]["include"]))
        == found
    )


def test_every_slip_that_is_planted_finds_its_line() -> None:
    planted = runpy.run_path(str(REPOSITORY / "benchmarks" / "mutants.py"))["MUTANTS"]
    package = Path(glfm_cli.__file__).parent
    for title, slip in planted.items():
        found = (package / slip.file).read_text(encoding="utf-8").count(slip.right)
        assert found == 1, title


def test_every_python_of_the_metadata_is_tested_and_has_wheels() -> None:
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PYPROJECT["project"]["classifiers"]))
    workflow = text_of(".github/workflows/ci.yml")
    tested = re.search(r"python: \[(.+)\]", workflow)
    assert tested is not None
    assert re.findall(r"3\.\d+", tested[1]) == named
    wheels = PYPROJECT["tool"]["cibuildwheel"]["build"]
    assert wheels == [f"cp{name.replace('.', '')}-*" for name in named]
    assert PYPROJECT["project"]["requires-python"] == f">={named[0]}"


def test_every_kernel_is_built() -> None:
    built = {source for module in SETUPTOOLS["ext-modules"] for source in module["sources"]}
    written = {
        path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "glfm_cli").rglob("*.pyx")
    }
    assert {source for source in built if source.endswith(".pyx")} == written


@pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="not a git checkout")
def test_no_source_is_ignored_by_git() -> None:
    sources = [source for module in SETUPTOOLS["ext-modules"] for source in module["sources"]]
    sources += [
        path.relative_to(REPOSITORY).as_posix()
        for pattern in ("*.py", "*.pyi", "*.pxd", "*.pxi", "*.h")
        for path in (REPOSITORY / "glfm_cli").rglob(pattern)
    ]
    ignored = subprocess.run(
        ["git", "check-ignore", *sources],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ignored.returncode in (0, 1), ignored.stderr
    assert ignored.stdout.split() == []


@pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="not a git checkout")
def test_the_source_archive_has_every_file_of_the_checkout(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True)
    files = {name for name in listed.stdout.split("\n") if name and not name.startswith(".")}
    command = ["egg_info", "--egg-base", tmp_path, "sdist", "--dist-dir", tmp_path]
    made = subprocess.run(
        [sys.executable, "-c", "from setuptools import setup; setup()", *command],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    with tarfile.open(tmp_path / f"glfm_cli-{glfm_cli.__version__}.tar.gz") as content:
        names = {one.name.partition("/")[2] for one in content if one.isfile()}
    added = {"PKG-INFO", "setup.cfg"}
    assert {name for name in names if ".egg-info/" not in name} - added == files


def test_a_checkout_without_compiled_kernels_says_so(tmp_path: Path) -> None:
    source = REPOSITORY / "glfm_cli"
    compiled = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
    shutil.copytree(source, tmp_path / "glfm_cli", ignore=compiled)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    table = str(REPOSITORY / "sample_data" / "pbc.csv")
    for arguments in (["-c", "from glfm_cli import impute"], ["-m", "glfm_cli", "impute", table]):
        run = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert run.returncode == 1
        assert f"not compiled in {tmp_path / 'glfm_cli'}" in run.stderr.splitlines()[-1]


def test_every_public_name_loads() -> None:
    for name in glfm_cli.__all__:
        assert getattr(glfm_cli, name) is not None


def test_type_checkers_see_every_public_name() -> None:
    stub = ast.parse(text_of("glfm_cli/__init__.pyi"))
    seen = {
        alias.asname: f".{node.module}"
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == glfm_cli._EXPORTS


# Documents -----------------------------------------------------------------------------------


def test_there_is_a_document_for_users_and_one_for_developers() -> None:
    assert {"README.md", "CONTRIBUTING.md", "CHANGELOG.md", "sample_data/README.md"} <= set(
        DOCUMENTS
    )


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_linked_in_a_document_exists(document: str) -> None:
    targets = re.findall(r"\]\(([^)\s]+)\)", text_of(document))
    local = [target.partition("#")[0] for target in targets if "://" not in target]
    folder = (REPOSITORY / document).parent
    assert [target for target in local if target and not (folder / target).exists()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_sample_named_in_a_document_exists(document: str) -> None:
    named = set(re.findall(r"\bsample_data/[\w.-]*\w", text_of(document)))
    assert [name for name in named if not (REPOSITORY / name).exists()] == []


@pytest.mark.parametrize(
    "needed_for",
    [
        "run",
        "build",
        "dev",
        *(f"extra `{name}`" for name in ("arviz", "docs", "excel", "sklearn", "sql", "stats")),
    ],
)
def test_every_dependency_has_its_reason(needed_for: str) -> None:
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    requirements = {
        "run": project["dependencies"],
        "build": PYPROJECT["build-system"]["requires"],
        **{f"extra `{name}`": texts for name, texts in extras.items()},
        "dev": extras["dev"],
    }[needed_for]
    rows = [row for row in table_rows(text_of("CONTRIBUTING.md")) if len(row) == 3]
    reasons = {row[0].strip("`"): row[2] for row in rows if needed_for in row[1].split(", ")}
    assert {name for name, reason in reasons.items() if len(reason) > 10} == distributions(
        requirements
    )


# Sample data ---------------------------------------------------------------------------------


def sample(name: str) -> tuple[list[str], list[dict[str, str]]]:
    with (REPOSITORY / "sample_data" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        reader = csv.DictReader(file)
        rows = list(reader)
    assert reader.fieldnames is not None
    return list(reader.fieldnames), rows


def described(name: str) -> dict[str, list[str]]:
    """Return the row of sample_data/README.md for each column of one table."""
    section = text_of("sample_data/README.md").partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    rows = table_rows(section)
    position = rows[0].index("type"), rows[0].index("gaps")
    return {row[0].strip("`"): [row[at] for at in position] for row in rows[2:]}


@pytest.mark.parametrize("name", SAMPLES)
def test_each_sample_is_described_column_by_column(name: str) -> None:
    names, rows = sample(name)
    columns = read_schema(REPOSITORY / "sample_data" / f"{name}.types.yaml").resolve(names)
    description = described(name)
    assert list(description) == names
    for column in columns:
        words, gaps = description[column.name]
        codes = {"", *(code.text for code in column.missing)}
        assert int(gaps.partition(",")[0]) == sum(row[column.name] in codes for row in rows)
        expected = column.type or column.role
        assert words.partition(",")[0].replace("ignored", "ignore") == expected, column.name


def test_samples_have_every_type_of_column() -> None:
    types = {words.partition(",")[0] for name in SAMPLES for words, _ in described(name).values()}
    assert {"real", "positive", "count", "categorical", "ordinal", "binomial"} <= types


def test_every_planted_slip_has_its_line_and_its_test() -> None:
    slips = runpy.run_path(str(REPOSITORY / "benchmarks" / "mutants.py"))["MUTANTS"]
    for title, slip in slips.items():
        assert text_of(f"glfm_cli/{slip.file}").count(slip.right) == 1, title
        for test in slip.tests.split():
            path, _, name = test.partition("::")
            assert f"def {name}" in text_of(path), title
