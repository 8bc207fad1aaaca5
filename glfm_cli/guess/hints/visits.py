"""Columns that order the rows of an id, as visits of persons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from glfm_cli.guess.hints.coded import coded
from glfm_cli.guess.names import is_occasion
from glfm_cli.guess.panels import Visits, clock_of
from glfm_cli.guess.profile import Profile
from glfm_cli.guess.verdict import Verdict, may_be_group
from glfm_cli.schema import Role
from glfm_cli.schema.text import scalar


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
    clocks = ((i, coded(table.column(i), verdicts[i]).rows) for i in dates + times)
    people = coded(table.column(several), verdicts[several]).rows
    clock = clock_of(people, clocks)
    return None if clock is None else Visits(several, people, clock)


def visits(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> Iterator[tuple[str, str]]:
    """Yield the column that orders the rows of an id, and what role it may have."""
    if (found := visits_of(table, columns, verdicts)) is not None:
        of, clock = scalar(columns[found.id].name), verdicts[found.clock].column
        role = "`role: time`" if clock.numeric else "`{type: real, role: time}`"
        yield clock.name, f"differs in all rows of each {of}: {role}, where {of} has `role: group`"
