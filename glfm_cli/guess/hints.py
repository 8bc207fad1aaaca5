"""What a person may want to add to a guess: entries to paste.

Nothing here changes a guess: a hint is a comment beside it.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from glfm_cli.guess.codes import is_unanswered
from glfm_cli.guess.dates import days_in, minutes_in
from glfm_cli.guess.dependence import numbers_of
from glfm_cli.guess.derived import closed_run, derived
from glfm_cli.guess.levels import is_group_level, without_value
from glfm_cli.guess.names import is_direction, is_occasion, upper_ends, words
from glfm_cli.guess.panels import Visits, clock_of
from glfm_cli.guess.profile import Kind, Profile, tidy
from glfm_cli.guess.skips import Filter, at_zero, is_known_once, is_merged, skipped
from glfm_cli.guess.units import in_several_units, unit_of
from glfm_cli.guess.verdict import FEW_LEVELS, Verdict, may_be_group
from glfm_cli.io.numerals import Numerals
from glfm_cli.schema import Role
from glfm_cli.schema.phrases import is_number
from glfm_cli.schema.text import flow, quoted, scalar

MOST_COLUMNS = 60  # of levels, and of numbers, that are compared
LEAST_ROWS = 20  # of a level, in all of which a number is the same
MOST_ELSEWHERE = 0.1  # share of that number in the rows of other levels
LONG_WORD = 4  # letters from which a word may be what a shorter one stands for
MOST_SHOWN = 3
MOST_LISTED = 1000  # different cells that are looked at for lists of answers
ANSWER_MARKS = (";", "|", ",")
HALF_CIRCLE = 180.0  # degrees
SAMPLE = 300  # rows in which formulas are sought
NEED_NOT = "completed ones need not be"
ADD_FORMULA = "if it must be so in completed ones: formula: "
_JOINED = re.compile(r"^\s*(?:x|×|/|\+|&|-|and|und|et|y)\s*")
_NEGATIONS = words("not no never nicht kein keine nie ne pas non jamais nunca niet geen não mai")


def hints_of(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> dict[str, list[str]]:
    """Return what may be added to the guess of a column, by its name."""
    found: dict[str, list[str]] = defaultdict(list)
    for column, verdict in zip(columns, verdicts, strict=True):
        if verdict.column.nominal and verdict.column.modelled:
            found[verdict.column.name] += _same_levels(verdict, column)
            found[verdict.column.name] += _no_answers(verdict)
        if column.kind is Kind.TEXT and not verdict.column.numeric:
            found[verdict.column.name] += _several_answers(column)
    numbers = [i for i, v in enumerate(verdicts) if v.column.numeric and not v.column.moment]
    levelled = [i for i, v in enumerate(verdicts) if v.column.nominal and v.column.modelled]
    coded = ((i, _coded(table.column(i), verdicts[i])) for i in levelled[:MOST_COLUMNS])
    by_level = {i: (one.levels, one.rows) for i, one in coded}
    for name, hint in _formulas(table, columns, verdicts):
        found[name].append(hint)
    for name, hint in _visits(table, columns, verdicts):
        found[name].append(hint)
    for i in numbers:
        x = numbers_of(table.column(i), columns[i].written)
        found[columns[i].name] += _direction(x, verdicts[i])
    for i in numbers[:MOST_COLUMNS]:
        coded_number = _coded(table.column(i), verdicts[i])
        found[columns[i].name] += _only_if(coded_number, columns[i].written, by_level, verdicts)
        if verdicts[i].column.positive or verdicts[i].column.integral:  # of those that follow
            zero = at_zero(columns[i].name, *coded_number)
            by_level[i] = zero.levels, zero.rows
    return found


def following(hints: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the columns that have a formula, which may be added to guesses or not."""
    said = (ADD_FORMULA, NEED_NOT)
    return [name for name, own in hints.items() if any(one in hint for one in said for hint in own)]


