"""What a latent model is: the law of the latent numbers behind a table's cells.

A latent model knows nothing of column types, files or commands. It says what it sees: Gaussian
pseudo-observations (`Cells`), which the driver draws with the links, or the values themselves
(`Values`); and what one step of it is: a sweep of a Gibbs sampler, or an iteration of an ascent,
which raises a bound. It answers with the law of cells (links/law.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol, TypeGuard

import numpy as np

from glfm_cli.arrays import Array, Groups
from glfm_cli.links import Link, LinkConfig
from glfm_cli.links.law import RowsLaw
from glfm_cli.links.observation import Params
from glfm_cli.streams import Streams

Sees = Literal["gaussian", "values"]
Kind = Literal["gibbs", "ascent"]
FLOAT_MAX = float(np.finfo(np.float64).max)
LARGEST = 1e100  # number of a model's state: its square, and sums of squares, are finite
Spans = tuple[tuple[int, int], ...]  # per column, its first latent column and one past its last


@dataclass(frozen=True)
class Entries:
    """Which cells of a matrix are observed: ascending by row, then by column.

    row, column : (m,) int32;  shape : rows and columns of the matrix
    """

    row: Array
    column: Array
    shape: tuple[int, int]


@dataclass(frozen=True)
class Dense:
    """A table: each row of a problem is one of its rows, each link one of its columns."""


@dataclass(frozen=True)
class Sparse:
    """A matrix of one kind of value: each row of a problem is one of the cells that it lists.

    row_covariates, column_covariates : (I, p) and (J, q) float64, standardised; None without
    absent : what a cell is that is not listed; beside zeros, those are missing whose value is NaN
    """

    entries: Entries
    row_covariates: Array | None = None
    column_covariates: Array | None = None
    absent: Literal["missing", "zero"] = "missing"


Layout = Dense | Sparse
DENSE = Dense()


@dataclass(frozen=True)
class Problem:
    """What is fitted: the model with its configuration, and the columns with their links.

    xs : per column (n_rows,) float64, NaN where missing; (n_rows, 2), the least and the largest
        that a cell can be, of columns with cells that are known only to lie between these
    link_config : the choices that the links were made with
    layout : of the cells; a sparse one has a single link
    groups : of rows that belong together, for a model that takes them (grouped.py)
    of_fit : (n_rows,) the rows of a fit that these are, which may not tell of themselves
    equations : the columns of each equation, of which the last one that is missing follows
    beside : pairs of a column, and the one of dates that it says a part of
    group_level : the columns that are the same in all rows of a group
    """

    model: LatentModel
    config: Any
    links: tuple[Link, ...]
    xs: tuple[Array, ...]
    link_config: LinkConfig = field(default_factory=LinkConfig)
    layout: Layout = DENSE
    groups: Groups | None = None
    of_fit: Array | None = None
    equations: tuple[tuple[int, ...], ...] = ()
    beside: tuple[tuple[int, int], ...] = ()
    group_level: tuple[int, ...] = ()

    def take(self, rows: Array) -> Problem:
        """Return that of some rows of a table."""
        groups = None if self.groups is None else self.groups.take(rows)
        of_fit = None if self.of_fit is None else self.of_fit[rows]
        return replace(self, xs=tuple(x[rows] for x in self.xs), groups=groups, of_fit=of_fit)

    @property
    def n_rows(self) -> int:
        """Rows of the table, or listed cells of the matrix."""
        return int(self.xs[0].shape[0])

    @property
    def seen(self) -> Array:
        """Which cells something is known of (n_rows, D)."""
        return ~np.isnan(np.column_stack([x if x.ndim == 1 else x[:, 0] for x in self.xs]))

    @cached_property
    def known(self) -> tuple[bool, ...]:
        """Of which columns y = g(x) at every observed cell, so that nothing is to be drawn."""
        return tuple(k.known and x.ndim == 1 for k, x in zip(self.links, self.xs, strict=True))

    @property
    def matrix(self) -> Sparse:
        """Return the layout of a matrix."""
        assert isinstance(self.layout, Sparse)
        return self.layout


@dataclass
class Cells:
    """Everything a latent model sees of a table.

    y : (N, S) float64, pseudo-observations; the links refill the observed cells
    observed : (N, D) uint8, 1 = seen
    column : (S,) int32, the column d that owns pseudo-column s; columns are contiguous
    unit_noise : (D,) uint8, 1 = noise variance 1, never sampled
    known : (D,) uint8, 1 = observed y are never drawn
    scale_group : (D, 2) float64, sum of squares and number of the variables outside y that share
        the scale of a unit-noise column; the driver fills it before every update
    factor : (D,) float64, by which the last update multiplied y and those variables
    lower, upper : (n, S) float64, what is known of observed y, of columns where these are drawn: a
        point where they are equal, else an interval over which y may be integrated; scratch, which
        the driver fills for the n rows at hand before every `refine`
    spread : (S,) float64, sd of what an interval bounds, in units of the noise's
    own : (N, S) float64, variance of y beside the noise's, as the mean of trials has; None = 0
    layout : of a sparse one the N rows are the listed cells, S = 1
    threads : that one chain may use; nothing drawn depends on it
    groups : of rows that belong together
    given : (N, S) y of predictors of groups in time, NaN elsewhere; None without (given.py)
    of_fit : that of the problem, where rows of a fit are folded in as if they were new
    levels : (N, D) int8, the level of seen cells of categorical columns and of those of two
        levels, -1 elsewhere; None for models that do not ask
    """

    y: Array
    observed: Array
    column: Array
    unit_noise: Array
    known: Array
    scale_group: Array
    factor: Array
    lower: Array
    upper: Array
    spread: Array
    own: Array | None = None
    layout: Layout = DENSE
    threads: int = 1
    groups: Groups | None = None
    given: Array | None = None
    of_fit: Array | None = None
    levels: Array | None = None

    @property
    def spans(self) -> Spans:
        """Return each column's first pseudo-column, and one past its last."""
        d = np.arange(self.unit_noise.size)
        ends = (np.searchsorted(self.column, d, side) for side in ("left", "right"))
        return tuple((int(start), int(end)) for start, end in zip(*ends, strict=True))


