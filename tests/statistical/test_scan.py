"""The whole sweep of yes/no columns against the enumerated posterior of three rows.

Births, the draws of bits that follow and the order of features all take part: what the last row
does decides where a feature stands.
"""

from __future__ import annotations

import itertools
from collections import Counter
from math import asin, lgamma, log, pi

import numpy as np
import pytest

from glfm_cli.inference.chain import start_chain
from glfm_cli.latent.glfm.sampler import Glfm
from glfm_cli.latent.glfm.state import GlfmConfig
from glfm_cli.latent.model import Problem
from glfm_cli.links.categorical import CategoricalLink
from glfm_cli.links.config import LinkConfig
from glfm_cli.streams import Streams

N, MOST, ALPHA, VAR_B = 3, 3, 1.5, 4.0
X = np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]])
SETTINGS = GlfmConfig(
    alpha=ALPHA, weight_variance=VAR_B, bias=False, max_features=MOST, initial_features=2
)


def problem() -> Problem:
    columns = range(X.shape[1])
    links = tuple(CategoricalLink(f"c{d}", 0, np.array([-1, 0])) for d in columns)
    return Problem(Glfm(), SETTINGS, links, tuple(X[:, d].copy() for d in columns), LinkConfig())


def orthant(C: np.ndarray, sign: np.ndarray) -> float:
    """Return P(sign * u > 0) of three normals of mean 0 and covariance C [Sheppard 1899]."""
    sd = np.sqrt(np.diag(C))
    r = C * np.outer(sign, sign) / np.outer(sd, sd)
    return 1 / 8 + (asin(r[0, 1]) + asin(r[0, 2]) + asin(r[1, 2])) / (4 * pi)


def enumerated() -> dict[tuple[tuple[int, ...], ...], float]:
    """Return the probability of every class of feature matrices, as a sorted tuple of columns."""
    histories = [h for h in itertools.product((0, 1), repeat=N) if any(h)]
    laws = {}
    for K in range(MOST + 1):
        for columns in itertools.combinations_with_replacement(histories, K):
            value = K * log(ALPHA) - sum(lgamma(n + 1) for n in Counter(columns).values())
            value += sum(lgamma(N - sum(h) + 1) + lgamma(sum(h)) - lgamma(N + 1) for h in columns)
            Z = np.array(columns, dtype=float).T.reshape(N, K)
            C = 2.0 * np.eye(N) + VAR_B * Z @ Z.T  # of the two noises of a utility, and weights
            value += sum(log(orthant(C, np.where(x == 1.0, 1.0, -1.0))) for x in X.T)
            laws[columns] = value
    values = np.array(list(laws.values()))
    p = np.exp(values - values.max())
    return dict(zip(laws, p / p.sum(), strict=True))


@pytest.mark.slow
def test_the_sweep_has_the_enumerated_posterior() -> None:
    """Were bits drawn in the order in which features came, two statistics were 5 errors off."""
    chain, batches = start_chain(problem(), Streams(11, 0)), []
    for _ in range(40):
        batch: Counter[tuple[tuple[int, ...], ...]] = Counter()
        for _ in range(6000):
            chain.sweep(adapt=False)
            Z = chain.state.Z[:, : chain.state.n_columns]
            batch[tuple(sorted(map(tuple, Z.T.tolist())))] += 1
        batches.append(batch)
    exact = enumerated()
    statistics = {
        "features": len,
        "features that all have": lambda columns: sum(sum(h) == N for h in columns),
        **{
            f"features that {a} and {b} have": lambda columns, a=a, b=b: sum(
                h[a] * h[b] for h in columns
            )
            for a, b in ((0, 1), (0, 2), (1, 2))
        },
    }
    for name, of in statistics.items():
        means = [sum(of(c) * n for c, n in b.items()) / sum(b.values()) for b in batches]
        error = np.std(means, ddof=1) / np.sqrt(len(means))
        expected = sum(of(c) * p for c, p in exact.items())
        assert abs(np.mean(means) - expected) < 4.0 * error, name


def test_bits_are_drawn_in_an_order_of_features_at_random() -> None:
    """Features that the last row has just added stand at the end no more often than elsewhere."""
    chain, last, chance = start_chain(problem(), Streams(3, 0)), [], []
    for _ in range(3000):
        chain.sweep(adapt=False)
        Z = chain.state.Z[:, : chain.state.n_columns]
        alone = np.flatnonzero((np.eye(N, dtype=np.uint8)[:, -1:] == Z).all(axis=0))
        if alone.size == 1 and Z.shape[1] > 1:
            last.append(alone[0] == Z.shape[1] - 1)
            chance.append(1.0 / Z.shape[1])
    assert len(last) > 200
    error = np.sqrt(np.sum(np.multiply(chance, 1.0 - np.array(chance)))) / len(last)
    assert abs(np.mean(last) - np.mean(chance)) < 4.0 * error


def test_features_take_their_weights_along() -> None:
    model, state = Glfm(), start_chain(problem(), Streams(4, 0)).state
    state.n_columns = MOST
    state.Z[:, :MOST] = np.eye(N, dtype=np.uint8)
    state.B[:MOST] = np.arange(1.0, 4.0)[:, None]
    orders = set()
    for seed in range(60):
        model._shuffle(state, np.random.default_rng(seed))
        orders.add(tuple(state.B[:MOST, 0]))
        np.testing.assert_array_equal(state.Z[:, :MOST] @ state.B[:MOST, 0], [1.0, 2.0, 3.0])
    assert len(orders) == 6
