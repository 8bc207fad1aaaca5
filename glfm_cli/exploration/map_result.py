"""The map of a table's rows, as tables and as one object for JSON."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data
from glfm_cli.exploration.explored import Explored
from glfm_cli.exploration.frame import Embedding, Frame
from glfm_cli.exploration.scales import Scale
from glfm_cli.exploration.words import percent, value_text

AXES = ("x1", "x2")
UNSURE = 0.7  # sd of a place by which a row has hardly any; that of the prior is 1
LESS_SURE = 1.5  # times the median sd of a place
DEPENDS = 0.5  # share of neighbours below which a map depends on its start


@dataclass(frozen=True)
class MapColumn:
    """What the map says of a column.

    explained : share of its spread, in [0, 1]
    along : (2,) the parts of what the two axes do to it, adding up to 1
    towards : what it is more of along each axis: "higher", "lower", or a level
    """

    d: int
    name: str
    explained: float
    along: Array
    towards: tuple[str, str]


@dataclass(frozen=True)
class Oddity:
    """An observed cell that is unusual for its row's place: as text, with what was expected.

    excess : its log density less the mean of its column
    """

    d: int
    value: str
    expected: str
    excess: float


@dataclass(frozen=True)
class Restart:
    """How another restart's map compares with the one that is shown.

    agreement : of the places, after Procrustes' alignment
    neighbours : share that is kept; NaN where the table is one row
    """

    score: float
    weight: float
    agreement: float
    neighbours: float

    def to_dict(self) -> dict[str, float | None]:
        """Return plain values for JSON: a row alone has no neighbours."""
        return {name: x if np.isfinite(x) else None for name, x in vars(self).items()}


@dataclass(frozen=True)
class Surface:
    """What a column is at the places of a grid: first axis second, as images have it.

    x1, x2 : (G,);  far : (G, G) distance to the nearest row; beyond 1 the surface is not known
    mean, sd : (G, G) of the value or the level's code;  probabilities : (G, G, R) or None
    """

    scale: Scale
    x1: Array
    x2: Array
    far: Array
    mean: Array
    sd: Array
    probabilities: Array | None


@dataclass(frozen=True, eq=False)
class RowMap:
    """The rows on the map, and what columns are there.

    frame, relevances : how places (Q dimensions) are shown, and what each dimension counts
    base : (N0, 2) the rows that the map was made of
    position, covariance, stability : (N, 2), (N, 2, 2), (N,) of the rows that are shown: the share
        of their neighbours that other restarts agree on, NaN where there is none
    scales : the modelled columns;  columns : what the map says of them, the best explained first
    color : the column that colours rows
    values, completed : per column (N,) the values or level codes, and which were missing
    odd : per row its unusual cells
    """

    frame: Frame | Embedding
    relevances: Array
    base: Array
    position: Array
    covariance: Array
    stability: Array
    restarts: tuple[Restart, ...]
    scales: tuple[Scale, ...]
    columns: tuple[MapColumn, ...]
    color: int
    values: tuple[Array, ...]
    completed: tuple[Array, ...]
    odd: tuple[tuple[Oddity, ...], ...]
    surfaces: tuple[Surface, ...]

    @property
    def spread(self) -> Array:
        """The sd (N,) of a row's place, over both axes."""
        return np.sqrt(0.5 * np.trace(self.covariance, axis1=1, axis2=2))

    def unsure(self, at_most: int) -> Array:
        """Return the rows whose places are much less sure than others', the least sure first."""
        spread = self.spread
        most = np.argsort(-spread, kind="stable")[:at_most]
        return most[spread[most] > LESS_SURE * np.median(spread)] if spread.size else most

    def ellipses(self, rows: Array) -> tuple[Array, Array, Array]:
        """Return half-axes (n,) of one sd, the longer first, and the angle of that, in radians."""
        values, vectors = np.linalg.eigh(self.covariance[rows])
        half = np.sqrt(np.maximum(values, 0.0))
        return half[:, 1], half[:, 0], np.arctan2(vectors[:, 1, 1], vectors[:, 0, 1])

    @property
    def new(self) -> bool:
        """Whether the rows are others than those of the map."""
        return self.base is not self.position

    def value_text(self, d: int, row: int) -> str:
        """Return a cell's value, observed or completed."""
        return value_text(self.scales[d].encoded, float(self.values[d][row]), 5)


