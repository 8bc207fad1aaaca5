"""The types of columns: what kind of values each has, and which link it is seen through.

Adding a type is the file of its link and a line in `COLUMN_TYPES`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Self

# Of models of rates, whose kernels hold counts in 32 bits.
LARGEST_COUNT = 2**31 - 1
EXPECTED_COUNT = f"at most {LARGEST_COUNT}, the largest count of a Poisson factorization"
SMALLER_COUNT = "Count in a larger unit, such as thousands."
Values = Literal["numbers", "levels", "successes"]
_LINKS = "glfm_cli.links."


class ColumnType(str):
    """How the values of a column are distributed, by name.

    values : what they are: numbers, codes of levels, or successes among trials
    link : the class of its link, `module:name`, which is imported when a table needs it
    whole : numbers are whole, from 0
    positive : numbers are above 0, or zeros that stand for an interval
    ordered : levels have an order
    """

    REAL: ClassVar[ColumnType]
    POSITIVE: ClassVar[ColumnType]
    COUNT: ClassVar[ColumnType]
    CATEGORICAL: ClassVar[ColumnType]
    ORDINAL: ClassVar[ColumnType]
    BINOMIAL: ClassVar[ColumnType]

    values: Values
    link: str
    whole: bool
    positive: bool
    ordered: bool

    def __new__(
        cls,
        name: str,
        *,
        values: Values,
        link: str,
        whole: bool = False,
        positive: bool = False,
        ordered: bool = False,
    ) -> Self:
        """Return a type of some name."""
        made = super().__new__(cls, name)
        made.values, made.link = values, link
        made.whole, made.positive, made.ordered = whole, positive, ordered
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        """Return what makes it anew, in another process."""
        return (str(self),), dict(vars(self))


COLUMN_TYPES: dict[str, ColumnType] = {
    kind: kind
    for kind in (
        ColumnType("real", values="numbers", link=_LINKS + "real:RealLink"),
        ColumnType(
            "positive", values="numbers", link=_LINKS + "positive:PositiveLink", positive=True
        ),
        ColumnType("count", values="numbers", link=_LINKS + "count:CountLink", whole=True),
        ColumnType("categorical", values="levels", link=_LINKS + "categorical:CategoricalLink"),
        ColumnType("ordinal", values="levels", link=_LINKS + "ordinal:OrdinalLink", ordered=True),
        ColumnType("binomial", values="successes", link=_LINKS + "probit_normal:ProbitNormalLink"),
    )
}

ColumnType.REAL = COLUMN_TYPES["real"]
ColumnType.POSITIVE = COLUMN_TYPES["positive"]
ColumnType.COUNT = COLUMN_TYPES["count"]
ColumnType.CATEGORICAL = COLUMN_TYPES["categorical"]
ColumnType.ORDINAL = COLUMN_TYPES["ordinal"]
ColumnType.BINOMIAL = COLUMN_TYPES["binomial"]
