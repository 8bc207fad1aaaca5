"""The joint law of the latent feature model, and mutants of its kernel that it catches.

That a sweep has it as its invariant law is tested in `tests/contract/test_priors.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from glfm_cli.inference import chain
from glfm_cli.latent.glfm import sampler as glfm
from tests.statistical.geweke import Comparison, compare, geweke, geweke_twins
from tests.statistical.mutants import MUTANTS, compile_mutant

MIDDLE, LONG = 20_000, 60_000

# bias, link noise, scale of the weights' prior, components of the linear part
CASES: dict[str, tuple[Any, ...]] = {
    "bias, no link noise": (True, 0.0, "noise"),
    "free thresholds, link noise": (False, 0.3, "noise"),
    "bias, unscaled weights": (True, 0.3, "independent"),
    "free thresholds, unscaled weights": (False, 0.0, "independent"),
    "linear part, blocks of rows": (True, 0.3, "noise", 2),
    "linear part, unscaled weights": (False, 0.0, "independent", 1),
}

# Where a mutant shows, if not in the usual run. The bits are drawn anew given the weights, which
# nearly mends what is wrong with singletons.
SEEN_IN = {"singletons dropped first": ("bias, unscaled weights", LONG)}


def run(case: str, n_sweeps: int, seed: int) -> Comparison:
    # Seeds of their own: cases that shared simulated draws would share their chance deviations.
    seed += list(CASES).index(case)
    with patch.object(chain, "BLOCK", 2 if "blocks" in case else chain.BLOCK):
        return geweke(geweke_twins(*CASES[case]), n_sweeps, seed)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_caught(
    mutant: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(glfm, "_glfm", compile_mutant(mutant, tmp_path))
    comparison = run(*SEEN_IN.get(mutant, ("free thresholds, link noise", MIDDLE)), seed)
    print(comparison)
    assert not comparison.passes, str(comparison)


def test_comparison_sees_one_shifted_mean_among_many_correlated_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    names = [f"s{i}" for i in range(30)]
    mix = rng.normal(size=(30, 30))
    means, independent = rng.normal(size=(200, 30)) @ mix, rng.normal(size=(6_000, 30)) @ mix
    assert compare(names, means, independent).passes
    means[:, 7] += 0.5 * means[:, 7].std()
    shifted = compare(names, means, independent)
    assert not shifted.passes
    assert names[int(np.abs(shifted.z).argmax())] == "s7"
