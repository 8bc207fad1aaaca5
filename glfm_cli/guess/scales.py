"""The order of words: low to high, never to always, strongly disagree to strongly agree."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from importlib.resources import files

from glfm_cli.guess.names import words as words_of

_AMOUNT = r"[$€£]?\s*(\d+(?:[,.]\d+)*(?:\s*k\b)?)\s*%?"
_UNIT = r"(?P<unit>(?:\s*[a-z]+(?:(?:/|\s+)[a-z]+){0,3})?)"  # `times a week`
_UNIT_BEHIND = _UNIT.replace("unit", "behind")
_NEVER = "never"
_RANGE = re.compile(rf"{_AMOUNT}\s*(?:-|–|—|to|\.\.)\s*{_AMOUNT}{_UNIT}")
_BELOW = re.compile(rf"(?:<|<=|≤|under|below|less than|up to)\s*{_AMOUNT}{_UNIT}")
_EXACT = re.compile(rf"{_AMOUNT}{_UNIT}")  # `2 years`, beside `< 1 year` or `10+ years`
_ABOVE = re.compile(
    rf"(?:(?:>|>=|≥|over|above|more than)\s*{_AMOUNT}{_UNIT}"
    rf"|{_AMOUNT}\s*(?:\+|and over|and above|or more|and more|plus){_UNIT_BEHIND})"
)
# What grades a word, from least to most; the word alone stands in the middle.
_GRADES = {
    "not at all": 0, "not": 1, "not so": 2, "not very": 2, "hardly": 2, "a little": 3,
    "slightly": 4, "somewhat": 5, "moderately": 6, "fairly": 6, "": 7, "quite": 8, "very": 9,
    "extremely": 10, "completely": 10, "totally": 10,
}
_FEWEST_GRADED = 3
FEWEST_CODES = 4  # from which codes of grades are told to be in a row
_MOST_BARE = 12  # words of which some are numbers alone
_MOST_DIGITS = 15  # of such a number
_NUMBERED = re.compile(r"(\d{1,2})\s*(?:[.):=-]|st\b|nd\b|rd\b|th\b)\s*(?:[^\d\s].*)?")


def plain(word: str) -> str:
    """Return a word in lower case, without accents; underscores, hyphens, slashes are spaces."""
    letters = unicodedata.normalize("NFKD", word.casefold().replace("\u2019", "'"))
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return " ".join(re.sub(r"[_/-]+", " ", bare).split())


_RANKS = [
    {plain(word): rank for rank, words in enumerate(scale.split("/")) for word in words.split("|")}
    for scale in files("glfm_cli.guess").joinpath("scale_words.txt").read_text("utf-8").splitlines()
    if not scale.startswith("#")
]
_YES_NO = _RANKS[-1]
# Ratings of long-term debt, each from default to the best; the words of a column are of one list.
_RATINGS = (
    ("D/SD/RD/C/CC/CCC/B/BB/BBB/A/AA/AAA", {"-": -1, "": 0, "+": 1}),
    ("C/Ca/Caa/B/Ba/Baa/A/Aa/Aaa", {"3": -1, "2": 0, "": 0, "1": 1}),
)
_OF_AGENCIES = {"BB", "BBB", "Ba", "Baa"}  # of which one is there: A, AA and C are sizes as well
_NOTCHED, _NOTCHES = re.compile(r"([0-6])([+-]?)"), {"-": -1, "": 0, "+": 1}
_PLUSES = {  # of laboratories
    "-": 0, "neg": 0, "neg.": 0, "negative": 0, "nil": 0, "±": 1, "+/-": 1, "(+)": 1, "trace": 1,
    **{"+" * n: 1 + n for n in range(1, 5)}, **{f"{n}+": 1 + n for n in range(1, 5)},
}  # fmt: skip
_SEASON = re.compile(r"(\d{4})\s*[/–-]\s*(\d{2}|\d{4})")
_STEPS = {word for ranks in _RANKS[:-1] for word in ranks}
# Of words that grade others, in English, German, French, Spanish.
_DEGREES = words_of(
    """very rather somewhat slightly strongly fully completely totally extremely quite moderately
    sehr eher voll vollig ziemlich etwas teils weniger uberhaupt gar tres plutot tout assez peu
    muy poco bastante totalmente algo nada"""
)


def is_yes_no(words: Iterable[str]) -> bool:
    """Return whether two words are a yes and a no."""
    ranks = sorted(_YES_NO.get(plain(word), -1) for word in words)
    return ranks == [0, 1]


def is_step(word: str) -> bool:
    """Return whether a word is a step of a scale that is known."""
    return plain(word) in _STEPS


def are_graded(words: Sequence[str]) -> bool:
    """Return whether half of three words or more are steps of a scale, or such as `rather not`."""
    bare = [plain(word) for word in words]
    graded = sum(word in _STEPS or not _DEGREES.isdisjoint(word.split()) for word in bare)
    return len(bare) > 2 and 2 * graded >= len(bare)


def yes_no(word: str) -> int | None:
    """Return 1 of a yes and 0 of a no, in digits, too; None of another word."""
    return {"0": 0, "1": 1}.get(word.strip(), _YES_NO.get(plain(word)))


def order(words: Iterable[str]) -> tuple[str, ...] | None:
    """Return words from low to high when they are steps of one scale, otherwise None."""
    found = sorted(words)
    of = (
        *(_scale_keys, _graded_keys, _season_keys, _range_keys, _numbered_keys, _rating_keys),
        *(_notched_keys, _plus_keys),
    )
    for keys in (keys_of(found) for keys_of in of):
        # Two words of one rank ("bad", "Bad") would stand in an order that nothing tells.
        if keys is not None and len(set(keys)) == len(keys):
            return tuple(word for _, word in sorted(zip(keys, found, strict=True)))
    return None


def are_seasons(words: Iterable[str]) -> bool:
    """Return whether words are seasons or financial years: 2016/17, 2017/18."""
    return _season_keys(list(words)) is not None


def coded_order(words: Iterable[str]) -> tuple[str, ...] | None:
    """Return codes of grades in their order, G1 to G9 or A to G, None unless they are in a row.

    One may be left out, as F is of some grades. A++ and A+ stand before A, A- behind it.
    """
    parted = sorted((len(word), word) for word in words)
    found = [word for _, word in parted]
    if all(re.fullmatch(r"[A-Z](\+{0,4}|-)", word) for word in found):
        found.sort(key=lambda word: (word[0], word.count("-") - word.count("+")))
        keys = sorted({ord(word[0]) - ord("A") for word in found})
    elif all(re.fullmatch(r"[A-Za-z]+[ -]?\d{1,2}", word) for word in found):
        if len({word.rstrip("0123456789") for word in found}) > 1:
            return None
        keys = [int(re.sub(r"\D", "", word)) for word in found]
    else:
        return None
    in_a_row = keys[-1] - keys[0] <= len(keys) and keys[0] <= 1
    return tuple(found) if len(keys) >= FEWEST_CODES and in_a_row else None


def _scale_keys(words: list[str]) -> list[tuple[float, float]] | None:
    bare = [plain(word) for word in words]
    for ranks in _RANKS:
        if all(word in ranks for word in bare):
            return [(float(ranks[word]), 0.0) for word in bare]
    return None


def _graded_keys(words: list[str]) -> list[tuple[float, float]] | None:
    """Return the grades of one word in all of them: not at all clear, clear, very clear."""
    bare = [plain(word) for word in words]
    last = {word.split()[-1] for word in bare if word}
    if len(words) < _FEWEST_GRADED or len(last) != 1:
        return None
    (word,) = last
    found = [_GRADES.get(one.removesuffix(word).strip()) for one in bare]
    return None if None in found else [(float(rank or 0), 0.0) for rank in found]


def inside_ranges(words: Sequence[str]) -> list[bool]:
    """Return which words are a number that lies inside a range of others: 99 beside `65+`."""
    keys = [(_range_keys([word, "0-1"]) or [(math.nan, math.nan)])[0] for word in words]
    ranges = [(low, high) for low, high in keys if low < high]
    return [
        low == high and any(one <= low <= other for one, other in ranges) for low, high in keys
    ]


def _season_keys(words: list[str]) -> list[tuple[float, float]] | None:
    """Return the years in which seasons begin, each of which ends in the next: 2016/17."""
    found = [_SEASON.fullmatch(word.strip()) for word in words]
    keys = []
    for match in found:
        if match is None or (int(match[1]) + 1 - int(match[2])) % 10 ** len(match[2]):
            return None
        keys.append((float(match[1]), 0.0))
    return keys


def _rating_keys(words: list[str]) -> list[tuple[float, float]] | None:
    """Return the ranks of an agency's ratings: D to AAA, or C to Aaa, with their notches."""
    if len(words) < FEWEST_CODES:
        return None
    for scale, notches in _RATINGS:
        grades = scale.split("/")
        parted = [(re.sub(r"[-+\d]$", "", word), re.sub("^[A-Za-z]+", "", word)) for word in words]
        if not _OF_AGENCIES.isdisjoint(grade for grade, _ in parted) and all(
            grade in grades and notch in notches for grade, notch in parted
        ):
            return [(float(grades.index(grade)), float(notches[notch])) for grade, notch in parted]
    return None


