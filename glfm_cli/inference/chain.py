"""One chain: its state over the columns of a problem, and what one sweep does to it.

One sweep is  model.update, rescale, fill_eta;  for each column: link.update_params;  for blocks
of rows: link.bound and model.refine where the model refines, link.augment;  model.finish.
It knows no model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import broke_down
from glfm_cli.inference.executors import thread_pool
from glfm_cli.inference.posterior import Draw
from glfm_cli.latent.capabilities import HoldsLevels
from glfm_cli.latent.given import given_of
from glfm_cli.latent.model import Cells, GaussianModel, Problem, gaussian, take
from glfm_cli.links import Link, Params
from glfm_cli.links.law import normal
from glfm_cli.links.told import IntervalCells, told
from glfm_cli.streams import Streams, column_step

BLOCK = 4096  # rows whose bits and y are drawn together
PART = 1 << 18  # rows whose log densities are held at once
TRACED_ROWS = 200  # at most, from which the log likelihood of a kept draw is traced


class _Part(NamedTuple):
    """A column in a chain: views of its cells, y and eta, its parameters and stream.

    place : its number, its first pseudo-column and one past its last
    """

    link: Link
    x: Array
    y: Array
    eta: Array
    params: Params
    rng: np.random.Generator
    place: tuple[int, int, int]


@dataclass
class Chain:
    """One chain, ready for its next sweep."""

    problem: Problem
    streams: Streams
    cells: Cells
    params: tuple[Params, ...]
    state: Any
    eta: Array  # scratch, (N, S)
    spans: tuple[tuple[int, int], ...]  # per column, its first pseudo-column and one past its last
    done: int = 0  # sweeps made
    _means: dict[tuple[int, int, int], tuple[float, Array]] = field(default_factory=dict)
    _links: dict[int, list[Link | IntervalCells]] = field(default_factory=dict)

    @property
    def model(self) -> GaussianModel:
        """Return the model."""
        return gaussian(self.problem.model)

    def sweep(self, adapt: bool) -> None:
        """Make one transition of everything; links may tune their proposals when `adapt`.

        Raises NumericalError: a covariance lost positive definiteness.
        """
        model = self.model
        for d, link in enumerate(self.problem.links):
            self.cells.scale_group[d] = link.scale_group(self.params[d])
        try:
            model.update(self.state, self.cells, self.streams)
        except np.linalg.LinAlgError as error:
            raise broke_down(error) from error
        for d, link in enumerate(self.problem.links):
            link.rescale(self.params[d], float(self.cells.factor[d]))
        if not all(self.problem.known):
            model.fill_eta(self.state, self.eta)
            self.refill(adapt)
        model.finish(self.state, self.streams)
        self.done += 1

    def save(self) -> dict[str, Array]:
        """Return all that the coming sweeps depend on, as named arrays.

        Everything else (eta, scale groups, the models' work space) is filled before it is read.
        """
        arrays = {"sweep": np.array(self.done, dtype=np.int64), "y": self.cells.y}
        arrays |= {f"latent.{name}": value for name, value in self.model.save(self.state).items()}
        arrays |= params_out(self.params)
        return arrays | {f"random.{name}": value for name, value in self.streams.save().items()}

    def refill(self, adapt: bool) -> None:
        """Draw the links' parameters, latent structure and the observed y anew, given eta.

        The first two with y integrated out as far as the links can, y last: it sticks to what it
        was drawn with. Rows come in blocks, since columns of many rows are far apart in memory; the
        chain's threads take them, and columns, side by side.
        """

        def update_params(part: _Part) -> None:
            part.link.update_params(part.x, part.eta, part.params, part.rng, adapt)

        blocks = range(-(-self.problem.n_rows // BLOCK))
        spare = [self.cells]  # whose room for bounds is free
        if len(blocks) < 2:
            for part in self._parts:
                update_params(part)
            for block in blocks:
                self._redraw(block, spare)
            return
        before = [part.params for part in self._drawn]
        with thread_pool(max(1, min(self.cells.threads, len(blocks)))) as pool:
            each = pool.map if pool else map
            list(each(update_params, self._parts))
            found = list(each(lambda block: self._redraw(block, spare), blocks))
        for params, parts in zip(before, zip(*found, strict=True), strict=True):
            for name in parts[0]:
                if parts[0][name] is not params.get(name):
                    params[name] = np.sum([part[name] for part in parts], axis=0)

    def _redraw(self, block: int, spare: list[Cells]) -> list[Params]:
        """Draw a block of rows, by streams of its own: latent structure, then the observed y.

        Return the parameters of the links, with what they put there as sums over these rows.
        spare : lends cells with room for bounds, and takes them back
        """
        rows = slice(block * BLOCK, min((block + 1) * BLOCK, self.problem.n_rows))
        drawn = self._drawn
        if self.problem.n_rows > BLOCK:
            drawn = [
                part._replace(
                    rng=self.streams.get(column_step(part.place[0]), block),
                    params=dict(part.params),
                )
                for part in drawn
            ]
        links = self._told(block, rows)
        if self.model.refines:
            cells = spare.pop() if spare else with_room(self.cells)
            n = rows.stop - rows.start
            for link, (_, x, y, _, params, rng, (_, start, end)) in zip(links, drawn, strict=True):
                lower, upper = cells.lower[:n, start:end], cells.upper[:n, start:end]
                link.bound(x[rows], params, y[rows], rng, lower, upper)
            self.model.refine(self.state, cells, self.eta, self.streams, rows)
            spare.append(cells)
        noise = self.model.noise(self.state)
        for link, (_, x, y, eta, params, rng, (d, *_)) in zip(links, drawn, strict=True):
            link.augment(x[rows], eta[rows], float(noise[d]), params, rng, y[rows])
        return [part.params for part in drawn]

    def _told(self, block: int, rows: slice) -> list[Link | IntervalCells]:
        """Return the links of a block of rows, told once of its intervals."""
        if block not in self._links:
            self._links[block] = [told(part.link, part.x[rows]) for part in self._drawn]
        return self._links[block]

    @cached_property
    def _parts(self) -> list[_Part]:
        """What a sweep needs of every column that has pseudo-observations, looked up once."""
        return [
            _Part(
                link, x, self.cells.y[:, slice(*self.spans[d])], self.eta_of(d), self.params[d],
                self.streams.get(column_step(d)), (d, *self.spans[d]),
            )
            for d, (link, x) in enumerate(zip(self.problem.links, self.problem.xs, strict=True))
            if link.n_latent > 0
        ]  # fmt: skip

    @cached_property
    def _drawn(self) -> list[_Part]:
        """Those whose observed y are drawn anew in every sweep."""
        return [part for part in self._parts if not self.cells.known[part.place[0]]]

    def eta_of(self, d: int) -> Array:
        """Return the eta of column `d` as links take it: (N,) or (N, S_d), a view."""
        start, end = self.spans[d]
        return self.eta[:, start] if end - start == 1 else self.eta[:, start:end]

    def keep(self) -> Draw:
        """Return the current state as a draw, its log likelihood traced by some of the rows."""
        model, state = self.model, self.state
        step = -(-self.problem.n_rows // TRACED_ROWS)
        trace = {"log_likelihood": self.log_likelihood(max(step, 1)), **model.trace(state)}
        noise = model.noise(state)
        for d, link in enumerate(self.problem.links):
            if not link.unit_noise:
                trace[f"noise_{d}"] = float(noise[d])
        params = tuple({name: value.copy() for name, value in p.items()} for p in self.params)
        return Draw(model.draw(state), params, trace)

    def log_likelihood(self, step: int = 1) -> float:
        """Return the sum over observed cells of log p(x | Z, B, noise, thresholds).

        By every `step`-th row alone, times as many as there are for each of these.
        """
        total, n_rows = 0.0, self.problem.n_rows
        model = self.model
        model.fill_eta(self.state, self.eta)
        for d, (link, x) in enumerate(zip(self.problem.links, self.problem.xs, strict=True)):
            eta = self.eta_of(d)
            for start in range(0, n_rows, PART * step):
                part = slice(start, min(start + PART * step, n_rows), step)
                seen = self.cells.observed[part, d].astype(bool)
                noise = model.noise_of(self.state, d, part)
                var = noise if isinstance(noise, float) else noise[seen]
                if self.cells.known[d] and link.n_latent == 1:
                    at_mean, y = self._at_mean(d, part)
                    t = (y - eta[part][seen]) ** 2 / var + np.log(var)
                    total += at_mean - 0.5 * float(np.sum(t))
                else:
                    law = normal(eta[part][seen], var)
                    total += float(np.sum(link.log_density(x[part][seen], law, self.params[d])))
        return total * n_rows / max(len(range(0, n_rows, step)), 1)

    def _at_mean(self, d: int, part: slice) -> tuple[float, Array]:
        """Return the log density of cells whose y is known, were it eta with variance 1; and y."""
        key = d, part.start, part.step
        if key not in self._means:
            seen = self.cells.observed[part, d].astype(bool)
            y = self.cells.y[part, self.spans[d][0]][seen]
            link, x = self.problem.links[d], self.problem.xs[d][part][seen]
            density = link.log_density(x, normal(y, 1.0), self.params[d])
            self._means[key] = float(np.sum(density)), y
        return self._means[key]


def spans_of(links: Sequence[Link]) -> tuple[tuple[int, int], ...]:
    """Return each column's first pseudo-column and one past its last."""
    ends = np.cumsum([0, *(link.n_latent for link in links)])
    return tuple((int(start), int(end)) for start, end in pairwise(ends))


def params_out(params: Sequence[Params]) -> dict[str, Array]:
    """Return the links' parameters as one set of named arrays, `params.COLUMN.NAME`."""
    return {f"params.{d}.{name}": value for d, p in enumerate(params) for name, value in p.items()}


def params_in(links: Sequence[Link], arrays: Mapping[str, Array]) -> tuple[Params, ...]:
    """Return copies of what `params_out` was given; ValueError unless they can be the links'."""
    found = [inner(arrays, f"params.{d}.") for d in range(len(links))]
    params = tuple({name: value.copy() for name, value in p.items()} for p in found)
    check_all_params(links, params)
    return params


def check_all_params(links: Sequence[Link], params: Sequence[Params]) -> None:
    """Raise ValueError, naming the column, unless these can be the links' parameters."""
    for link, part in zip(links, params, strict=True):
        try:
            link.check_params(part)
        except ValueError as error:
            raise ValueError(f"column '{link.name}': {error}") from None


def inner(arrays: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """Return the arrays whose names begin with a prefix, under the rest of their names."""
    return {n.removeprefix(prefix): array for n, array in arrays.items() if n.startswith(prefix)}


def empty_cells(problem: Problem, threads: int = 1, block: int | None = None) -> Cells:
    """Return the cells of a table with every pseudo-observation 0.

    `threads` is how many a chain may use, `block` how many rows are refined together.
    """
    links = problem.links
    n_latent = [link.n_latent for link in links]
    column = np.repeat(np.arange(len(links)), n_latent).astype(np.int32)
    shape = (problem.n_rows, column.size)
    at_once = min(block or BLOCK, shape[0])
    bounded = (at_once, shape[1]) if gaussian(problem.model).refines else (0, 0)
    return Cells(
        y=np.zeros(shape),
        observed=np.ascontiguousarray(problem.seen).astype(np.uint8),
        column=column,
        unit_noise=np.array([link.unit_noise for link in links], dtype=np.uint8),
        known=np.array(problem.known, dtype=np.uint8),
        scale_group=np.zeros((len(links), 2)),
        factor=np.ones(len(links)),
        lower=np.zeros(bounded),
        upper=np.zeros(bounded),
        spread=np.repeat([float(link.spread) for link in links], n_latent),
        own=_own_variances(problem),
        layout=problem.layout,
        threads=threads,
        groups=problem.groups,
        given=given_of(problem),
        of_fit=problem.of_fit,
        levels=_levels_of(problem),
    )


def _levels_of(problem: Problem) -> Array | None:
    """Return `Cells.levels`, None where the model does not ask."""
    model = problem.model
    if not isinstance(model, HoldsLevels) or not model.holds_levels(problem.config):
        return None
    levels = np.full(problem.seen.shape, -1, dtype=np.int8)
    for d, (link, x) in enumerate(zip(problem.links, problem.xs, strict=True)):
        if not (link.discrete and link.unit_noise and x.ndim == 1):
            continue
        if np.nanmax(x, initial=0.0) <= (1 if link.ordered else 127):
            levels[:, d] = np.where(np.isnan(x), -1, x)
    return levels


def with_room(cells: Cells) -> Cells:
    """Return the cells with other room for the bounds of a block."""
    return replace(cells, lower=np.zeros_like(cells.lower), upper=np.zeros_like(cells.upper))


def _own_variances(problem: Problem) -> Array | None:
    """Return the variances (N, S) that y has beside the noise's, None where all are 0."""
    found = [link.own_variances(x) for link, x in zip(problem.links, problem.xs, strict=True)]
    if all(own is None for own in found):
        return None
    zeros = np.zeros(problem.n_rows)
    return np.column_stack(
        [
            zeros if own is None else own
            for link, own in zip(problem.links, found, strict=True)
            for _ in range(link.n_latent)
        ]
    )


def load_chain(problem: Problem, arrays: Mapping[str, Array], threads: int = 1) -> Chain:
    """Return the chain that `Chain.save` described: its coming sweeps are the same, bit for bit.

    Raises ValueError: the arrays are no chain of this problem, with a phrase that says why.
    """
    cells = empty_cells(problem, threads)
    cells.y[:] = take(arrays, "y", np.float64, cells.y.shape)
    sweep = int(take(arrays, "sweep", np.int64, ()))
    if sweep < 1:
        raise ValueError(f"'sweep' is {sweep}, expected a number from 1")
    params, streams = params_in(problem.links, arrays), Streams.load(inner(arrays, "random."))
    state = gaussian(problem.model).load(inner(arrays, "latent."), cells, problem.config)
    spans, eta = spans_of(problem.links), np.zeros_like(cells.y)
    return Chain(problem, streams, cells, params, state, eta, spans, done=sweep)


def start_chain(problem: Problem, streams: Streams, threads: int = 1) -> Chain:
    """Return a chain at its starting point."""
    links, xs = problem.links, problem.xs
    cells = empty_cells(problem, threads)
    y = cells.y
    spans = spans_of(links)
    params = []
    for d, (link, x) in enumerate(zip(links, xs, strict=True)):
        start, end = spans[d]
        p, y[:, start:end] = link.start(x)
        params.append(p)
    state = gaussian(problem.model).start(cells, problem.config, streams)
    return Chain(problem, streams, cells, tuple(params), state, np.zeros_like(y), spans)
