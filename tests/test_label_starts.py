"""Where the experts start and how large they are; whether what they say of labels comes true."""

from __future__ import annotations

from typing import Any

import numpy as np

from glfm_cli.classification.fit import Fitting
from glfm_cli.classification.folds import cross_validate
from glfm_cli.classification.scores import auc, calibration_error
from glfm_cli.encoding import EncodedColumn
from glfm_cli.latent.iqgme import IqgmeConfig, KnownRows
from glfm_cli.latent.iqgme.fit import start_clusters
from glfm_cli.links import LinkConfig
from glfm_cli.schema import Column, ColumnType, Role
from tests.iqgme_problems import signs, three_gaussians

Array = np.ndarray[Any, Any]


def columns_of(x: Array) -> list[EncodedColumn]:
    return [
        EncodedColumn(
            Column(f"x{d}", Role.FEATURE, ColumnType.REAL),
            d, values, ~np.isnan(values), np.zeros(values.size, dtype=bool), (),
        )
        for d, values in enumerate(np.ascontiguousarray(x.T))
    ]  # fmt: skip


def held_out(x: Array, y: Array, seed: int, config: IqgmeConfig | None = None) -> Array:
    """Return the probabilities (n, 2) of every row by fits without it."""
    how = Fitting(config or IqgmeConfig(), LinkConfig(), 2, seed)
    found = cross_validate(columns_of(x), y.astype(np.float64), 2, how, n_folds=3)
    return found.p["iqgme"]


def test_clusters_by_label_have_rows_of_one_label(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, positive = rng.standard_normal((60, 4)), rng.random(60) < 0.3
    labelled = rng.random(60) < 0.8
    rows = KnownRows(x, np.ones(x.shape, dtype=bool), signs(positive), labelled)
    cluster = start_clusters([rows], rows.x, 6, rng, by_label=True)
    assert set(cluster) <= set(range(6))
    assert len(set(cluster)) > 2
    first = set(cluster[labelled & positive])
    assert first.isdisjoint(cluster[labelled & ~positive])


def test_labels_that_differ_in_spread_alone_are_told_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.random(150) < 0.4
    x = rng.standard_normal((150, 12)) * np.where(y, 1.0, 0.25)[:, None]
    x[rng.random(x.shape) < 0.4] = np.nan
    hit = np.column_stack([~y, y]).astype(np.float64)
    alone = IqgmeConfig(average=False, factors=0)
    assert auc(hit, held_out(x, y, seed, alone)) > 0.95


def test_held_out_probabilities_come_true(seed: int) -> None:
    """Their calibration error is near that of labels drawn from them: fits to part of rows err."""
    rng = np.random.default_rng(seed)
    x, y = three_gaussians(1000, rng)
    y ^= rng.random(y.size) < 0.1
    x[rng.random(x.shape) < 0.2] = np.nan
    p = held_out(x, y, seed)
    drawn = rng.random((200, y.size)) < p[:, 1]
    perfect = [calibration_error(np.column_stack([~one, one]), p) for one in drawn]
    found = calibration_error(np.column_stack([~y, y]), p)
    assert found < 3.0 * np.median(perfect)  # as forecasts to the power 1.4 do not
