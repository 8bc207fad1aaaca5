"""What an exploration counts: cells in bins, rows with features, correlations by their freedom."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from glfm_cli.exploration.evidence import _averages, _ObservedCells, _seen
from glfm_cli.exploration.features import explained
from glfm_cli.exploration.scales import Scale
from glfm_cli.exploration.stability import Matches, membership_probability
from glfm_cli.latent.glfm import Glfm
from glfm_cli.links.law import normal
from glfm_cli.schema import ColumnType
from tests.statistical.bsvd_prior import make_links


def test_a_value_at_the_end_of_a_bin_is_in_it() -> None:
    """As a bin's mass under the model is P(X <= its end) less that of the bin before."""
    x, at = np.array([1.0, 1.0, 2.0, 2.5, 3.0, np.nan, 9.0]), np.array([1.0, 2.0, 3.0])
    link: Any = SimpleNamespace(discrete=False, ordered=True)
    found = Scale(0, None, link, (0, 1), at).weighted(x, np.ones(7))  # type: ignore[arg-type]
    below = [np.mean(x[~np.isnan(x)] <= end) for end in at]
    np.testing.assert_allclose(found.mass, np.diff([0.0, *below, 1.0]))


def test_rows_have_a_feature_by_the_draws_in_which_it_is_turned_or_not() -> None:
    Z = np.array([[1], [1], [0], [0], [1]])
    draws = [Z, 1 - Z, np.array([[1], [1], [0], [1], [1]]), np.array([[0], [1], [0], [1], [0]])]
    kept = [SimpleNamespace(bits=np.packbits(draw, axis=1), n_columns=1) for draw in draws]
    chain = [SimpleNamespace(latent=draw) for draw in kept]
    posterior: Any = SimpleNamespace(model=Glfm(), chains=[chain])
    shown: Any = SimpleNamespace(Z=Z, chain=0, draw=0)
    phi = np.array([[1.0], [-1.0], [0.6], [0.1]])
    matches = Matches(np.zeros(4, int), np.arange(4), np.zeros((4, 1), int), phi, 0)
    found = membership_probability(posterior, shown, matches, [0], bias=False)
    np.testing.assert_allclose(found[:, 0], [1, 1, 0, 1 / 3, 1])


def test_evidence_is_a_correlation_by_the_rows_that_are_free() -> None:
    """z = r sqrt(n - 1), one row less for each feature that is given."""
    rng = np.random.default_rng(0)
    p, views = rng.random((9, 2)), rng.random((9, 1))
    cells = _ObservedCells(p, views, np.ones((2, 1), bool))
    z, r = _averages([[cells]], np.ones(2), [])
    expected = [np.corrcoef(one, views[:, 0])[0, 1] for one in p.T]
    np.testing.assert_allclose(r[:, 0], expected)
    np.testing.assert_allclose(z[:, 0], np.sqrt(8.0) * np.array(expected))
    z, r = _averages([[cells]], np.ones(2), [0])
    X = np.column_stack([np.ones(9), p[:, 0]])
    rest = [one - X @ np.linalg.lstsq(X, one, rcond=None)[0] for one in (p[:, 1], views[:, 0])]
    assert r[1, 0] == pytest.approx(np.corrcoef(*rest)[0, 1])
    assert z[1, 0] == pytest.approx(np.sqrt(7.0) * r[1, 0])


@pytest.mark.parametrize(("share", "counts"), [(0.5, True), (0.02, False), (0.98, False)])
def test_few_rows_with_a_feature_or_without_are_no_evidence(share: float, counts: bool) -> None:
    x = np.arange(100.0)
    encoded = SimpleNamespace(inside=x, ends=None)
    scale: Any = SimpleNamespace(
        encoded=encoded, ordered=True, link=SimpleNamespace(n_latent=1)
    )
    crossed: Any = SimpleNamespace(rows=np.arange(100), probability=np.full((1, 100, 1), share))
    assert _seen(crossed, 0, scale).enough.tolist() == [[counts]]


def test_a_feature_is_as_stable_as_other_chains_have_it() -> None:
    phi = np.array([[0.9, 0.1], [0.8, 0.6], [0.2, -0.7], [0.5, 0.3], [0.1, 0.0]])
    none = np.zeros((5, 2), int)
    chain = np.array([0, 0, 1, 1, 2])
    matches = Matches(chain, np.arange(5), none, phi, own=0)
    np.testing.assert_allclose(matches.stability(), [[0.5, 0.5], [0.0, 0.0]])
    alone = Matches(np.zeros(5, int), np.arange(5), none, phi, own=0)
    np.testing.assert_allclose(alone.stability(), [[0.6, 0.4]])


def test_a_feature_that_all_rows_have_explains_nothing() -> None:
    """Features are averaged out, not taken away: others explain what rows differ by."""
    (link,) = make_links(ColumnType.REAL)
    Z, B = np.column_stack([np.ones(6), np.arange(6) % 2]), np.array([[2.0], [1.5]])
    scale: Any = SimpleNamespace(
        link=link, d=0, law=normal, encoded=SimpleNamespace(scored=link.value((Z @ B)[:, 0]))
    )
    shown: Any = SimpleNamespace(Z=Z, B=B, eta=Z @ B, noise=np.array([0.5]), params=[{}])
    np.testing.assert_allclose(explained(shown, [scale]), [0.0, 1.0])
