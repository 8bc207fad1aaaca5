"""Which columns say something of a group of rows: the size of a school, the area of a catchment."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEAST_EXPECTED = 10.0  # groups whose values would differ by chance, where in fact none do
LEAST_GROUPS = 3  # of several rows, if they are fewer
LEAST_UNLIKELY = 25.0  # minus the logarithm of the chance, if groups are few


def is_group_level(x: NDArray[np.float64], code: NDArray[np.int64]) -> bool:
    """Return whether values (N,), NaN where unknown, never differ in a group, and not by chance.

    Of n values drawn from all, with shares p_r, all are the same with probability sum_r p_r^n; so
    many groups must be expected to differ that none by chance is beyond belief (exp(-10)). A few
    groups are enough where nearly each has a value of its own, and the chance is exp(-25).
    """
    known = ~np.isnan(x)
    values, of_row = np.unique(x[known], return_inverse=True)
    if values.size < 2:
        return False
    _, group, size = np.unique(code[known], return_inverse=True, return_counts=True)
    of_group = np.empty(size.size, dtype=of_row.dtype)
    of_group[group] = of_row  # of those of a group one, which all must be
    if np.any(of_row != of_group[group]):
        return False
    p = np.bincount(of_row) / of_row.size
    sizes, n_groups = np.unique(size, return_counts=True)
    alike = np.array([np.sum(p**n) for n in sizes])
    if np.sum(n_groups * (1.0 - alike)) >= LEAST_EXPECTED:
        return True
    several = int(np.count_nonzero(size > 1))
    own = values.size >= LEAST_GROUPS and 2 * values.size > size.size
    unlikely = -np.sum(n_groups * np.log(np.maximum(alike, np.finfo(float).tiny)))
    return bool(several >= LEAST_GROUPS and own and unlikely >= LEAST_UNLIKELY)


def without_value(there: NDArray[np.bool_], code: NDArray[np.int64]) -> bool:
    """Return whether some group of several rows has a value in none of them.

    there : (n,) which rows have a value;  code : (n,) of which group they are, from 0
    """
    rows, known = np.bincount(code), np.bincount(code, weights=there)
    return bool(np.any((rows > 1) & (known == 0)))
