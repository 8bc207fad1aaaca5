"""Laws that a small slip in the code would bend: one stream, one noise, one power for another.

Each test is exact but for the error of its simulation. `benchmarks/mutants.py` plants the slips.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from glfm_cli import impute
from glfm_cli.completion import prepare
from glfm_cli.inference import chains, row_scores
from glfm_cli.inference.folding import _starting_points, fold_in
from glfm_cli.inference.one_draw import draw_jointly
from glfm_cli.inference.predictive import predict
from glfm_cli.inference.row_scores import DrawScores, RowScores
from glfm_cli.inference.sampling import Plan, sample
from glfm_cli.inference.scoring import log_scores
from glfm_cli.latent.bsvd.moves import move_scales
from glfm_cli.latent.bsvd.prior_means import PriorMeans
from glfm_cli.latent.model import gaussian
from glfm_cli.schema import Schema
from glfm_cli.streams import Streams

REAL = {"columns": {"*": "real"}}


def reals(n: int, columns: int, seed: int, gaps: float = 0.2) -> pa.Table:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1)) + rng.normal(size=(n, columns))
    hidden = rng.random(x.shape) < gaps
    return pa.table({f"c{d}": pa.array(x[:, d], mask=hidden[:, d]) for d in range(columns)})


def levels(n: int, columns: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    t = (rng.random((n, 1)) < 0.5) * 1.5 + rng.normal(size=(n, columns))
    return pa.table({f"c{d}": np.digitize(t[:, d], [-0.5, 0.5, 1.5]) for d in range(columns)})


def problem_of(table: pa.Table, types: dict[str, Any], **settings: object) -> Any:
    return prepare(table, Schema.from_dict(types), model="glfm", settings=settings)[0]


def test_versions_of_one_draw_differ_and_stay_when_there_are_more() -> None:
    done = impute(reals(40, 2, 0), REAL, chains=1, warmup=3, draws=1, threads=1)
    many = replace(done.multiple(1), chosen=((0, 0),) * 3)
    first, second, third = many.tables()
    assert not first.equals(second)
    assert not second.equals(third)
    assert next(iter(done.multiple(1).tables())).equals(first)


@pytest.mark.parametrize("most", [64, 3])
def test_candidates_for_a_new_row_are_scored_by_all_its_cells(
    seed: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counts of more than `most` values are scored at the middles of their intervals."""
    monkeypatch.setattr(row_scores, "MOST_VALUES", most)
    table, codes = reals(40, 3, 1, gaps=0.2), levels(40, 2, 1)
    for name in codes.column_names:
        table = table.append_column(f"level_{name}", codes[name])
    gone = np.random.default_rng(seed).random(40) < 0.2
    table = table.append_column("n", pa.array(np.arange(40) % 7, mask=gone))
    types = {"c*": "real", "level_*": "categorical", "n": "count"}
    problem = problem_of(table, {"columns": types})
    posterior = sample(problem, Plan(1, 2, 1, 1, seed)).posterior
    draw = posterior.chains[0][0]
    candidates = posterior.cells_law(draw, slice(0, 7))
    starts = _starting_points(problem)
    scores = DrawScores(lambda: RowScores(problem, starts), draw.params)
    score = np.vstack([scores(candidates, rows) for rows in (slice(0, 25), slice(25, 40))])
    expected = np.zeros((40, 7))
    for d, (link, x) in enumerate(zip(problem.links, problem.xs, strict=True)):
        seen = np.flatnonzero(~np.isnan(x))
        for c in range(7):
            law = cast(Any, candidates.column(d, np.full(seen.size, c)))
            if link.name == "n" and most == 3:
                sd = np.sqrt(law.variances.item())
                expected[seen, c] += stats.norm.logpdf(starts[d][seen, 0], law.means[:, 0, 0], sd)
            else:
                expected[seen, c] += link.log_density(x[seen], law, {})
    score -= score.mean(axis=1, keepdims=True)
    expected -= expected.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(score, expected, rtol=1e-4, atol=1e-4)


