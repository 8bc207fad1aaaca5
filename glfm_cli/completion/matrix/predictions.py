"""Predictions of the cells of a matrix, a row for each pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.completion.estimates import Estimate, in_numbers, point
from glfm_cli.completion.matrix.matrix import P_ANY, MatrixData
from glfm_cli.completion.matrix.pairs import (
    Likeliest,
    Pairs,
    WhichPairs,
    predict_pairs,
    recommended,
)
from glfm_cli.completion.result import CompletionResult
from glfm_cli.errors import counted
from glfm_cli.inference.scoring import log_scores
from glfm_cli.io.frames import AsGiven
from glfm_cli.latent.capabilities import Sized


@dataclass(frozen=True, repr=False)
class MatrixCompletion(AsGiven, CompletionResult):
    """Predictions of the cells of a matrix.

    which, estimate : the pairs whose cells are predicted, and what stands for each
    recommend : in place of `which`, the likeliest columns of some rows
    """

    data: MatrixData
    which: WhichPairs | None = None
    estimate: Estimate = "auto"
    recommend: Likeliest | None = None

    @property
    def size(self) -> dict[str, float]:
        """The mean number of components, by the name of its trace, where the model has some."""
        model = self.posterior.model
        if not isinstance(model, Sized):
            return {}
        return {model.size: float(np.mean(self.posterior.traces()[model.size]))}

    def in_words(self) -> str:
        """Return what was learnt from."""
        sizes = self.data.sizes()
        size = "".join(f", {name} {value:.1f}" for name, value in self.size.items())
        cells = counted(sizes["observed"], "cell")
        return f"{cells} of {sizes['rows']} x {sizes['columns']}{size}"

    def to_table(self) -> pa.Table:
        """Return the predictions, a row for each pair (see `table_of`)."""
        return pa.concat_tables(self.parts())

    def parts(self) -> Iterator[pa.Table]:
        """Yield the predictions, at least one part (see `table_of`)."""
        which = self.which or self.data.pairs(None, False)
        if self.recommend is not None:
            which = partial(recommended, self.posterior, self.data.triplets, self.recommend)
        none = True
        for pairs in which():
            none = False
            yield self.table_of(pairs, self.estimate)
        if none:
            yield self.table_of(Pairs(np.empty(0, np.int64), np.empty(0, np.int64)), self.estimate)

    def table_of(self, pairs: Pairs, estimate: Estimate = "auto") -> pa.Table:
        """Return a row for each pair: ids, estimate, mean, sd, lower, upper, probabilities.

        Estimates of levels are text. `mean` and `sd` are of the level's number, its position
        from 1 where levels are no numbers; of binomial values, all are of the hit rate. A column
        `p_LEVEL` for each level, `p_any` of counts, and `log_score` where values are given.
        """
        data, (link,) = self.data, self.posterior.links
        value = data.triplets.value
        at = [(1 - self.interval) / 2, 0.5, (1 + self.interval) / 2]
        found = predict_pairs(self.posterior, pairs, at)
        estimates = point(link, found, estimate)
        columns: dict[str, Any] = {}
        for ids, index in ((data.rows, pairs.row), (data.others, pairs.column)):
            columns[ids.name] = ids.values.take(pa.array(index))
        ends = (estimates, found.quantiles[:, 0], found.quantiles[:, 2])
        shown = in_numbers(value, found)
        if value.levels:
            texts = np.array(value.levels, dtype=object)
            no_order = not link.ordered
            ends = tuple(
                pa.nulls(end.size, pa.string())
                if i and no_order
                else pa.array(texts[end.astype(np.intp)], pa.string())
                for i, end in enumerate(ends)
            )
        columns |= {"estimate": ends[0], "mean": shown.mean, "sd": shown.sd}
        columns |= {"lower": ends[1], "upper": ends[2]}
        if value.column.absent is not None:
            columns[P_ANY] = -np.expm1(self._log_scores(pairs, np.zeros(pairs.row.size)))
        if pairs.x is not None:
            columns["log_score"] = np.full(pairs.row.size, np.nan)
            seen = np.flatnonzero(~np.isnan(pairs.x))
            columns["log_score"][seen] = self._log_scores(pairs.take(seen), pairs.x[seen])
        for code, level in enumerate(value.levels):
            assert found.probabilities is not None
            columns[f"p_{level}"] = found.probabilities[:, code]
        return pa.table(
            {n: pa.array(v, from_pandas=True) if isinstance(v, np.ndarray) else v
             for n, v in columns.items()}
        )  # fmt: skip

    def _log_scores(self, pairs: Pairs, x: Array) -> Array:
        """Return the log predictive densities (n,) of values of some pairs."""
        return log_scores(self.posterior.at(pairs), {0: np.arange(x.size)}, {0: x})[0]

    def to_dict(self) -> dict[str, Any]:
        """Return the summary that `glfm impute --json` prints."""
        return self.summary(self.data.sizes(), self.size)
