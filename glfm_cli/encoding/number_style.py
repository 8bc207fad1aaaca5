"""How a column's numbers stand in its cells, learnt from them, so that others are written alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, get_args

from glfm_cli.io.numerals import MINUS, SPACES, Numerals
from glfm_cli.schema.moments import DAY, Letters, MomentStyle

_PAIRS = re.compile(r"\d{1,2}(?:\D\d\d)+\D\d{3}")  # groups of two digits, as in India
# Of what a style says of itself in a file: the least and largest whole numbers, and the switches.
_WHOLE = {"places": (0, 10**6), "width": (1, 10**6), "steps": (1, DAY)}
_SWITCHES = ("pairs", "fixed", "inner_sign", "plus", "brackets")


@dataclass(frozen=True)
class NumberStyle:
    """The text around and between the digits of a column's numbers.

    decimal, group : the decimal mark, and what stands between groups of digits, empty for nothing
    pairs : whether groups but the last have two digits
    places : most digits behind the decimal mark; None where only some numbers have an exponent, or
        where a number with one has as many as it takes
    fixed : whether every number has that many
    exponent : `e` or `E` where numbers have one, otherwise empty
    before, behind : the percent sign or unit, with the space between it and the number
    inner_sign : whether a sign stands between the text before and the digits
    plus : whether numbers above zero have a sign
    brackets : whether numbers below zero stand in brackets, as in accounts
    minus : how it is printed
    """

    decimal: str = "."
    group: str = ""
    pairs: bool = False
    places: int | None = None
    fixed: bool = False
    exponent: str = ""
    before: str = ""
    behind: str = ""
    inner_sign: bool = False
    plus: bool = False
    brackets: bool = False
    minus: str = "-"

    def write(self, number: Decimal) -> str:
        """Return a number, rounded already, as a cell of the column."""
        sign = self.minus if number < 0 else "+" if self.plus and number > 0 else ""
        whole, _, fraction = f"{abs(number):f}".partition(".")
        power = ""
        if self.exponent:
            places = len(number.as_tuple().digits) - 1 if self.places is None else self.places
            mantissa, _, power = f"{abs(float(number)):.{places}e}".partition("e")
            whole, _, fraction = mantissa.partition(".")
            power = self.exponent + power
        fraction = fraction.rstrip("0")
        if self.fixed and self.places is not None:
            fraction = fraction.ljust(self.places, "0")
        digits = self._grouped(whole) + (self.decimal + fraction if fraction else "") + power
        if self.brackets and number < 0:
            return f"({self.before}{digits}{self.behind})"
        front = self.before + sign if self.inner_sign else sign + self.before
        return front + digits + self.behind

    def with_places_of(self, other: NumberStyle) -> NumberStyle:
        """Return this style with as many decimals as `other`, where numbers may have fewer."""
        if self.places is None or other.places is None or other.fixed:
            return self
        if other.places <= self.places:
            return self
        return replace(self, places=other.places, fixed=False)

    def _grouped(self, whole: str) -> str:
        if not self.group:
            return whole
        head, size = whole[:-3], 2 if self.pairs else 3
        first = len(head) % size
        groups = [head[:first], *(head[i : i + size] for i in range(first, len(head), size))]
        return self.group.join(part for part in (*groups, whole[-3:]) if part)


def learn_style(numerals: Numerals, texts: Iterable[str]) -> NumberStyle:
    """Return how most of some cells are written, each a number of the form `numerals`."""
    mark, space = re.escape(numerals.mark), f"[{SPACES}]*"
    texts = list(texts)
    in_brackets = [text for text in texts if "(" in text]
    texts = [re.sub("[()]", "", text) for text in texts]
    sign = f"[+{MINUS}]?"
    cell = re.compile(
        rf"(?P<outer>{sign}{space})(?P<before>(?:{mark}{space})?)(?P<inner>{sign}{space})"
        rf"(?P<digits>{numerals.digits})(?P<behind>(?:{space}{mark})?)"
        if mark
        else rf"(?P<outer>{sign}{space})(?P<before>)(?P<inner>)(?P<digits>{numerals.digits})"
        "(?P<behind>)"
    )
    found = [match for match in map(cell.fullmatch, texts) if match]
    parts = [re.split("([eE])", match["digits"]) for match in found]
    numbers = [part[0].partition(numerals.decimal) for part in parts]
    powers = [part[1] for part in parts if len(part) > 1]
    places = [len(fraction) for _, _, fraction in numbers]
    long = [whole for whole, _, _ in numbers if len(whole) > 3]
    most = max(places, default=None)
    minuses = [one for match in found for one in match["outer"] + match["inner"] if one in MINUS]
    mixed = 0 < len(powers) <= len(parts) / 2
    return NumberStyle(
        decimal=numerals.decimal,
        group=_usual((re.sub(r"\d", "", whole)[:1] for whole in long), numerals.thousands),
        pairs=any(map(_PAIRS.fullmatch, long)),
        places=None if mixed else most,
        fixed=bool(places) and min(places) == most,
        exponent="" if mixed else _usual(powers),
        before=_usual(match["before"] for match in found),
        behind=_usual(match["behind"] for match in found),
        inner_sign=any(match["before"] and match["inner"].strip() for match in found),
        plus=any("+" in match["outer"] + match["inner"] for match in found),
        brackets=len(in_brackets) > len(minuses),
        minus=_usual(minuses, "-"),
    )


def style_from_dict(entries: Mapping[str, Any]) -> NumberStyle | MomentStyle:
    """Return what `asdict` gave; raise ValueError or TypeError otherwise."""
    for name, value in entries.items():
        if name in _WHOLE:
            least, most = _WHOLE[name]
            sound = type(value) is int and least <= value <= most
            sound |= name == "places" and value is None
        elif name == "letters":
            sound = value in get_args(Letters)
        else:
            sound = type(value) is (bool if name in _SWITCHES else str)
        if not sound:
            raise ValueError(f"'{name}' is {value!r}")
    return MomentStyle(**entries) if "form" in entries else NumberStyle(**entries)


def _usual(texts: Iterable[str], otherwise: str = "") -> str:
    counts = Counter(texts)
    return counts.most_common(1)[0][0] if counts else otherwise
