"""What rows share, as tidy tables and for JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.exploration.shared import SharedByRows, SharedSeries
from glfm_cli.exploration.words import quantity

MOST_PAIRS = 10  # of columns, in a summary


def variance_parts(found: SharedByRows) -> pa.Table:
    """Return one row a column and part: its share of the column's variance.

    Of rows in time also of both kinds of series together, and of what others tell by them.
    """
    parts, share, sd = list(found.parts), found.share, found.share_sd
    if found.clock is not None:
        parts += ["in time", "explained by others"]
        share = np.column_stack([share, found.in_time[0], found.told])
        sd = np.column_stack([sd, found.in_time[1], found.told_sd])
    D, P = share.shape
    return pa.table(
        {
            "column": pa.array(np.repeat(found.names, P), pa.string()),
            "part": pa.array(parts * D, pa.string()),
            "share": share.ravel(),
            "sd": sd.ravel(),
        }
    )


def series(found: SharedByRows) -> pa.Table:
    """Return one row a series."""
    rows = [_numbers(one) for one in found.series]
    kinds = {name: pa.float64() for name in ("share", "share_sd", "stability")}
    return pa.Table.from_pylist(rows, schema=pa.schema({"series": pa.string()} | kinds))


def loadings(found: SharedByRows) -> pa.Table:
    """Return one row a series and latent column: sds of the column for one of the series."""
    n, S = len(found.series), found.columns.num_rows
    names = [one.name for one in found.series for _ in range(S)]
    columns: dict[str, Any] = {"series": pa.array(names, pa.string())}
    places = pa.array(np.tile(np.arange(S), n), pa.int64())
    columns |= {name: found.columns[name].take(places) for name in found.columns.column_names}
    for name, of in (("loading", "loading"), ("sd", "loading_sd")):
        numbers = [x for one in found.series for x in getattr(one, of)]
        columns[name] = pa.array(numbers, pa.float64())
    return pa.table(columns)


def together(found: SharedByRows) -> pa.Table:
    """Return one row a pair of latent columns, those first that series bind most."""
    S = found.columns.num_rows
    a, b = np.triu_indices(S, 1)
    order = np.argsort(-np.abs(found.together[a, b]), kind="stable")
    a, b = a[order], b[order]
    columns = {}
    for at, names in ((a, ("column", "level")), (b, ("other", "other_level"))):
        for name, own in zip(names, ("column", "level"), strict=True):
            columns[name] = found.columns[own].take(pa.array(at, pa.int64()))
    return pa.table(columns | {"correlation": found.together[a, b], "sd": found.together_sd[a, b]})


def series_in_time(found: SharedByRows) -> pa.Table:
    """Return one row a series, group and time."""
    assert found.clock is not None
    n, x = len(found.series), found.clock.x[found.rows]
    dated = found.clock.column.moments is not None
    time = [quantity(found.clock, value) for value in x] if dated else x.tolist()
    columns: dict[str, Any] = {
        "series": pa.array([one.name for one in found.series for _ in x], pa.string())
    }
    if found.labels:
        columns["group"] = pa.array([found.labels[g] for g in found.code] * n, pa.string())
    columns["time"] = pa.array(time * n, pa.string() if dated else pa.float64())
    columns["value"] = pa.array([x for one in found.series for x in one.mean], pa.float64())
    for i, name in enumerate(("lower_95", "lower_50", "upper_50", "upper_95")):
        columns[name] = pa.array([x for one in found.series for x in one.bands[i]], pa.float64())
    return pa.table(columns)


def shared_tables(found: SharedByRows | None) -> dict[str, pa.Table]:
    """Return all tables, by name."""
    if found is None:
        return {}
    made = {"variance_parts": variance_parts(found)}
    if found.clock is None:
        return made
    made |= {"series": series(found), "series_loadings": loadings(found)}
    return made | {"series_in_time": series_in_time(found), "series_together": together(found)}


def shared_summary(found: SharedByRows | None) -> dict[str, Any]:
    """Return what JSON says of it."""
    if found is None:
        return {}
    content: dict[str, Any] = {"variance_parts": variance_parts(found).to_pylist()}
    if found.clock is None:
        return content
    names = found.columns.to_pylist()
    content["series"] = [
        _numbers(one)
        | {
            "loadings": [
                {**name, "loading": float(x), "sd": float(sd)}
                for name, x, sd in zip(names, one.loading, one.loading_sd, strict=True)
            ]
        }
        for one in found.series
    ]
    return content | {"series_together": together(found).slice(0, MOST_PAIRS).to_pylist()}


def _numbers(one: SharedSeries) -> dict[str, Any]:
    stability = one.stability if math.isfinite(one.stability) else None
    shown = {"series": one.name, "share": one.share, "share_sd": one.share_sd}
    return shown | {"stability": stability}
