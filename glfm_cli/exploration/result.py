"""An explored table: its features, its patterns, and how sure they are."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data
from glfm_cli.exploration.choice import Sample
from glfm_cli.exploration.dependence import Dependence
from glfm_cli.exploration.explanation import Explanation
from glfm_cli.exploration.features import Feature
from glfm_cli.exploration.missingness import Missingness
from glfm_cli.exploration.patterns import Pattern
from glfm_cli.exploration.rows import Similar, Surprising
from glfm_cli.exploration.scales import Profile, Scale
from glfm_cli.exploration.words import describe
from glfm_cli.inference.diagnostics import Diagnostics
from glfm_cli.inference.posterior import Posterior
from glfm_cli.schema import Schema


@dataclass(frozen=True)
class Remainder:
    """The features of the explanation that are not shown.

    number : how many;  largest : the largest share of rows that has one
    explained : what they explain, as a part of what all features explain
    stability : the largest of theirs;  stable : how many of them most draws of other chains contain
    shapes : the columns that some describe the shape of, and nothing else, of those that would
        be shown otherwise
    """

    number: int
    largest: float
    explained: float
    stability: float
    stable: int
    shapes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Exploration:
    """What structure is in a table, and how sure that is.

    data, ids : the encoded table, and its id columns
    posterior, diagnostics, stopped, seconds : the fit, and how it ended
    sample, shown : which draw is shown and why; the draw
    features, remainder : those of its features that are shown, and the others
    explained : (F,) what each feature shown explains, as a part of what all features explain
    main, patterns : the features that make up patterns; all patterns, the commonest first
    top : how many patterns are shown
    scales : the modelled columns;  columns : those that were asked for
    baseline : the observed distribution of each modelled column
    missing : which cells are missing
    surprising, similar, dependence : where asked for
    options : what the run was asked for, by name;  schema : the types as they were given
    notes : what a user should know, one line each
    """

    data: Data
    ids: pa.Table
    posterior: Posterior
    diagnostics: Diagnostics
    stopped: str | None
    seconds: float
    sample: Sample
    shown: Explanation
    features: tuple[Feature, ...]
    remainder: Remainder
    explained: Array
    main: tuple[Feature, ...]
    patterns: tuple[Pattern, ...]
    top: int
    scales: tuple[Scale, ...]
    columns: tuple[Scale, ...]
    baseline: tuple[Profile, ...]
    missing: Missingness
    surprising: Surprising | None
    similar: Similar | None
    dependence: Dependence | None
    options: dict[str, Any]
    schema: Schema
    notes: tuple[str, ...]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a user should know, one line each."""
        return self.notes

    @property
    def n_features(self) -> int:
        """The number of features of the draw shown."""
        return int(self.shown.Z.shape[1])

    @property
    def top_patterns(self) -> tuple[Pattern, ...]:
        """The patterns that are shown."""
        return self.patterns[: self.top]

    def in_words(self, feature: Feature) -> str:
        """Return what switching a feature on does to the columns asked for."""
        requested = {scale.d for scale in self.columns}
        return describe(effect for effect in feature.effects if effect.scale.d in requested)

    def features_on(self, pattern: Pattern) -> str:
        """Return the features of a pattern by name, or "none"."""
        on = [f.name for f, bit in zip(self.main, pattern.bits, strict=True) if bit]
        return " + ".join(on) or "none"

    def row_pattern(self) -> Array:
        """Return the number (N,) of each row's pattern, from 0."""
        number = np.empty(self.data.n_rows, dtype=np.int64)
        for place, pattern in enumerate(self.patterns):
            number[pattern.rows] = place
        return number

    def to_table(self) -> pa.Table:
        """Return the features, one row each."""
        from glfm_cli.exploration import tables

        return tables.features(self)

    def tables(self) -> dict[str, pa.Table]:
        """Return everything as tidy tables, by name."""
        from glfm_cli.exploration import tables

        return tables.everything(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary that `glfm explore --json` prints."""
        from glfm_cli.exploration import tables

        return tables.summary(self)

    def plot_overview(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw one page that shows it all; see `glfm_cli.plots.plot_exploration`."""
        return _plots().plot_exploration(self, path)

    def plot_columns(
        self, path: str | os.PathLike[str] | None = None, columns: Sequence[str] | None = None
    ) -> Any:
        """Draw p(x | pattern) of columns; see `glfm_cli.plots.plot_columns`."""
        return _plots().plot_columns(self, path, columns)

    def plot_shares(self, column: str, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the patterns' shares by the levels of a column; see `glfm_cli.plots.plot_shares`."""
        return _plots().plot_shares(self, column, path)

    def plot_traces(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw traces of the chains; see `glfm_cli.plots.plot_traces`."""
        return _plots().plot_traces(self, path)

    def plot_fit(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw pseudo-observations and their fit; see `glfm_cli.plots.plot_fit`."""
        return _plots().plot_fit(self, path)

    def plot_dependence(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the dependence between columns; see `glfm_cli.plots.plot_dependence`."""
        return _plots().plot_dependence(self, path)


def _plots() -> Any:
    # Figures are drawn from results, so a result does not import them; it looks them up when asked.
    return import_module("glfm_cli.plots")
