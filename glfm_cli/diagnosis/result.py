"""What a diagnosis of a saved fit says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from glfm_cli.arrays import Array
from glfm_cli.diagnosis.check import ColumnCheck
from glfm_cli.inference.diagnostics import Diagnostics
from glfm_cli.inference.precision import Precision


@dataclass(frozen=True)
class UncertainCell:
    """A completed cell of which little is known.

    row : counted from 1
    uncertainty : relative to the column: half of what lies between the 16th and 84th percentile,
        as normal scores among the observed cells, or the entropy of the predictive over that of
        the observed shares. 1 says that the rest of the row tells nothing.
    guess : mean and standard deviation, or the likeliest level and its probability
    """

    row: int
    column: str
    uncertainty: float
    guess: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dict(vars(self))


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The checks of a fit: precision, convergence, fit to the data, and advice.

    Attributes
    ----------
    path : str
    model : str
    n_rows, chains, draws : int
        Of the table; chains that count; draws of all chains.
    diagnostics : Diagnostics
        R-hat and effective sample sizes of every traced quantity.
    precision : Precision, or None
        How far estimates would move with another seed; None when the fit has no table.
    traces : dict of str to (chain, draw) float64
    labels : dict of str to str
        What each traced quantity is, in words.
    checks : tuple of ColumnCheck, or None
        The posterior predictive check of every column; None when the fit was saved without data.
    uncertain : tuple of UncertainCell, or None
        The least certain of the completed cells, the worst first; None likewise.
    models : tuple of str
        The model of each chain; empty where all are of one. Traces and quantities are then those of
        the chains of one model, named `log_likelihood of forest`.
    notes, advice : tuple of str
        What the user should know; what to do next.
    """

    path: str
    model: str
    n_rows: int
    chains: int
    draws: int
    diagnostics: Diagnostics
    precision: Precision | None
    traces: dict[str, Array]
    labels: dict[str, str]
    checks: tuple[ColumnCheck, ...] | None
    uncertain: tuple[UncertainCell, ...] | None
    notes: tuple[str, ...]
    advice: tuple[str, ...]
    models: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the verdict; the fields hold all traces."""
        return f"<Diagnosis of {self.path}: {self.in_words()}>"

    @property
    def good(self) -> bool:
        """Whether estimates are precise enough, or chains agree where there is no table."""
        return self.diagnostics.converged() if self.precision is None else self.precision.good

    def worst(self, most: int) -> list[str]:
        """Return the traces to look at first: likelihoods, numbers of parts, then the worst."""
        ranked = sorted((q for q in self.diagnostics if q.gating), key=lambda q: -q.severity())
        first = ("log_likelihood", "features", "rank")
        names = [n for one in first for n in self.traces if n.partition(" of ")[0] == one]
        names += [q.name for q in ranked]
        return [name for name in dict.fromkeys(names) if name in self.traces][:most]

    def in_words(self) -> str:
        """Return a sentence or two on how precise it is."""
        return (self.precision or self.diagnostics).summary()

    def to_dict(self) -> dict[str, Any]:
        """Return what `glfm diagnose --json` prints."""
        checks, uncertain = self.checks, self.uncertain
        return {
            "path": self.path,
            "model": self.model,
            "rows": self.n_rows,
            "chains": self.chains,
            "draws": self.draws,
            "models": list(self.models),
            "diagnostics": self.diagnostics.to_dict(),
            "precision": None if self.precision is None else self.precision.to_dict(),
            "labels": self.labels,
            "predictive_check": None if checks is None else [c.to_dict() for c in checks],
            "uncertain_cells": None if uncertain is None else [c.to_dict() for c in uncertain],
            "notes": list(self.notes),
            "advice": list(self.advice),
        }
