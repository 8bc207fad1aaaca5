"""Guess the type of a column whose values, gaps aside, are all numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import glfm_cli.guess.names as names
from glfm_cli.guess.profile import Kind, Profile
from glfm_cli.guess.verdict import Verdict, ignore, many_levels, repeated_id
from glfm_cli.schema import Column, ColumnType, Role, Transform
from glfm_cli.schema.atoms import atom_of, with_end_atom, zero_is_far, zeros_are_slips

LEAST_SCALE = 5  # steps from which numbers in a row are a scale without further evidence
MAGNITUDES = 100.0  # between the least and the largest intensity, of which logarithms are taken
YEARS = (1500, 2100)
RECENT_YEARS = (1850, 2040)  # that are taken for years whatever the name
FORM_STATUS = {0.0, 1.0, 2.0}  # incomplete, unverified, complete
MOST_BANDS = 30  # of incomes and their like
LEAST_GROUPS = 5  # that numbers tell apart by how they stand in the rows
LEAST_ROWS = 30  # that a number with gaps between them may number
FEWEST_HALVES = 5  # different numbers from which doubles may be a scale in halves
FINEST_STEP = 0.095  # of a scale; finer ones, but for rounding of 0.1, are measured numbers
COARSER_STEP = 0.195  # of a scale beyond 1: in tenths pH is measured
MAX_SCALE = 10  # the top of the longest answer scale
MAX_CODES = 12  # levels that a column named like a code may have without much data
LARGEST_EXACT = 2.0**53 - 1  # up to here no other whole number reads as the same double
LEAST_CODE = 11  # digits of each of many numbers, from which they are codes: bar codes, telephones
# Clocks of computers, in milliseconds and microseconds: from 1990 to 2040.
EPOCHS = (631_152_000_000, 2_208_988_800_000), (631_152_000_000_000, 2_208_988_800_000_000)
LARGEST_PLAIN = 99_999  # up to here a stored float's text has no exponent, in any width
MIN_PER_LEVEL = 10  # rows per level before numbers are taken for the steps of a scale
THIN_TOP = 0.05  # counts thin out: their largest value is rarer than this


def judge_numbers(column: Profile) -> Verdict:
    """Return the guess for at least two distinct numbers."""
    unfit = _unfit(column)
    if unfit is not None:
        return unfit
    if _is_weight(column):
        return Verdict(
            Column(column.name, role=Role.WEIGHT),
            "a survey's weight, by its name: rows count by it in what is said of the population",
        )
    if column.all_whole and (found := _id(column)):
        return found
    if column.n_distinct == 2 and _levels_are_safe(column):
        return _categorical(column, f"two values, {_ends(column, ' and ')}")
    # Nobody counts in powers of ten.
    rounded = _is_intensity(column) or bool(column.matches("[eE]").any())
    exact = column.all_whole and not rounded and np.abs(column.numbers).max() <= LARGEST_EXACT
    return _with_atom(_whole(column) if exact else _fractional(column), column)


def _is_weight(column: Profile) -> bool:
    """Return whether numbers are those of a survey's weight: in every row, none below 0."""
    whole = column.n_observed == column.n_rows and column.numbers.min() >= 0.0
    return names.is_weight(column.name) and bool(whole)


def _is_intensity(column: Profile) -> bool:
    """Return whether numbers are intensities by their name and spread, no logarithms of such."""
    low, high = column.numbers.min(), column.numbers.max()
    return bool(names.is_intensity(column.name) and low > 0.0 and high >= MAGNITUDES * low)


def _with_atom(verdict: Verdict, column: Profile) -> Verdict:
    """Return the guess, with the value that has a probability of its own."""
    bounded = with_end_atom(verdict.column, column.numbers, column.counts)
    guessed = bounded or verdict.column
    atom = atom_of(guessed, column.numbers, column.counts)
    if atom is None:
        return verdict
    share = column.counts[column.numbers == atom].sum() / column.n_observed
    reason = verdict.reason.split("; ")[0]
    percent = f"{100 * share:.2g}" if share < 0.995 else "over 99"
    what = f"{atom:g}"
    if bounded is not None:
        what += ", their ceiling," if atom == guessed.bounds[1] else ", their floor,"
    reason += f"; {what} in {percent} % of the cells, with a probability of its own"
    others = np.repeat(column.numbers, column.counts)
    if atom == 0.0 and zero_is_far(guessed, others[others != 0.0]):
        reason += ', far below all others: if it stands for a missing cell, missing: ["0"]'
    return Verdict(replace(guessed, atom=atom), reason)


