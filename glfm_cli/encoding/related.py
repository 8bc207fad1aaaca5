"""What holds between the columns of a table, and which of an equation follows from others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtri

from glfm_cli.arrays import mean_ranks
from glfm_cli.encoding.data import EncodedColumn, Mask
from glfm_cli.schema.formula import RESULT, Formula, parse_formula
from glfm_cli.schema.relations import conditions_in_order, in_order

FEW_ROWS = 20  # in which an equation's columns are all known, to choose the one that follows
CLEAR = 0.1  # by which a log determinant must be larger than that of the stated result


@dataclass(frozen=True)
class Relation:
    """A formula or condition of column `d`, and the columns that it names."""

    d: int
    formula: Formula
    of: tuple[int, ...]
    is_sum: bool = False


@dataclass(frozen=True)
class Relations:
    """What holds between the modelled columns of a table.

    equations : in an order in which what they need comes first
    conditions : of rows in which a column has values, those first that others rest on
    less : pairs of columns, the first of which is less in every row
    """

    equations: tuple[Relation, ...]
    conditions: tuple[Relation, ...]
    less: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, columns: Sequence[EncodedColumn], *, as_stated: bool = False) -> Relations:
        """Return what the types file says of encoded columns.

        as_stated : each equation has the result that it has there, whichever column follows
        """
        place = {encoded.column.name: d for d, encoded in enumerate(columns)}
        follower = {c.column.follows: c.column.name for c in columns if c.column.follows}

        def relation(name: str, text: str) -> Relation:
            formula, result = parse_formula(text), name
            parts = all(columns[place[one]].column.parts_of == name for one in formula.names)
            if not as_stated and (result := follower.get(name, name)) != name:
                formula = formula.solved_for(result, name) or formula
            of = tuple(place[one] for one in formula.names)
            return Relation(place[result], formula, of, parts)

        def there(text: str | None) -> bool:
            return text is not None and all(name in place for name in parse_formula(text).names)

        every = [encoded.column for encoded in columns]
        return cls(
            tuple(relation(*one) for one in in_order(every).items() if there(one[1])),
            tuple(relation(*one) for one in conditions_in_order(every).items() if there(one[1])),
            tuple((place[c.name], place[c.less_than]) for c in every if c.less_than in place),
        )

    def __bool__(self) -> bool:
        return bool(self.equations or self.conditions or self.less)

    @property
    def numbers(self) -> frozenset[int]:
        """The columns of equations and inequalities."""
        of = {d for one in self.equations for d in (one.d, *one.of)}
        return frozenset(of.union(*self.less))


def with_followers(
    columns: list[EncodedColumn], relations: Relations, before: Sequence[EncodedColumn]
) -> list[EncodedColumn]:
    """Return columns of which one of each equation is said to be what follows from the others.

    before : the columns as in the table, without what follows from others

    Known cells of it the model does not see (`learnt_cells`), so that it should be the one that the
    others, by themselves, have most to say of: of b = w / h^2, where b tells nothing of h, it is w.
    Taken is the column without which normal scores of the others have the correlation matrix of
    the largest determinant. A sum, an equation whose columns are in others, or of few known rows
    or a column that is the same in all of these, has the result that it is stated with; so has one
    whose result is known in no row where another column is missing, as if computed from the table.
    New rows have that of their fit.
    """
    shared = Counter(d for one in relations.equations for d in (one.d, *one.of))
    found = list(columns)
    for one in relations.equations:
        involved = (one.d, *one.of)
        name = columns[one.d].column.name
        if any(columns[d].column.follows == name for d in involved):
            continue
        known = np.all([columns[d].observed for d in involved], axis=0)
        chosen = one.d
        several = known.sum() >= FEW_ROWS and all(np.ptp(columns[d].x[known]) for d in involved)
        alone = all(shared[d] == 1 for d in involved) and not _is_computed(before, one)
        if not one.is_sum and several and alone:
            ranks = np.stack([mean_ranks(columns[d].x[known]) for d in involved])
            R = np.corrcoef(ndtri((ranks - 0.5) / known.sum()))
            left = {
                d: np.linalg.slogdet(np.delete(np.delete(R, k, 0), k, 1))[1] - (k > 0) * CLEAR
                for k, d in enumerate(involved)
                if k == 0 or _may_follow(columns, d, one, known)
            }
            chosen = max(left, key=lambda d: left[d])
        column = replace(found[chosen].column, follows=name)
        found[chosen] = replace(found[chosen], column=column)
    return found


def _is_computed(columns: Sequence[EncodedColumn], one: Relation) -> bool:
    """Return whether a result is missing wherever another column is.

    Rows that lack all columns, as of a page left blank, say nothing of which was computed; there
    must be others.
    """
    known = np.stack([columns[d].observed for d in one.of])
    some, every = known.any(axis=0), known.all(axis=0)
    return bool((some & ~every).any() and not columns[one.d].observed[~every].any())


def _may_follow(columns: Sequence[EncodedColumn], d: int, one: Relation, known: Mask) -> bool:
    """Return whether an equation can be solved for a column, in all rows known."""
    column = columns[d].column
    solved = one.formula.solved_for(column.name, RESULT)
    if solved is None or not column.completed or column.integral:
        return False
    named = {name: columns[c].x[known] for name, c in zip(one.formula.names, one.of, strict=True)}
    # Of a ratio whose numerator is 0 nothing follows for the other number.
    return bool(np.isfinite(solved.evaluate({**named, RESULT: columns[one.d].x[known]})).all())
