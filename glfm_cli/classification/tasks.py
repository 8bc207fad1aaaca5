"""Tasks that share experts: the column that names them, which experts each uses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import softmax

from glfm_cli.arrays import Array
from glfm_cli.encoding import EncodedColumn
from glfm_cli.errors import TableError
from glfm_cli.schema import Role, Schema

COMMON = 0.01  # of the experts' shares in all tasks is mixed into each task's, so that none is 0
TASK = "task"


def with_readable_task(schema: Schema) -> Schema:
    """Return a schema whose task column, if any, is read as a categorical predictor."""
    return replace(
        schema,
        columns=tuple(
            replace(c.of_levels(), role=Role.PREDICTOR) if c.role is Role.TASK else c
            for c in schema.columns
        ),
    )


def as_task(encoded: EncodedColumn, file: str | None) -> EncodedColumn:
    """Return the encoded task column under its role.

    Raises TableError: a row's task is missing.
    """
    if not encoded.observed.all():
        raise TableError(
            "the row's task is missing",
            file=file,
            column=encoded.column.name,
            row=int(np.flatnonzero(~encoded.observed)[0]) + 1,
            expected="a task in every row",
            hint="Fill in the task, or leave the row out.",
        )
    return replace(encoded, column=replace(encoded.column, role=Role.TASK))


def divergence(shares: Array) -> Array:
    """Return the Kullback-Leibler divergences (J, J) of the row's task from the column's.

    Every task's shares (J, S) are mixed with a hundredth of the mean of all, so that an expert
    that a task does not use leaves the divergence finite.
    """
    p = (1.0 - COMMON) * shares + COMMON * shares.mean(axis=0)
    p = p / p.sum(axis=1, keepdims=True)
    log_p = np.log(np.maximum(p, 1e-300))
    own = (p * log_p).sum(axis=1)
    return np.maximum(own[:, None] - p @ log_p.T, 0.0)


def alike(shares: Array) -> Array:
    """Return the similarities (J, J) of tasks of these shares (J, S)."""
    apart = divergence(shares)
    return np.exp(-0.5 * (apart + apart.T))


def blurred(shares: Array, centers: Array) -> Array:
    """Return the shares (J, S) when experts that lie near one another are taken for one another.

    The share of expert k goes to expert s by the probability that a row at the centre of k is one
    of s, to whom every feature, alone and apart from the others, has the spread that it has in the
    table:

        P(s | k) ~ eta_s exp(-|m_k - m_s|^2 / 2),  eta the mean of the tasks' shares

    An expert split into two at the same place changes nothing for the others.

    shares : (J, S)
    centers : (S, P) of the experts, in standard deviations of the features
    """
    square = (centers**2).sum(axis=1)
    apart = np.maximum(square[:, None] + square - 2.0 * centers @ centers.T, 0.0)
    with np.errstate(divide="ignore"):
        log_p = np.log(shares.mean(axis=0)) - 0.5 * apart
    return np.asarray(shares @ softmax(log_p, axis=1))


@dataclass(frozen=True, eq=False)
class FitUsage:
    """Which experts the tasks use in one of the fits that predict together.

    weight : of the fit
    shares : (J, S) expected share of each expert in each task's rows
    centers : (S, P) where the experts lie, features in their standard deviations
    """

    weight: float
    shares: Array
    centers: Array


@dataclass(frozen=True, eq=False)
class TaskUsage:
    """Which experts the tasks use.

    column : name of the task column;  names : (J,) the tasks
    fits : those that predict together, the best first
    """

    column: str
    names: tuple[str, ...]
    fits: tuple[FitUsage, ...]

    @property
    def weights(self) -> Array:
        """Return the expected share (J, S) of each expert of the best fit in each task's rows."""
        return self.fits[0].shares

    def similarity(self) -> Array:
        """Return exp(-(KL_jk + KL_kj) / 2) (J, J): 1 for the same use of experts, 0 for no common.

        Of several fits, the weighted mean. [iQGME section 4.4.1, made symmetric; it adds up those
        of several trials]
        """
        found = np.asarray(sum(fit.weight * alike(fit.shares) for fit in self.fits))
        np.fill_diagonal(found, 1.0)  # which rounded weights miss
        return found

    def nearness(self) -> Array:
        """Return the same (J, J) where experts that lie near one another count as partly shared.

        Tasks with experts of their own are near when these lie at the same place. [see `blurred`]
        """
        each = (fit.weight * alike(blurred(fit.shares, fit.centers)) for fit in self.fits)
        return np.asarray(sum(each))

    def to_table(self, *, near: bool = False) -> pa.Table:
        """Return the similarities, or nearnesses: a row a task, `task` and a column for each."""
        values = self.nearness() if near else self.similarity()
        columns = [pa.array(self.names, pa.string()), *(pa.array(column) for column in values.T)]
        first = TASK
        while first in self.names:
            first += "_"
        return pa.table(columns, names=[first, *self.names])

    def to_dict(self) -> dict[str, Any]:
        """Return the part of the summary that speaks of tasks."""
        return {
            "column": self.column,
            "names": list(self.names),
            "shares": self.weights.tolist(),
            "similarity": self.similarity().tolist(),
            "nearness": self.nearness().tolist(),
        }
