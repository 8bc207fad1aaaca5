"""Which column orders the rows of a person: visits of a patient, waves of a survey."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LEAST_PEOPLE = 10  # of several rows


class Visits(NamedTuple):
    """Rows of people: the place of their id, whose each row is (n,), and the place of its time."""

    id: int
    people: NDArray[np.int64]
    clock: int


def shared(x: NDArray[np.float64], people: NDArray[np.int64]) -> float | None:
    """Return what share of the variance of x (n,), NaN where missing, lies between people.

    By analysis of variance; None where x does not differ within people, or hardly two are known.
    """
    there = ~np.isnan(x)
    _, person, n = np.unique(people[there], return_inverse=True, return_counts=True)
    free = person.size - n.size
    if n.size < LEAST_PEOPLE or free < LEAST_PEOPLE:
        return None
    left = x[there] - (np.bincount(person, x[there]) / n)[person]
    within = float(np.sum(left**2)) / free
    return 1.0 - within / float(np.var(x[there])) if within > 0.0 else None


def clock_of(
    people: NDArray[np.int64], clocks: Iterable[tuple[int, NDArray[np.int64]]]
) -> int | None:
    """Return the first column that is known everywhere, and differs in all rows of each person.

    people : (n,) whose row it is, from 0;  clocks : places, and which value rows have, -1 of none
    """
    if people.min() < 0 or np.count_nonzero(np.bincount(people) > 1) < LEAST_PEOPLE:
        return None
    for place, value in clocks:
        pairs = np.stack([people, value], axis=1)
        several = np.unique(value).size > 1 and value.min() >= 0
        if several and np.unique(pairs, axis=0).shape[0] == people.size:
            return place
    return None
