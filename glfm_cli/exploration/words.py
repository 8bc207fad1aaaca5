"""Effects in words. Every word is computed from the numbers of one effect."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from glfm_cli.exploration.features import Effect
from glfm_cli.exploration.scales import Profile, Scale
from glfm_cli.schema import Column

LEAST = 0.05  # effects that move a smaller part of a column are not put into words
MOST = 4


def describe(effects: Iterable[Effect], most: int = MOST, least: float = LEAST) -> str:
    """Return what switching a feature on does, the largest effects first."""
    said = [in_words(effect) for effect in effects if effect.size >= least][:most]
    return "; ".join(said) if said else "hardly moves any column"


def in_words(effect: Effect) -> str:
    """Return one effect: which column, which way, how far.

    Numbers: "sz higher (12 → 18 cm²)". Ordered levels: "rx3 higher (5: 24 % → 61 %)", the level
    whose probability changes most. Other levels: "status4 more vascular (22 % → 48 %), less
    alive (30 % → 19 %)".
    """
    column = effect.scale.encoded.column
    if not effect.scale.discrete:
        span = f"{number(effect.off.mean)} → {number(effect.on.mean)}{unit(column)}"
        return f"{column.name} {effect.direction} ({span})"
    levels = effect.scale.encoded.levels
    before, after = effect.off.mass, effect.on.mass
    if effect.scale.ordered and effect.direction != "shifted":
        most = int(np.argmax(np.abs(after - before)))
        moved = _share(levels[most], before[most], after[most])
        return f"{column.name} {effect.direction} ({moved})"
    gained, lost = effect.gained, effect.lost
    more = f"more {levels[gained]} ({percent(before[gained])} → {percent(after[gained])})"
    if len(levels) == 2:
        return f"{column.name} {more}"
    less = f"less {levels[lost]} ({percent(before[lost])} → {percent(after[lost])})"
    return f"{column.name} {more}, {less}"


def _share(level: str, before: float, after: float) -> str:
    return f"{level}: {percent(before)} → {percent(after)}"


def typical(scale: Scale, profile: Profile) -> str:
    """Return a distribution as one short text: its mean, or its likeliest level."""
    if not scale.discrete:
        return number(profile.mean)
    top = int(np.argmax(profile.mass))
    return f"{scale.encoded.levels[top]} {percent(float(profile.mass[top]))}"


def number(value: float) -> str:
    """Return a number with three significant digits, whole from a hundred on."""
    if np.isnan(value):
        return "?"
    if value == 0 or 1e-4 <= abs(value) < 1e7:
        digits = 0 if abs(value) >= 100 else 3
        return f"{value:,.0f}" if digits == 0 else f"{value:.3g}"
    return f"{value:.2e}"


def percent(share: float) -> str:
    """Return a share in whole percent, with a digit more below one percent."""
    value = 100 * share
    if 0 < value < 1:
        return "<1 %" if value < 0.1 else f"{value:.1f} %"
    return f"{value:.0f} %"


def unit(column: Column) -> str:
    """Return the column's unit with a blank before it, or nothing."""
    return f" {column.unit}" if column.unit else ""


def without_middle(text: str, letters: int) -> str:
    """Return a text of so many letters at most, an ellipsis for its middle where it is longer."""
    if len(text) <= letters:
        return text
    tail = (letters - 1) // 2
    return f"{text[: letters - 1 - tail]}…{text[len(text) - tail :]}"
