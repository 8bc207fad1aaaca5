"""`glfm types` as a user runs it, and what every command shares: streams, errors, statuses."""

from __future__ import annotations

import gzip
import io
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import glfm_cli
from glfm_cli.cli import app, types
from glfm_cli.cli.console import Console, ExitStatus
from glfm_cli.encoding import encode
from glfm_cli.errors import GlfmError, NumericalError, UsageError
from glfm_cli.io import read_table
from glfm_cli.schema import read_schema
from tests.cli.conftest import run_here

Run = Callable[..., Any]


class Said(NamedTuple):
    status: int
    stdout: str
    stderr: str


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def here(*arguments: str | Path) -> Said:
    """Run a command line in this process."""
    console = Console(io.StringIO(), io.StringIO())
    status = app.run([str(argument) for argument in arguments], console)
    assert isinstance(console.stdout, io.StringIO)
    assert isinstance(console.stderr, io.StringIO)
    return Said(status, console.stdout.getvalue(), console.stderr.getvalue())


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    rows = "".join(f"P{i},{i % 3 + 1},{i}.5,{'NA' if i % 4 else 'yes'}\n" for i in range(60))
    path.write_text(f"id,item,weight,answer\n{rows}{'P60,2,1.5,no'}\n")
    return path


# What it writes ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["airquality", "lung", "messy", "pbc"])
def test_types_of_the_sample_tables_load_and_run_unchanged(
    sample_data: Path, tmp_path: Path, name: str
) -> None:
    data, output = sample_data / f"{name}.csv", tmp_path / "types.yaml"
    assert here("types", data, "-o", output).status == ExitStatus.OK
    assert encode(read_table(data), read_schema(output)).columns


def test_types_writes_to_standard_output_and_reads_standard_input(
    glfm: Run, table: Path, tmp_path: Path
) -> None:
    done = glfm("types", "-", stdin=table.read_bytes())
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("# Guessed from standard input: 61 rows, 4 columns.")
    (tmp_path / "types.yaml").write_bytes(done.output)
    assert [c.name for c in read_schema(tmp_path / "types.yaml").columns] == [
        "id",
        "item",
        "weight",
        "answer",
    ]


def test_types_gives_each_guess_with_its_reason(table: Path) -> None:
    assert here("types", table).stdout.splitlines()[2:] == [
        "glfm: 1",
        'missing: ["NA"]  # besides the empty cell',
        "columns:",
        f"{'  id: id':40}  # every value is different, and the name is an id's",
        '  item: {type: ordinal, levels: ["1", "2", "3"]}'
        "  # whole numbers from 1 to 3; the name is a scale's",
        f"{'  weight: positive':40}  # numbers from 0.5 to 59.5, none below zero",
        '  answer: {type: categorical, levels: ["no", "yes"]}  # yes or no; NA taken for missing',
    ]


def test_types_reads_compressed_and_parquet_tables(table: Path, tmp_path: Path) -> None:
    packed, parquet = tmp_path / "table.csv.gz", tmp_path / "table.parquet"
    packed.write_bytes(gzip.compress(table.read_bytes()))
    pq.write_table(pa.table({"n": [1, 2, 3, None, 9], "city": list("abaab")}), parquet)
    assert "item: {type: ordinal" in here("types", packed).stdout
    assert 'city: {type: categorical, levels: ["a", "b"]}' in here("types", parquet).stdout


