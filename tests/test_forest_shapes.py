"""The shape of a number's law: parts of the members of its leaves, in order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm, truncnorm

from glfm_cli.arrays import Array
from glfm_cli.completion import prepare
from glfm_cli.inference import chains
from glfm_cli.latent.forest import ForestDraw
from glfm_cli.latent.forest.draw import ForestLaw
from glfm_cli.latent.forest.intervals import draw_inside
from glfm_cli.latent.forest.shapes import PARTS, SMOOTH, parted
from glfm_cli.latent.forest.trees import Whole, moments
from glfm_cli.links.law import NormalMixture
from tests.normals import whole_of
from tests.test_forest import SETTINGS, TYPES, T, leaf_of, table_of

pytestmark = pytest.mark.kernels
COPIES = 840  # a multiple of all sizes of leaves up to 8


@pytest.fixture(scope="module")
def draw() -> ForestDraw:
    return drawn({**SETTINGS, "prior": 1.0})


def drawn(settings: dict[str, float], n: int = 90) -> ForestDraw:
    problem = prepare(table_of(n), TYPES, model="forest", settings=settings)[0]
    chain = chains.start(problem, 3, 0)
    for _ in range(3):
        chain.sweep(adapt=True)
    found: ForestDraw = chain.keep().latent
    return found


def parts_of(draw: ForestDraw, d: int, rows: Array, C: int = PARTS) -> Array:
    """Return what the kernel says of parts of column d, of rows whose cell is missing or not."""
    own = draw.own_donor(d, rows)
    donors = np.where(draw.seen[d], draw.donors[d], np.nan)
    parts = np.full((rows.size, C, 2), np.nan)
    whole = Whole.of(donors, draw.kinds, d)
    moments(
        draw.z, rows, own, donors, draw.kinds, d, draw.trees, d, draw.prior, whole, parts
    )
    return parts


@pytest.mark.parametrize("d", [0, 3, 4])
def test_parts_are_those_of_all_members_in_order(draw: ForestDraw, d: int) -> None:
    """Each tree weighs the same, however many members its leaf has; an atom is no member."""
    rows = np.flatnonzero(draw.seen[d] == 0)
    found, sizes = parts_of(draw, d, rows), set()
    for n, parts in zip(rows, found, strict=True):
        leaves = [draw.donors[d][leaf_of(draw, d, t, n)] for t in range(T)]
        leaves = [x[x != draw.kinds.atom[d]] for x in leaves]
        sizes |= {x.size for x in leaves}
        if max(x.size for x in leaves) > 8:
            continue
        each = [np.repeat(x, COPIES // x.size) for x in leaves if x.size]
        if each:
            in_order = np.sort(np.concatenate(each)).reshape(PARTS, -1)
            np.testing.assert_allclose(parts[:, 0], in_order.mean(axis=1), atol=1e-7)
            np.testing.assert_allclose(parts[:, 1], in_order.var(axis=1), atol=1e-7)
        else:
            assert not parts.any()
    assert len(sizes) >= 3


def test_of_large_leaves_and_many_trees_some_members_tell() -> None:
    """Leaves of ten and of seventy trees: some of each, or of some trees, near those of all."""
    for settings in ({"least": 40, "trees": 6}, {"least": 1, "trees": 140}):
        draw = drawn({**SETTINGS, **settings}, n=300)
        rows = np.flatnonzero(draw.seen[0] == 0)
        found = parts_of(draw, 0, rows)
        mean, _ = whole_of(ForestLaw(replace(draw, prior=1e-9), rows).column(0))
        near = found[:, :, 0].mean(axis=1)
        assert np.corrcoef(near, mean[:, 0])[0, 1] > 0.9
        assert np.all(np.diff(found[:, :, 0], axis=1) >= 0.0)
        assert np.all(np.isfinite(found))


def test_observed_cells_have_no_shape(draw: ForestDraw) -> None:
    """They are forecast by the few trees that have not seen them: too few for one."""
    rows = np.flatnonzero(draw.seen[0])
    assert not parts_of(draw, 0, rows).any()
    both = ForestLaw(draw, np.arange(draw.own.size)).column(0)
    assert isinstance(both, NormalMixture)
    assert np.ptp(both.means[rows], axis=1).max() == 0.0
    assert np.ptp(both.means[draw.seen[0] == 0], axis=1).max() > 0.1
    alone = ForestLaw(draw, rows).column(0)
    assert isinstance(alone, NormalMixture)
    assert alone.n_components == 1
    np.testing.assert_allclose(alone.means[:, 0], both.means[rows, 0])


@given(
    st.lists(st.tuples(st.floats(-3.0, 3.0), st.floats(0.0, 2.0)), min_size=4, max_size=4),
    st.floats(-2.0, 2.0),
    st.floats(1e-3, 9.0),
)
def test_a_law_in_parts_keeps_its_mean_and_variance(
    parts: list[tuple[float, float]], mean: float, var: float
) -> None:
    """Distances are those of the members, or less where the law is narrower: none is a point."""
    given_parts = np.array(parts)[None]
    means, variances = parted(np.array([mean]), np.array([var]), given_parts)
    assert means.mean() == pytest.approx(mean, abs=1e-9)
    assert variances.mean() + means.var() == pytest.approx(var, rel=1e-9)
    assert variances.min() >= SMOOTH * var * (1.0 - 1e-9)
    away = given_parts[0, :, 0] - given_parts[0, :, 0].mean()
    members = float(np.mean(away**2 + given_parts[0, :, 1]))
    if members <= (1.0 - SMOOTH) * var:
        np.testing.assert_allclose(means[0] - mean, away, atol=1e-9)
    else:
        assert float(np.mean((means[0] - mean) ** 2)) <= (1.0 - SMOOTH) * var * (1.0 + 1e-9)


def test_cells_of_two_kinds_of_rows_are_not_forecast_between_them() -> None:
    """x is -1 or 1, as a column says that is missing too: a normal would have a half near 0."""
    rng = np.random.default_rng(0)
    n = 400
    side = np.where(rng.random(n) < 0.5, -1.0, 1.0)
    table = pa.table({
        "x": pa.array(side + 0.1 * rng.standard_normal(n), mask=np.arange(n) < 40),
        "y": rng.standard_normal(n),
    })
    types = {"columns": {name: {"type": "real", "transform": "none"} for name in "xy"}}
    problem = prepare(table, types, model="forest")[0]
    chain = chains.start(problem, 0, 0)
    for _ in range(5):
        chain.sweep(adapt=True)
    found = ForestLaw(chain.keep().latent, np.arange(40)).column(0)
    assert isinstance(found, NormalMixture)
    mean, sd = found.means[:, :, 0], np.sqrt(found.variances[:, :, 0])
    ends = problem.links[0].margin.to_latent(np.array([-0.5, 0.5]))
    between = np.mean(norm.cdf(ends[1], mean, sd) - norm.cdf(ends[0], mean, sd))
    middle, var = (part[:, 0] for part in whole_of(found))
    normal = np.mean(np.diff(norm.cdf(ends[:, None], middle, np.sqrt(var)), axis=0))
    assert between < 0.6 * normal


def test_intervals_are_drawn_from_the_parts_by_what_these_have_in_them() -> None:
    n = 20_000
    mean, sd = np.array([-2.0, 0.0, 3.0]), np.array([0.5, 1.0, 0.3])
    law = NormalMixture(
        np.array([[0.5, 0.3, 0.2]]),
        np.tile(mean[None, :, None], (n, 1, 1)),
        np.tile(sd[None, :, None] ** 2, (n, 1, 1)),
    )
    for low, high in ((0.5, np.inf), (-1.0, 2.9), (40.0, 41.0)):
        z = draw_inside(law, np.full(n, low), np.full(n, high), np.random.default_rng(0))
        normals = list(zip(mean, sd, strict=True))
        cut = [truncnorm((low - m) / s, (high - m) / s, m, s) for m, s in normals]
        mass = np.array([0.5, 0.3, 0.2]) * (norm.cdf(high, mean, sd) - norm.cdf(low, mean, sd))
        if mass.sum() == 0.0:  # all of them far away: the widest is nearest
            mass = np.array([0.0, 1.0, 0.0])
        share = mass / mass.sum()
        for at in np.linspace(low + 0.1, min(high, 4.0) if low < 4 else 40.5, 5):
            right = sum(p * one.cdf(at) for p, one in zip(share, cut, strict=True) if p > 0.0)
            assert np.mean(z <= at) == pytest.approx(right, abs=0.015)
        assert np.all((z >= low - 1e-5) & (z <= high + 1e-5))
