"""The cells that may be asked for, and the draws of their means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from scipy.special import xlogy

from glfm_cli.acquisition.greedy import Group, gains
from glfm_cli.arrays import Array
from glfm_cli.completion.matrix import Pairs, predict_pairs
from glfm_cli.encoding import Data, Ids
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.predictive import predict
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.links.binomial import BinomialLink

MOST_DRAWS = 400  # evenly thinned; more would not make a covariance that is much better
PART = 1 << 14  # cells whose draws are held at a time, when each is looked at by itself


class Candidates(Protocol):
    """Cells, numbered from 0."""

    @property
    def size(self) -> int:
        """Return how many there are."""

    def features(self, posterior: Posterior, index: Array) -> list[Group]:
        """Return the draws of the means of some cells, centred and in units of their noise."""

    def most(self, posterior: Posterior, index: Array) -> Array:
        """Return what a value of each cell can tell at most (n,): its entropy; inf of numbers."""

    def describe(self, index: Array) -> dict[str, pa.Array]:
        """Return which cells they are, as columns of a table."""


@dataclass(frozen=True)
class TableCells:
    """Gaps of a table: row (n,) and column (n,), among the modelled ones; ascending by row.

    ids : the table's id columns;  names : of the modelled columns
    """

    row: Array
    column: Array
    ids: pa.Table
    names: tuple[str, ...]

    @classmethod
    def of(cls, data: Data, ids: pa.Table, columns: Sequence[str] | None) -> TableCells:
        """Return all gaps that are to be completed, or those of some columns."""
        names = tuple(encoded.column.name for encoded in data.columns)
        requested = [d for d, name in enumerate(names) if columns is None or name in columns]
        rows = [np.flatnonzero(data.columns[d].requested) for d in requested]
        row = np.concatenate([*rows, np.empty(0, dtype=np.int64)])
        column = np.repeat(requested, [part.size for part in rows]).astype(np.int64)
        order = np.lexsort((column, row))
        return cls(row[order], column[order], ids, names)

    @property
    def size(self) -> int:
        """The number of cells."""
        return int(self.row.size)

    def features(self, posterior: Posterior, index: Array) -> list[Group]:
        """Return the draws of eta of some cells, one group for each number of latent columns."""
        rows, place = np.unique(self.row[index], return_inverse=True)
        column = self.column[index]
        spans = np.array(posterior.spans)
        width = (spans[:, 1] - spans[:, 0])[column]
        draws = thinned(posterior)
        parts = [(np.flatnonzero(width == S), S) for S in np.unique(width)]
        found = [np.empty((part.size, S, len(draws))) for part, S in parts]
        for t, draw in enumerate(draws):
            law = posterior.model.eta_law(draw.latent, rows)
            # What varies within a draw is no doubt that a value would settle for other cells.
            eta = np.einsum("nc,ncs->ns", law.weight, law.mean)
            for (part, S), F in zip(parts, found, strict=True):
                at = spans[column[part], 0][:, None] + np.arange(S)
                F[:, :, t] = eta[place[part][:, None], at]
        noise = mean_noise(posterior, draws)
        return [
            Group(index[part], _scaled(F, noise[column[part]]))
            for (part, _), F in zip(parts, found, strict=True)
        ]

    def most(self, posterior: Posterior, index: Array) -> Array:
        """Return the entropies of levels, infinity for numbers."""
        out = np.full(index.size, np.inf)
        row, column = self.row[index], self.column[index]
        requested = {int(d): np.flatnonzero(column == d) for d in np.unique(column)}
        requested = {d: part for d, part in requested.items() if posterior.links[d].discrete}
        found = predict(posterior, {d: row[part] for d, part in requested.items()})
        for d, part in requested.items():
            out[part] = _entropy(found[d].probabilities)
        return out

    def describe(self, index: Array) -> dict[str, pa.Array]:
        """Return ids, row (from 1) and column's name of some cells."""
        row = self.row[index]
        columns = {
            name: self.ids[name].combine_chunks().take(pa.array(row))
            for name in self.ids.column_names
            if name not in ("row", "column")
        }
        names = [self.names[d] for d in self.column[index]]
        return columns | {"row": pa.array(row + 1), "column": pa.array(names, pa.string())}


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

    def features(self, posterior: Posterior, index: Array) -> list[Group]:
        """Return the draws of x of some pairs."""
        model = posterior.model
        assert isinstance(model, Bsvd)
        draws = thinned(posterior)
        row, column = self.pairs.row[index], self.pairs.column[index]
        F, noise = np.empty((index.size, 1, len(draws))), np.zeros(index.size)
        for t, draw in enumerate(draws):
            F[:, 0, t] = model.eta_at(draw.latent, row, column)
            noise += draw.latent.noise_of_rows(row) / len(draws)
        return [Group(index, _scaled(F, noise))]

    def most(self, posterior: Posterior, index: Array) -> Array:
        """Return the entropies of levels, or of one trial; infinity for numbers."""
        (link,) = posterior.links
        if not (link.discrete or isinstance(link, BinomialLink)):
            return np.full(index.size, np.inf)
        pairs = Pairs(self.pairs.row[index], self.pairs.column[index])
        found = predict_pairs(posterior, pairs, ())
        if found.probabilities is None:
            return _entropy(np.column_stack([found.mean, 1.0 - found.mean]))
        return _entropy(found.probabilities)

    def describe(self, index: Array) -> dict[str, pa.Array]:
        """Return the ids of some pairs, as the table has them."""
        return {
            ids.name: ids.values.take(pa.array(of[index]))
            for ids, of in ((self.rows, self.pairs.row), (self.columns, self.pairs.column))
        }


def gains_alone(cells: Candidates, posterior: Posterior) -> tuple[Array, Array]:
    """Return what each cell tells by itself, and can tell at most, (n,); O(n S T), in parts."""
    alone, most = np.empty(cells.size), np.empty(cells.size)
    for start in range(0, cells.size, PART):
        index = np.arange(start, min(start + PART, cells.size))
        groups = cells.features(posterior, index)
        own = [Group(group.index - start, group.F) for group in groups]
        most[index] = cells.most(posterior, index)
        alone[index] = gains(own, most[index])
    return alone, most


def thinned(posterior: Posterior) -> list[Draw]:
    """Return the draws that stand for the posterior."""
    return list(posterior.draws(MOST_DRAWS))


def mean_noise(posterior: Posterior, draws: Sequence[Draw]) -> Array:
    """Return the mean over draws of the columns' noise variances (D,)."""
    found: Array = np.mean([posterior.model.draw_noise(draw.latent) for draw in draws], axis=0)
    return found


def _entropy(p: Array | None) -> Array:
    """Return the entropies (n,) of probabilities (n, R), in nats."""
    assert p is not None
    found: Array = -np.sum(xlogy(p, p), axis=1)
    return found


def _scaled(eta: Array, noise: Array) -> Array:
    """Return eta (n, S, T) less its mean, so that F F' is its covariance in units of noise."""
    F = eta - eta.mean(axis=2, keepdims=True)
    F /= np.sqrt(noise * max(eta.shape[2] - 1, 1))[:, None, None]
    return F
