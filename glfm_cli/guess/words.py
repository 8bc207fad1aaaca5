"""Guess the type of a column whose values, gaps aside, are not all numbers."""

from __future__ import annotations

from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np

import glfm_cli.guess.codes as codes
import glfm_cli.guess.names as names
import glfm_cli.guess.scales as scales
from glfm_cli.guess.numerals import MAX_STRAY, are_strays
from glfm_cli.guess.profile import Profile
from glfm_cli.guess.verdict import (
    FEW_LEVELS,
    MAX_LEVELS,
    Verdict,
    ignore,
    many_levels,
    or_group,
    repeated_id,
)
from glfm_cli.schema import Column, ColumnType, Role
from glfm_cli.schema.text import scalar

ALIKE = 0.9  # of the letters of a word, one typed wrong has
APART = 0.05  # by which the next step is less like it: agree or disagree
RARER = 4  # times rarer than the word that is meant
MOST_TYPOS = 0.05  # of the cells
MOST_CODES = 20  # different whole numbers beside words, that are categories as these are
FEWEST_ONCE = 10  # sentences in one row each, from which a column is free text
MOST_AMONG = 1 / 3  # of the cells, that are texts of many kinds among numbers
_PAIR = r"^\d+(?:[.,]\d+)? ?/ ?\d+(?:[.,]\d+)?$"
_WITH_ERROR = r"^\S+ ?(?:±|\+/-|\+-) ?\d\S*$"  # 20.31±0.05
_FORTRAN = r"^[+-]?\d*\.?\d+[dD][+-]?\d+$"  # 1.5D-10
_BETWEEN = r"^\p{Sc} ?\d[\d.,]* ?[A-Za-z]{1,3}$"  # $1.2m, €500k
_WITH_WORDS = r"(?:^|\s)\d+(?:[.,]\d+)?(?:\s|$)"  # about 3, 5 hours
_CODE_LIKE = r"^[\w./:-]*\d[\w./:-]*$"


def judge_words(column: Profile) -> Verdict:
    """Return the guess for at least two distinct texts."""
    name = column.name
    if column.all_different and (names.is_id(name) or column.matches(_CODE_LIKE).all()):
        why = "and the name is an id's" if names.is_id(name) else "and each is a code"
        return Verdict(Column(name, role=Role.ID), f"every value is different, {why}")
    if _is_repeated_id(column):
        return repeated_id(column)
    bare, remarks = column.matches(codes.BARE_NUMBER), column.matches(codes.WITH_REMARK)
    others = column.counts[~(bare | remarks)].tolist()
    few = not others or are_strays(others, column.n_observed, int(bare.sum()))
    if remarks.any() and few and bare.sum() >= FEWEST_ONCE:
        such = scalar(column.keep(remarks).words()[0])
        return ignore(name, f"numbers, some with a remark, such as {such}; write the number alone")
    if column.n_distinct >= FEWEST_ONCE and column.matches(_WITH_ERROR).all():
        such = f"such as {_first(column)}; make two columns of them"
        return ignore(name, f"numbers with errors, {such}")
    if column.n_distinct >= FEWEST_ONCE and column.matches(_FORTRAN).all():
        such = f"such as {_first(column)}; write E for the D of their exponents"
        return ignore(name, f"numbers, {such}")
    between = column.keep(~codes.word_codes(column, codes.DOUBTFUL_WORDS))
    if between.n_distinct >= FEWEST_ONCE and between.matches(_BETWEEN).all():
        such = f"{_first(between)}; write the number alone, all in one unit"
        return ignore(name, f"numbers between a currency and a unit, such as {such}")
    if column.n_distinct == column.n_observed:
        where = "every row" if column.all_different else f"each of its {column.n_observed} cells"
        return ignore(name, f"text that is different in {where}")
    if _is_free_text(column):
        return ignore(name, "free text, of which most occurs once")
    if problem := many_levels(column):
        if column.matches(_PAIR).all():
            split = f"two numbers, such as {column.words()[0]}; split them into two columns first"
            return ignore(name, split)
        told = _beside_numbers(column) or _among_numbers(column)
        return ignore(name, told or f"text; {problem}{or_group(column)}")
    if names.is_remark(name) and column.n_observed < column.n_rows:
        return ignore(name, "remarks, by the name: an empty cell has none")
    x = column.numbers[column.is_number]
    measured = np.any(x != np.floor(x)) or (x.size > MOST_CODES and not names.is_code(name))
    in_words = column.matches(_WITH_WORDS)[~column.is_number]
    told = _beside_numbers(column)
    if not told and 2 * in_words.sum() > in_words.size:
        told = _among_numbers(column)
    if measured and told:
        return ignore(name, told)
    return _levels(column)


def _first(column: Profile) -> str:
    return scalar(column.words()[0])


def _beside_numbers(column: Profile) -> str:
    """Return what to do with a word in too many cells among numbers to be left as it is."""
    numbers = column.is_number
    if numbers.sum() < FEWEST_ONCE or not 0 < (~numbers).sum() <= MAX_STRAY:
        return ""
    said = ", ".join(map(scalar, column.keep(~numbers).words()))
    share = column.counts[~numbers].sum() / column.n_observed
    return (
        f"numbers, beside {said} in {100 * share:.0f} % of the cells; where that is below a limit "
        "of detection, write the limit, <0.05; where it is missing, list it as a code"
    )


