"""The jobs of an evaluation: one fit each, the same wherever it is made.

A job says which method, rate and repeat; the bench, sent once to every worker, has the rest. What a
job draws depends on the seed, the rate and the repeat alone: all methods see the same hidden
cells, and no result depends on who makes it or when.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion import Encoded, MatrixData
from glfm_cli.encoding import Data
from glfm_cli.errors import GlfmError
from glfm_cli.evaluation.holdouts import HoldOut, draw_holdout
from glfm_cli.evaluation.masks import draw_mask
from glfm_cli.evaluation.measure import Cost, measured
from glfm_cli.evaluation.new_row_scores import score_new_rows
from glfm_cli.evaluation.new_rows import MECHANISM as NEW_ROWS
from glfm_cli.evaluation.new_rows import draw_new_rows
from glfm_cli.evaluation.results import Outcome, OutcomeId
from glfm_cli.evaluation.scoring import Score, score_all
from glfm_cli.evaluation.split import Split
from glfm_cli.evaluation.task import HiddenTask, Method, Prediction, hide, hide_pairs, hold_out_rows
from glfm_cli.schema import Schema

_MASK, _METHOD = range(2)  # what a random stream is for


class Job(NamedTuple):
    """Which fit to make: position of the method, share hidden, number of the repeat."""

    method: int
    rate: float
    repeat: int


@dataclass(frozen=True)
class Bench:
    """Everything that the jobs of one evaluation share.

    span : ranges of the columns, as `scoring.spans` gives them
    split : the given cells or rows, when the types file has a `split` column
    given : of a matrix, the cells that a `split` column marks
    """

    table: pa.Table
    schema: Schema
    data: Encoded
    span: Mapping[int, float]
    methods: tuple[Method, ...]
    mechanism: str
    split: Split | None
    seed: int
    threads: int
    given: HoldOut | None = None

    def task(self, rate: float, repeat: int, *, seed: int, threads: int) -> HiddenTask:
        """Return the table, or the matrix, with the cells of one repeat hidden."""
        if isinstance(self.data, Data):
            mask = self._mask(self.data, rate, repeat)
            return hide(self.table, self.schema, self.data, mask, seed=seed, threads=threads)
        if self.mechanism == NEW_ROWS:  # one draw for all rates: a larger one hides more
            rng = np.random.default_rng(_sequence(self.seed, _MASK, 0.0, repeat))
            rows = draw_new_rows(self.data.triplets, rate, rng)
            return hold_out_rows(self.table, self.schema, rows, seed=seed, threads=threads)
        rng = np.random.default_rng(_sequence(self.seed, _MASK, rate, repeat))
        held = self.given or draw_holdout(self.data.triplets, self.mechanism, rate, rng)
        return hide_pairs(self.table, self.schema, held, seed=seed, threads=threads)

    def score(self, task: HiddenTask, predictions: Mapping[int, Prediction]) -> list[Score]:
        """Return every score of one fit."""
        if task.new_rows is not None:
            return score_new_rows(task.new_rows, predictions[0])
        return score_all(self.data.columns, self.span, task.truth, predictions)

    def _mask(self, data: Data, rate: float, repeat: int) -> Array:
        """Return the cells (N, D) hidden at a rate, in one repeat."""
        if self.split is not None and self.split.cells is not None:
            return self.split.cells
        rng = np.random.default_rng(_sequence(self.seed, _MASK, rate, repeat))
        within = None if self.split is None else self.split.rows
        return draw_mask(data, self.mechanism, rate, rng, within=within)

    def outcome_id(self, job: Job) -> OutcomeId:
        """Return what the results call a job."""
        return OutcomeId(self.methods[job.method].name, self.mechanism, job.rate, job.repeat)


def run_job(bench: Bench, job: Job) -> Outcome:
    """Hide, complete and score; a method that fails leaves the reason."""
    method = bench.methods[job.method]
    sequence = _sequence(bench.seed, _METHOD, job.rate, job.repeat)
    seed = int(sequence.generate_state(1)[0] >> 1)  # 31 bits: every program can read it
    task = bench.task(job.rate, job.repeat, seed=seed, threads=bench.threads)
    method.load()
    problem, predictions = "", {}
    with measured(task.cost):
        try:
            predictions = method.fit(task)
        except GlfmError as error:
            problem = error.message()
    scores = [] if problem else bench.score(task, predictions)
    cost: Cost = task.cost
    return Outcome(
        id=bench.outcome_id(job),
        key=f"{table_key(bench)}-{digest(method.key)}",
        scores=tuple(scores),
        seconds=cost.seconds,
        megabytes=cost.megabytes,
        problem=problem,
    )


def _sequence(seed: int, purpose: int, rate: float, repeat: int) -> np.random.SeedSequence:
    """Return the seed of one purpose in one repeat."""
    return np.random.SeedSequence(seed, spawn_key=(purpose, round(rate * 1e9), repeat))


def table_key(bench: Bench) -> str:
    """Return a digest of what fixes the hidden cells: the encoded table, mechanism and seed."""
    parts: list[bytes | str] = [bench.mechanism, str(bench.seed)]
    for encoded in bench.data.columns:
        parts += [repr(encoded.column), repr(encoded.levels), encoded.x.tobytes()]
        parts.append(encoded.requested.tobytes())
    if isinstance(bench.data, MatrixData):
        triplets = bench.data.triplets
        parts += [triplets.row.tobytes(), triplets.column.tobytes()]
        parts += [] if bench.given is None else [bench.given.test.value.x.tobytes()]
    if bench.split is not None:
        parts += [
            part.tobytes() for part in (bench.split.cells, bench.split.rows) if part is not None
        ]
    return digest(*parts)


def digest(*parts: bytes | str) -> str:
    """Return eight hexadecimal digits that differ for different parts."""
    total = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        total.update(len(content).to_bytes(8, "little"))
        total.update(content)
    return total.hexdigest()[:8]