def test_joint_draws_have_the_noise_of_their_own_column(seed: int) -> None:
    problem = problem_of(reals(400, 2, 1), REAL, max_features=0, initial_features=0)
    posterior = sample(problem, Plan(1, 2, 1, 1, seed)).posterior
    draw = posterior.chains[0][0]
    known = replace(draw, latent=replace(draw.latent, noise=np.array([0.01, 4.0])))
    rows = np.arange(400)
    drawn = draw_jointly(posterior, {0: rows, 1: rows}, np.random.default_rng(seed), known)
    slope = [link.margin.to_value(np.array([0.0, 1.0])) for link in posterior.links]
    sds = [np.std(drawn[d]) / np.diff(slope[d])[0] for d in (0, 1)]
    assert sds[0] == pytest.approx(0.1, rel=0.2)
    assert sds[1] == pytest.approx(2.0, rel=0.2)


def test_proposals_are_tuned_in_the_warmup_alone() -> None:
    types = {"columns": {"*": {"type": "ordinal", "levels": ["0", "1", "2", "3"]}}}
    problem = problem_of(levels(60, 3, 2), types)
    (kept,) = sample(problem, Plan(1, 4, 5, 1, 0)).posterior.chains
    for d in range(3):
        steps = {float(draw.params[d]["log_step"][0]) for draw in kept}
        tries = {float(draw.params[d]["tries"][0]) for draw in kept}
        assert (len(steps), len(tries)) == (1, 1)
        assert tries != {0.0}


def test_pseudo_observations_fit_the_features_that_they_are_left_with(seed: int) -> None:
    """Given eta, y is normal between its thresholds: its distribution function is uniform."""
    types = {"columns": {"*": {"type": "ordinal", "levels": ["0", "1", "2", "3"]}}}
    problem = problem_of(levels(50, 6, 3), types, bias=True)
    chain = cast(Any, chains.start(problem, seed, 0))
    u = []
    for sweep in range(60):
        chain.sweep(adapt=True)
        gaussian(problem.model).fill_eta(chain.state, chain.eta)
        if sweep < 10:
            continue
        for d, x in enumerate(problem.xs):
            cuts = np.concatenate([[-np.inf], chain.params[d]["thresholds"], [np.inf]])
            code, eta = x.astype(int), chain.eta_of(d)
            low, high = (stats.norm.cdf(cuts[code + i] - eta) for i in (0, 1))
            u.append((stats.norm.cdf(chain.cells.y[:, d] - eta) - low) / (high - low))
    assert stats.kstest(np.concatenate(u), "uniform").statistic < 0.015


@pytest.mark.parametrize("covariates", [(0, 0), (2, 0), (0, 1)])
def test_scales_of_components_keep_their_prior(covariates: tuple[int, int], seed: int) -> None:
    """U_ik ~ N(r_i . b_k, 1 / I), V_jk likewise, s_k ~ N(0, 1 / alpha), whatever moves along x."""
    rng, shape, K, alpha = np.random.default_rng(seed), (2, 3), 4000, 2.0
    sides, factors = [], []
    for n, p in zip(shape, covariates, strict=True):
        means = PriorMeans.of(rng.normal(size=(n, p)), K)
        means.factors[:] = rng.normal(size=(p, K)) / np.sqrt(n)
        sides.append(means)
        factors.append(means.X @ means.factors + rng.normal(size=(n, K)) / np.sqrt(n))
    state = SimpleNamespace(
        U=factors[0],
        V=factors[1],
        s=rng.normal(size=K) / np.sqrt(alpha),
        active=np.arange(K),
        alpha=alpha,
        of_rows=sides[0],
        of_columns=sides[1],
        matrix=SimpleNamespace(shape=shape),
    )
    for _ in range(20):
        move_scales(cast(Any, state), rng)
    assert stats.kstest(state.s * np.sqrt(alpha), "norm").pvalue > 1e-3
    for side, means, n in zip(factors, sides, shape, strict=True):
        around = side - means.X @ means.factors
        for part in (around, means.factors) if means.p else (around,):
            law = stats.chi2(len(part))
            assert stats.kstest(n * np.sum(part**2, axis=0), law.cdf).pvalue > 1e-3


