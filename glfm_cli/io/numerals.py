"""Numbers as people write them: decimal comma, thousands separators, percent sign, unit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

SPACES = " \u00a0\u2009\u202f"
# What is meant by a separator, and all the characters that are printed for it.
SEPARATORS = {",": ",", ".": ".", " ": SPACES, "'": "'\u2019"}
MINUS = "\u2212-"  # the hyphen last: inside brackets it would be a range


class Reading(NamedTuple):
    """What texts are, read as numbers of one form.

    plain : the number in digits, point and exponent; null where the text is none of this form
    marked : whether the percent sign or unit stands beside it; null where it is no number
    """

    plain: pa.Array
    marked: pa.Array


@dataclass(frozen=True)
class Numerals:
    """How the numbers of a column are written.

    decimal : "." or ","; between the whole part and the fraction
    thousands : between groups of digits, a key of `SEPARATORS`, or empty; groups may be left out
    percent : whether a percent sign stands beside every number
    unit : what stands beside every number, before or behind it, such as `cm` or a currency sign
    """

    decimal: str = "."
    thousands: str = ""
    percent: bool = False
    unit: str = ""

    @property
    def mark(self) -> str:
        """Return what may stand beside a number."""
        return "%" if self.percent else self.unit

    @property
    def digits(self) -> str:
        """Return the regular expression of a number without sign and mark (RE2 and Python)."""
        point = re.escape(self.decimal)
        whole = r"\d+"
        if self.thousands:
            gap = f"[{SEPARATORS[self.thousands]}]"
            # Groups of three, or of two but for the last, as in India.
            whole = (
                rf"(?:[1-9]\d{{0,2}}(?:{gap}\d{{3}})+|[1-9]\d?(?:{gap}\d{{2}})+{gap}\d{{3}}|\d+)"
            )
        return rf"(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"

    def read(self, texts: pa.Array) -> Reading:
        """Return what texts without spaces around them are as numbers of this form."""
        sign, space = f"[+{MINUS}]?", f"[{SPACES}]*"
        texts = self._signed(texts, space)
        alone = pc.match_substring_regex(texts, f"^{sign}{space}{self.digits}$")
        marked = pc.if_else(alone, False, pa.scalar(None, pa.bool_()))
        if self.mark:
            mark = re.escape(self.mark)
            before = f"(?:{sign}{space}{mark}{space}|{mark}{space}{sign}){self.digits}"
            behind = f"{sign}{space}{self.digits}{space}{mark}"
            found = pc.match_substring_regex(texts, f"^(?:{before}|{behind})$")
            marked = pc.if_else(found, True, marked)
            texts = pc.if_else(found, pc.replace_substring(texts, self.mark, ""), texts)
        plain = pc.if_else(pc.is_valid(marked), texts, pa.scalar(None, texts.type))
        skipped = SPACES + SEPARATORS.get(self.thousands, "")
        plain = pc.replace_substring_regex(plain, f"[{skipped}]", "")
        if self.decimal != ".":
            plain = pc.replace_substring(plain, self.decimal, ".")
        plain = pc.replace_substring_regex(plain, r"^\+", "")
        return Reading(pc.replace_substring(plain, MINUS[0], "-"), marked)

    def _signed(self, texts: pa.Array, space: str) -> pa.Array:
        """Return texts with a minus for the brackets of accounts: ($5), $(5), (1,234).

        Numbers without a mark or separators in brackets may be anything, a remark as well.
        """
        if self.mark:
            mark = re.escape(self.mark)
            bare = f"(?:{mark}{space}{self.digits}|{self.digits}{space}{mark})"
            texts = pc.replace_substring_regex(texts, rf"^({mark}{space})\(([^()]+)\)$", r"(\1\2)")
            texts = pc.replace_substring_regex(texts, rf"^\(([^()]+)\)({space}{mark})$", r"(\1\2)")
        elif self.thousands:
            bare = self.digits
        else:
            return texts
        return pc.replace_substring_regex(texts, rf"^\(({bare})\)$", r"-\1")


class Between(NamedTuple):
    """A cell known only to lie between two numbers, either of which may be None.

    low, high : as they are written;  strict : whether they themselves are left out
    """

    low: str | None
    high: str | None
    strict: bool


# What a cell that is an interval looks like at least (RE2): no number does.
_OR_MORE = r"(?:or more|and more|or over|and over|oder mehr|und mehr|ou plus|et plus|o más|y más)"
INTERVAL = (
    r"^[<>\x{2264}\x{2265}=]|\d.*\+$|\d\S*\s*[-\x{2013}\x{2014}]\s*\S*\d|\d to \d"
    rf"|\d.* {_OR_MORE}$"
)
_LONGEST = 100  # characters of an interval: the patterns below take the square of the length
_ONE_END = re.compile(r"(<=|=<|\u2264|<|>=|=>|\u2265|>)\s*(\S.*)")
_FROM = re.compile(rf"(.*\d.*?)(?:\s*\+|\s+{_OR_MORE})")
_RANGE = re.compile(r"(.*?\d[^\s\d]*?(?:\s?[^\W\d]+)?)\s*(?:[-\u2013\u2014]|\bto\b)\s*(\S*\d.*)")


def parse_interval(text: str) -> Between | None:
    """Return the ends of a cell such as `<0.5`, `5 or more` or `30-39`, None where it has none.

    Whether the ends are numbers is not looked at.
    """
    if len(text) > _LONGEST:
        return None
    if match := _ONE_END.fullmatch(text):
        sign, end = match.groups()
        low, high = (None, end) if "<" in sign or sign == "\u2264" else (end, None)
        return Between(low, high, sign in "<>")
    if match := _FROM.fullmatch(text):
        return Between(match[1], None, False)
    if match := _RANGE.fullmatch(text):
        return Between(match[1], match[2], False)
    return None


PLAIN = Numerals()
