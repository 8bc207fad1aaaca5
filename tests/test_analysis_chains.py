"""What the chain beside a regression is shown of the values that it has drawn."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from glfm_cli.completion import prepare
from glfm_cli.completion.analysis.versions import Compatible
from glfm_cli.completion.analysis.walk import Walk
from glfm_cli.streams import Streams


def test_counts_are_seen_with_the_noise_of_their_own_column() -> None:
    """Drawn between their cuts as N(eta, noise) is: of hardly any noise they lie at eta."""
    rng, n = np.random.default_rng(0), 60
    gone = np.arange(n) < 20
    table = pa.table({
        "x": rng.standard_normal(n),
        "n": pa.array(rng.poisson(4.0, n), mask=gone),
        "y": rng.standard_normal(n),
    })  # fmt: skip
    types = {"columns": {"x": "real", "n": "count", "y": "real"}}
    problem, data, _ = prepare(table, types, settings={"max_features": 0, "components": 0})
    of = Compatible.of("y ~ x + n", data, problem, (problem.config, problem.link_config), 3)
    names = [one.column.name for one in data.columns if one.column.name != "y"]
    xs = {one.column.name: np.where(one.observed, one.x, 4.0) for one in data.columns}
    walk = Walk([of.regression], of.problem, names, xs, Streams(1, 0))
    walk.sweep(adapt=False)
    chain, k = walk.chain, names.index("n")
    chain.state.noise[:] = 25.0
    chain.state.noise[k] = 1e-8
    walk._see()
    eta, link = chain.eta_of(k)[:20], chain.problem.links[k]
    x = walk.xs["n"][:20]
    low, high = link.cut(x), link.cut(x + 1.0)
    assert chain.cells.y[:20, k] == pytest.approx(np.clip(eta, low, high), abs=1e-2)
