"""The constants of a calibrated link as named arrays, and the link made of them again.

A link that was saved must not be calibrated anew: its draws belong to these constants, and the
table may not be at hand. Numbers only, so that nothing is executed when they are read:

    numeric      lower, upper, latent_bounds, center, scale, noise, and the margin
    positive     smallest, cut                    count         cuts
    categorical  reference, slot                  ordinal       nothing but the number of levels
    binomial     hits, trials

    margin       `interpolated.x`, `.y`, `.unit`, `.tails`;  or `smooth.SHAPE` with the shape's
                 numbers and `smooth.location` (m, w), and `reflected` (at) around it
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.links.binomial import BinomialLink
from glfm_cli.links.categorical import CategoricalLink
from glfm_cli.links.count import CountLink
from glfm_cli.links.link import Link, LinkConfig, Params
from glfm_cli.links.margins import Interpolated, Margin, Reflected, Smooth
from glfm_cli.links.numeric import NumericLink
from glfm_cli.links.ordinal import OrdinalLink
from glfm_cli.links.positive import PositiveLink
from glfm_cli.links.real import RealLink
from glfm_cli.links.shapes import Identity, Log, Log1p, Logit, Shape, Softplus, Sqrt
from glfm_cli.schema import Column, ColumnType

SCALAR = -1  # one number, not a list of them

SHAPES: dict[str, type] = {
    shape.__name__.lower(): shape for shape in (Identity, Softplus, Log, Log1p, Logit, Sqrt)
}
NUMERIC_LINKS: dict[ColumnType | None, type[RealLink] | type[CountLink]] = {
    ColumnType.REAL: RealLink,
    ColumnType.POSITIVE: PositiveLink,
    ColumnType.COUNT: CountLink,
}


def constants_of(link: Link) -> dict[str, Array]:
    """Return what `link_from` needs, besides the column and the number of levels."""
    if isinstance(link, CategoricalLink):
        return {"reference": _number(link.reference), "slot": link.slot.astype(np.float64)}
    if isinstance(link, OrdinalLink):
        return {}
    if isinstance(link, BinomialLink):
        return {"hits": link.successes, "trials": link.trials}
    assert isinstance(link, NumericLink)
    found = {
        field.name: np.asarray(getattr(link, field.name), dtype=np.float64)
        for field in dataclasses.fields(link)
        if field.name not in ("name", "margin")
    }
    return found | _margin_out(link.margin)


def link_from(
    column: Column, n_levels: int, constants: Mapping[str, Array], config: LinkConfig
) -> Link:
    """Return the link that `constants_of` described.

    Raises
    ------
    ValueError
        The constants are not those of such a link, with a phrase that says why.
    """
    if column.type is ColumnType.ORDINAL:
        return OrdinalLink(column.name, n_levels, config)
    if column.type is ColumnType.CATEGORICAL:
        return _categorical(column, n_levels, constants)
    if column.type is ColumnType.BINOMIAL:
        return _binomial(column, constants)
    kind = NUMERIC_LINKS.get(column.type)
    if kind is None:
        raise ValueError(f"a column of type {column.type} has no link")
    parts: dict[str, Any] = {}
    for field in dataclasses.fields(kind):
        if field.name in ("name", "margin"):
            continue
        size = {"latent_bounds": 2, "cuts": None}.get(field.name, SCALAR)
        value = _take(constants, field.name, size, infinite=True)
        parts[field.name] = value if size is None else _plain(value)
    for name, least in (("scale", 0.0), ("noise", -1.0)):
        if not least < parts[name] < np.inf:
            raise ValueError(f"'{name}' is {parts[name]:g}")
    if not np.isfinite(parts["center"]) or not parts["lower"] <= parts["upper"]:
        raise ValueError("'center', 'lower' and 'upper' do not fit together")
    for name, ends in (("latent_bounds", parts["latent_bounds"]), ("cuts", parts.get("cuts"))):
        if ends is not None and np.any(np.asarray(ends)[1:] < np.asarray(ends)[:-1]):
            raise ValueError(f"'{name}' does not increase")
    return kind(name=column.name, margin=_margin_in(constants), **parts)


def check_params(link: Link, params: Params) -> None:
    """Raise ValueError, with a phrase that says why, unless these can be the link's parameters."""
    if isinstance(link, OrdinalLink):
        theta = _take(params, "thresholds", link.n_levels - 1)
        if np.any(np.diff(theta) <= 0.0):
            raise ValueError("'thresholds' does not increase")
        expected = {"thresholds", "log_step", "tries"}
        for name in ("log_step", "tries"):
            _take(params, name, 1)
    elif isinstance(link, CategoricalLink):
        expected = {"reference"} & params.keys()
        if expected and np.any(_take(params, "reference", 2) < 0.0):
            raise ValueError("'reference' is negative")
    else:
        expected = set()
    if params.keys() != expected:
        raise ValueError(f"it has the parameters {sorted(params)}, expected {sorted(expected)}")


