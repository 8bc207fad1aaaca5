"""An exploration as tidy tables and as one object for JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.exploration.features import Effect, Feature
from glfm_cli.exploration.findings import Findings
from glfm_cli.exploration.patterns import Pattern
from glfm_cli.exploration.scales import ColumnProfile, Scale
from glfm_cli.exploration.shared_tables import shared_summary, shared_tables
from glfm_cli.exploration.words import value_text

TEXT, NUMBER, TRUTH = pa.string(), pa.float64(), pa.bool_()
MOST_PAIRS = 100_000  # of columns: all of 446


def features(found: Findings) -> pa.Table:
    """Return one row a feature: share, what it explains, stability, and its effects in words."""
    rows = [
        {
            "feature": feature.name,
            **_numbers(feature),
            "in_patterns": any(feature is one for one in found.main),
            "words": found.in_words(feature),
        }
        for feature in found.features
    ]
    truths = dict.fromkeys(("credible", "in_patterns"), TRUTH)
    kinds = {"feature": TEXT, **dict.fromkeys(_NUMBERS, NUMBER), **truths, "words": TEXT}
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def patterns(found: Findings) -> pa.Table:
    """Return one row a pattern: its bits and features, rows, shares and stability."""
    rows = [
        {
            "pattern": p.name,
            "features": found.features_on(p),
            "rows": p.rows.size,
            "share": p.share,
            "cumulative": p.cumulative,
            "stability": _or_none(p.stability),
        }
        for p in found.patterns
    ]
    numbers = dict.fromkeys(("share", "cumulative", "stability"), NUMBER)
    kinds = {"pattern": TEXT, "features": TEXT, "rows": pa.int64(), **numbers}
    return pa.Table.from_pylist(rows, schema=pa.schema(kinds))


def effects(found: Findings) -> pa.Table:
    """Return one row a feature, column and level: the distribution with it off and on."""
    rows = []
    for feature in found.features:
        for effect in feature.effects:
            rows += _effect_rows(feature, effect)
    numbers = dict.fromkeys(("off", "on", "change", "size"), NUMBER)
    texts = dict.fromkeys(("feature", "column", "level", "unit"), TEXT)
    more = {"direction": TEXT, "z": NUMBER, "credible": TRUTH}
    return pa.Table.from_pylist(rows, schema=pa.schema(texts | numbers | more))


def _effect_rows(feature: Feature, effect: Effect) -> list[dict[str, Any]]:
    column = effect.scale.encoded.column
    common = {
        "feature": feature.name,
        "column": column.name,
        "size": effect.size,
        "direction": effect.direction,
        "z": effect.z,
        "credible": effect.credible,
    }
    if not effect.scale.discrete:
        off, on = _or_none(effect.off.mean), _or_none(effect.on.mean)
        change = _or_none(effect.change)
        return [{**common, "unit": column.unit, "off": off, "on": on, "change": change}]
    return [
        {**common, "level": level, "off": float(a), "on": float(b), "change": float(b - a)}
        for level, a, b in zip(
            effect.scale.encoded.levels, effect.off.mass, effect.on.mass, strict=True
        )
    ]


def typical(found: Findings) -> pa.Table:
    """Return one row a pattern shown, column and level, beside the baseline of the table."""
    rows = []
    for pattern in found.top_patterns:
        for scale, profile, base in zip(
            found.scales, pattern.typical, found.baseline, strict=True
        ):
            rows += _typical_rows(pattern, scale, profile, base)
    texts = dict.fromkeys(("pattern", "column", "level", "unit"), TEXT)
    numbers = dict.fromkeys(("value", "baseline", "size"), NUMBER)
    return pa.Table.from_pylist(rows, schema=pa.schema(texts | numbers))


def _typical_rows(
    pattern: Pattern, scale: Scale, profile: ColumnProfile, base: ColumnProfile
) -> list[dict[str, Any]]:
    common = {
        "pattern": pattern.name,
        "column": scale.name,
        "unit": scale.encoded.column.unit,
        "size": profile.distance(base),
    }
    if not scale.discrete:
        return [{**common, "value": _or_none(profile.mean), "baseline": _or_none(base.mean)}]
    return [
        {**common, "level": level, "value": float(a), "baseline": float(b)}
        for level, a, b in zip(scale.encoded.levels, profile.mass, base.mass, strict=True)
    ]


def memberships(found: Findings) -> pa.Table:
    """Return one row a row and feature: whether it has it, how probably, and its pattern."""
    n_rows, n_features = found.data.n_rows, len(found.features)
    row = np.repeat(np.arange(n_rows), n_features)
    number = found.row_pattern()
    names = np.array([p.name for p in found.patterns], dtype=object)
    has = [found.shown.Z[:, feature.index] for feature in found.features]
    probability = [feature.probability for feature in found.features]
    arrays = {
        "row": pa.array(row + 1, pa.int64()),
        **_ids_of(found, row, ("row", "pattern", "feature", "member", "probability")),
        "pattern": pa.array(names[number[row]] if names.size else [], TEXT),
        "feature": pa.array([f.name for f in found.features] * n_rows, TEXT),
        "member": pa.array(_interleaved(has, n_rows).astype(bool), TRUTH),
        "probability": pa.array(_interleaved(probability, n_rows), NUMBER),
    }
    return pa.table(arrays)


def _interleaved(columns: list[Array], n_rows: int) -> Array:
    return np.column_stack(columns).ravel() if columns else np.empty(0)


def surprising_cells(found: Findings) -> pa.Table:
    """Return the least expected cells."""
    one = found.surprising
    assert one is not None
    cells = list(zip(one.cell_column, one.cell_row, strict=True))
    columns = {
        "column": pa.array([found.scales[d].name for d, _ in cells], TEXT),
        "value": pa.array([_cell(found.scales[d], row) for d, row in cells], TEXT),
        "log_density": pa.array(one.cell_density, NUMBER),
        "excess": pa.array(one.cell_excess, NUMBER),
    }
    return _by_row(found, one.cell_row, columns)


def _cell(scale: Scale, row: int) -> str:
    return value_text(scale.encoded, float(scale.encoded.x[row]), 10)


def surprising_rows(found: Findings) -> pa.Table:
    """Return the least expected rows."""
    one = found.surprising
    assert one is not None
    columns = {"log_density": one.row_density, "excess": one.row_excess}
    return _by_row(found, one.row, columns)


def similar(found: Findings) -> pa.Table:
    """Return the rows that share most features with the one asked for."""
    one = found.similar
    assert one is not None
    return _by_row(found, one.rows, {"likeness": one.likeness})


def _by_row(found: Findings, rows: Array, columns: dict[str, Any]) -> pa.Table:
    """Return what is said of some rows behind their numbers and ids."""
    ids = _ids_of(found, rows, ("row", *columns))
    return pa.table({"row": pa.array(rows + 1, pa.int64()), **ids, **columns})


def dependence(found: Findings) -> pa.Table:
    """Return one row a pair of columns, the strongest: mutual information in bits, and strength."""
    one = found.dependence
    assert one is not None
    a, b = np.triu_indices(len(one.names), 1)
    first = np.argsort(-one.information[a, b], kind="stable")[:MOST_PAIRS]
    values = {"bits": one.information, "strength": one.strength}
    return _by_pair(one.names, a[first], b[first], values)


def missing(found: Findings) -> pa.Table:
    """Return one row a pair of columns: the share of rows in which both are missing.

    A column paired with itself gives its own share. Of very many pairs those of the largest |phi|.
    """
    one = found.missing
    a, b = np.triu_indices(len(one.names))
    if a.size > MOST_PAIRS:
        size = np.where(a == b, np.inf, np.abs(one.phi[a, b]))
        first = np.sort(np.argsort(-size, kind="stable")[: max(MOST_PAIRS, len(one.names))])
        a, b = a[first], b[first]
    return _by_pair(one.names, a, b, {"share": one.together, "phi": one.phi})


def _by_pair(
    names: Sequence[str], a: Array, b: Array, values: Mapping[str, Array]
) -> pa.Table:
    """Return the entries of matrices at pairs of columns (a, b)."""
    known = pa.array(names, TEXT)
    ends = {"column": known.take(pa.array(a)), "other": known.take(pa.array(b))}
    return pa.table(ends | {n: pa.array(x[a, b], NUMBER) for n, x in values.items()})


def everything(found: Findings) -> dict[str, pa.Table]:
    """Return all tables, by name."""
    made = {
        "features": features(found),
        "patterns": patterns(found),
        "effects": effects(found),
        "typical": typical(found),
        "memberships": memberships(found),
        "missing": missing(found),
    }
    if found.surprising is not None:
        made["surprising_cells"] = surprising_cells(found)
        made["surprising_rows"] = surprising_rows(found)
    if found.similar is not None:
        made["similar"] = similar(found)
    if found.dependence is not None:
        made["dependence"] = dependence(found)
    return made | shared_tables(found.shared)


def summary(found: Findings) -> dict[str, Any]:
    """Return the whole exploration but the single rows, ready for JSON."""
    content: dict[str, Any] = {
        "rows": found.data.n_rows,
        "columns": len(found.scales),
        "model": found.posterior.model.name,
        "chains": len(found.posterior.chains),
        "draws": found.posterior.n_draws,
        "sample": found.sample,
        "shown": {
            "chain": found.shown.chain + 1,
            "draw": found.shown.draw + 1,
            "log_likelihood": found.shown.log_likelihood,
            "features": found.n_features,
        },
        "stopped": found.stopped,
        "seconds": round(found.seconds, 3),
        "features": [_feature(found, feature) for feature in found.features],
        "null_level": _or_none(found.null_level),
        "other_features": {
            "number": found.remainder.number,
            "largest_share": found.remainder.largest,
            "explained": found.remainder.explained,
        },
        "pattern_features": [feature.name for feature in found.main],
        "patterns": _records(patterns(found).slice(0, found.top)),
        "number_of_patterns": len(found.patterns),
        "typical": _records(typical(found)),
        "missing": {
            "complete_rows": found.missing.complete,
            "share": dict(zip(found.missing.names, map(float, found.missing.share), strict=True)),
        },
        "options": found.options,
        "diagnostics": found.diagnostics.to_dict(),
        "warnings": list(found.warnings),
    }
    if found.surprising is not None:
        content["surprising_cells"] = _records(surprising_cells(found))
        content["surprising_rows"] = _records(surprising_rows(found))
    if found.similar is not None:
        content["similar_to"] = found.similar.row + 1
        content["similar"] = _records(similar(found))
    if found.dependence is not None:
        content["dependence"] = _records(dependence(found))
    return content | shared_summary(found.shared)


_NUMBERS = ("share", "explained", "stability", "stability_error", "halves", "halves_error")


def _numbers(feature: Feature) -> dict[str, Any]:
    found = {name: _or_none(getattr(feature, name)) for name in _NUMBERS}
    return {**found, "credible": feature.credible}


def _feature(found: Findings, feature: Feature) -> dict[str, Any]:
    return {
        "feature": feature.name,
        **_numbers(feature),
        "words": found.in_words(feature),
        "effects": [
            {key: value for key, value in row.items() if key != "feature" and value is not None}
            for effect in feature.effects
            for row in _effect_rows(feature, effect)
        ],
    }


def _ids_of(found: Findings, rows: Array, taken: tuple[str, ...]) -> dict[str, pa.Array]:
    """Return the id columns of some rows, those left out whose name is taken."""
    return {
        name: found.ids[name].combine_chunks().take(pa.array(rows))
        for name in found.ids.column_names
        if name not in taken
    }


def _records(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON takes them: no NaN, no date."""
    return [{key: _plain(value) for key, value in row.items()} for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)


def _or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
