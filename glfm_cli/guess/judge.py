"""Guess one column: first its gaps, then what the rest of it is."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import glfm_cli.guess.codes as codes
from glfm_cli.guess.dates import DATE, judge_dates
from glfm_cli.guess.intervals import (
    FILLED,
    part_intervals,
    part_limits,
    with_intervals,
    with_limits,
)
from glfm_cli.guess.labelled import is_labelled, judge_labelled, unanswered
from glfm_cli.guess.names import is_code, is_intensity, is_scale
from glfm_cli.guess.numbers import MAX_CODES, judge_numbers
from glfm_cli.guess.numerals import MAX_STRAY, are_strays, in_words
from glfm_cli.guess.profile import Kind, Profile
from glfm_cli.guess.scales import are_seasons, coded_order, inside_ranges, order
from glfm_cli.guess.stray import HIGH_CODES, STRAY_CODES
from glfm_cli.guess.verdict import MAX_LEVELS, Verdict, ignore, many_levels
from glfm_cli.guess.words import judge_words
from glfm_cli.io.numerals import PLAIN
from glfm_cli.io.units import CURRENCIES
from glfm_cli.schema import Column, ColumnType, MissingCode
from glfm_cli.schema.text import flow, scalar

RARE = 0.1  # share of cells with a value below which the reason says so
LEAST_DATES = 10  # different ones beside which a few texts are none
LEAST_OF_LEVEL = 10  # rows of a text that is a level beside a few amounts, such as placebo
MOST_STRAY = 4  # different codes that are numbers, among words or dates
LEADING_ZERO = r"^[+-]?0\d"
DASH_OF_ACCOUNTS = '"{}" may be 0, as accounts write it: then write 0 into these cells'
MOST_SHOWN = 5  # of codes, in the reason of a guess


class _Gaps(NamedTuple):
    """The codes of a column and what the reason says of them."""

    codes: tuple[MissingCode, ...] = ()
    notes: tuple[str, ...] = ()

    def blank(self, column: Profile) -> _Gaps:
        # Spaces alone are an empty cell, which needs no code.
        if not column.n_blank:
            return self
        cells = "1 blank cell" if column.n_blank == 1 else f"{column.n_blank} blank cells"
        return _Gaps(self.codes, (*self.notes, f"{cells} taken for missing"))

    def add(self, column: Profile, mask: NDArray[np.bool_], why: str, impute: bool = True) -> _Gaps:
        if not mask.any():
            return self
        texts = column.keep(mask).words()
        more = f" and {len(texts) - MOST_SHOWN} more" if len(texts) > MOST_SHOWN else ""
        note = f"{', '.join(map(scalar, texts[:MOST_SHOWN]))}{more} {why}"
        return _Gaps(
            self.codes + tuple(MissingCode(text, impute) for text in texts), (*self.notes, note)
        )


def judge(column: Profile) -> Verdict:
    """Return the guess for a column; its missing codes are in its `Column`."""
    name = column.name
    if column.kind is Kind.ANY:
        return ignore(name, "holds values of several types")
    if column.kind is Kind.OTHER:
        return ignore(name, "holds neither text nor numbers")
    if column.n_distinct == 0:
        return ignore(name, "holds no value")
    words = codes.gap_words(column)
    gaps = _Gaps().blank(column).add(column, words, "taken for missing")
    if words.any() and codes.perhaps_namibia(column):
        note = f"if it is Namibia: levels: {flow(sorted(column.words()))}, missing: []"
        gaps = gaps._replace(notes=(*gaps.notes, note))
    coded = codes.declared(column) & ~words
    unasked = codes.not_asked(column) & ~words
    if not column.declared.codes:  # among labels that have no code it may be a level
        unasked &= coded | column.is_number
    gaps = gaps.add(column, coded & ~unasked, "missing, as the file says")
    gaps = gaps.add(column, unasked, "not asked, as the file says, left as it is", impute=False)
    rest = column.keep(~(words | coded | unasked))
    if rest.n_distinct == 0:
        return ignore(name, "holds no value, only codes for missing ones")
    if rest.mixture is not None:
        return ignore(name, f"{rest.mixture}; write them alike to model them")
    labelled = is_labelled(rest)
    if labelled:
        gone = unanswered(rest)
        gaps = gaps.add(rest, gone, "taken for missing, by its code beyond the others")
        rest = rest.keep(~gone)
    parted, intervals = part_intervals(rest)
    parted, limits = part_limits(parted)
    numbers, further, is_numeric = _part_numbers(parted, gaps)
    if (intervals or limits) and not is_numeric:  # among levels, such as 18-24, they are words
        parted, intervals, limits = rest, [], []
        numbers, further, is_numeric = _part_numbers(rest, gaps)
    n_observed = numbers.n_observed + rest.n_observed - parted.n_observed
    rest, gaps = numbers, further
    if rest.n_distinct == 1:
        always = f"always {scalar(rest.words()[0])}"
        if rest.n_observed < column.n_rows - column.n_empty and not gaps.codes:
            always += ", or nothing; if that means no, as in boxes that were ticked, fill in a 0"
        return ignore(name, always)
    is_declared = labelled or rest.is_category or rest.order is not None
    dated = not (intervals or limits or is_declared or are_seasons(rest.words()))
    verdict = judge_dates(rest) if dated else None
    if verdict is None:
        verdict = judge_numbers(rest) if is_numeric else _judge_levels(rest)
    guessed = replace(verdict.column, label=column.declared.label)
    if not guessed.modelled:
        return verdict
    reason = verdict.reason
    if intervals:
        reason = verdict.reason if guessed.numeric else "numbers"
        guessed = with_intervals(guessed, rest, intervals)
        shown = ", ".join(one.text for one in intervals[:3]) + ", ..." * (len(intervals) > 3)
        reason += f"; known only to lie in an interval: {shown}"
        gaps = gaps._replace(notes=(*gaps.notes, FILLED))
    if limits:
        reason = verdict.reason if guessed.numeric else "numbers"
        guessed = with_limits(guessed, rest, limits)
        shown = ", ".join(one.text for one in limits)
        reason += f"; {shown} taken for less than {limits[-1].high:g}, a limit of detection"
    if guessed.numeric:
        guessed, how = _as_written(guessed, rest)
        reason += how
        accounts = guessed.unit in CURRENCIES or rest.matches(r"\(").any()
        dashes = [code.text for code in gaps.codes if code.text in "-–—"]
        if accounts and dashes:
            gaps = gaps._replace(notes=(*gaps.notes, DASH_OF_ACCOUNTS.format(dashes[0])))
    measured = guessed.numeric and not guessed.integral and is_intensity(name)
    if measured and n_observed < column.n_rows:
        reason += "; `missingness: probit` if low ones are missing more often"
    if n_observed < RARE * column.n_rows:
        reason += f"; only {n_observed} of {column.n_rows} cells hold a value"
    return Verdict(replace(guessed, missing=gaps.codes), "; ".join((reason, *gaps.notes)))


def _judge_levels(column: Profile) -> Verdict:
    """Return the guess for at least two distinct values that are no numbers."""
    if is_labelled(column):
        return judge_labelled(column)
    if column.order is not None:
        return _declared(column)
    if column.is_category:
        if problem := many_levels(column):
            return ignore(column.name, f"categories; {problem}")
        made = Column(column.name, type=ColumnType.CATEGORICAL, levels=column.in_order())
        return Verdict(made, "numbers that the table stores as categories")
    if column.kind is Kind.BOOLEAN:
        levels = ("false", "true")
        made = Column(column.name, type=ColumnType.CATEGORICAL, levels=levels)
        return Verdict(made, "true or false")
    return judge_words(column)


def _as_written(guessed: Column, column: Profile) -> tuple[Column, str]:
    """Return the guess for numbers with how they are written, and what the reason says of it."""
    written = column.written
    how = "" if written == PLAIN else f"; {in_words(written)}"
    guessed = replace(
        guessed,
        decimal=None if written.decimal == "." else written.decimal,
        thousands=written.thousands or None,
        percent=written.percent,
        unit=written.unit or None,
    )
    if column.unit is not None and not written.mark:
        how += f"; in {column.unit}, as the row below the header says"
        guessed = replace(guessed, unit=column.unit)
    return guessed, how


def _part_numbers(column: Profile, gaps: _Gaps) -> tuple[Profile, _Gaps, bool]:
    """Take what is a code out of a column, and tell whether numbers are left.

    Returns
    -------
    column : Profile
        Without its codes.
    gaps : _Gaps
        With them.
    is_numeric : bool
        True when all that is left are numbers.
    """
    numbers = column.is_number
    if column.kind is Kind.BOOLEAN or column.order is not None or column.is_category:
        return column, gaps, False
    dates = column.matches(DATE)
    below = codes.below_codes(column)
    if (column.matches(LEADING_ZERO) & ~dates).any() and column.kind is Kind.TEXT:
        gaps = gaps.add(column, below, "among codes, taken for missing")
        return column.keep(~below), gaps, False
    partial = codes.parts_of_dates(column, dates)
    if partial.any():
        gaps = gaps.add(column, partial, "known in part, left as it is", impute=False)
        return *_part_doubtful(column.keep(~partial), gaps), False
    if not numbers.any():
        return *_part_doubtful(column, gaps), False
    if numbers.all():
        return *_part_codes(column, gaps), True
    within = numbers & np.isin(column.numbers, HIGH_CODES)
    if within.any():
        within &= inside_ranges(column.words())
    if within.any() and order(column.keep(~within).words()) is not None:
        gaps = gaps.add(column, within, "inside one of the ranges, taken for missing")
        return *_part_doubtful(column.keep(~within), gaps), False
    doubtful = codes.word_codes(column, codes.DOUBTFUL_WORDS)
    unasked = codes.word_codes(column, codes.NO_QUESTION_WORDS)
    others = ~(numbers | doubtful | unasked)
    if others.any() and order(column.keep(numbers | others).words()) is not None:
        return *_part_doubtful(column, gaps), False  # 1 - never, 2, 3 - always
    # Beside codes of districts or diagnoses a text that recurs is one more: an arm without a dose.
    coded = is_code(column.name)
    n_numbers = 0 if coded else int(numbers.sum())
    few = are_strays(column.counts[others].tolist(), column.n_observed, n_numbers)
    if coded and column.written.mark and numbers.sum() <= MAX_CODES:
        few &= not others.any() or column.counts[others].min() < LEAST_OF_LEVEL
    if few and (numbers.sum() >= 3 or not others.any()):
        gaps = gaps.add(column, doubtful, "taken for missing")
        gaps = gaps.add(column, unasked, "left as it is", impute=False)
        below = others & codes.word_codes(column, codes.BELOW_WORDS)
        why = "among numbers, left as it is"
        remarks = others & column.matches(codes.WITH_REMARK)
        gaps = gaps.add(column, remarks, f"{why}; the number alone would be used", impute=False)
        gaps = gaps.add(column, others & ~below & ~remarks, why, impute=False)
        why += "; where that is below a limit of detection, write the limit, <0.05"
        gaps = gaps.add(column, below, why, impute=False)
        return *_part_codes(column.keep(numbers), gaps), True
    stray = numbers & np.isin(column.numbers, STRAY_CODES)
    if numbers.sum() <= MOST_STRAY and np.array_equal(stray, numbers):
        among = "dates" if dates.any() else "words"
        gaps = gaps.add(column, stray, f"among {among}, taken for missing")
        return *_part_doubtful(column.keep(~stray), gaps), False
    gaps = gaps.add(column, below, "among words, taken for missing")
    return column.keep(~below), gaps, False


def _part_codes(column: Profile, gaps: _Gaps) -> tuple[Profile, _Gaps]:
    found = codes.number_codes(column)
    return column.keep(~found), gaps.add(column, found, "looks like a code for missing")


def _part_doubtful(column: Profile, gaps: _Gaps) -> tuple[Profile, _Gaps]:
    """Take words such as "unknown" out of a column where the rest is a scale.

    Of other words a refusal alone is no level: "no answer", and "refused" beside it. Among dates
    all such words mean that there is none, and other texts, where they are few, are left.
    """
    dates = column.matches(DATE)
    nowhen = codes.no_dates(column, dates)
    if nowhen.any():
        return column.keep(~nowhen), gaps.add(column, nowhen, "among dates, taken for missing")
    others, n_dates = ~dates, int(dates.sum())
    n_cells = column.counts[others].tolist()
    if n_cells and n_dates >= LEAST_DATES and are_strays(n_cells, column.n_observed, n_dates):
        doubtful = others & codes.word_codes(column, codes.DOUBTFUL_WORDS)
        gaps = gaps.add(column, doubtful, "among dates, taken for missing")
        why = "among dates, left as it is"
        return column.keep(dates), gaps.add(column, others & ~doubtful, why, impute=False)
    unasked = codes.word_codes(column, codes.NO_QUESTION_WORDS)
    few = column.n_distinct <= 2 * MAX_STRAY + 10 and not _is_scale(column)
    for words in (codes.UNANSWERED, codes.DOUBTFUL_WORDS):  # "none" may be a step of the scale
        doubtful = codes.word_codes(column, words) & ~unasked
        rest = column.keep(~(doubtful | unasked))
        if few and rest.n_distinct > 2 and _is_scale(rest):
            gaps = gaps.add(column, doubtful, "outside the scale, taken for missing")
            gaps = gaps.add(column, unasked, "outside the scale, left as it is", impute=False)
            return rest, gaps
    refusals = codes.word_codes(column, codes.REFUSALS)
    if refusals.any():
        refusals |= codes.word_codes(column, frozenset({"refused"}))
    if column.n_distinct - refusals.sum() < 2:
        return column, gaps
    return column.keep(~refusals), gaps.add(column, refusals, "taken for missing")


def _is_scale(column: Profile) -> bool:
    """Return whether texts are steps of a scale, or codes in a row under the name of one."""
    words = _writings(column)
    return order(words) is not None or (is_scale(column.name) and coded_order(words) is not None)


def _writings(column: Profile) -> list[str]:
    """Return the texts of a column, one of those that differ in capitals and spaces alone."""
    return list({" ".join(word.casefold().split()): word for word in column.words()}.values())


def _declared(column: Profile) -> Verdict:
    """Return the guess for an ordered dictionary: its own levels, in its own order.

    Those that no row has stay, for later rows may have them, but for words that mean missing.
    """
    seen, declared = set(column.words()), column.order or ()
    gone = codes.GAP_WORDS | set(column.declared.missing)
    kept = len(declared) <= MAX_LEVELS
    levels = [
        level
        for level in declared
        if level in seen or (kept and not {level, level.lower()} & gone)
    ]
    unseen = [level for level in levels if level not in seen]
    reason = "the file declares these levels and their order"
    if unseen:
        shown = ", ".join(map(scalar, unseen[:3])) + ", ..." * (len(unseen) > 3)
        reason += f"; no row has {shown}"
    return Verdict(Column(column.name, type=ColumnType.ORDINAL, levels=tuple(levels)), reason)
