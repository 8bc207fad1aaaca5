"""What was found in an explored table: its features, its patterns, and how sure they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data
from glfm_cli.exploration.choice import Sample
from glfm_cli.exploration.dependence import Dependence
from glfm_cli.exploration.explanation import Explanation
from glfm_cli.exploration.explored import Explored
from glfm_cli.exploration.features import Feature
from glfm_cli.exploration.missingness import Missingness
from glfm_cli.exploration.patterns import Pattern
from glfm_cli.exploration.rows import Similar, Surprising
from glfm_cli.exploration.scales import ColumnProfile, Scale
from glfm_cli.exploration.shared import SharedByRows
from glfm_cli.exploration.words import describe


@dataclass(frozen=True)
class Remainder:
    """The features of the explanation that are not shown.

    number : how many;  largest : the largest share of rows that has one
    explained : what they explain, as a part of what all features explain
    """

    number: int
    largest: float
    explained: float


@dataclass(frozen=True, eq=False, repr=False)
class Findings(Explored):
    """What structure is in a table, and how sure that is.

    ids : the id columns of the table
    sample, shown : which draw is shown and why; the draw
    features, remainder : those of its features that are shown, and the others
    null_level : the evidence |z| that chance reaches in one of twenty tables without dependence
    main, patterns : the features that make up patterns; all patterns, the commonest first
    top : how many patterns are shown
    scales : the modelled columns;  columns : those that were asked for
    baseline : the observed distribution of each modelled column
    missing : which cells are missing
    surprising, similar, dependence : where asked for
    shared : what rows share by groups and in time; None without either
    """

    data: Data
    ids: pa.Table
    sample: Sample
    shown: Explanation
    features: tuple[Feature, ...]
    remainder: Remainder
    null_level: float
    main: tuple[Feature, ...]
    patterns: tuple[Pattern, ...]
    top: int
    scales: tuple[Scale, ...]
    columns: tuple[Scale, ...]
    baseline: tuple[ColumnProfile, ...]
    missing: Missingness
    surprising: Surprising | None
    similar: Similar | None
    dependence: Dependence | None
    shared: SharedByRows | None

    @property
    def n_features(self) -> int:
        """The number of features of the draw shown."""
        return int(self.shown.Z.shape[1])

    @property
    def top_patterns(self) -> tuple[Pattern, ...]:
        """The patterns that are shown."""
        return self.patterns[: self.top]

    def in_words(self, feature: Feature) -> str:
        """Return what sets rows with a feature apart, in the columns asked for."""
        requested = {scale.d for scale in self.columns}
        return describe(
            effect for effect in feature.effects if effect.credible and effect.scale.d in requested
        )

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
