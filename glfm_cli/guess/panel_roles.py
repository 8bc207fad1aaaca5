"""Roles group and time of tables whose rows are visits: of patients, firms, stations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from glfm_cli.guess.dependence import numbers_of
from glfm_cli.guess.hints.visits import visits_of
from glfm_cli.guess.panels import shared
from glfm_cli.guess.profile import Profile
from glfm_cli.guess.series import NUMBERS
from glfm_cli.guess.verdict import Verdict
from glfm_cli.schema import Role

CELLS = 40_000  # of tables with more the model takes many minutes
VISITS = 3  # of a person, on average
SHARED = 0.3  # of the variance, from which on rows of a person tell of each other


def as_panel(
    table: pa.Table, columns: Sequence[Profile], verdicts: Sequence[Verdict]
) -> list[Verdict]:
    """Return the verdicts, an id and what orders its rows with roles where rows of one are alike.

    That is, where numbers differ between ids, in the middle of all columns.
    """
    found = list(verdicts)
    too_many = table.num_rows * table.num_columns > CELLS
    if too_many or any(one.column.role is Role.TIME for one in found):
        return found
    visits = visits_of(table, columns, verdicts)
    if visits is None or not verdicts[visits.clock].column.numeric:
        return found
    if visits.people.size < VISITS * (visits.people.max() + 1):
        return found
    shares = [
        share
        for i, one in enumerate(verdicts)
        if one.column.type in NUMBERS and i != visits.clock and not one.column.moment
        if (share := shared(numbers_of(table.column(i), columns[i].written), visits.people))
        is not None
    ]
    if not shares or np.median(shares) <= SHARED:
        return found
    of, clock = verdicts[visits.id].column, verdicts[visits.clock]
    why = "several rows of each, whose numbers are alike; `id` leaves it out of the model"
    found[visits.id] = Verdict(replace(of, role=Role.GROUP), why)
    why = f"{clock.reason}; differs in all rows of each {of.name}"
    found[visits.clock] = Verdict(replace(clock.column, role=Role.TIME), why)
    return found
