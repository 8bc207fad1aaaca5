"""Any sampler of Gaussian cells, with a part that rows of a group share and follow in time.

    y = eta of the model + w + noise,    w as in row_effects.py

The model sees y - w, so that all of its own updates hold as they are; w is drawn given what it
leaves over, before each of its sweeps. Missing y - w are the model's to draw, whatever w is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.errors import UsageError
from glfm_cli.latent.capabilities import Candidates, RowParts, TakesGroups
from glfm_cli.latent.joined_rows import FoldedEffects, RowsToJoin
from glfm_cli.latent.model import Cells, LatentModel, Refill, Rows, Sizes, Spans, gaussian
from glfm_cli.latent.plain import PlainModel
from glfm_cli.latent.row_effects import RowEffects
from glfm_cli.links.law import ALL, CellLaw, GivenLatent, NormalMixture, RowsLaw
from glfm_cli.streams import EFFECTS, Streams

GROUP_SWEEPS = 2  # times as many inner sweeps for new rows as without groups


@dataclass(eq=False)
class GroupedState:
    """A model's own state or snapshot, whose attributes it has, too, and the part beside it."""

    own: Any
    effects: RowEffects | FoldedEffects
    spans: Spans

    def __getattr__(self, name: str) -> Any:
        if "own" not in self.__dict__:  # as it is read in another process
            raise AttributeError(name)
        return getattr(self.__dict__["own"], name)


class WithGroups(PlainModel):
    """What the class of a model inherits before all else.

    inner : the model itself, which sees its own states and snapshots
    """

    inner: Any
    name: str
    Config: Any

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how another process makes the same: its class has no name of a module's."""
        return with_groups, (self.inner,)

    def start(self, cells: Cells, config: Any, streams: Streams) -> GroupedState:
        """Return the model's start on what first intercepts leave.

        Parts of its own that had explained the groups of rows hardly give them back.
        """
        assert cells.groups is not None
        y, observed = cells.y.copy(), cells.observed[:, cells.column] != 0
        effects = RowEffects.start(cells.groups, cells.spans, cells.given)
        effects.begin(y, observed, streams.get(EFFECTS))
        w = effects.shift()
        cells.y -= np.where(observed, w, 0.0)
        own = self.inner.start(cells, self._beside(cells, config), streams)
        cells.y[:] = np.where(observed, y, y + w)
        return GroupedState(own, effects, cells.spans)

    def _beside(self, cells: Cells, config: Any) -> Any:
        """Return the settings of the model beside the part of these rows."""
        if cells.groups is None or cells.groups.time is None:
            return config
        return replace(config, noise_rate=self.series_noise * config.noise_rate)

    def update(self, state: GroupedState, cells: Cells, streams: Streams) -> None:
        """Draw the effects given what the model leaves over, then let it draw the rest."""
        effects, observed = state.effects, cells.observed[:, cells.column] != 0
        assert isinstance(effects, RowEffects)
        eta, y, before = np.empty_like(cells.y), cells.y.copy(), effects.shift()
        self.inner.fill_eta(state.own, eta)
        noise = self.inner.noise(state.own)[cells.column]
        effects.update(y - eta, observed, noise, streams.get(EFFECTS))
        cells.y -= np.where(observed, effects.shift(), before)
        cells.scale_group += effects.scale_group(cells.spans)
        self.inner.update(state.own, cells, streams)
        effects.rescale(cells.factor[cells.column])
        cells.y += effects.shift()
        keep_known(cells, y)

    def fill_eta(self, state: GroupedState, out: Array) -> None:
        """Fill `out` (N, S) with eta and w."""
        self.inner.fill_eta(state.own, out)
        out += state.effects.shift()

    def refine(
        self, state: GroupedState, cells: Cells, eta: Array, streams: Streams, rows: slice
    ) -> None:
        """Let the model draw what it does, of cells without w."""
        y, w = cells.y[rows].copy(), state.effects.shift(rows)
        shifted = cells.y[rows], cells.lower[: len(w)], cells.upper[: len(w)], eta[rows]
        for part in shifted:
            part -= w
        self.inner.refine(state.own, cells, eta, streams, rows)
        for part in shifted:
            part += w
        keep_known(cells, y, rows)

    def finish(self, state: GroupedState, streams: Streams) -> None:
        """Let the model draw its hyperparameters."""
        self.inner.finish(state.own, streams)

    def trace(self, state: GroupedState) -> dict[str, float]:
        """Return the model's scalars, and the average sd of each part over latent columns."""
        effects, found = state.effects, self.inner.trace(state.own)
        assert isinstance(effects, RowEffects)
        if not effects.at.size:  # the time is the only column
            return dict(found)
        if len(effects.a):
            found["group_sd"] = float(np.sqrt(np.diagonal(effects.omega)).mean())
        if len(effects.u):
            found["time_sd"] = float(np.sqrt(effects.v).mean())
            found["shared_sd"] = float(np.sqrt(np.sum(effects.factors.loading**2, axis=0)).mean())
        return dict(found)

    def draw(self, state: GroupedState) -> GroupedState:
        """Return a snapshot."""
        assert isinstance(state.effects, RowEffects)
        own = self.inner.draw(state.own)
        return GroupedState(own, state.effects.copy(), state.spans)

    def row_parts(self, draw: GroupedState) -> RowParts:
        """Return what the latent numbers of rows are made of, of models that have them."""
        effects, law = draw.effects, self.inner.cells_law(draw.own, ALL)
        assert isinstance(effects, RowEffects)
        assert isinstance(law, GivenLatent)
        at, none = effects.at, np.zeros((len(law.eta), effects.at.size))
        timed = len(effects.u) > 0
        g = effects.factors.g if timed else none[:, :0]
        own = effects.u if timed else none
        groups = effects.shift()[:, at] - own - g @ effects.factors.loading
        loading = effects.factors.loading
        return RowParts(at, g, loading, own, groups, law.eta[:, at], law.noise)

    def cells_law(self, draw: GroupedState, rows: Rows) -> RowsLaw:
        """Return the model's law, moved by w."""
        return self._shifted(self.inner.cells_law(draw.own, rows), draw, rows)

    def joint(self, draw: GroupedState, rows: Rows, rng: np.random.Generator) -> RowsLaw:
        """Return the model's law, moved by w."""
        return self._shifted(self.inner.joint(draw.own, rows, rng), draw, rows)

    def _shifted(self, law: RowsLaw, draw: GroupedState, rows: Rows) -> RowsLaw:
        assert isinstance(rows, slice | np.ndarray)
        w = draw.effects.shift(rows)
        if isinstance(law, GivenLatent):
            return GivenLatent(law.eta + w, law.noise, law.spans)
        return Shifted(law, w, draw.spans)

    def fold_in(
        self,
        draw: GroupedState,
        config: Any,
        cells: Cells,
        refill: Refill,
        score: Callable[[RowsLaw, slice], Array],
        sweeps: int,
        rng: np.random.Generator,
    ) -> GroupedState:
        """Return the model's snapshot of new rows, and w, drawn anew in each of its sweeps.

        Groups that the fit has are those of the draw, which the new rows do not change.
        """
        assert cells.groups is not None
        assert isinstance(draw.effects, RowEffects)
        new = RowsToJoin(draw.effects, cells.groups, cells.given)
        noise = self.inner.noise(draw.own)[cells.column]
        observed = cells.observed[:, cells.column] != 0
        start, begun = cells.y.copy(), False
        bounded = self.refines

        def refill_shifted(eta: Array, *, bounds_alone: bool = False) -> None:
            nonlocal begun  # and w needs y, not its bounds alone
            before = new.w
            cells.y += before if begun else 0.0
            keep_known(cells, start)
            begun = True
            refill(eta + before)
            new.update(cells.y - eta, observed, noise, rng)
            w = new.w
            cells.y -= np.where(observed, w, before)
            if bounded:
                cells.lower -= w
                cells.upper -= w

        # Rows of a group wait for one another.
        sweeps = GROUP_SWEEPS * sweeps
        folded = self.inner.fold_in(draw.own, config, cells, refill_shifted, score, sweeps, rng)
        return GroupedState(folded, FoldedEffects(new.w), draw.spans)

    def held_columns(self, draw: GroupedState) -> Sequence[int]:
        """Return the columns that the model holds."""
        return list(self.inner.held_columns(draw.own))

    def save(self, state: GroupedState) -> dict[str, Array]:
        """Return the model's state and the effects."""
        assert isinstance(state.effects, RowEffects)
        return self.inner.save(state.own) | state.effects.pack()

    def load(self, arrays: Mapping[str, Array], cells: Cells, config: Any) -> GroupedState:
        """Return the state that `save` was given."""
        n_rows, width = cells.y.shape
        sizes = Sizes(n_rows, width, cells.spans)
        effects = RowEffects.unpack(arrays, sizes).copy()
        own = self.inner.load(without_effects(arrays), cells, self._beside(cells, config))
        return GroupedState(own, effects, cells.spans)

    def pack(self, draw: GroupedState) -> dict[str, Array]:
        """Return a snapshot as named arrays."""
        assert isinstance(draw.effects, RowEffects)
        return self.inner.pack(draw.own) | draw.effects.pack()

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> GroupedState:
        """Return the snapshot that `pack` was given."""
        own = self.inner.unpack(without_effects(arrays), sizes)
        return GroupedState(own, RowEffects.unpack(arrays, sizes), sizes.spans)


