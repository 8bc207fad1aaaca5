"""What the tests of the documentation share: its pages, its examples, its generated reference."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from glfm_cli.cli.app import run
from glfm_cli.cli.console import Console

REPOSITORY = Path(__file__).resolve().parents[2]
SITE = REPOSITORY / "docs"


def load(path: Path) -> ModuleType:
    """Return a script of the documentation as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look their module up while they are made
    spec.loader.exec_module(module)
    return module


examples = load(SITE / "make_examples.py")
reference = load(SITE / "make_reference.py")


def text_of(name: str) -> str:
    """Return a file of the repository."""
    return (REPOSITORY / name).read_text(encoding="utf-8")


def section(document: str, heading: str) -> str:
    """Return what stands below a heading of level two."""
    inside = document.partition(f"\n## {heading}\n")[2]
    assert inside
    return inside.partition("\n## ")[0]


def command(*arguments: str) -> str:
    """Run `glfm` and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert run(arguments, Console()) == 0
    return printed.getvalue()


def keys_of(value: Any, but: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the keys of an object for JSON; below those of `but` stand names of the table's own."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            if key not in but:
                yield from keys_of(inner, but)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner, but)


def not_in(names: set[str], document: str) -> list[str]:
    """Return the names that a document does not have at the beginning of a piece of code."""
    code = "\n".join(re.findall(r"`[^`\n]+`", document))
    return sorted(name for name in names if f"`{name}" not in code)