def _notched_keys(words: list[str]) -> list[tuple[float, float]] | None:
    """Return the ranks of grades of schools with notches: 1+, 1, 1-, 2+; or 1, 1+, 2-, 2.

    Where the best is 1 it has notches and the worst has none; else + is more.
    """
    found = [_NOTCHED.fullmatch(word.strip()) for word in words]
    parted = [(int(match[1]), _NOTCHES[match[2]]) for match in found if match]
    if len(parted) < len(words) or {notch for _, notch in parted} != {-1, 0, 1}:
        return None
    digits = sorted({digit for digit, _ in parted})
    if digits[-1] - digits[0] >= len(digits) or len(digits) < FEWEST_CODES - 1:
        return None
    most_first = any(digit == 1 and notch for digit, notch in parted)
    sign = -1 if most_first else 1
    return [(float(digit), float(sign * notch)) for digit, notch in parted]


def _plus_keys(words: list[str]) -> list[tuple[float, float]] | None:
    """Return the ranks of results by their pluses: -, +, ++; negative, trace, 1+, 2+."""
    found = [_PLUSES.get(word.casefold().strip()) for word in words]
    return None if None in found else [(float(rank or 0), 0.0) for rank in found]


def _range_keys(words: list[str]) -> list[tuple[float, float]] | None:
    """Return the limits of ranges: `under 18`, `18-24`, `65+`; or `1`, `2`, `3 or more`.

    All are of one unit, in whatever number: `< 1 year`, `1-2 years`.
    """
    keys, units = [], {""}
    for word in (item.casefold().strip() for item in words):
        if found := _RANGE.fullmatch(word):
            low, high = _amount(found[1]), _amount(found[2])
            in_thousands = found[2].endswith("k") and 1000.0 * low <= high  # 5-10k
            keys.append((1000.0 * low if in_thousands else low, high))
        elif found := _BELOW.fullmatch(word):
            keys.append((float("-inf"), _amount(found[1])))
        elif found := _ABOVE.fullmatch(word):
            keys.append((_amount(found[1] or found[3]), float("inf")))
        elif word == _NEVER:
            keys.append((float("-inf"), float("-inf")))
        elif len(words) <= _MOST_BARE and (found := _EXACT.fullmatch(word)):
            keys.append((_amount(found[1]), _amount(found[1])))
        else:
            return None
        if keys[-1][0] > keys[-1][1]:
            return None
        units |= {unit.strip() for unit in (found.groupdict().values() if found else ()) if unit}
    longest = max(units, key=len)
    if not all(longest.startswith(unit) for unit in units):
        return None
    bare = sum(low == high for low, high in keys)
    return keys if bare < len(keys) else None


