"""What a column can be: its type, its role, the transform it is seen through."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from glfm_cli.schema.calendar import WEEKDAYS, CalendarPart, parts_of_date
from glfm_cli.schema.moments import Kind, Moments
from glfm_cli.schema.types import ColumnType


class Role(StrEnum):
    """What a column is for."""

    FEATURE = "feature"  # modelled and completed
    PREDICTOR = "predictor"  # modelled, never completed
    TARGET = "target"  # an ordinary feature, but for `classify`
    TIME = "time"  # a predictor that orders the rows of a group
    GROUP = "group"  # names what rows belong to
    WEIGHT = "weight"  # how many units of a population a row stands for
    ID = "id"
    LABEL = "label"  # what a row of a table of features is called
    IGNORE = "ignore"
    TASK = "task"
    SPLIT = "split"
    ROW = "row"
    COLUMN = "column"
    VALUE = "value"

    @property
    def modelled(self) -> bool:
        """True when a column of this role enters the model of a table."""
        return self in (Role.FEATURE, Role.PREDICTOR, Role.TIME, Role.TARGET)


class Transform(StrEnum):
    """The monotone map applied to a numeric column before its link is calibrated."""

    NONE = "none"
    LOG = "log"
    LOG1P = "log1p"
    LOGIT = "logit"
    SQRT = "sqrt"
    RANK = "rank"


@dataclass(frozen=True)
class MissingCode:
    """Text that stands for a missing value; with `impute=False` the cell is left as it is."""

    text: str
    impute: bool = True


@dataclass(frozen=True)
class Column:
    """One column of a table, every default filled in."""

    name: str
    role: Role = Role.FEATURE
    type: ColumnType | None = None  # None for a column that is not modelled, unless it was written
    levels: tuple[str, ...] | None = None  # None: learnt from the table
    aliases: tuple[tuple[str, str], ...] = ()  # other writings of levels, each with its level
    transform: Transform | None = None  # None: chosen from the data
    reflect: float | None = None  # the transform acts on reflect - x
    bounds: tuple[float | None, float | None] = (None, None)
    missing: tuple[MissingCode, ...] = ()  # besides the empty cell, null and NaN
    censored_below: float | None = None  # smaller numbers say only that they are smaller
    censored_above: float | None = None  # numbers from it on say only that they are
    impute_censored: bool = False  # complete cells that are intervals inside these
    missingness: Literal["probit"] | None = None  # how it depends on the value; None: not at all
    formula: str | None = None  # what its values follow from
    only_if: str | None = None  # the rows in which it has values
    otherwise: str | None = None  # what its cells are in the other rows; None: empty
    less_than: str | None = None  # a column whose values are larger in every row
    parts_of: str | None = None  # a column that is the sum of this and others
    atom: float | Literal["none"] | None = None  # a value of its own probability; None: found
    trials: str | None = None  # binomial: the column that holds the number of trials
    absent: str | None = None  # of triplets: what pairs are that are not listed; None: missing
    decimal: str | None = None  # None: a point
    thousands: str | None = None  # None: digits stand together
    percent: bool = False  # a percent sign stands beside every number
    unit: str | None = None  # may stand beside every number
    moment: Kind | None = None  # a real column of dates, a positive one of durations
    format: str | None = None  # of dates; None: ISO 8601
    seen_as: tuple[str, ...] = ()  # of dates; what models see of them, `days` among it
    follows: str | None = None  # the column whose formula is taken to say what this one is
    group_level: bool | None = None  # the same in all rows of a group; None: not looked at yet
    calendar: CalendarPart | None = None  # of a predictor that stands beside a column of dates
    label: str | None = None

    @property
    def numeric(self) -> bool:
        """True when its values are numbers."""
        return self.type is not None and self.type.values == "numbers"

    @property
    def kind(self) -> str:
        """What models take or do not: the type, or that cells are missing by their value."""
        return str(self.type) if self.missingness is None else f"missingness: {self.missingness}"

    @property
    def moments(self) -> Moments | None:
        """How it writes dates or durations, None where it has none."""
        return None if self.moment is None else Moments(self.moment, self.format)

    @property
    def integral(self) -> bool:
        """True when its values are whole numbers from 0."""
        return self.type is not None and self.type.whole

    @property
    def positive(self) -> bool:
        """True when its values are numbers above 0, or zeros that stand for an interval."""
        return self.type is not None and self.type.positive

    @property
    def levelled(self) -> bool:
        """True when its values are levels."""
        return self.type is not None and self.type.values == "levels"

    @property
    def nominal(self) -> bool:
        """True when its values are levels without an order."""
        return self.levelled and not self.ordinal

    @property
    def ordinal(self) -> bool:
        """True when its values are levels with an order."""
        return self.type is not None and self.type.ordered

    @property
    def binomial(self) -> bool:
        """True when its values are successes among trials."""
        return self.type is not None and self.type.values == "successes"

    @property
    def modelled(self) -> bool:
        """True when the column enters the model: weights of rows do where they have a type."""
        return self.role.modelled or (self.role is Role.WEIGHT and self.type is not None)

    @property
    def completed(self) -> bool:
        """True when the missing cells of the column are filled."""
        return self.role in (Role.FEATURE, Role.TARGET)

    @property
    def beside(self) -> tuple[Column, ...]:
        """The predictors that models see beside a column of dates."""
        found = []
        for of in parts_of_date(self.name, self.seen_as):
            name = f"{self.name} ({', '.join(filter(None, of[1:]))})"
            one = Column(name, Role.PREDICTOR, ColumnType.REAL, calendar=of)
            if of.wave is None:
                one = replace(one, type=ColumnType.CATEGORICAL, levels=WEEKDAYS)
            found.append(replace(one, transform=None if one.levels else Transform.NONE))
        return tuple(found)

    def of_numbers(self) -> Column:
        """Return the column as one of real numbers."""
        return replace(self, type=ColumnType.REAL)

    def of_counts(self) -> Column:
        """Return a column of successes among trials as one of their counts."""
        return replace(self, type=ColumnType.COUNT, trials=None)

    def of_levels(self, *, ordered: bool = False) -> Column:
        """Return the column as one of levels."""
        return replace(self, type=ColumnType.ORDINAL if ordered else ColumnType.CATEGORICAL)


def with_calendar(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Return the columns of a table, and behind them those that stand beside its dates."""
    return (*columns, *(one for column in columns for one in column.beside))