def _unfit(column: Profile) -> Verdict | None:
    """Recognise numbers that no double holds: infinite ones, and the digits of long codes."""
    size = np.abs(column.numbers).max()
    if np.isinf(size):
        return ignore(column.name, "holds infinite numbers; make them nulls to model the rest")
    whole_type = column.kind is Kind.NUMBER and not column.matches(r"[.eE]").any()
    digits = bool(column.matches(r"^[+-]?\d+$").all()) if column.kind is Kind.TEXT else whole_type
    clock = any(low <= column.numbers.min() and size <= high for low, high in EPOCHS)
    lengths = {len(text) for text in column.words()} if digits and not clock else set()
    alike = len(lengths) == 1 and min(lengths) >= LEAST_CODE and column.n_distinct >= LEAST_ROWS
    if not digits or not (alike or size > LARGEST_EXACT):
        return None
    if column.all_different:
        return Verdict(Column(column.name, role=Role.ID), "every value is different, a long code")
    many = f"{min(lengths)} digits each" if alike else "more than 15 digits"
    return ignore(column.name, f"whole numbers of {many}, which are mostly codes")


def _id(column: Profile) -> Verdict | None:
    x = column.numbers
    if names.is_year(column.name) or column.written.mark:  # nobody numbers rows in percent
        return None
    if column.all_different and not column.is_feature:
        many = column.n_rows >= (3 if x[0] in (0, 1) else LEAST_ROWS)
        if many and np.all(np.diff(x) == 1):
            return Verdict(Column(column.name, role=Role.ID), "numbers the rows")
        rising = bool(np.all(np.diff(x) > 0)) and x[0] in (0, 1) and np.ptp(x) <= 1.1 * x.size
        if column.n_rows >= LEAST_ROWS and rising:
            return Verdict(Column(column.name, role=Role.ID), "numbers the rows, some left out")
    numbered = names.is_number_of_one(column.name) and column.all_different
    if names.is_id(column.name) or numbered:
        if column.all_different:
            return Verdict(
                Column(column.name, role=Role.ID),
                "every value is different, and the name is an id's",
            )
        if column.n_distinct > MAX_CODES:
            return repeated_id(column)
    return None


def _whole(column: Profile) -> Verdict:
    x, name = column.numbers, column.name
    low, high = x.min(), x.max()
    span = f"whole numbers from {_ends(column, ' to ')}"
    count = Verdict(Column(name, type=ColumnType.COUNT), span)
    if _are_years(column):
        return Verdict(Column(name, type=ColumnType.REAL), f"years, {span}")
    if low < 0:
        if -low == high <= 5 and _consecutive(column) and _enough(column):
            return _ordinal(column, f"{span}: a scale around zero")
        return Verdict(Column(name, type=ColumnType.REAL), f"{span}, some below zero")
    if not _levels_are_safe(column):
        return count
    if names.is_form_status(name) and set(x) == FORM_STATUS:
        return _ordinal(column, f"{span}: how complete a form is, by the name, as REDCap writes it")
    in_order = column.evidence in ("items", "alike", "order")
    named_code = names.is_code(name) or (names.is_id(name) and not in_order)
    if names.is_numbered_code(name) or (named_code and column.n_distinct <= MAX_CODES):
        return _code(column, span)
    if names.is_flag(name) and not names.is_count(name) and not _consecutive(column):
        return _code(column, span)  # sums of powers of two, each of which says one thing
    if _names_groups(column, named=named_code) and not in_order:
        return _group(column, span)
    few = column.n_distinct <= MAX_SCALE and _enough(column)
    long = column.n_distinct <= 2 * MAX_SCALE and _enough(column) and _consecutive(column)
    bands = names.is_banded(name) and low in (0, 1) and high <= MOST_BANDS and _enough(column)
    if bands and _consecutive(column):
        return _ordinal(column, f"{span}, each of them present: bands, by the name")
    if _is_scale(column) and long and not few and low in (0, 1):
        return _ordinal(column, f"{span}; the name is a scale's")
    named = _is_scale(column) or names.is_count(name)
    if column.evidence == "codes" and _enough(column) and not named:
        return _codes_by_others(column, span)
    if not few or names.is_count(name):
        return count
    if low in (0, 1) and high <= MAX_SCALE and _consecutive(column):
        return _few_in_a_row(column, span)
    if _is_scale(column) and high <= 2 * MAX_SCALE:
        return _ordinal(column, f"{span}; the name is a scale's")
    if len(np.unique(np.diff(np.sort(x)))) == 1 and not _consecutive(column):
        return _ordinal(column, f"{span} in {column.n_distinct} even steps")
    if not _consecutive(column) and column.n_distinct <= MAX_SCALE // 2 + 1:
        return _ordinal(
            column,
            f"only {column.n_distinct} whole numbers, with gaps between them; "
            "categorical if they are mere codes",
        )
    return Verdict(count.column, f"{span}; ordinal if they are the steps of a scale")


