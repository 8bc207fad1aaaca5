"""YAML in and out as plain text: every scalar is the characters that were written.

YAML's own conversions would turn `no` into false, `0123` into 83 and `12:30` into 750, so a
types file is read from the parser's events and never through YAML's constructors. Nothing in
a file can run code, repeat without end, or nest without end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import yaml

from glfm_cli.errors import SchemaError

MAX_DEPTH = 12  # a types file needs 5: file, columns, column, missing, code
_QUOTING_HINT = (
    "Put a name or code that starts with a sign such as * ? [ ] { } & ! @ % or holds `: ` "
    "between double quotes, a condition that holds [ ] between single ones."
)
_TAB_HINT = "The line begins with a tab, which YAML does not take: indent it by spaces."
_Loader = getattr(yaml, "CBaseLoader", yaml.BaseLoader)

# A key longer than this cannot be a YAML "simple key" and needs the `? key` form.
_LONGEST_SIMPLE_KEY = 1000
_PLAIN = re.compile(r"[^\W\d](?:[\w./()+-]| (?=[^\s#]))*")
_YAML_WORDS = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf", "none")
)


def read_tree(text: str, file: str | None = None) -> Any:
    """Return YAML text as nested dicts and lists of text.

    Raises SchemaError: the text is not YAML, is empty, holds several documents, or a mapping holds
        a key twice.
    """
    try:
        return _Tree(yaml.parse(text, Loader=_Loader), file).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        lines = text.splitlines()[mark.line :] if mark else []
        hint = _TAB_HINT if re.match(r" *\t", "".join(lines[:1])) else _QUOTING_HINT
        raise SchemaError(f"is not valid YAML: {_describe(error)}", file=file, hint=hint) from None


def _describe(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError):
        what = error.problem or error.context or "it cannot be read"
        mark = error.problem_mark or error.context_mark
        return what if mark is None else f"line {mark.line + 1}: {what}"
    return str(getattr(error, "reason", "it cannot be read"))


def _line(event: yaml.Event) -> int:
    return 0 if event.start_mark is None else event.start_mark.line + 1


class _Tree:
    """Builds the nested value from a stream of parser events."""

    def __init__(self, events: Iterator[yaml.Event], file: str | None) -> None:
        self.events = events
        self.file = file
        self.anchors: dict[str, Any] = {}

    def document(self) -> Any:
        next(self.events)  # the stream starts
        if isinstance(next(self.events), yaml.StreamEndEvent):
            raise SchemaError("the file is empty", file=self.file, hint=_EMPTY_HINT)
        value = self.node(next(self.events), 0)
        next(self.events)  # the document ends
        if not isinstance(next(self.events), yaml.StreamEndEvent):
            raise SchemaError(
                "holds more than one YAML document", file=self.file, expected="one document"
            )
        return value

    def node(self, event: yaml.Event, depth: int) -> Any:
        line = _line(event)
        if depth > MAX_DEPTH:
            raise SchemaError(f"line {line} is nested too deeply", file=self.file)
        if isinstance(event, yaml.AliasEvent):
            if event.anchor not in self.anchors:
                raise SchemaError(
                    f"line {line}: nothing is called &{event.anchor}",
                    file=self.file,
                    value=f"*{event.anchor}",
                    hint=_QUOTING_HINT,
                )
            return self.anchors[event.anchor]
        if isinstance(event, yaml.ScalarEvent):
            value: Any = event.value
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self.sequence(depth)
        else:
            value = self.mapping(depth)
        # Named only now, so that a node cannot hold itself.
        anchor = getattr(event, "anchor", None)
        if anchor is not None:
            self.anchors[anchor] = value
        return value

    def sequence(self, depth: int) -> list[Any]:
        items = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            items.append(self.node(event, depth + 1))
        return items

    def mapping(self, depth: int) -> dict[str, Any]:
        items: dict[str, Any] = {}
        lines: dict[str, int] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            line = _line(event)
            key = self.node(event, depth + 1)
            if not isinstance(key, str):
                raise SchemaError(
                    f"line {line}: a name must be text",
                    file=self.file,
                    value=describe(key),
                    hint=_QUOTING_HINT,
                )
            if key in items:
                raise SchemaError(
                    f"line {line}: '{key}' is written twice (first in line {lines[key]})",
                    file=self.file,
                    hint="Keep one of the two lines.",
                )
            items[key] = self.node(next(self.events), depth + 1)
            lines[key] = line
        return items


_EMPTY_HINT = "`glfm types DATA -o types.yaml` writes a first types file to start from."


def describe(value: Any) -> str:
    """Return what a value of the tree is called in a message."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    return f"'{value}'" if value else "nothing"


def quoted(text: str) -> str:
    """Return YAML for one text, in double quotes."""
    return "".join(
        char if char.isprintable() else _escape(char)
        for char in json.dumps(text, ensure_ascii=False)
    )


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def scalar(text: str) -> str:
    """Return YAML for one text, bare where every YAML reader would read the same text."""
    if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS and text.isprintable():
        return text
    return quoted(text)


def flow(value: Any) -> str:
    """Return nested lists and dicts of text, numbers and None on one line.

    Text in a list (levels, codes) is always quoted, to show that it is text.
    """
    if isinstance(value, dict):
        return "{" + ", ".join(f"{scalar(k)}: {flow(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        items = (quoted(item) if isinstance(item, str) else flow(item) for item in value)
        return "[" + ", ".join(items) + "]"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return number_text(value) if isinstance(value, float) else scalar(value)


def number_text(value: float) -> str:
    """Return a number as it is written in a types file: 120, not 120.0."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e16 else repr(value)


def entry(key: str, value: Any, indent: str = "") -> str:
    """Return the line `key: value` of a block mapping."""
    name = scalar(key)
    if len(name) > _LONGEST_SIMPLE_KEY:
        return f"{indent}? {name}\n{indent}: {flow(value)}"
    return f"{indent}{name}: {flow(value)}"
