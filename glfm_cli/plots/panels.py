"""Panels: one column's observed cells, its predictive distribution, and the values put in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.ticker import Formatter, FuncFormatter, Locator, MaxNLocator

import glfm_cli.plots.style as style
from glfm_cli.arrays import Array, step_of
from glfm_cli.completion import ColumnCompletion
from glfm_cli.encoding.data import EncodedColumn
from glfm_cli.exploration.words import quantity

MAX_LEVELS = 8  # bars of one panel
N_BINS = 24
WIDTH_LEVEL = 66.0  # points, of the name of a level

_AT_MOST_TICKS = 200
_LOG_RATIO = 20.0  # largest over smallest value from which a skewed column gets a log axis
_LARGEST = 1e100  # what is larger, or smaller than its inverse, is drawn as if it were that
_WIDTH_AXIS = 165.0  # points, of the narrowest axis
_BETWEEN_TICKS = 6.0  # points


def draw_numbers(axes: Axes, part: ColumnCompletion, predicted: Array) -> None:
    """Draw a numeric column: histogram, line and a tick for each value put in.

    predicted : (n,) float64; a sample that stands for the predictive distribution averaged over the
        completed cells
    """
    seen = part.encoded.x[part.encoded.observed]
    seen, predicted, put_in = (in_reach(x) for x in (seen, predicted, part.estimate))
    whole = part.encoded.column.integral
    logarithmic = prefers_log(seen, predicted, put_in)
    edges = edges_of(seen, predicted, put_in, whole=whole, logarithmic=logarithmic)
    if logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(ticks_of(part.encoded)[1])
        space_log_ticks(axes, edges)
    else:
        label_numbers(axes, part.encoded)
    if seen.size:
        axes.stairs(_shares(seen, edges), edges, fill=True, color=style.OBSERVED)
    axes.stairs(
        _shares(predicted, edges), edges, color=style.PREDICTED, linewidth=1.6, baseline=None
    )
    axes.plot(
        style.spread(np.sort(put_in), _AT_MOST_TICKS),
        np.full(min(put_in.size, _AT_MOST_TICKS), -0.045),
        linestyle="none",
        marker="|",
        markersize=6,
        markeredgewidth=0.8,
        color=style.PUT_IN,
        alpha=0.75,
        transform=axes.get_xaxis_transform(),
        clip_on=False,
    )
    axes.set_xlim(edges[0], edges[-1])
    axes.set_ylim(bottom=0)
    axes.tick_params(axis="x", pad=8)  # below the ticks of the values put in
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(FuncFormatter(style.percent))


def ticks_of(encoded: EncodedColumn, n: int = 5) -> tuple[Locator, Formatter]:
    """Return where an axis of a column's numbers is labelled, and how: dates are dates."""
    moments = encoded.column.moments
    if moments is None:
        return MaxNLocator(n, integer=encoded.column.integral), FuncFormatter(style.plain)
    if moments.kind == "date":
        days = AutoDateLocator(minticks=3, maxticks=n)
        return days, ConciseDateFormatter(days)
    short = np.ptp(encoded.x[encoded.observed]) < 6.0  # minutes: 15 and 30 s, else 15, 30, 60 min
    minutes = MaxNLocator(n, steps=[1, 2.5, 5, 10] if short else [1, 1.5, 3, 6, 10])
    return minutes, FuncFormatter(lambda value, _: quantity(encoded, value))


def label_numbers(axes: Axes, encoded: EncodedColumn) -> None:
    """Label the horizontal axis of a column's numbers."""
    locator, formatter = ticks_of(encoded)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(formatter)


def in_reach(x: Array) -> Array:
    """Return values brought to where the arithmetic of axes neither over- nor underflows."""
    size = np.clip(np.abs(x), 1 / _LARGEST, _LARGEST)
    return np.where(x == 0.0, 0.0, np.copysign(size, x))


def prefers_log(*samples: Array) -> bool:
    """Return whether values span so much, mostly at the low end, that a log axis shows more."""
    x = np.concatenate(samples)
    if not (x > 0).all():
        return False
    low, median, high = np.quantile(np.log10(x), [0.01, 0.5, 0.99])
    wide = high - low >= np.log10(_LOG_RATIO)
    return bool(wide and high - median >= (median - low) / 2)


def edges_of(
    seen: Array,
    predicted: Array,
    put_in: Array,
    *,
    whole: bool,
    logarithmic: bool,
    n_bins: int = N_BINS,
) -> Array:
    """Return the edges of bins over all observed values and nearly all of the predictive.

    Each bin has the same number of steps where observed values have a step, as rounded ones.
    """
    tails = np.quantile(predicted, [0.005, 0.995])
    every = np.concatenate([seen, put_in, tails])
    low, high = float(every.min()), float(every.max())
    if logarithmic:
        return np.geomspace(low, high, n_bins + 1)
    if whole:
        step = max(1.0, np.ceil((high - low + 1) / n_bins))
        needed = int(np.ceil((high - low + 1) / step))
        return low - 0.5 + step * np.arange(needed + 1)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        half = max(abs(low), 1.0) / 2
        return np.linspace(low - half, high + half, n_bins + 1)
    if step := step_of(seen):
        start = float(seen.min()) - step * (np.ceil((seen.min() - low) / step) + 0.5)
        each = step * np.ceil((high - start) / step / n_bins)
        return start + each * np.arange(int(np.ceil((high - start) / each)) + 1)
    return np.linspace(low, high, n_bins + 1)


