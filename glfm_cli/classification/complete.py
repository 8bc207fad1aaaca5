"""The features of rows completed by what the mixture of experts says of them.

The law of a row's missing features is a mixture of normals, one an expert, weighted by the gates;
labels are not looked at. Estimates are those of completing tables: means of numbers, medians of
ordered levels, the most probable of others.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from glfm_cli.arrays import Array
from glfm_cli.classification.features import LatentColumn
from glfm_cli.classification.trained import Trained
from glfm_cli.completion.estimates import point
from glfm_cli.encoding import Data, EncodedColumn, decode
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.inference.predictive import predict
from glfm_cli.latent.iqgme import LabelLaw
from glfm_cli.latent.model import Spans
from glfm_cli.links import CellLaw
from glfm_cli.links.law import ALL

QUANTILES = (0.025, 0.5, 0.975)


def complete_features(
    trained: Trained, table: pa.Table, data: Data, p: Array, pool: ThreadPoolExecutor | None
) -> pa.Table:
    """Return a table with its missing cells filled, and every other cell as it was.

    data : the table as the classifier reads it
    p : (n, R) float64; probabilities of the labels, of which the best fills the target's missing
        cells
    pool : works on batches of rows
    """
    by_name = {encoded.column.name: encoded for encoded in data.columns}
    classifier = trained.classifier
    used = [by_name[name] for name in classifier.seen.columns]
    law = classifier.law(data.columns, pool, features=True)
    posterior = as_posterior(classifier.seen.features, law)
    missing = {d: np.flatnonzero(encoded.requested) for d, encoded in enumerate(used)}
    missing = {d: where for d, where in missing.items() if where.size}
    marginals = predict(posterior, missing, QUANTILES, numeric_quantiles=False)
    fills = {}
    for d, marginal in marginals.items():
        name, ends = used[d].column.name, used[d].ends
        fills[name] = point(posterior.links[d], marginal, "auto")
        if ends is not None:  # NaN where nothing is known
            fills[name] = np.fmin(np.fmax(fills[name], ends[missing[d], 0]), ends[missing[d], 1])
    for known in trained.features:
        encoded = by_name[known.column.name]
        if (
            known.column.name not in classifier.seen.columns and encoded.requested.any()
        ):  # it is constant
            value = known.sample[0] if known.sample.size else float(_only_level(encoded))
            fills[known.column.name] = np.full(int(encoded.requested.sum()), value)
    target = by_name.get(trained.target.column.name)
    if target is not None and target.requested.any():
        code = np.array([target.levels.index(level) for level in trained.levels], dtype=np.float64)
        fills[target.column.name] = code[p[target.requested].argmax(axis=1)]
    return decode(table, data, fills)


@dataclass(frozen=True)
class _Features:
    """The law of the features as the one draw of a posterior."""

    features: tuple[LatentColumn, ...]
    spans: Spans
    name: str = "iqgme"

    def cells_law(self, law: LabelLaw, rows: slice | Array) -> _FeaturesOfRows:
        """Return the mixture of some rows, numbers on the latent scale of their links."""
        return _FeaturesOfRows(self, law, rows)


class _FeaturesOfRows:
    def __init__(self, model: _Features, law: LabelLaw, rows: slice | Array) -> None:
        self.model, self.law, self.rows = model, law, rows

    def column(self, d: int, at: Array | slice = ALL) -> CellLaw:
        """Return the law of the cells of column `d`."""
        own = slice(*self.model.spans[d])
        mean, var = (
            np.swapaxes(of_all[:, self.rows, own], 0, 1)[at]
            for of_all in (self.law.x, self.law.x_var)
        )
        return self.model.features[d].cells_law(self.law.gate[:, self.rows].T[at], mean, var)


def as_posterior(features: tuple[LatentColumn, ...], law: LabelLaw) -> Posterior:
    """Return the law as a posterior of one draw, with the links that see it."""
    links = tuple(feature.link for feature in features)
    ends = np.cumsum([0, *(feature.n_latent for feature in features)]).tolist()
    spans = tuple(pairwise(ends))
    model: Any = _Features(features, spans)
    draw = Draw(law, tuple(feature.params for feature in features), {})
    return Posterior(model, links, spans, ((draw,),))


def _only_level(encoded: EncodedColumn) -> int:
    """Return the code of the one level that a constant column has."""
    seen = encoded.x[encoded.observed]
    return int(seen[0]) if seen.size else 0
