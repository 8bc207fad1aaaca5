"""The frame of a page, and its parts. Every text is escaped here, and only here.

A page is one file: it loads nothing, and of scripts it runs only two: sort.js sorts the rows of a
table by the column whose button was pressed, map.js draws the map of the rows.
It is light or dark as the reader's system is; figures keep their white ground.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from glfm_cli.io import atomic_write

Section = tuple[str, str, list[str]]  # key, title, content
Cell = str | tuple[str, float | str | None]  # of a table: text, and what it is sorted by

_LONG = 40  # letters of a cell that is not squeezed on a narrow screen


def page(
    title: str, parts: Iterable[str], *, sortable: bool = False, with_map: bool = False
) -> str:
    """Return a whole page; the parts are HTML already.

    `sortable` puts in the script that tables need which are `sortable`,
    `with_map` that of `row_map`.
    """
    code = "\n" + _file("sort.js") if sortable else ""
    code += _file("map.js") if with_map else ""
    script = f"<script>{code}</script>\n" if code else ""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy(code)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n<style>\n{_file('page.css')}</style>\n</head>\n<body>\n"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(parts) + f"\n{script}</body>\n</html>\n"
    )


def _file(name: str) -> str:
    return files("glfm_cli.report").joinpath(name).read_text("utf-8")


def _policy(script: str) -> str:
    """Return what the page may load and run: whatever a name says, nothing but what is here."""
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    if not script:
        return policy
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{policy}; script-src 'sha256-{digest}'"


def heading(text: str, *, level: int = 2, key: str | None = None) -> str:
    """Return a heading; `key` is what a link of the same page calls it."""
    anchor = f' id="{escape(key)}"' if key else ""
    return f"<h{level}{anchor}>{escape(text)}</h{level}>"


def links(targets: Sequence[tuple[str, str]]) -> str:
    """Return links to headings of the page, given as (key, text)."""
    inside = "".join(f'<a href="#{escape(key)}">{escape(text)}</a> ' for key, text in targets)
    return f"<nav>{inside}</nav>"


def paragraph(text: str, *, faint: bool = False) -> str:
    """Return a paragraph."""
    return f"<p{' class=faint' if faint else ''}>{escape(text)}</p>"


def bullets(texts: Sequence[str]) -> str:
    """Return a list."""
    return "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def code(text: str) -> str:
    """Return a text in which every blank and line break stays."""
    return f"<pre><code>{escape(text)}</code></pre>"


def folded(summary: str, parts: Iterable[str]) -> str:
    """Return parts that show when their summary is opened."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(parts)}</details>"


def in_sections(sections: Sequence[Section]) -> list[str]:
    """Return links to the sections that hold something, and each of these below its heading."""
    present = [section for section in sections if section[2]]
    parts = [links([(key, title) for key, title, _ in present])]
    for key, title, inside in present:
        parts += [heading(title, key=key), *inside]
    return parts


def save(text: str, *paths: str | os.PathLike[str]) -> None:
    """Write a page to files, each of which is replaced only when complete."""
    for path in paths:
        with atomic_write(path, "w") as file:
            file.write(text)


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    caption: str = "",
    *,
    sortable: bool = False,
) -> str:
    """Return a table."""
    above = f"<caption>{escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th scope=col>{_head(cell, sortable)}</th>" for cell in header)
    body = "".join("<tr>" + "".join(map(_cell, row)) + "</tr>" for row in rows)
    return (
        f'<div class="wide" tabindex="0"><table>{above}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _head(text: str, sortable: bool) -> str:
    return f'<button type="button">{escape(text)}</button>' if sortable and text else escape(text)


def _cell(cell: Cell) -> str:
    text, value = cell if isinstance(cell, tuple) else (cell, None)
    key = "" if value is None else f' data-value="{escape(str(value))}"'
    look = " class=long" if len(text) > _LONG else ""
    return f"<td{look}{key}>{escape(text)}</td>"


def figure(address: str, text: str, *, broad: bool = False) -> str:
    """Return a figure given as a `data:` address, with a text for those who cannot see it.

    A `broad` one, of several panels, is not made smaller than can be read, but scrolls.
    """
    image = f'<img alt="{escape(text)}" src="{escape(address)}">'
    return f'<div class="wide" tabindex="0">{image}</div>' if broad else f"<p>{image}</p>"


def row_map(content: Mapping[str, Any], names: Sequence[str], text: str) -> str:
    """Return a map of rows to point at and to turn over; `content` is what map.js reads.

    names : of the columns by which it can be coloured;  text : for those who cannot see it
    """
    options = "".join(f"<option value={i}>{escape(name)}</option>" for i, name in enumerate(names))
    data = escape(json.dumps(content, allow_nan=False, separators=(",", ":")))
    return (
        f'<div data-map="{data}"><p><label>Colour: <select>{options}</select></label></p>'
        f'<p class="legend"></p><div class="map"><canvas role="img" aria-label="{escape(text)}">'
        "</canvas><output hidden></output></div></div>"
    )
