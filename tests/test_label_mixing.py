"""How forecasts of labels by experts, by trees and by their own shares mix."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, log_expit, logsumexp

from glfm_cli.classification.label_mixing import LabelMixing
from glfm_cli.classification.stacking import stacked

Array = np.ndarray[Any, Any]


def member(log_p: Array, *, weight: float = 1.0, power: float = 1.0) -> Any:
    return SimpleNamespace(left_out=log_p, weight=weight, power=power)


def two_levels(score: Array) -> Array:
    """Return log probabilities (n, 2) of logistic scores."""
    return np.column_stack([log_expit(-score), log_expit(score)])


def raised(log_p: Array, power: float) -> Array:
    p = np.exp(power * log_p)
    return np.asarray(p / p.sum(axis=1, keepdims=True))


@pytest.mark.parametrize(("n", "slips"), [(30, 0.1), (400, 0.0), (400, 0.25)])
def test_both_kinds_are_averaged_by_their_evidence(n: int, slips: float, seed: int) -> None:
    """Weights on a grid of a triangle, powers on one of theirs."""
    rng = np.random.default_rng([seed, n])
    score = 2.5 * rng.standard_normal(n)
    code = (rng.random(n) < np.where(rng.random(n) < slips, 0.3, expit(1.4 * score))).astype(int)
    log_p = [two_levels(score), two_levels(score + 0.5)]
    members = [member(log_p[0], weight=0.7, power=1.5), member(log_p[1], weight=0.3, power=1.3)]
    trees = log_expit((2 * code - 1) * (0.4 * score + rng.standard_normal(n)))
    found, at = LabelMixing.of(members, trees, code), np.arange(n)
    shares = np.array([(np.sum(np.delete(code, i) == code[i]) + 0.5) / n for i in range(n)])

    def voices(powers: tuple[float, float]) -> Array:
        each = [raised(one, power)[at, code] for one, power in zip(log_p, powers, strict=True)]
        return np.column_stack([0.7 * each[0] + 0.3 * each[1], np.exp(trees), shares])

    steps = (np.arange(40) + 0.5) / 40
    line = np.column_stack([steps, 1.0 - steps, 0.0 * steps])
    corner = np.array([[a, b, 1.0 - a - b] for a in steps for b in steps if a + b <= 1.0])
    plain = np.log(voices((1.5, 1.3)) @ line.T).sum(axis=0)
    z = np.linspace(-4.0, 4.0, 33)
    like = np.array([np.log(voices((s, s)) @ corner.T).sum(axis=0) for s in np.exp(0.25 * z)])
    prior = -0.5 * z**2 - logsumexp(-0.5 * z**2)
    like += prior[:, None] - np.log(len(corner))
    shared = expit(logsumexp(like) - (logsumexp(plain) - np.log(40)))
    p_plain, p = np.exp(plain - logsumexp(plain)), np.exp(like - logsumexp(like))
    weights = shared * (p.sum(axis=0) @ corner) + (1.0 - shared) * (p_plain @ line)
    before = 0.7 * np.log(1.5) + 0.3 * np.log(1.3)
    log_s = shared * 0.25 * (p.sum(axis=1) @ z) + (1.0 - shared) * before
    np.testing.assert_allclose(found.weights, weights, atol=0.1)
    # Bounds are looser where there is more to be chosen.
    assert np.log(found.power) == pytest.approx(log_s - before, abs=0.1 if n < 100 else 0.05)
    assert (shared > 0.8) == (slips > 0.2)
    counts = np.bincount(code, minlength=2)
    np.testing.assert_allclose(found.shares, (counts + 0.5) / (n + 1.0))


def test_the_bound_is_that_of_the_evidence(seed: int) -> None:
    """The integral over weights done by a sum."""
    log_p = np.log(np.random.default_rng(seed).uniform(0.2, 0.9, (20, 3)))
    _, bound = stacked(log_p)
    steps = (np.arange(200) + 0.5) / 200
    corner = np.array([[a, b, 1.0 - a - b] for a in steps for b in steps if a + b <= 1.0])
    exact = np.log(np.mean(np.prod(np.exp(log_p) @ corner.T, axis=0)))
    assert exact - 2.5 < bound < exact
    # One label and two equal forecasts: a = 1.5, E log w = digamma(1.5) - digamma(3) = -0.88629.
    divergence = np.log(2.0) - 2.0 * np.log(np.sqrt(np.pi) / 2.0) - 0.88629
    expected = np.log(2.0 * 0.3 * np.exp(-0.88629)) - divergence
    assert stacked(np.full((1, 2), np.log(0.3)))[1] == pytest.approx(expected, abs=1e-4)


def test_labels_do_not_vote_for_themselves() -> None:
    """Of ten labels that are all different, the others say nothing but that it is another."""
    log_p, code = np.full((10, 10), -np.log(10.0)), np.arange(10)
    found = LabelMixing.of([member(log_p)], log_p[:, 0], code)
    assert found.weights[2] < 0.1


def test_shares_make_room_for_labels_that_nothing_tells(seed: int) -> None:
    """A fifth of labels goes by shares alone: experts stay as sure as they should be of others."""
    rng = np.random.default_rng(seed)
    score, told = 4.0 * rng.standard_normal(1500), rng.random(1500) > 0.2
    one = np.where(told, rng.random(1500) < expit(score), rng.random(1500) < 0.3)
    log_p = two_levels(0.5 * score)
    found = LabelMixing.of([member(log_p)], np.full(1500, np.log(0.5)), one.astype(int))
    assert found.weights[2] > 0.1
    assert found.power > 1.2
    new = np.array([[0.3, 0.7], [0.5, 0.5]])
    trees = np.array([[0.1, 0.9], [0.2, 0.8]])
    sure = new**found.power / np.sum(new**found.power, axis=1, keepdims=True)
    expected = np.stack([sure, trees, np.tile(found.shares, (2, 1))])
    np.testing.assert_allclose(
        found.mixed(new, trees), np.einsum("k,knr->nr", found.weights, expected)
    )


def test_what_cannot_be_a_mixture_is_refused(seed: int) -> None:
    log_p = two_levels(np.random.default_rng(seed).standard_normal(50))
    found = LabelMixing.of([member(log_p)], log_p[:, 1], np.arange(50) % 2)
    again = LabelMixing.unpack(found.pack(), 2)
    np.testing.assert_array_equal(again.weights, found.weights)
    assert again.power == found.power
    broken = {"weights": -found.weights, "shares": 2.0 * found.shares, "power": np.array(np.nan)}
    for name, value in broken.items():
        with pytest.raises(ValueError, match=name):
            LabelMixing.unpack({**found.pack(), name: value}, 2)
