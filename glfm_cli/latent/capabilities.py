"""What some latent models can do besides: small protocols, which tasks and the driver ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from glfm_cli.arrays import Array
from glfm_cli.latent.model import Cells, Values
from glfm_cli.links.law import RowsLaw
from glfm_cli.streams import Streams


@dataclass(frozen=True)
class Round:
    """One round of successive halving among the restarts of an ascent.

    steps : that each restart in the round has made in all, at most, at its end
    halve : whether the better half alone, of each group, goes into the round
    best_alone : whether the best alone does, while the others stay where they are
    tolerance : times which the model's tolerance a restart may end with
    """

    steps: int
    halve: bool = False
    best_alone: bool = False
    tolerance: float = 1.0


@runtime_checkable
class Settles(Protocol):
    """A sampler of values whose steps take longer once it is past its start."""

    def settle(self, state: Any, streams: Streams) -> float:
        """Put a state past its start, in a small part of the time that this takes in a chain.

        Returns that part. It is for timing: the state is none of the posterior's.
        """


@runtime_checkable
class Scheduled(Protocol):
    """An ascent that says how long it is."""

    @property
    def n_restarts(self) -> int:
        """Return how many restarts there are when nobody says."""

    def n_steps(self, config: Any, n_rows: int) -> int:
        """Return the largest number of steps of a restart."""


@runtime_checkable
class SharedLaw(Protocol):
    """A model whose draw is a law of what rows share."""

    def sample_shared(self, draw: Any, rng: np.random.Generator) -> Any:
        """Return a draw with a sample of it, the same for all rows of one completed table."""

    def sample_all(self, draw: Any, rng: np.random.Generator) -> Any:
        """Return such a draw in which what belongs to single rows is a sample, too."""


@runtime_checkable
class HoldsLevels(Protocol):
    """A model that may take levels of complete columns as known, not as something to explain."""

    def holds_levels(self, config: Any) -> bool:
        """Return whether it does: then `Cells.levels` has them."""

    def holding_none(self, config: Any) -> Any:
        """Return the configuration under which it does not."""

    def held_columns(self, draw: Any) -> Sequence[int]:
        """Return the columns that a draw takes so, whose cells may not be hidden afterwards."""


@runtime_checkable
class JoinsRows(Protocol):
    """A model whose draws of the rows of several tables make one of them all."""

    def join_rows(self, draws: Sequence[Any]) -> Any:
        """Return the draw of all rows, below each other; what rows share is that of the first."""


@runtime_checkable
class Weighted(Protocol):
    """An ascent that says how restarts predict together; without it, by the softmax of bounds."""

    def weights(self, problem: Any, scores: Mapping[int, float]) -> list[float]:
        """Return the weights of restarts, which add up to 1."""


@runtime_checkable
class Scored(Protocol):
    """An ascent that says by what restarts are compared; without it, by their bounds."""

    def score(self, state: Any, values: Values, bound: float) -> float:
        """Return by what restarts are compared."""


@runtime_checkable
class Restarts(Protocol):
    """An ascent whose restarts compete; without it, all run to their end.  [Jamieson 2016]"""

    def rounds(self, problem: Any, restarts: int) -> Sequence[Round]:
        """Return the rounds; restarts that are left after the last predict together."""

    def group(self, problem: Any, restart: int) -> int:
        """Return the group of which a restart is; the better half of each group goes on."""

    def enter(self, state: Any, best_alone: bool) -> bool:
        """Take note that a restart goes into another round; return whether it is converged there.

        What was enough for a rough round need not be for the best alone.
        """


class Parts(NamedTuple):
    """What the latent matrix of a draw is made of: U (s V)' + R G_R' + G_C C' + slope level'.

    U (I, K), sV (J, K) : the low-rank part
    R, G_R : covariates of rows (I, p), a constant first with a bias, and their weights (J, p)
    C, G_C : those of columns (J, q) and (I, q)
    slope, level : c (I, 1) and g - mu (J, 1), or (I, 0) and (J, 0)
    """

    U: Array
    sV: Array
    R: Array
    G_R: Array
    G_C: Array
    C: Array
    slope: Array
    level: Array


@runtime_checkable
class Components(Protocol):
    """A model whose rows and columns are told apart by components, whose number is inferred."""

    def parts(self, draw: Any) -> Parts:
        """Return what the latent matrix of a draw is made of."""

    def low_rank(self, draw: Any) -> tuple[Array, Array]:
        """Return U (I, K) and s V (J, K), with what covariates say of them."""

    def noise_of_rows(self, draw: Any, rows: Array) -> Array:
        """Return the noise variance (n,) of the cells of some rows of a matrix of one kind."""


class RowParts(NamedTuple):
    """What the latent numbers of rows are made of, beside noise, under one draw.

    at : (S,) the latent columns that are meant
    g : (N, K) series that columns share;  loading : (K, S), so that their part is g loading
    own : (N, S) each column's own series;  groups : (N, S) what rows of a group share
    rest : (N, S) what the model itself says;  noise : (D,) variances
    """

    at: Array
    g: Array
    loading: Array
    own: Array
    groups: Array
    rest: Array
    noise: Array


@runtime_checkable
class RowsTogether(Protocol):
    """A model of rows that share a part by groups, or follow one another in time."""

    def row_parts(self, draw: Any) -> RowParts:
        """Return what the latent numbers of the rows are made of."""


@runtime_checkable
class Map(Protocol):
    """A model that gives every row a place in a space of few dimensions, and cells by the place."""

    def map_settings(self, n_columns: int) -> dict[str, object]:
        """Return the settings, by name, of a fit that is made for its map."""

    def places(self, draw: Any) -> tuple[Array, Array]:
        """Return means (N, Q) and covariances (N, Q, Q) of where rows lie: normals."""

    def relevances(self, draw: Any) -> Array:
        """Return each dimension's share (Q,) of what places do to the columns."""

    def law_at(self, draw: Any, x: Array) -> RowsLaw:
        """Return the law of the cells of rows that lie at x (n, Q)."""


