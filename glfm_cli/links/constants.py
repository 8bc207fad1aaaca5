"""Constants as named arrays of numbers, and checked when they are read.

A link that was saved must not be calibrated anew: its draws belong to these constants, and the
table may not be at hand. Numbers only, so that nothing is executed when they are read. Of a margin:

    `interpolated.x`, `.y`, `.unit`, `.tails`;  or `smooth.SHAPE` with the shape's numbers and
    `smooth.location` (m, w), and `reflected` (at) around it
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.links.margins import Interpolated, Margin, Reflected, Smooth
from glfm_cli.links.shapes import Identity, Log, Log1p, Logit, Probit, Shape, Softplus, Sqrt

SCALAR = -1  # one number, not a list of them

SHAPES: dict[str, type] = {
    shape.__name__.lower(): shape for shape in (Identity, Softplus, Log, Log1p, Logit, Probit, Sqrt)
}


def take(
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


def number(value: float) -> Array:
    """Return one number as an array."""
    return np.array(value, dtype=np.float64)


def margin_out(margin: Margin) -> dict[str, Array]:
    """Return a margin as named arrays."""
    if isinstance(margin, Reflected):
        return {"reflected": number(margin.at)} | margin_out(margin.margin)
    if isinstance(margin, Interpolated):
        return {
            "interpolated.x": margin.x,
            "interpolated.y": margin.y,
            "interpolated.unit": number(margin.unit),
            "interpolated.tails": np.array(margin.tails, dtype=np.float64),
        }
    assert isinstance(margin, Smooth)
    shape: Any = margin.shape
    numbers = [getattr(shape, field.name) for field in dataclasses.fields(shape)]
    return {
        f"smooth.{type(shape).__name__.lower()}": np.array(numbers, dtype=np.float64),
        "smooth.location": np.array([margin.m, margin.w]),
    }


def margin_in(constants: Mapping[str, Array]) -> Margin:
    """Return the margin that these arrays are of; ValueError says why there is none."""
    if "reflected" in constants:
        at = float(take(constants, "reflected", SCALAR))
        inner = {name: value for name, value in constants.items() if name != "reflected"}
        return Reflected(margin_in(inner), at)
    if "interpolated.x" in constants:
        return _interpolated(constants)
    m, w = take(constants, "smooth.location", 2)
    if not w > 0.0:
        raise ValueError("'smooth.location' has a scale that is not above 0")
    for name, shape in SHAPES.items():
        if f"smooth.{name}" in constants:
            return Smooth(_shape(name, shape, constants), float(m), float(w))
    raise ValueError("no margin is given")


def _interpolated(constants: Mapping[str, Array]) -> Interpolated:
    x = take(constants, "interpolated.x", None)
    y = take(constants, "interpolated.y", x.size)
    unit = float(take(constants, "interpolated.unit", SCALAR))
    low, high = take(constants, "interpolated.tails", 2)
    if x.size == 0 or np.any(np.diff(x) <= 0.0) or np.any(np.diff(y) <= 0.0):
        raise ValueError("the knots of the margin do not increase")
    if not unit > 0.0:
        raise ValueError("'interpolated.unit' is not above 0")
    return Interpolated(x.copy(), y.copy(), unit, (float(low), float(high)))


def _shape(name: str, shape: type, constants: Mapping[str, Array]) -> Shape:
    numbers = take(constants, f"smooth.{name}", len(dataclasses.fields(shape)))
    if shape in (Identity, Softplus) and not numbers[0] > 0.0:
        raise ValueError(f"'smooth.{name}' is not above 0")
    if shape is Logit and not numbers[0] < numbers[1]:
        raise ValueError(f"'smooth.{name}' does not increase")
    return shape(*(float(number) for number in numbers))
