"""The examples of README and docs run, and the outputs that are shown are today's."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from collections.abc import Iterator
from inspect import unwrap
from pathlib import Path

import pytest
from documents import REPOSITORY, command, examples, text_of
from forks import forking

from glfm_cli import classify, evaluate, explore, impute, read_schema
from glfm_cli.latent.cnpf import config

# Columns of the tables shown whose values are sampled, in all rows or in some.
SAMPLED = {"estimate", "mean", "sd", "lower", "upper", "probability", "mcse", "Ozone", "Solar.R"}
SAMPLED |= {"meal.cal", "wt.loss", "pat.karno", "ph.karno", "ph.ecog", "inst"}
SAMPLED |= {"ascites", "hepato", "spiders", "chol", "copper", "alk.phos", "ast", "trig", "stage"}
SAMPLED |= {"p_no", "p_perhaps", "p_yes", "log_score"}
SHORT = {"chains": 2, "warmup": 4, "draws": 10}  # enough draws for 20 tables
_OPTIONS = " ".join(f"--{name} {value}" for name, value in SHORT.items())
SHORT_OPTIONS = {
    "*--fit*|*--compare*": "",
    "*'--model clgp'*": "--chains 2 --set iterations=5 --set dimensions=2 --set inducing=8",
    "*'--model cnpf'*|*'--methods cnpf'*": "--chains 1 --set passes=8",
    "*'--multiple 2 '*": "--chains 2 --warmup 4 --draws 4",  # too few to recalibrate forecasts by
    "impute*|explore*|suggest*": _OPTIONS,
    "evaluate*": f"{_OPTIONS} --repeats 2 --jobs 1",
    "classify*": "--chains 1 --set iterations=3",
}
# Commands whose output has as many lines as were found or came to be worth saying.
ANY_LENGTH = ("glfm explore", "glfm diagnose", "awk")
README = text_of("README.md")
# Pages that take more than some ten seconds of processor time with short chains, too.
DEAR = {
    *("docs/guides/classify.md", "docs/guides/diagnose.md", "docs/guides/evaluate.md"),
    *("docs/guides/explore.md", "docs/guides/fits.md", "docs/guides/impute.md"),
    *("docs/guides/programs.md", "docs/guides/tasks.md", "docs/guides/triplets.md"),
    *("docs/models/index.md", "docs/models/iqgme.md"),
}
PAGES = [
    pytest.param(name, marks=pytest.mark.slow) if name in DEAR else name
    for name in examples.documents()
]


def outputs(document: str) -> list[tuple[str, str]]:
    """Return each example that has its output pasted below it, with that output."""
    found, example = [], ""
    for block in examples.blocks(document):
        if block.is_example:
            example = block.body
        elif block.is_output:
            found.append((example, block.body))
    return found


def output_of(part: str, document: str = README) -> str:
    """Return the pasted output of the one example that contains `part`."""
    (found,) = [output for example, output in outputs(document) if part in example]
    return found


def rows_of(pasted: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(pasted)))


# Every example, with short chains ------------------------------------------------------------


class Ran:
    """A document whose examples were run once, with short chains."""

    def __init__(self, name: str, folder: Path, program: str) -> None:
        self.name = name
        self.before = text_of(name)
        self.place = examples.Workplace(folder, SHORT_OPTIONS, program)
        self.after = examples.refreshed(self.before, self.place)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The shell's words that run `glfm`."""
    with forking(tmp_path_factory.mktemp("server"), REPOSITORY) as words:
        yield words


@pytest.fixture(scope="module", params=PAGES)
def ran(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, program: str
) -> Iterator[Ran]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SHORT.items():
            for function in (impute, evaluate, explore):
                patch.setitem(unwrap(function).__kwdefaults__, name, value)
        patch.setitem(unwrap(classify).__kwdefaults__, "settings", {"iterations": 3})
        patch.setattr(config, "PASSES", 15)
        yield Ran(request.param, tmp_path_factory.mktemp("examples"), program)


def test_examples_of_a_page_run_and_print_what_is_shown(ran: Ran) -> None:
    """One test, so that no two workers run the examples of a page."""
    check_numbers_of_lines(ran)
    check_tables_that_are_shown(ran)
    check_figures_that_are_shown(ran)