def test_types_writes_names_in_any_script_under_any_locale(glfm: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("größe,城市\n1.5,京\n2.5,東\n4.5,京\n", encoding="utf-8")
    done = glfm("types", "t.csv", env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "größe: positive" in done.output.decode()
    assert '城市: {type: categorical, levels: ["京", "東"]}' in done.output.decode()


# Output files --------------------------------------------------------------------------------


def test_output_file_is_named_on_stderr_unless_quiet(table: Path, tmp_path: Path) -> None:
    output = tmp_path / "types.yaml"
    assert here("types", table, "-o", output) == (
        0,
        "",
        f"{output}: 3 of 4 columns will be modelled.\n",
    )
    assert here("types", table, "--output", output, "--quiet") == (0, "", "")


def test_output_replaces_an_older_file_only_on_success(table: Path, tmp_path: Path) -> None:
    output, broken = tmp_path / "types.yaml", tmp_path / "broken.csv"
    broken.write_text("a,b\n1\n")
    output.write_text("old")
    assert here("types", broken, "-o", output).status == ExitStatus.USAGE
    assert output.read_text() == "old"
    assert here("types", table, "-o", output).status == ExitStatus.OK
    assert output.read_text().startswith("# Guessed from")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["broken.csv", "table.csv", "types.yaml"]


def test_output_over_the_table_itself_is_refused(table: Path, tmp_path: Path) -> None:
    before, link = table.read_bytes(), tmp_path / "link.yaml"
    link.symlink_to(table)
    for output in (table, link):
        said = here("types", table, "-o", output)
        assert said.status == ExitStatus.USAGE
        assert "the output is the table itself" in said.stderr
    assert table.read_bytes() == before


def test_output_into_a_missing_folder_is_an_error(table: Path, tmp_path: Path) -> None:
    said = here("types", table, "-o", tmp_path / "none" / "types.yaml")
    assert said.status == ExitStatus.USAGE
    assert said.stderr.startswith(f"Error: {tmp_path / 'none' / 'types.yaml'}: ")


# Errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty"),
        (b"a,b\n", "no rows"),
        (b"a,b\n1,2\n3\n", "row 2"),
        (b"a,a\n1,2\n", "a"),
        (b"a\nx\nx\n", "no column of the table can be modelled: a is ignored: always x"),
        (
            b"id\n1\n2\n3\n",
            "no column of the table can be modelled: id is an id (numbers the rows)",
        ),
        (b"id,x\n1,a\n2,a\n3,a\n", "can be modelled: x is ignored: always a"),
        (bytes(range(256)) * 8, ""),
    ],
    ids=range(8),
)
def test_a_table_that_cannot_be_guessed_is_one_error_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    status, stdout, stderr = here("types", path)
    assert (status, stdout) == (ExitStatus.USAGE, "")
    assert message in stderr
    assert [line.split(":")[0] for line in stderr.splitlines()] in (["Error"], ["Error", "Hint"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing command"),
        (["typs"], "No such command 'typs'"),
        (["types"], "Missing argument 'DATA'"),
        (["types", "a.csv", "--outptu", "b"], "No such option: --outptu"),
        (["types", "a.csv", "b.csv"], "unexpected extra argument"),
        (["types", "a.csv", "-o"], "requires an argument"),
        (["types", "none.csv"], "none.csv"),
        (["--wrong"], "No such option: --wrong"),
    ],
    ids=range(8),
)
def test_wrong_usage_is_an_error_line_and_a_hint(arguments: list[str], message: str) -> None:
    status, stdout, stderr = here(*arguments)
    assert (status, stdout) == (ExitStatus.USAGE, "")
    error, hint = stderr.splitlines()
    assert error.startswith("Error: ")
    assert message in error
    assert hint.startswith("Hint: ")


def failing(error: BaseException) -> Said:
    """End an action with an error."""

    def fail() -> int:
        raise error

    console = Console(stdout := io.StringIO(), stderr := io.StringIO())
    return Said(app.end(fail, console), stdout.getvalue(), stderr.getvalue())


@pytest.mark.parametrize(
    ("error", "status", "lines"),
    [
        (UsageError("no\nsense", hint="Try\nagain."), 2, ["Error: no sense", "Hint: Try again."]),
        (GlfmError(value=3, column="a", row=7), 2, ["Error: column 'a', row 7: found 3"]),
        (NumericalError("the numbers broke down"), 1, ["Error: the numbers broke down"]),
        (OSError(28, "No space left on device", "out.csv"), 1, ["Error: out.csv: No space left"]),
        (MemoryError(), 1, ["Error: there is not enough memory", "Hint: Close other"]),
        (
            ImportError("libarrow.so: failed to map segment from shared object"),
            1,
            ["Error: there is not enough memory", "Hint: Close other"],
        ),
        (KeyboardInterrupt(), 130, ["Error: interrupted"]),
        (ZeroDivisionError("1 / 0"), 1, ["Error: this is a bug in glfm", "Hint: Please report"]),
    ],
    ids=range(8),
)
def test_each_way_to_fail_has_its_message_and_status(
    error: BaseException, status: int, lines: list[str]
) -> None:
    said = failing(error)
    shown = said.stderr.splitlines()
    assert said.status == status
    assert [s.startswith(line) for s, line in zip(shown, lines, strict=True)] == [True] * len(lines)


