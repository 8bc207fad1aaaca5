"""New rows are drawn from their exact conditional: tiny cases with every row of bits enumerated.

Many copies of one row, with cells of every kind and a gap, are folded into a draw that is written
down by hand; how often each row of bits comes up is compared with

    P(z | x) ~ prod_k (m_k / (N + 1))^z_k (1 - m_k / (N + 1))^(1 - z_k) prod_d p(x_d | z b_d),

the observed cells' probabilities taken from the links with the pseudo-observations integrated out.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.special import logsumexp

from glfm_cli.completion import prepare
from glfm_cli.inference.chain import spans_of
from glfm_cli.inference.folding import fold_in
from glfm_cli.inference.posterior import Draw, Posterior
from glfm_cli.latent.glfm import sampler as glfm
from glfm_cli.latent.glfm.known_features import KnownFeatures
from glfm_cli.latent.glfm.linear import LinearPart
from glfm_cli.latent.glfm.state import GlfmDraw
from glfm_cli.latent.model import Problem
from glfm_cli.links.law import normal
from tests.statistical.mutants import BITS_MUTANTS, compile_mutant

COPIES = 10_000
SWEEPS = 50
TABLE = pa.table(
    {
        "r": [0.1, 1.2, -0.7, 2.0, 0.4, -1.1],
        "p": [0.5, 2.0, 0.0, 3.5, 1.0, 0.7],
        "n": [0, 3, 1, 5, 2, 1],
        "c": ["a", "b", "c", "a", "b", "b"],
        "o": ["1", "3", "2", "2", "1", "3"],
    }
)
TYPES = {
    "columns": {
        "r": "real",
        "p": {"type": "positive", "transform": "none"},
        "n": {"type": "count", "transform": "none"},
        "c": "categorical",
        "o": "ordinal",
    }
}
ROWS = {
    "every kind of cell": [1.5, 1.2, 4.0, 2.0, 0.0],
    "a zero that is an interval": [-0.5, 0.0, 0.0, 1.0, 2.0],
    "gaps": [np.nan, 2.5, np.nan, np.nan, 1.0],
    "nothing observed": [np.nan] * 5,
}


class Tiny:
    """Six fitted rows, up to three features besides the bias, and links of five kinds."""

    def __init__(self, bias: bool, seed: int, **settings: Any) -> None:
        rng = np.random.default_rng(seed)
        self.problem, _, _ = prepare(
            TABLE, TYPES, model="glfm", chains=1, warmup=0, draws=1, thin=1, seed=0,
            settings={"bias": bias, **settings},
        )  # fmt: skip
        Z = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 0], [1, 0, 0], [1, 0, 1], [1, 1, 0]], np.uint8)
        if bias:
            Z = np.column_stack([np.ones(6, np.uint8), Z])
        self.Z, self.bias = Z, int(bias)
        n_latent = sum(link.n_latent for link in self.problem.links)
        unit = np.array([link.unit_noise for link in self.problem.links])
        noise = np.where(unit, 1.0, rng.uniform(0.3, 1.2, unit.size))
        B = rng.standard_normal((Z.shape[1], n_latent))
        L = self.problem.config.components
        self.linear = LinearPart(
            rng.standard_normal((6, L)), rng.standard_normal((L, n_latent)), np.ones(L)
        )
        self.latent = GlfmDraw(
            np.packbits(Z, axis=1), Z.shape[1], B, noise, spans_of(self.problem.links), self.linear,
            KnownFeatures.none(),
        )  # fmt: skip
        params = [link.start(x)[0] for link, x in zip(self.problem.links, self.problem.xs,
                                                            strict=True)]  # fmt: skip
        draw = Draw(self.latent, tuple(params), {})
        links = self.problem.links
        self.posterior = Posterior(self.problem.model, links, spans_of(links), ((draw,),))

    def folded(self, row: list[float], copies: int = COPIES, **options: Any) -> np.ndarray:
        """Return the bits (copies, K) of copies of a row."""
        xs = tuple(np.full(copies, value) for value in row)
        new = Problem(
            self.problem.model, self.problem.config, self.problem.links, xs,
            self.problem.link_config,
        )  # fmt: skip
        done = fold_in(self.posterior, new, seed=5, **{"sweeps": SWEEPS, **options})
        latent = done.chains[0][0].latent
        return np.unpackbits(latent.bits, axis=1, count=latent.n_columns)

    def exact(self, row: list[float], n_rows: int | None = None) -> dict[tuple[int, ...], float]:
        """Return the probability of each row of bits; `n_rows` puts another N in the prior.

        u of the only component of a linear part is integrated by Gauss and Hermite's rule.
        """
        u, weight = np.polynomial.hermite_e.hermegauss(60 if self.linear.size else 1)
        along = u[:, None] * (self.linear.V if self.linear.size else 0.0)
        N = 6 if n_rows is None else n_rows
        share = self.Z.sum(axis=0)[self.bias :] / (N + 1)
        draw = self.posterior.chains[0][0]
        log_p = {}
        for bits in product((0, 1), repeat=self.Z.shape[1] - self.bias):
            z = np.array([*[1] * self.bias, *bits], dtype=float)
            total = float(np.sum(np.where(bits, np.log(share), np.log1p(-share))))
            eta, at_u = z @ self.latent.B + along, np.log(weight / weight.sum())
            for d, (link, value) in enumerate(zip(self.posterior.links, row, strict=True)):
                if not np.isnan(value):
                    start, end = self.posterior.spans[d]
                    mean = eta[:, start] if link.n_latent == 1 else eta[:, start:end]
                    x, var = np.full(u.size, value), float(self.latent.noise[d])
                    at_u += link.log_density(x, normal(mean, var), draw.params[d])
            log_p[tuple(int(bit) for bit in z)] = total + float(logsumexp(at_u))
        weights = np.exp(np.array(list(log_p.values())) - max(log_p.values()))
        return dict(zip(log_p, weights / weights.sum(), strict=True))


def p_value(bits: np.ndarray, exact: dict[tuple[int, ...], float]) -> float:
    """Return the chi-square p-value of the frequencies; rare rows of bits are put together."""
    found = Counter(map(tuple, bits.tolist()))
    pairs = sorted((p * len(bits), found[bits_of]) for bits_of, p in exact.items())
    expected, observed = (list(column) for column in zip(*pairs, strict=True))
    while expected[0] < 10:
        expected[:2], observed[:2] = [sum(expected[:2])], [sum(observed[:2])]
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("bias", [True, False])
def test_bits_of_a_new_row_come_from_their_exact_conditional(bias: bool, row: str) -> None:
    tiny = Tiny(bias, seed=1)
    assert p_value(tiny.folded(ROWS[row]), tiny.exact(ROWS[row])) > 1e-4


@pytest.mark.parametrize("row", ROWS)
def test_bits_of_a_new_row_have_the_linear_part_integrated_out(row: str) -> None:
    tiny = Tiny(True, seed=3, components=1)
    assert p_value(tiny.folded(ROWS[row]), tiny.exact(ROWS[row])) > 1e-4


def test_link_noise_is_integrated_too() -> None:
    tiny = Tiny(True, seed=2, link_noise=0.5)
    row = ROWS["every kind of cell"]
    assert p_value(tiny.folded(row), tiny.exact(row)) > 1e-4


def test_a_prior_that_is_off_by_one_row_would_be_noticed() -> None:
    tiny = Tiny(True, seed=1)
    row = ROWS["gaps"]
    assert p_value(tiny.folded(row), tiny.exact(row, n_rows=5)) < 1e-6


@pytest.mark.parametrize("row", ROWS)
def test_the_starting_bits_alone_are_noticed(row: str) -> None:
    tiny = Tiny(True, seed=1)
    assert p_value(tiny.folded(ROWS[row], sweeps=0), tiny.exact(ROWS[row])) < 1e-6


@pytest.mark.parametrize("row", ["every kind of cell", "gaps"])
def test_a_new_row_starts_like_a_fitted_one_by_how_well_that_explains_it(row: str) -> None:
    tiny = Tiny(True, seed=1)
    share, start = tiny.Z.sum(axis=0)[1:] / 7, {}
    for bits, p in tiny.exact(ROWS[row]).items():
        prior = np.prod(np.where(bits[1:], share, 1.0 - share))
        if n_same := int(np.all(bits == tiny.Z, axis=1).sum()):
            start[bits] = n_same * p / float(prior)
    start = {bits: p / sum(start.values()) for bits, p in start.items()}
    assert p_value(tiny.folded(ROWS[row], sweeps=0), start) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("mutant", BITS_MUTANTS)
def test_mutants_of_the_kernel_are_caught(
    mutant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glfm, "_glfm_bits", compile_mutant(mutant, tmp_path))
    tiny = Tiny(True, seed=1)
    found = [p_value(tiny.folded(row), tiny.exact(row)) for row in ROWS.values()]
    assert min(found) < 1e-6, found


def test_the_exact_law_stays_where_it_is() -> None:
    """Copies that have been drawn stay in their law for any further sweep."""
    tiny = Tiny(True, seed=1)
    row = ROWS["every kind of cell"]
    for sweeps in (glfm.Glfm.inner_sweeps, SWEEPS + 1, SWEEPS + 7):
        assert p_value(tiny.folded(row, sweeps=sweeps), tiny.exact(row)) > 1e-4


def test_the_fit_stays_as_it_is() -> None:
    tiny = Tiny(True, seed=1)
    before = [
        {name: value.copy() for name, value in p.items()}
        for p in tiny.posterior.chains[0][0].params
    ]
    tiny.folded(ROWS["every kind of cell"], copies=50)
    after = tiny.posterior.chains[0][0].params
    for one, two in zip(before, after, strict=True):
        assert one.keys() == two.keys()
        assert all(np.array_equal(one[name], two[name]) for name in one)
