"""The map of the rows: where a model puts them, how sure that is, and what columns are there.

Of a model that gives rows places (`Map`), the restart that its weights prefer draws the map; the
others tell how far the map depends on the start. What a column is at a place is described by its
masses: of a column with an order F, the probabilities to lie below its levels or its quantiles, of
another the probabilities of its levels, p. How much of it is explained: `map_explained`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.spatial import KDTree

from glfm_cli.arrays import Array
from glfm_cli.completion.estimates import point
from glfm_cli.encoding import Data, EncodedColumn
from glfm_cli.exploration.frame import (
    Embedding,
    Frame,
    agreement,
    frame_of,
    shared_neighbours,
    weighted,
)
from glfm_cli.exploration.map_result import (
    MapColumn,
    Oddity,
    Restart,
    RowMap,
    Surface,
)
from glfm_cli.exploration.scales import Scale, scale_of
from glfm_cli.exploration.words import percent, quantity, value_text
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.predictive import Marginal, predict
from glfm_cli.inference.scoring import log_scores
from glfm_cli.latent.capabilities import Map
from glfm_cli.links import RowsLaw

BINS = 16
STEP = 0.05  # along an axis, for what a column does there
SURFACES = 6  # columns that have one where none is named
LOOKED_AT = 2000  # rows by which columns are described
SIDE = 48  # places along a side of a surface
MARGIN = 0.09  # of the map's side, around the rows
NEAR = 0.09  # of the map's side, from a row: how far a surface is known
NARROW = 16  # columns of a table at most whose rows are laid out by cells; others by places
ODD = 3.0  # nats below the column's mean, of a cell that is unusual
MOST_ODD = 3  # cells of a row
QUANTILES = (0.025, 0.5, 0.975)
FORTIETHS = tuple(i / 40 for i in range(1, 40))


@dataclass(frozen=True)
class RowsOnMap:
    """Rows that are shown on a map: under draws where they lie, and those that made the map.

    rows : the draws under which the rows lie;  base : those of the table that the map was made of
    data : that table; None where it is not known any more
    """

    rows: Posterior
    base: Posterior
    data: Data | None

    @property
    def model(self) -> Map:
        """The model, as one that has a map."""
        return cast(Map, self.base.model)

    @property
    def draw(self) -> Draw:
        """The draw by which the map is made."""
        return self.base.chains[0][-1]


def scales_of(base: Posterior, data: Data) -> tuple[Scale, ...]:
    """Return the scales by which columns are described."""
    return tuple(
        scale_of(d, encoded, base.links[d], base.spans[d], BINS)
        for d, encoded in enumerate(data.columns)
    )


def map_of(
    placed: RowsOnMap,
    data: Data,
    explained: Array,
    color: str | None,
    columns: Sequence[str] | None,
) -> RowMap:
    """Return the map of some rows; it explains the shares `explained` (D,) of the columns."""
    model, base, draw = placed.model, placed.base, placed.draw
    scales = scales_of(base, data)
    (x, cov), relevances = model.places(draw.latent), model.relevances(draw.latent)
    told = _told(placed.rows, data)
    cells = None
    if placed.data is not None and len(scales) <= NARROW:
        base_told = told if placed.rows is base else _told(base, placed.data)
        cells = _cells(base, base_told, placed.data)
    frame = frame_of(x, weighted(x, cov, relevances), _pointers(placed, x, scales), cells)
    base_u = position = frame.shown(x)
    if placed.rows is not base:
        x_rows, cov = model.places(placed.rows.chains[0][-1].latent)
        position = frame.shown(x_rows)
    described = [_column(placed, scale, frame, x, explained[scale.d]) for scale in scales]
    ranked = sorted(described, key=lambda one: -one.explained)
    of = {scale.name: scale.d for scale in scales}
    shown = [one.d for one in ranked[:SURFACES]] if columns is None else [of[n] for n in columns]
    restarts, stability = _restarts(placed)
    values, completed = _values(placed.rows, told, data)
    return RowMap(
        frame=frame,
        relevances=relevances,
        base=base_u,
        position=position,
        covariance=frame.covariance(x if placed.rows is base else x_rows, cov),
        stability=stability,
        restarts=restarts,
        scales=scales,
        columns=tuple(ranked),
        color=ranked[0].d if color is None else of[color],
        values=values,
        completed=completed,
        odd=_odd(placed.rows, scales),
        surfaces=tuple(_surface(placed, scales[d], frame, base_u) for d in shown),
    )


def _pointers(placed: RowsOnMap, x: Array, scales: Sequence[Scale]) -> list[Array]:
    """Return what axes are pointed by: what each column with an order follows at its row's place.

    Where none has an order, the probability of each one's first level.
    """
    law, params = placed.model.law_at(placed.draw.latent, x), placed.draw.params
    ordered = [scale for scale in scales if scale.ordered] or scales
    return [scale.link.expected(law.column(scale.d), params[scale.d]) for scale in ordered]


def _column(
    placed: RowsOnMap, scale: Scale, frame: Frame | Embedding, x: Array, explained: float
) -> MapColumn:
    """Return what the map says of a column: by some of its rows, each at its place."""
    some = np.linspace(0, x.shape[0] - 1, min(LOOKED_AT, x.shape[0])).round().astype(np.intp)
    u = frame.shown(x[some])

    def masses(at: Array) -> Array:
        moved = x[some] + frame.places(at) - frame.places(u)
        law = placed.model.law_at(placed.draw.latent, moved).column(scale.d)
        p = scale.link.masses(scale.at, law, placed.draw.params[scale.d])
        return np.cumsum(p, axis=1)[:, :-1] if scale.ordered else p

    effect, towards = np.zeros(2), []
    for axis in range(2):
        step = STEP * np.eye(2)[axis]
        change = (masses(u + step) - masses(u - step)) / (2.0 * STEP)
        effect[axis] = u[:, axis].std() * np.abs(change).sum(axis=1).mean()
        towards.append(_towards(scale, change.mean(axis=0)))
    along = effect / effect.sum() if effect.sum() > 0.0 else np.full(2, 0.5)
    first, second = towards
    return MapColumn(scale.d, scale.name, float(explained), along, (first, second))


def _towards(scale: Scale, change: Array) -> str:
    """Return what a column is more of, by the mean change (G,) of its masses along an axis."""
    if scale.ordered:
        return "higher" if change.sum() <= 0.0 else "lower"  # less lies below
    return scale.encoded.levels[int(np.argmax(change))] if change.size else ""


def _restarts(placed: RowsOnMap) -> tuple[tuple[Restart, ...], Array]:
    """Return how the places of all restarts compare with those shown, and the rows' stability."""
    model, found, shares = placed.model, [], []
    weights = placed.base.weights or [1.0 / len(placed.base.chains)] * len(placed.base.chains)
    for i, (base, rows) in enumerate(zip(placed.base.chains, placed.rows.chains, strict=True)):
        latent, trace = base[-1].latent, base[-1].trace
        x, cov = model.places(latent)
        scale = weighted(x, cov, model.relevances(latent))
        other = x * scale
        at = other if rows is base else model.places(rows[-1].latent)[0] * scale
        if i == 0:
            first, first_at = other, at
        kept = shared_neighbours(first, other, first_at, at)
        if i:
            shares.append(kept)
        found.append(
            Restart(
                float(trace.get("score", np.nan)),
                float(weights[i]),
                agreement(first, other),
                float(kept.mean()),
            )
        )
    stability = np.mean(shares, axis=0) if shares else np.full(first_at.shape[0], np.nan)
    return tuple(found), stability


