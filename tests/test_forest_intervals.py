"""Trees and cells of which an interval is known: drawn inside it, with the law of their rows."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import truncnorm

from glfm_cli import impute
from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.inference import chains
from glfm_cli.latent.forest.intervals import draw_inside, ends_of
from glfm_cli.links.law import NormalMixture

pytestmark = pytest.mark.kernels
LIMIT, N = -0.5, 400
TYPES = {
    "columns": {
        "x": {"type": "real", "transform": "none", "impute": "censored"},
        "t": {"type": "real", "transform": "none"},
    }
}


def table_of(seed: int = 0) -> tuple[pa.Table, Array, Array]:
    """Return two columns of correlation 0.8, the first below a limit in a third of its cells."""
    rng = np.random.default_rng(seed)
    t = rng.standard_normal(N)
    x = 0.8 * t + 0.6 * rng.standard_normal(N)
    cells = [f"<{LIMIT}" if v < LIMIT else f"{v:.6f}" for v in x]
    return pa.table({"x": cells, "t": t}), x, t


def test_cells_below_a_limit_have_the_law_of_their_rows() -> None:
    """Held where they began, half a unit below the limit, they would be 0.3 sds too high."""
    off, wide = [], []
    for seed in range(3):
        table, x, t = table_of(seed)
        below = x < LIMIT
        done = impute(table, TYPES, model="forest", seed=seed)
        (part,) = [one for one in done.columns if one.encoded.column.name == "x"]
        law = truncnorm(-np.inf, (LIMIT - 0.8 * t[below]) / 0.6, 0.8 * t[below], 0.6)
        off.append(np.mean((part.marginal.mean - law.mean()) / law.std()))
        wide.append(np.mean(part.marginal.sd / law.std()))
        assert (part.marginal.quantiles <= LIMIT + 1e-9).all()
    assert abs(np.mean(off)) < 0.2
    assert np.mean(wide) == pytest.approx(1.0, abs=0.12)


def test_intervals_are_drawn_anew_in_every_step_and_inside_their_ends() -> None:
    table, x, _ = table_of()
    below = x < LIMIT
    problem = prepare(table, TYPES, model="forest")[0]
    chain = chains.start(problem, 1, 0)
    ends = ends_of(problem.links, problem.xs)
    assert list(ends) == [0]
    rows, low, high = ends[0]
    np.testing.assert_array_equal(rows, np.flatnonzero(below))
    before, drawn = chain.state.z.copy(), []
    for _ in range(12):
        chain.sweep(adapt=True)
        z = chain.state.z
        assert ((low <= z[0, rows]) & (z[0, rows] <= high)).all()
        np.testing.assert_array_equal(z[0, ~below], before[0, ~below])
        np.testing.assert_array_equal(z[1], before[1])
        drawn.append(z[0, rows].copy())
    assert (np.std(drawn[4:], axis=0) > 0.0).all()
    np.testing.assert_array_equal(chain.keep().latent.donors, chain.state.z)


def test_an_interval_is_no_donor_of_itself() -> None:
    """With leaves of one member it would stay where it is: then draws have a correlation of 0.7."""
    follows = []
    for seed in range(3):
        table, _, t = table_of(seed)
        chain = chains.start(prepare(table, TYPES, model="forest", settings={"least": 1})[0], 1, 0)
        rows, drawn = chain.state.ends[0][0], []
        for _ in range(24):
            chain.sweep(adapt=True)
            drawn.append(chain.state.z[0, rows].copy())
        law = truncnorm(-np.inf, (LIMIT - 0.8 * t[rows]) / 0.6, 0.8 * t[rows], 0.6)
        rest = np.array(drawn[4:]) - law.mean()
        follows += [np.corrcoef(one, two)[0, 1] for one, two in pairwise(rest)]
    assert np.mean(follows) < 0.61


def test_intervals_of_new_rows_are_drawn_too() -> None:
    table, _, _ = table_of()
    problem = prepare(table, TYPES, model="forest")[0]
    x, t = (link.margin.to_latent for link in problem.links)
    limit = x(np.full(300, LIMIT))
    ends = {0: (np.arange(300), np.full(300, -np.inf), limit)}
    new = np.vstack([limit - 0.1, t(np.full(300, -1.0))])
    nobody, means = np.full(300, -1, dtype=np.int32), []
    for seed in range(5):
        chain = chains.start(problem, seed, 0)
        for _ in range(5):
            chain.sweep(adapt=True)
        draw = chain.keep().latent
        z = draw.folded(new, nobody, ends, 3, np.random.default_rng(0)).z
        assert (z[0] < limit + 1e-6).all()
        assert np.unique(z[0]).size > 290
        means.append(z[0].mean())
    right = truncnorm(-np.inf, (LIMIT + 0.8) / 0.6, -0.8, 0.6)
    expected, wide = x(np.array([right.mean(), right.mean() + right.std()]))
    assert np.mean(means) == pytest.approx(expected, abs=0.5 * (wide - expected))


def test_a_cell_is_drawn_by_its_law_cut_to_the_interval() -> None:
    n = 20_000
    means = np.tile(np.array([-1.0, 0.5]), n // 2)
    law = NormalMixture(np.ones((1, 1)), means[:, None, None], np.full((n, 1, 1), 0.25))
    low, high = np.full(n, -0.5), np.full(n, 1.0)
    z = draw_inside(law, low, high, np.random.default_rng(0))
    for mean in (-1.0, 0.5):
        right = truncnorm((-0.5 - mean) / 0.5, (1.0 - mean) / 0.5, mean, 0.5)
        drawn = z[means == mean]
        assert drawn.mean() == pytest.approx(right.mean(), abs=0.01)
        assert drawn.std() == pytest.approx(right.std(), rel=0.03)