class Refill(Protocol):
    """Draws the observed pseudo-observations of new rows, and bounds them."""

    def __call__(self, eta: Array, *, bounds_alone: bool = False) -> None:
        """Draw y given eta (n, S); with `bounds_alone` no more of them than the bounds need."""


@dataclass
class Values:
    """Everything that a latent model which sees values is given of a table.

    problem : the `Problem`: observations, their columns `xs`, layout, weights and configuration
    params : per column the observation's parameters; the model may change them in place
    tolerance : times which the model's tolerance an ascent may end with, see `Round`
    threads : that one chain may use; nothing drawn depends on it
    """

    problem: Any
    params: tuple[Params, ...]
    tolerance: float = 1.0
    threads: int = 1


class Progress(NamedTuple):
    """What a step has reached.

    bound : of an ascent, the bound after it; None where it has none that is new
    done : whether an ascent has converged
    noisy : whether the bound is estimated by samples, so that it may fall
    rounding : by how much rounding alone may let it fall
    """

    bound: float | None = None
    done: bool = False
    noisy: bool = False
    rounding: float = 0.0


@dataclass(frozen=True)
class Pairs:
    """Cells of a matrix: row and column (n,) int64, and their values if these are to be scored."""

    row: Array
    column: Array
    x: Array | None = None

    def take(self, at: slice | Array) -> Pairs:
        """Return some of them."""
        return Pairs(self.row[at], self.column[at], None if self.x is None else self.x[at])


Rows = slice | Array | Pairs  # a run of rows, rows, or of a sparse layout the cells asked for