def _names_groups(column: Profile, *, named: bool) -> bool:
    """Return whether whole numbers tell groups of rows apart, such as persons with several visits.

    The rows of a group stand together, or all of many groups have as many; numbers are 1, 2, ...
    unless the name says that they are codes.
    """
    name, counts = column.name, column.counts
    few = column.n_distinct < LEAST_GROUPS or counts.min() < 2 or counts.sum() < column.n_rows
    counted = names.is_count(name) and not (named and names.is_number_of_one(name))
    if few or counted or names.is_banded(name) or _is_scale(column):
        return False
    together = column.runs == column.n_distinct
    alike = column.n_distinct > MAX_CODES and bool(np.ptp(counts) <= 1)
    if _consecutive(column) and column.numbers.min() == 1:
        return together or alike
    return named and together


def _group(column: Profile, span: str) -> Verdict:
    """Return the guess for numbers that tell groups apart: few are categories."""
    why = f"{span}, each for some rows that stand together or for as many as the others"
    if column.n_distinct <= MAX_CODES:
        return _categorical(column, f"{why}: codes of groups")
    return Verdict(
        Column(column.name, role=Role.ID), f"{why}; `group` if what they are is shared by such rows"
    )


def _are_years(column: Profile) -> bool:
    """Return whether whole numbers are years, by their size, and by name where that is needed."""
    low, high = column.numbers.min(), column.numbers.max()
    named = names.is_year(column.name) and low >= YEARS[0] and high <= YEARS[1]
    return bool(named or (low >= RECENT_YEARS[0] and high <= RECENT_YEARS[1]))


def _few_in_a_row(column: Profile, span: str) -> Verdict:
    """Return the guess for whole numbers from 0 or 1 to at most 10, each of them present.

    The name decides, then what other columns tell; a few numbers of which neither says anything are
    counts if they begin at 0, else codes, which assume least.
    """
    low, evidence = column.numbers.min(), column.evidence
    if _is_scale(column):
        return _ordinal(column, f"{span}; the name is a scale's")
    if evidence == "items" or (evidence == "alike" and not (low == 0 and _thins_out(column))):
        return _ordinal(column, f"{span}, as several columns have: an answer scale")
    if low == 0 and _thins_out(column):
        count = Column(column.name, type=ColumnType.COUNT)
        return Verdict(count, f"{span}, ever fewer toward the top: a count, not a scale")
    if evidence == "order":
        return _ordinal(column, f"{span}, and other columns rise or fall with them: a scale")
    if column.n_distinct >= LEAST_SCALE and not _thins_out(column):
        return _ordinal(column, f"{span}, each of them present: an answer scale")
    if low == 0 or column.n_distinct >= LEAST_SCALE:
        count = Column(column.name, type=ColumnType.COUNT)
        return Verdict(count, f"{span}; ordinal if they are the steps of a scale")
    return _categorical(column, f"{span}, codes or a scale; ordinal if they have an order")


def _is_scale(column: Profile) -> bool:
    """Return whether the name or the unit, such as `stars`, is that of a scale, or its ends."""
    ends = names.ends_of_scale(column.name)
    inside = ends is not None and np.all((column.numbers >= ends[0]) & (column.numbers <= ends[1]))
    return bool(inside) or names.is_scale(column.name) or names.is_scale(column.written.unit)


def _codes_by_others(column: Profile, span: str) -> Verdict:
    return _categorical(column, f"{span}; other columns do not rise or fall with them: codes")


