"""How much more counts vary than their rates: found, and in every law."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cnpf_fits import fit
from cnpf_reference import counts_of
from scipy.stats import nbinom

import glfm_cli.latent.cnpf.engine as engine
from glfm_cli.latent.cnpf import Cnpf, CnpfConfig, CnpfDraw, Counts
from glfm_cli.latent.cnpf.excess import excess_of, law_without, some_cells
from glfm_cli.latent.cnpf.prediction import fold_in, p_any, rates
from glfm_cli.latent.model import Pairs, Sizes
from glfm_cli.links.poisson import PoissonCount

CONFIG = CnpfConfig(components=3, scaled=False, correlated=False, free_pass=3)


def fitted(
    e: float, seed: int | list[int], n_rows: int = 250, f: float = 0.0, scale: float = 1.0
) -> tuple[CnpfDraw, Counts]:
    """Return the fit of counts whose cells' rates have factors of variance e / sqrt(rate) + f."""
    rng = np.random.default_rng(seed)
    mean = scale * rng.gamma(0.5, 2.0, (n_rows, 3)) @ rng.gamma(0.4, 1.0, (3, 40))
    v = np.maximum(e, 1e-9) / np.sqrt(mean) + f
    y = rng.poisson(mean * (rng.gamma(1.0 / v, v) if e or f else 1.0))
    counts = counts_of(y, rng.random(y.shape) < 0.1)
    return engine.draw(fit(counts, CONFIG, 40)[0], counts), counts


@pytest.mark.parametrize(("e", "f", "scale"), [(0, 0, 1), (0.8, 0, 1), (0, 0.3, 1), (0, 0.3, 100)])
def test_the_excess_of_planted_counts_is_found(
    e: float, f: float, scale: float, seed: int
) -> None:
    # What a fit that stays in a poor optimum does not explain is excess, too: hence three tables.
    fits = [fitted(e, [seed, table], f=f, scale=scale)[0].excess for table in range(3)]
    errors = [found[0] / scale**0.5 + found[1] - (e / scale**0.5 + f) for found in fits]
    assert abs(np.median(errors)) < 0.05 + 0.15 * e
    assert np.median([found[0] for found in fits]) == pytest.approx(e, abs=0.4)


def test_laws_without_a_cell_are_those_of_q_without_it(seed: int) -> None:
    draw, counts = fitted(0.5, seed, 10)  # in which every row counts
    row, column, y, _ = some_cells(counts)
    mean, var = law_without(CONFIG, draw, row, column, y)
    rng = np.random.default_rng(seed)
    for n in np.argsort(-y)[::5][:20]:
        u, i = row[n], column[n]
        drawn = rng.gamma(draw.shape[u], size=(40_000, 3)) / draw.rate[u]
        others = rng.gamma(draw.shared.A[i], size=(40_000, 3)) * draw.mean_a[i] / draw.shared.A[i]
        share = np.exp(np.log(drawn).mean(axis=0) + np.log(others).mean(axis=0))
        own = y[n] * share / share.sum()
        shape = np.maximum(draw.shape[u] - own, draw.shared.w)
        A = np.maximum(draw.shared.A[i] - own, CONFIG.column_shape)
        x = rng.gamma(shape, size=(40_000, 3)) / (draw.rate[u] - draw.mean_a[i])
        a = rng.gamma(A, size=(40_000, 3)) / (draw.shared.A[i] / draw.mean_a[i] - draw.mean_x[u])
        rate = (x * a).sum(axis=1)
        assert mean[n] == pytest.approx(rate.mean(), rel=0.07)
        assert var[n] == pytest.approx(rate.var(), rel=0.4)


def test_cells_stand_for_all_that_are_not_missing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.poisson(0.4, (300, 50))
    lost = rng.random(y.shape) < np.where(np.arange(300) < 50, 0.8, 0.1)[:, None]
    row, column, count, weight = some_cells(counts_of(y, lost))
    np.testing.assert_array_equal(count, y[row, column])
    assert not lost[row, column].any()
    assert weight.sum() == pytest.approx((~lost).sum(), rel=0.03)
    assert weight[count > 0].sum() == pytest.approx(((y > 0) & ~lost).sum())


