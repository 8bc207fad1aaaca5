"""What rows share by groups and in time: how much of each column it moves, and the series.

Each part of a latent number counts with the variance over the rows of what it adds: of a column

    share of part = sum over its latent columns of variance of part / sum of those of all parts,

noise with its own, averaged over draws. A series that moves one column alone cannot be told from
its own; what others tell can: the squared multiple correlation that series give a column with all
others at the same time. Series that columns share are told apart in a draw by no
more than how long they last: turned, they say nearly the same. What can be averaged is what they
do to the columns, in sds of these, all parts together,

    X_t = g L / sd,    M = mean over draws of X_t = sum over c of d_c u_c v_c',

u_c and v_c of length 1: those shown are the principal components of M, the largest first, each
pointed to where the column that it moves most is high, and scaled to variance 1 over the rows. Of
a draw, X_t v_c sqrt(N) / d_c is that series, X_t' u_c / sqrt(N) its loadings: how many sds a column
moves for one sd of the series. Their squares add up, but for what draws do not share, to the share
of all series. Two that are of about one size may be turned by chance: `stability` says whether
chains, each by itself, find the same. What X_t does to two columns,
their covariance X_t' X_t / N, depends on no turn: it is the part of their correlation that is due
to series.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array, Groups
from glfm_cli.encoding import Data, EncodedColumn
from glfm_cli.exploration.latent_columns import latent_columns
from glfm_cli.exploration.lowrank import told_by_others
from glfm_cli.inference.posterior import Posterior
from glfm_cli.latent.capabilities import Components, RowParts, RowsTogether

SHARED, OWN, GROUPS = "shared series", "own series", "groups"
MOST_DRAWS = 200
STABLE = 0.9
LEAST = 1e-9  # of a column's variance, that is its own
BLOCK = 1024  # times whose draws are held at once
BANDS = (0.025, 0.25, 0.75, 0.975)


@dataclass(frozen=True)
class SharedSeries:
    """A series that columns share; its variance over the rows is 1.

    share, share_sd : of what all series do to the columns, over draws
    stability : mean correlation of what two chains find by themselves; NaN of one chain
    loading, loading_sd : (S,) sds that a latent column moves for one of the series
    mean : (M,) at the times;  bands : (4, M) where the middle 50 and 95 % of the draws lie
    """

    name: str
    share: float
    share_sd: float
    stability: float
    loading: Array
    loading_sd: Array
    mean: Array
    bands: Array

    @property
    def stable(self) -> bool:
        """Whether chains agree on it, or there is one alone."""
        return not self.stability < STABLE

    def leading(self) -> list[int]:
        """Return the latent columns that it surely moves, those most surely moved first."""
        surely = np.abs(self.loading) - 2.0 * self.loading_sd
        return [int(s) for s in np.argsort(-surely, kind="stable") if surely[s] > 0.0]


@dataclass(frozen=True)
class SharedByRows:
    """What rows share, and how much of each column that moves.

    names : (D,) of columns;  parts : (P,) names;  share, share_sd : (D, P) of their variances
    in_time : means and sds (D,) of the shares of both kinds of series together
    told, told_sd : (D,) what others tell, by the series
    columns : names and levels of the latent columns;  span : (D,) of each
    together, together_sd : (S, S) covariances that series give latent columns of variance 1
    series : those surely there;  clock : the column of time;  labels : of groups
    rows : (M,) one a time and group;  code : (M,) of groups, by which they are in order
    """

    names: tuple[str, ...]
    parts: tuple[str, ...]
    share: Array
    share_sd: Array
    in_time: tuple[Array, Array]
    told: Array
    told_sd: Array
    columns: pa.Table
    together: Array
    together_sd: Array
    series: tuple[SharedSeries, ...]
    clock: EncodedColumn | None
    labels: tuple[str, ...]
    rows: Array
    code: Array

    @property
    def cautions(self) -> tuple[str, ...]:
        """What keeps the series from being the only ones."""
        loose = [one.name for one in self.series if not one.stable]
        if not loose:
            return ()
        names = f"{', '.join(loose[:-1])} and {loose[-1]} are" if loose[1:] else f"{loose[0]} is"
        return (
            f"{names} not the same in all chains: the joint effect of all series is more certain "
            "than which of them has it",
        )


class SeriesOfDraw(NamedTuple):
    """g (N, K) less its mean, and what it does to columns, in sds of these (K, S)."""

    g: Array
    L: Array


class SharedOfDraw(NamedTuple):
    """The shares (D, 5) of parts, what others tell (D,), and the series."""

    share: Array
    told: Array
    series: SeriesOfDraw


def shared_by_rows(posterior: Posterior, data: Data) -> SharedByRows | None:
    """Return what rows share, None where neither groups nor time say what belongs together.

    Or where no column but the time is modelled.
    """
    model, groups = posterior.model, data.groups
    if groups is None or not isinstance(model, RowsTogether):
        return None
    few = posterior.thinned(MOST_DRAWS)
    spans = {d: np.arange(*span) for d, span in enumerate(posterior.spans) if d != groups.clock}
    every = np.array([d for d, span in spans.items() if span.size])
    if not every.size:  # nothing but the time
        return None
    at = np.concatenate([spans[d] for d in every])
    width = np.array([spans[d].size for d in every])
    owner, ends = np.repeat(np.arange(every.size), width), np.cumsum(width)
    own_spans = list(zip((ends - width).tolist(), ends.tolist(), strict=True))
    found = [
        of_draw(model.row_parts(draw.latent), every[owner], own_spans) for draw in few.draws()
    ]
    share, told = (np.array([getattr(one, name) for one in found]) for name in ("share", "told"))
    draws = [one.series for one in found]
    of_model = "components" if isinstance(model, Components) else "features"
    names = SHARED, OWN, GROUPS, of_model, "noise"
    there = {SHARED: groups.time is not None, OWN: groups.time is not None, GROUPS: groups.n > 0}
    kept = [there.get(name, True) for name in names]
    table, upward = latent_columns(data.columns, posterior.links)
    moved = np.array([draw.L.T @ (draw.g.T @ draw.g / len(draw.g)) @ draw.L for draw in draws])
    rows, code = _times(groups)
    both = share[:, :, :2].sum(axis=2)
    lengths = [len(chain) for chain in few.chains]
    return SharedByRows(
        names=tuple(data.columns[d].column.name for d in every),
        parts=tuple(name for name, one in zip(names, kept, strict=True) if one),
        share=share.mean(axis=0)[:, kept],
        share_sd=share.std(axis=0)[:, kept],
        in_time=(both.mean(axis=0), both.std(axis=0)),
        told=told.mean(axis=0),
        told_sd=told.std(axis=0),
        columns=table.take(pa.array(at)),
        together=moved.mean(axis=0),
        together_sd=moved.std(axis=0),
        series=series_of(draws, lengths, 1.0 / np.sqrt(width[owner]), upward[at], rows),
        clock=None if groups.clock is None else data.columns[groups.clock],
        labels=groups.labels,
        rows=rows,
        code=code,
    )


def of_draw(parts: RowParts, column: Array, spans: Sequence[tuple[int, int]]) -> SharedOfDraw:
    """Return what one draw says.

    column : (S,) whose noise each latent column has;  spans : of the columns, of these
    """
    added = parts.g @ parts.loading, parts.own, parts.groups, parts.rest
    variance = np.array([*(part.var(axis=0) for part in added), parts.noise[column]])
    size, starts = variance.sum(axis=0), [start for start, _ in spans]
    of_columns = np.add.reduceat(variance, starts, axis=1).T
    series = SeriesOfDraw(parts.g - parts.g.mean(axis=0), parts.loading / np.sqrt(size))
    alone = np.maximum(1.0 - variance[0] / size, LEAST)
    told = told_by_others(series.g, series.L.T, alone, spans)
    return SharedOfDraw(
        of_columns / of_columns.sum(axis=1, keepdims=True),
        np.add.reduceat(told, starts) / np.diff(spans)[:, 0],
        series,
    )


def _times(groups: Groups) -> tuple[Array, Array]:
    """Return one row (M,) of each time of a group, in order, and its group."""
    time = np.zeros(0) if groups.time is None else groups.time
    both = np.column_stack([groups.code[: time.size], time])
    rows = np.unique(both, axis=0, return_index=True)[1]
    return rows, groups.code[rows]


def _principal(M: Array, most: int) -> tuple[Array, Array, Array]:
    """Return d (C,), u (N, C) and v (S, C) of the largest principal components of M."""
    values, vectors = np.linalg.eigh(M.T @ M)
    d = np.sqrt(np.maximum(values[::-1][:most], 0.0))
    v = vectors[:, ::-1][:, :most]
    return d, M @ v / np.maximum(d, np.finfo(float).tiny), v


def series_of(
    draws: Sequence[SeriesOfDraw], lengths: Sequence[int], weight: Array, upward: Array, rows: Array
) -> tuple[SharedSeries, ...]:
    """Return the series that draws, those of chains of these lengths, surely have.

    weight : (S,) by which latent columns count: those of one column together as much as one
    upward : (S,) 1, or -1 where a high latent number is a low value
    """
    N, K = draws[0].g.shape
    if not K:
        return ()
    first, each = 0, []
    for n in lengths:
        each.append(weight * np.sum([x.g @ x.L for x in draws[first : first + n]], axis=0))
        first += n
    d, u, v = _principal(np.sum(each, axis=0) / len(draws), K)
    both = list(zip(draws, (x.L * weight for x in draws), strict=True))
    sizes = np.array([np.sum((u.T @ x.g) * (L @ v).T, axis=1) for x, L in both])
    whole = np.array([np.sum((x.g.T @ x.g) * (L @ L.T)) for x, L in both])
    sure = np.flatnonzero(sizes.mean(axis=0) > 2.0 * sizes.std(axis=0))
    stability = _stability(u[:, sure], [_principal(one, K)[1] for one in each])
    loading = upward * np.array([(u[:, sure].T @ x.g) @ x.L for x in draws]) / np.sqrt(N)
    mean = loading.mean(axis=0)
    lead = np.take_along_axis(mean, np.argmax(np.abs(mean), axis=1)[:, None], axis=1)
    sign = np.where(lead[:, 0] < 0.0, -1.0, 1.0)
    turn = weight[:, None] * v[:, sure] * (sign * np.sqrt(N) / d[sure])
    means, bands = _in_time(draws, turn, rows)
    share = sizes[:, sure] ** 2 / whole[:, None]
    return tuple(
        SharedSeries(
            name=f"S{c + 1}",
            share=float(share[:, c].mean()),
            share_sd=float(share[:, c].std()),
            stability=float(stability[c]),
            loading=sign[c] * mean[c],
            loading_sd=loading[:, c].std(axis=0),
            mean=means[c],
            bands=bands[:, c],
        )
        for c in range(sure.size)
    )


def _stability(u: Array, each: Sequence[Array]) -> Array:
    """Return the mean |correlation| (C,) of what two chains have that is most like each u (N, C).
    """
    if len(each) < 2:
        return np.full(u.shape[1], np.nan)
    found = []
    for c in range(u.shape[1]):
        own = np.array([one[:, np.argmax(np.abs(u[:, c] @ one))] for one in each])
        between = np.abs(own @ own.T)
        found.append(between[np.triu_indices(len(each), 1)].mean())
    return np.array(found)


def _in_time(draws: Sequence[SeriesOfDraw], turn: Array, rows: Array) -> tuple[Array, Array]:
    """Return means (C, M) of the series g L turn at some rows, and their bands (4, C, M)."""
    by = [draw.L @ turn for draw in draws]
    means, bands = np.empty((turn.shape[1], rows.size)), np.empty((4, turn.shape[1], rows.size))
    for start in range(0, rows.size, BLOCK):
        at = rows[start : start + BLOCK]
        here = np.array([draw.g[at] @ one for draw, one in zip(draws, by, strict=True)])
        means[:, start : start + BLOCK] = here.mean(axis=0).T
        quantiles = np.quantile(here, BANDS, axis=0)
        bands[:, :, start : start + BLOCK] = np.moveaxis(quantiles, 1, 2)
    return means, bands
