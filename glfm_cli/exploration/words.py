"""Effects in words. Every word is computed from the numbers of one effect."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import EncodedColumn
from glfm_cli.exploration.features import Effect
from glfm_cli.exploration.scales import ColumnProfile, Scale
from glfm_cli.schema import Column
from glfm_cli.schema.moments import EXCEL, UNIX, Moments, MomentStyle

LEAST = 0.05  # effects that move a smaller part of a column are not put into words
MOST = 4
YEARS = (1850, 2040)  # between which whole numbers are years


def cell_text(value: object) -> str:
    """Return a value as a cell of a table shows it, numbers rounded."""
    if isinstance(value, float):
        return number(value)
    return "" if value is None else str(value)


def describe(effects: Iterable[Effect], most: int = MOST, least: float = LEAST) -> str:
    """Return what sets rows with a feature apart, the largest effects first."""
    phrases = [in_words(effect) for effect in effects if effect.size >= least][:most]
    return "; ".join(phrases) if phrases else "nothing beyond chance"


def in_words(effect: Effect) -> str:
    """Return one effect: which column, which way, how far.

    Numbers: "sz higher (12 → 18 cm²)". Ordered levels: "pain higher (4 or above: 24 % → 61 %)",
    the end of the scale whose probability changes most. Other levels: "status4 more vascular
    (22 % → 48 %), less alive (30 % → 19 %)".
    """
    column = effect.scale.encoded.column
    if effect.direction == "none":
        return f"{column.name} stays as it is"
    if not effect.scale.discrete:
        ends = (quantity(effect.scale.encoded, part.mean) for part in (effect.off, effect.on))
        span = f"{' → '.join(ends)}{unit(column)}"
        return f"{column.name} {effect.direction} ({span})"
    levels = effect.scale.encoded.levels
    before, after = effect.off.mass, effect.on.mass
    if effect.scale.ordered and effect.direction != "shifted":
        return f"{column.name} {effect.direction} ({_end(effect)})"
    gained, lost = effect.gained, effect.lost
    more = f"more {levels[gained]} ({percent(before[gained])} → {percent(after[gained])})"
    if len(levels) == 2:
        return f"{column.name} {more}"
    less = f"less {levels[lost]} ({percent(before[lost])} → {percent(after[lost])})"
    return f"{column.name} {more}, {less}"


def _end(effect: Effect) -> str:
    """Return the upper end of an ordered scale that gains most, or the lower one."""
    levels, below = effect.scale.encoded.levels, np.cumsum([effect.off.mass, effect.on.mass], 1)
    if effect.direction == "higher":
        first = 1 + int(np.argmax(below[0, :-1] - below[1, :-1]))
        which = levels[first] + (" or above" if first < len(levels) - 1 else "")
        before, after = np.maximum(1 - below[:, first - 1], 0.0)  # sums may exceed 1 by rounding
    else:
        last = int(np.argmax(below[1, :-1] - below[0, :-1]))
        which = levels[last] + (" or below" if last > 0 else "")
        before, after = below[:, last]
    return f"{which}: {percent(float(before))} → {percent(float(after))}"


def left_out(scales: Iterable[Scale]) -> str | None:
    """Return which cells no mean of observed ones counts, being intervals; None where none is."""
    counts = ((scale.name, int(scale.encoded.between.sum())) for scale in scales)
    found = [f"{n} of '{name}'" for name, n in counts if n]
    return f"The means of all rows leave out intervals: {', '.join(found)}." if found else None


def typical(scale: Scale, profile: ColumnProfile, letters: int | None = None) -> str:
    """Return a distribution as one short text: its mean, or its likeliest level.

    Where `letters` are too few for a level and its probability, the level loses its middle, or what
    other levels have as well, and the probability goes to a line of its own.
    """
    if not scale.discrete:
        return quantity(scale.encoded, profile.mean)
    top = int(np.argmax(profile.mass))
    level, share = scale.encoded.levels[top], percent(float(profile.mass[top]))
    wide = sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in level)
    if letters is None or wide + 1 + len(share) <= letters:
        return f"{level} {share}"
    level = shortened(scale.encoded.levels, top, 2 * letters - 1)
    return f"{level}\n{share}"


def quantity(encoded: EncodedColumn, value: float) -> str:
    """Return a value of a column of numbers: a date as one, in the column's form where it has one,
    a duration to the minute, or to the second where the column has seconds, a year without commas.
    """
    moments = encoded.column.moments
    if moments is None and not np.isnan(value) and _are_years(encoded.x[encoded.observed]):
        return f"{value:.0f}"
    if moments is None or np.isnan(value):
        return number(value)
    if moments.kind == "date":
        value = float(np.round(value))
        moments = Moments("date") if moments.format in (EXCEL, UNIX) else moments
    elif isinstance(encoded.style, MomentStyle):
        return encoded.style.write(round(value * encoded.style.steps))
    return moments.text(value)


def _are_years(x: Array) -> bool:
    within = x.size > 0 and YEARS[0] <= x.min() and x.max() <= YEARS[1]
    return bool(within and np.all(x == np.floor(x)))


def value_text(encoded: EncodedColumn, value: float, digits: int) -> str:
    """Return a cell's value as text: a level, a date or duration, or a number to so many digits."""
    if encoded.levels:
        return encoded.levels[int(value)]
    return f"{value:.{digits}g}" if encoded.column.moments is None else quantity(encoded, value)


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


def with_error(share: float, error: float) -> str:
    """Return a share and its standard error in whole percent."""
    return f"{100 * share:.0f} ± {100 * error:.0f} %"


def unit(column: Column) -> str:
    """Return the column's unit with a blank before it, or nothing."""
    return f" {column.unit}" if column.unit else ""


def named(scale: Scale, letters: int) -> str:
    """Return name and unit, the unit cut, or the middle of a long name left out."""
    unit = scale.encoded.column.unit
    if len(scale.name) >= letters - 4 or not unit or unit in scale.name:
        return without_middle(scale.name, letters)
    label = f"{scale.name} ({unit})"
    return label if len(label) <= letters else f"{label[: letters - 1]}…"


def without_middle(text: str, letters: int) -> str:
    """Return a text of so many letters at most, an ellipsis for its middle where it is longer."""
    if len(text) <= letters:
        return text
    tail = (letters - 1) // 2
    return f"{text[: letters - 1 - tail]}…{text[len(text) - tail :]}"


def shortened(texts: Sequence[str], at: int, letters: int) -> str:
    """Return one of some texts in so many letters, told from the others where that can be.

    Its middle is left out; where that leaves what others have, too, the words that they share.
    """
    shown = [without_middle(text, letters) for text in texts]
    same = [i for i, text in enumerate(shown) if text == shown[at]]
    if len(same) == 1:
        return shown[at]
    return without_middle(differing([texts[i] for i in same])[same.index(at)], letters)


def differing(texts: Sequence[str]) -> list[str]:
    """Return texts without the words that all begin with, and those that all end with."""
    words = [re.findall(r"[^\s_]+[\s_]*", text) or [text] for text in texts]
    fewest = min(map(len, words))
    first = 0
    while first < fewest - 1 and len({one[first] for one in words}) == 1:
        first += 1
    last = 0
    while last < fewest - 1 - first and len({one[-1 - last] for one in words}) == 1:
        last += 1
    before, after = "…" if first else "", "…" if last else ""
    return [before + "".join(one[first : len(one) - last]).strip() + after for one in words]