def _amount(text: str) -> float:
    # A comma is a thousands separator: a decimal comma sorts right all the same.
    if text.endswith("k"):
        return 1000.0 * _amount(text.removesuffix("k").strip())
    whole, *rest = re.split(r"[,.]", text)
    if all(len(part) == 3 for part in rest):
        return float(whole + "".join(rest))
    return float(f"{whole}{''.join(rest[:-1])}.{rest[-1]}")


def _numbered_keys(words: list[str]) -> list[tuple[float, float]] | None:
    """Return the numbers that words carry: `1 - poor`, `2 - fair`; `1st`, `2nd`; `1 - poor`, `2`.

    Some are without a word where they are in a row, and its first or last has one.
    """
    keys, numbered = [], []
    for word in (item.casefold().strip() for item in words):
        if match := _NUMBERED.fullmatch(word):
            keys.append(int(match[1]))
            numbered.append(keys[-1])
        elif word.isdecimal() and len(word) <= _MOST_DIGITS and len(words) <= _MOST_BARE:
            keys.append(int(word))
        else:
            return None
    if len(numbered) < len(keys):
        in_a_row = sorted(keys) == list(range(min(keys), min(keys) + len(keys)))
        if not in_a_row or {min(keys), max(keys)}.isdisjoint(numbered):
            return None
    return [(float(key), 0.0) for key in keys]