def _categorical(column: Profile, reason: str) -> Verdict:
    made = Column(column.name, type=ColumnType.CATEGORICAL, levels=column.in_order())
    return Verdict(made, reason)


def _code(column: Profile, span: str) -> Verdict:
    if column.n_distinct > MAX_CODES and (problem := many_levels(column)):
        return ignore(column.name, f"{span}, codes by their name, {problem}")
    return _categorical(column, f"{span}; by its name, codes of categories")


def _ordinal(column: Profile, reason: str) -> Verdict:
    return Verdict(Column(column.name, type=ColumnType.ORDINAL, levels=column.in_order()), reason)


def _fractional(column: Profile) -> Verdict:
    x, name = column.numbers, column.name
    low, high = x.min(), x.max()
    span = f"numbers from {_ends(column, ' to ')}"
    if low < 0:
        return Verdict(Column(name, type=ColumnType.REAL), f"{span}, some below zero")
    steps = np.diff(np.sort(x))
    if (
        column.n_distinct <= MAX_SCALE
        and _levels_are_safe(column)
        and _enough(column)
        and np.allclose(steps, steps[0], rtol=1e-9, atol=0)
        and steps[0] >= (FINEST_STEP if high <= 1 else COARSER_STEP)
    ):
        return _ordinal(column, f"{span} in {column.n_distinct} even steps: an answer scale")
    top = None
    if names.is_share(name) and high <= 1:
        top, span = 1.0, f"{span}; a share by its name"
    elif names.is_percent(name) and high <= 100:
        top, span = 100.0, f"{span}; a percentage by its name"
    zeros = int(column.counts[x == 0].sum())
    if zeros:
        count = "1 zero" if zeros == 1 else f"{zeros} zeros"
        stand = "stands" if zeros == 1 else "stand"
        meaning = f"{stand} for less than the smallest value above zero"
        if zeros_are_slips(Column(name, type=ColumnType.POSITIVE), x, column.counts):
            meaning = "far below all others, taken for slips"
        span += f"; {count} {meaning}"
    else:
        span += ", none below zero"
    bounds = (None, None) if top is None else (0.0, top)
    transform = Transform.LOG if _is_intensity(column) else None
    made = Column(name, type=ColumnType.POSITIVE, bounds=bounds, transform=transform)
    return Verdict(made, span)


def _levels_are_safe(column: Profile) -> bool:
    """Return whether each number has one text, which the model's levels can go by."""
    plain = column.all_whole and np.abs(column.numbers).max() <= LARGEST_PLAIN
    if column.kind is Kind.NUMBER and not (plain or _halves(column)):
        return False  # how 0.1 or a million is written depends on who writes it
    return len(np.unique(column.numbers)) == column.n_distinct


def _halves(column: Profile) -> bool:
    """Return whether doubles are half steps of a scale, whose text is always the same."""
    twice = 2.0 * np.clip(column.numbers, -LARGEST_EXACT, LARGEST_EXACT)
    texts = column.texts.to_pylist()
    if column.n_distinct < FEWEST_HALVES or not np.array_equal(twice, np.floor(twice)):
        return False
    return texts == [f"{x:g}" for x in column.numbers] and bool(twice.max() <= 2.0 * MAX_SCALE)


def _consecutive(column: Profile) -> bool:
    return bool(np.ptp(column.numbers) == column.n_distinct - 1)


def _enough(column: Profile) -> bool:
    return column.n_observed >= MIN_PER_LEVEL * column.n_distinct


def _thins_out(column: Profile) -> bool:
    """Return whether frequencies fall from their peak, near the bottom, to a rare top value."""
    counts = column.counts[np.argsort(column.numbers)]
    peak = int(np.argmax(counts))
    falling = bool(np.all(np.diff(counts[peak:]) <= 0))
    return peak <= 1 and falling and counts[-1] < THIN_TOP * counts.sum()


def _ends(column: Profile, between: str) -> str:
    """Return the smallest and the largest value, long ones shortened but for signs and units."""
    x = column.numbers
    ends = []
    for i, value in ((np.argmin(x), x.min()), (np.argmax(x), x.max())):
        text = column.texts[int(i)].as_py()
        ends.append(text if len(text) <= 10 or column.written.mark else f"{value:.6g}")
    return between.join(ends)
