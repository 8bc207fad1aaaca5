"""Any other program as a method: it reads a table with missing cells and writes a complete one."""

from __future__ import annotations

import dataclasses
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from glfm_cli.encoding.source import is_text_type, text_of
from glfm_cli.errors import GlfmError, UsageError
from glfm_cli.evaluation.measure import Cost, group_memory
from glfm_cli.evaluation.read import read_completed
from glfm_cli.evaluation.task import HiddenTask, MethodFailed, Prediction, TakesAll
from glfm_cli.io import atomic_write, write_table
from glfm_cli.schema import Schema

_NEEDED = ("{input}", "{output}")
# Programs are compared on one processor each, as our own methods are.
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_LONGEST_WORDS = 200
_LOG_TAIL = 4096


def parse_program(name: str, command: str, timeout: float) -> Program:
    """Return the method that a command is.

    name : what the results call it
    command : words as in a shell, but no shell runs them; `{input}`, `{types}`,
        `{output}` and `{seed}` stand for the files and the seed
    timeout : seconds that it may take

    Raises UsageError: the command does not say where it reads and writes, or there is no such
        program.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"--method {name}: {error}", value=command) from None
    missing = [place for place in _NEEDED if not any(place in word for word in words)]
    if not words or missing:
        raise UsageError(
            f"--method {name}",
            value=command or "nothing",
            expected=f"a command with {' and '.join(_NEEDED)}",
            hint="For example --method 'mice=Rscript mice.R {input} {types} {output} {seed}'.",
        )
    if shutil.which(words[0]) is None:
        raise UsageError(
            f"--method {name}: there is no program '{words[0]}'",
            hint="Give its path, or install it.",
        )
    return Program(name, tuple(words), timeout)


@dataclass(frozen=True)
class Program(TakesAll):
    """An external program; what it cannot do is seen when it runs.

    words : the command and its arguments, with places for files and seed
    timeout : seconds after which it is ended
    """

    name: str
    words: tuple[str, ...]
    timeout: float

    @property
    def key(self) -> str:
        """Return the command and its time limit."""
        return f"{self.name} {shlex.join(self.words)} {self.timeout}"

    def fit(self, task: HiddenTask) -> dict[int, Prediction]:
        """Return what the program put into the hidden cells.

        Raises MethodFailed: it ended with an error or not in time, or its table is not the
            completed input.
        """
        with tempfile.TemporaryDirectory(prefix="glfm-evaluate-") as folder:
            files = {
                "{input}": str(Path(folder) / "input.csv"),
                "{types}": str(Path(folder) / "types.yaml"),
                "{output}": str(Path(folder) / "output.csv"),
                "{seed}": str(task.seed),
            }
            log = Path(folder) / "log.txt"
            write_table(input_table(task), files["{input}"])
            with atomic_write(files["{types}"], "w") as file:
                file.write(input_types(task))
            _run([_filled(word, files) for word in self.words], self.timeout, log, task.cost)
            if not Path(files["{output}"]).exists():
                raise MethodFailed("it wrote no output")
            try:
                values = read_completed(files["{output}"], task)
            except GlfmError as error:
                error.file = None  # a temporary name helps nobody
                raise MethodFailed(f"bad output: {error.message()}") from None
        return {d: Prediction(x) for d, x in values.items()}


def input_table(task: HiddenTask) -> pa.Table:
    """Return the table as the program gets it: missing cells of modelled columns are empty."""
    table = task.table.replace_schema_metadata(None)
    for encoded in task.data.in_table:
        values = table.column(encoded.index)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if is_text_type(values.type):
            texts = pc.utf8_trim_whitespace(values.cast(pa.large_string())).combine_chunks()
        else:
            texts = text_of(values.combine_chunks())
        kept = pc.if_else(pa.array(encoded.observed), texts, pa.scalar(None, texts.type))
        table = table.set_column(encoded.index, encoded.column.name, kept)
    return table


def input_types(task: HiddenTask) -> str:
    """Return the types file as the program gets it: one entry a column, all levels listed."""
    names = task.table.column_names
    columns = list(task.schema.resolve(names))
    for encoded in task.data.in_table:
        columns[encoded.index] = dataclasses.replace(
            encoded.column, levels=encoded.levels or None, missing=()
        )
    columns = [dataclasses.replace(column, missing=()) for column in columns]
    return Schema(columns=tuple(columns)).to_yaml()


def _filled(word: str, files: dict[str, str]) -> str:
    for place, text in files.items():
        word = word.replace(place, text)
    return word


def _run(words: Sequence[str], timeout: float, log: Path, cost: Cost) -> None:
    """Run a command to its end, in the current folder; its group of processes ends with it."""
    environment = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1")}
    deadline = time.monotonic() + timeout
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise MethodFailed(f"cannot be started: {error.strerror or error}") from None
    try:
        pause = 0.002
        while process.poll() is None:
            if time.monotonic() >= deadline:
                raise MethodFailed(f"took longer than {timeout:g} s and was ended")
            cost.note(group_memory(process.pid))
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
    finally:
        _end_group(process)
    if process.returncode != 0:
        code = process.returncode
        how = f"ended with status {code}" if code > 0 else f"was ended by signal {-code}"
        last = _last_line(log)
        raise MethodFailed(f"{how}: {last}" if last else how)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End whatever the command left running."""
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except (ProcessLookupError, PermissionError):
        pass
    process.wait()


def _last_line(log: Path) -> str:
    """Return the last line that a program printed, cut to a readable length."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _LOG_TAIL))
        lines = file.read().decode("utf-8", errors="replace").split("\n")
    told = [line.strip() for line in lines if line.strip()]
    line = "".join(c for c in told[-1] if c.isprintable()) if told else ""
    return line if len(line) <= _LONGEST_WORDS else line[: _LONGEST_WORDS - 3] + "..."