def test_a_bug_shows_its_traceback_only_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback" not in failing(ZeroDivisionError("x")).stderr
    monkeypatch.setenv("GLFM_DEBUG", "1")
    said = failing(ZeroDivisionError("x"))
    assert "ZeroDivisionError: x" in said.stderr.splitlines()[0]
    assert "Traceback (most recent call last):" in said.stderr


def test_a_reader_that_stops_early_is_no_error(sample_data: Path, repository: Path) -> None:
    command = f"{shlex.quote(sys.executable)} -m glfm_cli types pbc.csv | head -c 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"],
        cwd=sample_data,
        env={**os.environ, "PYTHONPATH": str(repository)},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"#", b"")


def test_interrupt_ends_with_130_and_one_line(repository: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "glfm_cli", "types", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(repository)},
    )
    assert process.stdin is not None
    # More than a pipe holds: once it is written, the command is at reading.
    process.stdin.write(b"a,b\n" + b"1,2\n" * 100_000)
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    assert (process.returncode, stdout) == (130, b"")
    assert stderr == b"Error: interrupted before the work was done\n"


# Help ----------------------------------------------------------------------------------------


def test_help_and_version_go_to_stdout(glfm: Run) -> None:
    for arguments in (["--help"], ["-h"], ["types", "--help"]):
        done = glfm(*arguments)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("Usage: glfm")
    assert glfm("--version").stdout == f"glfm {glfm_cli.__version__}\n"


def test_every_command_s_help_ends_with_its_example(glfm: Run) -> None:
    for name, module in app.COMMANDS.items():
        last = glfm(name, "--help").stdout.split("Example:")[-1]
        assert " ".join(last.split()) == module.EXAMPLE


