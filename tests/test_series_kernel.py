"""The factor of a series' precision that a kernel makes in one pass, beside LAPACK's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg.lapack import dpbtrf

from glfm_cli.arrays import Array
from glfm_cli.latent.factor_series import Blocks
from glfm_cli.latent.row_laws import Series, SeriesLaw
from tests.statistical.series import smooth

pytestmark = pytest.mark.kernels


def some_series(seed: int, n: int) -> tuple[Series, Array]:
    """Return a series of up to three groups at uneven times, and what is seen of it."""
    rng = np.random.default_rng(seed)
    series = Series.of(rng.integers(0, 3, n), rng.choice([0.0, 0.4, 1.0, 1.5, 7.0], n).cumsum())
    return series, rng.gamma(1.0, size=series.code.size) * (rng.random(series.code.size) < 0.7)


def band_of(series: Series, lengths: Array) -> Array:
    """Return the precision of (u, sqrt(l k) du/dt) in LAPACK's lower band (4, 2 M)."""
    Q, root = Blocks.of_series(series, lengths, 1.0), np.array([1.0, np.sqrt(np.prod(lengths))])
    (d00, _), (d10, d11) = Q.diagonal / np.outer(root, root)[..., None]
    (b00, b01), (b10, b11) = Q.below / np.outer(root, root)[..., None]
    zero = np.zeros_like(d00)
    band = np.array([[d00, d10, b00, b10], [d11, b01, b11, zero]])
    return band.transpose(1, 2, 0).reshape(4, -1)


@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 40),
    st.floats(-2.0, 3.0),
    st.floats(-3.0, 1.0),
    st.floats(0.01, 10.0),
)
def test_the_factor_is_that_of_lapack(
    seed: int, n: int, long: float, short: float, v: float
) -> None:
    series, seen = some_series(seed, n)
    lengths, law = np.exp([long, short]), SeriesLaw(series, np.exp([long, short]), v, seen)
    band = band_of(series, lengths) / v
    prior = dpbtrf(band, lower=1)[0]
    band[0, ::2] += seen
    factor, status = dpbtrf(band, lower=1)
    assert status == 0
    for below in range(4):  # what is beyond the last row is nobody's
        own = slice(0, factor.shape[1] - below)
        np.testing.assert_allclose(law.factor[own, below], factor[below, own], rtol=1e-7, atol=1e-9)
    ratio = 2.0 * np.log(factor[0]).sum() - 2.0 * np.log(prior[0]).sum()
    assert law.log_ratio == pytest.approx(ratio, rel=1e-7, abs=1e-7)


def test_the_factor_is_that_of_the_dense_law(seed: int) -> None:
    series, seen = some_series(seed, 12)
    lengths, v = np.array([3.0, 0.8]), 0.7
    law = SeriesLaw(series, lengths, v, seen)
    K = v * smooth(series.time, series.step, lengths)
    K *= series.code[:, None] == series.code
    b = np.random.default_rng(seed).normal(size=seen.size)
    dense = np.linalg.solve(np.linalg.inv(K) + np.diag(seen), b)
    X, none = np.random.default_rng(seed).normal(size=(seen.size, 3)), np.empty((seen.size, 0))
    A, B = law.shared(b, none, np.empty(0), X, series.code)
    D = np.diag(seen)
    W = D - D @ np.linalg.solve(np.linalg.inv(K) + D, D)
    assert pytest.approx(X.T @ W @ X, abs=1e-6) == A
    assert pytest.approx(X.T @ (b - seen * dense), abs=1e-6) == B
    assert float(law.half(b) @ law.half(b)) == pytest.approx(b @ dense, rel=1e-6)


def test_what_is_not_positive_definite_is_said_so() -> None:
    series = Series.of(np.zeros(4, np.int64), np.arange(4.0))
    for wrong in (-1e6, np.nan):
        for at in range(4):
            seen = np.ones(4)
            seen[at] = wrong
            with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
                SeriesLaw(series, [5.0, 0.5], 1.0, seen)
    series, lengths = Series.of(np.zeros(2, np.int64), np.arange(2.0)), np.array([5.0, 0.5])
    band = band_of(series, lengths)
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):  # by its velocity
        SeriesLaw(series, lengths, 1.0, np.array([1e-3 - band[0, 0], 0.0]))
