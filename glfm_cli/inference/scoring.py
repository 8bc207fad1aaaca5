"""What draws say of values that are known: log scores, and the parts of forecasts to correct.

A column's laws under several draws are looked at together: what is known of the values, their place
on the latent scale for one, is found once, and a call costs more than the arithmetic of few cells.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import groupby

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.inference.lone_cells import parts_of
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.recalibration import LEAST, sd_of
from glfm_cli.links import CellLaw, Params
from glfm_cli.links.law import joined, kind_of

BLOCK_ROWS = 1024
MOST = 1 << 21  # latent numbers of rows under several draws that are held at once

Cells = Mapping[int, tuple[Array, Array]]  # by column: rows, and the values or level codes there


def log_scores(
    posterior: Posterior, cells: Mapping[int, Array], truth: Mapping[int, Array]
) -> dict[int, Array]:
    """Return the log predictive density (or mass) of the true value of each cell.

    log( average over draws of p(x | draw) ), by log-sum-exp; not the average of logs. Given that
    the bounds allow the value, and recalibrated like `predict`.

    cells : mapping of int to (n,) int; column number to the row indices
    truth : mapping of int to (n,) float64; the values, or level codes, at those cells
    """
    return scores_and_forecasts(posterior, {d: (rows, truth[d]) for d, rows in cells.items()})[0]


def forecasts(posterior: Posterior, cells: Cells) -> dict[int, Array]:
    """Return the weighted sums over draws of `forecast` (n, P) of cells, by column."""
    return _in_parts(posterior, cells, lambda part, some: (_sums(part, some, (), some)[1],))[0]


def scores_and_forecasts(
    posterior: Posterior, cells: Cells, columns: Collection[int] = ()
) -> tuple[dict[int, Array], dict[int, Array]]:
    """Return the log scores of cells and, of some `columns` at least, their forecasts."""
    logs, sums = _in_parts(posterior, cells, partial(_scores, columns=columns))
    return logs, sums


def _in_parts(
    posterior: Posterior,
    cells: Cells,
    found: Callable[[Posterior, Cells], tuple[dict[int, Array], ...]],
) -> tuple[dict[int, Array], ...]:
    """Return what is found of cells by column, those with corrections of their own by themselves.
    """
    parts = parts_of(posterior, {d: rows for d, (rows, _) in cells.items()})
    each = [
        found(part, {d: (cells[d][0][at], cells[d][1][at]) for d, at in places.items()})
        for part, places in parts
    ]
    if len(each) == 1:
        return each[0]
    whole: list[dict[int, Array]] = []
    for same in zip(*each, strict=True):
        whole.append({})
        for d, (rows, _) in cells.items():
            own = [(at[d], x[d]) for (_, at), x in zip(parts, same, strict=True) if d in x]
            if own and sum(at.size for at, _ in own) == rows.size:
                whole[-1][d] = np.empty((rows.size, *own[0][1].shape[1:]))
                for at, x in own:
                    whole[-1][d][at] = x
    return tuple(whole)


def _scores(
    posterior: Posterior, cells: Cells, columns: Collection[int]
) -> tuple[dict[int, Array], dict[int, Array]]:
    """Return what `scores_and_forecasts` does, of cells that have the same corrections."""
    bounded = {
        d
        for d in cells
        if np.isfinite(getattr(posterior.links[d], "latent_bounds", np.inf)).any()
    }
    corrected = {d for d in cells if _is_corrected(posterior, d)}
    logs, sums = _sums(posterior, cells, cells, bounded | corrected | set(columns))
    n = np.log(posterior.n_draws)
    found = {
        d: _corrected(posterior, d, log_p - n, sums.get(d) if d in bounded | corrected else None)
        for d, log_p in logs.items()
    }
    return found, sums


def _sums(
    posterior: Posterior, cells: Cells, scored: Collection[int], forecast: Collection[int]
) -> tuple[dict[int, Array], dict[int, Array]]:
    """Return logs of weighted sums of densities over draws, and weighted sums of forecasts."""
    logs = {d: np.full(cells[d][0].size, -np.inf) for d in scored}
    sums: dict[int, Array] = {}
    shares = {d: posterior.shares(d) for d in cells}
    for draws, here in _laws(posterior, cells):
        for d, (at, laws) in here.items():
            link, x, share = posterior.links[d], cells[d][1][at], shares[d]
            used = [(t, law, draw.params[d]) for (t, draw), law in zip(draws, laws, strict=True)
                    if share[t]]  # fmt: skip
            for number, law, params in _together(used):
                weight = share[number, None]
                values, shape = np.tile(x, number.size), (number.size, x.size)
                if d in scored:
                    log_p = link.log_density(values, law, params).reshape(shape) + np.log(weight)
                    logs[d][at] = np.logaddexp.reduce([logs[d][at], *log_p])
                if d in forecast:
                    parts = link.forecast(values, law, params).reshape(*shape, -1)
                    if d not in sums:
                        sums[d] = np.zeros((cells[d][0].size, parts.shape[2]))
                    sums[d][at] += (weight[:, :, None] * parts).sum(axis=0)
    return logs, sums


def _laws(
    posterior: Posterior, cells: Cells
) -> Iterator[tuple[list[tuple[int, Draw]], dict[int, tuple[Array, list[CellLaw]]]]]:
    """Yield some draws with their numbers, and by column which cells are meant and their laws.

    Memory O(MOST), or that of BLOCK_ROWS rows under one draw.
    """
    rows = np.unique(np.concatenate([np.empty(0, np.intp), *(at for at, _ in cells.values())]))
    places = {d: np.searchsorted(rows, at) for d, (at, _) in cells.items()}
    numbered = list(enumerate(posterior.draws()))
    size = min(BLOCK_ROWS, rows.size) * max(1, sum(link.n_latent for link in posterior.links))
    step = max(1, MOST // max(size, 1))
    for start in range(0, rows.size, BLOCK_ROWS):
        block = rows[start : start + BLOCK_ROWS]
        inside = {
            d: np.flatnonzero((place >= start) & (place < start + block.size))
            for d, place in places.items()
        }
        inside = {d: at for d, at in inside.items() if at.size}
        for first in range(0, len(numbered), step):
            draws = numbered[first : first + step]
            laws = [posterior.cells_law(draw, block) for _, draw in draws]
            yield draws, {
                d: (at, [law.column(d, places[d][at] - start) for law in laws])
                for d, at in inside.items()
            }


def _together(
    laws: list[tuple[int, CellLaw, Params]],
) -> Iterator[tuple[Array, CellLaw, Params]]:
    """Yield the numbers of draws, their laws below each other, and the parameters they share.

    Links whose parameters differ between draws have each draw alone.
    """

    def alike(one: tuple[int, CellLaw, Params]) -> tuple[object, ...]:
        number, law, params = one
        return (number,) if params else kind_of(law)

    for _, group in groupby(laws, alike):
        numbers, parts, params = zip(*group, strict=True)
        yield np.array(numbers), joined(parts), params[0]


def _is_corrected(posterior: Posterior, d: int) -> bool:
    by = posterior.recalibration
    return by is not None and by.corrects(d)


def _corrected(posterior: Posterior, d: int, log_p: Array, forecast: Array | None) -> Array:
    """Return log scores inside bounds and recalibrated, given the sums of the forecasts' parts."""
    by = posterior.recalibration
    if forecast is None:
        return log_p
    if not posterior.links[d].discrete:
        within = np.clip(forecast[:, 1] / posterior.n_draws, LEAST, 1.0)
        log_p = log_p - np.log(within)
        if not _is_corrected(posterior, d):
            return log_p
        assert by is not None
        upto, _, under, first, second = forecast.T / posterior.n_draws
        return log_p + by.log_factor(d, upto / within, under / within, sd_of(first, second))
    assert by is not None
    p = forecast / forecast.sum(axis=1, keepdims=True)
    a = by.powers(d, p)
    return a * log_p - np.log(np.sum(p ** a[:, None], axis=1))
