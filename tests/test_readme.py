"""The documentation is true: its examples run, its outputs are today's, its lists are complete."""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import importlib.util
import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest

import glfm_cli
from glfm_cli import classify, evaluate, explore, impute, read_schema
from glfm_cli.cli.app import run
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.completion.result import PROBABILITIES, cells_schema
from glfm_cli.latent import MODELS
from glfm_cli.links.link import LinkConfig

REPOSITORY = Path(__file__).resolve().parent.parent
# Columns of the tables shown whose values are sampled, in all rows or in some.
SAMPLED = {"estimate", "mean", "sd", "lower", "upper", "probability", "Ozone", "Solar.R"}
SAMPLED |= {"meal.cal", "wt.loss", "pat.karno", "ph.karno", "ph.ecog", "inst"}
SAMPLED |= {"ascites", "hepato", "spiders", "chol", "copper", "alk.phos", "ast", "trig", "stage"}
SAMPLED |= {"p_no", "p_perhaps", "p_yes"}
SAMPLE = [str(REPOSITORY / "sample_data" / name) for name in ("messy.csv", "messy.types.yaml")]
SAMPLE.insert(1, "--types")
SHORT = {"chains": 2, "warmup": 4, "draws": 10}  # enough draws for 20 tables
_OPTIONS = " ".join(f"--{name} {value}" for name, value in SHORT.items())
SHORT_OPTIONS = {
    "impute": _OPTIONS,
    "explore": _OPTIONS,
    "suggest": _OPTIONS,
    "evaluate": f"{_OPTIONS} --repeats 2 --rates 0.1,0.3",
    "classify": "--chains 1 --set iterations=3",
}


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up while they are made
    spec.loader.exec_module(module)
    return module


examples = load(REPOSITORY / "docs" / "make_examples.py")