def _shares(x: Array, edges: Array) -> Array:
    """Return the share of a sample in each bin; what lies beyond the last edges is in none."""
    return np.histogram(x, edges)[0] / max(x.size, 1)


def space_log_ticks(
    axes: Axes, edges: Array, position: Callable[[Array], Array] = np.log10
) -> None:
    """Label as many of 1, 2 and 5 times the powers of ten as have room beside one another.

    `position` is where a number stands on the axis; where that takes 0, 0 is labelled too.
    """
    low, high = float(edges[0]), float(edges[-1])
    first, last = int(np.floor(np.log10(low if low > 0 else 1.0))), int(np.ceil(np.log10(high)))
    choices = [((1, 2, 5), 1), ((1, 3), 1), *(((1,), step) for step in range(1, last - first + 2))]
    for factors, step in choices:
        ticks = [0.0] if low <= 0 else []
        ticks += [factor * 10.0**e for e in range(first, last + 1, step) for factor in factors]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if _have_room(ticks, position(edges[[0, -1]]), position):
            break
    axes.set_xticks(ticks)
    axes.minorticks_off()


def _have_room(ticks: Sequence[float], ends: Array, position: Callable[[Array], Array]) -> bool:
    """Return whether the labels of ticks do not touch on an axis between two positions."""
    at = position(np.array(ticks)) / (ends[1] - ends[0]) * _WIDTH_AXIS
    half = [style.width_of(style.plain(tick), style.PLAIN) / 2 for tick in ticks]
    needed = [a + b + _BETWEEN_TICKS for a, b in pairwise(half)]
    return bool((np.diff(at) >= needed).all())


def draw_levels(axes: Axes, part: ColumnCompletion) -> None:
    """Draw a level column: shares observed, predicted on average, and put in."""
    probabilities = part.marginal.probabilities
    assert probabilities is not None
    n_levels = len(part.encoded.levels)
    codes = part.encoded.x[part.encoded.observed].astype(int)
    shares = np.stack(
        [
            np.bincount(codes, minlength=n_levels) / max(codes.size, 1),
            probabilities.mean(axis=0),
            np.bincount(part.estimate.astype(int), minlength=n_levels) / part.estimate.size,
        ]
    )
    labels, shares = fewer(part.encoded.levels, shares, ordered=part.encoded.column.ordinal)
    at = np.arange(len(labels))
    axes.barh(at - 0.2, shares[0], 0.36, color=style.OBSERVED)
    axes.barh(at + 0.2, shares[1], 0.36, facecolor="none", edgecolor=style.PREDICTED, linewidth=1.4)
    axes.plot(
        shares[2],
        at + 0.2,
        linestyle="none",
        marker="|",
        markersize=9,
        markeredgewidth=1.8,
        color=style.PUT_IN,
        clip_on=False,
    )
    axes.set_yticks(at, labels)
    axes.set_ylim(-0.6, len(labels) - 0.4)
    style.bars_of_shares(axes, float(shares.max()))


def fewer(
    levels: Sequence[str], shares: Array, *, ordered: bool, most: int = MAX_LEVELS
) -> tuple[list[str], Array]:
    """Return at most `most` bars: neighbours of a scale, or the rarest levels, together.

    levels : (R,) str
    shares : (n, R) float64; of n groups; the rarest levels are those of the first two
    """
    n_levels = len(levels)
    if n_levels <= most:
        return style.distinct(levels, WIDTH_LEVEL, style.PLAIN), shares
    if ordered:
        cuts = np.linspace(0, n_levels, most + 1).round().astype(int)
        labels = [_run(levels[a:b], two_lines=most < MAX_LEVELS) for a, b in pairwise(cuts)]
        return labels, np.add.reduceat(shares, cuts[:-1], axis=1)
    order = np.argsort(-shares[:2].max(axis=0), kind="stable")
    kept, rest = np.sort(order[: most - 1]), order[most - 1 :]
    names = style.distinct([levels[r] for r in kept], WIDTH_LEVEL, style.PLAIN)
    labels = [*names, f"{rest.size} others"]
    return labels, np.column_stack([shares[:, kept], shares[:, rest].sum(axis=1)])


def _run(levels: Sequence[str], *, two_lines: bool) -> str:
    """Return a run of neighbouring levels as one label; wide bars have room for two lines."""
    if len(levels) == 1:
        return style.squeezed(levels[0], WIDTH_LEVEL, style.PLAIN)
    room = WIDTH_LEVEL - style.width_of(" to ", style.PLAIN)
    first, last = (
        style.squeezed(level, room if two_lines else room / 2, style.PLAIN)
        for level in (levels[0], levels[-1])
    )
    whole = f"{first} to {last}"
    fits = style.width_of(whole, style.PLAIN) <= WIDTH_LEVEL
    return whole if fits or not two_lines else f"{first}\nto {last}"