class Shifted:
    """The law of rows, each latent number moved by w (n, S)."""

    def __init__(self, law: RowsLaw, w: Array, spans: Spans) -> None:
        self.law, self.w, self.spans = law, w, spans

    def column(self, d: int, at: Array | slice = ALL) -> CellLaw:
        """Return the law of the cells of column `d`."""
        law, w = self.law.column(d, at), self.w[:, slice(*self.spans[d])]
        assert isinstance(law, NormalMixture)
        return law._replace(means=law.means + w[at, None, :])


def keep_known(cells: Cells, y: Array, rows: slice = ALL) -> None:
    """Put back the y of observed cells that are never drawn, without what rounding does."""
    for d, (start, end) in enumerate(cells.spans):
        if cells.known[d]:
            seen = cells.observed[rows, d, None] != 0
            np.copyto(cells.y[rows, start:end], y[:, start:end], where=seen)


def without_effects(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return the arrays that are the model's own."""
    return {name: part for name, part in arrays.items() if not name.startswith("effects.")}


@cache
def _class_of(kind: type) -> type:
    return type(f"Grouped{kind.__name__}", (WithGroups, kind), {})


def with_groups(model: LatentModel) -> LatentModel:
    """Return a model of tables whose rows belong together.

    One that sees Gaussian cells changes, of several candidates those that do.

    Raises UsageError: it sees values, and takes no such rows.
    """
    if isinstance(model, Candidates):
        return model.with_each(with_groups)
    if isinstance(model, TakesGroups):
        return model
    if model.sees != "gaussian":
        raise UsageError(
            f"--model {model.name} takes no columns of role group or time",
            hint="Use --model auto, glfm, bsvd or mixture, or give these columns role predictor.",
        )
    made: WithGroups = object.__new__(_class_of(type(gaussian(model))))
    made.__dict__.update(vars(model), inner=model)
    return made
