"""Which cells of a matrix are asked for, and their predictive distributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.encoding import Ids, Triplets, encode_ids, open_column
from glfm_cli.errors import TableError, UsageError
from glfm_cli.inference.posterior import Posterior
from glfm_cli.inference.predictive import Marginal, predict
from glfm_cli.latent.bsvd.sampler import Bsvd
from glfm_cli.latent.model import EtaLaw, LatentModel
from glfm_cli.links.binomial import BinomialLink
from glfm_cli.schema import Column

MOST_PAIRS = 10_000_000
PART = 1 << 17  # pairs predicted and written at a time
_RATES = 1 << 22  # draws times pairs of rates held at a time


@dataclass(frozen=True)
class Pairs:
    """Cells of a matrix: row and column (n,) int64."""

    row: Array
    column: Array


ALL = None  # every cell that is not observed


def read_pairs(table: pa.Table, rows: Ids, columns: Ids, *, file: str | None = None) -> Pairs:
    """Return the pairs that a table lists, in columns named as those of the ids.

    Raises
    ------
    TableError
        Such a column is missing, or an id is not known.
    """
    found = []
    for ids, option in ((rows, "--row-features"), (columns, "--column-features")):
        if ids.name not in table.column_names:
            raise TableError(
                "the table has no such column",
                file=file,
                column=ids.name,
                expected=f"columns '{rows.name}' and '{columns.name}'",
            )
        index = table.column_names.index(ids.name)
        source = open_column(table, index, Column(ids.name), file)
        own, of_row = encode_ids(source)
        place = ids.places(own.keys)[of_row]
        if (place < 0).any():
            raise source.cell_error(
                place < 0,
                f"an id of the table's column '{ids.name}'",
                f"A new id needs a row in {option}, from which it is completed.",
            )
        found.append(place)
    return Pairs(found[0], found[1])


def unobserved(
    triplets: Triplets, rows: Ids, columns: Ids, every: bool, known: tuple[int, int] = (0, 0)
) -> Iterator[Pairs]:
    """Yield all pairs that have no value, in parts, ascending by row, then by column.

    Of the first `known` rows and columns, those of a fit, no pairs are yielded.

    Raises
    ------
    UsageError
        There are more than ten million and not `every` one is asked for.
    """
    n_rows, n_columns = len(rows), len(columns)
    old = (triplets.row < known[0]) & (triplets.column < known[1])
    n_pairs = n_rows * n_columns - triplets.row.size - known[0] * known[1] + int(old.sum())
    if n_pairs > MOST_PAIRS and not every:
        raise UsageError(
            f"{n_pairs} pairs of {rows.name} and {columns.name} have no value",
            expected=f"at most {MOST_PAIRS}",
            hint="List the pairs you want in a file for --pairs, or add --all-pairs.",
        )
    return _unobserved(triplets, (n_rows, n_columns), known)


def _unobserved(
    triplets: Triplets, shape: tuple[int, int], known: tuple[int, int]
) -> Iterator[Pairs]:
    n_rows, n_columns = shape
    step = max(1, PART // n_columns)
    for start in range(0, n_rows, step):
        end = min(start + step, n_rows)
        blank = np.ones((end - start, n_columns), dtype=bool)
        low, high = np.searchsorted(triplets.row, [start, end])
        blank[triplets.row[low:high] - start, triplets.column[low:high]] = False
        blank[: max(known[0] - start, 0), : known[1]] = False
        row, column = np.nonzero(blank)
        if row.size:
            yield Pairs(row + start, column)


def in_parts(pairs: Pairs) -> Iterator[Pairs]:
    """Yield runs of the pairs that are predicted at once."""
    for start in range(0, pairs.row.size, PART):
        part = slice(start, start + PART)
        yield Pairs(pairs.row[part], pairs.column[part])


class AtPairs:
    """A matrix model seen as one of a table whose only column holds the cells of some pairs."""

    def __init__(self, model: Bsvd, pairs: Pairs) -> None:
        self.name = model.name
        self._model, self._pairs = model, pairs

    def draw_noise(self, draw: Any) -> Array:
        """Return the noise variance (1,), 0 where it is in the law, since rows differ."""
        return np.zeros(1) if draw.row_precision.size else self._model.draw_noise(draw)

    def eta_law(self, draw: Any, rows: slice | Array) -> EtaLaw:
        """Return the law of eta of some of the pairs."""
        row, column = self._pairs.row[rows], self._pairs.column[rows]
        mean = self._model.eta_at(draw, row, column)[:, None, None]
        own = draw.noise_of_rows(row)[:, None, None] if draw.row_precision.size else None
        return EtaLaw(np.ones(mean.shape[:2]), mean, own)


def seen_at(posterior: Posterior, pairs: Pairs) -> Posterior:
    """Return a posterior of a matrix as that of the table of some of its cells."""
    assert isinstance(posterior.model, Bsvd)
    return replace(posterior, model=cast(LatentModel, AtPairs(posterior.model, pairs)))


def predict_pairs(posterior: Posterior, pairs: Pairs, at: Sequence[float]) -> Marginal:
    """Return the marginal predictive of some pairs; of binomial values, that of the hit rate."""
    n = pairs.row.size
    (link,) = posterior.links
    if not isinstance(link, BinomialLink):
        return predict(seen_at(posterior, pairs), {0: np.arange(n)}, at)[0]
    mean, sd, quantiles = np.empty(n), np.empty(n), np.empty((n, len(at)))
    draws = list(posterior.draws())
    step = max(1, _RATES // len(draws))
    model = posterior.model
    assert isinstance(model, Bsvd)
    for start in range(0, n, step):
        part = slice(start, start + step)
        row, column = pairs.row[part], pairs.column[part]
        rates = np.array([link.rate(model.eta_at(d.latent, row, column), 1.0) for d in draws])
        mean[part], sd[part] = rates.mean(axis=0), rates.std(axis=0)
        quantiles[part] = np.quantile(rates, at, axis=0).T
    return Marginal(np.arange(n), mean, sd, quantiles, None)