class Sizes(NamedTuple):
    """How large a table is to a model: N rows, S pseudo-columns, and those of each column."""

    rows: int
    latent: int
    spans: Spans

    @property
    def columns(self) -> int:
        """Return D."""
        return len(self.spans)


class LatentModel(Protocol):
    """What every latent model has; `glfm_cli.inference.sampling` drives it.

    Every model is a `GaussianModel` or a `ValueModel`, as `sees` says.
    """

    @property
    def name(self) -> str:
        """Return the key of the model in `MODELS`."""

    @property
    def Config(self) -> Callable[..., Any]:
        """Return the frozen configuration class; each field with default and meaning."""

    @property
    def sees(self) -> Sees:
        """Return whether it sees Gaussian pseudo-observations, or the values of cells."""

    @property
    def kind(self) -> Kind:
        """Return whether a step is a sweep of a sampler, or an iteration of an ascent."""

    @property
    def layouts(self) -> frozenset[str]:
        """Return the layouts of cells that it takes, of {"dense", "sparse", "counts"}.

        "counts" is a sparse one whose absent cells are zeros.
        """

    def trace(self, state: Any) -> dict[str, float]:
        """Return label-invariant scalars that describe the state."""

    def draw(self, state: Any) -> Any:
        """Return a snapshot that later updates leave alone."""

    def cells_law(self, draw: Any, rows: Rows) -> RowsLaw:
        """Return the law of the cells of some rows under one draw; of pairs, `column(0)`."""

    def joint(self, draw: Any, rows: Rows, rng: np.random.Generator) -> RowsLaw:
        """Return a law given which the cells of the rows are independent, drawn under one draw."""

    def warnings(self, state: Any) -> list[str]:
        """Return what a user should know of a finished chain."""

    def save(self, state: Any) -> dict[str, Array]:
        """Return everything that the next step depends on, besides `Cells.y`, as named arrays.

        The arrays may share memory with the state; they are uint8, int32, int64, uint64 or float64.
        """

    def pack(self, draw: Any) -> dict[str, Array]:
        """Return a snapshot as named arrays, of the kinds that `save` may use."""

    def unpack(self, arrays: Mapping[str, Array], sizes: Sizes) -> Any:
        """Return the snapshot that `pack` was given; it may share the arrays' memory.

        Raises ValueError, with a phrase that says why, when the arrays are no such snapshot.
        """


class GaussianModel(LatentModel, Protocol):
    """A model of eta behind Gaussian cells, seen through links.

    `update` draws everything that integrates weights, missing pseudo-observations and noise, the
    weights last; then the links refill observed cells; then `finish` draws hyperparameters.
    """

    @property
    def refines(self) -> bool:
        """Return whether `refine` does something; if not, `lower` and `upper` stay empty."""

    def start(self, cells: Cells, config: Any, streams: Streams) -> Any:
        """Return the state that a chain begins with."""

    def update(self, state: Any, cells: Cells, streams: Streams) -> None:
        """Draw latent structure, missing pseudo-observations, noise and weights, in place."""

    def refine(self, state: Any, cells: Cells, eta: Array, streams: Streams, rows: slice) -> None:
        """Draw latent structure of a run of rows again, given the weights, y integrated out.

        Changes `eta` (N, S) and the missing y with it; observed y are drawn anew afterwards.
        Called after `update`, for every row once, and only when the model `refines`.
        """

    def fill_eta(self, state: Any, out: Array) -> None:
        """Fill `out` (N, S) with eta."""

    def noise(self, state: Any) -> Array:
        """Return the noise variances (D,) of a state or a draw, by which y is augmented."""

    def noise_of(self, state: Any, d: int, rows: slice) -> float | Array:
        """Return the noise variance of column `d`, or those (n,) of a run of rows that differ.

        They may only differ where y is known: links draw y for one variance a column.
        """

    def finish(self, state: Any, streams: Streams) -> None:
        """Draw the hyperparameters, in place."""

    def fold_in(
        self,
        draw: Any,
        config: Any,
        cells: Cells,
        refill: Refill,
        score: Callable[[RowsLaw, slice], Array],
        sweeps: int,
        rng: np.random.Generator,
    ) -> Any:
        """Return a snapshot of new rows, given everything that a draw's rows share.

        `refill(eta)` draws the observed pseudo-observations of `cells` given eta (n, S), and fills
        `lower` and `upper` if the model `refines`; one that does may ask for the bounds alone, and
        then y is not to be read where these are intervals. The alternation must leave the rows'
        exact conditional invariant.
        `score(law, rows)` returns log p(observed cells of row | law), of a run of m rows under
        each of the C rows of a law, as (m, C): for a good start.
        """

    def load(self, arrays: Mapping[str, Array], cells: Cells, config: Any) -> Any:
        """Return the state that `save` was given: what follows is the same, bit for bit.

        Raises ValueError, with a phrase that says why, when the arrays are no state of this table.
        """


