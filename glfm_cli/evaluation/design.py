"""What an evaluation compares, and which cells it hides; None where nothing was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from os import PathLike
from pathlib import Path

import numpy as np

from glfm_cli.errors import UsageError
from glfm_cli.options import whole

TIMEOUT = 600.0


@dataclass(frozen=True)
class Design:
    """How an evaluation is made.

    methods : latent models by name, "sibp", "marginal", "mean", "draw", "knn", "iterative"; the
        names of programs are added if they are not there. Of triplets: models that take them,
        "mean" (of all cells), "row-mean", "column-mean", "additive" (of row and column).
    programs : other programs: a name and a command with `{input}` and `{output}`, and, where
        useful, `{types}` and `{seed}`
    method_timeout : seconds that a program may take for one table
    rates : shares of the cells to hide, each in (0, 1)
    repeats : sets of hidden cells at each rate, 5 if left out
    mechanism : {"mcar", "mar", "mnar", "observed", "stretches"}, of triplets {"mcar",
        "one-per-row"}; what being hidden depends on: nothing, other columns, the value itself; or
        it imitates the table's own missing cells, row by row or in runs of rows. Of triplets a
        share of all cells, or one of every row.
    reference : the method that others are compared to; the first if left out
    jobs : fits that are made at the same time, in processes; as many as processors if left out
    output : a table of the results, which grows as they come
    resume : go on with the results that `output` has already
    """

    methods: Sequence[str] | None = None
    programs: Mapping[str, str] = field(default_factory=dict)
    method_timeout: float = TIMEOUT
    rates: Sequence[float] | None = None
    repeats: int | None = None
    mechanism: str | None = None
    reference: str | None = None
    jobs: int | None = None
    output: Path | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        for name, such in (("methods", '["glfm", "mean"]'), ("rates", "[0.1, 0.2]")):
            if isinstance(value := getattr(self, name), str | Real):
                raise UsageError(f"--{name}", value=value, expected=f"a list, such as {such}")
        rates = None if self.rates is None else tuple(self.rates)
        if rates is not None and not rates:
            raise UsageError("--rates", expected="at least one share of cells to hide")
        for rate in rates or ():
            if not (isinstance(rate, Real) and 0 < float(rate) < 1):
                shown = f"{rate:g}" if isinstance(rate, int | float) else rate
                raise UsageError("--rates", value=shown, expected="shares between 0 and 1")
        if rates is not None:
            object.__setattr__(self, "rates", tuple(map(float, rates)))
        if rates and len(set(np.round(np.asarray(rates) * 1e9))) < len(rates):
            raise UsageError("--rates", value="a rate twice", expected="different shares")
        for name in ("repeats", "jobs"):
            object.__setattr__(self, name, whole(name, getattr(self, name)))
        limit = self.method_timeout
        if not (isinstance(limit, Real) and 0 < float(limit) < float("inf")):
            raise UsageError("--method-timeout", value=limit, expected="seconds above 0")
        if not isinstance(self.programs, Mapping):
            raise UsageError("--method", value=self.programs, expected="commands by their names")
        if not isinstance(self.output, str | PathLike | None):
            raise UsageError("--output", value=self.output, expected="the name of a file")
        if self.resume and self.output is None:
            raise UsageError("--resume needs --output, the results to continue with")

    def check_split(self, name: str) -> None:
        """Raise UsageError when a split column leaves an option nothing to say."""
        for option in ("mechanism", "rates", "repeats"):
            value = getattr(self, option)
            if value is not None:
                raise UsageError(
                    f"--{option}", value=value, expected=f"none: '{name}' says which are hidden"
                )

    def check_triplets(self, mechanism: str) -> None:
        """Raise UsageError when something is said that is about tables alone."""
        if self.programs:
            raise UsageError(
                "--method is for tables, but the types file describes triplets",
                hint="Triplets have columns with the roles row, column and value.",
            )
        if mechanism == "one-per-row" and self.rates is not None:
            raise UsageError("--rates", expected=f"none: --mechanism {mechanism} hides one a row")
