"""Draws of the latent Gaussian process: laws, joint draws, new rows, kept snapshots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from clgp_tables import (
    Array,
    mixed_table,
    number_table,
    planted_table,
    random_places,
    random_shared,
)
from scipy.special import ndtr
from scipy.stats import chi2, t

import glfm_cli.latent.clgp.engine as engine
from glfm_cli.latent.clgp import ClgpConfig, ClgpDraw, ColumnKind, ObservedTable
from glfm_cli.latent.clgp.ascent import step
from glfm_cli.latent.clgp.laws import softmax_mean, spread_normals
from glfm_cli.latent.clgp.new_rows import fold_in
from glfm_cli.latent.clgp.parameters import Places
from glfm_cli.links.law import NormalMixture
from glfm_cli.streams import Streams

Q, M = 2, 5


def unpacked(arrays: dict[str, Array], table: ObservedTable) -> ClgpDraw:
    return ClgpDraw.unpack(arrays, table.n_rows, table.slots.n_latent, len(table.kinds))


def random_draw(seed: int, n_rows: int = 6) -> tuple[ClgpDraw, ObservedTable]:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, n_rows)
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, n_rows, Q)
    return ClgpDraw.of(table, shared, places, ClgpConfig()), table


def joint_draws(draw: ClgpDraw, row: int, seed: int) -> Array:
    """Return 20000 joint draws of one row, as rows that are alike have them."""
    rows = np.full(20000, row)
    alike = replace(draw, m=draw.m[rows], spread=draw.spread[rows])
    return alike.joint(slice(None), np.random.default_rng(seed)).mean[:, 0]


def test_draws_of_the_weights_have_their_law(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = mixed_table(rng, 4)
    shared, places = random_shared(rng, table, Q, M, True), random_places(rng, 4, Q)
    draw = ClgpDraw.of(table, shared, places, ClgpConfig())
    e = np.stack([draw.sampled(rng).shared.mu for _ in range(4000)])
    sd = e.std(axis=0)
    assert np.abs((e.mean(axis=0) - shared.mu) / sd).max() < 4.5 / 4000**0.5
    for s in (0, 3):
        cov = (shared.V * np.exp(2.0 * shared.log_c[s])) @ shared.V.T
        root = np.linalg.inv(np.linalg.cholesky(cov))
        white = (e[:, :, s] - shared.mu[:, s]) @ root.T
        np.testing.assert_allclose(np.cov(white.T), np.eye(Q + M), atol=0.12)


def test_a_snapshot_is_left_alone(seed: int) -> None:
    table = mixed_table(np.random.default_rng(seed), 20)
    streams = Streams(seed, 0)
    state = engine.start(table, ClgpConfig(dimensions=2, inducing=5, iterations=4), streams)
    draw = engine.draw(state, table)
    before = {name: array.copy() for name, array in draw.pack().items()}
    step(state, table, streams)
    for name, array in draw.pack().items():
        assert np.array_equal(array, before[name])
    other = engine.draw(state, table)
    assert not np.array_equal(other.shared.mu, draw.shared.mu)


def test_samples_of_what_rows_share_differ(seed: int) -> None:
    rng, (draw, _) = np.random.default_rng(seed), random_draw(seed)
    assert not np.array_equal(draw.sampled(rng).shared.mu, draw.sampled(rng).shared.mu)


def test_probabilities_of_levels_are_those_of_their_logits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for K in (1, 3):
        mean, var = rng.normal(size=(4, 16, K)), rng.gamma(1.0, size=(4, 16, K))
        f = mean + np.sqrt(var) * rng.standard_normal((4000, *mean.shape))
        e = np.exp(np.concatenate([np.zeros((*f.shape[:-1], 1)), f], axis=3))
        expected = (e / e.sum(axis=3, keepdims=True)).mean(axis=(0, 2))
        np.testing.assert_allclose(softmax_mean(mean, var), expected, atol=0.03)
        given = softmax_mean(mean[:, :1], np.zeros((1, 1, 1)))
        np.testing.assert_allclose(given[:, 1:], given[:, :1] * np.exp(mean[:, 0]))
    assert np.array_equal(softmax_mean(np.zeros((2, 16, 0)), np.zeros((2, 16, 0))), np.ones((2, 1)))


def test_levels_keep_their_codes() -> None:
    assert ColumnKind("levels", 4, 2).codes.tolist() == [1, 2, 0, 3]


def test_a_law_is_that_of_joint_draws(seed: int) -> None:
    draw, table = random_draw(seed)
    rows = np.array([4, 1])
    joint = np.stack([joint_draws(draw, row, seed) for row in rows], axis=1)
    law = draw.law(rows, candidates=512)
    assert law.mean.shape == (2, 512, table.slots.n_latent)
    assert law.var is not None
    mean = law.mean.mean(axis=1)
    second = np.mean(law.mean**2 + law.var, axis=1)
    sd = np.sqrt(second - mean**2)
    np.testing.assert_allclose(joint.mean(axis=0), mean, atol=0.03 * sd.max())
    np.testing.assert_allclose(joint.std(axis=0), sd, rtol=0.04)


def test_laws_of_numbers_have_the_noise_of_their_column(seed: int) -> None:
    draw, table = random_draw(seed)
    numbers = [d for d, kind in enumerate(draw.kinds) if kind.kind == "number"]
    law = draw.law(slice(None))
    assert law.var is not None
    assert numbers
    for d in numbers:
        span = table.slots.spans[d]
        found, noise = law.column(d), np.exp(draw.shared.log_noise[d])
        assert isinstance(found, NormalMixture)
        np.testing.assert_array_equal(found.means, law.mean[:, :, span])
        own = (found.variances - law.var[:, :, span]) / noise
        np.testing.assert_allclose(own, np.broadcast_to(own[:1, :, :1], own.shape))
        np.testing.assert_allclose(np.median(own), 16.0 / chi2.ppf(0.5, 16), rtol=0.05)


def test_numbers_at_one_place_have_students_law(seed: int) -> None:
    draw, _ = random_draw(seed)
    numbers = [d for d, kind in enumerate(draw.kinds) if kind.kind == "number"]
    law = draw.sampled(np.random.default_rng(seed)).joint(slice(0, 2), np.random.default_rng(seed))
    z = np.linspace(-3.5, 3.5, 15)
    for d in numbers:
        found, sd = law.column(d), np.exp(0.5 * draw.shared.log_noise[d])
        assert isinstance(found, NormalMixture)
        far = sd * z[:, None] + law.mean[0, 0, draw.slots.spans[d]] - found.means[0, :, 0]
        p = ndtr(far / np.sqrt(found.variances[0, :, 0])) @ found.weights[0]
        np.testing.assert_allclose(p, t.cdf(z, 16), atol=0.003)


def test_cells_of_a_row_hang_together_by_its_place(seed: int) -> None:
    draw, _ = random_draw(seed)
    joint = joint_draws(draw, 0, seed)
    law = draw.law(slice(0, 1), candidates=512)
    between = np.cov(law.mean[0].T)
    apart = ~np.eye(between.shape[0], dtype=bool)
    np.testing.assert_allclose(
        np.cov(joint.T)[apart], between[apart], atol=0.08 * np.abs(between).max()
    )


def test_candidates_are_spread_as_normals() -> None:
    for n, n_dimensions in ((16, 2), (16, 16), (512, 3)):
        points = spread_normals(n, n_dimensions)
        np.testing.assert_allclose(points.mean(axis=0), 0.0, atol=1e-12)
        np.testing.assert_allclose(np.mean(points**2, axis=0), 1.0)
        assert np.unique(points.round(9), axis=0).shape == (n, n_dimensions)
    many = spread_normals(4096, 2)
    np.testing.assert_allclose(np.mean(many**4, axis=0), 3.0, rtol=0.05)
    assert abs(np.mean(many[:, 0] * many[:, 1])) < 0.02


def test_places_far_from_all_others_have_the_prior(seed: int) -> None:
    draw, _ = random_draw(seed)
    draw = replace(draw, shared=replace(draw.shared, log_rho=np.array(-45.0)))
    mean, var = draw.moments_at(np.full((1, Q), 60.0))
    np.testing.assert_allclose(mean[0], draw.shared.b, atol=1e-6)
    np.testing.assert_allclose(var[0], np.exp(2.0 * draw.shared.log_a), rtol=1e-5)


# Kept ------------------------------------------------------------------------------------------


def test_a_packed_draw_comes_back(seed: int) -> None:
    draw, table = random_draw(seed)
    again = unpacked(draw.pack(), table)
    assert again.kinds == draw.kinds
    ours, theirs = draw.law(slice(None)), again.law(slice(None))
    assert np.array_equal(ours.mean, theirs.mean)
    assert np.array_equal(ours.var, theirs.var)
    assert np.array_equal(again.noise, draw.noise)
    assert np.array_equal(again.thresholds(2), draw.thresholds(2))
    assert np.all(np.diff(draw.thresholds(2)) > 0.0)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("kinds", lambda a: a + 5, "no kinds"),
        ("kinds", lambda a: a * [[1, 0, 1]], "no kinds"),
        ("kinds", lambda a: a[:-1], "expected"),
        ("kinds", lambda a: a + (a == 3) * [0, 1, 0], "latent columns"),
        ("Z", lambda a: a[:, :1], "does not fit"),
        ("mu", lambda a: np.where(a > 0, np.inf, a), "not finite"),
        ("spread", lambda a: -a, "no factor of covariances"),
        ("log_noise", lambda a: a - 30.0, "floor"),
        ("m", lambda a: a[1:], "expected"),
    ],
)
def test_a_broken_draw_is_rejected(seed: int, name: str, change: object, words: str) -> None:
    draw, table = random_draw(seed)
    arrays = draw.pack()
    assert callable(change)
    arrays[name] = change(arrays[name])
    with pytest.raises(ValueError, match=words):
        unpacked(arrays, table)


# New rows --------------------------------------------------------------------------------------


def fitted(seed: int) -> tuple[ClgpDraw, ObservedTable, Array]:
    """Return a draw of a fit to a curve, with the table and its complete numbers."""
    table, y = planted_table(np.random.default_rng(seed), 150)
    config = ClgpConfig(dimensions=2, inducing=20, iterations=120)
    streams = Streams(seed, 0)
    state = engine.start(table, config, streams)
    while not step(state, table, streams).done:
        pass
    return engine.draw(state, table), table, y


def test_new_rows_are_placed_where_the_fit_would_have(seed: int) -> None:
    draw, table, y = fitted(seed)
    rows = np.arange(0, 150, 3)
    again = ObservedTable(table.kinds, *table.rows(rows))
    new = fold_in(draw, ClgpConfig(), again, Streams(seed, 1))
    apart = (new.m - draw.m[rows])[:, :, None]
    apart = (apart.transpose(0, 2, 1) @ np.linalg.solve(draw.covariances()[rows], apart))[:, 0, 0]
    assert np.mean(apart < 6.0) > 0.85  # the 95 % ellipse
    hidden = np.isnan(again.lower.T)
    errors = [
        np.sqrt(np.mean((one.law(which).mean.mean(axis=1) - y[rows])[hidden] ** 2))
        for one, which in ((draw, rows), (new, slice(None)))
    ]
    assert errors[1] < 1.15 * errors[0]
    assert new.shared is draw.shared


def test_a_row_of_which_nothing_is_known_has_the_prior(seed: int) -> None:
    draw, table = random_draw(seed)
    empty = np.full((len(table.kinds), 3), np.nan)
    new = fold_in(draw, ClgpConfig(), ObservedTable(table.kinds, empty, empty), Streams(1, 1))
    np.testing.assert_allclose(new.m, 0.0, atol=0.02)
    np.testing.assert_allclose(new.covariances(), np.tile(np.eye(Q), (3, 1, 1)), atol=0.02)


def test_other_columns_are_no_new_rows(seed: int) -> None:
    draw, _ = random_draw(seed)
    with pytest.raises(ValueError, match="columns"):
        fold_in(draw, ClgpConfig(), number_table(np.zeros((2, 2))), Streams(1, 1))


def test_no_new_rows_are_none(seed: int) -> None:
    draw, table = random_draw(seed)
    none = ObservedTable(table.kinds, *table.rows(slice(0, 0)))
    assert fold_in(draw, ClgpConfig(), none, Streams(1, 1)).m.shape == (0, Q)


def test_places_of_a_linear_gaussian_table_have_their_exact_covariances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.normal(size=(30, 5))
    y[rng.random(y.shape) < 0.3] = np.nan
    table = number_table(y)
    shared = replace(random_shared(rng, table, 3, 0, True), log_noise=rng.uniform(-2.0, 0.0, 5))
    draw = ClgpDraw.of(table, shared, random_places(rng, 30, 3), ClgpConfig(kernel="linear"))
    W = np.exp(shared.log_a + 0.5 * shared.log_rho) * shared.mu
    for n in range(30):
        seen = ~np.isnan(y[n])
        sharp = np.exp(-shared.log_noise[seen])
        exact = np.linalg.inv(np.eye(3) + (W[:, seen] * sharp) @ W.T[seen])
        np.testing.assert_allclose(draw.covariances()[n], exact, rtol=1e-9)
    x = draw.placed(rng)
    assert x.spread.shape == (30, 0)
    drawn = np.stack([draw.placed(rng).m[0] for _ in range(4000)]) - draw.m[0]
    cov = np.linalg.solve(np.linalg.cholesky(draw.covariances()[0]), drawn.T)
    np.testing.assert_allclose(np.cov(cov), np.eye(3), atol=0.12)


def test_places_are_sampled_from_q(seed: int) -> None:
    places = Places(np.array([[1.0, -2.0]]), np.log([[0.5, 0.1]]))
    normals = np.random.default_rng(seed).normal(size=(4000, 1, 2))
    x = places.sample(normals)
    np.testing.assert_allclose(x.mean(axis=0), [1.0, -2.0], atol=0.04)
    np.testing.assert_allclose(x.std(axis=0), [0.5, 0.1], rtol=0.05)
