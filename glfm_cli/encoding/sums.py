"""What a formula says without the rounding of its numbers, and sums that their known parts fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.encoding.data import EncodedColumn, Mask
from glfm_cli.encoding.obeyed import can_hold
from glfm_cli.encoding.related import Relation

ROUNDED = 1e-14  # of each number of a formula: what doubles, and sums of them, are rounded by
NEAR = 0.05  # of that, within which a number of fewer digits is meant
CANCELLED = 1e-12  # of a result, from which on the rounding of the numbers shows in it
MOST_PLACES = 12


def without_rounding(
    value: Callable[[Mapping[str, Array]], Array], numbers: Mapping[str, Array]
) -> Array:
    """Return what a function of numbers says, without digits that their rounding may be all of.

    So 100 - 59.9 - 17.3 - 17.9 - 4.9 is 0, and not -4e-15, and the minutes between two dates, each
    in days, are 109, and not 109.0000000043.
    """
    x, slack = value(numbers), 0.0
    with np.errstate(all="ignore"):
        for name, number in numbers.items():
            slack = slack + np.abs(value({**numbers, name: number * (1.0 + ROUNDED)}) - x)
        near = NEAR * slack
        places = 10.0 ** np.clip(np.floor(-np.log10(2.0 * near)), 0.0, MOST_PLACES)
        short = np.rint(x * places) / places
        noisy = (np.abs(x - short) <= near) & (near > CANCELLED * np.abs(x))
        return np.where(np.abs(x) <= slack, 0.0, np.where(noisy, short, x))


def left_for_parts(columns: Sequence[EncodedColumn], one: Relation) -> Array:
    """Return what known parts (N,) leave of a known sum, where a part is missing; NaN elsewhere.

    Only of sums of parts that may all be 0, and not less.
    """
    zero = np.zeros(1)
    if not one.is_sum or not all(
        can_hold(columns[d], zero)[0] and not can_hold(columns[d], zero - 1e-300)[0] for d in one.of
    ):
        return np.full(columns[one.d].x.size, np.nan)
    parts = {str(d): np.nan_to_num(columns[d].given) for d in one.of}
    missing = np.any([np.isnan(columns[d].given) for d in one.of], axis=0)
    sums = {"": columns[one.d].given, **parts}
    left = without_rounding(lambda x: 2.0 * x[""] - np.sum(list(x.values()), axis=0), sums)
    return np.where(missing, left, np.nan)


def empty_parts(columns: Sequence[EncodedColumn], one: Relation) -> dict[int, Mask]:
    """Return by column the missing parts (N,) of sums of which known parts leave nothing: all 0."""
    with np.errstate(invalid="ignore"):
        nothing = left_for_parts(columns, one) <= 0.0
    return {d: nothing & np.isnan(columns[d].given) for d in one.of} if nothing.any() else {}
