"""Make the reference of the site from the code: commands with their options, public names.

MkDocs calls `on_files` while it builds (`hooks` in `mkdocs.yml`); nothing is written to disk, so
that the reference cannot be older than the code. `pages` has the same for tests.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
FOLDER = "reference"
# Public names by what they are for; those that no group has stand in the last one.
GROUPS = {
    "Files and types": ("read_table", "write_table", "Schema", "read_schema", "guess_schema"),
    "Complete": (
        "impute",
        "Completion",
        "MatrixCompletion",
        "Multiple",
        "Files",
        "pool",
        "Pooled",
        "plot_completion",
    ),
    "Options": ("Sampling", "Saving", "MatrixOptions"),
    "Saved fits": ("load_fit", "Fit", "diagnose_fit", "Diagnosis", "plot_diagnosis"),
    "Ask for cells": ("suggest", "Suggestion"),
    "Explore": (
        *("explore", "Exploration", "ComponentExploration", "FactorExploration"),
        "MapExploration",
    ),
    "Draw an exploration": (
        *("plot_exploration", "plot_columns", "plot_shares", "plot_traces", "plot_fit"),
        "plot_dependence",
    ),
    "Evaluate": ("evaluate", "compare_tables", "Evaluation", "plot_evaluation"),
    "Classify": ("classify", "Classification", "plot_tasks"),
    "Scikit-learn": ("GlfmImputer", "GlfmClassifier", "GlfmFactorizer"),
}
OTHERS = "Other"


def pages() -> dict[str, str]:
    """Return the generated pages as Markdown, by their path in `docs/`."""
    if str(REPOSITORY) not in sys.path:
        sys.path.insert(0, str(REPOSITORY))

    from glfm_cli.cli.app import COMMANDS, command

    known = command().commands
    found = {f"{FOLDER}/{name}.md": command_page(name, known[name]) for name in COMMANDS}
    return {**found, f"{FOLDER}/python.md": python_page()}


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to those of the site (an event of MkDocs)."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


# Commands ------------------------------------------------------------------------------------


def command_page(name: str, command: Any) -> str:
    """Return the page of one command: what it does, its arguments, its options, an example."""
    arguments = [each for each in command.params if not each.opts[0].startswith("-")]
    options = [each for each in command.params if each.opts[0].startswith("-")]
    usage = " ".join(["glfm", name, *(each.metavar or each.name for each in arguments)])
    rows = [f"| `{each.metavar}` | | {cell(each.help)} |" for each in arguments]
    rows += [f"| {flags(each)} | {default_of(each)} | {cell(each.help)} |" for each in options]
    rows.append("| `--help`, `-h` | | Show the options and exit. |")
    example = (command.epilog or "").removeprefix("Example:").strip()
    return "\n".join(
        [
            f"# `glfm {name}`\n",
            f"    {usage} [options]\n",
            inspect.cleandoc(command.help or "") + "\n",
            "Example:\n",
            f"    {example}\n",
            "| option | default | meaning |",
            "| --- | --- | --- |",
            *rows,
            "",
        ]
    )


def flags(option: Any) -> str:
    """Return the spellings of an option, with its value where it takes one."""
    value = f" {option.metavar}" if option.metavar else ""
    names = [*option.opts, *option.secondary_opts]
    return ", ".join(f"`{name}{value if name == names[0] else ''}`" for name in names)


def default_of(option: Any) -> str:
    """Return the default of an option as one writes it, or nothing."""
    value = option.default
    if value is None or isinstance(value, bool) or callable(value) or value in ("", (), []):
        return ""
    if isinstance(value, (list, tuple)):
        value = ",".join(map(str, value))
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def cell(text: str | None) -> str:
    """Return a text on one line, fit for a cell of a table."""
    parts = re.split(r"(`[^`]*`)", " ".join((text or "").split()))
    return "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)


# Python --------------------------------------------------------------------------------------


def python_page() -> str:
    """Return the page of the public names: signature and docstring of each."""
    package = importlib.import_module("glfm_cli")
    public = [name for name in package.__all__ if not name.startswith("__")]
    grouped = {name for names in GROUPS.values() for name in names}
    groups = {
        heading: [name for name in names if name in public] for heading, names in GROUPS.items()
    }
    groups[OTHERS] = [name for name in public if name not in grouped]
    parts = ["# Python\n", "The names below come from `glfm_cli` and load on first use.\n"]
    for heading, names in groups.items():
        parts.append(f"## {heading}\n")
        for name in names:
            parts += [f"### {name}\n", *described(name, getattr(package, name))]
    return "\n".join(parts)


def described(name: str, thing: Any) -> Iterator[str]:
    """Yield signature, docstring and, of a class, its public methods."""
    yield f"```text\n{signature(name, thing)}\n```\n"
    yield from prose(inspect.getdoc(thing) or "")
    if not inspect.isclass(thing):
        return
    rows = [f"| `{each}` | {cell(said)} |" for each, said in members(thing)]
    if rows:
        yield "\n".join(["| member | |", "| --- | --- |", *rows, ""])


def members(thing: type) -> Iterator[tuple[str, str]]:
    """Yield each public method and property of a class with the first line of its docstring."""
    for name, value in sorted(vars(thing).items()):
        function = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        if name.startswith("_") or not (inspect.isfunction(function) or is_property(function)):
            continue
        first = (inspect.getdoc(function) or "").partition("\n\n")[0]
        shown = name if is_property(function) else f"{name}({', '.join(parameters(function))})"
        yield shown, first


def is_property(value: Any) -> bool:
    """Return whether a member of a class is read like an attribute."""
    return isinstance(value, property) or type(value).__name__ == "cached_property"


def parameters(function: Callable[..., Any]) -> list[str]:
    """Return the parameters of a method with their defaults, without annotations."""
    found = []
    for each in list(inspect.signature(function).parameters.values()):
        if each.name not in ("self", "cls"):
            found.append(str(each.replace(annotation=inspect.Parameter.empty)))
    return found


def signature(name: str, thing: Any) -> str:
    """Return a signature, one parameter a line where one line is too short."""
    if inspect.isclass(thing) and hasattr(thing, "__dataclass_fields__"):
        return f"class {name}"
    try:
        shown = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    parts, star = [], False
    for each in shown.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not star:
            parts, star = [*parts, "*"], True
        default = "" if each.default is each.empty else f" = {each.default!r}"
        parts.append(f"{each.name}: {unquoted(each.annotation)}{default}")
    result = unquoted(shown.return_annotation)
    after = "" if result == "None" else f" -> {result}"
    line = f"{name}({', '.join(parts)}){after}"
    if len(line) <= 88:
        return line
    inner = "".join(f"    {part},\n" for part in parts)
    return f"{name}(\n{inner}){after}"


def unquoted(annotation: Any) -> str:
    """Return an annotation as it stands in the source."""
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")


_RULE = re.compile(r"^(\w[\w ]*)\n-{3,}$", flags=re.MULTILINE)
_ENTRY = re.compile(r"^[*\w][\w, *.=]* : ")


def prose(docstring: str) -> Iterator[str]:
    """Yield a numpydoc docstring as Markdown: text as it is, sections as lists."""
    pieces = _RULE.split(docstring)
    yield from free(pieces[0])
    for heading, body in zip(pieces[1::2], pieces[2::2], strict=True):
        yield f"**{heading}**\n"
        yield from entries(body.strip("\n").splitlines(), heading in ("Raises", "Returns"))


def free(text: str) -> Iterator[str]:
    """Yield text outside sections: paragraphs, glossaries as lists, indented lines as they are."""
    for paragraph in re.split(r"\n{2,}", text.strip()):
        lines = paragraph.splitlines()
        if any(_ENTRY.match(line) for line in lines):
            yield from entries(lines, types=False)
        else:
            yield escaped(paragraph) + "\n"


def entries(lines: list[str], types: bool) -> Iterator[str]:
    """Yield a list with a bullet for each line that is not indented, its text behind it."""
    bullets: list[list[str]] = []
    for line in lines:
        inside = line.startswith(" ") or not line.strip()
        starts = types or bool(_ENTRY.match(line)) or (bool(bullets) and lines_are_names(lines))
        if not bullets or (not inside and starts):
            bullets.append([line.strip()])
        elif line.strip():
            bullets[-1].append(line.strip())
    yield "\n".join(bullet(each) for each in bullets) + "\n"


def lines_are_names(lines: list[str]) -> bool:
    """Return whether what is not indented are names, with their text indented below."""
    return any(line.startswith("    ") for line in lines)


def bullet(lines: list[str]) -> str:
    """Return one entry: its names as code, type and text behind them."""
    names, colon, after = lines[0].partition(" : ")
    rest = " ".join(lines[1:])
    shown = f"* `{names}`"
    if colon:
        shown += f" : {escaped(after)}"
    if rest:
        shown += f" {'—' if lines_are_type(after) or not colon else ''} {escaped(rest)}"
    return re.sub(r"  +", " ", shown)


def lines_are_type(text: str) -> bool:
    """Return whether the text behind a colon is a type, and not the beginning of a sentence."""
    return bool(re.match(r"[\w.{}()\[\]\", |:-]*$", text)) and len(text.split()) <= 8


def escaped(text: str) -> str:
    """Return a text in which Markdown finds no emphasis, links or tags outside code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts
    )


if __name__ == "__main__":
    for page_path, page_text in pages().items():
        print(f"<!-- {page_path} -->\n{page_text}")
