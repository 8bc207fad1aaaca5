"""Lists of the documentation are complete: options, settings, names, columns, keys, sources."""

from __future__ import annotations

import dataclasses
import json
import re
from inspect import unwrap
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from documents import REPOSITORY, command, keys_of, not_in, reference, section, text_of

import glfm_cli
from glfm_cli import evaluate, impute
from glfm_cli.cli.app import COMMANDS
from glfm_cli.cli.console import ExitStatus
from glfm_cli.completion.result import PROBABILITIES, cells_schema
from glfm_cli.evaluation.masks import MECHANISMS
from glfm_cli.evaluation.methods import known_methods
from glfm_cli.evaluation.results import RESULTS
from glfm_cli.latent import MODELS
from glfm_cli.latent.cnpf import CnpfConfig
from glfm_cli.latent.iqgme import IqgmeConfig
from glfm_cli.links import LinkConfig

SAMPLE_DATA = REPOSITORY / "sample_data"
SAMPLE = [str(SAMPLE_DATA / name) for name in ("messy.csv", "messy.types.yaml")]
TABLES = "docs/reference/tables.md"
JSON = "docs/reference/json.md"
SETTINGS = {
    **{f"docs/models/{name}.md": model.Config for name, model in MODELS.items()},
    "docs/models/cnpf.md": CnpfConfig,
    "docs/models/iqgme.md": IqgmeConfig,
    "docs/models/index.md": LinkConfig,
}


# The reference -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_of_a_command_is_in_the_reference(name: str) -> None:
    page = reference.pages()[f"reference/{name}.md"]
    spelled = re.findall(r"^  (-.+?)(?:  |$)", command(name, "--help"), flags=re.MULTILINE)
    options = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", " ".join(spelled)))
    assert {"--help", "-h"} <= options
    assert not_in(options, page) == []


def test_every_public_name_is_in_the_reference() -> None:
    page = reference.pages()["reference/python.md"]
    headings = re.findall(r"^### (\w+)$", page, flags=re.MULTILINE)
    names = [name for name in glfm_cli.__all__ if not name.startswith("__")]
    assert sorted(headings) == sorted(names)


def test_every_parameter_of_a_public_function_is_in_the_reference() -> None:
    shown = section(reference.pages()["reference/python.md"], "Complete")
    assert [name for name in unwrap(impute).__kwdefaults__ if f"    {name}: " not in shown] == []


def test_exit_statuses_are_listed() -> None:
    page = text_of("docs/reference/statuses.md")
    listed = [int(status) for status in re.findall(r"^\| (\d+) \|", page, flags=re.MULTILINE)]
    assert listed == sorted(ExitStatus)


# Settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("document", SETTINGS)
def test_every_setting_is_explained_with_its_default(document: str) -> None:
    table: dict[str, str] = {}
    for line in text_of(document).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            names, defaults = (re.findall(r"`([^`]+)`", cell) for cell in cells[:2])
            table |= dict(zip(names, defaults, strict=False))
    written = {True: "true", False: "false", None: "auto"}
    for field in dataclasses.fields(SETTINGS[document]):
        value = field.default
        expected = written[value] if value is None or isinstance(value, bool) else str(value)
        assert table.get(field.name) == expected, field.name


def test_no_setting_is_explained_that_is_not_there() -> None:
    for document, config in SETTINGS.items():
        table = text_of(document).partition("\n## Settings")[2].partition("\n## ")[0]
        names = {
            name
            for line in table.splitlines()
            if line.startswith("| `")
            for name in re.findall(r"`(\w+)`", line.split("|")[1])
        }
        assert names == {field.name for field in dataclasses.fields(config)}, document


# Tables and objects --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heading", "schema"),
    [
        ("`glfm impute --cells`", cells_schema(pa.schema([]))),
        ("`glfm impute --probabilities`", PROBABILITIES),
        ("`glfm evaluate -o`", RESULTS),
    ],
)
def test_every_column_of_a_table_is_explained(heading: str, schema: pa.Schema) -> None:
    inside = section(text_of(TABLES), heading)
    assert [name for name in schema.names if f"`{name}`" not in inside] == []


def test_every_key_of_a_completion_is_explained() -> None:
    done = impute(*SAMPLE, chains=2, warmup=4, draws=10).to_dict()
    keys = set(keys_of(done, but=("levels", "candidates")))
    assert {"rows", "per_column", "mean_sd", "mean_probability", "levels", "typical"} <= keys
    assert not_in(keys, section(text_of(JSON), "`glfm impute`")) == []


def test_every_key_of_a_dry_run_is_explained() -> None:
    done = command("impute", SAMPLE[0], "--types", SAMPLE[1], "--dry-run", "--json")
    page = text_of(JSON).partition("With `--dry-run`:")[2].partition("\n## ")[0]
    assert not_in(set(json.loads(done)), page) == []


@pytest.fixture(scope="module")
def evaluation() -> Any:
    return evaluate(
        *SAMPLE, methods=["glfm", "mean"], rates=[0.3], repeats=2, jobs=1, chains=1, warmup=2,
        draws=2,
    )  # fmt: skip


def test_every_method_mechanism_and_score_is_explained(evaluation: Any) -> None:
    scores = {row["score"] for row in evaluation.to_table().to_pylist()}
    bins = {name for name in scores if re.match(r"forecast_|frequency_", name)}
    assert {"crps", "nrps", "brier", "width_95", "seconds"} <= scores
    pages = text_of("docs/guides/evaluate.md") + text_of(TABLES)
    assert not_in({*known_methods(), *MECHANISMS, *(scores - bins)}, pages) == []


def test_every_key_of_an_evaluation_is_explained(evaluation: Any) -> None:
    done = evaluation.to_dict()
    done["failures"] = [{"method": "a", "rate": 0.1, "repeat": 0, "reason": "why"}]
    assert not_in(set(keys_of(done)), section(text_of(JSON), "`glfm evaluate`")) == []


# Sources -------------------------------------------------------------------------------------


def test_every_source_named_in_the_code_is_in_the_bibliography() -> None:
    """A source in brackets, such as [Author and Other 2011, sect. 4.2] or [GLFM, eq. 13]."""
    known = {
        (re.split(r"[ ,]", key)[0], *re.findall(r"\d{4}", key))
        for key in re.findall(r"\*\*\[([^]]+)\]\*\*", text_of("docs/bibliography.md"))
    }
    used: dict[tuple[str, ...], str] = {}
    folders = ("glfm_cli", "tests", "docs")
    for path in (each for folder in folders for each in (REPOSITORY / folder).rglob("*")):
        if path.suffix not in (".py", ".pyx", ".md") or path == Path(__file__):
            continue
        for inside in re.findall(r"\[([A-Z][^\[\]]*)\]", path.read_text(encoding="utf-8")):
            for source in inside.split(";"):
                author = re.match(r"\s*([A-Z][\w-]+)\b[^\d]*\b((?:19|20)\d\d)\b", source)
                if author:
                    used[author[1], author[2]] = path.name
                elif key := re.match(r"\s*(GLFM(?:-S)?)\b", source):
                    used[(key[1],)] = path.name
    assert len(used) >= 7
    assert {source: file for source, file in used.items() if source not in known} == {}
