"""The task: a table with missing cells, or a saved fit of one, to the cells to ask for next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from glfm_cli.acquisition.cells import (
    MOST_DRAWS,
    PairCells,
    TableCells,
    free_name,
    gains_alone,
    n_samples,
)
from glfm_cli.acquisition.costs import COST, costs_of
from glfm_cli.acquisition.greedy import choose, in_order
from glfm_cli.acquisition.variance import choose_by_variance
from glfm_cli.arrays import Array
from glfm_cli.completion import Kept, TableLike, Types, as_table, plan_session, with_types
from glfm_cli.completion.impute import requested_pairs
from glfm_cli.completion.matrix import MatrixData, Pairs
from glfm_cli.completion.models import Asked, named
from glfm_cli.completion.prepare import with_guess, with_pairs_read
from glfm_cli.completion.saved import encoded_of_fit, is_saved_fit
from glfm_cli.encoding import Data, layout_of
from glfm_cli.errors import SchemaError, TableError, UsageError
from glfm_cli.inference.blas import one_blas_thread
from glfm_cli.inference.diagnostics import Diagnostics
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import Observer, Run
from glfm_cli.io.frames import AsGiven
from glfm_cli.latent.capabilities import SharedLaw
from glfm_cli.latent.model import LatentModel
from glfm_cli.options import MatrixOptions, Sampling, Saving, gather, names_given, whole
from glfm_cli.schema.phrases import did_you_mean, each_named
from glfm_cli.store import load_fit

Rule = Literal["variance", "joint", "uncertainty"]
COUNT = 10


@dataclass(frozen=True)
class Choice:
    """Which cells to choose, and how many.

    count : how many cells; fewer when there are no more
    rule : "variance", each the one that lowers the variance of the open cells of its row and column
        most, given those before it; "joint", that tells most of the draws, given those before it;
        or "uncertainty", those that tell most each by itself; per unit of cost
    columns : of a table, names of the columns to choose from; None for all; a comma parts names
        unless a column's has one
    cost : a table, or its path, of what cells cost, see `glfm_cli.acquisition.costs.costs_of`
    """

    count: int = COUNT
    rule: Rule = "variance"
    columns: Sequence[str] | None = None
    cost: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "count", whole("count", self.count))
        if self.rule not in get_args(Rule):
            raise UsageError("--rule", value=self.rule, expected=" or ".join(get_args(Rule)))
        object.__setattr__(self, "columns", names_given("columns", self.columns))

    def chosen(self, names: Sequence[str]) -> list[str]:
        """Return the columns asked for, all of `names` by default.

        Raises UsageError: one is not among these, the modelled ones.
        """
        asked = list(names) if self.columns is None else each_named(self.columns, names)
        known = set(names)
        for name in asked:
            if name not in known:
                raise UsageError(
                    "--columns names no modelled column",
                    value=f"'{name}'",
                    hint=did_you_mean(name, names),
                )
        return asked


@dataclass(frozen=True)
class Search:
    """Cells to choose from, and what each costs."""

    cells: TableCells | PairCells
    cost: Array | None
    choice: Choice
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Suggestion(AsGiven):
    """The cells to ask for, the most useful first.

    cells : a row for each: `number` from 1, which cell it is, `gain`, `alone`, and `cost` if given;
        after a point where an id is called so
    gain : of all of them
    n_candidates : how many there were to choose from
    names : of the modelled columns; none of a matrix
    """

    cells: pa.Table
    gain: float
    n_candidates: int
    names: tuple[str, ...]
    rule: Rule
    posterior: Posterior
    diagnostics: Diagnostics
    stopped: str | None
    seconds: float
    notes: tuple[str, ...]

    def to_table(self) -> pa.Table:
        """Return the cells."""
        return self.cells

    def to_dict(self) -> dict[str, Any]:
        """Return what `glfm suggest --json` prints."""
        return {
            "model": self.posterior.model.name,
            "rule": self.rule,
            "candidates": self.n_candidates,
            "cells": self.cells.to_pylist(),
            "gain": self.gain,
            "chains": len(self.posterior.chains),
            "draws": self.posterior.n_draws,
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "diagnostics": self.diagnostics.to_dict(),
            "warnings": list(self.notes),
        }


@one_blas_thread()
def suggest(
    table: TableLike,
    types: Types | None = None,
    *,
    sampling: Sampling | None = None,
    matrix: MatrixOptions | None = None,
    choice: Choice | None = None,
    observer: Observer | None = None,
    **options: Any,
) -> Suggestion:
    """List the missing cells that are most worth measuring next.

    Parameters
    ----------
    table, types
        A table as in `impute`, or triplets, with their types; or a folder `NAME.glfm` with a saved
        fit of one, which is not sampled again.
    sampling, matrix, choice : Sampling, MatrixOptions, Choice
        The options; their fields are keywords of this function, too: `chains=4`, `count=5`. The
        `pairs` of a matrix are those to choose from.
    observer : optional
        Told of progress, as that of `impute`.

    Raises
    ------
    GlfmError
        The table, its types, the costs or an option are wrong.
    """
    groups = sampling or Sampling(), matrix or MatrixOptions(), choice or Choice()
    sampling, matrix, choice = gather(options, *groups)
    matrix = with_pairs_read(matrix)
    cost = (None, None) if choice.cost is None else as_table(choice.cost)
    if is_saved_fit(table):
        threads = {} if sampling.threads is None else {"threads": sampling.threads}
        more = {} if types is None else {"types": types}
        sampling.check_none(more | threads | replace(matrix, pairs=None).written())
        fit = load_fit(str(table))
        _check_model(fit.model, layout_of(fit.schema))
        data = encoded_of_fit(fit, "so its missing cells are not known")
        known = data.id_cells if isinstance(data, Data) else None
        ids = pa.table({}) if known is None else known
        search = find_cells(data, ids, matrix, choice, cost, str(table))
        return finish(Run(fit.posterior, None, 0.0, fit.notes), search)  # nothing is sampled
    given, schema = table, None
    if types is not None:
        table, schema = with_types(table, types)
        layout = layout_of(schema)
        if layout == "counts":
            raise _no_draws_of_counts()
        sampling = named(sampling, Asked(layout, alone=True))
    source, file = as_table(table)
    session = plan_session(source, schema, sampling, Saving(), matrix, file=file)
    _check_model(session.problem.model)
    ids = source.select(list(session.data.ids))
    data = with_guess(session.data, table) if isinstance(session.data, Data) else session.data
    search = find_cells(data, ids, matrix, choice, cost, file)
    found = finish(Kept(session, observer).sample(forecasts=False), search)
    return replace(found, given=given)


def _check_model(model: LatentModel, layout: str = "dense") -> None:
    """Raise UsageError when a model has no draws that could disagree."""
    if layout == "counts":
        raise _no_draws_of_counts()
    if model.kind == "ascent" and not isinstance(model, SharedLaw):
        raise UsageError(
            "cells are chosen by how far draws disagree, and the model "
            f"'{model.name}' has no draws",
            hint="Use --model glfm, bsvd, mixture or clgp.",
        )


def _no_draws_of_counts() -> UsageError:
    return UsageError(
        "cells are chosen by how far draws disagree, and models of counts whose absent pairs are "
        "zeros have no draws",
        hint="Without `absent: zero` pairs that are not listed are unknown, and --model bsvd "
        "chooses among them.",
    )


def find_cells(
    data: Data | MatrixData,
    ids: pa.Table,
    matrix: MatrixOptions,
    choice: Choice,
    cost: tuple[pa.Table | None, str | None],
    file: str | None,
) -> Search:
    """Return the missing cells of a table, or the requested pairs of a matrix, with their costs.

    Raises GlfmError: a pair has a value already, the costs are wrong, or there is nothing to choose
        from.
    """
    notes: tuple[str, ...] = ()
    cells: TableCells | PairCells
    if isinstance(data, Data):
        names = [encoded.column.name for encoded in data.columns]
        cells = TableCells.of(data, ids, set(choice.chosen(names)))
        notes = data.notes
    else:
        cells = _pairs(data, matrix, choice)
    if cells.size == 0:
        raise TableError("has no missing cell to choose from", file=file)
    table, cost_file = cost
    costs = None if table is None else costs_of(cells, table, file=cost_file)
    return Search(cells, costs, choice, notes)


def _pairs(data: MatrixData, matrix: MatrixOptions, choice: Choice) -> PairCells:
    """Return the pairs to choose from, none of which has a value."""
    if choice.columns is not None:
        raise UsageError(
            "--columns is for tables, but the types file describes triplets",
            hint="List the pairs to choose from in a file for --pairs.",
        )
    if choice.cost is not None and COST in (data.rows.name, data.others.name):
        raise SchemaError(
            "the file of --cost has a column of this name, so no id can have it",
            column=COST,
            hint="Rename the column.",
        )
    parts = [*requested_pairs(data, matrix)(), Pairs(np.empty(0, np.int64), np.empty(0, np.int64))]
    n_columns = len(data.others)
    code = np.concatenate([part.row * n_columns + part.column for part in parts])
    seen = data.triplets.row.astype(np.int64) * n_columns + data.triplets.column
    known = np.isin(code, seen)
    if known.any():
        raise TableError(
            "this pair has a value already",
            file=as_table(matrix.pairs)[1],
            row=int(np.argmax(known)) + 1,
            expected="pairs without one to choose from",
        )
    row, column = np.divmod(np.unique(code), n_columns)
    return PairCells(Pairs(row, column), data.rows, data.others)


def finish(run: Run, search: Search) -> Suggestion:
    """Return the choice that the draws of a run lead to."""
    # Latent numbers of several models have no covariance with each other.
    cells, posterior = search.cells, run.posterior.of_heaviest
    count = min(search.choice.count, cells.size)
    cost = np.ones(cells.size) if search.cost is None else search.cost

    def features(index: Array) -> Any:
        return cells.features(posterior, index)

    alone, most = gains_alone(cells, posterior)
    if search.choice.rule == "variance":
        chosen, alone = choose_by_variance(features, cells.units, alone, most, cost, count)
    elif search.choice.rule == "joint":
        chosen = choose(features, alone, most, cost, count)
    else:
        best = np.argsort(-alone / cost, kind="stable")[:count]
        chosen = in_order(features, best, most)
    described = cells.describe(chosen.index)
    columns = {free_name("number", described): pa.array(np.arange(1, count + 1)), **described}
    found = {"gain": chosen.gain, "alone": alone[chosen.index]}
    if search.cost is not None:
        found[COST] = cost[chosen.index]
    columns |= {free_name(n, described): pa.array(x + 0.0) for n, x in found.items()}  # no -0.0
    posterior = run.posterior
    traces = posterior.traces()
    return Suggestion(
        pa.table(columns),
        float(np.sum(chosen.gain)),
        cells.size,
        cells.names if isinstance(cells, TableCells) else (),
        search.choice.rule,
        posterior,
        posterior.diagnose(traces),
        run.stopped,
        run.seconds,
        (*search.notes, *run.warnings, *_cautions(search, count, n_samples(posterior))),
    )


def _cautions(search: Search, count: int, n_draws: int) -> list[str]:
    """Return what to know of a choice that was made from so many draws."""
    if count < search.choice.count:
        there = "there is only one cell" if count == 1 else f"there are only {count} cells"
        return [f"{there} to choose from; {search.choice.count} were asked for"]
    if search.choice.rule != "joint" or count < n_draws:
        return []
    # Centred draws span one direction less.
    more = " or run more chains or draws" if n_draws < MOST_DRAWS else ""
    return [
        f"{n_draws} draws can tell {n_draws - 1} cells apart, but {count} are to be "
        f"chosen: the last ones are little better than chance; ask for fewer at a time{more}"
    ]
