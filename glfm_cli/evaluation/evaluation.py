"""What an evaluation found: results, their summary, and how it went."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

import glfm_cli.evaluation.results as results
import glfm_cli.evaluation.summary as summary
from glfm_cli.completion import Encoded
from glfm_cli.evaluation.results import Outcome
from glfm_cli.evaluation.summary import Line
from glfm_cli.io.frames import AsGiven


@dataclass(frozen=True, repr=False)
class Evaluation(AsGiven):
    """The scores of completed cells, by method.

    fits : in the order of rates, repeats and methods
    methods : their names, in the order asked for
    reference : the method that differences are taken to
    mechanism, rates, repeats, seed : how cells were hidden
    stopped : "interrupted", or None when every fit was made
    seconds : that this run took; fits of an earlier one not counted
    """

    fits: tuple[Outcome, ...]
    methods: tuple[str, ...]
    reference: str
    mechanism: str
    rates: tuple[float, ...]
    repeats: int
    seed: int
    data: Encoded
    stopped: str | None
    seconds: float

    def to_table(self) -> pa.Table:
        """Return one row a method, rate, repeat, column and score."""
        return results.to_table(self.fits)

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The summary as named tuples: means over the repeats, and differences."""
        return tuple(summary.summarize(self.fits, self.methods, self.reference))

    def summary(self) -> pa.Table:
        """Return one row a score, rate and method: mean, standard error, difference, best."""
        return summary.to_table(self.lines)

    @property
    def failures(self) -> tuple[Outcome, ...]:
        """Return the fits that gave no usable answer."""
        return tuple(fit for fit in self.fits if fit.problem)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know, one line each."""
        told = list(self.data.notes)
        made = Counter(fit.id.method for fit in self.fits)
        for method in self.methods:
            failed = [fit for fit in self.failures if fit.id.method == method]
            if failed:
                reasons = Counter(fit.problem for fit in failed).most_common(1)
                told.append(
                    f"{method} failed in {len(failed)} of {made[method]} fits: {reasons[0][0]}"
                )
        return tuple(told)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that `glfm evaluate --json` prints."""
        return {
            "rows": self.data.n_rows,
            "columns": self.data.n_columns,
            "mechanism": self.mechanism,
            "rates": list(self.rates),
            "repeats": self.repeats,
            "seed": self.seed,
            "methods": list(self.methods),
            "reference": self.reference,
            "fits": len(self.fits),
            "stopped": self.stopped,
            "seconds": round(self.seconds, 3),
            "failures": [
                {
                    "method": fit.id.method,
                    "rate": fit.id.rate,
                    "repeat": fit.id.repeat,
                    "reason": fit.problem,
                }
                for fit in self.failures
            ],
            "summary": [_entry(line) for line in self.lines],
            "warnings": list(self.warnings),
        }


def _entry(line: Line) -> dict[str, Any]:
    entry: dict[str, Any] = {name: value for name, value in line.what._asdict().items() if value}
    for name, value in line._asdict().items():
        if name != "what":
            entry[name] = value if not isinstance(value, float) or math.isfinite(value) else None
    return entry
