"""The order of words: low to high, never to always, strongly disagree to strongly agree."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Each scale from low to high; words that mean the same stand together.
_SCALES = (
    (
        "none|no|absent",
        "very low|lowest",
        "low|lower",
        "mid|middle|medium|moderate|average|normal|intermediate",
        "high|higher",
        "very high|highest",
    ),
    (
        "xxs|extra extra small",
        "xs|extra small|very small|tiny",
        "s|small",
        "m|medium|mid|middle",
        "l|large|big",
        "xl|extra large|very large|huge",
        "xxl|extra extra large",
        "xxxl",
    ),
    (
        "strongly disagree|disagree strongly|completely disagree|totally disagree",
        "disagree|mostly disagree",
        "somewhat disagree|disagree somewhat|moderately disagree|tend to disagree",
        "slightly disagree|disagree slightly|disagree a little",
        "neutral|neither|neither agree nor disagree|undecided|not sure|unsure|no opinion",
        "slightly agree|agree slightly|agree a little",
        "somewhat agree|agree somewhat|moderately agree|tend to agree",
        "agree|mostly agree",
        "strongly agree|agree strongly|completely agree|totally agree",
    ),
    (
        "never",
        "almost never|hardly ever|very rarely",
        "rarely|seldom",
        "occasionally|once in a while",
        "sometimes|now and then",
        "often|frequently",
        "very often",
        "usually|mostly|most of the time",
        "almost always|nearly always",
        "always|all the time",
    ),
    ("never", "less than monthly", "monthly", "weekly", "daily|almost daily|daily or almost daily"),
    (
        "terrible|awful|very bad|very poor",
        "bad|poor",
        "fair|so so|acceptable|average|ok|okay",
        "good",
        "very good",
        "excellent|outstanding",
    ),
    (
        "very dissatisfied|very unsatisfied|completely dissatisfied",
        "dissatisfied|unsatisfied",
        "somewhat dissatisfied|slightly dissatisfied",
        "neutral|neither|neither satisfied nor dissatisfied",
        "somewhat satisfied|slightly satisfied",
        "satisfied",
        "very satisfied|completely satisfied",
    ),
    (
        "very unlikely|extremely unlikely",
        "unlikely",
        "somewhat unlikely",
        "neutral|neither|possible|possibly|neither likely nor unlikely",
        "somewhat likely",
        "likely|probable|probably",
        "very likely|extremely likely|certain|definitely",
    ),
    (
        "none|no|absent|normal",
        "minimal|trace|very mild",
        "mild|slight|minor|light",
        "moderate|medium",
        "severe|serious|major|marked|heavy",
        "very severe|critical|extreme",
        "fatal",
    ),
    (
        "not at all|none|nothing",
        "hardly|very little",
        "a little|slightly|a bit|a little bit|little",
        "somewhat|moderately|some",
        "quite a bit|quite|considerably",
        "very|very much|a lot|much",
        "extremely",
    ),
    (
        "not important|not at all important|unimportant",
        "slightly important|a little important",
        "moderately important|somewhat important",
        "important",
        "very important",
        "extremely important",
    ),
    (
        "none|no schooling|no education",
        "primary|primary school|elementary|elementary school",
        "middle school|lower secondary",
        "secondary|secondary school|high school|upper secondary|hs",
        "some college",
        "associate|associates|associate degree",
        "college|bachelor|bachelors|bachelor degree|bachelors degree|undergraduate",
        "master|masters|master degree|masters degree|graduate|postgraduate",
        "doctorate|doctoral|phd|doctorate degree",
    ),
    ("worst", "worse|much worse", "same|about the same|unchanged", "better|much better", "best"),
    ("i", "ii", "iii", "iv", "v", "vi", "vii"),
    ("freshman", "sophomore", "junior", "senior"),
    ("bronze", "silver", "gold", "platinum"),
    ("young", "middle aged", "old|elderly"),
    ("false|no|n|f|off|absent|negative|neg", "true|yes|y|t|on|present|positive|pos"),
)
_RANKS = [
    {word: rank for rank, words in enumerate(scale) for word in words.split("|")}
    for scale in _SCALES
]
_YES_NO = _RANKS[-1]

_AMOUNT = r"[$€£]?\s*(\d+(?:[,.]\d+)*)\s*(?:k|%)?"
_RANGE = re.compile(rf"{_AMOUNT}\s*(?:-|–|—|to|\.\.)\s*{_AMOUNT}(?:\s*[a-z]+)?")
_BELOW = re.compile(rf"(?:<|<=|≤|under|below|less than|up to)\s*{_AMOUNT}(?:\s*[a-z]+)?")
_ABOVE = re.compile(
    rf"(?:(?:>|>=|≥|over|above|more than)\s*{_AMOUNT}(?:\s*[a-z]+)?"
    rf"|{_AMOUNT}\s*(?:\+|and over|and above|or more|and more|plus)(?:\s*[a-z]+)?)"
)
_NUMBERED = re.compile(r"(\d{1,2})\s*(?:[.):=-]|st\b|nd\b|rd\b|th\b)\s*(?:[^\d\s].*)?")


def plain(word: str) -> str:
    """Return a word in lower case, with underscores and hyphens as spaces."""
    return " ".join(re.sub(r"[_-]+", " ", word.casefold()).split())


def is_yes_no(words: Iterable[str]) -> bool:
    """Return whether two words are a yes and a no."""
    ranks = sorted(_YES_NO.get(plain(word), -1) for word in words)
    return ranks == [0, 1]


def order(words: Iterable[str]) -> tuple[str, ...] | None:
    """Return words from low to high when they are steps of one scale, otherwise None."""
    found = sorted(words)
    for keys in (_scale_keys(found), _range_keys(found), _numbered_keys(found)):
        # Two words of one rank ("bad", "Bad") would stand in an order that nothing tells.
        if keys is not None and len(set(keys)) == len(keys):
            return tuple(word for _, word in sorted(zip(keys, found, strict=True)))
    return None


def _scale_keys(words: list[str]) -> list[tuple[float, float]] | None:
    bare = [plain(word) for word in words]
    for ranks in _RANKS:
        if all(word in ranks for word in bare):
            return [(float(ranks[word]), 0.0) for word in bare]
    return None


def _range_keys(words: list[str]) -> list[tuple[float, float]] | None:
    """Return the limits of ranges such as `under 18`, `18-24`, `65+`."""
    keys = []
    for word in (item.casefold().strip() for item in words):
        if found := _RANGE.fullmatch(word):
            keys.append((_amount(found[1]), _amount(found[2])))
        elif found := _BELOW.fullmatch(word):
            keys.append((float("-inf"), _amount(found[1])))
        elif found := _ABOVE.fullmatch(word):
            keys.append((_amount(found[1] or found[2]), float("inf")))
        else:
            return None
        if keys[-1][0] > keys[-1][1]:
            return None
    return keys


def _amount(text: str) -> float:
    # A comma is a thousands separator: a decimal comma sorts right all the same.
    whole, *rest = re.split(r"[,.]", text)
    if all(len(part) == 3 for part in rest):
        return float(whole + "".join(rest))
    return float(f"{whole}{''.join(rest[:-1])}.{rest[-1]}")


def _numbered_keys(words: list[str]) -> list[tuple[float, float]] | None:
    """Return the numbers that words carry: `1 - poor`, `2 - fair`, or `1st`, `2nd`."""
    found = [_NUMBERED.fullmatch(word.casefold().strip()) for word in words]
    return [(float(match[1]), 0.0) for match in found if match] if all(found) else None
