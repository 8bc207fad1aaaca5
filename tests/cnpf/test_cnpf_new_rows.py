"""New rows of counts: the local step with the weights of a fit, times the factor found for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from cnpf_fits import MODEL, fit
from cnpf_reference import counts_of

from glfm_cli.latent.cnpf import CnpfConfig
from glfm_cli.latent.cnpf.prediction import fold_in

CONFIG = CnpfConfig(components=3, scaled=False, correlated=False, free_pass=3)


def test_new_rows_have_the_weights_of_the_fit_times_tau(seed: int) -> None:
    rng = np.random.default_rng(seed)
    y = rng.poisson(rng.gamma(0.5, 2.0, (60, 3)) @ rng.gamma(0.4, 1.0, (3, 20)))
    counts, new = counts_of(y[:50]), counts_of(y[50:])
    draw = MODEL.draw(fit(counts, CONFIG, 20)[0], counts)
    heavier = draw.shared.copy()
    heavier.w = 4.0 * heavier.w
    found = fold_in(replace(draw, tau=4.0), new, CONFIG)
    expected = fold_in(replace(draw, shared=heavier), new, CONFIG)
    np.testing.assert_array_equal(found.shape, expected.shape)
    np.testing.assert_array_equal(found.rate, expected.rate)
    assert np.abs(found.mean_x - fold_in(draw, new, CONFIG).mean_x).max() > 0.1
    np.testing.assert_array_equal(found.shared.w, draw.shared.w)
