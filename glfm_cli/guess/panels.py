"""Which column orders the rows of a person: visits of a patient, waves of a survey."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

LEAST_PEOPLE = 10  # of several rows


def clock_of(
    people: NDArray[np.int64], clocks: Iterable[tuple[str, NDArray[np.int64]]]
) -> str | None:
    """Return the first column that is known everywhere, and differs in all rows of each person.

    people : (n,) whose row it is, from 0;  clocks : names, and which value rows have, -1 of none
    """
    if people.min() < 0 or np.count_nonzero(np.bincount(people) > 1) < LEAST_PEOPLE:
        return None
    for name, value in clocks:
        pairs = np.stack([people, value], axis=1)
        several = np.unique(value).size > 1 and value.min() >= 0
        if several and np.unique(pairs, axis=0).shape[0] == people.size:
            return name
    return None
