"""Complete rows with a fit that was made before, without sampling it anew.

Rows that the fit has not seen are folded in: under each of its draws their own latent variables
are drawn, everything shared held fixed. The table that the fit was made from is completed from
the draws as they are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion.beyond import Reach, beyond_notes, reach_of
from glfm_cli.completion.header import Encoded
from glfm_cli.completion.learnt import check_intervals, check_reach, learnt
from glfm_cli.completion.matrix.new_units import encode_units
from glfm_cli.completion.matrix.side import features_of
from glfm_cli.completion.requests import Unseen, check_unseen
from glfm_cli.completion.rounded import residuals_of
from glfm_cli.encoding import (
    Data,
    LearntColumn,
    encode_rows,
    learnt_cells,
    with_known,
    with_types,
)
from glfm_cli.inference.folding import fold_in, that_reach
from glfm_cli.inference.lone_cells import of_rows
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import Run
from glfm_cli.latent.model import DENSE, Problem
from glfm_cli.links import LinkConfig
from glfm_cli.options import MatrixOptions
from glfm_cli.schema import Schema
from glfm_cli.store import Fit, hash_of_data

DRAWS = 40  # of all chains, that the rows of a large table are folded in under


@dataclass(frozen=True)
class Fitted:
    """What completing rows needs of a fit, whether it is kept in a folder or in memory.

    reaches : of each column what its fitted values reach; empty where that is not known
    ends : of each numeric column the least and the largest fitted value, by name, where known
    residuals : of each formula how far it is off in fitted rows, by column, where known
    groups : that it knows; None where rows do not belong together
    fit : that of triplets, whose units are known to it alone; None of a table
    columns : its modelled columns, in the order of the posterior's links
    data_hash : of the table it was made from
    notes : what a user should know of it, one line each
    warmup : sweeps of its chains before draws were kept
    """

    schema: Schema
    columns: tuple[LearntColumn, ...]
    posterior: Posterior
    config: Any
    link_config: LinkConfig
    data_hash: str
    seed: int
    notes: tuple[str, ...] = ()
    fit: Fit | None = None
    groups: tuple[str, ...] | None = None
    warmup: int = 0
    reaches: tuple[Reach | None, ...] = ()
    ends: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    residuals: Mapping[str, Array] = field(default_factory=dict)

    @property
    def configs(self) -> tuple[Any, LinkConfig]:
        """The settings of the model and of the links."""
        return self.config, self.link_config

    @classmethod
    def of_fit(cls, fit: Fit) -> Fitted:
        """Return that of a loaded fit."""
        return cls(
            schema=fit.schema,
            columns=() if fit.matrix else learnt(fit.columns, fit.levels, fit.links, fit.styles),
            posterior=fit.posterior,
            config=fit.config,
            link_config=fit.link_config,
            data_hash=fit.header.data_hash,
            seed=fit.seed,
            notes=fit.notes,
            fit=None if fit.matrix is None else fit,
            groups=fit.header.groups,
            warmup=fit.plan.warmup,
            reaches=() if fit.data is None else tuple(map(reach_of, fit.data.columns)),
            ends={} if fit.data is None else _ends_of(fit.data),
            residuals={} if fit.data is None else residuals_of(fit.data),
        )

    @classmethod
    def of_run(
        cls, schema: Schema, data: Data, problem: Problem, posterior: Posterior, seed: int
    ) -> Fitted:
        """Return that of a run in memory."""
        columns = [encoded.column for encoded in data.columns]
        levels = [encoded.levels for encoded in data.columns]
        styles = [encoded.style for encoded in data.columns]
        return cls(
            schema=schema,
            columns=learnt(columns, levels, problem.links, styles),
            posterior=posterior,
            config=problem.config,
            link_config=problem.link_config,
            data_hash=hash_of_data(data),
            seed=seed,
            groups=None if data.groups is None else data.groups.labels,
            ends=_ends_of(data),
            residuals=residuals_of(data),
        )

    def thinned(self, at_least: int = 0) -> Fitted:
        """Return it with the draws that many rows are completed with, evenly thinned."""
        posterior = self.posterior.thinned(max(DRAWS, at_least))
        return replace(self, posterior=posterior)

    def with_types(self, table: pa.Table) -> pa.Table:
        """Return new rows, their columns of nulls of types that hold what completes them."""
        return with_types(table, self.columns)

    def encode(
        self,
        table: pa.Table,
        matrix: MatrixOptions | None = None,
        *,
        unseen: Unseen = "error",
        file: str | None = None,
    ) -> Encoded:
        """Return the rows of a table, or triplets, encoded as the fit's were.

        table : with the fit's modelled columns, in any order; triplets for a fit of these
        matrix : of triplets, what is known of new units
        unseen : {"error", "missing"}; what a level is that the fit does not know; as "missing" it
            is left as it stands

        Raises GlfmError: the table is not like the fit's.
        """
        missing = check_unseen(unseen) == "missing"
        if self.fit is not None:
            given = matrix or MatrixOptions()
            features = features_of(given.row_features), features_of(given.column_features)
            return encode_units(self.fit, table, features, unseen=unseen, file=file)
        data = encode_rows(
            table,
            self.schema,
            self.columns,
            unseen_is_missing=missing,
            groups=self.groups or (),
            file=file,
        )
        data = with_known(data, file)
        check_intervals(self.posterior.links, data, file)
        check_reach(self.posterior.links, [encoded.scored for encoded in data.columns], file)
        if self.reaches:
            data = replace(data, notes=(*data.notes, *beyond_notes(data, self.reaches)))
        ends = self.ends
        columns = (replace(one, learnt_reach=ends.get(one.column.name)) for one in data.columns)
        return replace(data, columns=tuple(columns), learnt_residuals=self.residuals)

    def run(self, data: Encoded, *, seed: int, threads: int = 1, sweeps: int | None = None) -> Run:
        """Return the draws for encoded rows: as they are for the fit's own table, else folded in.

        `seed`, `threads` and `sweeps` are those of `glfm_cli.inference.folding.fold_in`.
        """
        began = time.monotonic()
        posterior = self.posterior
        new = self._new(data)
        if new is None and isinstance(data, Data):
            posterior = of_rows(posterior, data.groups, data.seen)
        elif new is not None:
            problem = self.problem_of(new)
            posterior = that_reach(posterior, problem)
            posterior = fold_in(posterior, problem, seed=seed, threads=threads, sweeps=sweeps)
        return Run(posterior, None, time.monotonic() - began, self.notes)

    def problem_of(self, new: Encoded) -> Problem:
        """Return the model and its settings, and encoded rows that are to be folded in."""
        posterior = self.posterior
        xs = learnt_cells(new.columns)
        layout = DENSE if isinstance(new, Data) else new.layout
        return Problem(
            *(posterior.model, self.config, posterior.links, xs, self.link_config, layout),
            groups=new.groups if isinstance(new, Data) else None,
        )

    def is_own(self, data: Data) -> bool:
        """Return whether this is the table that the fit was made from."""
        return hash_of_data(data) == self.data_hash

    def _new(self, data: Encoded) -> Encoded | None:
        """Return what the fit has not seen of it: nothing of the table that it was made from."""
        if not isinstance(data, Data):
            return data.new
        return None if self.is_own(data) else data


def _ends_of(data: Data) -> dict[str, tuple[float, float]]:
    """Return the least and the largest value of each numeric column that has some."""
    columns = [one for one in data.columns if one.column.numeric and one.typical.size]
    return {one.column.name: one.reach for one in columns}
