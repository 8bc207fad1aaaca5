"""The cells that may be asked for, and the draws of their means."""

from __future__ import annotations

from collections.abc import Collection, Container
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from glfm_cli.acquisition.greedy import Group, gains
from glfm_cli.arrays import Array
from glfm_cli.completion.matrix import Pairs, predict_pairs
from glfm_cli.encoding import Data, Ids, first_of_group
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import predict

MOST_DRAWS = 400  # evenly thinned; more would not make a covariance that is much better
LEAST_NOISE = 1e-12  # of a level that is certain under all draws
LAWS = 200  # samples of draws that are laws
PART = 1 << 14  # cells whose draws are held at a time, when each is looked at by itself


@dataclass(frozen=True)
class TableCells:
    """Missing cells of a table: row (n,) and column (n,), modelled ones; ascending by row.

    ids : the table's id columns;  names : of the modelled columns
    """

    row: Array
    column: Array
    ids: pa.Table
    names: tuple[str, ...]

    @classmethod
    def of(cls, data: Data, ids: pa.Table, columns: Collection[str] | None) -> TableCells:
        """Return all missing cells that are to be completed, or those of some columns.

        Without those that follow from known ones; of a column of groups the first of each group.
        """
        names = tuple(encoded.column.name for encoded in data.columns)
        requested = [d for d, name in enumerate(names) if columns is None or name in columns]
        first, rows = first_of_group(data), []
        for d in requested:
            missing = np.flatnonzero(data.columns[d].requested)
            own = ~data.columns[d].observed[missing]
            if d in first:
                own &= first[d] == np.arange(missing.size)
            rows.append(missing[own])
        row = np.concatenate([*rows, np.empty(0, dtype=np.int64)])
        column = np.repeat(requested, [part.size for part in rows]).astype(np.int64)
        order = np.lexsort((column, row))
        return cls(row[order], column[order], ids, names)

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(self.row.size)

    @property
    def units(self) -> tuple[Array, ...]:
        """The rows: columns have so many cells that one tells little of them."""
        return (self.row,)

    def features(self, posterior: Posterior, index: Array) -> list[Group]:
        """Return the draws of eta of some cells, one group for each number of latent columns."""
        rows, place = np.unique(self.row[index], return_inverse=True)
        column = self.column[index]
        requested = {int(d): np.flatnonzero(column == d) for d in np.unique(column)}
        means: dict[int, list[Array]] = {d: [] for d in requested}
        noise: dict[int, Array | float] = dict.fromkeys(requested, 0.0)
        for draw in posterior.samples(MOST_DRAWS, LAWS):
            law = posterior.cells_law(draw, rows)
            for d, part in requested.items():
                mean, within = law.column(d, place[part]).moments()
                means[d].append(mean)
                noise[d] = noise[d] + within
        # What varies within a draw is no doubt that a value would settle for other cells: noise.
        features = {d: _scaled(means.pop(d), np.asarray(noise[d])) for d in requested}
        groups: dict[int, list[int]] = {}
        for d, F in features.items():
            groups.setdefault(F.shape[1], []).append(d)
        return [
            Group(
                index[np.concatenate([requested[d] for d in alike])],
                np.concatenate([features[d] for d in alike]),
            )
            for _, alike in sorted(groups.items())
        ]

    def most(self, posterior: Posterior, index: Array) -> Array:
        """Return the entropies of levels, infinity for numbers."""
        out = np.full(index.size, np.inf)
        row, column = self.row[index], self.column[index]
        requested = {int(d): np.flatnonzero(column == d) for d in np.unique(column)}
        cells = {d: row[part] for d, part in requested.items()}
        found = predict(posterior, cells, numeric_quantiles=False)
        for d, part in requested.items():
            entropy = posterior.links[d].entropy(found[d].mean, found[d].probabilities)
            if entropy is not None:
                out[part] = entropy
        return out

    def describe(self, index: Array) -> dict[str, pa.Array]:
        """Return ids, row (from 1) and column's name of some cells."""
        row = self.row[index]
        columns = {
            name: self.ids[name].combine_chunks().take(pa.array(row))
            for name in self.ids.column_names
        }
        names = pa.array([self.names[d] for d in self.column[index]], pa.string())
        for name, cells in (("row", pa.array(row + 1)), ("column", names)):
            columns[free_name(name, columns)] = cells
        return columns


def free_name(name: str, ids: Container[str]) -> str:
    """Return a name that no id has: after a point, where one has it."""
    while name in ids:
        name = f".{name}"
    return name


@dataclass(frozen=True)
class PairCells:
    """Unobserved cells of a matrix that is given as triplets."""

    pairs: Pairs
    rows: Ids
    columns: Ids

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(self.pairs.row.size)

    @property
    def units(self) -> tuple[Array, ...]:
        """Rows and columns."""
        return self.pairs.row, self.pairs.column

    def features(self, posterior: Posterior, index: Array) -> list[Group]:
        """Return the draws of x of some pairs."""
        at = posterior.at(self.pairs)
        draws = posterior.samples(MOST_DRAWS, LAWS)
        found = [at.cells_law(draw, index).column(0).moments() for draw in draws]
        noise = np.sum([within for _, within in found], axis=0)
        return [Group(index, _scaled([mean for mean, _ in found], noise))]

    def most(self, posterior: Posterior, index: Array) -> Array:
        """Return the entropies of levels, or of one trial; infinity for numbers."""
        (link,) = posterior.links
        found = predict_pairs(posterior, self.pairs.take(index), ())
        entropy = link.entropy(found.mean, found.probabilities)
        return np.full(index.size, np.inf) if entropy is None else entropy

    def describe(self, index: Array) -> dict[str, pa.Array]:
        """Return the ids of some pairs, as the table has them."""
        return {
            ids.name: ids.values.take(pa.array(of[index]))
            for ids, of in ((self.rows, self.pairs.row), (self.columns, self.pairs.column))
        }


def gains_alone(cells: TableCells | PairCells, posterior: Posterior) -> tuple[Array, Array]:
    """Return what each cell tells by itself, and can tell at most, (n,); O(n S T), in parts."""
    alone, most = np.empty(cells.size), np.empty(cells.size)
    for start in range(0, cells.size, PART):
        index = np.arange(start, min(start + PART, cells.size))
        groups = cells.features(posterior, index)
        own = [Group(group.index - start, group.F) for group in groups]
        most[index] = cells.most(posterior, index)
        alone[index] = gains(own, most[index])
    return alone, most


def n_samples(posterior: Posterior) -> int:
    """Return how many draws stand for the posterior."""
    return LAWS if posterior.weights is not None else min(posterior.n_draws, MOST_DRAWS)


def _scaled(means: list[Array], noise: Array) -> Array:
    """Return draws of means (n, s), less their mean and in units of noise, as (n, s, T).

    noise : (n, s) variances within draws, summed over these
    """
    eta = np.stack(means, axis=2)
    T = eta.shape[2]
    F = eta - eta.mean(axis=2, keepdims=True)
    F /= np.sqrt(np.maximum(noise, LEAST_NOISE) * max(T - 1, 1) / T)[:, :, None]
    return np.asarray(F)
