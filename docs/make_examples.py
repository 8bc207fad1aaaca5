"""Run every example of the documentation, and paste what it prints and draws back into it.

    python docs/make_examples.py                       # README.md and all of docs/, from anywhere
    python docs/make_examples.py docs/guides/impute.md  # one document

In a document, blocks fenced as `sh`, `python` and `r` are examples. They run from top to bottom in
one folder with `sample_data/` in it, the Python blocks in one namespace, an R block in a process of
its own; without R and its package mice its output stays as it is. A `text` block below the mark
`<!-- output -->` holds what the example before it printed, and is replaced. A file
that an example leaves under the name of an image in `docs/images/` replaces that image.

Commands that install or test are not run here; `NOT_RUN` says which those are.
"""

from __future__ import annotations

import contextlib
import functools
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
IMAGES = REPOSITORY / "docs" / "images"
NOT_RUN = ("git", "pip", "python", "python3", "source", "cd", "ruff", "mypy", ".ci/run")

_BLOCK = re.compile(
    r"(?P<mark><!-- output -->\n)?^```(?P<language>sh|python|r|text)\n(?P<body>.*?)^```$",
    flags=re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: an example, or the output of those before it."""

    language: str
    body: str
    is_output: bool
    span: tuple[int, int]  # of the body, in the document

    @property
    def is_example(self) -> bool:
        """True for a block that is to be run."""
        if self.language == "sh":
            return not self.body.split()[0].startswith(NOT_RUN)
        return self.language in ("python", "r")

    @property
    def runs(self) -> bool:
        """True for an example that can be run here."""
        return self.is_example and (self.language != "r" or has_mice())


@functools.cache
def has_mice() -> bool:
    """Return whether R is here with its package mice."""
    if shutil.which("Rscript") is None:
        return False
    found = subprocess.run(["Rscript", "-e", "library(mice)"], capture_output=True, check=False)
    return found.returncode == 0


def blocks(document: str) -> list[Block]:
    """Return the blocks of a document that are fenced as sh, python, r or text."""
    return [
        Block(found["language"], found["body"], found["mark"] is not None, found.span("body"))
        for found in _BLOCK.finditer(document)
    ]


class Workplace:
    """A folder in which the examples of one document run.

    Parameters
    ----------
    folder : Path
        Empty; gets `sample_data/` and the command `glfm` of this checkout.
    extra : mapping of pattern to options
        Of the shell; the options of the first that a command's arguments match are added, last, so
        that they win over those of the example; but not beside a saved fit, which has been sampled.
    program : str, optional
        The shell's words that run `glfm`.
    """

    def __init__(
        self, folder: Path, extra: Mapping[str, str] | None = None, program: str = ""
    ) -> None:
        self.folder = folder / "examples"
        shutil.copytree(REPOSITORY / "sample_data", self.folder / "sample_data")
        commands = folder / "bin"
        commands.mkdir()
        script, program = commands / "glfm", program or f'"{sys.executable}" -m glfm_cli'
        cases = "".join(
            f'{pattern}) set -- "$@" {options} ;;\n' for pattern, options in (extra or {}).items()
        )
        lengthen = f'case "$2" in *.glfm) ;; *) case "$*" in\n{cases}esac ;; esac\n'
        script.write_text(
            f'#!/bin/sh\n{lengthen}exec {program} "$@"\n', encoding="utf-8"
        )
        script.chmod(0o755)
        self.environment: Mapping[str, str] = {
            **os.environ,
            "PATH": f"{commands}{os.pathsep}{os.environ.get('PATH', '')}",
            "PYTHONPATH": str(REPOSITORY),
            "COLUMNS": "100",
        }
        self.names: dict[str, Any] = {"__name__": "__main__"}

    def run(self, block: Block) -> str:
        """Run an example and return all it prints; a command that fails raises."""
        if block.language == "python":
            return self._python(block.body)
        if block.language == "r":
            return self._process(["Rscript", "-e", block.body])
        return self._process(["sh", "-ec", block.body])

    def _process(self, command: list[str]) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"status {done.returncode} of\n{command[-1]}\n{done.stdout}")
        return done.stdout

    def _python(self, code: str) -> str:
        printed = io.StringIO()
        with contextlib.chdir(self.folder), contextlib.redirect_stdout(printed):
            exec(compile(code, "<example>", "exec"), self.names)
        return printed.getvalue()


def documents() -> list[str]:
    """Return the documents with examples, by their path in the repository."""
    paths = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
    return [
        path.relative_to(REPOSITORY).as_posix()
        for path in paths
        if any(block.is_example for block in blocks(path.read_text(encoding="utf-8")))
    ]


@contextlib.contextmanager
def workplace() -> Iterator[Workplace]:
    """Make a workplace in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="glfm-examples-") as folder:
        yield Workplace(Path(folder))


def refreshed(document: str, place: Workplace) -> str:
    """Return a document with the output of its examples as it is today."""
    parts: list[str] = []
    printed: str | None = ""
    copied = 0
    for block in blocks(document):
        if block.runs:
            printed = place.run(block)
        elif block.language == "r":
            printed = None
        elif block.is_output and printed is not None:
            parts += [document[copied : block.span[0]], printed]
            copied = block.span[1]
    return "".join([*parts, document[copied:]])


def main(names: list[str]) -> None:
    """Refresh the named documents, or all."""
    sys.path.insert(0, str(REPOSITORY))
    for name in names or documents():
        path = REPOSITORY / name
        before = path.read_text(encoding="utf-8")
        with workplace() as place:
            after = refreshed(before, place)
            for image in sorted(place.folder.iterdir()):
                if f"images/{image.name}" in after:
                    shutil.copyfile(image, IMAGES / image.name)
                    print(f"{name}: drew {image.name}")
        if after != before:
            path.write_text(after, encoding="utf-8")
        print(f"{name}: {'refreshed' if after != before else 'as it was'}")


if __name__ == "__main__":
    main(sys.argv[1:])
