"""The page of a map: rows to point at, columns over it, what it explains, how sure it is."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import glfm_cli.report.page as parts
from glfm_cli import __version__
from glfm_cli.arrays import Array
from glfm_cli.exploration import MapExploration
from glfm_cli.exploration.scales import Scale
from glfm_cli.exploration.words import percent
from glfm_cli.plots import embedded, palette, plot_map, shades_of

MOST_ROWS = 20_000  # on a page, evenly spaced among all
MOST_CELLS = 500_000  # whose texts are on a page
MOST_ELLIPSES = 200
_HOW = (
    "Point at a row for what it is and what is unusual about it; turn the wheel to come nearer, "
    "drag to move, click twice to see all. Near rows are alike; the axes mean no more than the "
    "table below says. Rings are cells that were completed."
)


def write_map(found: MapExploration, *paths: str | os.PathLike[str]) -> None:
    """Write a map as an HTML file that needs no other.

    Raises OutputError: a file cannot be written.
    """
    sections = [
        ("map", "Map", _map(found)),
        ("columns", "Columns", _columns(found)),
        ("rows", "Unusual rows", _unusual(found)),
        ("restarts", "Restarts", _restarts(found)),
        ("settings", "Settings", _settings(found)),
    ]
    title = f"A map of {os.path.basename(found.source)}"
    parts.save(parts.page(title, parts.in_sections(sections), sortable=True, with_map=True), *paths)


def content(found: MapExploration) -> dict[str, Any]:
    """Return what the script of the page reads: places, and columns as shades and texts."""
    shown, n = found.map, found.data.n_rows
    rows = np.linspace(0, n - 1, min(n, MOST_ROWS)).round().astype(int)
    major, minor, angle = shown.ellipses(rows)
    ramp, levels = palette()
    drawn = [one.d for one in shown.columns[: max(1, MOST_CELLS // max(rows.size, 1))]]
    drawn += [] if shown.color in drawn else [shown.color]
    base = shown.base if shown.new else shown.base[:0]
    base = base[:: max(1, len(base) // MOST_ROWS)]
    return {
        **{name: _rounded(shown.position[rows, i]) for i, name in enumerate("xy")},
        "base": {name: _rounded(base[:, i]) for i, name in enumerate("xy")},
        "major": _rounded(major),
        "minor": _rounded(minor),
        "angle": _rounded(angle),
        "sd": [f"{sd:.2f}" for sd in shown.spread[rows]],
        "unsure": np.flatnonzero(np.isin(rows, shown.unsure(MOST_ELLIPSES))).tolist(),
        "label": [found.label(int(row)) for row in rows],
        "odd": [found.unusual(int(row)) or "" for row in rows],
        "columns": [_shaded(found, shown.scales[d], rows, len(ramp)) for d in drawn],
        "color": drawn.index(shown.color),
        "ramp": ramp,
        "levels": levels,
    }


def _shaded(found: MapExploration, scale: Scale, rows: Array, n_shades: int) -> dict[str, Any]:
    """Return how a column colours rows, and what its cells are."""
    shades = shades_of(found.map, scale)
    size = n_shades - 1 if shades.ramp else 1
    unit = scale.encoded.column.unit
    return {
        "name": scale.name,
        "ramp": shades.ramp,
        "shade": (shades.shade[rows] * size).round().astype(int).tolist(),
        "stops": [(round(shade * size), text) for shade, text in shades.stops],
        "text": [
            found.map.value_text(scale.d, int(row)) + (f" {unit}" if unit else "") for row in rows
        ],
        "given": (~found.map.completed[scale.d][rows]).astype(int).tolist(),
    }


def _rounded(x: Array) -> list[float]:
    return [float(f"{value:.4g}") for value in x]


def _map(found: MapExploration) -> list[str]:
    drawn = content(found)
    names = [one["name"] for one in drawn["columns"]]
    facts = [*found.headline(), *found.notes]
    if found.data.n_rows > MOST_ROWS:
        facts.append(f"{MOST_ROWS:,} rows are drawn, evenly spaced among all.")
    return [
        parts.bullets(facts),
        parts.row_map(drawn, names, "Map of the rows"),
        parts.paragraph(_HOW, faint=True),
    ]


def _columns(found: MapExploration) -> list[str]:
    rows: list[list[parts.Cell]] = []
    for one in found.map.columns:
        ways = zip(map(float, one.along), one.towards, strict=True)
        along = [(f"{percent(a)} {way}", a) for a, way in ways]
        rows.append([(one.name, one.name), (percent(one.explained), one.explained), *along])
    caption = (
        "Explained: the share of a column's spread that the place accounts for. Along an axis: its "
        "part of what both axes do to the column, and what there is more of along it."
    )
    text = "Rows on the map, and what columns are on it"
    return [
        parts.table(["column", "explained", "along x1", "along x2"], rows, sortable=True),
        parts.paragraph(caption, faint=True),
        parts.figure(embedded(plot_map(found), "png"), text, broad=True),
    ]


def _unusual(found: MapExploration) -> list[str]:
    rows = found.most_unusual()
    if not rows:
        return []
    texts = [[found.label(row), found.unusual(row) or ""] for row in rows]
    return [parts.table(["row", "what is unusual for its place"], texts)]


def _restarts(found: MapExploration) -> list[str]:
    header = ["restart", "bound", "weight", "agreement", "neighbours kept"]
    rows = [
        [str(i), f"{r.score:.1f}", *("" if np.isnan(x) else percent(x) for x in shares)]
        for i, r in enumerate(found.map.restarts, start=1)
        for shares in [(r.weight, r.agreement, r.neighbours)]
    ]
    caption = (
        "The first draws the map; the others are turned, mirrored and scaled to it (Procrustes)."
    )
    return [
        parts.paragraph(found.stability_line()),
        parts.table(header, rows),
        parts.paragraph(caption, faint=True),
    ]


def _settings(found: MapExploration) -> list[str]:
    rows = [
        [key, "" if value is None else str(value)]
        for key, value in found.options.items()
        if key not in ("sample", "similar", "surprising", "dependence")
    ]
    return [
        parts.table(["option", "value"], rows),
        parts.folded("TYPES.yaml", [parts.code(found.schema.to_yaml())]),
        parts.paragraph(f"glfm {__version__}", faint=True),
    ]