def skips_of(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> dict[str, str]:
    """Return the `only_if` of columns of questions that some rows were not asked, by name.

    With it, whether a column has one value for each value of an id, merged cells, or several units.
    """
    levelled = [i for i, v in enumerate(verdicts) if v.column.levelled and v.column.modelled]
    numbers = [i for i, v in enumerate(verdicts) if v.column.positive or v.column.integral]
    filters = []
    for i in levelled[:MOST_COLUMNS]:
        coded = _coded(table.column(i), verdicts[i])
        filters.append(Filter(columns[i].name, coded.levels, coded.rows))
    of_levels = list(filters)
    unit = unit_of(of_levels)
    for i in numbers[:MOST_COLUMNS]:
        filters.append(at_zero(columns[i].name, *_coded(table.column(i), verdicts[i])))
    rows = {one.name: one.rows for one in filters}
    ids = [i for i, verdict in enumerate(verdicts) if verdict.column.role is Role.ID]
    several = next((i for i in ids if may_be_group(columns[i])), None)
    group = None if several is None else _coded(table.column(several), verdicts[several]).rows
    found = {}
    for i, verdict in enumerate(verdicts):
        name = columns[i].name
        words = columns[i].kind is Kind.TEXT and not columns[i].is_number.any()
        if not verdict.column.modelled and (not words or verdict.column.role is Role.ID):
            continue
        there = (rows[name] if name in rows else _coded(table.column(i), verdict).rows) >= 0
        if words and verdict.column.moment is None and is_merged(there):
            found[name] = (
                "each value stands above empty cells; if these are merged cells, write it into all "
                "rows for which it holds"
            )
        if not verdict.column.modelled:
            continue
        others = [one for one in filters if one.name != name]
        if hint := skipped(there, others):
            codes = verdict.column.missing
            if not all(code.impute for code in codes):  # inside, such cells are missing ones then
                hint += f", missing: {flow([code.text for code in codes])}"
            found[name] = _or_group(hint, _coded(table.column(i), verdict).rows, others)
        if several is not None and group is not None and is_known_once(there, group):
            once = f"known in one row of each {columns[several].name}; what holds for its others "
            found[name] = once + "write into them" + (f"; {found[name]}" if hint else "")
        measured = verdict.column.numeric and verdict.column.moment is None
        if unit is not None and measured:
            x = numbers_of(table.column(i), columns[i].written)
            told = in_several_units(x, unit, of_levels)
            found |= {name: told} if told else {}
    return found


def _or_group(hint: str, values: NDArray[np.int64], filters: Sequence[Filter]) -> str:
    """Return an `only_if`, and before it the group of which a column says something, if any.

    values : which of its values each row has, -1 of none (n,)
    """
    there = values >= 0
    x = np.where(there, values, np.nan)
    of = (one for one in filters if not one.is_number and np.all(one.rows >= 0))
    found = (one for one in of if without_value(there, one.rows) and is_group_level(x, one.rows))
    if (one := next(found, None)) is None:
        return hint
    return (
        f"the same in all rows of each {one.name}, of which some have none; where they have one "
        f"that is not known, give {one.name} `role: group`; {hint}"
    )


class Coded(NamedTuple):
    """A column's values, and which of them each row has, -1 of a missing cell (n,)."""

    values: pa.StringArray
    rows: NDArray[np.int64]

    @property
    def levels(self) -> list[str]:
        """The values as a list, of columns that have few."""
        return list(self.values.to_pylist())


def _coded(column: pa.ChunkedArray, verdict: Verdict) -> Coded:
    """Return a column by its distinct texts, aliases as the levels that they stand for."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    encoded = tidy(column.cast(pa.string()).combine_chunks()).dictionary_encode()
    texts, level = encoded.dictionary, dict(verdict.column.aliases)
    place = np.arange(len(texts))
    if level:
        meant = pa.array([level.get(text, text) for text in texts.to_pylist()], pa.string())
        again = meant.dictionary_encode()
        texts, place = again.dictionary, again.indices.to_numpy()
    missing = {"", "nan", *(code.text for code in verdict.column.missing)}
    kept = ~pc.is_in(texts, value_set=pa.array(sorted(missing))).to_numpy(zero_copy_only=False)
    number = np.append(np.where(kept, np.cumsum(kept) - 1, -1)[place], -1)
    rows = number[encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)]
    return Coded(texts.filter(pa.array(kept)), rows)


def visits_of(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> Visits | None:
    """Return an id with several rows of each, where a column differs in all of them."""
    ids = [i for i, verdict in enumerate(verdicts) if verdict.column.role is Role.ID]
    several = next((i for i in ids if may_be_group(columns[i])), None)
    if several is None:
        return None
    modelled = [i for i, verdict in enumerate(verdicts) if verdict.column.modelled]
    dates = [i for i in modelled if verdicts[i].column.moment == "date"]
    times = [i for i in modelled if columns[i].is_number.all() and is_occasion(columns[i].name)]
    clocks = ((i, _coded(table.column(i), verdicts[i]).rows) for i in dates + times)
    people = _coded(table.column(several), verdicts[several]).rows
    clock = clock_of(people, clocks)
    return None if clock is None else Visits(several, people, clock)


def _visits(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> Iterator[tuple[str, str]]:
    """Yield the column that orders the rows of an id, and what role it may have."""
    if (found := visits_of(table, columns, verdicts)) is not None:
        of, clock = scalar(columns[found.id].name), verdicts[found.clock].column
        role = "`role: time`" if clock.numeric else "`{type: real, role: time}`"
        yield clock.name, f"differs in all rows of each {of}: {role}, where {of} has `role: group`"


def _only_if(
    number: Coded,
    written: Numerals,
    by_level: dict[int, tuple[list[str], NDArray[np.int64]]],
    verdicts: Sequence[Verdict],
) -> list[str]:
    """Return the `only_if` of a column that is one number in all rows of a level of another."""
    texts, values = number
    if not len(texts):
        return []
    common = int(np.argmax(np.bincount(values[values >= 0], minlength=len(texts))))
    text = written.read(texts.slice(common, 1)).plain[0].as_py() or texts[common].as_py()
    seen, same = values >= 0, values == common
    found = []
    for i, (levels, of_row) in by_level.items():
        both = seen & (of_row >= 0)
        rows, hits = (np.bincount(of_row[m], minlength=len(levels)) for m in (both, both & same))
        rest, others = rows.sum() - rows, hits.sum() - hits
        fits = (rows >= LEAST_ROWS) & (hits == rows) & (rest >= LEAST_ROWS)
        fits &= others <= MOST_ELSEWHERE * rest
        if verdicts[i].column.numeric:  # of which only 0 may say that there is nothing
            fits[1:] = False
        elif fits.any():  # each other level may have a number of its own, as a town its population
            pairs = np.unique(np.stack([of_row[both], values[both]]), axis=1)
            kinds = np.bincount(pairs[0], minlength=len(levels))
            fits &= bool(np.any(kinds[hits < rows] > 1))
        found += [(int(rows[k]), i, levels[k]) for k in np.flatnonzero(fits)]
    if not found or not is_number(text):
        return []
    n, i, level = max(found)
    name = verdicts[i].column.name
    word = name if name.isidentifier() else f"`{name}`"
    condition = f"{word} != {json.dumps(level, ensure_ascii=False)}"
    if verdicts[i].column.numeric:
        condition = f"{word} > 0"
    if not re.fullmatch(r'\w+ != "[\w ]+"', condition):
        condition = quoted(condition)
    entry = f"only_if: {condition}, otherwise: {quoted(text)}"
    return [
        f"{text} in all {n} rows where {name} is {scalar(level)} and hardly elsewhere; "
        f"if that must be so: {entry}"
    ]


def _formulas(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> Iterator[tuple[str, str]]:
    """Yield the name of each column that follows from others in a sample, and its formula."""
    asked = [i for i, v in enumerate(verdicts) if v.column.modelled]
    asked = [i for i in asked if verdicts[i].column.numeric or not verdicts[i].column.nominal]
    rows = pa.array(np.unique(np.linspace(0, table.num_rows - 1, SAMPLE).astype(int)))
    parts = []
    for i in asked:
        cells, guessed = table.column(i).take(rows), verdicts[i].column
        if guessed.moment:
            of_day = guessed.moment == "duration"
            parts.append(minutes_in(cells) if of_day else days_in(cells, guessed.format))
            continue
        x = numbers_of(cells, columns[i].written)
        codes = [float(c.text) for c in verdicts[i].column.missing if is_number(c.text)]
        parts.append(np.where(np.isin(x, codes), np.nan, x))
    if not parts:
        return
    names = [verdicts[i].column.name for i in asked]
    called = [name if name.isidentifier() else f"`{name}`" for name in names]
    moments = {k: moment for k, i in enumerate(asked) if (moment := verdicts[i].column.moment)}
    for one in derived(called, np.column_stack(parts), moments).values():
        where = f"{one.formula} in all {one.n_rows} rows of a sample where that is known"
        levels = [names[d] for d in (one.column, *one.of) if not verdicts[asked[d]].column.numeric]
        mend = f"{ADD_FORMULA}{scalar(one.formula)}"
        if len(levels) == 1 and levels != [names[one.column]]:  # such as the sizes of lots
            mend += f", and for {scalar(levels[0])} type: count"
        elif levels:
            mend = f"{NEED_NOT}, and both may come out too sure: `role: ignore`, and compute it "
            mend += "afterwards"
        yield names[one.column], f"{where}; {mend}"
    numbers = [k for k, i in enumerate(asked) if verdicts[i].column.numeric and k not in moments]
    X = np.column_stack([parts[k] for k in numbers] or [np.empty(0)])
    if closed := closed_run(X):
        run, total, n = closed
        ends = f"{scalar(names[numbers[run[0]]])} to {scalar(names[numbers[run[-1]]])}"
        yield (
            names[numbers[run[0]]],
            f"{ends} add up to {total:.6g} in all {n} rows of a sample where they are known; if it "
            f"must be so in completed ones: add a column of {total:.6g}, such as total, to the "
            "table, and give each `parts_of: total`",
        )
    of_name: dict[str, list[int]] = {}
    for k in numbers:
        of_name.setdefault(names[k].casefold(), []).append(k)
    pairs = ((k, of_name.get(high, ())) for k in numbers for high in upper_ends(names[k]))
    ordered = [(k, other) for k, others in pairs for other in others]
    for k, other in sorted((*ordered, *_next_moments(parts, moments))):
        x, y = (parts[one][np.isfinite(parts[k] + parts[other])] for one in (k, other))
        if x.size >= LEAST_ROWS and np.all(x < y):
            high = scalar(names[other])
            yield (
                names[k],
                f"less than {high} in all {x.size} rows of a sample where both are known; if it "
                f"must be so in completed ones: less_than: {high}",
            )


def _next_moments(
    parts: Sequence[NDArray[np.float64]], moments: Mapping[int, str]
) -> Iterator[tuple[int, int]]:
    """Yield dates and the nearest one that comes after each in all rows, as delivery after pickup.

    So of times of day.

    Each is later than some of the dates of the other in other rows: else it is just another year.
    """
    for k in sorted(moments):
        after: dict[int, float] = {}
        for other in (one for one in moments if one != k and moments[one] == moments[k]):
            days = parts[other] - parts[k]
            both = np.isfinite(days)
            apart = both.sum() < LEAST_ROWS or np.max(parts[k][both]) <= np.min(parts[other][both])
            if not apart and np.all(days[both] > 0.0):
                after[other] = float(np.median(days[both]))
        if after:
            yield k, min(after, key=lambda other: after[other])


def _direction(x: NDArray[np.float64], verdict: Verdict) -> list[str]:
    """Return that degrees of a circle are one, by their name and range."""
    if not is_direction(verdict.column.name):
        return []
    x = x[np.isfinite(x)]
    codes = [float(c.text) for c in verdict.column.missing if is_number(c.text)]
    x = x[~np.isin(x, codes)]
    if not x.size or x.min() < 0.0 or not HALF_CIRCLE < x.max() <= 2 * HALF_CIRCLE:
        return []
    return [
        "a direction, by its name: 359 is next to 0, which models do not know; use its cosine and "
        "sine as two columns instead, with `role: ignore` here"
    ]


def _several_answers(column: Profile) -> list[str]:
    """Return the note on cells that list one, two, three answers, which recur in other cells."""
    words = column.keep(np.arange(column.n_distinct) < MOST_LISTED).words()
    for mark in ANSWER_MARKS:
        lists = [[part.strip() for part in word.split(mark)] for word in words]
        answers = list(dict.fromkeys(part for one in lists for part in one))
        if {1, 2, 3} <= set(map(len, lists)) and len(answers) < len(lists):
            shown = ", ".join(map(scalar, answers[:MOST_SHOWN]))
            return [
                f"cells list several answers ({shown}, ...): a column of yes and no for each of "
                f"the {len(answers)} would say more"
            ]
    return []


def _no_answers(verdict: Verdict) -> list[str]:
    """Return the `missing` of levels that may stand for a missing cell: unknown, don't know."""
    levels = verdict.column.levels or ()
    gone = [level for level in levels if is_unanswered(level)]
    kept = [level for level in levels if level not in gone]
    if not gone or len(kept) < 2:
        return []
    texts = [*(code.text for code in verdict.column.missing), *gone]
    shown = ", ".join(map(scalar, gone))
    return [
        f"{shown} may stand for a missing cell; if so: levels: {flow(kept)}, missing: {flow(texts)}"
    ]


def _same_levels(verdict: Verdict, column: Profile) -> list[str]:
    """Return the `aliases` of levels that may be one: f and F, male and M."""
    levels = verdict.column.levels or ()
    if len(levels) > FEW_LEVELS or column.kind is not Kind.TEXT:
        return []
    counts = Counter(dict(zip(column.words(), column.counts.tolist(), strict=True)))
    key = {level: " ".join(level.casefold().split()) for level in levels}
    for word in list(key.values()):
        longer = {w for w in key.values() if w != word and w.startswith(word)}
        longer = {w for w in longer if _NEGATIONS.isdisjoint(w.split())}
        # A cross of two others, such as HFxFV, is neither.
        longer = {w for w in longer if _JOINED.sub("", w[len(word) :]) not in key.values()}
        # I, II and III, or A and AB, are no short forms.
        if len(longer) == 1 and word.isalpha() and min(map(len, longer)) >= LONG_WORD:
            (whole,) = longer
            key = {one: whole if was == word else was for one, was in key.items()}
    groups: dict[str, list[str]] = defaultdict(list)
    for level in sorted(levels, key=lambda one: -counts[one]):
        groups[key[level]].append(level)
    alike = {first: others for first, *others in groups.values() if others}
    if not alike:
        return []
    aliases: dict[str, list[str]] = defaultdict(list)
    for text, level in verdict.column.aliases:
        aliases[level].append(text)
    for level, others in alike.items():
        aliases[level] += [text for one in others for text in (one, *aliases.pop(one, ()))]
    matches = ", ".join(f"{o} and {level}" for level, others in alike.items() for o in others)
    kept = [level for level in levels if level in {first for first, *_ in groups.values()}]
    return [
        f"{matches} may be one level; if so: levels: {flow(kept)}, aliases: {flow(dict(aliases))}"
    ]