def _categorical(column: Column, n_levels: int, constants: Mapping[str, Array]) -> CategoricalLink:
    reference = float(_take(constants, "reference", SCALAR))
    slot = _take(constants, "slot", n_levels)
    if reference not in range(n_levels):
        raise ValueError(f"'reference' is {reference:g}, expected the code of a level")
    expected = np.insert(np.arange(n_levels - 1, dtype=np.float64), int(reference), -1.0)
    if not np.array_equal(slot, expected):
        raise ValueError("'slot' does not number the levels")
    return CategoricalLink(column.name, int(reference), slot.astype(np.intp))


def _binomial(column: Column, constants: Mapping[str, Array]) -> BinomialLink:
    hits, trials = (_take(constants, name, None) for name in ("hits", "trials"))
    if hits.shape != trials.shape or np.any(trials < 1.0) or np.any((hits < 0) | (hits > trials)):
        raise ValueError("'hits' and 'trials' do not fit together")
    return BinomialLink(column.name, hits, trials)


def _margin_out(margin: Margin) -> dict[str, Array]:
    if isinstance(margin, Reflected):
        return {"reflected": _number(margin.at)} | _margin_out(margin.margin)
    if isinstance(margin, Interpolated):
        return {
            "interpolated.x": margin.x,
            "interpolated.y": margin.y,
            "interpolated.unit": _number(margin.unit),
            "interpolated.tails": np.array(margin.tails, dtype=np.float64),
        }
    assert isinstance(margin, Smooth)
    shape: Any = margin.shape
    numbers = [getattr(shape, field.name) for field in dataclasses.fields(shape)]
    return {
        f"smooth.{type(shape).__name__.lower()}": np.array(numbers, dtype=np.float64),
        "smooth.location": np.array([margin.m, margin.w]),
    }


def _margin_in(constants: Mapping[str, Array]) -> Margin:
    if "reflected" in constants:
        at = float(_take(constants, "reflected", SCALAR))
        inner = {name: value for name, value in constants.items() if name != "reflected"}
        return Reflected(_margin_in(inner), at)
    if "interpolated.x" in constants:
        return _interpolated(constants)
    m, w = _take(constants, "smooth.location", 2)
    if not w > 0.0:
        raise ValueError("'smooth.location' has a scale that is not above 0")
    for name, shape in SHAPES.items():
        if f"smooth.{name}" in constants:
            return Smooth(_shape(name, shape, constants), float(m), float(w))
    raise ValueError("no margin is given")


def _interpolated(constants: Mapping[str, Array]) -> Interpolated:
    x = _take(constants, "interpolated.x", None)
    y = _take(constants, "interpolated.y", x.size)
    unit = float(_take(constants, "interpolated.unit", SCALAR))
    low, high = _take(constants, "interpolated.tails", 2)
    if x.size == 0 or np.any(np.diff(x) <= 0.0) or np.any(np.diff(y) <= 0.0):
        raise ValueError("the knots of the margin do not increase")
    if not unit > 0.0:
        raise ValueError("'interpolated.unit' is not above 0")
    return Interpolated(x.copy(), y.copy(), unit, (float(low), float(high)))


def _shape(name: str, shape: type, constants: Mapping[str, Array]) -> Shape:
    numbers = _take(constants, f"smooth.{name}", len(dataclasses.fields(shape)))
    if shape in (Identity, Softplus) and not numbers[0] > 0.0:
        raise ValueError(f"'smooth.{name}' is not above 0")
    if shape is Logit and not numbers[0] < numbers[1]:
        raise ValueError(f"'smooth.{name}' does not increase")
    made: Shape = shape(*(float(number) for number in numbers))
    return made


def _take(
    arrays: Mapping[str, Array], name: str, size: int | None, *, infinite: bool = False
) -> Array:
    """Return float64 numbers: one (SCALAR), so many, or any number of them (None); never NaN."""
    if name not in arrays:
        raise ValueError(f"'{name}' is missing")
    array = np.asarray(arrays[name])
    fits = array.ndim == 0 if size == SCALAR else array.ndim == 1 and size in (None, array.size)
    if array.dtype != np.float64 or not fits:
        raise ValueError(f"'{name}' is {array.shape} of {array.dtype}")
    if np.isnan(array).any() or not (infinite or np.isfinite(array).all()):
        raise ValueError(f"'{name}' has values that are not finite numbers")
    return array


def _plain(value: Array) -> Any:
    """Return one number, or a pair of them, as Python's own."""
    return float(value) if value.ndim == 0 else tuple(float(part) for part in value)


def _number(value: float) -> Array:
    return np.array(value, dtype=np.float64)
