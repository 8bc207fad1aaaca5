"""What rules of tasks are off by, atoms of tasks, and evidence of labels of several variables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import gamma

from glfm_cli import classify
from glfm_cli.latent.iqgme import Experts, IqgmeConfig, KnownRows
from glfm_cli.latent.iqgme.deviation_scale import FOLDS, _fold, foretold, see
from glfm_cli.latent.iqgme.deviations import TaskDeviations
from glfm_cli.latent.iqgme.experts import Statistics
from glfm_cli.latent.iqgme.forms import Full
from glfm_cli.latent.iqgme.merges import rule_evidence
from glfm_cli.latent.iqgme.prior import Prior
from glfm_cli.latent.iqgme.usage import choose
from tests.iqgme_problems import signs

PRIOR = Prior.of(IqgmeConfig(experts=3), 2)


def deviations() -> TaskDeviations:
    """Return those of three tasks, of two variables and rules of two features."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(3, 3, 3))
    own = TaskDeviations.unknown(PRIOR, 3, 2, 2, 1.7)
    return replace(own, mv=rng.normal(size=(3, 2, 3)), C=root @ np.swapaxes(root, 1, 2) / 5)


def test_squares_of_deviations_are_those_of_draws() -> None:
    own, rng = deviations(), np.random.default_rng(1)
    drawn = own.mv[:, :, None] + np.einsum(
        "jpq,jknq->jknp", np.linalg.cholesky(own.C), rng.normal(size=(3, 2, 40_000, 3))
    )
    expected = np.mean(drawn**2, axis=2).sum(axis=(0, 1))
    np.testing.assert_allclose(own.square, expected, rtol=0.02)


def test_the_precision_of_intercepts_is_where_the_bound_is_highest() -> None:
    own = deviations().with_intercepts(PRIOR)
    best = own.bound(PRIOR)
    for a, b in ((1.05, 1.0), (0.95, 1.0), (1.0, 1.05), (1.0, 0.95), (1.05, 1.05)):
        assert replace(own, a=a * own.a, b=b * own.b).bound(PRIOR) < best
    # A task that was not seen has intercepts as wide as this precision says on average.
    expected = gamma(own.a, scale=1.0 / own.b).expect(lambda omega: 1.0 / omega)
    assert own.new[-1, -1] == pytest.approx(expected, rel=1e-6)


def test_an_atom_of_all_rows_is_an_expert_by_their_densities_and_its_share() -> None:
    rng = np.random.default_rng(2)
    log_eta, log_p = np.log([0.6, 0.3, 0.1]), rng.normal(size=(3, 4))
    found = choose(np.zeros(1), log_eta, log_p, np.ones((1, 4)))
    p = np.exp(log_eta + log_p.sum(axis=1))
    np.testing.assert_allclose(found.sigma[0], p / p.sum())
    np.testing.assert_allclose(found.rho, 1.0)
    assert found.value == pytest.approx(np.log(p.sum()))


def sums(K: int) -> tuple[Experts, Statistics]:
    """Return three experts of two features, and sums over rows of which two thirds have a label."""
    rng, H = np.random.default_rng(3), 3
    q, s = Experts.from_prior(PRIOR, H, K), Statistics.zero(H, 2, K)
    for h, n in enumerate((30, 25, 4)):
        x = rng.normal(h % 2, 1.0, size=(n, 2))
        t = rng.normal(size=(n, 2))[:, :K] + x[:, :1]
        own = np.arange(n) % 3 > 0
        full = np.column_stack([x, np.ones(n)])[own]
        s.n[h], s.x[h], s.xx[h] = n, x.sum(axis=0), x.T @ x
        s.l_n[h], s.l_x[h], s.l_xx[h] = own.sum(), x[own].sum(axis=0), x[own].T @ x[own]
        s.tx[h] = t[own].T @ full
    return q, s


def test_variables_of_a_label_add_their_evidence() -> None:
    q, s = sums(2)
    alone = sums(1)[0]
    each = [rule_evidence(alone, replace(s, tx=s.tx[:, [k]])) for k in range(2)]
    np.testing.assert_allclose(rule_evidence(q, s), np.sum(each, axis=0))
    assert not rule_evidence(sums(0)[0], replace(s, tx=s.tx[:, :0])).any()


def test_labels_are_foretold_once_each_and_by_nothing_where_tasks_are_strangers() -> None:
    config, rng, tables = IqgmeConfig(experts=3), np.random.default_rng(4), []
    for _ in range(3):
        x = rng.normal(size=(20, 2))
        label = signs(x[:, 0] + 0.3 * rng.normal(size=20) > 0.0)
        tables.append(KnownRows(x, np.ones((20, 2), bool), label, np.ones(20, bool)))
    form = Full(config, 2)
    seen = see(tables, form, lambda: False)
    assert seen is not None
    of_folds = [_fold(seen, form.prior.rules, 10.0, seen.fold == i) for i in range(FOLDS)]
    assert foretold(seen, form.prior.rules, 10.0, lambda: False) == pytest.approx(sum(of_folds))
    # Of a task none of whose labels is seen, rules of its own say nothing where they are that wide.
    none = _fold(seen, form.prior.rules, 1e-9, seen.task == 0)
    assert none == pytest.approx(20 * np.log(0.5), abs=0.05)
    assert _fold(seen, form.prior.rules, 1e9, seen.task == 0) > 10 * np.log(0.5)


def test_tasks_of_fewer_labels_than_folds_are_classified() -> None:
    """A fold without a label of three levels ended the fit."""
    table = pa.table(
        {"x": [0.1, 1.2, -0.3, 0.8, 2.0], "y": list("abcab"), "task": list("sstts")}
    )
    target, task = {"type": "categorical", "role": "target"}, {"role": "task"}
    types = {"columns": {"x": "real", "y": target, "task": task}}
    found = classify(table, types, predict=table, chains=1, settings={"iterations": 3})
    assert found.predictions is not None
    assert np.isfinite(found.predictions.p).all()
