"""A fit with components explored: rank, components, covariates, as tables and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import Data
from glfm_cli.exploration.explored import Explored
from glfm_cli.exploration.goes_with import Amount, GoesWith
from glfm_cli.exploration.lowrank import Component, CovariateEffect
from glfm_cli.exploration.shared import SharedByRows
from glfm_cli.exploration.shared_tables import shared_summary, shared_tables


@dataclass(frozen=True, eq=False, repr=False)
class ComponentExploration(Explored):
    """The rank and the components of a matrix, or of a table seen as one.

    rows, columns : which the rows and the (latent) columns are, a row of ids and labels each; of a
        matrix with its number of observed `cells`
    ranks : the number of components of every draw, an array for each chain
    components : those of the mean of the low-rank part whose sizes are surely above 0, the
        largest first
    top : how many rows and columns are named for each component
    variance : of a matrix of one kind, the shares of its parts, of the noise too
    explained : of a table, per latent column the share of its variance that the components tell
        from other columns, with where the middle 95 % of the draws lie
    effects : what the covariates do;  shared : what rows share by groups and in time
    """

    rows: pa.Table
    columns: pa.Table
    ranks: tuple[Array, ...]
    components: tuple[Component, ...]
    top: int
    variance: tuple[Amount, ...]
    explained: tuple[tuple[float, float, float], ...]
    effects: tuple[CovariateEffect, ...]
    shared: SharedByRows | None

    def rank_table(self) -> pa.Table:
        """Return the posterior of the rank, one row a value."""
        values, counts = np.unique(np.concatenate(self.ranks), return_counts=True)
        return pa.table({"rank": values, "probability": counts / counts.sum()})

    def labels(self, side: str, index: Array) -> list[str]:
        """Return the names of some rows or columns, as they are printed."""
        table = (self.rows if side == "row" else self.columns).take(pa.array(index))
        if not isinstance(self.data, Data):
            name = "label" if "label" in table.column_names else table.column_names[0]
            return [str(text) for text in table[name].to_pylist()]
        texts = []
        for row in table.to_pylist():
            parts = [str(value) for value in row.values() if value not in (None, "")]
            texts.append("=".join(parts) if side == "column" else parts[0])
        return texts

    def leading(self, component: Component, side: str) -> list[tuple[str, float, float]]:
        """Return name, score and its sd of the rows or columns whose scores are surely largest.

        Ordered by where the two sd around each end, so that few cells do not lead by chance.
        """
        score, sd = (
            (component.rows, component.rows_sd)
            if side == "row"
            else (component.columns, component.columns_sd)
        )
        index = np.argsort(2.0 * sd - np.abs(score), kind="stable")[: self.top]
        names = self.labels(side, index)
        return [(name, float(score[i]), float(sd[i])) for name, i in zip(names, index, strict=True)]

    def to_table(self) -> pa.Table:
        """Return the components, one row each."""
        return pa.Table.from_pylist(
            [
                {"component": c.name, "size": c.size, "size_sd": c.size_sd, "share": c.share}
                for c in self.components
            ],
            schema=pa.schema(
                [("component", pa.string()), *((n, pa.float64()) for n in _OF_COMPONENT)]
            ),
        )

    def tables(self) -> dict[str, pa.Table]:
        """Return everything as tidy tables, by name."""
        found = {
            "components": self.to_table(),
            "rows": self._scores("row"),
            "columns": self._scores("column"),
            "rank": self.rank_table(),
            "rank_trace": _trace(self.ranks),
        }
        if self.variance:
            found["variance"] = pa.Table.from_pylist([_part(one) for one in self.variance])
        if self.explained:
            shares = np.array(self.explained)
            named = {name: self.columns[name] for name in self.columns.column_names}
            named |= {n: pa.array(shares[:, i]) for i, n in enumerate(("share", "lower", "upper"))}
            found["explained"] = pa.table(named)
        if self.effects:
            found["covariates"] = pa.Table.from_pylist([_effect(one) for one in self.effects])
        together = [
            {"component": c.name, **_of(one)} for c in self.components for one in c.goes_with
        ]
        if together:
            found["goes_with"] = pa.Table.from_pylist(together)
        return found | shared_tables(self.shared)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary that `glfm explore --json` prints."""
        rank = self.rank_table()
        every = np.concatenate(self.ranks)
        return {
            "rows": self.rows.num_rows,
            "columns": self.columns.num_rows,
            "rank": {
                "mean": float(every.mean()),
                "lower": int(np.quantile(every, 0.025, method="inverted_cdf")),
                "upper": int(np.quantile(every, 0.975, method="inverted_cdf")),
                "posterior": rank.to_pylist(),
            },
            "components": [
                {
                    "name": c.name,
                    "size": c.size,
                    "size_sd": c.size_sd,
                    "share": c.share,
                    "leading_rows": _named(self.leading(c, "row")),
                    "leading_columns": _named(self.leading(c, "column")),
                    "goes_with": [_of(one) for one in c.goes_with[: self.top]],
                }
                for c in self.components
            ],
            "variance": [_part(one) for one in self.variance],
            "explained": [
                {"column": name, "share": mean, "lower": low, "upper": high}
                for name, (mean, low, high) in zip(
                    self.labels("column", np.arange(len(self.explained))),
                    self.explained,
                    strict=True,
                )
            ],
            "covariates": [_effect(one) for one in self.effects],
            **shared_summary(self.shared),
            **self.of_fit(),
        }

    def _scores(self, side: str) -> pa.Table:
        """Return the scores of all rows or columns, one row for each of every component."""
        labels = self.rows if side == "row" else self.columns
        n, K = labels.num_rows, len(self.components)
        places = pa.array(np.tile(np.arange(n), K))
        names = np.repeat([c.name for c in self.components], n) if K else np.empty(0, dtype=object)
        columns: dict[str, Any] = {"component": pa.array(names, pa.string())}
        kept = [name for name in labels.column_names if name not in OF_SCORES]
        columns |= {name: labels[name].take(places) for name in kept}
        for name, of in (("score", f"{side}s"), ("sd", f"{side}s_sd")):
            parts = [getattr(c, of) for c in self.components]
            columns[name] = pa.array(np.concatenate([*parts, np.empty(0)]))
        return pa.table(columns)


