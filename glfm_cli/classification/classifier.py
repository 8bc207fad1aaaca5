"""The mixture of experts fitted to a table: calibrated features, a label's levels, and q."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glfm_cli.classification.features import Feature, calibrate, is_constant, make_rows
from glfm_cli.encoding import EncodedColumn
from glfm_cli.latent.iqgme import (
    Between,
    Fitted,
    IqgmeConfig,
    LabelLaw,
    Largest,
    Truncation,
    fit_experts,
    label_law,
)
from glfm_cli.links.link import LinkConfig
from glfm_cli.streams import START, Streams

Array = NDArray[Any]

DOMINANT = 0.005  # E[pi] from which an expert counts, as in the thesis


@dataclass(frozen=True, eq=False)
class Classifier:
    """A fitted mixture of experts.

    columns : names of the features that are used, in the order of `features`
    n_levels : R, levels of the label;  reference : the one whose utility is fixed
    fitted : the best start
    """

    columns: tuple[str, ...]
    features: tuple[Feature, ...]
    n_levels: int
    reference: int
    fitted: Fitted

    @property
    def n_experts(self) -> int:
        """Return how many experts have a weight that counts."""
        return int(np.sum(self.fitted.experts.pi > DOMINANT))

    def law(self, columns: Sequence[EncodedColumn], pool: ThreadPoolExecutor | None) -> LabelLaw:
        """Return the law of the labels of rows, which need not be the training rows."""
        by_name = {encoded.column.name: encoded.x for encoded in columns}
        xs = [by_name[name] for name in self.columns]
        n = columns[0].x.size if columns else 0
        rows = make_rows(self.features, xs, n)
        return label_law(rows, self.fitted.experts, pool=pool)

    def probabilities(
        self, columns: Sequence[EncodedColumn], pool: ThreadPoolExecutor | None = None
    ) -> Array:
        """Return (n, R) the probabilities of the levels; O(n) memory and time."""
        law = self.law(columns, pool)
        if self.n_levels > 2:
            return law.probabilities(self.reference)
        p = law.probability_above()
        return np.column_stack([1.0 - p, p])


def take(columns: Sequence[EncodedColumn], rows: Array) -> tuple[EncodedColumn, ...]:
    """Return some rows of columns."""
    return tuple(
        replace(e, x=e.x[rows], observed=e.observed[rows], wanted=e.wanted[rows]) for e in columns
    )


def fit_classifier(
    columns: Sequence[EncodedColumn],
    code: Array,
    n_levels: int,
    config: IqgmeConfig,
    links: LinkConfig,
    *,
    chains: int,
    seed: int,
    pool: ThreadPoolExecutor | None = None,
    stop: Callable[[], bool] | None = None,
    watch: Callable[[int, int, float], None] | None = None,
) -> Classifier:
    """Return the best of several fits to rows, some of whose labels may be missing.

    Parameters
    ----------
    columns : sequence of EncodedColumn
        The features; constant ones are left out.
    code : (n,) float64
        Level of the label 0..R-1, NaN where missing.
    n_levels : int
        R, from 2.
    config, links
        Of the model, and of the features' margins.
    chains, seed : int
        Starts, and what they are drawn from.
    pool, stop, watch
        As for `fit_experts`.
    """
    used = [e for e in columns if not is_constant(e)]
    features = tuple(calibrate(e, links) for e in used)
    labelled = ~np.isnan(code)
    label, reference = what_labels_say(code, n_levels)
    rows = make_rows(features, [e.x for e in used], code.size, label, labelled)
    streams = [Streams(seed, chain).get(START) for chain in range(chains)]
    fitted = fit_experts(rows, config, streams, pool=pool, stop=stop, watch=watch)
    names = tuple(e.column.name for e in used)
    return Classifier(names, features, n_levels, reference, fitted)


def what_labels_say(code: Array, n_levels: int) -> tuple[Truncation, int]:
    """Return what is known of the label's variables, and its reference level.

    Two levels have one variable, above 0 for the second; more have one each but the most
    frequent, the reference.
    """
    filled = np.nan_to_num(code, nan=0.0)
    if n_levels == 2:
        second = filled == 1.0
        lower = np.where(second, 0.0, -np.inf)[:, None]
        return Between(lower, np.where(second, np.inf, 0.0)[:, None]), 0
    count = np.bincount(code[~np.isnan(code)].astype(np.intp), minlength=n_levels)
    reference = int(np.argmax(count))
    return Largest(filled, n_levels, reference), reference