class ValueModel(LatentModel, Protocol):
    """A model that sees the values of cells; the log likelihood, if it has one, is its to trace."""

    def start(self, values: Values, config: Any, streams: Streams, chain: int) -> Any:
        """Return the state that chain number `chain` begins with."""

    def step(self, state: Any, values: Values, streams: Streams, adapt: bool) -> Progress:
        """Make one sweep or one iteration, in place; a sampler may tune itself when `adapt`."""

    def fold_in(self, draw: Any, values: Values, sweeps: int, rng: np.random.Generator) -> Any:
        """Return a snapshot of new rows, given everything that a draw's rows share.

        A sampler makes up to `sweeps` inner sweeps, which leave the rows' exact conditional
        invariant; an ascent has no use for them.
        """

    def load(self, arrays: Mapping[str, Array], values: Values, config: Any) -> Any:
        """Return the state that `save` was given: what follows is the same, bit for bit.

        Raises ValueError, with a phrase that says why, when the arrays are no state of this table.
        """


def sees_values(model: LatentModel) -> TypeGuard[ValueModel]:
    """Return whether a model sees values."""
    return model.sees == "values"


def joined(draws: Sequence[Any], *names: str) -> Any:
    """Return the first draw with what rows have, by name, of all of them below each other."""
    of_all = {name: np.concatenate([getattr(draw, name) for draw in draws]) for name in names}
    return replace(draws[0], **of_all)


def gaussian(model: LatentModel) -> GaussianModel:
    """Return a model that sees Gaussian cells as such; TypeError when it does not."""
    if model.sees != "gaussian":
        raise TypeError(f"the model '{model.name}' sees values")
    return model  # type: ignore[return-value]


def take(
    arrays: Mapping[str, Array],
    name: str,
    dtype: type,
    shape: tuple[int | None, ...],
    *,
    largest: float = LARGEST,
) -> Array:
    """Return a named array that must have this type and shape (None: any length), none larger.

    Raises ValueError: it is missing or another, with a phrase that says so.
    """
    array = arrays.get(name)
    if array is None:
        raise ValueError(f"'{name}' is missing")
    array = np.asarray(array)
    fits = array.ndim == len(shape) and all(
        want in (None, size) for want, size in zip(shape, array.shape, strict=True)
    )
    if array.dtype != dtype or not fits:
        requested = " x ".join("any" if size is None else str(size) for size in shape) or "one"
        found = " x ".join(str(size) for size in array.shape) or "one"
        raise ValueError(
            f"'{name}' is {found} of {array.dtype}, expected {requested} of {np.dtype(dtype)}"
        )
    if array.dtype == np.float64 and not np.all(np.abs(array) <= largest):
        raise ValueError(f"'{name}' has values that are not finite numbers, or huge ones")
    return array