def check_numbers_of_lines(ran: Ran) -> None:
    shown, printed = outputs(ran.before), outputs(ran.after)
    for (example, before), (_, after) in zip(shown, printed, strict=True):
        assert after
        if not any(part in example for part in ANY_LENGTH):
            assert n_lines(before) == n_lines(after), example


def n_lines(printed: str) -> int:
    """Return the number of lines but warnings, which short chains may call for or not."""
    return sum(not line.startswith("Warning: ") for line in printed.splitlines())


def check_tables_that_are_shown(ran: Ran) -> None:
    """Headers, numbers of rows, and every cell that is not sampled are today's."""
    for (example, before), (_, after) in zip(outputs(ran.before), outputs(ran.after), strict=True):
        last = example.strip().splitlines()[-1]
        if re.match(r"(head|sed) [^|]*\.csv$", last):
            was, now = (rows_of(table_in(text)) for text in (before, after))
            assert [list(row) for row in was] == [list(row) for row in now]
            assert [fixed(row) for row in was] == [fixed(row) for row in now]


def table_in(printed: str) -> str:
    """Return what a command printed without the lines of standard error, which come first."""
    lines = printed.splitlines(keepends=True)
    return "".join(line for line in lines if not re.match(r"Warning: |\d+ cells completed", line))


def fixed(row: dict[str, str]) -> list[str]:
    """Return the cells of a row that stand in no column of sampled values."""
    return [cell for name, cell in row.items() if name not in SAMPLED]


def check_figures_that_are_shown(ran: Ran) -> None:
    """Each is made by an example, or by a benchmark."""
    shown = re.findall(r"images/([\w.-]+)\)", ran.before)
    missing = [name for name in shown if not (ran.place.folder / name).stat().st_size]
    assert missing == []


@pytest.mark.slow
@pytest.mark.parametrize("name", examples.documents())
def test_every_example_runs_word_for_word(name: str, tmp_path: Path) -> None:
    document = text_of(name)
    after = examples.refreshed(document, examples.Workplace(tmp_path))
    assert len(outputs(after)) == len(outputs(document))


def test_commands_that_are_not_run_here_are_those_of_the_continuous_integration() -> None:
    shell = [
        block.body.strip()
        for block in examples.blocks(README)
        if block.language == "sh" and not block.is_example
    ]
    environment = "python3 -m venv .venv && .venv/bin/"
    install, test = (each.removeprefix(environment) for each in shell)
    assert install.startswith("pip install . && .venv/bin/glfm impute sample_data/")
    assert test == "pip install -e '.[dev]' && .venv/bin/python -m pytest"
    check = text_of(".ci/run")
    assert re.search(r"pip install .*-e '\.\[dev\]'", check)
    assert re.search(r"^step python -m pytest\b", check, flags=re.MULTILINE)


@pytest.mark.slow
def test_the_first_command_of_the_readme_does_everything(tmp_path: Path) -> None:
    known = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    for name in known.stdout.split("\0")[:-1]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / name, tmp_path / name)
    first = next(block.body for block in examples.blocks(README) if block.language == "sh")
    subprocess.run(["sh", "-ec", first], cwd=tmp_path, check=True)
    assert (tmp_path / "completed.csv").stat().st_size


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
    shown = output_of("glfm types sample_data/messy.csv", text_of("docs/guides/types.md"))
    assert command("types", "sample_data/messy.csv") == shown


def test_the_types_shown_are_in_the_types_file() -> None:
    snippet = re.search(r"```yaml\n(.*?)```", README, flags=re.DOTALL)
    assert snippet is not None
    there = {" ".join(line.split()) for line in text_of("sample_data/pbc.types.yaml").splitlines()}
    shown = [" ".join(line.split()) for line in snippet[1].splitlines()]
    unknown = [line for line in shown if not any(line in known for known in there)]
    assert unknown == ["# and so on"]


def test_numbers_of_rows_columns_and_missing_cells_are_right() -> None:
    assert "927 cells completed in 418 rows" in output_of("--plot pbc.png")
    assert "418 patients of a clinical trial, 20 columns and 927 missing cells" in README
    names = text_of("sample_data/pbc.csv").splitlines()[0].split(",")
    schema = read_schema(REPOSITORY / "sample_data/pbc.types.yaml")
    assert len(schema.resolve([name.strip('"') for name in names])) == 20
