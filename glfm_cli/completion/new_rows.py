"""Complete rows with a fit that was made before, without sampling it anew.

Rows that the fit has not seen are folded in: under each of its draws their own latent variables
are drawn, everything shared held fixed. The table that the fit was made from is completed from
the draws as they are.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data, LearntColumn, encode_rows
from glfm_cli.errors import TableError, UsageError
from glfm_cli.inference.chain import Problem
from glfm_cli.inference.folding import SWEEPS, fold_in
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.sampling import Run
from glfm_cli.links import Link, LinkConfig
from glfm_cli.schema import Column, Schema
from glfm_cli.store import Fit, hash_of_data

Unseen = Literal["error", "missing"]

_FARTHEST = 1e100  # on the latent scale; nothing there can be told apart


@dataclass(frozen=True)
class Fitted:
    """What completing rows needs of a fit, whether it is kept in a folder or in memory.

    schema : the types it was made with
    columns : its modelled columns, in the order of the posterior's links
    config, link_config : those of the model and the links
    data_hash : of the table it was made from
    notes : what a user should know of it, one line each
    """

    schema: Schema
    columns: tuple[LearntColumn, ...]
    posterior: Posterior
    config: Any
    link_config: LinkConfig
    data_hash: str
    seed: int
    notes: tuple[str, ...] = ()

    @classmethod
    def of_fit(cls, fit: Fit) -> Fitted:
        """Return that of a loaded fit."""
        return cls(
            schema=fit.schema,
            columns=_learnt(fit.columns, fit.levels, fit.links),
            posterior=fit.posterior,
            config=fit.config,
            link_config=fit.link_config,
            data_hash=fit.header.data_hash,
            seed=fit.seed,
            notes=fit.notes,
        )

    @classmethod
    def of_run(
        cls, schema: Schema, data: Data, problem: Problem, posterior: Posterior, seed: int
    ) -> Fitted:
        """Return that of a run in memory."""
        columns = [encoded.column for encoded in data.columns]
        levels = [encoded.levels for encoded in data.columns]
        return cls(
            schema=schema,
            columns=_learnt(columns, levels, problem.links),
            posterior=posterior,
            config=problem.config,
            link_config=problem.link_config,
            data_hash=hash_of_data(data),
            seed=seed,
        )

    def encode(self, table: pa.Table, *, unseen: Unseen = "error", file: str | None = None) -> Data:
        """Return the rows of a table encoded as the fit's were.

        Parameters
        ----------
        table : pyarrow.Table
            With the fit's modelled columns, in any order.
        unseen : {"error", "missing"}
            What a level is that the fit does not know; as "missing" it is left as it stands.
        file : str, optional
            The table's name in messages.

        Raises
        ------
        GlfmError
            The table is not like the fit's.
        """
        missing = check_unseen(unseen) == "missing"
        data = encode_rows(table, self.schema, self.columns, unseen_is_missing=missing, file=file)
        check_reach(self.posterior.links, [encoded.x for encoded in data.columns], file)
        return data

    def run(self, data: Data, *, seed: int, threads: int = 1, sweeps: int = SWEEPS) -> Run:
        """Return the draws for encoded rows: as they are for the fit's own table, else folded in.

        `seed`, `threads` and `sweeps` are those of `glfm_cli.inference.folding.fold_in`.
        """
        began = time.monotonic()
        posterior = self.posterior
        if hash_of_data(data) != self.data_hash:
            xs = tuple(encoded.x for encoded in data.columns)
            links = posterior.links
            problem = Problem(posterior.model, self.config, links, xs, self.link_config)
            posterior = fold_in(posterior, problem, seed=seed, threads=threads, sweeps=sweeps)
        return Run(posterior, None, time.monotonic() - began, self.notes)


def check_unseen(unseen: str) -> Unseen:
    """Return what to do with unseen levels; raise UsageError for an unknown word."""
    known: dict[str, Unseen] = {name: name for name in get_args(Unseen)}
    if unseen not in known:
        raise UsageError("--unseen", value=unseen, expected=" or ".join(known))
    return known[unseen]


def _learnt(
    columns: Sequence[Column], levels: Sequence[tuple[str, ...]], links: Sequence[Link]
) -> tuple[LearntColumn, ...]:
    return tuple(
        LearntColumn(column, known, link.typical())
        for column, known, link in zip(columns, levels, links, strict=True)
    )


def check_reach(links: Sequence[Link], xs: Sequence[Array], file: str | None) -> None:
    """Raise if an observed value has no finite place on the latent scale of its fitted link."""
    for link, x in zip(links, xs, strict=True):
        y = link.start(x, np.random.default_rng(0))[1]
        bad = np.flatnonzero(~(np.abs(y) < _FARTHEST).all(axis=1))
        if bad.size:
            raise TableError(
                "the value lies too far from those that the fit has seen",
                file=file,
                column=link.name,
                row=int(bad[0]) + 1,
                value=float(x[bad[0]]),
                hint="Leave the cell empty, or fit again with such values.",
            )
