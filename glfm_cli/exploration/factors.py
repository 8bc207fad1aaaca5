"""What the components of a matrix of counts are: shares, leading columns, correlations.

Shown is the restart of the largest bound. A component of it is found again by another restart
whose best match, by the cosine of the two distributions over columns, is at least `ALIKE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import squareform

from glfm_cli.arrays import Array
from glfm_cli.completion import MatrixData
from glfm_cli.exploration.explored import Explored
from glfm_cli.exploration.job import ExplorationJob
from glfm_cli.exploration.request import Request
from glfm_cli.inference.sampling import Run
from glfm_cli.latent.capabilities import CountFactors, HasFactors

LIVE = 1e-3  # share of the counts from which a component is shown
ALIKE = 0.8
LEAST = 0.25  # correlation from which a pair is shown: who has a count is decided too sharply,
# which moves correlations by 0.1, at times 0.2, of however many rows
FEWEST = 2.0  # expected counts of a column in a component from which its lift is looked at


@dataclass(frozen=True)
class CountComponent:
    """One component of the rates.

    share : of all expected counts;  stability : of the other restarts, those that find it again
    weight : (J,) the columns' shares in it;  lift : (J,) over their shares in all counts
    row_share : (I,) its part in each row's expected counts
    """

    name: str
    share: float
    stability: float
    weight: Array
    lift: Array
    row_share: Array


@dataclass(frozen=True)
class CorrelatedPair:
    """Two components; `agreement` is the share of other restarts in which the sign is the same.

    NaN where none of them has both components.
    """

    first: int
    second: int
    correlation: float
    agreement: float


@dataclass(frozen=True, eq=False, repr=False)
class FactorExploration(Explored):
    """The components of a matrix of counts, the largest first.

    rows, columns : ids of either side;  top : how many columns, and pairs, are named
    correlations : (K, K) between the components, 0 in a model without
    pairs : those more correlated than independent components are, the most opposed last
    """

    rows: pa.Array
    columns: pa.Array
    components: tuple[CountComponent, ...]
    correlations: Array
    pairs: tuple[CorrelatedPair, ...]
    top: int

    def leading(self, component: CountComponent, *, by_lift: bool = False) -> list[str]:
        """Return the columns of the largest weights, or of the largest lifts."""
        score = component.lift if by_lift else component.weight
        index = np.argsort(-score, kind="stable")[: self.top]
        return [str(self.columns[int(i)]) for i in index if score[i] > 0.0]

    @property
    def order(self) -> Array:
        """Components (K,) with those alike beside each other, by average linkage."""
        if len(self.components) < 3:
            return np.arange(len(self.components))
        apart = np.clip(1.0 - self.correlations, 0.0, 2.0)
        np.fill_diagonal(apart, 0.0)
        tree = linkage(squareform(0.5 * (apart + apart.T), checks=False), "average")
        return np.asarray(leaves_list(tree))

    def to_table(self) -> pa.Table:
        """Return the components, one row each."""
        return pa.table(
            {
                "component": pa.array([c.name for c in self.components], pa.string()),
                "share": pa.array([c.share for c in self.components], pa.float64()),
                "stability": pa.array(
                    [c.stability for c in self.components], pa.float64(), from_pandas=True
                ),
                "by_weight": pa.array(
                    [", ".join(self.leading(c)) for c in self.components], pa.string()
                ),
                "by_lift": pa.array(
                    [", ".join(self.leading(c, by_lift=True)) for c in self.components], pa.string()
                ),
            }
        )

    def tables(self) -> dict[str, pa.Table]:
        """Return everything as tidy tables, by name."""
        names = [c.name for c in self.components]
        pairs = {
            "component": pa.array([names[p.first] for p in self.pairs], pa.string()),
            "other": pa.array([names[p.second] for p in self.pairs], pa.string()),
            "correlation": pa.array([p.correlation for p in self.pairs], pa.float64()),
            "agreement": pa.array(
                [p.agreement for p in self.pairs], pa.float64(), from_pandas=True
            ),
        }
        weights = [("weight", [c.weight for c in self.components])]
        weights.append(("lift", [c.lift for c in self.components]))
        shares = [("share", [c.row_share for c in self.components])]
        return {
            "components": self.to_table(),
            "pairs": pa.table(pairs),
            "columns": self._long("column", self.columns, weights),
            "rows": self._long("row", self.rows, shares),
        }

    def _long(self, what: str, ids: pa.Array, values: list[tuple[str, list[Array]]]) -> pa.Table:
        """Return a row for each component and unit."""
        n, K = len(ids), len(self.components)
        names = [c.name for c in self.components for _ in range(n)]
        found: dict[str, Any] = {"component": pa.array(names, pa.string())}
        found[what] = ids.take(pa.array(np.tile(np.arange(n), K)))
        for name, parts in values:
            found[name] = np.concatenate([*parts, np.empty(0)])
        return pa.table(found)

    def to_dict(self) -> dict[str, Any]:
        """Return the summary that `glfm explore --json` prints."""
        tables = self.tables()
        return {
            "rows": len(self.rows),
            "columns": len(self.columns),
            "components": tables["components"].to_pylist(),
            "pairs": tables["pairs"].to_pylist(),
            **self.of_fit(),
        }


def describe_factors(run: Run, job: ExplorationJob, request: Request) -> FactorExploration:
    """Return what the best restart says of the structure of a matrix of counts."""
    posterior = run.posterior
    model = posterior.model
    assert isinstance(model, HasFactors)
    best, *others = (model.factors(draw.latent) for draw in posterior.draws())
    total = best.counts.sum(axis=0)
    share = total / total.sum()
    chosen = np.argsort(-share, kind="stable")
    chosen = chosen[share[chosen] > LIVE]
    matches = [_matched(best, other, chosen) for other in others]
    weight = _distributions(best)
    overall = weight @ share
    rows = best.counts / best.counts.sum(axis=1, keepdims=True)
    components = tuple(
        CountComponent(
            f"C{place + 1}",
            float(share[k]),
            float(np.mean([match[place] >= 0 for match in matches])) if matches else np.nan,
            weight[:, k],
            np.where(total[k] * weight[:, k] >= FEWEST, weight[:, k] / overall, 0.0),
            rows[:, k],
        )
        for place, k in enumerate(chosen)
    )
    at, sides = np.ix_(chosen, chosen), _names(job)
    correlations, level = best.correlations[at], np.maximum(best.level[at], LEAST)
    return FactorExploration(
        **job.of_run(run, request, ("top",), ()),
        rows=sides[0],
        columns=sides[1],
        components=components,
        correlations=correlations,
        pairs=tuple(_pairs(correlations, level, others, matches)),
        top=request.top,
    )


def _names(job: ExplorationJob) -> tuple[pa.Array, pa.Array]:
    """Return the ids of rows and columns; of a table without an id column, numbers from 1."""
    data = job.data
    if isinstance(data, MatrixData):
        return data.rows.values, data.others.values
    numbered = job.ids.num_rows != data.n_rows or not job.ids.num_columns
    rows = pa.array(np.arange(1, data.n_rows + 1)) if numbered else job.ids.column(0)
    if isinstance(rows, pa.ChunkedArray):
        rows = rows.combine_chunks()
    return rows, pa.array([encoded.column.name for encoded in data.columns])


def _distributions(factors: CountFactors) -> Array:
    """Return the columns' shares (J, K) in every component."""
    return factors.columns / factors.columns.sum(axis=0)


def _matched(best: CountFactors, other: CountFactors, chosen: Array) -> Array:
    """Return which component of another restart each of those chosen is, -1 for none."""
    one, two = (part / np.linalg.norm(part, axis=0) for part in map(_distributions, (best, other)))
    cosine = one[:, chosen].T @ two
    own, found = linear_sum_assignment(-cosine)
    match = np.full(chosen.size, -1)
    alike = cosine[own, found] >= ALIKE
    match[own[alike]] = found[alike]
    return match


def _pairs(
    correlations: Array, level: Array, others: list[CountFactors], matches: list[Array]
) -> list[CorrelatedPair]:
    """Return the pairs above their level, from the most correlated to the most opposed."""
    found = []
    for j, k in zip(*np.nonzero(np.triu(np.abs(correlations) > level, 1)), strict=True):
        signs = [
            other.correlations[match[j], match[k]] * correlations[j, k] > 0.0
            for other, match in zip(others, matches, strict=True)
            if match[j] >= 0 and match[k] >= 0
        ]
        agreement = float(np.mean(signs)) if signs else np.nan
        found.append(CorrelatedPair(int(j), int(k), float(correlations[j, k]), agreement))
    return sorted(found, key=lambda pair: -pair.correlation)