OF_SCORES = ("component", "score", "sd")  # columns of their own that tables of scores have
_OF_COMPONENT = ("size", "size_sd", "share")


def _part(amount: Amount) -> dict[str, Any]:
    shown = {"share": amount.mean, "lower": amount.lower, "upper": amount.upper}
    return {"part": amount.name, **shown}


def _effect(effect: CovariateEffect) -> dict[str, Any]:
    return {
        "side": effect.side,
        "covariate": effect.name,
        "effect": effect.mean.mean,
        "lower": effect.mean.lower,
        "upper": effect.mean.upper,
        "spread": effect.spread.mean,
        "spread_lower": effect.spread.lower,
        "spread_upper": effect.spread.upper,
    }


def _of(one: GoesWith) -> dict[str, Any]:
    amount = one.correlation
    shown = {"correlation": amount.mean, "lower": amount.lower, "upper": amount.upper}
    return {"side": one.side, "covariate": one.name, **shown, "chance": one.chance}


def _named(leading: list[tuple[str, float, float]]) -> list[dict[str, Any]]:
    return [{"name": name, "score": score, "sd": sd} for name, score, sd in leading]


def _trace(ranks: tuple[Array, ...]) -> pa.Table:
    """Return the rank of every draw, chains and draws counted from 1."""
    return pa.table(
        {
            "chain": np.repeat(np.arange(1, len(ranks) + 1), [chain.size for chain in ranks]),
            "draw": np.concatenate([np.arange(1, chain.size + 1) for chain in ranks]),
            "rank": np.concatenate(ranks),
        }
    )