@dataclass(frozen=True, eq=False, repr=False)
class MapExploration(Explored):
    """A table explored by a map of its rows.

    data, ids : the encoded table, and its id columns;  map : the map
    """

    data: Data
    ids: pa.Table
    map: RowMap
    top: int

    def label(self, row: int) -> str:
        """Return what a row is called: its ids, or its number."""
        ids = [str(self.ids[name][row].as_py()) for name in self.ids.column_names]
        return ", ".join(ids) or f"row {row + 1}"

    @property
    def source(self) -> str:
        """The name of what was explored."""
        return str(self.options["source"])

    def headline(self) -> list[str]:
        """Return the fit and its map in a few lines."""
        shown = self.map
        n = f"{self.data.n_rows:,} rows" + (f", on the map of {len(shown.base):,}" * shown.new)
        return [
            f"{n}, {len(shown.scales)} columns, {self.seconds:.1f} s.",
            self.dimensions_line(),
            self.stability_line(),
            self.diagnostics.summary(),
        ]

    def most_unusual(self) -> list[int]:
        """Return the rows with the least expected cells, `top` at most."""
        rows = [(sum(o.excess for o in odd), row) for row, odd in enumerate(self.map.odd) if odd]
        return [row for _, row in sorted(rows)[: self.top]]

    def stability_line(self) -> str:
        """Return how far the map depends on where its fit started."""
        others = self.map.restarts[1:]
        if not others:
            return "One restart alone: how far the map depends on its start is not known."
        agree = np.mean([one.agreement for one in others])
        near = np.mean([one.neighbours for one in others])
        if np.isnan(near):
            return "One row alone has no neighbours: how far the map depends on its start is moot."
        return (
            f"{len(self.map.restarts)} restarts: their places agree by {percent(float(agree))} "
            f"(Procrustes), and rows keep {percent(float(near))} of their nearest neighbours."
        )

    def cautions(self) -> list[str]:
        """Return what keeps the map from being believed."""
        lines = []
        near = [one.neighbours for one in self.map.restarts[1:]]
        if near and np.mean(near) < DEPENDS:
            lines.append(
                "restarts keep less than half of the nearest neighbours: the map is one of several"
            )
        unplaced = int(np.sum(self.map.spread > UNSURE))
        if unplaced:
            rows = "1 row has" if unplaced == 1 else f"{unplaced} rows have"
            lines.append(f"{rows} hardly any place: sd above {UNSURE}, where that of all rows is 1")
        return lines

    def dimensions_line(self) -> str:
        """Return how places are shown."""
        Q = self.map.relevances.size
        if Q == 2:
            return "The places have two dimensions, and the map is all of them."
        return f"The places have {Q} dimensions, and the map keeps near rows near."

    def on_axis(self, axis: int) -> list[MapColumn]:
        """Return the columns that an axis does most to, `top` at most."""
        own = [one for one in self.map.columns if one.along[axis] >= 0.5]
        return sorted(own, key=lambda one: -one.explained * one.along[axis])[: self.top]

    def to_table(self) -> pa.Table:
        """Return the rows: number, ids, place, its sd, stability, and what is unusual."""
        shown, n = self.map, self.data.n_rows
        taken = ("row", *AXES)
        ids = {name: self.ids[name] for name in self.ids.column_names if name not in taken}
        cov = shown.covariance
        return pa.table(
            {
                "row": pa.array(np.arange(1, n + 1)),
                **ids,
                **{name: pa.array(shown.position[:, i]) for i, name in enumerate(AXES)},
                **{f"{a}_sd": pa.array(np.sqrt(cov[:, i, i])) for i, a in enumerate(AXES)},
                "covariance": pa.array(cov[:, 0, 1]),
                "stability": pa.array(shown.stability, from_pandas=True),
                "unusual": pa.array([self.unusual(row) for row in range(n)], pa.string()),
            }
        )

    def unusual(self, row: int) -> str | None:
        """Return what is unusual about a row in words, None where nothing is."""
        lines = [
            f"{self.map.scales[o.d].name} {o.value} (expected {o.expected})"
            for o in self.map.odd[row]
        ]
        return "; ".join(lines) or None

    def column_table(self) -> pa.Table:
        """Return one row a column: how far the map explains it, and along which axis."""
        ranked = self.map.columns
        made: dict[str, Any] = {
            "column": pa.array([one.name for one in ranked], pa.string()),
            "explained": pa.array([one.explained for one in ranked], pa.float64()),
        }
        for i, name in enumerate(AXES):
            made[name] = pa.array([float(one.along[i]) for one in ranked], pa.float64())
            made[f"{name}_towards"] = pa.array([one.towards[i] for one in ranked], pa.string())
        return pa.table(made)

    def tables(self) -> dict[str, pa.Table]:
        """Return everything as tidy tables, by name."""
        shown, Q = self.map, self.map.relevances.size
        restarts = [one.to_dict() for one in shown.restarts]
        of = [field.name for field in fields(Restart)]
        return {
            "rows": self.to_table(),
            "columns": self.column_table(),
            "dimensions": pa.table(
                {"dimension": np.arange(1, Q + 1), "relevance": shown.relevances}
            ),
            "restarts": pa.Table.from_pylist(restarts, pa.schema(dict.fromkeys(of, pa.float64()))),
            "surfaces": pa.concat_tables([_surface_table(one) for one in shown.surfaces]),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the summary that `glfm explore --json` prints."""
        shown = self.map
        return {
            "rows": self.data.n_rows,
            "columns": len(shown.scales),
            "model": self.posterior.model.name,
            "new_rows": shown.new,
            "dimensions": [float(r) for r in shown.relevances],
            "color": shown.scales[shown.color].name,
            "explained": self.column_table().to_pylist(),
            "unplaced_rows": int(np.sum(shown.spread > UNSURE)),
            "unusual_rows": sum(map(bool, shown.odd)),
            "restarts": [one.to_dict() for one in shown.restarts],
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "options": self.options,
            "diagnostics": self.diagnostics.to_dict(),
            "warnings": list(self.notes),
        }


def _surface_table(one: Surface) -> pa.Table:
    """Return a surface as one row a place, and level where there is no order."""
    i, j = np.nonzero(one.far <= 1.0)
    place = {"x1": one.x1[j], "x2": one.x2[i]}
    if one.probabilities is None:
        levels: list[str | None] = [None]
        parts = [(one.mean[i, j], one.sd[i, j])]
    else:
        levels = list(one.scale.encoded.levels)
        p = one.probabilities[i, j]
        parts = [(p[:, r], np.sqrt(p[:, r] * (1.0 - p[:, r]))) for r in range(p.shape[1])]
    return pa.concat_tables(
        pa.table(
            {
                "column": pa.array([one.scale.name] * i.size, pa.string()),
                "level": pa.array([level] * i.size, pa.string()),
                **{name: pa.array(x) for name, x in place.items()},
                "value": pa.array(value),
                "sd": pa.array(sd),
            }
        )
        for level, (value, sd) in zip(levels, parts, strict=True)
    )