def test_the_example_of_types_runs(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    program, *arguments = shlex.split(types.EXAMPLE)
    said = here(*arguments)
    assert (program, said.status) == ("glfm", 0)
    assert "bili: positive" in said.stdout


CLINIC = """\
patient_id,sex,smokes,packs,bp,crp,age
{}"""


def clinic(tmp_path: Path) -> Path:
    rows = [
        f"V{i},{'F' if i % 2 else 'M'},{('never', 'former', 'now')[i % 3]},"
        f"{i % 3 and 3 + i % 17},{110 + i % 40}/{60 + i % 30},"
        f"{'<0.6' if i % 7 == 0 else 0.61 + i / 50:.4},{20 + i % 60}"
        for i in range(150)
    ]
    for i, old, new in ((1, ",F", ",f"), (4, ",M", ",male"), (10, ",110/", ",-99/")):
        rows[i] = rows[i].replace(old, new)
    for i, place in ((20, 2), (21, 3), (22, 6)):
        cells = rows[i].split(",")
        rows[i] = ",".join([*cells[:place], "-99", *cells[place + 1 :]])
    path = tmp_path / "clinic.csv"
    path.write_text(CLINIC.format("\n".join([*rows[:30], *rows[29:]]) + "\n"))
    return path


def test_types_says_what_a_person_may_want_to_add_and_what_is_pasted_loads(tmp_path: Path) -> None:
    data, path = clinic(tmp_path), tmp_path / "types.yaml"
    text = here("types", data).stdout
    for said in (
        "# Rows 30 and 31 are the same.",
        'missing: ["-99"]  # besides the empty cell',
        "known only to lie in an interval: <0.6; `impute: censored` fills such cells in",
        "ignored: two numbers, such as 110/60; split them into two columns first",
        "0 in all 49 rows where smokes is never and hardly elsewhere; if that must be so: "
        'only_if: smokes != "never", otherwise: "0"',
        "f and F, male and M may be one level; if so: "
        'levels: ["F", "M"], aliases: {F: ["f"], M: ["male"]}',
    ):
        assert said in text
    assert text.count('-99"]') == 1
    adds = {line.split(": ", 1)[0]: line for line in text.splitlines() if "so: " in line}
    assert len(adds) == 2
    path.write_text(
        text.replace(
            'sex: {type: categorical, levels: ["F", "M", "f", "male"]}',
            'sex: {type: categorical, levels: ["F", "M"], aliases: {F: ["f"], M: ["male"]}}',
        ).replace(
            "packs: count", 'packs: {type: count, only_if: smokes != "never", otherwise: "0"}'
        )
    )
    assert encode(read_table(data), read_schema(path)).columns


def test_a_code_that_one_column_has_as_a_value_stays_with_the_others(tmp_path: Path) -> None:
    rows = [f"{i % 50},{i % 40},{i % 30},{-99.0 + i}" for i in range(200)]
    path = tmp_path / "t.csv"
    path.write_text("a,b,c,d\n" + "\n".join([*rows, "-99,-99,-99,7"]) + "\n")
    text = here("types", path).stdout
    assert text.count('missing: ["-99"]') == 3
    assert "\nmissing:" not in text


@pytest.mark.parametrize("levels", [("A", "B", "AB", "0"), ("I", "II", "III"), ("a", "b", "c")])
def test_levels_that_are_not_one_are_left_alone(tmp_path: Path, levels: tuple[str, ...]) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{levels[i % len(levels)]},{i}.5\n" for i in range(80)))
    assert "may be one level" not in here("types", path).stdout


def test_a_level_that_is_not_listed_may_be_another_writing(tmp_path: Path) -> None:
    data, path = clinic(tmp_path), tmp_path / "types.yaml"
    path.write_text("rest: ignore\ncolumns: {sex: {type: categorical, levels: [F, M, f]}}\n")
    said = here("impute", data, "--types", path)
    assert said.status == 2
    assert "found 'male'" in said.stderr
    assert "means 'M' by it, give the column `aliases: {M: [\"male\"]}`" in said.stderr


# The console ---------------------------------------------------------------------------------


def test_quiet_silences_notes_but_not_warnings() -> None:
    console = Console(io.StringIO(), stderr := io.StringIO(), quiet=True)
    console.note("done")
    console.warn("one\nlevel")
    assert stderr.getvalue() == "Warning: one level\n"


def test_progress_is_for_terminals_and_not_for_the_quiet() -> None:
    shown = [
        Console(io.StringIO(), io.StringIO()).shows_progress,
        Console(io.StringIO(), Terminal()).shows_progress,
        Console(io.StringIO(), Terminal(), quiet=True).shows_progress,
    ]
    assert shown == [False, True, False]


def test_what_is_going_on_is_shown_on_a_terminal_until_something_is_said() -> None:
    console = Console(io.StringIO(), stderr := Terminal())
    console.wait("reading")
    assert stderr.getvalue() == "\rreading\x1b[K"
    console.note("done")
    console.note("again")
    assert stderr.getvalue() == "\rreading\x1b[K\r\x1b[Kdone\nagain\n"
    Console(io.StringIO(), silent := io.StringIO()).wait("reading")
    assert silent.getvalue() == ""


def test_the_process_ends_with_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["glfm", "nonsense"])
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with pytest.raises(SystemExit) as ended:
        app.main()
    assert ended.value.code == ExitStatus.USAGE


def test_types_may_be_guessed_or_come_from_standard_input(table: Path, tmp_path: Path) -> None:
    types, path = here("types", table).stdout, tmp_path / "types.yaml"
    path.write_text(types)
    command = ("impute", str(table), "-q", "--chains", "1", "--warmup", "2", "--draws", "3")
    named = run_here(*command, "--types", path)
    assert named.status == 0
    assert run_here(*command, "--types", "auto").output == named.output
    other = [sys.executable, "-m", "glfm_cli", *command, "--types", "-"]
    piped = subprocess.run(other, input=types.encode(), capture_output=True, check=True)
    assert piped.stdout == named.output
    both = here("impute", "-", "--types", "-")
    assert both.status == 2
    assert "Error: the table and the types file are both standard input\n" in both.stderr