class CountFactors(NamedTuple):
    """What a matrix of rates is made of under one draw: rows columns'.

    rows : (I, K) expected weights;  columns : (J, K)
    correlations : (K, K) of how components go together in rows, from -1 to 1; 0 without any
    level : (K, K) that the sizes of all correlations of independent components stay below in 95 %
        of tables
    """

    rows: Array
    columns: Array
    correlations: Array
    level: Array

    @property
    def counts(self) -> Array:
        """Return the expected counts (I, K) of each row by component."""
        return self.rows * self.columns.sum(axis=0)


@runtime_checkable
class HasFactors(Protocol):
    """A model of counts whose rates are sums over components."""

    def factors(self, draw: Any) -> CountFactors:
        """Return what the rates of a draw are made of."""

    def p_any(self, draw: Any, rows: slice | Array) -> Array:
        """Return the probabilities (n, J) of a count of at least one, of all columns."""


@runtime_checkable
class LimitedTypes(Protocol):
    """A model of tables all of whose columns are of some types, by name."""

    @property
    def types(self) -> frozenset[str]:
        """Return the types."""


@runtime_checkable
class RefusesTypes(Protocol):
    """A model of tables that takes columns of all types but some, by name."""

    @property
    def refuses(self) -> frozenset[str]:
        """Return the types that it does not take."""


@runtime_checkable
class LeavesTypes(Protocol):
    """A model that takes columns of some types, but is not the one to take where none is named."""

    @property
    def leaves(self) -> frozenset[str]:
        """Return the types that it leaves to another."""


@runtime_checkable
class TakesAtoms(Protocol):
    """A model that sees values, among which a column may have one of its own probability."""

    @property
    def takes_atoms(self) -> bool:
        """Return True."""


