"""An explored table, as tables and as one object for JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import glfm_cli.exploration.tables as tables
from glfm_cli.exploration.findings import Findings


@dataclass(frozen=True, eq=False, repr=False)
class Exploration(Findings):
    """The features and patterns of a table, and their stability; see `Findings`."""

    def to_table(self) -> pa.Table:
        """Return the features, one row each."""
        return tables.features(self)

    def tables(self) -> dict[str, pa.Table]:
        """Return everything as tidy tables, by name."""
        return tables.everything(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary that `glfm explore --json` prints."""
        return tables.summary(self)
