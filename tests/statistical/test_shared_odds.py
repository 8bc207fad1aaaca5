"""Odds of features that blocks of rows share: drawn once a sweep, given all rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from scipy.special import expit
from scipy.stats import beta, kstest

from glfm_cli.completion import prepare
from glfm_cli.inference.chain import start_chain
from glfm_cli.streams import Streams


def test_odds_are_those_of_shares_given_the_rows_that_have_a_feature(seed: int) -> None:
    """Of m rows of N with it the share is Beta(m, N + 1 - m)."""
    x = np.random.default_rng(seed).normal(size=(12, 2))
    table = pa.table({"a": x[:, 0], "b": x[:, 1]})
    problem = prepare(table, {"columns": {"*": "real"}}, model="glfm")[0]
    chain = start_chain(problem, Streams(seed, 0))
    cells, state, odds, count = chain.cells, chain.state, [], []
    cells.lower, cells.upper = cells.lower[:5], cells.upper[:5]  # rows of a block, fewer than all
    for _ in range(400):
        chain.model.update(state, cells, chain.streams)
        odds += state.odds[1 : state.n_columns].tolist()
        count += state.counts[1 : state.n_columns].tolist()
    m = np.array(count)
    assert m.size > 600
    assert kstest(beta(m, 13 - m).cdf(expit(odds)), "uniform").pvalue > 1e-3