def _told(posterior: Posterior, data: Data) -> dict[int, Marginal]:
    """Return what is forecast of missing cells, by column."""
    missing = {d: np.flatnonzero(~e.observed) for d, e in enumerate(data.columns)}
    return predict(posterior, {d: rows for d, rows in missing.items() if rows.size}, QUANTILES)


def _cells(posterior: Posterior, told: Mapping[int, Marginal], data: Data) -> Array:
    """Return the completed table as numbers (N, S), the variances of a column's adding up to 1.

    Numbers as they are to the model; of levels without an order, their probabilities.
    """
    parts = []
    for d, encoded in enumerate(data.columns):
        rows = told[d].rows if d in told else np.zeros(0, dtype=np.intp)
        if encoded.column.nominal:
            y = np.equal(encoded.x[:, None], np.arange(len(encoded.levels))).astype(np.float64)
            y[rows] = told[d].probabilities if rows.size else 0.0
        else:
            link, x = posterior.links[d], encoded.x.copy()
            if rows.size:
                x[rows] = told[d].mean if link.discrete else told[d].quantiles[:, 1]
            y = x[:, None] if link.discrete else link.start(x)[1]
        y = y - y.mean(axis=0)
        size = np.sqrt(np.mean(np.sum(y * y, axis=1)))
        parts.append(y / size if size > 0.0 else y)
    return np.hstack(parts)