def _among_numbers(column: Profile) -> str:
    """Return what to do with texts of many kinds among numbers, such as `c. 1975`."""
    numbers = column.is_number
    cells = int(column.counts[~numbers].sum())
    few = numbers.sum() < FEWEST_ONCE
    if few or not 0 < cells <= MOST_AMONG * column.n_observed:  # none: numbers with leading zeros
        return ""
    such = " and ".join(map(scalar, column.keep(~numbers).words()[:2]))
    return (
        f"numbers, but {cells} cells are none, such as {such}; write the number alone, an interval "
        "such as <1900, or nothing"
    )


def _is_free_text(column: Profile) -> bool:
    """Return whether texts are sentences, most of which stand in one row alone."""
    once = column.counts == 1
    lengths = [len(word.split()) for word in column.words()]
    return once.sum() >= FEWEST_ONCE and once.mean() >= 0.6 and float(np.mean(lengths)) >= 3.0


def _is_repeated_id(column: Profile) -> bool:
    many = column.n_distinct > MAX_LEVELS // 2
    return many and names.is_id(column.name) and bool(column.matches(_CODE_LIKE).all())


def _levels(column: Profile) -> Verdict:
    aliases = _aliases(column)
    if aliases:
        column = column.keep(np.array([word not in aliases for word in column.words()]))
    if typos := _typos(column):
        column = column.keep(np.array([word not in typos for word in column.words()]))
        aliases = {other: typos.get(level, level) for other, level in aliases.items()} | typos
    verdict = _one_writing(column)
    if not aliases:
        return verdict
    shown = ", ".join(f"{text} is {level}" for text, level in list(aliases.items())[:4])
    more = f" and {len(aliases) - 4} more" if len(aliases) > 4 else ""
    made = replace(verdict.column, aliases=tuple(aliases.items()))
    return Verdict(made, f"{verdict.reason}; written in several ways: {shown}{more}")


def _one_writing(column: Profile) -> Verdict:
    """Return the guess for texts of which each is a level."""
    name, words = column.name, column.words()
    if len(words) == 1:
        return ignore(name, f"always {words[0]}")
    if len(words) == 2:
        levels = scales.order(words) or column.in_order()
        if scales.is_yes_no(words):
            return _categorical(name, levels, "yes or no")
        return _categorical(name, levels, "two different texts")
    ordered = scales.order(words)
    if ordered is None and names.is_scale(name) and (ordered := scales.coded_order(words)):
        reason = f"{len(words)} codes in a row, and the name is a scale's; check their order"
        return Verdict(Column(name, type=ColumnType.ORDINAL, levels=ordered), reason)
    if ordered is not None:
        reason = f"{len(words)} texts that are steps of a scale; check their order"
        return Verdict(Column(name, type=ColumnType.ORDINAL, levels=ordered), reason)
    reason = f"{len(words)} different texts"
    if column.is_number.all():
        reason = f"{len(words)} different codes, with zeros in front"
    together = column.runs == len(words)  # as the years of a country do
    if len(words) > FEW_LEVELS and (together or column.matches(_CODE_LIKE).all()):
        reason += or_group(column)
    return _categorical(name, column.in_order(), reason)


def _aliases(column: Profile) -> dict[str, str]:
    """Return the level of each text that is another writing of it, of which it is the commonest.

    Texts that differ in capitals and spaces alone, letters apart, which may be codes; where all
    are a yes or a no, in any language.
    """
    words, counts = column.words(), column.counts
    keys = [" ".join(word.casefold().split()) if len(word) > 1 else word for word in words]
    ranks = [scales.yes_no(word) for word in words]
    if len(words) > 2 and {*ranks} == {0, 1}:
        keys = [str(rank) for rank in ranks]
    # The commonest last; of equally common ones no digit, and with a capital.
    rank = [(n, not w.isdecimal(), w[:1].isupper(), w) for n, w in zip(counts, words, strict=True)]
    level = {keys[i]: words[i] for i in sorted(range(len(words)), key=lambda i: rank[i])}
    other = [(w, level[key]) for w, key in zip(words, keys, strict=True) if w != level[key]]
    return dict(sorted(other, key=lambda pair: pair[1]))


def _typos(column: Profile) -> dict[str, str]:
    """Return the step of a scale that each of a few rare words is but for a letter or two.

    All other words are steps, of one scale. A word that is a step itself is no typing error.
    """
    words = column.words()
    count = dict(zip(words, column.counts.tolist(), strict=True))
    steps = [word for word in words if scales.is_step(word)]
    found = {}
    for word in words:
        if scales.is_step(word):
            continue
        near = sorted(steps, key=lambda step: -_likeness(word, step))[:2]
        likeness = [_likeness(word, step) for step in near]
        clear = len(near) == 2 and likeness[0] >= max(ALIKE, likeness[1] + APART)
        if not clear or RARER * count[word] > count[near[0]]:
            return {}
        found[word] = near[0]
    few = sum(count[word] for word in found) <= MOST_TYPOS * column.n_observed
    return found if few and len(steps) > 2 and scales.order(steps) is not None else {}


def _likeness(one: str, other: str) -> float:
    """Return the share of letters that two words have in common, in order, whatever the case."""
    return SequenceMatcher(None, one.casefold(), other.casefold()).ratio()


def _categorical(name: str, levels: tuple[str, ...], reason: str) -> Verdict:
    return Verdict(Column(name, type=ColumnType.CATEGORICAL, levels=levels), reason)
