"""An exploration as tidy tables and as one object for JSON."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.exploration.features import Effect, Feature
from glfm_cli.exploration.findings import Findings
from glfm_cli.exploration.patterns import Pattern
from glfm_cli.exploration.scales import ColumnProfile, Scale


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
    number = pa.float64()
    return pa.Table.from_pylist(
        rows,
        schema=pa.schema(
            {
                "feature": pa.string(),
                **dict.fromkeys(_NUMBERS, number),
                "credible": pa.bool_(),
                "in_patterns": pa.bool_(),
                "words": pa.string(),
            }
        ),
    )


def patterns(found: Findings) -> pa.Table:
    """Return one row a pattern: its bits and features, rows, shares and stability."""
    return pa.table(
        {
            "pattern": pa.array([p.name for p in found.patterns], pa.string()),
            "features": pa.array([found.features_on(p) for p in found.patterns], pa.string()),
            "rows": pa.array([p.rows.size for p in found.patterns], pa.int64()),
            "share": pa.array([p.share for p in found.patterns], pa.float64()),
            "cumulative": pa.array([p.cumulative for p in found.patterns], pa.float64()),
            "stability": pa.array([_or_none(p.stability) for p in found.patterns], pa.float64()),
        }
    )


def effects(found: Findings) -> pa.Table:
    """Return one row a feature, column and level: the distribution with it off and on."""
    rows = []
    for feature in found.features:
        for effect in feature.effects:
            rows += _effect_rows(feature, effect)
    text, number = pa.string(), pa.float64()
    return pa.Table.from_pylist(
        rows,
        schema=pa.schema(
            {
                "feature": text,
                "column": text,
                "level": text,
                "unit": text,
                "off": number,
                "on": number,
                "change": number,
                "size": number,
                "direction": text,
                "z": number,
                "credible": pa.bool_(),
            }
        ),
    )


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
            found.scales, pattern.profiles, found.baseline, strict=True
        ):
            rows += _typical_rows(pattern, scale, profile, base)
    text, number = pa.string(), pa.float64()
    return pa.Table.from_pylist(
        rows,
        schema=pa.schema(
            {
                "pattern": text,
                "column": text,
                "level": text,
                "unit": text,
                "value": number,
                "baseline": number,
                "size": number,
            }
        ),
    )


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
        return [
            {**common, "value": _or_none(profile.mean), "baseline": _or_none(base.mean)},
        ]
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
        **{
            name: found.ids[name].combine_chunks().take(pa.array(row))
            for name in found.ids.column_names
            if name not in _MEMBERSHIP
        },
        "pattern": pa.array(names[number[row]] if names.size else [], pa.string()),
        "feature": pa.array([f.name for f in found.features] * n_rows, pa.string()),
        "member": pa.array(_interleaved(has, n_rows).astype(bool), pa.bool_()),
        "probability": pa.array(_interleaved(probability, n_rows), pa.float64()),
    }
    return pa.table(arrays)


_MEMBERSHIP = ("row", "pattern", "feature", "member", "probability")


def _interleaved(columns: list[Array], n_rows: int) -> Array:
    return np.column_stack(columns).ravel() if columns else np.empty(0)


def surprising_cells(found: Findings) -> pa.Table:
    """Return the least expected cells."""
    one = found.surprising
    assert one is not None
    return pa.table(
        {
            "row": pa.array(one.cell_row + 1, pa.int64()),
            **_ids_of(found, one.cell_row, ("row", "column", "value", "log_density", "excess")),
            "column": pa.array([found.scales[d].name for d in one.cell_column], pa.string()),
            "value": pa.array(
                [
                    value_text(found.scales[d], row)
                    for d, row in zip(one.cell_column, one.cell_row, strict=True)
                ],
                pa.string(),
            ),
            "log_density": pa.array(one.cell_density, pa.float64()),
            "excess": pa.array(one.cell_excess, pa.float64()),
        }
    )


def surprising_rows(found: Findings) -> pa.Table:
    """Return the least expected rows."""
    one = found.surprising
    assert one is not None
    return pa.table(
        {
            "row": pa.array(one.row + 1, pa.int64()),
            **_ids_of(found, one.row, ("row", "log_density", "excess")),
            "log_density": pa.array(one.row_density, pa.float64()),
            "excess": pa.array(one.row_excess, pa.float64()),
        }
    )


def similar(found: Findings) -> pa.Table:
    """Return the rows that share most features with the one asked for."""
    one = found.similar
    assert one is not None
    return pa.table(
        {
            "row": pa.array(one.rows + 1, pa.int64()),
            **_ids_of(found, one.rows, ("row", "likeness")),
            "likeness": pa.array(one.likeness, pa.float64()),
        }
    )


def dependence(found: Findings) -> pa.Table:
    """Return one row a pair of columns: mutual information in bits, and strength."""
    one = found.dependence
    assert one is not None
    pairs = [(a, b) for a in range(len(one.names)) for b in range(a + 1, len(one.names))]
    pairs.sort(key=lambda pair: -one.information[pair])
    return pa.table(
        {
            "column": pa.array([one.names[a] for a, _ in pairs], pa.string()),
            "other": pa.array([one.names[b] for _, b in pairs], pa.string()),
            "bits": pa.array([one.information[pair] for pair in pairs], pa.float64()),
            "strength": pa.array([one.strength[pair] for pair in pairs], pa.float64()),
        }
    )


def missing(found: Findings) -> pa.Table:
    """Return one row a pair of columns: the share of rows in which both are missing.

    A column paired with itself gives its own share.
    """
    one = found.missing
    pairs = [(a, b) for a in range(len(one.names)) for b in range(a, len(one.names))]
    return pa.table(
        {
            "column": pa.array([one.names[a] for a, _ in pairs], pa.string()),
            "other": pa.array([one.names[b] for _, b in pairs], pa.string()),
            "share": pa.array([one.together[pair] for pair in pairs], pa.float64()),
            "phi": pa.array([one.phi[pair] for pair in pairs], pa.float64()),
        }
    )


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
    return made


def summary(found: Findings) -> dict[str, Any]:
    """Return the whole exploration but the single rows, ready for JSON."""
    said: dict[str, Any] = {
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
        said["surprising_cells"] = _records(surprising_cells(found))
        said["surprising_rows"] = _records(surprising_rows(found))
    if found.similar is not None:
        said["similar_to"] = found.similar.row + 1
        said["similar"] = _records(similar(found))
    if found.dependence is not None:
        said["dependence"] = _records(dependence(found))
    return said


def value_text(scale: Scale, row: int) -> str:
    """Return an observed cell as text."""
    x = float(scale.encoded.x[row])
    if scale.discrete:
        return scale.encoded.levels[int(x)]
    return f"{x:.10g}"


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
