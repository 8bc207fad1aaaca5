"""Which margin a numeric column gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import glfm_cli.links.margins as margins
from glfm_cli.arrays import Array
from glfm_cli.errors import SchemaError, TableError
from glfm_cli.links.censored import is_log_normal
from glfm_cli.links.config import LinkConfig
from glfm_cli.links.shapes import Identity, Log, Log1p, Logit, Shape, Sqrt
from glfm_cli.schema import Column, Role, Transform

if TYPE_CHECKING:
    from glfm_cli.encoding import EncodedColumn

DOMAINS = {
    Transform.LOG: "values above 0",
    Transform.LOG1P: "values above -1",
    Transform.LOGIT: "values strictly between the bounds",
    Transform.SQRT: "values of 0 or more",
}

# Of a positive column that is seen by its logarithm: values, their sd, skewness and kurtosis, and
# the share of the commonest value.
FEWEST_FOR_LOG, LEAST_LOG_SD, LOG_SKEWNESS, LOG_KURTOSIS, MOST_TIED = 150, 0.5, 0.25, 6.0, 0.05


def wants_rank(column: Column, x: Array, config: LinkConfig) -> bool:
    """Return True for `transform: rank`, and by itself for skewed, flat or constant columns.

    Of a flat or two-humped column a normal forecast's central half covers far less than half. Not
    so dates: those of several seasons lie in clusters, between which ranks see no gap, and a few
    ranks beyond the end of one season are most of a year; role time is never completed. A constant
    column has no scale to learn; ranks keep its completions at the constant.
    """
    if column.transform is not None:
        return column.transform is Transform.RANK
    constant = x.size > 1 and float(x.min()) == float(x.max())
    completed = column.moment == "date" and column.role is not Role.TIME
    flat = not completed and margins.standard_moment(x, 4) < config.rank_kurtosis
    return constant or flat or abs(margins.standard_moment(x, 3)) > config.rank_skewness


def wants_log(column: Column, x: Array, config: LinkConfig) -> bool:
    """Return True for positive columns that spread far and whose logarithms look normal.

    Ranks bend the scale where the largest values thin out, and with it the noise: of values over
    several orders of magnitude, means of the largest cells came out far too large.

    x : (n,), all above 0
    """
    if column.transform is not None or column.reflect is not None or x.size < FEWEST_FOR_LOG:
        return False
    v = np.log(x)
    tied = np.unique(x, return_counts=True)[1].max() > MOST_TIED * x.size
    if tied or margins.mean_sd(v)[1] < LEAST_LOG_SD:
        return False
    skewness, kurtosis = (margins.standard_moment(v, k) for k in (3, 4))
    normal = abs(skewness) < LOG_SKEWNESS and config.rank_kurtosis <= kurtosis < LOG_KURTOSIS
    return wants_rank(column, x, config) and normal


def has_hidden_tail(encoded: EncodedColumn, config: LinkConfig) -> bool:
    """Return True for columns cut off above, such as by `>60000`, that are normal by logarithm.

    The values that are left look less skewed than the column is.
    """
    column, ends = encoded.column, encoded.ends
    if column.transform is not None or column.reflect is not None or ends is None:
        return False
    if column.missingness is not None:
        return False
    if np.isinf(config.rank_skewness) or not np.isinf(ends[:, 1]).any():
        return False
    low, high = encoded.cells.T + float(column.integral)
    # Above 0, or at 0 or above of counts, is any number: nothing is known of such a cell.
    zeros, there = np.any(high == 0.0), np.isfinite(high) | (low > float(column.integral))
    return not zeros and is_log_normal(low[there], high[there])


def choose_margin(
    column: Column,
    sample: Array,
    own: Shape,
    *,
    rank: bool,
    rows: Array,
    n_below: int = 0,
    integers: bool = False,
    intervals: bool = False,
) -> margins.Margin:
    """Return the calibrated margin of a numeric column.

    column : `transform`, `reflect` and `bounds` are read
    sample : (n,) float64; observed values; for counts the integers themselves
    own : the shape of the column's type, used without a transform
    rank : use the empirical distribution instead of a shape
    rows : (n,) int; table rows of the sample, counted from 0, for messages
    n_below : cells known only to lie below the sample (zeros of a positive column)
    integers : the values are integers, and g is wanted at the cut points between them
    intervals : some of the sample stand for intervals, of which ranks know nothing: a column of
        them that ranks are asked for is seen by its logarithm, where that is defined

    Raises TableError: a value lies outside the domain of the transform; names row, column and
        value; SchemaError: ranks are asked for of a column with intervals.
    """
    if rank and intervals:
        if column.transform is Transform.RANK:
            raise SchemaError(
                "`transform: rank` does not go with cells that are intervals, such as <0.5",
                column=column.name,
                hint="Use another transform, such as log, or leave it out.",
            )
        own = Log1p() if integers else Log() if column.positive else own
    elif rank and sample.size:
        # Ranks come out the same whichever way they are read, so `reflect` changes nothing.
        return (
            margins.count_rank_margin(sample) if integers else margins.rank_margin(sample, n_below)
        )
    shape = transform_shape(column, own, integers)
    # A count stands for the interval up to the next one: calibrate at its middle.
    points = sample + 0.5 if integers else sample
    if n_below:
        points = np.concatenate([np.full(n_below, 0.5 * float(sample.min())), points])
    if column.reflect is None or isinstance(shape, Identity):
        margin: margins.Margin = margins.Smooth.calibrate(shape, points)
    else:
        margin = margins.Reflected(
            margins.Smooth.calibrate(shape, column.reflect - points), column.reflect
        )
    _check_domain(column, shape, sample, points[n_below:], rows)
    return margin


def transform_shape(column: Column, own: Shape, integers: bool) -> Shape:
    """Return the shape that `transform` names, or the type's own."""
    match column.transform:
        case Transform.LOG:
            return Log()
        case Transform.LOG1P:
            return Log1p()
        case Transform.SQRT:
            return Sqrt()
        case Transform.LOGIT:
            return _logit(column, integers)
        case _:
            return own