@runtime_checkable
class HasReach(Protocol):
    """A model that forecasts nothing that is far from what it has seen."""

    def reaches(self, draw: Any, problem: Any) -> bool:
        """Return whether new rows are like those of a draw."""


@runtime_checkable
class TakesGroups(Protocol):
    """A model that sees values, and takes rows that belong together."""

    @property
    def takes_groups(self) -> bool:
        """Return True."""


@runtime_checkable
class TunesNewRows(Protocol):
    """A model that is tuned for new rows of which little is observed."""

    def calibrate(
        self, problem: Any, restarts: int, seed: int, observed: float, threads: int
    ) -> Any:
        """Return the configuration that predicts best where a share of a row is observed.

        Chosen on some of the problem's own rows, which the rest is fitted without.
        """


@runtime_checkable
class Resumes(Protocol):
    """A sampler of Gaussian cells that can go on from a kept draw, on a table with other gaps."""

    def resume(self, draw: Any, cells: Cells, config: Any, streams: Streams) -> Any:
        """Return a state where all that the draw has is as it was, and the rest is drawn given it.
        """


@runtime_checkable
class Regrows(Protocol):
    """A sampler of values that can go on from a draw, on a table with other gaps.

    Its draws, which look at all rows, have seen the cells that the table lacks now.
    """

    def regrow(self, draw: Any, values: Values, config: Any, streams: Streams) -> Any:
        """Return a state with the missing cells of a draw; those that it had seen are any."""

    def of_rows(self, draw: Any, rows: Array) -> Any:
        """Return the draw of some rows."""


@runtime_checkable
class StartsNear(Protocol):
    """A model whose new rows start like rows of the fit that resemble them."""

    @property
    def inner_sweeps(self) -> int:
        """Return how many inner sweeps are then enough."""


@runtime_checkable
class Sized(Protocol):
    """A model whose draws have more or fewer components."""

    @property
    def size(self) -> str:
        """Return the name of the trace that says how many."""


@runtime_checkable
class Candidates(Protocol):
    """A model each of whose chains is one of several models'."""

    @property
    def candidates(self) -> tuple[str, ...]:
        """Return the names of the models."""

    def several(self, kinds: Sequence[str]) -> bool:
        """Return whether chains are of more than one model where nothing is set.

        For column types by name.
        """

    def candidate(self, draw: Any) -> int:
        """Return the place, among the names, of the model that made a draw."""

    def own(self, draw: Any) -> Any:
        """Return the snapshot as its model made it."""

    def mark(self, own: Any, which: int) -> Any:
        """Return the snapshot of a model, with its place: `own` undoes it."""

    def turn(self, problem: Any, index: int) -> int:
        """Return the place of the model of which chain number `index` is."""

    def problem_of(self, problem: Any, which: int) -> Any:
        """Return the problem as a model alone has it."""

    def kept_of(self, which: int) -> int:
        """Return of how many draws a chain of a model keeps the first."""

    def candidate_in(self, arrays: Mapping[str, Array]) -> int:
        """Return the place of the model that saved arrays; ValueError if it is nobody's."""

    def with_each(self, change: Callable[[Any], Any]) -> Any:
        """Return the same of changed models, but of those that see values."""


@runtime_checkable
class SuitsOthers(Protocol):
    """A model whose defaults depend on whether it is alone.

    kept_beside : of so many draws that chains beside it keep, one of its own keeps the first
    """

    kept_beside: int

    def config_beside(self, search: bool) -> Any:
        """Return the configuration beside models whose chains are longer.

        search : whether to search for the ways that forecast each column best
        """


@runtime_checkable
class SuitsColumns(Protocol):
    """A model whose defaults depend on the kinds of columns and on the layout."""

    def config_for(self, kinds: Sequence[str], layout: str) -> Any:
        """Return the configuration where nothing is set, for column types by name."""