def test_the_excess_is_in_every_law(seed: int) -> None:
    draw, counts = fitted(0.0, seed)
    plain, draw = (replace(draw, excess=e) for e in ((0.0, 0.0), (0.7, 0.1)))
    every = rates(plain, *np.divmod(np.arange(10_000), 40)).mean
    row, column = np.divmod(np.argsort(-every)[10:13], 40)
    without, law = (rates(one, row, column) for one in (plain, draw))
    np.testing.assert_allclose(law.mean, without.mean)
    square = (without.var + without.mean**2) * (1.1 + 0.7 / np.sqrt(law.mean))  # E rate^2 E g^2
    np.testing.assert_allclose(law.var, square - without.mean**2)
    shape = law.mean**2 / law.var
    likely = nbinom.sf(0, shape, shape / (shape + law.mean))
    np.testing.assert_allclose(p_any(draw, slice(None))[row, column], likely, rtol=1e-9)
    rng = np.random.default_rng(seed)
    pairs, link = Pairs(np.repeat(row, 40_000), np.repeat(column, 40_000)), PoissonCount("n")
    of_cells = Cnpf().joint(draw, Pairs(row, column), rng).shape
    np.testing.assert_allclose(1.0 / of_cells, 0.7 / np.sqrt(law.mean) + 0.1)
    drawn = np.concatenate(
        [link.sample(Cnpf().joint(draw, part, rng).column(0), {}, rng)
         for part in (pairs.take(slice(k, None, 400)) for k in range(400))]
    )  # fmt: skip
    drawn = drawn.reshape(400, 3, 100).transpose(1, 0, 2).reshape(3, -1)
    np.testing.assert_allclose(drawn.mean(axis=1), law.mean, rtol=0.1)
    np.testing.assert_allclose(drawn.var(axis=1), law.mean + law.var, rtol=0.25)
    assert fold_in(draw, counts, CONFIG).excess == (0.7, 0.1)
    back = CnpfDraw.unpack(draw.pack(), Sizes(250, 40, ()))
    assert back.excess == (0.7, 0.1)
    with pytest.raises(ValueError, match="below 0"):
        CnpfDraw.unpack(draw.pack() | {"excess": np.array([0.1, -0.1])}, Sizes(250, 40, ()))
    before = CnpfDraw.unpack(draw.pack() | {"excess": np.array(0.7)}, Sizes(250, 40, ()))
    assert before.excess == (0.7, 0.0)


def test_a_count_alone_says_nothing_of_the_excess() -> None:
    counts = counts_of(np.pad([[1]], (0, 3)))
    assert engine.draw(fit(counts, CONFIG, 10)[0], counts).excess < (0.3, 0.3)


def test_rows_of_known_totals_and_empty_matrices_have_no_excess() -> None:
    draw, counts = fitted(0.8, 0)
    assert excess_of(replace(CONFIG, likelihood="topics"), draw, counts) == (0.0, 0.0)
    assert excess_of(CONFIG, draw, counts_of(np.zeros((250, 40), dtype=int))) == (0.0, 0.0)


def test_the_excess_of_few_cells_is_where_likelihood_and_prior_are_highest(seed: int) -> None:
    """Each ~ Exp(1): no other e and f on a grid are more probable."""
    draw, counts = fitted(1.5, seed, 12)
    row, column, y, weight = some_cells(counts)
    mean, var = law_without(CONFIG, draw, row, column, y)

    def log_p(e: float, f: float) -> float:
        factor = e / np.sqrt(mean) + f
        r = mean**2 / (var * (1.0 + factor) + factor * mean**2)
        return float(weight @ nbinom.logpmf(y, r, r / (r + mean)) - e - f)

    e, f = excess_of(CONFIG, draw, counts)
    assert max(e, f) < 4.0
    near = [(max(e + u, 0.0), f + v) for u in np.linspace(-0.2, 0.2, 21) for v in (0.0, 0.02, 0.05)]
    best = max(log_p(*at) for at in near)
    assert log_p(e, f) > best - 1e-3