def _values(
    posterior: Posterior, told: Mapping[int, Marginal], data: Data
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return per column its cells (N,), completed where missing, and which were."""
    values = [encoded.x.copy() for encoded in data.columns]
    for d, marginal in told.items():
        values[d][marginal.rows] = point(posterior.links[d], marginal, "auto")
    return tuple(values), tuple(~encoded.observed for encoded in data.columns)


def _odd(posterior: Posterior, scales: Sequence[Scale]) -> tuple[tuple[Oddity, ...], ...]:
    """Return the least expected cells of each row, those that are unusual in their column."""
    cells = {scale.d: np.flatnonzero(scale.encoded.observed) for scale in scales}
    truth = {scale.d: scale.encoded.x[cells[scale.d]] for scale in scales}
    found: list[list[Oddity]] = [[] for _ in range(scales[0].encoded.x.size if scales else 0)]
    far = {}
    for d, score in log_scores(posterior, cells, truth).items():
        excess = score - score.mean() if score.size else score
        far[d] = (cells[d][excess < -ODD], excess[excess < -ODD])
    rows_of = {d: rows for d, (rows, _) in far.items() if rows.size}
    for d, marginal in predict(posterior, rows_of, FORTIETHS).items():
        encoded = scales[d].encoded
        for i, (row, excess) in enumerate(zip(*far[d], strict=True)):
            value = value_text(encoded, float(encoded.x[row]), 5)
            if marginal.probabilities is None:
                expected = _expected(encoded, row, marginal.mean[i], marginal.quantiles[i])
            else:
                likely = int(np.argmax(marginal.probabilities[i]))
                expected = f"{encoded.levels[likely]}, {percent(marginal.probabilities[i, likely])}"
            found[row].append(Oddity(d, value, expected, float(excess)))
    return tuple(tuple(sorted(row, key=lambda o: o.excess)[:MOST_ODD]) for row in found)


def _expected(encoded: EncodedColumn, row: int, mean: float, at: Array) -> str:
    """Return what was expected of a cell of numbers, by its mean and fortieths (39,).

    A value inside, where two groups of rows leave a gap, is left out with the fortieth it is in.
    """
    value = float(encoded.x[row])
    after = int(np.searchsorted(at, value))
    texts = [quantity(encoded, float(one)) for one in at]
    if 0 < after < at.size and value < at[after]:
        return f"{texts[0]} to {texts[after - 1]} or {texts[after]} to {texts[-1]}"
    return f"{quantity(encoded, float(mean))}, {texts[0]} to {texts[-1]}"


def _surface(placed: RowsOnMap, scale: Scale, frame: Frame | Embedding, base_u: Array) -> Surface:
    """Return what a column is over the map."""
    low, high = base_u.min(axis=0), base_u.max(axis=0)
    size = float(max((high - low).max(), 1e-9))
    x1, x2 = np.linspace(low - MARGIN * size, high + MARGIN * size, SIDE).T
    u = np.stack(np.meshgrid(x1, x2), axis=2).reshape(-1, 2)
    law: RowsLaw = placed.model.law_at(placed.draw.latent, frame.places(u))
    average = scale.link.average(u.shape[0], 1)
    average.add(law.column(scale.d), placed.draw.params[scale.d], 1.0, quantiles=False)
    estimate = average.result((), lambda p: p)
    shape = (SIDE, SIDE)
    p = estimate.probabilities
    return Surface(
        scale=scale,
        x1=x1,
        x2=x2,
        far=(KDTree(base_u).query(u)[0] / (NEAR * size)).reshape(shape),
        mean=estimate.mean.reshape(shape),
        sd=estimate.sd.reshape(shape),
        probabilities=None if p is None else p.reshape(*shape, -1),
    )