def text_of(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


README = text_of("README.md")


def outputs(document: str) -> list[tuple[str, str]]:
    """Return each example that has its output pasted below it, with that output."""
    found, example = [], ""
    for block in examples.blocks(document):
        if block.runs:
            example = block.body
        elif block.is_output:
            found.append((example, block.body))
    return found


def command(*arguments: str) -> str:
    """Run `glfm` and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert run(arguments, Console()) == 0
    return printed.getvalue()


def output_of(part: str, document: str = README) -> str:
    """Return the pasted output of the one example that contains `part`."""
    (found,) = [output for example, output in outputs(document) if part in example]
    return found


def rows_of(pasted: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(pasted)))


# Examples run --------------------------------------------------------------------------------


class Ran:
    """A document whose examples were run once, with short chains."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.before = text_of(name)
        self.place = examples.Workplace(folder, SHORT_OPTIONS)
        self.after = examples.refreshed(self.before, self.place)


@pytest.fixture(scope="module", params=examples.DOCUMENTS)
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SHORT.items():
            for function in (impute, evaluate, explore):
                patch.setitem(function.__kwdefaults__, name, value)
        patch.setitem(classify.__kwdefaults__, "settings", {"iterations": 3})
        yield Ran(request.param, tmp_path_factory.mktemp("examples"))


def test_every_example_runs_and_prints_as_many_lines_as_are_shown(ran: Ran) -> None:
    shown, printed = outputs(ran.before), outputs(ran.after)
    assert len(shown) > 2
    for (example, before), (_, after) in zip(shown, printed, strict=True):
        if "glfm explore" in example:  # as many lines as there are features and patterns
            assert after
            continue
        assert n_lines(before) == n_lines(after), example


def n_lines(printed: str) -> int:
    """Return the number of lines but warnings, which short chains may call for or not."""
    return sum(not line.startswith("Warning: ") for line in printed.splitlines())


def test_tables_that_are_shown_differ_in_sampled_values_only(ran: Ran) -> None:
    """Headers, numbers of rows, and every cell that is not sampled are today's."""
    for (example, before), (_, after) in zip(outputs(ran.before), outputs(ran.after), strict=True):
        if example.startswith(("head ", "sed ")) or "\nhead " in example:
            was, now = rows_of(before), rows_of(after)
            assert [list(row) for row in was] == [list(row) for row in now]
            assert [kept(row) for row in was] == [kept(row) for row in now]


def kept(row: dict[str, str]) -> list[str]:
    """Return the cells of a row that stand in no column of sampled values."""
    return [cell for name, cell in row.items() if name not in SAMPLED]


def test_figures_shown_are_made_by_an_example(ran: Ran) -> None:
    shown = re.findall(r"images/([\w.-]+)\)", ran.before)
    missing = [name for name in shown if not (ran.place.folder / name).stat().st_size]
    assert missing == []


@pytest.mark.slow
@pytest.mark.parametrize("name", examples.DOCUMENTS)
def test_every_example_runs_word_for_word(name: str, tmp_path: Path) -> None:
    document = text_of(name)
    after = examples.refreshed(document, examples.Workplace(tmp_path))
    assert len(outputs(after)) == len(outputs(document))


def test_commands_that_are_not_run_here_are_those_of_the_continuous_integration() -> None:
    shell = [block.body.strip() for block in examples.blocks(README) if block.language == "sh"]
    others = [body for body in shell if body.split()[0] in examples.NOT_RUN]
    assert others == ["pip install .", "pip install -e '.[dev]'", "python -m pytest"]
    check = text_of(".ci/run")
    assert re.search(r"pip install .*-e '\.\[dev\]'", check)
    assert re.search(r"^step python -m pytest\b", check, flags=re.MULTILINE)


# What the README says of the sample is so ----------------------------------------------------


def test_observed_cells_shown_before_are_the_same_after() -> None:
    before = output_of("' sample_data/pbc.csv")
    after = output_of("' completed.csv")
    for old, new in zip(rows_of(before), rows_of(after), strict=True):
        observed = {name: cell for name, cell in old.items() if cell != "NA" or name == "trt"}
        assert observed.items() <= new.items()
        assert "NA" not in {cell for name, cell in new.items() if name != "trt"}


def test_cells_shown_are_those_put_into_the_table_shown() -> None:
    after = {row["id"]: row for row in rows_of(output_of("' completed.csv"))}
    cells = rows_of(output_of("cells.csv", README.partition("--plot pbc.png")[2]))
    assert len(cells) > 5
    for cell in cells:
        assert after[cell["id"]][cell["column"]] == cell["estimate"]


def test_the_guess_shown_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    assert command("types", "sample_data/messy.csv") == output_of(
        "glfm types sample_data/messy.csv"
    )


def test_the_types_shown_are_in_the_types_file() -> None:
    snippet = re.search(r"```yaml\n(.*?)```", README, flags=re.DOTALL)
    assert snippet is not None
    there = {" ".join(line.split()) for line in text_of("sample_data/pbc.types.yaml").splitlines()}
    shown = [" ".join(line.split()) for line in snippet[1].splitlines()]
    unknown = [line for line in shown if not any(line in known for known in there)]
    assert unknown == ["# and so on"]


def test_numbers_of_rows_columns_and_gaps_are_right() -> None:
    assert "927 cells completed in 418 rows" in output_of("--plot pbc.png")
    assert "418 patients of a clinical trial, 20 columns and 927 gaps" in README
    names = text_of("sample_data/pbc.csv").splitlines()[0].split(",")
    assert (
        len(
            read_schema(REPOSITORY / "sample_data/pbc.types.yaml").resolve(
                [name.strip('"') for name in names]
            )
        )
        == 20
    )


# Lists are complete --------------------------------------------------------------------------


def test_exit_statuses_are_listed() -> None:
    section = README.partition("## Exit statuses")[2].partition("\n## ")[0]
    listed = [int(status) for status in re.findall(r"^\| (\d+) \|", section, flags=re.MULTILINE)]
    assert listed == sorted(ExitStatus)


def test_every_option_of_impute_is_explained() -> None:
    document = text_of("docs/impute.md")
    options = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", command("impute", "--help")))
    assert {"--output", "-o", "--plot", "--set"} <= options
    assert [option for option in sorted(options) if f"`{option}" not in document] == []


SETTINGS = {name: (model.Config, f"docs/{name}.md") for name, model in MODELS.items()}
SETTINGS["glfm"] = (MODELS["glfm"].Config, "docs/impute.md")
SETTINGS["links"] = (LinkConfig, "docs/impute.md")


@pytest.mark.parametrize("part", SETTINGS)
def test_every_setting_is_explained_with_its_default(part: str) -> None:
    config, document = SETTINGS[part]
    table: dict[str, str] = {}
    for line in text_of(document).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 3:
            names, defaults = (re.findall(r"`([^`]+)`", cell) for cell in cells[:2])
            table |= dict(zip(names, defaults, strict=False))
    written = {True: "true", False: "false", None: "auto"}
    for field in dataclasses.fields(config):
        value = field.default
        expected = written[value] if value is None or isinstance(value, bool) else str(value)
        assert table.get(field.name) == expected, field.name


def keys_of(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in ("quantities", "levels"):
                yield from keys_of(inner)
        for quantity in list(value.get("quantities", {}).values())[:1]:
            yield from quantity
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def test_every_key_of_the_json_object_is_explained() -> None:
    data, _, types = SAMPLE
    done = impute(data, types, **SHORT)
    document = text_of("docs/impute.md").partition("\n## JSON")[2].partition("\n## ")[0]
    keys = set(keys_of(done.to_dict()))
    assert {"rows", "per_column", "mean_sd", "mean_probability", "levels", "ess_bulk"} <= keys
    assert [key for key in sorted(keys) if f"`{key}`" not in document] == []


def test_every_key_of_a_dry_run_is_explained() -> None:
    done = command("impute", *SAMPLE, "--dry-run", "--json")
    document = text_of("docs/impute.md").partition("With `--dry-run` the object has")[2]
    assert [key for key in json.loads(done) if f"`{key}`" not in document] == []


def test_every_column_of_cells_and_probabilities_is_explained() -> None:
    document = text_of("docs/impute.md")
    for heading, schema in (
        ("Cells", cells_schema(pa.schema([]))),
        ("Probabilities", PROBABILITIES),
    ):
        section = document.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
        assert [name for name in schema.names if f"`{name}`" not in section] == []


def test_every_public_name_is_listed() -> None:
    document = text_of("docs/python.md")
    names = [name for name in glfm_cli.__all__ if not name.startswith("__")]
    assert [name for name in names if not re.search(rf"^\|.*`{name}\b", document, flags=re.M)] == []


def test_every_source_named_in_the_code_is_a_reference() -> None:
    """A source in brackets, such as [Author and Other 2011, sect. 4.2] or [GLFM, eq. 13]."""
    references = README.partition("\n## References\n")[2]
    known = {
        (re.split(r"[ ,]", key)[0], *re.findall(r"\d{4}", key))
        for key in re.findall(r"\*\*\[([^]]+)\]\*\*", references)
    }
    named: dict[tuple[str, ...], str] = {}
    for path in [*(REPOSITORY / "glfm_cli").rglob("*.py*"), *(REPOSITORY / "tests").rglob("*.py")]:
        if path.suffix not in (".py", ".pyx") or path == Path(__file__):
            continue
        for inside in re.findall(r"\[([A-Z][^\[\]]*)\]", path.read_text(encoding="utf-8")):
            for source in inside.split(";"):
                author = re.match(r"\s*([A-Z]\w+)\b[^\d]*\b((?:19|20)\d\d)\b", source)
                if author:
                    named[author[1], author[2]] = path.name
                elif re.match(r"\s*GLFM(-S)?\b", source):
                    named[(re.match(r"\s*(GLFM(?:-S)?)", source)[1],)] = path.name
    assert len(named) >= 7
    assert {source: file for source, file in named.items() if source not in known} == {}