def _logit(column: Column, integers: bool) -> Logit:
    low, high = column.bounds
    if integers and high is None:
        raise SchemaError(
            "`transform: logit` of a count needs an upper bound",
            column=column.name,
            hint="Give `bounds: [lowest, highest]`, or use another transform.",
        )
    if column.reflect is not None:
        low, high = (
            None if high is None else column.reflect - high,
            None if low is None else column.reflect - low,
        )
    bottom = 0.0 if low is None else float(low)
    top = 1.0 if high is None else float(high)
    if integers and column.reflect is None:
        top += 1.0
    elif integers:
        bottom -= 1.0
    if not bottom < top:
        raise SchemaError(
            "`transform: logit` needs a lower bound below the upper one (0 and 1 if left out)",
            column=column.name,
            value=f"[{bottom:g}, {top:g}]",
            hint="Give both ends as `bounds: [lowest, highest]`.",
        )
    return Logit(bottom, top)


def _check_domain(column: Column, shape: Shape, sample: Array, points: Array, rows: Array) -> None:
    """Raise if a calibration point lies outside the domain of the shape."""
    low, high = shape.domain
    v = points if column.reflect is None else column.reflect - points
    closed = isinstance(shape, Sqrt)
    bad = np.flatnonzero(~(((v >= low) if closed else (v > low)) & (v < high)))
    if bad.size == 0:
        return
    transform = column.transform
    expected = DOMAINS.get(transform, "values above 0") if transform else "values above 0"
    if column.reflect is not None:
        expected += f" after reflection, {column.reflect:g} - value"
    raise TableError(
        column=column.name,
        row=int(rows[bad[0]]) + 1,
        value=f"{sample[bad[0]]:g}",
        expected=f"{expected} (transform: {transform or 'none'})",
        hint=f"Use another `transform` for '{column.name}', or give the value as missing.",
    )