@pytest.mark.parametrize(("prior_scale", "unit"), [("independent", 1.0), ("noise", 5.0)])
def test_hyperparameters_are_drawn_from_their_conditionals(
    prior_scale: str, unit: float, seed: int
) -> None:
    problem = problem_of(reals(60, 3, 4), REAL, prior_scale=prior_scale)
    chain = cast(Any, chains.start(problem, seed, 0))
    chain.sweep(adapt=True)
    state, config = chain.state, problem.config
    state.noise[:] = 5.0
    bias = int(config.bias)
    B = state.B[bias : state.n_columns]
    assert B.size > 0
    shape = config.weight_variance_shape + B.size / 2
    rate = config.weight_variance_rate + np.sum(B**2) / unit / 2
    drawn, masses, streams = [], [], Streams(seed, 3)
    for _ in range(2000):
        gaussian(problem.model).finish(state, streams)
        drawn.append(1.0 / state.weight_variance)
        masses.append(state.alpha)
    of_features = stats.gamma(
        config.alpha_shape + len(B),
        scale=1.0 / (config.alpha_rate + np.sum(1.0 / np.arange(1, problem.n_rows + 1))),
    )
    assert stats.kstest(masses, of_features.cdf).pvalue > 1e-3
    assert stats.kstest(drawn, stats.gamma(shape, scale=1.0 / rate).cdf).pvalue > 1e-3


def test_restarts_count_by_their_weights(seed: int) -> None:
    problem = problem_of(levels(40, 2, 5), {"columns": {"*": "categorical"}})
    equal = sample(problem, Plan(2, 8, 1, 1, seed)).posterior
    alone = [replace(equal, chains=(chain,)) for chain in equal.chains]
    both = replace(equal, weights=(0.9, 0.1))
    cells = {0: np.arange(40)}
    first, second, mixed = (predict(p, cells)[0].probabilities for p in (*alone, both))
    assert np.abs(first - second).max() > 0.05
    np.testing.assert_allclose(mixed, 0.9 * first + 0.1 * second, atol=1e-12)
    truth = {0: problem.xs[0]}
    scores = np.exp(log_scores(both, cells, truth)[0])
    np.testing.assert_allclose(scores, mixed[np.arange(40), truth[0].astype(int)], atol=1e-12)
    rng, draws = np.random.default_rng(seed), list(both.draws())
    assert np.mean([both.choose(rng) is draws[0] for _ in range(500)]) > 0.8


def test_new_rows_are_drawn_anew_under_every_draw(seed: int) -> None:
    problem = problem_of(reals(80, 4, 6, gaps=0.5), REAL)
    posterior = sample(problem, Plan(1, 8, 1, 1, seed)).posterior
    (draw,) = posterior.chains[0]
    twice = fold_in(replace(posterior, chains=((draw, draw),)), problem, seed=seed)
    one, other = (found.latent.bits for found in twice.chains[0])
    assert not np.array_equal(one, other)


def test_rows_of_a_fit_that_are_hidden_in_part_do_not_start_with_their_own_bits(seed: int) -> None:
    """A row's own bits, drawn with all its cells in view, would tell what is hidden."""
    problem = problem_of(reals(40, 6, 6), REAL, bias=False)
    posterior = sample(problem, Plan(1, 8, 1, 1, seed)).posterior
    own = posterior.chains[0][0].latent.bits
    other = np.any(own[:, None] != own, axis=2)
    rows = np.flatnonzero(other.sum(axis=1) == 39)  # whose bits no other row has
    assert rows.size > 5
    again = replace(problem.take(rows), of_fit=rows)
    folded = [fold_in(posterior, part, seed=seed, sweeps=0) for part in (problem.take(rows), again)]
    same = [np.all(p.chains[0][0].latent.bits == own[rows], axis=1).mean() for p in folded]
    assert same[0] > 0.3
    assert same[1] == 0.0


@pytest.mark.parametrize("model", ["bsvd", "forest"])
def test_new_rows_have_random_numbers_of_their_own_under_every_draw(model: str) -> None:
    """Four copies of one draw, in two chains, place a row of which nothing is known apart."""
    table = reals(40, 3, 3)
    plan = {"chains": 1, "warmup": 3, "draws": 1, "thin": 1, "seed": 1}
    problem, _, plan = prepare(table, Schema.from_dict(REAL), model=model, settings={}, **plan)
    posterior = sample(problem, plan).posterior
    ((one,),) = posterior.chains
    copies = replace(posterior, chains=((one, one), (one, one)))
    new = replace(problem.take(np.arange(2)), xs=tuple(np.full(2, np.nan) for _ in problem.xs))
    name, second = {"bsvd": "left", "forest": "z"}[model], replace(copies, chains=((one, one),))
    placed, alone = (
        [getattr(draw.latent, name).tobytes() for draw in folded.draws()]
        for folded in (
            fold_in(part, new, seed=5, first=first) for part, first in ((copies, 0), (second, 1))
        )
    )
    assert len(set(placed)) == 4
    assert alone == placed[2:]
